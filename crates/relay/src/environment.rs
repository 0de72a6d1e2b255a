//! The environment: the one door. Everything that relay takes from variables is listed here.

use std::path::{Path, PathBuf};

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_store::repository::User;
use rustix::fs::{Access, access};

/// Variables in which coding agents tell their tools which session they run in.
const SESSIONS: [&str; 6] = [
    "RELAY_SESSION",
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_SESSION_ID",
    "GEMINI_SESSION_ID",
    "CURSOR_SESSION_ID",
    "COPILOT_AGENT_SESSION_ID",
];

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where the stores are: `RELAY_HOME`, or the state folder that the system gives to each user.
pub fn home() -> Result<PathBuf> {
    if let Some(home) = variable("RELAY_HOME") {
        let home = PathBuf::from(home);
        if !home.is_absolute() {
            return Err(
                Code::InputInvalid.refuse(format!("RELAY_HOME is {}; it must be an absolute path", home.display()))
            );
        }
        return Ok(home);
    }
    use etcetera::BaseStrategy;
    let strategy = etcetera::base_strategy::Xdg::new().map_err(|_| no_home())?;
    strategy.state_dir().map(|folder| folder.join("relay")).ok_or_else(no_home)
}

fn no_home() -> Refusal {
    Code::InputInvalid.refuse("this user has no home folder; set RELAY_HOME to a folder for relay's stores")
}

pub fn project() -> Option<String> {
    variable("RELAY_PROJECT")
}

pub fn agent() -> Option<String> {
    variable("RELAY_AGENT")
}

/// The server that has the stores, where they are not here.
pub fn url() -> Option<String> {
    variable("RELAY_URL")
}

/// What opens that server's door.
pub fn token() -> Option<String> {
    variable("RELAY_TOKEN")
}

/// Whether colours are wanted: not with `NO_COLOR`.
pub fn wants_colour() -> bool {
    variable("NO_COLOR").is_none()
}

/// Whether the archive is left to a later command: `RELAY_DRAIN=later`.
pub fn drains_later() -> bool {
    variable("RELAY_DRAIN").is_some_and(|wish| wish == "later")
}

pub fn session() -> Option<String> {
    SESSIONS.into_iter().find_map(variable)
}

/// What tells a relay where the stores are and who calls it: none of it may reach one that is only tried out.
pub fn of_a_caller() -> impl Iterator<Item = &'static str> {
    ["RELAY_HOME", "RELAY_PROJECT", "RELAY_AGENT", "RELAY_URL", "RELAY_TOKEN"].into_iter().chain(SESSIONS)
}

pub fn working_directory() -> Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    std::env::current_dir()
        .map_err(|fault| Code::ProjectUnresolved.refuse(format!("the working directory cannot be read: {fault}")))
}

/// Goes to another folder, where that is there.
pub fn go_to(folder: &std::path::Path) {
    let _ = std::env::set_current_dir(folder);
}

/// The folder that a harness says it was started in.
pub fn harness_folder() -> Option<PathBuf> {
    ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "COPILOT_PROJECT_DIR"]
        .into_iter()
        .find_map(variable)
        .map(PathBuf::from)
}

/// Whether a harness says that nobody sits in front of it.
pub fn is_unattended() -> bool {
    variable("CLAUDE_CODE_SESSION_ATTENDED").is_some_and(|attended| attended == "0")
}

/// The user's own folder.
pub fn user_folder() -> PathBuf {
    variable("HOME").map_or_else(|| PathBuf::from("/nonexistent"), PathBuf::from)
}

/// Where the user keeps what git is to know in every repository.
pub fn user() -> User {
    User { home: user_folder(), config: config_folder() }
}

/// Where programs keep what a user configured.
pub fn config_folder() -> PathBuf {
    variable("XDG_CONFIG_HOME").map_or_else(|| user_folder().join(".config"), PathBuf::from)
}

/// Where Codex keeps what a user configured, when that is not in the user's own folder.
pub fn codex_folder() -> PathBuf {
    variable("CODEX_HOME").map_or_else(|| user_folder().join(".codex"), PathBuf::from)
}

/// Where Copilot CLI keeps what a user configured.
pub fn copilot_folder() -> PathBuf {
    variable("COPILOT_HOME").map_or_else(|| user_folder().join(".copilot"), PathBuf::from)
}

/// The folders that the user told Gemini CLI to trust.
pub fn gemini_trusted_folders() -> PathBuf {
    let usual = || user_folder().join(".gemini/trustedFolders.json");
    variable("GEMINI_CLI_TRUSTED_FOLDERS_PATH").map_or_else(usual, PathBuf::from)
}

/// Whether Gemini CLI is told by a variable to trust where it is, or not to.
pub fn gemini_trusts() -> Option<bool> {
    variable("GEMINI_CLI_TRUST_WORKSPACE").and_then(|word| word.parse().ok())
}

pub fn arguments() -> Vec<std::ffi::OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    std::env::args_os().collect()
}

/// This very program, for the demo's agents and for what is left to do after an answer.
pub fn own_program() -> std::io::Result<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    std::env::current_exe()
}

/// A variable that tells git where something is, as git itself reads it.
pub fn of_git(name: &str) -> Option<std::ffi::OsString> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// What `pre-commit` says of a push to the hooks that it runs: to which commit, and from which. Of a branch that goes back to
/// the first commit it says no more than the name.
pub fn pre_commit_refs() -> Option<(String, Option<String>)> {
    match variable("PRE_COMMIT_TO_REF") {
        Some(new) => Some((new, variable("PRE_COMMIT_FROM_REF"))),
        None => variable("PRE_COMMIT_LOCAL_BRANCH").map(|branch| (branch, None)),
    }
}

/// Where a program is found by its name; one that is named by its path is there or nowhere.
pub fn on_the_path(program: &str) -> Option<PathBuf> {
    let is_program = |place: &PathBuf| place.is_file() && access(place, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    let path = search_path()?;
    let places = path.split(':').filter(|folder| !folder.is_empty()).map(|folder| Path::new(folder).join(program));
    places.into_iter().find(is_program)
}

/// How files should call this program: `relay`, where that is found and is this very one; otherwise its path.
pub fn own_name() -> Result<String> {
    let lost = |fault: std::io::Error| Code::Internal.refuse(format!("this program cannot find itself: {fault}"));
    let own = own_program().and_then(std::fs::canonicalize).map_err(lost)?;
    let first = on_the_path("relay").and_then(|found| std::fs::canonicalize(found).ok());
    if first.as_ref() == Some(&own) {
        return Ok("relay".to_owned());
    }
    own.into_os_string()
        .into_string()
        .map_err(|path| Code::InputInvalid.refuse(format!("{} is no text, and the files must name it", path.display())))
}

/// The programs with which this user looks at pages, where a variable says it.
pub fn browser() -> Option<String> {
    variable("BROWSER")
}

/// Where programs are found, by `init` for one; what the demo passes on to the processes it starts.
pub fn search_path() -> Option<String> {
    variable("PATH")
}

#[cfg(feature = "test-doors")]
pub fn test_clock() -> Option<PathBuf> {
    variable("RELAY_TEST_CLOCK").map(PathBuf::from)
}

/// The verb that a test wants broken: `send` fails, `send:hollow` answers with nothing in it.
#[cfg(feature = "test-doors")]
pub fn test_break() -> Option<String> {
    variable("RELAY_TEST_BREAK")
}

/// Whether the server also has what an outside suite calls by its name: `RELAY_TEST_FIXTURES=1`.
#[cfg(feature = "test-doors")]
pub fn test_fixtures() -> bool {
    variable("RELAY_TEST_FIXTURES").is_some_and(|wish| wish == "1")
}

/// How long a hook may look at the files, in milliseconds: on a busy machine everything takes its time.
#[cfg(feature = "test-doors")]
pub fn test_patience() -> Option<i64> {
    variable("RELAY_TEST_PATIENCE")?.parse().ok()
}
