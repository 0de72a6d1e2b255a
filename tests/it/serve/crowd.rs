//! Many at once: one transaction for several of them, and nobody notices but the disk.

use serde_json::{Value, json};

use crate::bus::{Bus, EPOCH};
use crate::listening::{Server, token};

const SENDERS: usize = 16;
const EACH: usize = 12;

fn name(index: usize) -> String {
    format!("Sender{index}")
}

fn letter(body: &str) -> Value {
    json!({"to": ["Reader"], "subject": "Login", "body": body, "thread": "bd-1", "idempotency_key": body})
}

#[test]
fn every_acknowledged_send_is_there_once_and_in_the_order_of_its_number() {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let sent: Vec<(u64, String)> = std::thread::scope(|scope| {
        let send = |sender: usize| {
            let server = &server;
            move || {
                let name = name(sender);
                server.does(&name, "start", json!({}));
                let send = |number: usize| {
                    let body = format!("{sender}-{number}");
                    let result = server.does(&name, "send", letter(&body));
                    (result["message"]["id"].as_u64().unwrap(), body)
                };
                (0..EACH).map(send).collect::<Vec<_>>()
            }
        };
        let senders: Vec<_> = (0..SENDERS).map(|sender| scope.spawn(send(sender))).collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    let mut expected = sent.clone();
    expected.sort();
    assert_eq!(server.inbox("Reader"), expected);
    // The same keys again are answered as before.
    for (id, body) in sent.iter().step_by(7) {
        let sender = body.split_once('-').unwrap().0;
        let again = server.does(&format!("Sender{sender}"), "send", letter(body));
        assert_eq!(again["message"]["id"].as_u64(), Some(*id));
    }
    assert_eq!(server.stop(), 0);
}

#[test]
fn one_who_is_refused_takes_nobody_along() {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let outcomes: Vec<(bool, bool)> = std::thread::scope(|scope| {
        let ask = |sender: usize| {
            let server = &server;
            move || {
                let name = name(sender);
                server.does(&name, "start", json!({}));
                let is_good = |number: usize| !(sender + number).is_multiple_of(3);
                let send = |number: usize| {
                    let to = if is_good(number) { "Reader" } else { "Nobody" };
                    let arguments =
                        json!({"to": [to], "subject": "Login", "body": format!("{sender}-{number}"), "thread": "bd-1"});
                    (is_good(number), server.call(&name, "send", arguments)["ok"] == true)
                };
                (0..EACH).map(send).collect::<Vec<_>>()
            }
        };
        let senders: Vec<_> = (0..SENDERS).map(|sender| scope.spawn(ask(sender))).collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    assert!(outcomes.iter().all(|(is_good, went_well)| is_good == went_well));
    let good = outcomes.iter().filter(|(is_good, _)| *is_good).count();
    assert_eq!(server.does("Reader", "poll", json!({}))["unread"].as_u64(), Some(good as u64));
}

/// A server that is killed loses nothing that it had acknowledged, and what it had not is settled by the same key.
#[test]
fn a_server_that_dies_loses_nothing_that_it_acknowledged() {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let server = Server::start(&bus);
    for sender in 0..SENDERS {
        server.does(&name(sender), "start", json!({}));
    }
    let (url, secret, key) = (server.url.clone(), server.token.clone(), bus.key());
    let acknowledged: Vec<String> = std::thread::scope(|scope| {
        let send = |sender: usize| {
            let (url, secret, key) = (url.clone(), secret.clone(), key.clone());
            move || {
                let mut acknowledged = Vec::new();
                for number in 0..1_000 {
                    let body = format!("{sender}-{number}");
                    let sent = json!({"command": "send", "project": key, "agent": name(sender), "key": body, "request": {
                        "verb": "send", "to": ["Reader"], "subject": "Login", "body": body, "thread": "bd-1",
                        "cc": [], "bcc": [], "reply_to": null, "importance": "normal", "ack_required": false, "ack_within": null,
                        "hold": false, "no_recover": false}});
                    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
                    let posted = agent
                        .post(format!("{url}/v1/ask"))
                        .header("authorization", format!("Bearer {secret}"))
                        .header("content-type", "application/json")
                        .send(sent.to_string());
                    let Ok(mut response) = posted else { break };
                    let Ok(text) = response.body_mut().read_to_string() else { break };
                    let reply: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(reply["status"], 0, "{reply}");
                    acknowledged.push(body);
                }
                acknowledged
            }
        };
        let senders: Vec<_> = (0..SENDERS).map(|sender| scope.spawn(send(sender))).collect();
        while bus.tip() < 150 && senders.iter().all(|sender| !sender.is_finished()) {}
        server.kill();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    });
    assert!(!acknowledged.is_empty());
    let server = Server::with(&bus, &[]);
    let found: Vec<String> = server.inbox("Reader").into_iter().map(|(_, body)| body).collect();
    let lost: Vec<&String> = acknowledged.iter().filter(|body| !found.contains(body)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    let mut once = found.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), found.len(), "nothing is there twice");
}

#[test]
fn the_command_line_and_the_server_write_to_the_same_store_at_the_same_time() {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let server = Server::start(&bus);
    std::thread::scope(|scope| {
        for sender in 0..4 {
            let (server, bus) = (&server, &bus);
            scope.spawn(move || {
                let name = name(sender);
                server.does(&name, "start", json!({}));
                for number in 0..EACH {
                    if number % 2 == 0 {
                        server.does(&name, "send", letter(&format!("{sender}-{number}")));
                    } else {
                        bus.send(&name, "Reader", "bd-1", "Login");
                    }
                }
            });
        }
    });
    assert_eq!(server.does("Reader", "poll", json!({}))["unread"].as_u64(), Some((4 * EACH) as u64));
}

#[test]
fn projects_do_not_wait_for_each_other_and_mail_passes_between_them() {
    let bus = Bus::with(&["BlueLake"]);
    let other = bus.path("other");
    std::fs::create_dir(&other).unwrap();
    let server = Server::start(&bus);
    let there = other.canonicalize().unwrap().to_str().unwrap().to_owned();
    let call = |agent: &str, tool: &str, mut arguments: Value| {
        arguments["project"] = json!(there);
        arguments["agent"] = json!(agent);
        server.rpc(&server.token, "tools/call", json!({"name": tool, "arguments": arguments}))["result"]["structuredContent"].clone()
    };
    assert_eq!(call("RedForest", "start", json!({}))["ok"], true);
    let asked = server.does("BlueLake", "link", json!({"target": format!("RedForest@{there}")}));
    assert_eq!(asked["link"]["state"], "requested");
    assert_eq!(
        call("RedForest", "link", json!({"target": format!("BlueLake@{}", bus.key()), "accept": true}))["ok"],
        true
    );
    let to = format!("RedForest@{there}");
    server.does("BlueLake", "send", json!({"to": [to], "subject": "Hello", "body": "over there", "thread": "bd-1"}));
    let inbox = call("RedForest", "poll", json!({"bodies": true}));
    assert_eq!(inbox["result"]["messages"][0]["body"], "over there", "{inbox}");
}

#[test]
fn a_store_that_was_rebuilt_is_opened_anew() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let _ = token(&bus, "another", &[]);
    server.does("BlueLake", "send", json!({"to": ["RedForest"], "subject": "s", "body": "b", "thread": "bd-1"}));
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    server.does("BlueLake", "send", json!({"to": ["RedForest"], "subject": "s", "body": "c", "thread": "bd-1"}));
    assert_eq!(server.does("RedForest", "poll", json!({}))["unread"], 2);
    assert!(bus.now() >= EPOCH);
}
