//! A repository in which two agents work, git as they run it, and a look at every byte that must stay as it is.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::bus::{Bus, RELAY, Run, run};

/// What the guard says of RedForest's claim.
pub const HELD: &str = "RedForest holds src/** (#";

/// A bus whose RedForest holds `src/**`, with files to edit and a remote to push to.
pub fn yard() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.track(&["src/a.rs", "docs/b.md"]);
    bus.git(&["init", "-q", "--bare", "../remote.git"]);
    bus.git(&["remote", "add", "origin", "../remote.git"]);
    bus.relay("RedForest", ["reserve", "src/**", "--reason", "bd-1"]).success();
    bus
}

/// The same with the guard installed.
pub fn guarded() -> Bus {
    let bus = yard();
    bus.relay("", ["guard", "install"]).success();
    bus
}

pub fn block(bus: &Bus) {
    fs::write(bus.home().join("config.toml"), "[guard]\nmode = \"block\"\n").unwrap();
}

/// git as an agent runs it, or a person for whom there is no agent. The user's own configuration is `gitconfig` in the test's folder.
pub fn git_command(bus: &Bus, folder: &Path, agent: &str, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    bus.environment(&mut command);
    let programs = Path::new(RELAY).parent().unwrap();
    command
        .current_dir(folder)
        .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
        .env("GIT_CONFIG_GLOBAL", bus.path("gitconfig"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "protocol.file.allow=always"])
        .args(args);
    if !agent.is_empty() {
        command.env("RELAY_AGENT", agent);
    }
    command
}

pub fn git(bus: &Bus, folder: &Path, agent: &str, args: &[&str]) -> Run {
    run(git_command(bus, folder, agent, args))
}

/// relay as an agent runs it in another folder than the bus's own repository.
pub fn relay_in(bus: &Bus, folder: &Path, agent: &str, args: &[&str]) -> Run {
    let mut command = bus.args(agent, args);
    command.current_dir(folder);
    run(command)
}

/// Puts another line into a file.
pub fn edit(folder: &Path, file: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let text = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, format!("{text}another line\n")).unwrap();
}

/// Edits a file and commits it.
pub fn commit(bus: &Bus, folder: &Path, agent: &str, file: &str) -> Run {
    edit(folder, file);
    git(bus, folder, agent, &["add", "-A"]).success();
    git(bus, folder, agent, &["commit", "-m", "work"])
}

/// Whether the guard spoke up.
pub fn warned(run: &Run) -> bool {
    format!("{}{}", run.stdout, run.stderr).contains(HELD)
}

/// `relay guard …` from a folder, with the configuration of git that the hooks see.
pub fn guard(bus: &Bus, folder: &Path, word: &str) -> Run {
    let mut command = bus.args("", ["guard", word]);
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", bus.path("gitconfig")).env("GIT_CONFIG_NOSYSTEM", "1");
    run(command)
}

/// The states of the two hooks.
pub fn states(run: &Run) -> Vec<String> {
    let rows: Value = run.result()["hooks"].clone();
    rows.as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap().to_owned()).collect()
}

pub fn script(path: &Path, text: &str, mode: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A file as it is: mode, time and content, or where a link leads.
pub type Kept = (u32, i64, Vec<u8>);

/// Everything under a folder. Of folders only that they are there: what is put into them and taken out again leaves its time.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Kept> {
    let mut all = BTreeMap::new();
    let mut left = vec![folder.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let kept = if metadata.is_dir() {
                left.push(path.clone());
                (metadata.mode(), 0, Vec::new())
            } else if metadata.is_symlink() {
                (metadata.mode(), 0, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes())
            } else {
                (metadata.mode(), metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec(), fs::read(&path).unwrap())
            };
            all.insert(path, kept);
        }
    }
    all
}
