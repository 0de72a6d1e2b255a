//! `doctor`: the whole installation and store at one look.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::agent::Standing;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::plain::escape_line;
use relay_core::error::{Code, Refusal};
use relay_core::installation::Installation;
use relay_core::playbook::{self, Condition, Fails, Setting};
use relay_core::store::{Clock, Result, Store};
use relay_server::Speech;
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
/// the project's coordination debt, and the server that RELAY_URL names, if it names one. The exit status is that of the worst error's class; what is only worth knowing, or
/// waits for somebody, is 0.
///
/// With --agents it looks at the coding agents that `relay init` set up in this work tree instead: whether all that it wrote is there,
/// whether the program would run it, whether it answers events that doctor makes up, and whether the program was seen to honour such
/// answers. Nothing of it reaches the bus, and no agent is started but to ask for its version.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay doctor\n  relay doctor --fix\n  relay doctor --agents\n  relay doctor --json"
)]
pub struct Args {
    /// Run what is safe without a person, then look again
    #[arg(long)]
    fix: bool,
    /// Try out what `relay init` set up for each coding agent
    #[arg(long, conflicts_with = "fix")]
    agents: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        match if self.agents { of_the_agents(app) } else { self.looked(app) } {
            Ok((said, status)) => app.answer("doctor", Ok::<_, Refusal>(said)).max(status),
            Err(refusal) => app.fail_outside("doctor", &refusal),
        }
    }

    fn looked(&self, app: &App) -> Result<(Said, u8)> {
        app.named()?;
        let mut first = Vec::new();
        let home = app.home().map(|(home, _)| home).or_else(|refusal| {
            let home = app.home_of_defaults()?;
            first.push(Finding::refused("config", Severity::Error, &refusal, &Setting::default()));
            Ok::<_, Refusal>(home)
        })?;
        let project = match app.project() {
            Ok(project) => Some(project),
            // A machine can be looked at from anywhere.
            Err(refusal) if refusal.code == Code::ProjectUnresolved => None,
            Err(refusal) => {
                first.push(Finding::refused("project", Severity::Error, &refusal, &Setting::default()));
                None
            }
        };
        let mended = match &project {
            Some(project) if self.fix && first.is_empty() => {
                // Before the first look: opening the store closes some of it without a word.
                let closed = close(&home, project);
                let mut mended = fix(app, &home, project, &look(app, &home, Some(project)));
                mended.fixed.splice(0..0, closed);
                mended
            }
            _ => Mended::default(),
        };
        let found: Vec<Finding> = first.into_iter().chain(look(app, &home, project.as_ref())).collect();
        Ok((said(project.as_ref(), &found, &mended), status(&found)))
    }
}

fn of_the_agents(app: &App) -> Result<(Said, u8)> {
    app.named()?;
    let (home, _) = app.home()?;
    doctor::agents::look(app, &home)
}

/// What a fix came to.
#[derive(Default)]
struct Mended {
    fixed: Vec<String>,
    /// Questions that were put before a person.
    asked: Vec<String>,
    failed: Vec<String>,
}

fn look(app: &App, home: &Home, project: Option<&ProjectKey>) -> Vec<Finding> {
    let setting = Setting { project: project.map(ToString::to_string), ..Setting::default() };
    let mut found = doctor::of_the_machine(home, &setting);
    found.extend(doctor::of_the_server(&setting));
    found.push(doctor::of_the_hooks(home, app.clock.now()));
    found.extend(project.and_then(|_| doctor::of_the_agents(app, home)));
    match project {
        Some(project) => found.extend(of_the_project(app, home, project, &setting)),
        None => {
            found.extend(home.projects().unwrap_or_default().iter().map(|(key, _)| doctor::of_a_project(home, key)));
        }
    }
    found
}

fn of_the_project(app: &App, home: &Home, project: &ProjectKey, setting: &Setting) -> Vec<Finding> {
    let folder = home.folder(project);
    let nobody = || match app.elsewhere(home, project) {
        Some(refusal) => Finding::refused("store", Severity::Note, &refusal, setting),
        None => Finding::nobody("store", format!("nobody has started in {project} yet"), setting),
    };
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
        Err(refusal) if [Code::AgentNotRegistered, Code::StoreUnreachable].contains(&refusal.code) => {
            found.push(nobody());
            return found;
        }
        Err(refusal) => {
            found.push(Finding::refused("store", Severity::Error, &refusal, setting));
            return found;
        }
    };
    found.extend(doctor::of_the_store(&opened.store, &folder, app.clock.now(), setting));
    found.extend(here.notes().notes().iter().map(|note| doctor::beside(note, setting)));
    let on_the_bus = app.context_of_anyone(&opened).and_then(|ctx| doctor::on_the_bus(&ctx, setting));
    match on_the_bus {
        Ok(more) => found.extend(more),
        Err(refusal) => found.push(Finding::refused("debt", Severity::Warning, &refusal, setting)),
    }
    found
}

/// Runs what is safe without a person: the unattended steps of each finding's playbook, and what only relay itself touches.
fn fix(app: &App, home: &Home, project: &ProjectKey, found: &[Finding]) -> Mended {
    let here = app.here(home, project);
    let mut mended = Mended::default();
    for finding in found.iter().filter(|finding| finding.severity > Severity::Note) {
        take(&here, finding, &mut mended);
    }
    for note in here.notes().notes().iter().filter(|note| is_settled(&here, note)) {
        if note.remove().is_ok() {
            mended.fixed.push(format!("{} is settled: took {} away", note.class(), note.path.display()));
        }
    }
    mended
}

/// What the playbook of a question's class says must be true is true, as far as the store and its archive go. What else there is
/// to settle, a person settles.
fn is_settled(here: &Here, note: &Note) -> bool {
    let Some(code) = Code::parse(note.class()) else { return false };
    if code == Code::AgentSuspended {
        return nobody_is_suspended(here).unwrap_or(false);
    }
    let steps = playbook::outline(&playbook::playbook(code), code, &Setting::default());
    let must: Vec<&Condition> = steps
        .iter()
        .filter(|step| step.escalation.is_none() && step.fails != Fails::GoOn)
        .filter_map(|step| step.condition.as_ref())
        .collect();
    !must.is_empty() && must.into_iter().all(|condition| here.holds(condition).unwrap_or(false))
}

fn nobody_is_suspended(here: &Here) -> Result<bool> {
    let Some(store) = here.home.open_existing(&here.project)? else { return Ok(false) };
    let agents = store.read()?.agents()?;
    Ok(agents.iter().all(|agent| agent.standing != Standing::Suspended))
}

/// What others can read is for its owner alone again.
fn close(home: &Home, project: &ProjectKey) -> Vec<String> {
    // In the home itself there may be files of the user's own.
    let root = Some(home.root().to_owned()).filter(|root| fitness::is_open_to_others(root));
    let open = root.into_iter().chain(fitness::open_to_others(&home.folder(project)));
    let closed = open.filter(|path| fitness::close_to_others(path).is_ok());
    closed.map(|path| format!("closed {} to others", path.display())).collect()
}

/// The unattended steps of a finding, in order, up to the first that is not or fails.
fn take(here: &Here, finding: &Finding, mended: &mut Mended) {
    let open = finding.playbook.iter().filter(|step| {
        let holds = step.condition.as_ref().is_some_and(|condition| here.holds(condition).unwrap_or(false));
        finding.code.is_some() && !holds
    });
    for step in open.take_while(|step| step.unattended && !step.run.is_empty()) {
        match here.run(&step.run) {
            Ok(_) if step.escalation.is_some() => mended.asked.push(step.why.clone()),
            Ok(_) => mended.fixed.push(step.why.clone()),
            Err(refusal) => {
                mended.failed.push(format!("{}: {}", step.why, refusal.message));
                break;
            }
        }
    }
}

/// The exit status of the worst error.
fn status(found: &[Finding]) -> u8 {
    let errors = found.iter().filter(|finding| finding.severity == Severity::Error);
    errors.filter_map(|finding| finding.code).map(|code| code.kind().exit_status()).max().unwrap_or(0)
}

fn said(project: Option<&ProjectKey>, found: &[Finding], mended: &Mended) -> Said {
    let worst = found.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok);
    let mut text = String::new();
    for (mark, lines) in [
        ("fixed".green().to_string(), &mended.fixed),
        ("asked".yellow().to_string(), &mended.asked),
        ("failed".red().to_string(), &mended.failed),
    ] {
        for line in lines {
            let _ = writeln!(text, "{mark} {}", escape_line(line));
        }
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
        if finding.severity > Severity::Ok {
            text.push_str(&render::steps(&finding.playbook, Speech::Commands));
        }
    }
    let result = json!({"project": project, "worst": worst, "checks": found,
        "fixed": mended.fixed, "asked": mended.asked, "failed": mended.failed});
    Said { result, text, signals: Vec::new(), next: Vec::new() }
}
