//! Many projects in one server: only so many stand open at a time.

use std::fs;

use serde_json::json;

use crate::bus::Bus;
use crate::listening::Server;

const PROJECTS: usize = 90;
const MOST: usize = 64;

fn writers(server: &Server<'_>) -> usize {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim() == "relay-writer").count()
}

#[test]
fn those_that_were_left_first_are_closed_and_opened_again_when_they_are_asked_for() {
    let bus = Bus::new();
    fs::create_dir_all(bus.home()).unwrap();
    let server = Server::start(&bus);
    let call = |number: usize, tool: &str| {
        let folder = bus.path(&format!("p{number}"));
        fs::create_dir_all(&folder).unwrap();
        let arguments = json!({"project": folder, "agent": "BlueLake"});
        let answer = server.rpc(&server.token, "tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
    };
    for number in 0..PROJECTS {
        call(number, "start");
    }
    super::until(|| writers(&server) <= MOST);
    let files = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count();
    assert!(files < MOST * 10, "{files} open files");
    call(0, "start");
    call(0, "poll");
    // What was never begun is not kept at all.
    for number in 0..5 {
        let folder = bus.path(&format!("never{number}"));
        fs::create_dir_all(&folder).unwrap();
        let arguments = json!({"project": folder, "agent": "BlueLake"});
        let answer = server.rpc(&server.token, "tools/call", json!({"name": "poll", "arguments": arguments}));
        assert_eq!(answer["result"]["structuredContent"]["error"]["code"], "AGENT_NOT_REGISTERED");
    }
}
