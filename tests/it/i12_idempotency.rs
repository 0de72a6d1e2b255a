//! I12: repeating a request is harmless, so that recovery needs no guessing.

use serde_json::Value;

use crate::bus::{Bus, minutes};
use crate::terminal::text;

fn pair() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus
}

const SEND: [&str; 9] = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"];

fn keyed<'a>(args: &[&'a str], key: &'a str) -> Vec<&'a str> {
    [args, &["--idempotency-key", key]].concat()
}

#[test]
fn the_same_key_and_request_get_the_first_answer_for_ever() {
    let bus = pair();
    let message = bus.send("RedForest", "BlueLake", "bd-2", "Logout").to_string();
    bus.relay("BlueLake", ["reserve", "lib", "--ttl", "24h"]).success();
    for (index, args) in [
        SEND.as_slice(),
        &["reserve", "src/**"],
        &["release", "lib"],
        &["link", "--target", "RedForest"],
        &["ack", &message],
        &["policy", "auto"],
        &["leave", "bd-2"],
    ]
    .into_iter()
    .enumerate()
    {
        let args = keyed(args, ["k0", "k1", "k2", "k3", "k4", "k5", "k6"][index]);
        let first = bus.relay("BlueLake", &args).success().json();
        let tip = bus.tip();
        for wait in [0, minutes(90)] {
            bus.advance(wait);
            assert_eq!(bus.relay("BlueLake", &args).success().json(), first, "{args:?}");
        }
        assert_eq!(bus.tip(), tip, "{args:?}");
    }
}

#[test]
fn the_first_answer_of_a_send_that_healed_says_so_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let first = bus.relay("BlueLake", keyed(&SEND, "k1")).success();
    assert_eq!(first.signals(), ["RECOVERED"]);
    assert_eq!(bus.relay("BlueLake", keyed(&SEND, "k1")).success().json(), first.json());
}

#[test]
fn start_and_prepare_may_be_repeated_by_key_too() {
    let bus = Bus::new();
    let first = bus.relay("", keyed(&["start"], "k1")).success().result();
    let again = bus.relay("", keyed(&["start"], "k1")).success().result();
    assert_eq!(
        (&again["agent"]["name"], &again["new"]),
        (&first["agent"]["name"], &Value::Bool(true)),
        "one agent, not two"
    );
    let tip = bus.tip();
    bus.relay("", keyed(&["start"], "k1")).success();
    assert_eq!(bus.tip(), tip);
    bus.relay("BlueLake", keyed(&["prepare", "--thread", "bd-1"], "k2")).success();
    bus.relay("BlueLake", keyed(&["prepare", "--thread", "bd-2"], "k2")).fails("IDEMPOTENCY_REUSED");
}

#[test]
fn the_same_key_with_another_request_is_refused() {
    let bus = pair();
    bus.relay("BlueLake", keyed(&SEND, "k1")).success();
    let before = bus.events(0);
    let mut other = SEND;
    other[8] = "another text";
    for args in [other.as_slice(), &["reserve", "src"], &[SEND.as_slice(), &["--ack-required"]].concat()] {
        let error = bus.relay("BlueLake", keyed(args, "k1")).fails("IDEMPOTENCY_REUSED").error();
        assert!(text(&error["message"]).contains("k1"), "{error}");
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn a_key_belongs_to_one_agent_in_one_project() {
    let bus = pair();
    bus.relay("BlueLake", keyed(&["reserve", "src"], "k1")).success();
    bus.relay("RedForest", keyed(&["reserve", "docs"], "k1")).success();
    std::fs::create_dir(bus.path("other")).unwrap();
    let other = bus.path("other").to_str().unwrap().to_owned();
    bus.relay("BlueLake", ["start", "--project", &other]).success();
    bus.relay("BlueLake", keyed(&["reserve", "lib", "--project", &other], "k1")).success();
}

#[test]
fn an_error_is_never_remembered_and_means_that_nothing_happened() {
    let bus = pair();
    bus.relay("RedForest", ["policy", "block_all"]).success();
    let before = bus.events(0);
    bus.relay("BlueLake", keyed(&SEND, "k1")).fails("CONTACT_BLOCKED");
    assert_eq!(bus.events(0), before);
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("BlueLake", keyed(&SEND, "k1")).success();
    assert_eq!(bus.inbox("RedForest").len(), 1);
    // Even another request may have a key that only ever failed.
    bus.relay("BlueLake", keyed(&["release", "src"], "k2")).fails("RESERVATION_NOT_HELD");
    bus.relay("BlueLake", keyed(&["reserve", "src"], "k2")).success();
}

#[test]
fn a_success_that_changed_nothing_is_remembered_like_any_other() {
    let bus = pair();
    let args = keyed(&["release", "--all"], "k1");
    bus.relay("BlueLake", &args).success();
    bus.relay("BlueLake", ["reserve", "src"]).success();
    let again = bus.relay("BlueLake", &args).success().result();
    assert_eq!(again["released"], serde_json::json!([]));
    assert_eq!(bus.relay("", ["reservations"]).success().result()["total"], 1);
}

#[test]
fn every_call_has_a_key_and_an_error_shows_it() {
    let bus = pair();
    let fail =
        |args: &[&str]| text(&bus.relay("BlueLake", args).fails("RESERVATION_NOT_HELD").error()["idempotency_key"]);
    let (one, two) = (fail(&["release", "src"]), fail(&["release", "src"]));
    assert!(one != two && one.len() >= 16, "{one} {two}");
    assert_eq!(fail(&keyed(&["release", "src"], "mine")), "mine");
}

#[test]
fn the_same_text_within_a_minute_under_another_key_is_a_likely_duplicate() {
    let bus = pair();
    let send = |args: &[&str]| {
        let run = bus.relay("BlueLake", args).success();
        let json = run.json();
        let signal =
            json["signals"].as_array().unwrap().iter().find(|signal| signal["code"] == "LIKELY_DUPLICATE").cloned();
        (run.result()["message"]["id"].clone(), signal.map(|signal| signal["about"].clone()))
    };
    let (first, signal) = send(&SEND);
    assert_eq!(signal, None);
    bus.advance(minutes(1));
    let (second, signal) = send(&SEND);
    assert_eq!(signal, Some(first));
    let mut other = SEND;
    other[8] = "another text";
    assert_eq!(send(&other).1, None);
    bus.advance(1);
    assert_eq!(send(&SEND).1, Some(second.clone()));
    bus.advance(minutes(1) + 1);
    assert_eq!(send(&SEND).1, None);
    assert_eq!(bus.inbox("RedForest").len(), 5, "a duplicate is delivered: it is a signal");
}

#[test]
fn a_duplicate_is_found_behind_everything_else_that_was_sent_within_the_minute() {
    let bus = pair();
    let send = |text: &str| {
        let mut args = SEND;
        args[8] = text;
        bus.relay("BlueLake", args).success()
    };
    let first = send("the text").result()["message"]["id"].clone();
    for n in 0..25 {
        send(&format!("text {n:02}"));
    }
    let again = send("the text").json();
    let signal = again["signals"].as_array().unwrap().iter().find(|signal| signal["code"] == "LIKELY_DUPLICATE");
    assert_eq!(signal.map(|signal| signal["about"].clone()), Some(first));
}

#[test]
fn a_duplicate_into_another_project_is_one_as_well() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::create_dir(bus.path("other")).unwrap();
    let other = bus.path("other").to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &other]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest@other"]).success();
    bus.relay("RedForest", ["link", "--target", "BlueLake@repo", "--accept", "--project", &other]).success();
    let mut args = SEND;
    args[2] = "RedForest@other";
    let first = bus.relay("BlueLake", args).success();
    assert_eq!(first.signals(), Vec::<String>::new());
    let again = bus.relay("BlueLake", args).success().json();
    assert_eq!(again["signals"][0]["code"], "LIKELY_DUPLICATE");
    assert_eq!(again["signals"][0]["about"], first.result()["message"]["id"]);
}

#[test]
fn a_key_is_a_line_of_text() {
    let bus = pair();
    let long = "k".repeat(201);
    for key in ["", "a\nb", &long] {
        bus.relay("BlueLake", ["reserve", "src", &format!("--idempotency-key={key}")]).fails("INPUT_INVALID");
    }
    bus.relay("BlueLake", keyed(&["reserve", "src"], &"k".repeat(200))).success();
}
