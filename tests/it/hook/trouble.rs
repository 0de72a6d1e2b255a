//! Whatever goes wrong in a hook, the agent goes on, and `doctor` knows of it.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::agent::{Agent, claims};
use super::identity::known;
use crate::bus::{Bus, Run, minutes};
use crate::privilege::Stage;

fn traces(bus: &Bus) -> Vec<String> {
    let text = std::fs::read_to_string(bus.home().join("hooks/trace.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["why"].as_str().unwrap().to_owned()).collect()
}

fn doctor(bus: &Bus) -> Vec<Value> {
    let checks = bus.relay("", ["doctor"]).json()["result"]["checks"].as_array().unwrap().clone();
    checks.into_iter().filter(|check| check["check"] == "hooks").collect()
}

#[test]
fn a_store_that_cannot_be_used_stops_nobody_and_leaves_a_trace() {
    let bus = known();
    let agent = Agent::claude(&bus, "one");
    agent.starts();
    assert_eq!(doctor(&bus)[0]["severity"], "ok");
    let store = bus.store();
    for file in ["relay.db-wal", "relay.db-shm"] {
        let _ = std::fs::remove_file(store.join(file));
    }
    std::fs::write(store.join("relay.db"), "this is no database").unwrap();
    agent.before_edit("src/a.rs").silent();
    agent.stops().silent();
    let traces = traces(&bus);
    assert_eq!(traces.len(), 2);
    assert!(traces[0].contains("STORE_DAMAGED"), "{traces:?}");
    bus.forget();
}

#[test]
fn a_fault_of_relays_own_stops_nobody_and_doctor_shows_it() {
    let bus = known();
    let agent = Agent::claude(&bus, "one");
    let mut command = agent.command(&[]);
    command.env("RELAY_TEST_BREAK", "hook");
    agent.tells_with(command, "PreToolUse", &json!({"tool_name": "Edit", "tool_input": {"file_path": "/x"}})).silent();
    assert!(traces(&bus)[0].contains("fault in relay itself"));
    let found = doctor(&bus);
    assert_eq!(found[0]["severity"], "warning");
    assert!(found[0]["text"].as_str().unwrap().contains("claude PreToolUse"), "{found:?}");
}

#[test]
fn a_configuration_that_cannot_be_read_stops_nobody() {
    let bus = known();
    std::fs::write(bus.home().join("config.toml"), "[hooks]\nedit = \"never\"\n").unwrap();
    let agent = Agent::codex(&bus, "one");
    agent.before_edit("src/a.rs").silent();
    assert!(traces(&bus)[0].contains("config.toml"), "{:?}", traces(&bus));
}

#[test]
fn what_is_no_event_is_answered_with_nothing() {
    let bus = known();
    let nothing = ["", "null", "[]", "{}", "{\"hook_event_name\":7}", "{\"session_id\":\"x\"}"];
    let noise = ["not json", "\u{0}"];
    for said in nothing.into_iter().chain(noise) {
        let mut command = bus.command();
        command.arg("hook").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let run = Run::new(said.to_owned(), &child.wait_with_output().unwrap()).success();
        assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""), "{said}");
    }
    assert_eq!(traces(&bus).len(), noise.len(), "what nobody could read leaves a trace");
}

#[test]
fn a_home_that_cannot_be_written_stops_nobody_and_edits_are_still_met() {
    let bus = known();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::claude(&bus, "two"));
    one.starts();
    two.starts();
    one.edits("src/a.rs", "one\n");
    let stage = Stage::new();
    stage.mount(&["--bind", bus.home().to_str().unwrap()], &bus.home());
    stage.mount(&["-o", "remount,bind,ro"], &bus.home());
    let inside = |name: &str, path: &str| {
        let mut command = stage.enter(&two.command(&[]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let call =
            json!({"tool_name": "Edit", "tool_input": {"file_path": bus.repo().join(path)}, "tool_use_id": "call_1"});
        two.tells_with(command, name, &call)
    };
    let said = inside("PreToolUse", "src/a.rs");
    assert!(said.context().contains("holds src/a.rs"), "{}", said.context());
    inside("PostToolUse", "src/b.rs").silent();
    drop(stage);
    assert_eq!(claims(&bus).len(), 1);
}

#[test]
fn a_program_that_runs_the_hooks_of_two_configurations_is_answered_once() {
    let bus = known();
    let tell = |event: &str, at: &str, more: &Value| {
        let mut told = json!({"sessionId": "one", "timestamp": at, "cwd": bus.repo(), "hookEventName": event});
        for (key, value) in more.as_object().unwrap() {
            told[key] = value.clone();
        }
        let mut command = bus.command();
        command.arg("hook").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(told.to_string().as_bytes()).unwrap();
        Run::new(event.to_owned(), &child.wait_with_output().unwrap()).success().stdout
    };
    let start = json!({"source": "new"});
    assert!(tell("SessionStart", "2026-11-16T06:30:00.000Z", &start).contains("you are"));
    assert_eq!(tell("SessionStart", "2026-11-16T06:30:00.017Z", &start), "");
    bus.advance(minutes(1));
    assert!(tell("SessionStart", "2026-11-16T06:31:00.000Z", &start).contains("you are"), "a minute later");
}

/// Whoever may write to relay's home must not lead a hook out of it, nor hold it up.
#[test]
fn a_link_or_a_pipe_among_what_hooks_keep_is_neither_followed_nor_waited_for() {
    let bus = known();
    let agent = Agent::claude(&bus, "one");
    agent.starts();
    let hooks = bus.home().join("hooks");
    let victim = bus.path("victim");
    std::fs::write(&victim, "mine\n").unwrap();
    std::os::unix::fs::symlink(&victim, hooks.join("trace.jsonl")).unwrap();
    std::fs::write(bus.home().join("config.toml"), "nonsense").unwrap();
    agent.hears_the_user().silent();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine\n");
    std::fs::remove_file(bus.home().join("config.toml")).unwrap();
    let books = std::fs::read_dir(&hooks).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<_> = books.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    assert!(!kept.is_empty());
    for path in kept.iter().chain([&hooks.join("trace.jsonl")]) {
        std::fs::remove_file(path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let mut bounded = std::process::Command::new("timeout");
    bus.environment(&mut bounded);
    bounded.args(["60", crate::bus::RELAY, "hook"]).current_dir(bus.repo());
    bounded.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let said = agent.tells_with(bounded, "UserPromptSubmit", &json!({"prompt": "go on"}));
    assert!(said.context().contains("you are"), "what it was told is forgotten, no more: {}", said.context());
}
