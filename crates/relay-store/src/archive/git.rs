//! The door to git. Every call is hardened: nothing that is configured anywhere, and no hook, runs or changes what we do. The one
//! place that git cannot be kept from reading, the repository's own configuration, is looked through before.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

use super::config;
use crate::filesystem::is_full;

/// Settings for every call. Packs and refs are synced; nothing is tidied behind our back.
const SETTINGS: [&str; 10] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",
    "core.compression=9",
    "core.logAllRefUpdates=false",
    "fastimport.unpackLimit=0",
    "gc.auto=0",
    "pack.writeBitmaps=false",
    "protocol.allow=never",
    "repack.writeBitmaps=false",
];

/// A call of git on this repository, unless somebody has put something there that git would go by.
pub(super) fn git(repository: &Path, args: &[&str]) -> Result<Command> {
    match config::stranger(repository) {
        None => Ok(hardened(repository, args)),
        Some(what) => Err(Code::ArchiveDiverged
            .refuse(format!(
                "{}: {what}, and git would go by it; `relay rebuild archive` makes the archive anew",
                repository.display()
            ))
            .with("path", repository.to_string_lossy())),
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the door to git")]
fn hardened(repository: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    let path = std::env::var_os("PATH");
    command.env_clear().envs(path.map(|path| ("PATH", path)));
    command.envs([
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        // Where the C library heeds it: asking for memory in large pieces takes a third off an import.
        ("MALLOC_TOP_PAD_", "16777216"),
        ("HOME", "/nonexistent"),
        ("LC_ALL", "C"),
    ]);
    // First, where `run` looks for it.
    command.arg("--git-dir").arg(repository);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    // Somewhere that exists as long as git runs and is nobody's work tree.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).args(args);
    command
}

/// What git says it is. It looks at no repository for that.
pub(super) fn version(repository: &Path) -> Result<String> {
    Ok(run(hardened(repository, &["version"]))?.trim().to_owned())
}

/// Runs a call to its end; a failure says what git said.
pub(super) fn run(mut command: Command) -> Result<String> {
    let output = command.output().map_err(|fault| missing(&fault))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let repository = command.get_args().nth(1).map_or_else(PathBuf::new, PathBuf::from);
    Err(failed(&repository, &output))
}

/// git is not there, or cannot be started.
pub(super) fn missing(fault: &std::io::Error) -> Refusal {
    Code::ArchiveUnavailable.refuse(format!("git cannot be started: {fault}"))
}

pub(super) fn failed(repository: &Path, output: &Output) -> Refusal {
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.starts_with("fatal:")).or_else(|| said.lines().last()).unwrap_or_default();
    // What git says of its own small files leaves out why they could not be written.
    let is_full = said.contains("No space left") || said.contains("Out of diskspace") || is_full(repository);
    let code = if is_full { Code::StoreFull } else { Code::ArchiveUnavailable };
    code.refuse(format!("git failed ({}): {line}", output.status)).with("path", repository.to_string_lossy())
}
