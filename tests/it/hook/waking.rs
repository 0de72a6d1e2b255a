//! An agent that has said its last word is woken by mail, where its program has a clean way for that.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::agent::Agent;
use super::identity::known;
use crate::bus::{Bus, RELAY, Run};

/// Starts the one who waits in the background.
fn waits(agent: &Agent<'_>, variables: &[(&str, &str)]) -> Child {
    let mut command = agent.command(&["--idle"]);
    command.envs(variables.iter().copied());
    let mut child = command.spawn().unwrap();
    let event = agent.event("Stop", &serde_json::json!({"stop_hook_active": false}));
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    child
}

/// Until the session's memory names one who waits, and it is this one if one is meant.
fn until_it_waits(bus: &Bus, meant: Option<&Child>) {
    let waiter = |path| {
        let memory: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        memory["waiter"].as_u64().filter(|pid| meant.is_none_or(|child| u64::from(child.id()) == *pid))
    };
    let memories = || std::fs::read_dir(bus.home().join("hooks")).unwrap().map(|entry| entry.unwrap().path());
    while memories().find_map(waiter).is_none() {
        std::thread::yield_now();
    }
}

fn came_to(child: Child) -> Run {
    Run::new("relay hook --idle".to_owned(), &child.wait_with_output().unwrap())
}

fn idle(bus: &Bus) -> (Agent<'_>, String) {
    bus.relay("Writer", ["start"]).success();
    let agent = Agent::claude(bus, "one");
    agent.starts();
    let name = agent.name();
    bus.relay("Writer", ["link", "--target", &name]).success();
    agent.stops().silent();
    (agent, name)
}

#[test]
fn mail_wakes_an_idle_agent_and_is_shown_by_that() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let waiter = waits(&agent, &[]);
    bus.send("Writer", &name, "bd-1", "Wake up");
    let run = came_to(waiter);
    assert_eq!((run.status, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("Wake up"), "{}", run.stderr);
    agent.hears_the_user().silent();
}

#[test]
fn one_who_waits_for_an_agent_that_goes_on_by_itself_ends_without_a_word() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let first = waits(&agent, &[]);
    until_it_waits(&bus, Some(&first));
    let second = waits(&agent, &[]);
    until_it_waits(&bus, Some(&second));
    agent.hears_the_user().silent();
    for waiter in [first, second] {
        let run = came_to(waiter);
        assert_eq!((run.status, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""));
    }
    bus.send("Writer", &name, "bd-1", "Later");
    assert!(agent.hears_the_user().context().contains("Later"));
}

#[test]
fn where_nobody_sits_in_front_of_it_and_where_a_program_cannot_be_woken_nobody_waits() {
    let bus = known();
    let (agent, _) = idle(&bus);
    assert_eq!(came_to(waits(&agent, &[("CLAUDE_CODE_SESSION_ATTENDED", "0")])).status, 0);
}

#[test]
fn mail_that_could_not_be_said_to_a_sleeper_is_shown_when_it_wakes() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let mut command = agent.command(&["--idle"]);
    command.stderr(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let mut waiter = command.spawn().unwrap();
    let event = agent.event("Stop", &serde_json::json!({"stop_hook_active": false}));
    waiter.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    bus.send("Writer", &name, "bd-1", "Wake up");
    waiter.wait().unwrap();
    assert!(agent.hears_the_user().context().contains("Wake up"));
}

#[test]
fn whoever_waits_for_a_program_that_is_gone_ends_and_is_no_sign_of_life() {
    let bus = known();
    let (agent, name) = idle(&bus);
    let agent = Agent { is_gone: true, ..agent };
    agent.hears_the_user();
    // The shell in between ends at once, and leaves the one who waits alone.
    let mut command = std::process::Command::new("python3");
    bus.environment(&mut command);
    let event = agent.event("Stop", &serde_json::json!({"stop_hook_active": false})).to_string();
    let script = "import subprocess,sys; p=subprocess.Popen([sys.argv[1],'hook','--idle'],stdin=subprocess.PIPE); \
                  p.stdin.write(sys.argv[2].encode()); p.stdin.close(); print(p.pid)";
    let output = command.args(["-c", script, crate::bus::RELAY, &event]).output().unwrap();
    let pid: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        std::thread::yield_now();
    }
    bus.advance(crate::bus::minutes(11));
    let shown = bus.relay("", ["agents"]).success().result();
    let found =
        shown["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name.as_str()).unwrap().clone();
    assert_eq!(found["alive"], false, "{found}");
}

#[test]
fn one_whose_program_is_gone_ends_without_a_word() {
    let bus = known();
    let (agent, name) = idle(&bus);
    // It is left behind, with the output of its program in its hands.
    let mut program = Command::new("python3");
    bus.environment(&mut program);
    let event = agent.event("Stop", &serde_json::json!({"stop_hook_active": false}));
    std::fs::write(bus.path("event"), event.to_string()).unwrap();
    let script = "import subprocess,sys; subprocess.Popen(sys.argv[2:], stdin=open(sys.argv[1])); sys.stdin.read()";
    program.args(["-c", script]).arg(bus.path("event")).args([RELAY, "hook", "--idle"]);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_waits(&bus, None);
    drop(child.stdin.take());
    child.wait().unwrap();
    bus.send("Writer", &name, "bd-1", "Too late");
    let run = came_to(child);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", ""));
    assert!(agent.hears_the_user().context().contains("Too late"));
}
