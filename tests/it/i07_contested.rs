//! I7: the other side of a conflict hears of it, once until it changes, and when it ends.

use serde_json::Value;

use crate::bus::{Bus, hours};
use crate::terminal::{ids, text};

/// What a poll says about contested claims.
fn news(bus: &Bus, agent: &str) -> Vec<(String, String, bool)> {
    rows(&bus.relay(agent, ["poll"]).success().result()["contested"])
}

fn rows(contested: &Value) -> Vec<(String, String, bool)> {
    let row = |row: &Value| (text(&row["pattern"]), text(&row["holder"]), row["ended"].as_bool().unwrap());
    contested.as_array().unwrap().iter().map(row).collect()
}

fn told(pattern: &str, holder: &str, ended: bool) -> Vec<(String, String, bool)> {
    vec![(pattern.to_owned(), holder.to_owned(), ended)]
}

/// BlueLake holds `src/**`, and RedForest came later with `src/a.rs`.
fn contested() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    bus
}

#[test]
fn the_holder_hears_of_a_newcomer_once() {
    let bus = contested();
    let page = bus.relay("BlueLake", ["poll"]).success().result();
    assert_eq!(rows(&page["contested"]), told("src/**", "RedForest", false));
    let row = &page["contested"][0];
    assert_eq!((text(&row["overlaps"]), text(&row["example"])), ("src/a.rs".into(), "src/a.rs".into()));
    assert_eq!((ids(&page["messages"]), page["unread"].as_u64()), (vec![], Some(0)), "it is no mail");
    assert_eq!(news(&bus, "BlueLake"), []);
    assert_eq!(rows(&bus.relay("BlueLake", ["start"]).success().result()["contested"]), []);
}

#[test]
fn start_tells_it_as_well_as_poll() {
    let bus = contested();
    let situation = bus.relay("BlueLake", ["start"]).success().result();
    assert_eq!(rows(&situation["contested"]), told("src/**", "RedForest", false));
    assert_eq!((situation["inbox"]["unread"].as_u64(), situation["debt"]["contested"].as_u64()), (Some(0), Some(1)));
    assert_eq!(news(&bus, "BlueLake"), []);
}

#[test]
fn telling_is_one_event_and_telling_nothing_is_none() {
    let bus = contested();
    let tip = bus.tip();
    news(&bus, "BlueLake");
    assert_eq!(bus.kinds(tip), ["mail_surfaced"]);
    news(&bus, "BlueLake");
    assert_eq!(bus.tip(), tip + 1);
}

#[test]
fn the_end_of_a_contest_is_told_to_the_one_who_still_holds() {
    for end in [["release", "--all"].as_slice(), &["retire"]] {
        let bus = contested();
        news(&bus, "BlueLake");
        news(&bus, "RedForest");
        bus.relay("RedForest", end).success();
        assert_eq!(news(&bus, "BlueLake"), told("src/**", "RedForest", true), "{end:?}");
        assert_eq!(news(&bus, "BlueLake"), []);
        if end[0] == "release" {
            assert_eq!(news(&bus, "RedForest"), [], "what I gave up myself is no news to me");
        }
    }
}

#[test]
fn expiry_ends_a_contest_too() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**", "--ttl", "4h"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    assert_eq!(news(&bus, "BlueLake"), told("src/**", "RedForest", false));
    bus.advance(hours(1));
    assert_eq!(news(&bus, "BlueLake"), told("src/**", "RedForest", true));
}

#[test]
fn whose_own_claim_expired_hears_that_the_contest_is_over_however_late_it_asks() {
    for late in [hours(1), hours(50)] {
        let bus = contested();
        bus.relay("BlueLake", ["reserve", "src/**", "--ttl", "4h"]).success();
        bus.advance(late);
        bus.relay("BlueLake", ["reserve", "docs"]).success();
        assert_eq!(news(&bus, "RedForest"), told("src/a.rs", "BlueLake", true), "{late}");
        assert_eq!(news(&bus, "RedForest"), []);
    }
}

#[test]
fn a_contest_that_nobody_was_told_of_ends_silently() {
    let bus = contested();
    bus.relay("RedForest", ["release", "--all"]).success();
    assert_eq!(news(&bus, "BlueLake"), []);
}

#[test]
fn a_change_is_told_again() {
    let bus = contested();
    let exclusive = || {
        let page = bus.relay("BlueLake", ["poll"]).success().result();
        page["contested"].as_array().unwrap().iter().map(|row| row["exclusive"].as_bool().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(exclusive(), [true]);
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    assert_eq!(exclusive(), [true; 0], "a renewal changes nothing between the two");
    bus.relay("RedForest", ["reserve", "src/a.rs", "--shared"]).success();
    assert_eq!(exclusive(), [false], "it is shared now, and mine is not");
    bus.relay("BlueLake", ["reserve", "src/**", "--shared"]).success();
    let over = bus.relay("BlueLake", ["poll"]).success().result();
    assert_eq!(rows(&over["contested"]), told("src/**", "RedForest", true), "two shared claims live in peace");
}

#[test]
fn a_contest_wakes_a_waiting_poll_and_so_does_its_end() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let waiter = bus.waiting("BlueLake", &["poll", "--wait", "60s"]);
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    assert_eq!(rows(&waiter.finish().success().result()["contested"]), told("src/**", "RedForest", false));
    let waiter = bus.waiting("BlueLake", &["poll", "--wait", "60s"]);
    bus.relay("RedForest", ["release", "--all"]).success();
    assert_eq!(rows(&waiter.finish().success().result()["contested"]), told("src/**", "RedForest", true));
}

#[test]
fn everybody_sees_what_is_contested_in_status_and_debt() {
    let bus = contested();
    let status = bus.relay("", ["status"]).success().result();
    assert_eq!((status["contested"].as_array().unwrap().len(), status["live_claims"].as_u64()), (1, Some(2)));
    let debt = bus.relay("", ["look", "debt"]).success().result();
    assert!(debt["debt"].as_array().unwrap().iter().any(|item| item["kind"] == "contested_claim"), "{debt}");
}
