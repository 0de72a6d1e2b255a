//! `relay doctor --agents`: what `init` set up, tried out through the very files, on a bus that is thrown away.

mod broken;
mod trust;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::bus::{Bus, RELAY, Run, run};
use crate::init::{ALL, tree};
use crate::outside;

/// A machine that has none of the agents' programs, but a node.
fn command(bus: &Bus, folder: &Path, args: &[&str]) -> Command {
    let mut command = bus.args("", args);
    let path = format!("{}:{}", bus.path("bin").display(), outside::node_folder().display());
    command.env("PATH", path).current_dir(folder);
    command
}

fn look(bus: &Bus) -> Run {
    run(command(bus, &bus.repo(), &["doctor", "--agents"]))
}

fn set_up(only: &str) -> Bus {
    let bus = Bus::new();
    run(command(&bus, &bus.repo(), &["init", "--only", only])).success();
    bus
}

fn agents(run: &Run) -> Vec<Value> {
    run.result()["agents"].as_array().unwrap().clone()
}

fn agent(run: &Run, name: &str) -> Value {
    agents(run).into_iter().find(|agent| agent["name"] == name).unwrap()
}

/// The name, and the states that there are.
fn states(run: &Run) -> Vec<[String; 4]> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let state = |agent: &Value| ["name", "registered", "trusted", "fired"].map(|name| word(&agent[name]));
    agents(run).iter().map(state).collect()
}

fn problems(agent: &Value) -> String {
    let problem = |problem: &Value| {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {} -> {}\n", text("severity"), text("text"), text("next"))
    };
    agent["problems"].as_array().unwrap().iter().map(problem).collect()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn edit(bus: &Bus, path: &str, change: impl Fn(&str) -> String) {
    let path = bus.repo().join(path);
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "{}", path.display());
    fs::write(path, changed).unwrap();
}

fn relay() -> String {
    fs::canonicalize(RELAY).unwrap().to_str().unwrap().to_owned()
}

/// A program of the machine's.
fn program(bus: &Bus, name: &str, script: &str) -> String {
    let path = bus.path("bin").join(name);
    write(path.clone(), &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// With this done to a project that was set up, this is found of the agent, and this is the exit status.
#[track_caller]
fn finds(bus: &Bus, name: &str, expected: [&str; 2], status: i32, said: &str) {
    let looked = look(bus);
    let agent = agent(&looked, name);
    let found = [&agent["registered"], &agent["fired"]].map(|state| state.as_str().unwrap());
    assert_eq!((found, looked.status), (expected, status), "{agent:#}");
    assert!(problems(&agent).contains(said), "{}", problems(&agent));
}

#[test]
fn all_seven_are_registered_and_answer_and_nothing_of_it_is_left_anywhere() {
    let bus = set_up(ALL);
    bus.relay("BlueLake", ["start"]).success();
    let before = tree(&bus.path(""));
    let looked = look(&bus).success();
    assert_eq!(tree(&bus.path("")), before, "neither the bus nor a file of anybody's has changed");
    let expected = [
        ["claude", "registered", "unproven", "answered"],
        ["codex", "registered", "untrusted", "answered"],
        ["gemini", "registered", "untrusted", "answered"],
        ["cursor", "registered", "unproven", "answered"],
        ["opencode", "registered", "not_needed", "answered"],
        ["copilot", "registered", "untrusted", "answered"],
        ["vscode", "registered", "unproven", "answered"],
    ];
    assert_eq!(states(&looked), expected);
    let honoured = agents(&looked).iter().map(|agent| agent["honoured"].clone()).collect::<Vec<_>>();
    assert_eq!(honoured, ["seen", "seen", "seen", "unproven", "seen", "seen", "unproven"]);
    for agent in agents(&looked) {
        assert_eq!(agent["seen_with"].is_null(), agent["honoured"] == "unproven", "{agent:#}");
        assert!(!agent["wakes"].as_str().unwrap().is_empty() && agent.get("version").is_none(), "{agent:#}");
    }
    let mut shown = bus.command();
    shown.args(["doctor", "--agents"]).env("PATH", bus.path("bin"));
    let shown = run(shown).success().stdout;
    assert!(shown.contains("Claude Code  -        registered  unproven    answered  seen with 2.1.325"), "{shown}");
    assert!(shown.contains("unproven: from its documentation"), "{shown}");
    assert!(shown.contains("note: its plugin was not tried: there is no node"), "{shown}");
    let plain = bus.text("", ["doctor"]).success().stdout;
    assert!(plain.contains("VS Code; `relay doctor --agents` tries them out"), "{plain}");
}

#[test]
fn an_agent_that_is_not_set_up_is_no_fault_and_no_process_runs_for_it() {
    let bus = Bus::new();
    let log = bus.path("log");
    program(&bus, "claude", &format!("echo $* >> {}", log.display()));
    let looked = look(&bus).success();
    let words: Vec<&str> = ALL.split(',').collect();
    assert_eq!(
        states(&looked),
        words.iter().map(|word| [word, "not_set_up", "-", "-"].map(str::to_owned)).collect::<Vec<_>>()
    );
    assert!(!log.exists() && !bus.home().exists());
    let shown = bus.text("", ["doctor", "--agents"]).success().stdout;
    assert!(
        shown.starts_with("Not set up: Claude Code, ") && shown.contains(&format!("`relay init --only {ALL}`")),
        "{shown}"
    );
    assert!(!bus.text("", ["doctor"]).success().stdout.contains("--agents"));
    bus.relay("", ["doctor", "--agents", "--fix"]).fails("INPUT_INVALID");
}

#[test]
fn a_program_is_asked_for_its_version_and_for_nothing_else() {
    let bus = set_up("claude,codex,vscode");
    let log = bus.path("log");
    let says =
        |name: &str, text: &str| program(&bus, name, &format!("echo {name} $* >> {}; echo '{text}'", log.display()));
    says("claude", "2.2.0 (Claude Code)");
    says("codex", "codex-cli 0.166.0");
    says("code", "1.120.0");
    says("gemini", "0.99.0");
    let looked = look(&bus).success();
    let seen = |name: &str| {
        let agent = agent(&looked, name);
        [&agent["version"], &agent["honoured"]].map(|value| value.as_str().unwrap().to_owned())
    };
    assert_eq!(seen("claude"), ["2.2.0", "seen_in_older"]);
    assert!(
        problems(&agent(&looked, "claude"))
            .contains("note: its answers were seen to count with 2.1.325; here is 2.2.0")
    );
    assert_eq!(seen("codex"), ["0.166.0", "seen"]);
    assert_eq!(seen("vscode"), ["1.120.0", "unproven"]);
    let mut calls: Vec<String> = fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect();
    calls.sort();
    assert_eq!(calls, ["claude --version", "code --version", "codex --version"]);
}

#[test]
fn a_linked_work_tree_has_its_own_files_but_for_codex() {
    let bus = Bus::new();
    bus.track(&["a.rs"]);
    let linked = bus.path("linked");
    bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let in_linked = |args: &[&str]| run(command(&bus, &linked, args));
    in_linked(&["init", "--only", "claude"]).success();
    run(command(&bus, &bus.repo(), &["init", "--only", "codex"])).success();
    let looked = in_linked(&["doctor", "--agents"]).success();
    let states: Vec<[String; 4]> = states(&looked).into_iter().filter(|state| state[1] != "not_set_up").collect();
    assert_eq!(
        states,
        [["claude", "registered", "unproven", "answered"], ["codex", "registered", "untrusted", "answered"]]
    );
    write(bus.repo().join(".codex/config.toml"), "");
    let said =
        format!(".codex/config.toml lacks mcp_servers.relay -> relay init --only codex --project {}\n", bus.key());
    let broken = in_linked(&["doctor", "--agents"]);
    assert!(problems(&agent(&broken, "codex")).contains(&said), "{}", problems(&agent(&broken, "codex")));
    assert_eq!(agent(&look(&bus), "claude")["registered"], "not_set_up", "that is another work tree");
}

#[test]
fn files_that_came_with_a_repository_count_and_those_of_others_do_not() {
    let bus = set_up("claude");
    fs::remove_dir_all(bus.home()).unwrap();
    write(bus.repo().join(".gemini/settings.json"), r#"{"context": {"fileName": ["AGENTS.md"]}}"#);
    write(bus.repo().join(".cursor/mcp.json"), "no JSON");
    let looked = look(&bus).success();
    let set_up: Vec<String> =
        states(&looked).into_iter().filter(|state| state[1] != "not_set_up").map(|state| state[0].clone()).collect();
    assert_eq!(set_up, ["claude"], "its .mcp.json is not Copilot's setup");
    assert_eq!(agent(&looked, "claude")["fired"], "answered");
    let notes = looked.result()["notes"].to_string();
    assert!(notes.contains("relay does not know") && notes.contains("`relay init`"), "{notes}");
    assert!(!bus.home().exists(), "a look makes no store");
}

#[test]
fn with_a_server_named_the_events_stay_on_this_machine() {
    let bus = set_up("claude");
    let mut away = command(&bus, &bus.repo(), &["doctor", "--agents"]);
    away.env("RELAY_URL", "http://127.0.0.1:9")
        .env("RELAY_TOKEN", "none")
        .env("RELAY_SESSION", "one")
        .env("RELAY_AGENT", "BlueLake");
    let looked = run(away).success();
    assert_eq!(agent(&looked, "claude")["fired"], "answered");
    let notes = looked.result()["notes"].to_string();
    assert!(notes.contains("RELAY_URL names a server; these events stayed on this machine"), "{notes}");
}
