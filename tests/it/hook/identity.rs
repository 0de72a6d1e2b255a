//! Whose hook it is: a session is one agent, whatever becomes of the session.

use serde_json::{Value, json};

use super::agent::{Agent, claims};
use crate::bus::{Bus, run};

/// A project that relay knows, with a file in it and nobody else.
pub fn known() -> Bus {
    let bus = Bus::with(&["Seed"]);
    bus.track(&["src/a.rs", "src/b.rs", "docs/a.md"]);
    bus.relay("Seed", ["retire"]).success();
    bus
}

fn agents(bus: &Bus) -> Vec<String> {
    let found = bus.relay("", ["agents"]).success().result();
    let active = found["agents"].as_array().unwrap().iter().filter(|agent| agent["state"] == "active");
    active.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_one_agent_from_its_first_hook_on_and_its_shell_acts_as_that_one() {
    let bus = known();
    for agent in [Agent::claude(&bus, "one"), Agent::codex(&bus, "two")] {
        let said = agent.starts();
        let name = agent.name();
        assert!(said.context().contains(&format!("you are {name} on the bus")), "{}", said.context());
        agent.hears_the_user().silent();
        agent.edits("src/a.rs", "new\n");
        assert_eq!(agent.name(), name);
    }
    assert_eq!(agents(&bus).len(), 2);
    let programs = bus.relay("", ["agents"]).success().result();
    let programs: Vec<&Value> = programs["agents"].as_array().unwrap().iter().map(|agent| &agent["program"]).collect();
    assert!(programs.contains(&&json!("Claude Code")) && programs.contains(&&json!("Codex CLI")), "{programs:?}");
}

#[test]
fn a_session_that_was_heard_of_first_in_its_middle_is_introduced_there() {
    let bus = known();
    let agent = Agent::claude(&bus, "one");
    let said = agent.hears_the_user();
    assert!(said.context().contains(&format!("you are {}", agent.name())), "{}", said.context());
}

#[test]
fn a_session_whose_start_nobody_hears_is_introduced_at_its_first_word_and_once() {
    let bus = known();
    bus.relay("RedForest", ["start"]).success();
    let agent = Agent::claude(&bus, "one");
    let tells = |name: &str| agent.tells(name, &json!({"relay_plugin": "opencode", "version": 1})).json;
    assert_eq!(tells("session.created"), json!({}));
    let said = tells("chat.message")["context"].as_str().unwrap().to_owned();
    assert!(said.contains(&format!("you are {}", agent.name())) && said.contains("Also here: RedForest"), "{said}");
    assert_eq!(tells("chat.message"), json!({}));
    assert_eq!(tells("session.compacted"), json!({}));
    assert!(tells("chat.message")["context"].as_str().unwrap().contains("you are"), "it has forgotten");
}

#[test]
fn a_command_is_of_the_session_that_runs_in_the_same_program_unless_another_does_or_somebody_is_named() {
    let bus = known();
    let start = |agent: &str| bus.relay(agent, ["start"]).success().result()["agent"]["name"].clone();
    let one = Agent::claude(&bus, "one");
    one.hears_the_user();
    assert_eq!(start(""), one.name());
    assert_eq!((start("RedForest"), start("")), (json!("RedForest"), json!(one.name())));
    let two = Agent::claude(&bus, "two");
    two.starts();
    assert!(![one.name(), two.name()].contains(&start("").as_str().unwrap().to_owned()));
    two.ends();
    assert_eq!(start(""), one.name());
    one.ends();
    assert_ne!(start(""), one.name());
}

#[test]
fn a_resumed_or_compacted_session_keeps_its_agent_and_is_introduced_again() {
    let bus = known();
    let agent = Agent::claude(&bus, "one");
    agent.starts();
    let name = agent.name();
    for source in ["resume", "compact"] {
        let said = agent.tells("SessionStart", &json!({"source": source}));
        assert!(said.context().contains(&format!("you are {name}")), "{source}: {}", said.context());
    }
    agent.ends();
    agent.tells("SessionStart", &json!({"source": "resume"}));
    assert_eq!((agent.name(), agents(&bus).len()), (name, 1));
}

#[test]
fn a_cleared_session_keeps_its_agent_and_its_claims_under_both_of_its_names() {
    let bus = known();
    let (before, after) = (Agent::claude(&bus, "before"), Agent::claude(&bus, "after"));
    before.starts();
    let name = before.name();
    before.edits("src/a.rs", "new\n");
    before.tells("SessionEnd", &json!({"reason": "clear"}));
    let said = after.tells("SessionStart", &json!({"source": "clear"}));
    assert!(said.context().contains(&format!("you are {name}")), "{}", said.context());
    assert_eq!((before.name(), after.name()), (name.clone(), name.clone()));
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
    // A program that the session started earlier still says its first name.
    let mut poll = bus.args("", ["poll"]);
    poll.env("CLAUDE_CODE_SESSION_ID", "before");
    run(poll).success();
}

#[test]
fn a_subagent_comes_forward_when_it_changes_something_and_goes_with_its_claims() {
    let bus = known();
    let parent = Agent::claude(&bus, "one");
    parent.starts();
    let name = parent.name();
    let reader = parent.sub("a1", "Explore");
    reader.tells("SubagentStart", &json!({})).silent();
    reader.runs("ls");
    assert_eq!(agents(&bus), std::slice::from_ref(&name), "who only reads has no name");
    let (one, two) = (parent.sub("a2", "general-purpose"), parent.sub("a3", "general-purpose"));
    one.edits("src/a.rs", "one\n");
    two.edits("src/b.rs", "two\n");
    let (first, second) = (format!("{name}-general-purpose"), format!("{name}-general-purpose-2"));
    assert_eq!(agents(&bus), [name.clone(), first.clone(), second.clone()]);
    assert_eq!(claims(&bus), [format!("{first} src/a.rs"), format!("{second} src/b.rs")]);
    assert!(two.before_edit("src/a.rs").context().contains(&first), "a sibling is another");
    parent.before_edit("src/a.rs").silent();
    one.tells("SubagentStop", &json!({"stop_hook_active": false}));
    assert_eq!(agents(&bus), [name.clone(), second.clone()]);
    assert_eq!(
        claims(&bus),
        [format!("{second} src/b.rs"), format!("{name} src/a.rs")],
        "what it left is its parent's"
    );
    parent.runs("git commit -q -m a src/a.rs");
    parent.stops();
    assert_eq!(claims(&bus), [format!("{second} src/b.rs")], "until it is committed");
    parent.ends();
    assert_eq!((agents(&bus), claims(&bus)), (vec![name], Vec::new()));
}

#[test]
fn a_subagent_works_under_its_parents_claims_and_does_not_read_its_mail() {
    let bus = known();
    bus.relay("Writer", ["start"]).success();
    let parent = Agent::claude(&bus, "one");
    parent.starts();
    let name = parent.name();
    bus.relay(&name, ["reserve", "src/**"]).success();
    bus.send("Writer", &name, "bd-1", "Login");
    let child = parent.sub("a1", "Plan");
    let (before, after) = child.edits("src/a.rs", "one\n");
    before.silent();
    after.unwrap().silent();
    assert_eq!(claims(&bus), [format!("{name} src/**")]);
    assert!(parent.hears_the_user().context().contains("Login"));
}

#[test]
fn a_session_whose_agent_was_taken_over_is_told_once_and_left_alone() {
    let bus = known();
    let agent = Agent { is_gone: true, ..Agent::claude(&bus, "one") };
    agent.starts();
    let name = agent.name();
    bus.relay(&name, ["start", "--session", "elsewhere", "--take-over"]).success();
    assert!(agent.hears_the_user().context().contains("took over"));
    agent.hears_the_user().silent();
    agent.edits("src/a.rs", "one\n");
    assert_eq!(claims(&bus), [""; 0]);
}

#[test]
fn a_project_that_relay_does_not_know_hears_nothing() {
    let bus = Bus::new();
    bus.track(&["src/a.rs"]);
    let agent = Agent::claude(&bus, "one");
    agent.starts().silent();
    let (before, after) = agent.edits("src/a.rs", "one\n");
    before.silent();
    after.unwrap().silent();
    agent.stops().silent();
    agent.ends().silent();
    let is_store = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().path().join("relay.db").exists();
    assert!(!std::fs::read_dir(bus.home()).is_ok_and(|mut entries| entries.any(is_store)));
}

#[test]
fn an_agent_that_hears_nothing_when_it_begins_is_introduced_when_it_hears() {
    let bus = known();
    bus.relay("Other", ["start"]).success();
    let tell = |event: &str, more: Value| {
        let mut told = json!({"relay_plugin": "opencode", "version": 1, "session_id": "ses_1", "cwd": bus.repo(), "hook_event_name": event});
        more.as_object().unwrap().iter().for_each(|(key, value)| told[key] = value.clone());
        let mut command = bus.command();
        command.arg("hook").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), told.to_string().as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert_eq!(tell("session.created", json!({})), "{}");
    let said = tell("chat.message", json!({}));
    assert!(said.contains("you are") && said.contains("Also here: Other"), "{said}");
    assert!(!tell("chat.message", json!({})).contains("you are"));
}
