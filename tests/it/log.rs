//! `relay log` and the lists: the newest part, as far as one may see it, without reading what nobody is shown.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::terminal::column;

/// Mail in two threads and claims, so that every filter leaves out something between what it takes.
fn busy() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for thread in ["bd-1", "bd-2", "bd-1", "bd-2", "bd-1"] {
        bus.send("BlueLake", "RedForest", thread, "Login");
        bus.relay("RedForest", ["reserve", "src", "--reason", thread]).success();
    }
    bus
}

/// What `log` shows with these arguments: the last so many of everything that they take, and where to go on.
#[track_caller]
fn check(bus: &Bus, args: &[&str], takes: impl Fn(&Value) -> bool, limit: usize) {
    let all: Vec<Value> = bus.events(0).into_iter().filter(|event| takes(event)).collect();
    assert!(all.len() > limit, "{args:?} leaves nothing out");
    let shown = bus.relay("", [&["log", "--limit", &limit.to_string()], args].concat()).success().result();
    assert_eq!(shown["events"], json!(all[all.len() - limit..]), "{args:?}");
    assert_eq!(shown["cursor"], bus.tip(), "{args:?}");
    // From a number on it goes forward.
    let first = bus.relay("", [&["log", "--after", "0", "--limit", &limit.to_string()], args].concat()).success();
    assert_eq!(first.result()["events"], json!(all[..limit]), "{args:?}");
    assert_eq!(first.result()["cursor"], all[limit - 1]["number"], "{args:?}");
}

#[test]
fn the_log_shows_the_newest_part_whatever_is_wanted_of_it() {
    let bus = busy();
    let is = |event: &Value, field: &str, value: &str| event[field] == value;
    check(&bus, &[], |_| true, 5);
    check(&bus, &["--by", "BlueLake"], |event| is(event, "actor", "BlueLake"), 3);
    check(&bus, &["--by", "redforest"], |event| is(event, "actor", "RedForest"), 3);
    check(&bus, &["--kind", "message_sent"], |event| is(event, "kind", "message_sent"), 2);
    check(&bus, &["--kind", "MESSAGE_SENT"], |event| is(event, "kind", "message_sent"), 2);
    let of_bd_2 = |event: &Value| is(&event["data"], "thread", "bd-2") || is(&event["data"], "reason", "bd-2");
    check(&bus, &["--thread", "BD-2"], of_bd_2, 1);
    let both = ["--thread", "bd-1", "--kind", "message_sent"];
    check(&bus, &both, |event| is(event, "kind", "message_sent") && event["data"]["thread"] == "bd-1", 2);
}

#[test]
fn a_filter_that_takes_nothing_shows_nothing_and_where_the_end_is() {
    let bus = busy();
    for args in [&["log", "--kind", "nothing"] as &[&str], &["log", "--kind", "nothing", "--after", "3"]] {
        let shown = bus.relay("", args).success().result();
        assert_eq!((shown["events"].as_array().unwrap().len(), &shown["cursor"]), (0, &bus.tip().into()), "{args:?}");
    }
    let beyond = bus.relay("", ["log", "--after", "9999"]).success().result();
    assert_eq!((beyond["events"].as_array().unwrap().len(), &beyond["cursor"]), (0, &9999.into()));
}

/// Hidden events leave no gap in a page: the newest that one may see are shown.
#[test]
fn a_page_is_filled_with_what_one_may_see() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let seen = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    for _ in 0..3 {
        let args = ["send", "--bcc", "RedForest", "--thread", "bd-9", "--subject", "Blind", "--body", "text"];
        bus.relay("BlueLake", args).success();
    }
    let shown = bus.relay("GreenHill", ["log", "--limit", "1"]).success().result();
    assert_eq!(column(&shown["events"], "number"), [seen]);
}

/// A body that cannot be read at all: whoever reads it fails.
fn spoil(bus: &Bus, id: u64) {
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    let spoilt = "UPDATE texts SET text = CAST(x'ff' AS TEXT) WHERE event = ?1 AND field = 'body'";
    assert_eq!(store.execute(spoilt, [id]).unwrap(), 1);
}

#[test]
fn a_body_is_read_where_it_is_shown_and_nowhere_else() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("RedForest", ["poll"]).success();
    let long = "x".repeat(20 * 1024);
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--body", &long];
    bus.relay("BlueLake", args).success();
    spoil(&bus, id);
    assert_ne!(bus.relay("RedForest", ["message", &id.to_string()]).status, 0, "the body is spoilt");
    for args in [
        &["log"] as &[&str],
        &["log", "--kind", "nothing"],
        &["log", "--kind", "mail_surfaced"],
        &["thread"],
        // The newest body spends the budget.
        &["thread", "bd-1"],
        &["prepare", "--thread", "bd-1"],
        &["search", "Login"],
        &["look", "outbox"],
        &["look", "debt"],
        &["poll"],
        &["poll", "--read"],
        &["ack", &id.to_string()],
        &["send", "--reply-to", &id.to_string(), "--body", "answer"],
        &["release", "--reason", "bd-1", "--done"],
    ] {
        bus.relay("RedForest", args).success();
    }
    bus.forget();
}
