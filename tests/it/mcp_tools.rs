//! What a model pays for in every conversation: the list of tools. It is small, and the same whatever is in the store.

use serde_json::{Value, json};

use crate::bus::{Bus, letter};
use crate::effort;
use crate::listening::Server;
use crate::mcp::{BEFORE, CURRENT, Client};

/// As many bytes as the list may have.
const MOST: usize = 8_192;

/// The list as it is told over both transports, in both revisions.
fn lists(bus: &Bus, server: &Server<'_>) -> Vec<String> {
    let clients = [
        Client::over_pipe(bus, CURRENT),
        Client::over_pipe(bus, BEFORE),
        Client::over_http(server, CURRENT),
        Client::over_http(server, BEFORE),
    ];
    clients.into_iter().map(|mut client| client.ask("tools/list", json!({}))).collect()
}

#[test]
fn the_list_of_tools_is_small_and_the_same_whatever_is_in_the_store() {
    let bus = Bus::new();
    let server = Server::of_the_project(&bus);
    let empty = lists(&bus, &server);
    let bytes: Vec<usize> = empty.iter().map(String::len).collect();
    effort::summary(&format!("the list of tools: {bytes:?} bytes of {MOST}"));
    assert!(bytes.iter().all(|bytes| *bytes <= MOST), "{empty:#?}");
    let told = |list: &String| serde_json::from_str::<Value>(list).unwrap()["tools"].clone();
    assert!(empty.iter().all(|list| told(list) == told(&empty[0])), "{empty:#?}");
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["start", "--path", "src/**"]).success();
        bus.relay(agent, ["prepare", "--thread", "bd-1"]).success();
    }
    bus.relay("BlueLake", letter("RedForest")).success();
    assert_eq!(lists(&bus, &server), empty);
}

/// What a client assumes where a hint is missing is what the protocol says.
#[test]
fn what_a_tool_may_do_is_told_truthfully() {
    let bus = Bus::new();
    let list = Client::over_pipe(&bus, CURRENT).ask("tools/list", json!({}));
    let list: Value = serde_json::from_str(&list).unwrap();
    let hints = |name: &str| {
        let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        let hint = |of: &str, assumed: bool| tool["annotations"][of].as_bool().unwrap_or(assumed);
        let reads = hint("readOnlyHint", false);
        assert!(!hint("openWorldHint", true), "{name} stays on this bus");
        (reads, !reads && hint("destructiveHint", true), hint("idempotentHint", false))
    };
    // Whether it only reads, whether it may end what others rely on, whether twice is as good as once.
    for (name, expected) in [
        // A name can be taken from a session that is alive.
        ("start", (false, true, false)),
        ("prepare", (false, true, false)),
        ("reserve", (false, false, false)),
        // A claim can be taken from its holder, and a thread be closed.
        ("release", (false, true, false)),
        ("send", (false, false, false)),
        ("poll", (false, false, false)),
        ("ack", (false, false, true)),
        // A contact can be blocked.
        ("link", (false, true, false)),
        ("look", (true, false, false)),
        // Whatever a playbook says.
        ("recover", (false, true, false)),
    ] {
        assert_eq!(hints(name), expected, "{name}");
    }
    assert_eq!(list["tools"].as_array().unwrap().len(), 10);
}

#[test]
fn an_argument_that_is_not_what_it_should_be_is_named_and_so_is_what_the_tool_takes() {
    let bus = Bus::with(&["BlueLake"]);
    let mut client = Client::over_pipe(&bus, CURRENT);
    let call = json!({"name": "poll", "arguments": {"agent": "BlueLake", "bodies": "true"}});
    let result: Value = serde_json::from_str(&client.ask("tools/call", call)).unwrap();
    let error = &result["structuredContent"]["error"];
    assert_eq!(error["message"], r#"poll: "bodies" is true or false, not "true""#);
    assert!(error["playbook"][0]["why"].as_str().unwrap().ends_with("`relay poll --help`"), "{error}");
    let shown = result["content"][0]["text"].as_str().unwrap();
    assert!(shown.contains("`poll takes after, agent, all, bodies, from"), "{shown}");
}
