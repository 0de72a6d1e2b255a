//! What the model found, each as the shortest way to see it.

use crate::bus::{Bus, days, minutes};
use crate::terminal::{ids, text};

const HOLD: [&str; 9] =
    ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body=text", "--hold"];
const FORCE: [&str; 3] = ["--force", "--why", "the holder crashed"];

/// BlueLake's message waits for RedForest's consent.
fn held() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", HOLD).success();
    bus
}

#[test]
fn two_claims_of_one_request_contest_each_other_once_one_is_taken_over() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**", "src/a.rs"]).success();
    bus.advance(minutes(11));
    bus.relay("RedForest", [["release", "src/**"].as_slice(), &FORCE].concat()).success();
    let contested = bus.relay("BlueLake", ["poll"]).success().result()["contested"].clone();
    assert_eq!(
        (text(&contested[0]["pattern"]), text(&contested[0]["holder"])),
        ("src/a.rs".into(), "RedForest".into())
    );
}

#[test]
fn a_pattern_claimed_and_taken_over_is_released_whole() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let theirs = bus.relay("BlueLake", ["reserve", "src/**", "--ttl", "24h"]).success().result();
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    bus.advance(minutes(11));
    bus.relay("RedForest", [["release", "src/**"].as_slice(), &FORCE].concat()).success();
    // The one that lives longer is the one that is renewed.
    let again = bus.relay("RedForest", ["reserve", "src/**", "--ttl", "24h"]).success().result();
    assert_eq!(
        (&again["granted"][0]["id"], &again["granted"][0]["renewed"]),
        (&theirs["granted"][0]["id"], &true.into())
    );
    let released = bus.relay("RedForest", ["release", "src/**"]).success().result();
    assert_eq!(released["released"].as_array().unwrap().len(), 2);
    bus.relay("RedForest", ["release", "src/**"]).fails("RESERVATION_NOT_HELD");
}

#[test]
fn a_poll_neither_needs_nor_takes_a_key_when_it_tells_of_lapsed_mail() {
    let bus = held();
    bus.relay("BlueLake", ["policy", "open", "--idempotency-key", "k"]).success();
    bus.advance(days(4));
    bus.relay("BlueLake", ["poll", "--read"]).success();
    bus.advance(days(4));
    let page = bus.relay("BlueLake", ["poll", "--idempotency-key", "k"]).success().result();
    assert_eq!(text(&page["messages"][0]["from"]), "relay");

    let bus = held();
    bus.advance(days(4));
    bus.relay("BlueLake", ["poll"]).success();
    bus.advance(days(4));
    bus.relay("BlueLake", ["poll", "--idempotency-key", "k"]).success();
    bus.relay("BlueLake", ["policy", "open", "--idempotency-key", "k"]).success();
}

#[test]
fn held_mail_arrives_when_the_one_who_was_asked_asks_back_later() {
    let bus = held();
    bus.advance(days(4));
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["agents"]).success();
    }
    bus.advance(days(4));
    // BlueLake's request has lapsed; RedForest's own is accepted by policy, and an accepted link is mutual.
    bus.relay("RedForest", ["link", "--target", "BlueLake"]).success();
    let page = bus.relay("RedForest", ["poll"]).success().result();
    assert_eq!(ids(&page["messages"]).len(), 1);
    let thread = bus.relay("RedForest", ["thread", "bd-1"]).success().result();
    assert_eq!(thread["participants"], serde_json::json!(["BlueLake", "RedForest"]));
}

#[test]
fn whoever_claims_again_was_told_by_the_answer() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let again = bus.relay("BlueLake", ["reserve", "src/**"]).success().result();
    assert_eq!(text(&again["conflicts"][0]["holder"]), "RedForest");
    let tip = bus.tip();
    let page = bus.relay("BlueLake", ["poll"]).success().result();
    assert_eq!((page["contested"].as_array().unwrap().len(), bus.tip()), (0, tip), "each pair is told once per side");
}

#[test]
fn lifting_a_suspension_revives_nobody_who_retired() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["retire"]).success();
    let lifted = bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success().result();
    assert_eq!(text(&lifted["state"]), "retired");
    bus.relay("BlueLake", ["poll"]).fails("AGENT_RETIRED");
    bus.relay("BlueLake", ["start"]).success();
    let lifted = bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success().result();
    assert_eq!(text(&lifted["state"]), "active");
}

#[test]
fn a_part_that_is_held_already_is_kept_and_not_claimed_twice() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let part = bus.relay("BlueLake", ["reserve", "src/a.rs"]).success().result()["granted"][0]["id"].clone();
    let kept = bus.relay("BlueLake", ["release", "src/**", "--keep", "src/a.rs"]).success().result()["kept"].clone();
    assert_eq!((kept.as_array().unwrap().len(), &kept[0]["id"]), (1, &part));
}
