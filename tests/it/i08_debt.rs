//! I8: what the project owes itself is one list, and each item names the command that pays it.

use serde_json::{Value, json};

use crate::bus::{Bus, days, hours, minutes};
use crate::terminal::text;

fn debt(bus: &Bus) -> Vec<Value> {
    bus.relay("", ["look", "debt"]).success().result()["debt"].as_array().unwrap().clone()
}

fn of_kind(bus: &Bus, kind: &str) -> Vec<Value> {
    debt(bus).into_iter().filter(|item| item["kind"] == kind).collect()
}

/// There is exactly one item of this kind, its command runs as it stands, and then there is none.
#[track_caller]
fn pays(bus: &Bus, kind: &str, who: &str) {
    let items = of_kind(bus, kind);
    assert_eq!(items.len(), 1, "{kind}: {:?}", debt(bus));
    assert_eq!(items[0]["who"], who, "{kind}");
    let status = bus.relay("", ["status"]).success().result();
    assert!(status["debt"].as_u64().unwrap() > 0, "the status counts it");
    // From any shell, as nobody in particular.
    bus.type_line("", &text(&items[0]["pay"]), "").success();
    assert_eq!(of_kind(bus, kind), [Value::Null; 0], "{kind} is paid");
}

#[test]
fn a_project_that_owes_nothing_says_so() {
    let bus = Bus::with(&["BlueLake"]);
    assert_eq!(debt(&bus), [Value::Null; 0]);
    assert!(bus.text("", ["look", "debt"]).success().stdout.starts_with("No debt"));
    assert_eq!(bus.relay("BlueLake", ["start"]).success().result()["debt"]["items"], 0);
}

#[test]
fn claims_that_are_broad_stale_silent_or_contested_are_owed_by_their_holders() {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    bus.relay("BlueLake", ["reserve", "**"]).success();
    let started = bus.relay("BlueLake", ["start"]).success().json();
    assert_eq!(started["result"]["debt"]["items"], 1, "whoever starts is told: {started}");
    assert!(started["next"].as_array().unwrap().iter().any(|line| text(line).starts_with("relay look debt")));
    assert!(bus.text("BlueLake", ["start"]).success().stdout.contains("You owe 1 item of coordination debt."));
    pays(&bus, "broad_claim", "BlueLake");

    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("GreenHill", ["reserve", "src/a.rs"]).success();
    pays(&bus, "contested_claim", "GreenHill");

    bus.advance(minutes(11));
    bus.relay("GreenHill", ["poll"]).success();
    pays(&bus, "silent_claim", "BlueLake");
    bus.relay("GreenHill", ["release", "--all"]).success();

    bus.relay("BlueLake", ["start"]).success();
    bus.relay("BlueLake", ["reserve", "docs", "--ttl", "24h"]).success();
    bus.advance(hours(13));
    bus.relay("BlueLake", ["poll"]).success();
    pays(&bus, "stale_claim", "BlueLake");

    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
    bus.relay("BlueLake", ["reserve", "docs", "--reason", "bd-1"]).success();
    bus.relay("GreenHill", ["start"]).success();
    bus.send("BlueLake", "GreenHill", "bd-1", "Login");
    bus.relay("GreenHill", ["release", "--reason", "bd-1", "--done"]).success();
    pays(&bus, "stale_claim", "BlueLake");
}

#[test]
fn mail_that_waits_is_owed_by_those_for_whom_it_waits() {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    let send = ["send", "--to", "GreenHill", "--subject", "Login", "--body", "text", "--thread", "bd-1"];
    bus.relay("BlueLake", [send.as_slice(), &["--ack-within", "5m"]].concat()).success();
    bus.advance(minutes(6));
    pays(&bus, "ack_overdue", "GreenHill");

    bus.relay("", ["token", "human"]).success();
    let ask = ["send", "--to", "human", "--subject", "Which one?", "--body", "text", "--ack-required"];
    bus.relay("BlueLake", ask).success();
    pays(&bus, "decision", "human");

    bus.relay("GreenHill", ["poll", "--read"]).success();
    for number in 0..21 {
        let body = format!("text {number}");
        let args = ["send", "--to", "GreenHill", "--subject", "Login", "--thread", "bd-1", "--body", &body];
        bus.relay("BlueLake", args).success();
        assert_eq!(of_kind(&bus, "unread_pile").len(), usize::from(number == 20));
    }
    pays(&bus, "unread_pile", "GreenHill");

    bus.relay("GreenHill", ["policy", "contacts_only"]).success();
    bus.relay("RedForest", ["start"]).success();
    bus.relay("RedForest", ["link", "--target", "GreenHill"]).success();
    bus.advance(hours(25));
    pays(&bus, "contact_waiting", "GreenHill");
}

#[test]
fn threads_that_drift_and_agents_that_are_only_names_are_owed_too() {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    bus.send("BlueLake", "GreenHill", "bd-1", "Login fails after the upgrade");
    assert_eq!(of_kind(&bus, "drifting_thread"), [Value::Null; 0]);
    bus.send("BlueLake", "GreenHill", "bd-1", "Lunch on Friday");
    pays(&bus, "drifting_thread", "BlueLake");

    bus.advance(hours(25));
    bus.relay("GreenHill", ["poll"]).success();
    pays(&bus, "old_identity", "BlueLake");
    bus.advance(days(8));
    assert_eq!(of_kind(&bus, "old_identity"), [Value::Null; 0], "who has retired owes nothing");
}

#[test]
fn the_human_pays_as_the_human_and_as_nobody_else() {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    bus.relay("", ["token", "human"]).success();
    bus.relay("BlueLake", ["reserve", "src/**", "--ttl", "24h"]).success();
    bus.relay("GreenHill", ["reserve", "src/a.rs"]).success();
    let send =
        ["send", "--to", "GreenHill", "--subject", "Login", "--body", "b", "--thread", "bd-1", "--ack-within", "5m"];
    bus.relay("BlueLake", send).success();
    for number in 0..21 {
        let body = format!("text {number}");
        bus.relay("BlueLake", ["send", "--to", "GreenHill", "--thread", "bd-1", "--subject", "Login", "--body", &body])
            .success();
    }
    bus.relay("GreenHill", ["policy", "contacts_only"]).success();
    bus.relay("RedForest", ["start"]).success();
    bus.relay("RedForest", ["link", "--target", "GreenHill"]).success();
    bus.advance(minutes(6));
    let seen = |bus: &Bus| -> Vec<(String, String)> {
        let debt = bus.relay("human", ["look", "debt"]).success().result()["debt"].as_array().unwrap().clone();
        debt.iter().map(|item| (text(&item["kind"]), text(&item["pay"]))).collect()
    };
    let kinds: Vec<String> = seen(&bus).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, ["ack_overdue", "contested_claim", "unread_pile"]);
    for (kind, pay) in seen(&bus) {
        assert!(pay.contains("--agent human"), "{kind}: {pay}");
        bus.type_line("", &pay, "").success();
    }
    let left: Vec<String> = seen(&bus).into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(left, ["ack_overdue", "unread_pile"], "a claim is taken, and the rest is asked for");
    let mail = bus.relay("GreenHill", ["poll", "--from", "human"]).success().result();
    assert_eq!(mail["messages"].as_array().unwrap().len(), 2, "{mail}");
    assert_eq!(of_kind(&bus, "drifting_thread"), [Value::Null; 0], "what relay says of it is nobody's topic");
    bus.advance(hours(25));
    let answers = seen(&bus).into_iter().filter(|(kind, _)| kind == "contact_waiting");
    for (_, pay) in answers.collect::<Vec<_>>() {
        bus.type_line("", &pay, "").success();
    }
    assert!(!seen(&bus).iter().any(|(kind, _)| kind == "contact_waiting"));
}

#[test]
fn what_presses_most_stands_first_for_the_human() {
    let bus = Bus::with(&["BlueLake"]);
    let ask = |subject: &str, more: &[&str]| {
        let args = [&["send", "--to", "human", "--subject", subject, "--body", "b"], more].concat();
        bus.relay("BlueLake", args).success();
    };
    ask("calm", &[]);
    ask("late", &["--ack-within", "1m"]);
    ask("soon", &["--ack-within", "10m"]);
    ask("urgent", &["--importance", "urgent"]);
    bus.advance(minutes(2));
    let status = bus.relay("", ["status"]).success().result();
    let subjects: Vec<&Value> = status["for_the_human"].as_array().unwrap().iter().map(|m| &m["subject"]).collect();
    assert_eq!(subjects, ["late", "urgent", "soon", "calm"]);
}

#[test]
fn who_writes_much_to_the_human_hides_nobody_else() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldOwl"]);
    let ask = |agent: &str, subject: &str, more: &[&str]| {
        let args = [&["send", "--to", "human", "--subject", subject, "--body", subject], more].concat();
        bus.relay(agent, args).success();
    };
    for round in 0..6 {
        ask("BlueLake", &format!("loud {round}"), &["--importance", "urgent"]);
    }
    ask("RedForest", "quiet", &[]);
    ask("GoldOwl", "polite", &["--ack-within", "1m"]);
    bus.advance(minutes(2));
    let status = bus.relay("", ["status"]).success().result();
    let subjects = crate::terminal::column(&status["for_the_human"], "subject");
    assert_eq!(subjects[..4], ["polite", "loud 0", "quiet", "loud 1"]);
    assert_eq!(status["for_the_human_total"], 8);
    let few = bus.relay("", ["look", "status", "--limit", "2"]).success().result();
    assert_eq!((&few["for_the_human"][1]["subject"], &few["for_the_human_total"]), (&json!("loud 0"), &json!(8)));
}

/// More than are weighed against each other.
#[test]
fn a_flood_of_one_hides_no_question_of_another() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let ask = |agent: &str, subject: &str| {
        let args = ["send", "--to", "human", "--thread", "bd-1", "--subject", subject, "--body", subject];
        bus.relay(agent, args).success();
    };
    for round in 0..301 {
        ask("BlueLake", &format!("loud {round}"));
    }
    ask("RedForest", "quiet");
    let status = bus.relay("", ["status"]).success().result();
    let subjects = crate::terminal::column(&status["for_the_human"], "subject");
    assert_eq!((subjects.len(), &subjects[..3]), (100, &[json!("loud 0"), json!("quiet"), json!("loud 1")][..]));
    bus.relay("", ["token", "human"]).success();
    assert_eq!(bus.relay("human", ["status"]).success().result()["for_the_human_total"], 302);
}

#[test]
fn nobody_is_told_what_a_blind_copy_owes() {
    let bus = Bus::with(&["BlueLake", "GreenHill", "RedForest"]);
    let args = ["send", "--to", "human", "--bcc", "GreenHill", "--subject", "Login", "--body", "b", "--ack-required"];
    bus.relay("BlueLake", args).success();
    bus.advance(hours(2));
    let seen = |agent: &str| {
        let debt = bus.relay(agent, ["look", "debt"]).success().result();
        let mut who: Vec<Value> = debt["debt"].as_array().unwrap().iter().map(|item| item["who"].clone()).collect();
        who.dedup();
        json!(who)
    };
    assert_eq!(seen("RedForest"), json!(["human"]));
    assert_eq!(seen("BlueLake"), json!(["human", "GreenHill"]));
}
