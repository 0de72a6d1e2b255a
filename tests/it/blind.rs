//! Blind copies where they could show by accident: in threads, subjects, replies, notices and receipts.

use serde_json::{Value, json};

use crate::bus::{Bus, days};

/// A sender, a blind recipient, a stranger and the human; everybody takes everybody's mail.
fn project() -> Bus {
    let bus = Bus::with(&["BlueLake", "GoldRiver", "GreyStone", "RedForest"]);
    for agent in ["BlueLake", "GoldRiver", "GreyStone", "RedForest"] {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus.relay("", ["token", "human"]).success();
    bus
}

fn send(bus: &Bus, from: &str, args: &[&str]) -> Value {
    let args = ["send", "--body", "text"].iter().chain(args);
    bus.relay(from, args).success().result()["message"].clone()
}

/// Opens a thread with a message that only GoldRiver gets.
fn whisper(bus: &Bus) -> String {
    send(bus, "BlueLake", &["--bcc", "GoldRiver", "--thread", "veiled", "--subject", "Dismiss RedForest"])["id"]
        .to_string()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

fn kinds_and_names(recipients: &Value) -> Value {
    recipients.as_array().unwrap().iter().map(|to| json!([to["kind"], to["name"]])).collect()
}

#[test]
fn a_thread_of_hidden_messages_does_not_exist_for_others() {
    let bus = project();
    whisper(&bus);
    for viewer in ["GreyStone", "RedForest", ""] {
        bus.relay(viewer, ["thread", "veiled"]).fails("THREAD_NOT_FOUND");
        assert_eq!(bus.relay(viewer, ["thread"]).success().result()["threads"], json!([]), "{viewer:?}");
    }
    for viewer in ["BlueLake", "GoldRiver", "human"] {
        let thread = bus.relay(viewer, ["thread", "veiled"]).success().result()["thread"].clone();
        assert_eq!((&thread["subject"], &thread["messages"]), (&json!("Dismiss RedForest"), &json!(1)), "{viewer}");
    }
}

#[test]
fn a_hidden_subject_is_not_the_threads_subject_for_others() {
    let bus = project();
    whisper(&bus);
    send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "veiled", "--subject", "Lunch"]);
    for (viewer, subject, messages) in [
        ("GreyStone", json!(null), 1),
        ("RedForest", json!(null), 1),
        ("", json!(null), 1),
        ("GoldRiver", json!("Dismiss RedForest"), 2),
        ("human", json!("Dismiss RedForest"), 2),
    ] {
        let view = bus.relay(viewer, ["thread", "veiled"]).success().result();
        assert_eq!(view["thread"]["subject"], subject, "{viewer:?}");
        assert_eq!(view["thread"]["messages"], messages, "{viewer:?}");
        let listed = bus.relay(viewer, ["thread"]).success().result()["threads"][0].clone();
        assert_eq!((&listed["subject"], &listed["messages"]), (&subject, &json!(messages)), "{viewer:?}");
    }
    let digest = bus.relay("GreyStone", ["prepare", "--thread", "veiled"]).success().result();
    assert_eq!(digest["thread"]["subject"], json!(null));
    assert_eq!(names(&digest["participants"]), ["BlueLake", "GreyStone", "RedForest"]);
}

#[test]
fn a_hidden_subject_is_not_inherited_by_whoever_may_not_know_it() {
    let bus = project();
    whisper(&bus);
    let bare = ["send", "--to", "RedForest", "--thread", "veiled", "--body", "text"];
    bus.relay("GreyStone", bare).fails("INPUT_INVALID");
    // Nor does its drift tell anything about it.
    let run = bus.relay("GreyStone", bare.into_iter().chain(["--subject", "Lunch"])).success();
    assert_eq!(run.signals(), Vec::<String>::new());
    // Closing the thread says so under a subject of its own.
    bus.relay("GreyStone", ["reserve", "src", "--reason", "veiled"]).success();
    bus.relay("GreyStone", ["release", "--reason", "veiled", "--done"]).success();
    let inbox = bus.relay("RedForest", ["poll"]).success();
    let subjects: Vec<Value> =
        inbox.result()["messages"].as_array().unwrap().iter().map(|message| message["subject"].clone()).collect();
    assert_eq!(subjects, ["Lunch", "Done"]);
    assert!(!inbox.stdout.contains("Dismiss"));
    // Those who know it inherit it.
    bus.relay("GoldRiver", ["send", "--to", "BlueLake", "--thread", "veiled", "--body", "text"]).success();
    let inbox = bus.relay("BlueLake", ["poll"]).success().result();
    assert_eq!(inbox["messages"][0]["subject"], "Dismiss RedForest");
}

#[test]
fn a_reply_keeps_what_was_blind_blind() {
    let bus = project();
    let envelope = ["--to", "RedForest", "--bcc", "GoldRiver", "--thread", "mixed", "--subject", "Login"];
    let id = send(&bus, "BlueLake", &envelope)["id"].to_string();
    let check = |from: &str, expected: Value| {
        let reply = send(&bus, from, &["--reply-to", &id]);
        assert_eq!(kinds_and_names(&reply["recipients"]), expected, "{from}");
        let seen = bus.relay("GreyStone", ["message", &reply["id"].to_string()]).success().result();
        assert!(!seen["message"]["recipients"].to_string().contains("GoldRiver"), "{from}");
    };
    // To one's own message: again everybody, in the same lines.
    check("BlueLake", json!([["to", "RedForest"], ["bcc", "GoldRiver"]]));
    check("RedForest", json!([["to", "BlueLake"]]));
    check("GreyStone", json!([["to", "BlueLake"]]));
    // The thread is its visible members.
    let group = send(&bus, "RedForest", &["--to", "@thread", "--thread", "mixed"]);
    assert_eq!(kinds_and_names(&group["recipients"]), json!([["to", "BlueLake"], ["to", "GreyStone"]]));
    // Replying is the blind recipient's own decision, and then it is there for all.
    check_reply_of_the_blind(&bus, &id);
}

fn check_reply_of_the_blind(bus: &Bus, id: &str) {
    send(bus, "GoldRiver", &["--reply-to", id]);
    let view = bus.relay("GreyStone", ["thread", "mixed"]).success().result();
    assert_eq!(names(&view["participants"]), ["BlueLake", "GoldRiver", "GreyStone", "RedForest"]);
    let first = &view["messages"][0]["recipients"];
    assert_eq!(kinds_and_names(first), json!([["to", "RedForest"]]), "the first envelope stays as it was");
}

#[test]
fn a_reply_to_a_message_that_one_may_not_see_answers_nothing() {
    let bus = project();
    let id = whisper(&bus);
    for args in [&["--to", "BlueLake"] as &[&str], &[], &["--thread", "veiled"], &["--thread", "elsewhere"]] {
        let reply = ["send", "--reply-to", &id, "--body", "text"].into_iter().chain(args.iter().copied());
        bus.relay("GreyStone", reply).fails("MESSAGE_NOT_FOUND");
    }
    for args in [["ack", &id].as_slice(), &["ack", &id, "--read"], &["read", &id]] {
        bus.relay("GreyStone", args).fails("MESSAGE_NOT_FOUND");
    }
}

#[test]
fn mail_for_the_human_in_a_blind_copy_is_listed_for_the_human_only() {
    let bus = project();
    send(&bus, "BlueLake", &["--to", "RedForest", "--bcc", "human", "--thread", "mixed", "--subject", "Login"]);
    let listed = |viewer: &str| bus.relay(viewer, ["status"]).success().result()["for_the_human"].clone();
    for viewer in ["RedForest", "GreyStone", ""] {
        assert_eq!(listed(viewer), json!([]), "{viewer:?}");
    }
    for viewer in ["BlueLake", "human"] {
        assert_eq!(listed(viewer).as_array().unwrap().len(), 1, "{viewer}");
    }
}

/// BlueLake writes to GoldRiver, who wants to be asked first: the copy is held.
fn held(bus: &Bus, line: &str) -> String {
    bus.relay("GoldRiver", ["policy", "contacts_only"]).success();
    let message = send(bus, "BlueLake", &[line, "GoldRiver", "--thread", "held", "--subject", "Login", "--hold"]);
    assert_eq!(message["recipients"][0]["state"], "held");
    message["id"].to_string()
}

#[test]
fn a_copy_that_waits_for_consent_is_not_there_yet() {
    let bus = project();
    let id = held(&bus, "--bcc");
    bus.relay("GoldRiver", ["message", &id]).fails("MESSAGE_NOT_FOUND");
    bus.relay("GoldRiver", ["ack", &id]).fails("MESSAGE_NOT_FOUND");
    assert_eq!(bus.relay("GoldRiver", ["search", "text"]).success().result()["found"], json!([]));
    bus.relay("GoldRiver", ["thread", "held"]).fails("THREAD_NOT_FOUND");
    bus.relay("GoldRiver", ["link", "--target", "BlueLake", "--accept"]).success();
    bus.relay("GoldRiver", ["message", &id]).success();
    assert_eq!(bus.relay("GoldRiver", ["poll"]).success().result()["messages"][0]["id"].to_string(), id);
}

#[test]
fn the_event_that_delivers_held_mail_names_it_to_those_who_may_know() {
    for (line, accepts, outsider) in [
        ("--bcc", ["GoldRiver", "BlueLake"], json!([])),
        ("--to", ["GoldRiver", "BlueLake"], json!("all")),
        ("--bcc", ["human", "GoldRiver"], json!([])),
        ("--to", ["human", "GoldRiver"], json!("all")),
    ] {
        let bus = project();
        let id: u64 = held(&bus, line).parse().unwrap();
        let [who, target] = accepts;
        bus.relay(who, ["link", "--target", target, "--accept"]).success();
        let delivers = |viewer: &str| {
            let events = bus.relay(viewer, ["log", "--kind", "link_accepted"]).success().result()["events"].clone();
            assert_eq!(events.as_array().unwrap().len(), 1, "{viewer:?}");
            events[0]["data"]["delivers"].clone()
        };
        for viewer in ["BlueLake", "GoldRiver", "human"] {
            assert_eq!(delivers(viewer), json!([id]), "{line} {who}: {viewer}");
        }
        let expected = if outsider == "all" { json!([id]) } else { outsider };
        assert_eq!(delivers("GreyStone"), expected, "{line} {who}");
    }
}

/// What becomes of held mail is told to its sender, and to others only where they may know of the copy.
fn check_notice(line: &str, others_see: bool, give_up: impl Fn(&Bus)) {
    let bus = project();
    held(&bus, line);
    give_up(&bus);
    let inbox = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    let notice = inbox["messages"].as_array().unwrap().iter().find(|message| message["from"] == "relay").unwrap();
    assert!(notice["body"].as_str().unwrap().contains("GoldRiver"), "{notice}");
    let id = notice["id"].to_string();
    bus.relay("human", ["message", &id]).success();
    let lapsed = |viewer: &str| {
        let events = bus.relay(viewer, ["log", "--kind", "held_lapsed"]).success().result()["events"].clone();
        events.as_array().unwrap().len()
    };
    assert_eq!(lapsed("BlueLake"), 1);
    for viewer in ["GreyStone", ""] {
        assert_eq!(lapsed(viewer), usize::from(others_see), "{line} {viewer:?}");
        let run = bus.relay(viewer, ["message", &id]);
        if others_see {
            run.success();
        } else {
            run.fails("MESSAGE_NOT_FOUND");
            assert_eq!(bus.relay(viewer, ["search", "delivered"]).success().result()["found"], json!([]));
        }
    }
}

#[test]
fn a_notice_about_a_blind_copy_is_as_blind_as_the_copy() {
    let block = |bus: &Bus| drop(bus.relay("GoldRiver", ["link", "--target", "BlueLake", "--block"]).success());
    let lapse = |bus: &Bus| {
        // Seen in between, so that nobody retires by itself.
        for _ in 0..2 {
            bus.advance(days(4));
            for agent in ["BlueLake", "GreyStone"] {
                bus.relay(agent, ["agents"]).success();
            }
        }
    };
    for (line, others_see) in [("--bcc", false), ("--to", true)] {
        check_notice(line, others_see, block);
        check_notice(line, others_see, lapse);
    }
}

#[test]
fn an_overdue_ack_for_a_blind_copy_is_nobody_elses_debt() {
    let bus = project();
    let envelope =
        ["--bcc", "GoldRiver", "--to", "RedForest", "--thread", "mixed", "--subject", "Login", "--ack-within", "1m"];
    send(&bus, "BlueLake", &envelope);
    bus.advance(120_000);
    let debtors = |viewer: &str| -> Vec<String> {
        let debt = bus.relay(viewer, ["look", "debt"]).success().result()["debt"].clone();
        debt.as_array().unwrap().iter().map(|item| item["who"].as_str().unwrap().to_owned()).collect()
    };
    for viewer in ["RedForest", "GreyStone", ""] {
        assert_eq!(debtors(viewer), ["RedForest"], "{viewer:?}");
        let owed = bus.relay(viewer, ["thread", "mixed"]).success().result()["acks_owed"].clone();
        assert_eq!(owed.as_array().unwrap().len(), 1, "{viewer:?}");
    }
    for viewer in ["BlueLake", "GoldRiver", "human"] {
        let mut debtors = debtors(viewer);
        debtors.sort();
        assert_eq!(debtors, ["GoldRiver", "RedForest"], "{viewer}");
    }
}
