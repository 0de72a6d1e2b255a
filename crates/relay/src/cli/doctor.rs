//! `doctor`: the whole installation and store at one look.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::plain::escape_line;
use relay_core::error::{Code, Refusal};
use relay_core::installation::Installation;
use relay_core::playbook::{self, Condition, Fails, Setting};
use relay_core::store::{Clock, Result};
use relay_store::filesystem::private_folder;
use relay_store::notes::Note;
use relay_store::{Home, fitness};
use serde_json::json;

use crate::app::{App, Said};
use crate::doctor::{self, Finding, Severity};
use crate::installation::Here;
use crate::render;

/// Check the whole installation and store, and say what to do about each finding
///
/// Looks at versions, permissions, the store and the end of its chain, the gate, the log, the archive, the disk, leftovers,
/// and the project's coordination debt. The exit status is that of the worst error's class; what is only worth knowing, or
/// waits for somebody, is 0.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relay doctor\n  relay doctor --fix\n  relay doctor --json")]
pub struct Args {
    /// Run what is safe without a person, then look again
    #[arg(long)]
    fix: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        match self.looked(app) {
            Ok((said, status)) => app.answer("doctor", Ok::<_, Refusal>(said)).max(status),
            Err(refusal) => app.fail_outside("doctor", &refusal),
        }
    }

    fn looked(&self, app: &App) -> Result<(Said, u8)> {
        app.named()?;
        let (home, _) = app.home()?;
        let project = match app.project() {
            Ok(project) => Some(project),
            // A machine can be looked at from anywhere.
            Err(refusal) if refusal.code == Code::ProjectUnresolved => None,
            Err(refusal) => return Err(refusal),
        };
        let fixed = match &project {
            Some(project) if self.fix => {
                // Before the first look: opening the store closes some of it without a word.
                let closed = close(&home, project);
                closed.into_iter().chain(fix(app, &home, project, &look(app, &home, Some(project)))).collect()
            }
            _ => Vec::new(),
        };
        let found = look(app, &home, project.as_ref());
        Ok((said(project.as_ref(), &found, &fixed), status(&found)))
    }
}

fn look(app: &App, home: &Home, project: Option<&ProjectKey>) -> Vec<Finding> {
    let setting = Setting { project: project.map(ToString::to_string), ..Setting::default() };
    let mut found = doctor::of_the_machine(home, &setting);
    if let Some(project) = project {
        found.extend(of_the_project(app, home, project, &setting));
    }
    found
}

fn of_the_project(app: &App, home: &Home, project: &ProjectKey, setting: &Setting) -> Vec<Finding> {
    let folder = home.folder(project);
    let nobody = || Finding::new("store", Severity::Note, format!("nobody has started in {project} yet"));
    if std::fs::symlink_metadata(&folder).is_err() {
        return vec![nobody()];
    }
    if !folder.is_dir() {
        let refusal = private_folder(&folder).err();
        return refusal.iter().map(|refusal| Finding::refused("store", Severity::Error, refusal, setting)).collect();
    }
    let mut found = doctor::of_the_files(&folder, setting);
    let here = app.here(home, project);
    let opened = match app.open(None) {
        Ok(opened) => opened,
        Err(refusal) if refusal.code == Code::AgentNotRegistered => {
            found.push(nobody());
            return found;
        }
        Err(refusal) => {
            found.push(Finding::refused("store", Severity::Error, &refusal, setting));
            return found;
        }
    };
    found.extend(doctor::of_the_store(&opened.store, &folder, app.clock.now(), setting));
    let on_the_bus = app.context(&opened).and_then(|ctx| doctor::on_the_bus(&ctx, &here.notes().notes(), setting));
    match on_the_bus {
        Ok(more) => found.extend(more),
        Err(refusal) => found.push(Finding::refused("debt", Severity::Warning, &refusal, setting)),
    }
    found
}

/// Runs what is safe without a person: the unattended steps of each finding's playbook, and what only relay itself touches.
fn fix(app: &App, home: &Home, project: &ProjectKey, found: &[Finding]) -> Vec<String> {
    let here = app.here(home, project);
    let mut fixed = Vec::new();
    for finding in found.iter().filter(|finding| finding.severity > Severity::Note) {
        fixed.extend(taken(&here, finding));
    }
    for note in here.notes().notes().iter().filter(|note| is_settled(&here, note)) {
        if note.remove().is_ok() {
            fixed.push(format!("{} is settled: took {} away", note.class(), note.path.display()));
        }
    }
    fixed
}

/// What the playbook of a question's class says must be true is true, as far as the store and its archive go. What else there is
/// to settle, a person settles.
fn is_settled(here: &Here, note: &Note) -> bool {
    let Some(code) = Code::parse(note.class()) else { return false };
    let steps = playbook::outline(&playbook::playbook(code), code, &Setting::default());
    let must: Vec<&Condition> = steps
        .iter()
        .filter(|step| step.escalation.is_none() && step.fails != Fails::GoOn)
        .filter_map(|step| step.condition.as_ref())
        .collect();
    !must.is_empty() && must.into_iter().all(|condition| here.holds(condition).unwrap_or(false))
}

/// What others can read is for its owner alone again.
fn close(home: &Home, project: &ProjectKey) -> Vec<String> {
    let folders = [home.root(), &home.folder(project)];
    let open = folders.into_iter().flat_map(fitness::open_to_others).filter(|path| {
        // In the home itself there may be files of the user's own.
        path == home.root() || path.starts_with(home.folder(project))
    });
    let closed = open.filter(|path| fitness::close_to_others(path).is_ok());
    closed.map(|path| format!("closed {} to others", path.display())).collect()
}

/// The unattended steps of a finding, in order, up to the first that is not or fails.
fn taken(here: &Here, finding: &Finding) -> Vec<String> {
    let mut taken = Vec::new();
    let open = finding.playbook.iter().filter(|step| {
        let holds = step.condition.as_ref().is_some_and(|condition| here.holds(condition).unwrap_or(false));
        finding.code.is_some() && !holds
    });
    for step in open.take_while(|step| step.unattended && !step.run.is_empty()) {
        match here.run(&step.run) {
            Ok(_) => taken.push(step.why.clone()),
            Err(refusal) => {
                taken.push(format!("{}: failed: {}", step.why, refusal.message));
                break;
            }
        }
    }
    taken
}

/// The exit status of the worst error.
fn status(found: &[Finding]) -> u8 {
    let errors = found.iter().filter(|finding| finding.severity == Severity::Error);
    errors.filter_map(|finding| finding.code).map(|code| code.kind().exit_status()).max().unwrap_or(0)
}

fn said(project: Option<&ProjectKey>, found: &[Finding], fixed: &[String]) -> Said {
    let worst = found.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
    let mut text = String::new();
    for line in fixed {
        let _ = writeln!(text, "{} {}", "fixed".green(), escape_line(line));
    }
    for finding in found {
        let mark = match finding.severity {
            Severity::Ok => "ok     ".green().to_string(),
            Severity::Note => "note   ".dimmed().to_string(),
            Severity::Warning => "warning".yellow().to_string(),
            Severity::Error => "error  ".red().bold().to_string(),
        };
        let class = finding.class.as_ref().map(|class| format!(" [{class}]")).unwrap_or_default();
        let _ = writeln!(text, "{mark} {}: {}{class}", finding.check, escape_line(&finding.text));
        if finding.severity > Severity::Note {
            text.push_str(&render::steps(&finding.playbook));
        }
    }
    let result = json!({"project": project, "worst": worst, "checks": found, "fixed": fixed});
    Said { result, text, signals: Vec::new(), next: Vec::new() }
}
