//! Who is reached, and where a message belongs.

use serde_json::{Value, json};

use super::{Way, nobody, questions};
use crate::bus::{Bus, letter};
use crate::terminal::text;

pub fn thread_mismatch(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let reply = |thread: &[&str]| {
        bus.relay("RedForest", [&["send", "--to", "BlueLake", "--reply-to", &id, "--body", "b"], thread].concat())
    };
    let error = reply(&["--thread", "bd-2"]).fails(code).error();
    Way::new(&bus, "RedForest").follow(&error, |_| drop(reply(&[]).success()));
}

pub fn thread_not_found(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    let error = bus.relay("BlueLake", ["look", "thread", "bd-9"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, nobody);
}

pub fn message_not_found(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let error = bus.relay("RedForest", ["ack", "999"]).fails(code).error();
    Way::new(&bus, "RedForest").follow(&error, |_| drop(bus.relay("RedForest", ["ack", &id]).success()));
}

pub fn not_a_recipient(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let error = bus.relay("BlueLake", ["ack", &id]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |_| drop(bus.relay("RedForest", ["ack", &id]).success()));
}

/// Whoever does not know better asks the human.
pub fn recipient_not_found(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    let error = bus.relay("BlueLake", letter("Stranger")).fails(code).error();
    assert_eq!(
        (&error["playbook"][0]["who"], &error["playbook"][1]["tool"]),
        (&json!("you"), &json!("send")),
        "{error}"
    );
    Way::new(&bus, "BlueLake").follow(&error, |_| {});
    asked(&bus, code, "BlueLake");
}

/// The question of an agent lies before the human: in the status, and among the debt once it is late.
#[track_caller]
fn asked(bus: &Bus, code: &str, agent: &str) {
    let questions = questions(bus);
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert_eq!((text(&questions[0]["from"]), &questions[0]["ack_required"]), (agent.to_owned(), &json!(true)));
    assert!(text(&questions[0]["thread"]).starts_with(code), "{questions:?}");
}

#[test]
fn once_the_way_is_open_what_was_blocked_goes_through() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_BLOCKED");
    let recover = || bus.relay("BlueLake", ["recover", "CONTACT_BLOCKED"]).success().result()["state"].clone();
    assert_eq!(recover(), "escalated");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--revoke"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    assert_eq!(recover(), "recovered");
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

#[test]
fn the_question_names_who_was_meant() {
    let bus = Bus::with(&["BlueLake"]);
    for name in ["Stranger", "Somebody"] {
        let error = bus.relay("BlueLake", letter(name)).fails("RECIPIENT_NOT_FOUND").error();
        assert!(text(&error["playbook"][1]["args"]["body"]).contains(name), "{error}");
        bus.relay("BlueLake", ["recover", "RECIPIENT_NOT_FOUND", "--yes"]).success();
    }
    assert_eq!(questions(&bus).len(), 2);
    let error = bus.relay("BlueLake", letter("$(touch x)")).fails("RECIPIENT_NOT_FOUND").error();
    assert!(!error["playbook"].to_string().contains("touch"), "{error}");
}

fn asked_for(pending: bool, code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    if pending {
        bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    }
    let error = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
    let answer = |step: &Value| {
        if step["args"]["wait"].is_string() {
            bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
        }
    };
    Way::new(&bus, "BlueLake").follow(&error, answer);
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

pub fn contact_required(code: &str) {
    asked_for(false, code);
}

pub fn contact_pending(code: &str) {
    asked_for(true, code);
}

pub fn contact_blocked(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--block"]).success();
    let own = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&own, nobody);
    assert_eq!(bus.inbox("RedForest").len(), 1);
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    let theirs = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&theirs, |step| {
        if step["tool"] == "recover" {
            asked(&bus, code, "BlueLake");
            bus.relay("RedForest", ["link", "--target", "BlueLake", "--revoke"]).success();
            bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
            bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]);
        }
    });
}

pub fn link_not_found(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let error = bus.relay("BlueLake", ["link", "--target", "RedForest", "--accept"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |_| {});
    let links = bus.relay("BlueLake", ["link", "--list"]).success().result();
    assert_eq!(links["links"][0]["state"], "accepted", "the link that was to be accepted is there");
}

pub fn inbox_full(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 1\n").unwrap();
    let error = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["tool"] == "recover" {
            asked(&bus, code, "BlueLake");
            bus.relay("RedForest", ["poll", "--read"]).success();
        }
    });
    assert_eq!(bus.inbox("RedForest").len(), 1);
}
