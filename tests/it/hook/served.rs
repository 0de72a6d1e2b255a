//! Where a server has the stores, a hook asks it, and nobody can tell.

use std::process::Command;

use serde_json::json;

use super::agent::{Agent, claims};
use super::identity::known;
use crate::bus::Bus;
use crate::listening::{Server, token};

/// The hook of an agent whose stores are at a server.
fn there(agent: &Agent<'_>, server: &Server<'_>, token: &str) -> Command {
    let mut command = agent.command(&[]);
    command.env("RELAY_URL", format!("http://{}", server.address())).env("RELAY_TOKEN", token);
    // What hooks remember is on this machine all the same.
    command.env("RELAY_HOME", agent.bus.path("elsewhere"));
    command
}

#[test]
fn an_edit_is_met_and_claimed_and_mail_comes_once_through_a_server() {
    let bus = known();
    bus.relay("Holder", ["start"]).success();
    bus.relay("Holder", ["reserve", "src/a.rs"]).success();
    let token = token(&bus, "laptop", &[]);
    let server = Server::start(&bus);
    let agent = Agent::claude(&bus, "one");
    let tells = |event: &str, own: serde_json::Value| agent.tells_with(there(&agent, &server, &token), event, &own);
    let edit = |path: &str| json!({"tool_name": "Edit", "tool_input": {"file_path": bus.repo().join(path)}, "tool_use_id": path});
    let said = tells("SessionStart", json!({"source": "startup"}));
    assert!(said.context().contains("Also here: Holder"), "{}", said.context());
    let name = agent.name();
    assert!(tells("PreToolUse", edit("src/a.rs")).context().contains("Holder holds src/a.rs"));
    tells("PreToolUse", edit("src/a.rs")).silent();
    tells("PostToolUse", edit("src/b.rs")).silent();
    assert_eq!(claims(&bus), ["Holder src/a.rs".to_owned(), format!("{name} src/b.rs")]);
    bus.relay("Holder", ["send", "--to", &name, "--thread", "bd-1", "--subject", "Wait", "--body", "b"]).success();
    assert!(tells("UserPromptSubmit", json!({"prompt": "go on"})).context().contains("Wait"));
    tells("UserPromptSubmit", json!({"prompt": "go on"})).silent();
    bus.relay("Holder", ["send", "--to", &name, "--thread", "bd-1", "--subject", "Again", "--body", "b"]).success();
    let mut deaf = there(&agent, &server, &token);
    deaf.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    agent.tells_with(deaf, "UserPromptSubmit", &json!({"prompt": "go on"}));
    assert!(tells("UserPromptSubmit", json!({"prompt": "go on"})).context().contains("Again"), "nobody could read it");
    tells("SessionEnd", json!({"reason": "other"})).silent();
    assert_eq!(claims(&bus), ["Holder src/a.rs"]);
    assert!(!bus.path("elsewhere/hooks/trace.jsonl").exists());
}

#[test]
fn a_server_that_is_away_stops_nobody_and_one_that_does_not_know_the_project_is_silent() {
    let bus = Bus::new();
    bus.track(&["src/a.rs"]);
    let token = token(&bus, "laptop", &[]);
    let server = Server::start(&bus);
    let agent = Agent::claude(&bus, "one");
    agent.tells_with(there(&agent, &server, &token), "SessionStart", &json!({"source": "startup"})).silent();
    assert!(!bus.path("elsewhere/hooks/trace.jsonl").exists(), "that is no fault");
    let away = there(&agent, &server, &token);
    server.stop();
    agent.tells_with(away, "SessionStart", &json!({"source": "startup"})).silent();
    let trace = std::fs::read_to_string(bus.path("elsewhere/hooks/trace.jsonl")).unwrap();
    assert!(trace.contains("STORE_UNREACHABLE"), "{trace}");
}
