//! I3: one task is one thread, and its updates stay in it.

use crate::bus::Bus;
use crate::terminal::{column, text};

fn pair() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("BlueLake", ["policy", "open"]).success();
    bus
}

#[test]
fn a_thread_id_is_what_a_ticket_system_writes() {
    let bus = pair();
    let longest = "x".repeat(128);
    for id in ["a", "9", "bd-123", "JIRA.1_2#3-4", &longest] {
        let answer = bus.relay("BlueLake", ["prepare", "--thread", id]).success().result();
        assert_eq!(answer["thread"]["id"], *id);
    }
    let before = bus.events(0);
    let long = "x".repeat(129);
    for id in ["", "-a", ".a", "#a", "a b", "a/b", "..", "æ", "a\u{7}", "🧵", &long] {
        let thread = format!("--thread={id}");
        bus.relay("BlueLake", ["prepare", &thread]).fails("THREAD_ID_INVALID");
        bus.relay("BlueLake", ["send", "--to", "RedForest", &thread, "--subject", "S", "--body", "b"])
            .fails("THREAD_ID_INVALID");
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn thread_ids_are_unique_without_regard_to_case_and_shown_as_first_written() {
    let bus = pair();
    bus.relay("BlueLake", ["prepare", "--thread", "Bd-7"]).success();
    let id = bus.send("BlueLake", "RedForest", "bD-7", "Login");
    let shown = bus.relay("", ["message", &id.to_string()]).success().result();
    assert_eq!(shown["message"]["thread"], "Bd-7");
    assert_eq!(bus.relay("", ["thread", "BD-7"]).success().result()["thread"]["id"], "Bd-7");
    assert_eq!(bus.relay("RedForest", ["prepare", "--thread", "bd-7"]).success().result()["thread"]["id"], "Bd-7");
    let mail = bus.relay("RedForest", ["poll", "--thread", "BD-7"]).success().result();
    assert_eq!(column(&mail["messages"], "id"), [id]);
    bus.relay("BlueLake", ["send", "--reply-to", &id.to_string(), "--thread", "bd-7", "--body", "more"]).success();
    bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-7"]).success();
    let digest = bus.relay("BlueLake", ["prepare", "--thread", "BD-7"]).success().result();
    assert_eq!(digest["reservations"][0]["pattern"], "src/**");
    assert_eq!(bus.relay("", ["thread"]).success().result()["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn the_first_message_gives_the_thread_its_subject_for_good() {
    let bus = pair();
    let subject = || bus.relay("", ["thread", "bd-1"]).success().result()["thread"]["subject"].clone();
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
    assert!(subject().is_null());
    bus.relay("BlueLake", ["send", "--to", "RedForest", "--thread", "bd-1", "--body", "b"]).fails("INPUT_INVALID");
    bus.send("BlueLake", "RedForest", "bd-1", "Login token");
    assert_eq!(subject(), "Login token");
    bus.send("RedForest", "BlueLake", "bd-1", "Login form");
    assert_eq!(subject(), "Login token");
    // Once there is a subject, a message in the thread need not repeat it.
    bus.relay("BlueLake", ["send", "--to", "RedForest", "--thread", "bd-1", "--body", "b"]).success();
}

#[test]
fn a_reply_lives_in_its_parents_thread() {
    let bus = pair();
    let parent = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    let reply = |agent: &str, to: &str, rest: &[&str]| {
        let args = [&["send", "--reply-to", to, "--body", "b"], rest].concat();
        bus.relay(agent, args).success().result()["message"].clone()
    };
    let first = reply("RedForest", &parent, &[]);
    assert_eq!((text(&first["thread"]), text(&first["recipients"][0]["name"])), ("bd-1".into(), "BlueLake".into()));
    let second = reply("BlueLake", &first["id"].to_string(), &["--thread", "bd-1"]);
    assert_eq!(second["thread"], "bd-1");
    let subject = |id: &serde_json::Value| {
        text(&bus.relay("", ["message", &id.to_string()]).success().result()["message"]["subject"])
    };
    assert_eq!(subject(&first["id"]), "Re: Login");
    assert_eq!(subject(&second["id"]), "Re: Login", "one Re: is enough");
}

#[test]
fn a_reply_that_names_another_thread_is_refused() {
    let bus = pair();
    let parent = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    bus.send("BlueLake", "RedForest", "bd-2", "Logout");
    let before = bus.events(0);
    for other in ["bd-2", "bd-3"] {
        let args = ["send", "--reply-to", &parent, "--thread", other, "--body", "b"];
        let error = bus.relay("RedForest", args).fails("THREAD_MISMATCH").error();
        assert_eq!(
            (text(&error["details"]["thread"]), text(&error["details"]["named"])),
            ("bd-1".into(), other.into())
        );
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn a_reply_needs_a_parent_that_one_may_see() {
    let bus = pair();
    bus.relay("GreenHill", ["start"]).success();
    let blind = ["send", "--bcc", "RedForest", "--subject", "Secret", "--thread", "bd-1", "--body", "b"];
    let hidden = bus.relay("BlueLake", blind).success().result()["message"]["id"].to_string();
    for parent in [hidden.as_str(), "999", "1"] {
        let args = ["send", "--to", "BlueLake", "--reply-to", parent, "--body", "b"];
        bus.relay("GreenHill", args).fails("MESSAGE_NOT_FOUND");
    }
    bus.relay("RedForest", ["send", "--reply-to", &hidden, "--body", "b"]).success();
}

#[test]
fn a_message_with_neither_thread_nor_parent_opens_a_thread_of_its_own() {
    let bus = pair();
    let send = || bus.relay("BlueLake", ["send", "--to", "RedForest", "--subject", "Lunch", "--body", "b"]).success();
    let (one, two) = (send(), send());
    let threads = [text(&one.result()["message"]["thread"]), text(&two.result()["message"]["thread"])];
    assert_ne!(threads[0], threads[1]);
    assert!(!one.signals().contains(&"OFF_THREAD".to_owned()), "whoever has no thread leaves none");
    for thread in &threads {
        assert_eq!(bus.relay("", ["thread", thread]).success().result()["thread"]["subject"], "Lunch");
    }
}

#[test]
fn a_generated_thread_never_falls_into_one_that_exists() {
    let bus = pair();
    let next = bus.tip() + 2;
    bus.relay("BlueLake", ["prepare", "--thread", &format!("T-{next}")]).success();
    let answer = bus.relay("RedForest", ["send", "--to", "BlueLake", "--subject", "Hi", "--body", "b"]).success();
    assert_eq!(answer.result()["message"]["id"], next);
    assert_ne!(text(&answer.result()["message"]["thread"]).to_lowercase(), format!("t-{next}"));
}

/// The message left the sender's thread; the line that `next` gives keeps the next one in.
fn check_off_thread(prepare: &[&str], subject_known: bool) {
    let bus = pair();
    if subject_known {
        bus.send("RedForest", "BlueLake", "bd-1", "Login");
    }
    bus.relay("BlueLake", prepare).success();
    let answer =
        bus.relay("BlueLake", ["send", "--to", "RedForest", "--subject", "It's done", "--body", "b"]).success();
    assert!(answer.signals().contains(&"OFF_THREAD".to_owned()), "{prepare:?}");
    assert_ne!(answer.result()["message"]["thread"], "bd-1");
    let line = text(&answer.json()["next"][0]);
    bus.type_line("BlueLake", &line, "the same text").success();
    let thread = bus.relay("", ["thread", "bd-1"]).success().result();
    let last = thread["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (text(&last["body"]), text(&last["recipients"][0]["name"])),
        ("the same text".into(), "RedForest".into())
    );
}

#[test]
fn leaving_ones_thread_is_signalled_with_the_command_that_stays() {
    for subject_known in [true, false] {
        check_off_thread(&["prepare", "--thread", "bd-1"], subject_known);
    }
    check_off_thread(&["reserve", "src/**", "--reason", "bd-1"], true);
    check_off_thread(&["reserve", "src/**", "--reason", "bd-1"], false);
}

#[test]
fn a_message_in_a_thread_or_as_a_reply_is_not_off_thread() {
    let bus = pair();
    let parent = bus.send("RedForest", "BlueLake", "bd-2", "Logout").to_string();
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
    for args in [
        ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "one"],
        ["send", "--to", "RedForest", "--thread", "bd-2", "--subject", "Logout", "--body", "two"],
        ["send", "--to", "RedForest", "--reply-to", &parent, "--subject", "Logout", "--body", "three"],
    ] {
        assert_eq!(bus.relay("BlueLake", args).success().signals(), [""; 0], "{args:?}");
    }
}

#[test]
fn a_thread_is_done_when_its_work_is_and_its_members_hear_of_it() {
    let bus = pair();
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1", "--path", "src/**"]).success();
    bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success();
    let done = bus.relay("BlueLake", ["release", "--reason", "bd-1", "--done"]).success().result();
    assert_eq!((text(&done["thread_done"]), done["released"][0]["pattern"].as_str()), ("bd-1".into(), Some("src/**")));
    assert_eq!(bus.relay("", ["thread", "bd-1"]).success().result()["thread"]["done"], true);
    let mail = bus.relay("RedForest", ["poll", "--thread", "bd-1"]).success().result();
    assert_eq!(column(&mail["messages"], "from"), ["BlueLake"]);
    assert_eq!(bus.inbox("BlueLake"), [0; 0]);
}

#[test]
fn a_thread_that_is_done_is_not_announced_again() {
    let bus = pair();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let close = |agent: &str| bus.relay(agent, ["release", "--reason", "bd-1", "--done"]).success().result();
    assert!(close("BlueLake").get("was_done").is_none());
    let tip = bus.tip();
    for agent in ["BlueLake", "RedForest"] {
        let again = close(agent);
        assert_eq!((text(&again["thread_done"]), &again["was_done"]), ("bd-1".into(), &true.into()));
    }
    assert_eq!(bus.kinds(tip), [""; 0]);
    let said = bus.text("BlueLake", ["release", "--reason", "bd-1", "--done"]).success();
    assert!(said.stdout.contains("bd-1 was done already."), "{}", said.stdout);
    // Somebody who took it up again leaves it, and still nobody hears of it twice.
    bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success();
    let tip = bus.tip();
    close("RedForest");
    assert_eq!(bus.kinds(tip), ["thread_closed"]);
    // A message opens it again, and then there is an end to tell.
    bus.send("BlueLake", "RedForest", "bd-1", "Login again");
    let tip = bus.tip();
    assert!(close("BlueLake").get("was_done").is_none());
    assert_eq!(bus.kinds(tip), ["message_sent", "thread_closed"]);
}

#[test]
fn whoever_worked_for_a_thread_closes_it_and_is_heard() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    for member in ["RedForest", "GreenHill"] {
        bus.relay(member, ["prepare", "--thread", "bd-1"]).success();
    }
    // Without a word in the thread, and not joined by BlueLake.
    bus.relay("BlueLake", ["reserve", "src", "--reason", "bd-1"]).success();
    bus.relay("BlueLake", ["release", "--reason", "bd-1", "--done"]).success();
    for member in ["RedForest", "GreenHill"] {
        let mail = bus.relay(member, ["poll"]).success().result();
        assert_eq!(mail["messages"][0]["from"], "BlueLake", "{mail}");
    }
    // A reason that nobody opened as a thread.
    bus.relay("BlueLake", ["reserve", "docs", "--reason", "bd-2"]).success();
    let closed = bus.relay("BlueLake", ["release", "--reason", "BD-2", "--done"]).success().result();
    assert_eq!(
        (closed["released"][0]["pattern"].as_str(), closed["thread_done"].as_str()),
        (Some("docs"), Some("BD-2"))
    );
    assert_eq!(bus.relay("BlueLake", ["thread", "bd-2"]).success().result()["thread"]["done"], true);
}

#[test]
fn closing_a_thread_that_does_not_exist_releases_nothing() {
    let bus = pair();
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let before = bus.events(0);
    bus.relay("BlueLake", ["release", "--all", "--reason", "bd-9", "--done"]).fails("THREAD_NOT_FOUND");
    assert_eq!(bus.events(0), before);
}
