//! Names while they are typed.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::listening::Server;

/// The most that one answer has.
const MOST: usize = 100;

fn complete(server: &Server<'_>, of: &Value, name: &str, typed: &str, project: Option<&str>) -> Value {
    let mut params = json!({"ref": of, "argument": {"name": name, "value": typed}});
    if let Some(project) = project {
        params["context"] = json!({"arguments": {"project": project}});
    }
    server.rpc(&server.token, "completion/complete", params)
}

fn prompt(name: &str) -> Value {
    json!({"type": "ref/prompt", "name": name})
}

fn resource(uri: &str) -> Value {
    json!({"type": "ref/resource", "uri": uri})
}

#[test]
fn agents_threads_and_classes_are_completed() {
    let bus = Bus::with(&["BlueLake", "BlackHill", "RedForest"]);
    bus.relay("BlueLake", ["prepare", "--thread", "BD-1"]).success();
    let server = Server::of_the_project(&bus);
    let check = |of: Value, name: &str, typed: &str, expected: &[&str]| {
        let found = complete(&server, &of, name, typed, None)["result"]["completion"].clone();
        assert_eq!(found, json!({"values": expected, "total": expected.len(), "hasMore": false}), "{name} {typed}");
    };
    check(resource("relay://inbox/{agent}"), "agent", "BL", &["BlueLake", "BlackHill"]);
    check(resource("relay://inbox/{agent}{?project}"), "agent", "red", &["RedForest"]);
    check(prompt("hand_over"), "to", "red", &["RedForest"]);
    check(prompt("start_work"), "thread", "bd", &["BD-1"]);
    check(resource("relay://thread/{id}{?project,agent}"), "id", "", &["BD-1"]);
    check(resource("relay://thread/{id}"), "id", "x", &[]);
    check(resource("relay://message/{id}{?project,agent}"), "id", "", &[]);
    check(resource("relay://playbook/{code}"), "code", "contact_b", &["CONTACT_BLOCKED"]);
    check(prompt("resolve_conflict"), "path", "s", &[]);
}

#[test]
fn more_than_one_answer_has_is_said_to_be_more_and_found_by_its_beginning() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    for number in 0..MOST + 5 {
        server.does("BlueLake", "prepare", json!({"thread": format!("bd-{number:03}")}));
    }
    let key = bus.key();
    let threads = |typed: &str| {
        let answer = complete(&server, &prompt("start_work"), "thread", typed, Some(&key));
        answer["result"]["completion"].clone()
    };
    let all = threads("");
    assert_eq!(all["values"].as_array().unwrap().len(), MOST, "{all}");
    assert_eq!((&all["hasMore"], &all["total"]), (&json!(true), &Value::Null), "{all}");
    // The oldest are not on the page that `look` shows, and are found all the same.
    assert_eq!(threads("BD-000"), json!({"values": ["bd-000"], "total": 1, "hasMore": false}));
    assert_eq!(
        threads("bd-10"),
        json!({"values": ["bd-104", "bd-103", "bd-102", "bd-101", "bd-100"], "total": 5, "hasMore": false})
    );
}

#[test]
fn what_there_is_not_cannot_be_completed_for() {
    let bus = Bus::new();
    let server = Server::start(&bus);
    for of in [prompt("no_such_prompt"), resource("relay://nothing/{agent}"), resource("file:///{agent}"), resource("")]
    {
        let answer = complete(&server, &of, "agent", "", None);
        assert_eq!(answer["error"]["code"], -32602, "{of}: {answer}");
    }
}
