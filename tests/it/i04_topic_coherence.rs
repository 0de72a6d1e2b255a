//! I4: a thread has one topic, and a new topic starts a new thread. Drift is a signal, never a refusal.

use crate::bus::{Bus, Run};
use crate::terminal::text;

fn pair() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    bus
}

fn send(bus: &Bus, thread: &str, subject: &str) -> Run {
    let args = ["send", "--to", "RedForest", "--thread", thread, "--subject", subject, "--body", subject];
    bus.relay("BlueLake", args).success()
}

fn drifted(run: &Run) -> bool {
    run.signals().contains(&"TOPIC_DRIFT".to_owned())
}

#[test]
fn a_subject_that_shares_no_word_with_the_threads_is_drift() {
    let bus = pair();
    let check = |index: usize, topic: &str, subject: &str, expected: bool| {
        let thread = format!("bd-{index}");
        assert!(!drifted(&send(&bus, &thread, topic)), "the first message cannot drift: {topic:?}");
        assert_eq!(drifted(&send(&bus, &thread, subject)), expected, "{topic:?} then {subject:?}");
    };
    for (index, (topic, subject, expected)) in [
        ("Login token expires", "Lunch on Friday", true),
        ("Login token expires", "login page", false),
        ("Login token expires", "LOGIN", false),
        ("Login token expires", "Re: Login token expires", false),
        ("Login token expires", "Fwd: RE: lunch", true),
        ("Login token expires", "[urgent] token", false),
        ("Login token expires", "[login] lunch", true),
        ("Login token expires", "Re: [x] Fw: expires?", false),
        // Nothing but stop words and prefixes is no topic at all.
        ("Login token expires", "Re: what about this", false),
        ("Login token expires", "Re:", false),
        ("The login and the token", "The lunch and the menu", true),
        // Words of fewer than three letters prove nothing.
        ("Go UI v2", "Go DB v2", true),
        ("Go UI", "Go UI", false),
        ("Datenbank-Übergabe", "übergabe heute", false),
    ]
    .into_iter()
    .enumerate()
    {
        check(index, topic, subject, expected);
    }
}

#[test]
fn a_drifting_message_is_delivered_in_its_thread() {
    let bus = pair();
    send(&bus, "bd-1", "Login token expires");
    let answer = send(&bus, "bd-1", "Lunch on Friday");
    assert!(drifted(&answer));
    let id = answer.result()["message"]["id"].clone();
    let mail = bus.relay("RedForest", ["poll"]).success().result();
    let last = mail["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["id"], text(&last["thread"]), text(&last["subject"])),
        (&id, "bd-1".into(), "Lunch on Friday".into())
    );
    let thread = bus.relay("", ["thread", "bd-1"]).success().result();
    assert_eq!(thread["thread"]["subject"], "Login token expires");
}

#[test]
fn drift_comes_with_the_command_that_starts_a_new_thread() {
    let bus = pair();
    send(&bus, "bd-1", "Login token expires");
    let line = text(&send(&bus, "bd-1", "Lunch").json()["next"][0]);
    // The names of the new thread and of its subject are the sender's to fill in; as printed it runs all the same.
    bus.type_line("BlueLake", &line, "the same text").success();
    let mail = bus.relay("RedForest", ["poll", "--bodies"]).success().result();
    let last = mail["messages"].as_array().unwrap().last().unwrap().clone();
    assert_ne!(last["thread"], "bd-1");
    assert_eq!(last["body"], "the same text");
}

#[test]
fn a_reply_drifts_like_any_other_message_and_one_without_a_subject_never_does() {
    let bus = pair();
    let parent = send(&bus, "bd-1", "Login token expires").result()["message"]["id"].to_string();
    let reply = |rest: &[&str]| {
        let args = [&["send", "--to", "RedForest", "--reply-to", &parent, "--body", "b"], rest].concat();
        bus.relay("BlueLake", args).success()
    };
    assert!(drifted(&reply(&["--subject", "Lunch"])));
    assert!(!drifted(&reply(&["--subject", "Re: token"])));
    assert!(!drifted(&reply(&[])));
}
