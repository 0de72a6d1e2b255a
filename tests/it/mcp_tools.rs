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
