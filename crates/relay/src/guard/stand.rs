//! The guard at its post: what git is about to do, held against the live claims of others. It stops git with 1 where it was
//! told to, and lets it go on whenever it cannot tell.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::domain::worktree::{Seen, Unseen};
use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Repository, Result};
use relay_core::verbs::{Outcome, Request, check};
use relay_core::wire::v1::Answer;
use relay_server::http::Sent;
use relay_store::repository;
use serde_json::{Value, json};

use super::pushed::pushed;
use super::{Hook, warning};
use crate::app::App;
use crate::cli::Globals;
use crate::config::{self, Mode};
use crate::environment;
use crate::hook::trace;
use crate::remote::Remote;

/// How long a person who commits waits for what is read of the repository, or for a server.
const PATIENCE: Duration = Duration::from_secs(1);

/// git stops at this exit status; relay's hook takes any other for leave to go on.
const STOPS: u8 = 1;

/// Claims of others that something goes into, and what is to be done about that.
struct Standing {
    mode: Mode,
    home: PathBuf,
    met: check::Outcome,
}

pub fn stand(app: &App, hook: Hook) -> u8 {
    // What breaks is told in one line, and git goes on.
    std::panic::set_hook(Box::new(|_| {}));
    let seen = catch_unwind(AssertUnwindSafe(|| see(app, hook)));
    match seen.unwrap_or_else(|cause| Err(broken(&*cause))) {
        Ok(Some(standing)) => tell(app, hook, &standing),
        Ok(None) => pass(app, hook, None),
        Err(refusal) => pass(app, hook, Some(&refusal)),
    }
}

fn broken(cause: &(dyn Any + Send)) -> Refusal {
    let text =
        cause.downcast_ref::<String>().cloned().or_else(|| cause.downcast_ref::<&str>().map(ToString::to_string));
    Code::Internal.refuse(text.unwrap_or_else(|| "relay broke".to_owned()))
}

/// Nothing stands against it, or nobody can tell.
fn pass(app: &App, hook: Hook, unknown: Option<&Refusal>) -> u8 {
    if let Some(refusal) = unknown {
        let name = hook.as_str();
        app.output
            .complain(&format!("relay: the guard cannot tell, and {name} goes on: {refusal} (see `relay doctor`)\n"));
        if let Ok(home) = environment::home() {
            trace::note(&home, app.clock.now(), &format!("guard {name}"), &refusal.to_string());
        }
    }
    if app.output.json {
        let why = unknown.map(ToString::to_string);
        app.output.line(&Answer::new(
            "guard",
            json!({"hook": hook, "inside": [], "inside_total": 0, "unknown": why}),
            Vec::new(),
            Vec::new(),
        ));
    }
    0
}

fn tell(app: &App, hook: Hook, standing: &Standing) -> u8 {
    let Standing { mode, met, .. } = standing;
    if app.output.json {
        let result = json!({"hook": hook, "mode": mode, "agent": met.agent, "inside": met.inside, "inside_total": met.inside_total, "unknown": null});
        app.output.line(&Answer::new("guard", result, Vec::new(), warning::next(met)));
    } else {
        app.output.complain(&warning::warning(hook, *mode, met, &standing.home, app.clock.now()));
    }
    if *mode == Mode::Block { STOPS } else { 0 }
}

/// What is met; nothing where the repository is none of relay's, or where nobody stands in the way.
fn see(app: &App, hook: Hook) -> Result<Option<Standing>> {
    #[cfg(feature = "test-doors")]
    match environment::test_break().as_deref() {
        Some("guard") => panic!("broken by a test"),
        Some("guard:abort") => std::process::abort(),
        _ => {}
    }
    let Some(post) = Post::find(app)? else { return Ok(None) };
    let paths = post.paths(hook).map_err(|unseen| Code::Internal.refuse(unseen.to_string()))?;
    if paths.is_empty() {
        return Ok(None);
    }
    let met = match ask(&post.app, paths) {
        Ok(met) => met,
        // Nobody of this project's asks: it is none of relay's here.
        Err(refusal) if refusal.code == Code::AgentNotRegistered => return Ok(None),
        Err(refusal) => return Err(refusal),
    };
    let Post { mode, home, .. } = post;
    Ok((met.inside_total > 0).then_some(Standing { mode, home, met }))
}

/// Where the guard stands.
struct Post {
    app: App,
    project: ProjectKey,
    /// The project's folder in the work tree that git is in.
    root: PathBuf,
    home: PathBuf,
    mode: Mode,
}

impl Post {
    /// None in a repository that relay does not know.
    fn find(app: &App) -> Result<Option<Self>> {
        let here = environment::working_directory()?;
        let Some((tree, project)) = project(app, &here) else { return Ok(None) };
        let home = environment::home()?;
        let config = config::read(&home)?;
        let globals = Globals { project: Some(project.to_string()), ..app.globals.clone() };
        let app = App::new(globals);
        if environment::url().is_none() && app.home()?.0.known(&project)?.is_none() {
            return Ok(None);
        }
        let mode = config.guard(&project);
        Ok(Some(Post { app, project, root: tree, home, mode }))
    }

    fn paths(&self, hook: Hook) -> Seen<Vec<String>> {
        let files = repository::Files::new(&self.project);
        let patience = Span::millis(i64::try_from(PATIENCE.as_millis()).unwrap_or(i64::MAX));
        let root = self.root.to_str().ok_or(Unseen::Nowhere)?;
        if hook == Hook::PreCommit {
            // Relative to where git runs the hook, as we do.
            let index = environment::of_git("GIT_INDEX_FILE").and_then(|index| std::path::absolute(index).ok());
            return files.staged(root, index.as_deref(), patience);
        }
        let mut paths = Vec::new();
        for pushed in pushed() {
            let mut differ = files.between(pushed.old.as_deref(), &pushed.new, patience)?;
            // What was merged from the remote is nobody's news: only commits that no remote has bring something.
            if pushed.old.is_some()
                && let Ok(fresh) = files.between(None, &pushed.new, patience)
            {
                differ.retain(|path| fresh.binary_search(path).is_ok());
            }
            paths.extend(differ);
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}

/// The project that the work tree here belongs to, and its folder in that tree. A project that the caller names counts where
/// it is of this very repository: git commits here, whatever the environment says.
fn project(app: &App, here: &Path) -> Option<(PathBuf, ProjectKey)> {
    let around = repository::around(here).ok()?;
    let tree = repository::work_tree(here)?;
    if environment::of_git("GIT_DIR").is_some_and(|git| !repository::is_git_folder_of(&tree, Path::new(&git))) {
        return None;
    }
    let named = app.globals.project.clone().or_else(environment::project);
    let named = named.and_then(|path| repository::resolve(Path::new(&path)).ok());
    let inside = named.as_ref().and_then(|named| Path::new(named.as_str()).strip_prefix(around.as_str()).ok());
    match (inside, &named) {
        (Some(inside), Some(named)) => Some((tree.join(inside), named.clone())),
        _ => Some((tree, around)),
    }
}

/// Whose live claims stand on these paths. Whoever is not known here, or may not act, is nobody in particular.
fn ask(app: &App, paths: Vec<String>) -> Result<check::Outcome> {
    let request = Request::Check(check::Input { paths, standing: true, ..check::Input::default() });
    match Remote::named()? {
        Some(remote) => ask_there(app, &remote.within(PATIENCE), request),
        None => ask_here(app, &request),
    }
}

fn ask_here(app: &App, request: &Request) -> Result<check::Outcome> {
    // Who calls is looked at below: whoever is nobody asks all the same.
    let opened = app.open(None)?;
    let asked = match app.context(&opened).and_then(|ctx| app.ask(&ctx, request)) {
        Err(refusal) if is_about_the_caller(&refusal) => app.ask(&app.context_of_anyone(&opened)?, request),
        asked => asked,
    };
    match asked?.outcome {
        Outcome::Check(outcome) => Ok(outcome),
        _ => Err(Code::Internal.refuse("a check was asked, and something else answered")),
    }
}

fn ask_there(app: &App, remote: &Remote, request: Request) -> Result<check::Outcome> {
    let sent = app.sent(request, "check", app.key()?)?;
    match heard(remote, &sent) {
        Err(refusal) if is_about_the_caller(&refusal) => {
            heard(remote, &Sent { agent: None, variable: None, session: None, ..sent })
        }
        heard => heard,
    }
}

fn heard(remote: &Remote, sent: &Sent) -> Result<check::Outcome> {
    let answer: Value = serde_json::from_str(&remote.ask(sent)?.line).unwrap_or_default();
    let error = &answer["error"];
    if let (Some(code), Some(text)) = (error["code"].as_str().and_then(Code::parse), error["message"].as_str()) {
        return Err(code.refuse(text));
    }
    serde_json::from_value(answer["result"].clone())
        .map_err(|fault| Code::Internal.refuse(format!("the server's answer is none: {fault}")))
}

fn is_about_the_caller(refusal: &Refusal) -> bool {
    matches!(
        refusal.code,
        Code::AgentNotRegistered
            | Code::AgentNameInvalid
            | Code::AgentRetired
            | Code::AgentSuspended
            | Code::IdentityMismatch
            | Code::Unauthorized
    )
}
