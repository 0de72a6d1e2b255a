//! I5: groups reach whoever consents, and each one left out is reported with its reason.

use serde_json::Value;

use crate::bus::{Bus, hours};
use crate::terminal::{column, text};

const CREW: [&str; 7] = ["BlueLake", "OpenDoor", "AutoGate", "LinkOnly", "NoMail", "GoneHome", "OnHold"];

/// A thread in which everybody stands, with every reason to be left out.
fn crew() -> Bus {
    let bus = Bus::with(&CREW);
    for agent in CREW {
        bus.relay(agent, ["prepare", "--thread", "bd-1"]).success();
    }
    bus.relay("OpenDoor", ["policy", "open"]).success();
    bus.relay("LinkOnly", ["policy", "contacts_only"]).success();
    bus.relay("NoMail", ["policy", "block_all"]).success();
    bus.relay("GoneHome", ["retire"]).success();
    bus.relay("BlueLake", ["suspend", "OnHold"]).success();
    bus
}

fn reached(result: &Value) -> Vec<String> {
    let mut names: Vec<String> = column(&result["message"]["recipients"], "name").iter().map(text).collect();
    names.sort();
    names
}

fn left_out(result: &Value) -> Vec<(String, String)> {
    let rows = result["left_out"].as_array().cloned().unwrap_or_default();
    let mut rows: Vec<_> = rows.iter().map(|row| (text(&row["name"]), text(&row["reason"]))).collect();
    rows.sort();
    rows
}

fn named(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect()
}

#[test]
fn a_thread_reaches_its_active_members() {
    let bus = crew();
    let args = ["send", "--to", "@thread", "--thread", "bd-1", "--subject", "Login", "--body", "text"];
    let result = bus.relay("BlueLake", args).success().result();
    assert_eq!(reached(&result), ["AutoGate", "OpenDoor"]);
    let expected =
        [("GoneHome", "retired"), ("LinkOnly", "not linked"), ("NoMail", "block_all"), ("OnHold", "suspended")];
    assert_eq!(left_out(&result), named(&expected));
    assert_eq!(bus.inbox("LinkOnly"), [0; 0]);
}

#[test]
fn a_member_who_left_and_one_who_never_came_are_not_in_the_thread() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["prepare", "--thread", "bd-1"]).success();
    }
    let args = ["send", "--to", "@thread", "--thread", "bd-1", "--subject", "Login", "--body", "text"];
    let result = bus.relay("BlueLake", args).success().result();
    assert_eq!((reached(&result), left_out(&result)), (vec!["RedForest".to_owned()], vec![]));
    bus.relay("RedForest", ["leave", "bd-1"]).success();
    bus.relay("BlueLake", args).fails("RECIPIENT_NOT_FOUND");
    // A reply's thread is its parent's.
    let id = bus.send("GreenHill", "BlueLake", "bd-2", "Logout").to_string();
    let reply = bus.relay("BlueLake", ["send", "--to", "@thread", "--reply-to", &id, "--body", "text"]).success();
    assert_eq!(reached(&reply.result()), ["GreenHill"]);
    bus.relay("BlueLake", ["send", "--to", "@thread", "--subject", "Hi", "--body", "text"]).fails("INPUT_INVALID");
}

#[test]
fn a_thread_reaches_the_human_who_takes_part_in_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    bus.send("human", "BlueLake", "bd-1", "Login");
    let to_all = |agent: &str, flags: &[&str]| {
        let args = ["send", "--to", "@thread", "--thread", "bd-1", "--subject", "Login", "--body", agent];
        bus.relay(agent, [&args, flags].concat()).success().result()
    };
    let result = to_all("BlueLake", &[]);
    assert_eq!((reached(&result), left_out(&result)), (vec!["human".to_owned()], vec![]), "nobody else is there");
    bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success();
    assert_eq!(reached(&to_all("RedForest", &[])), ["BlueLake", "human"]);
    assert_eq!(reached(&to_all("RedForest", &["--hold"])), ["BlueLake", "human"]);
    assert_eq!(reached(&to_all("human", &[])), ["BlueLake", "RedForest"], "not oneself");
    let twice = to_all("BlueLake", &["--cc", "human"]);
    assert_eq!(reached(&twice), ["RedForest", "human"], "once");
    // The human is in no other group, and in no thread of others.
    let all = bus.relay("BlueLake", ["send", "--to", "@all", "--subject", "Hi", "--body", "text"]).success().result();
    assert_eq!(reached(&all), ["RedForest"]);
}

#[test]
fn all_reaches_the_active_agents_seen_within_a_day() {
    let bus = crew();
    bus.relay("SleepyHead", ["start"]).success();
    bus.advance(hours(24));
    for agent in ["OpenDoor", "AutoGate", "LinkOnly", "NoMail"] {
        bus.relay(agent, ["poll"]).success();
    }
    bus.advance(1);
    let args = ["send", "--to", "@all", "--subject", "Freeze at noon", "--body", "text"];
    let result = bus.relay("BlueLake", args).success().result();
    assert_eq!(reached(&result), ["AutoGate", "OpenDoor"]);
    let expected = [
        ("GoneHome", "retired"),
        ("LinkOnly", "not linked"),
        ("NoMail", "block_all"),
        ("OnHold", "suspended"),
        ("SleepyHead", "unseen for 24 hours"),
    ];
    assert_eq!(left_out(&result), named(&expected));
}

#[test]
fn a_block_leaves_its_two_sides_out_of_each_others_groups() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    for (from, expected) in [("BlueLake", "RedForest"), ("RedForest", "BlueLake")] {
        let result = bus.relay(from, ["send", "--to", "@all", "--subject", "Hi", "--body", from]).success().result();
        assert_eq!(
            (reached(&result), left_out(&result)),
            (vec!["GreenHill".to_owned()], named(&[(expected, "blocked")]))
        );
    }
}

#[test]
fn a_name_beside_a_group_is_reached_once_and_fails_like_any_name() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let result =
        bus.relay("BlueLake", ["send", "--to", "@all", "--cc", "RedForest", "--subject", "Hi", "--body", "text"]);
    let message = result.success().result()["message"].clone();
    let mut rows: Vec<_> =
        message["recipients"].as_array().unwrap().iter().map(|row| (text(&row["name"]), text(&row["kind"]))).collect();
    rows.sort();
    assert_eq!(rows, named(&[("GreenHill", "to"), ("RedForest", "cc")]));
    bus.relay("RedForest", ["policy", "block_all"]).success();
    let args = ["send", "--to", "@all", "--cc", "RedForest", "--subject", "Hi", "--body", "text"];
    bus.relay("BlueLake", args).fails("CONTACT_BLOCKED");
    assert_eq!(bus.inbox("GreenHill").len(), 1, "a failed send delivered nothing to anyone");
}

#[test]
fn a_message_to_the_human_is_an_escalation_that_status_shows() {
    let bus = Bus::with(&["BlueLake"]);
    let args = ["send", "--to", "human", "--subject", "Which way?", "--body", "text", "--importance", "high"];
    let id = bus.relay("BlueLake", args).success().result()["message"]["id"].clone();
    let waiting = || column(&bus.relay("", ["status"]).success().result()["for_the_human"], "id");
    assert_eq!(waiting(), std::slice::from_ref(&id));
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["ack", &id.to_string()]).success();
    assert_eq!(waiting(), [0; 0]);
}
