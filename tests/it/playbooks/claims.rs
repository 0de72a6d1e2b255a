//! What is held, and who waits for whom.

use serde_json::Value;

use super::{Way, nobody, questions};
use crate::bus::{Bus, minutes};
use crate::terminal::column;

pub fn conflict(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    let error = bus.relay("BlueLake", ["reserve", "src/a.rs", "--if-free"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["args"]["wait"].is_string() {
            bus.relay("RedForest", ["release", "--all"]).success();
        }
    });
    let held = bus.relay("", ["reservations"]).success().result();
    assert_eq!(column(&held["reservations"], "pattern"), ["src/a.rs"]);
}

pub fn not_held(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let granted = bus.relay("BlueLake", ["reserve", "src"]).success().result();
    let id = granted["granted"][0]["id"].to_string();
    bus.advance(minutes(11));
    bus.relay("RedForest", ["release", "--id", &id, "--force", "--why", "gone"]).success();
    let error = bus.relay("BlueLake", ["release", "--id", &id]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["who"] == "you" {
            bus.relay("BlueLake", ["reserve", "src"]).success();
        }
    });
    assert_eq!(bus.inbox("RedForest").len(), 1, "whoever took it over was told");
}

pub fn holder_alive(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let granted = bus.relay("RedForest", ["reserve", "src"]).success().result();
    let id = granted["granted"][0]["id"].to_string();
    let take = ["release", "--id", &id, "--force", "--why", "needed"];
    let error = bus.relay("BlueLake", take).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["tool"] == "recover" {
            // RedForest never looks at its mail again.
            bus.advance(minutes(11));
        }
    });
    let mail = bus.relay("RedForest", ["poll"]).success().result();
    assert_eq!(mail["messages"][0]["thread"], format!("claim-{id}"), "the holder was asked first");
    assert_eq!(questions(&bus).len(), 1);
    let held = bus.relay("", ["reservations"]).success().result();
    assert_eq!(column(&held["reservations"], "holder"), ["BlueLake"]);
}

pub fn wait_timeout(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    let wait = ["reserve", "src", "--if-free", "--wait", "1s"];
    let error = bus.relay("BlueLake", wait).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["tool"] == "recover" {
            bus.relay("RedForest", ["release", "--all"]).success();
        }
    });
    assert_eq!(questions(&bus).len(), 1);
    let other = bus.relay("BlueLake", ["policy", "contacts_only"]).success();
    drop(other);
    let link = bus.relay("RedForest", ["link", "--target", "BlueLake", "--wait", "1s"]).fails(code).error();
    Way::new(&bus, "RedForest").follow(&link, |step| {
        if step["tool"] == "recover" {
            bus.relay("BlueLake", ["link", "--target", "RedForest", "--accept"]).success();
        }
    });
}

pub fn wait_cycle(code: &str) {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    let mut waiter = Some(bus.waiting("GreenHill", &["poll", "--wait", "60s", "--from", "BlueLake"]));
    let error = bus.relay("BlueLake", ["poll", "--wait", "1s", "--from", "GreenHill"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step: &Value| {
        if step["who"] == "you" {
            bus.send("BlueLake", "GreenHill", "bd-1", "Login");
            waiter.take().unwrap().finish().success();
        } else {
            nobody(step);
        }
    });
}
