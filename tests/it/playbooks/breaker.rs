//! The circuit breaker: the same recovery for the same cause runs three times within ten minutes, and then a person looks.

use serde_json::json;

use super::{Way, nobody, questions};
use crate::bus::{Bus, letter, minutes};
use crate::terminal::text;

/// BlueLake has asked RedForest, who does not answer; the letter failed.
fn pending() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_PENDING");
    bus
}

const RECOVER: [&str; 2] = ["recover", "CONTACT_PENDING"];
const RETRY: [&str; 3] = ["recover", "CONTACT_PENDING", "--retry"];

pub fn exhausted(code: &str) {
    let bus = pending();
    for _ in 0..5 {
        let waits = bus.relay("BlueLake", RECOVER).success().result();
        assert_eq!((&waits["state"], &waits["waits_for"]), (&json!("waits"), &json!("person")), "no step was taken");
    }
    for _ in 0..3 {
        bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
    }
    let error = bus.relay("BlueLake", RECOVER).fails(code).error();
    assert!(text(&error["message"]).contains("3 times within 10m"), "{error}");
    Way::new(&bus, "BlueLake").follow(&error, nobody);
    assert_eq!(questions(&bus).len(), 1, "a person was asked");
}

#[test]
fn the_breaker_closes_again_after_ten_minutes() {
    let bus = pending();
    for _ in 0..3 {
        bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
        bus.advance(minutes(3));
    }
    bus.relay("BlueLake", RETRY).fails("RECOVERY_EXHAUSTED");
    bus.advance(minutes(2));
    bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
}

#[test]
fn another_cause_is_another_recovery() {
    let bus = pending();
    for _ in 0..3 {
        bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
    }
    bus.relay("BlueLake", RETRY).fails("RECOVERY_EXHAUSTED");
    // The same class with somebody else in the way.
    bus.relay("GreenHill", ["start"]).success();
    bus.relay("GreenHill", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "GreenHill"]).success();
    let error = bus.relay("BlueLake", letter("GreenHill")).fails("CONTACT_PENDING").error();
    let key = text(&error["idempotency_key"]);
    let retry = [RETRY.as_slice(), &["--idempotency-key", &key]].concat();
    bus.relay("BlueLake", retry).fails("CONTACT_PENDING");
}

/// What was in the way is gone: nobody is kept waiting by a count of what no longer is.
#[test]
fn the_breaker_does_not_stand_in_the_way_once_the_world_has_changed() {
    let bus = pending();
    for _ in 0..3 {
        bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
    }
    bus.relay("BlueLake", RETRY).fails("RECOVERY_EXHAUSTED");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    assert_eq!(bus.relay("BlueLake", RECOVER).success().result()["state"], "recovered");
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

#[test]
fn looking_at_the_steps_is_no_try() {
    let bus = pending();
    for _ in 0..5 {
        bus.relay("BlueLake", ["recover", "CONTACT_PENDING", "--dry-run"]).success();
    }
    bus.relay("BlueLake", RETRY).fails("CONTACT_PENDING");
}
