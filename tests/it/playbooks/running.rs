//! `relay recover CODE`: the whole playbook in one command.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Way, questions};
use crate::bus::{Bus, RELAY, letter, minutes};
use crate::terminal::{column, text};

fn states(result: &Value) -> Vec<Value> {
    column(&result["steps"], "state")
}

#[test]
fn what_is_safe_runs_by_itself_and_the_request_is_made_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let send = [letter("RedForest").as_slice(), &["--no-recover"]].concat();
    bus.relay("BlueLake", send).fails("CONTACT_REQUIRED");
    let result = bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED"]).success().result();
    assert_eq!((&result["state"], states(&result)), (&json!("recovered"), vec![json!("done"); 2]));
    assert_eq!(result["retried"]["verb"], "send");
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

#[test]
fn what_a_person_decides_waits_for_a_yes() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_RETIRED");
    let before = bus.tip();
    let waits = bus.relay("BlueLake", ["recover", "AGENT_RETIRED"]).success().json();
    assert_eq!((&waits["result"]["state"], bus.tip()), (&json!("waits"), before));
    let next = text(&waits["next"][0]);
    assert!(next.starts_with("relay recover AGENT_RETIRED --yes --idempotency-key "), "{next}");
    let result = bus.relay("BlueLake", ["recover", "AGENT_RETIRED", "--yes"]).success().result();
    assert_eq!(result["retried"]["result"]["granted"][0]["pattern"], "src");
}

#[test]
fn a_step_that_holds_already_is_not_taken_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_REQUIRED");
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    let before = bus.tip();
    let result = bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED"]).success().result();
    assert_eq!(states(&result), ["already", "already", "done"]);
    assert_eq!(bus.tip(), before + 1, "the letter, and nothing else");
}

#[test]
fn a_playbook_that_does_not_help_says_so_and_stops() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 1\n").unwrap();
    bus.relay("BlueLake", letter("RedForest")).fails("INBOX_FULL");
    let asked = bus.relay("BlueLake", ["recover", "INBOX_FULL"]).success().result();
    assert_eq!((&asked["state"], states(&asked)), (&json!("escalated"), vec![json!("done"), json!("waits")]));
    let again = bus.relay("BlueLake", ["recover", "INBOX_FULL"]).success().result();
    assert_eq!(again["state"], "escalated", "nobody has answered yet: {again}");
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["ack", &questions(&bus)[0]["id"].to_string()]).success();
    let error = bus.relay("BlueLake", ["recover", "INBOX_FULL"]).fails("RECOVERY_EXHAUSTED").error();
    assert_eq!(error["details"]["code"], "INBOX_FULL", "there was an answer, and it did not help");
    assert_eq!(questions(&bus).len(), 0, "nobody is asked a second time");
    bus.advance(minutes(11));
    bus.relay("RedForest", ["poll", "--read"]).success();
    bus.relay("BlueLake", ["recover", "INBOX_FULL"]).success();
}

#[test]
fn what_a_request_fails_with_next_has_its_own_way_out() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["reserve", "src", "--if-free"]).fails("AGENT_RETIRED");
    let error = bus.relay("BlueLake", ["recover", "AGENT_RETIRED", "--yes"]).fails("FILE_RESERVATION_CONFLICT").error();
    bus.relay("RedForest", ["release", "--all"]).success();
    bus.step(error["playbook"].as_array().unwrap().last().unwrap()).success();
}

/// Other values are another failure: what was kept is not made again with them.
#[test]
fn values_that_are_given_do_not_make_another_request_again() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_REQUIRED");
    bus.relay("RedForest", ["link", "--target", "BlueLake"]).success();
    let given = bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED", "--set", "ask=GreenHill"]).success().result();
    assert_eq!((&given["state"], &given["retried"]), (&json!("waits"), &Value::Null), "{given}");
    assert_eq!(bus.inbox("RedForest"), [0; 0]);
}

/// The key of a `recover` is not that of the request.
#[test]
fn no_key_is_made_up_for_a_request_that_is_not_kept() {
    let bus = Bus::with(&["BlueLake"]);
    let dry = |args: &[&str]| {
        let result = bus.relay("BlueLake", [&["recover", "STORE_IO", "--dry-run"], args].concat()).success().result();
        text(&result["steps"].as_array().unwrap().last().unwrap()["why"])
    };
    assert!(dry(&[]).contains("THAT_ITS_ERROR_PRINTED"), "{}", dry(&[]));
    assert!(dry(&["--idempotency-key", "k7"]).ends_with("--idempotency-key k7"));
}

#[test]
fn once_the_human_has_answered_the_request_is_made_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 1\n").unwrap();
    bus.relay("BlueLake", letter("RedForest")).fails("INBOX_FULL");
    bus.relay("BlueLake", ["recover", "INBOX_FULL"]).success();
    let id = questions(&bus)[0]["id"].to_string();
    bus.relay("human", ["ack", &id]).success();
    bus.relay("RedForest", ["poll", "--read"]).success();
    let result = bus.relay("BlueLake", ["recover", "INBOX_FULL"]).success().result();
    assert_eq!(states(&result), ["already", "done"], "nobody is asked twice");
}

#[test]
fn nobody_is_asked_about_what_is_settled() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_SUSPENDED");
    bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success();
    let result = bus.relay("BlueLake", ["recover", "AGENT_SUSPENDED"]).success().result();
    assert_eq!(states(&result), ["already", "already", "done"]);
    let full = bus.relay("BlueLake", ["recover", "STORE_FULL"]).success().result();
    assert_eq!(states(&full)[..2], ["already", "already"], "the disk is not full");
    assert!(!bus.relay("", ["status"]).success().stdout.contains("questions"));
}

#[test]
fn whoever_cannot_write_asks_beside_the_store() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_RETIRED");
    for _ in 0..3 {
        bus.relay("BlueLake", ["recover", "AGENT_RETIRED", "--retry"]).fails("AGENT_RETIRED");
    }
    let error = bus.relay("BlueLake", ["recover", "AGENT_RETIRED"]).fails("RECOVERY_EXHAUSTED").error();
    Way::new(&bus, "BlueLake").follow(&error, |_| {});
    let status = bus.relay("", ["status"]).success().result();
    assert!(text(&status["questions"][0]["text"]).contains("AGENT_RETIRED"), "{status}");
}

#[test]
fn the_human_asks_nobody() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    bus.relay("RedForest", ["retire"]).success();
    for (args, code) in [(letter("RedForest").as_slice(), "CONTACT_BLOCKED"), (&letter("Zoe"), "RECIPIENT_NOT_FOUND")] {
        let error = bus.relay("human", args).fails(code).error();
        let steps = error["playbook"].as_array().unwrap();
        let is_persons = |step: &Value| step["who"] == "person";
        assert!(steps.iter().all(|step| step["tool"] != "send") && steps.iter().any(is_persons), "{error}");
    }
    let error = bus.relay("human", ["look", "thread", "bd-9"]).fails("THREAD_NOT_FOUND").error();
    assert_eq!(
        (&error["playbook"][0]["who"], &error["playbook"][0]["run"]),
        (&json!("person"), &Value::Null),
        "{error}"
    );
}

/// What holds is what the step would make so, and nothing that looks like it.
#[test]
fn a_step_holds_only_where_it_would_change_nothing() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let first = |agent: &str, code: &str| {
        let result = bus.relay(agent, ["recover", code, "--dry-run"]).success().result();
        states(&result)[0].clone()
    };
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["policy", "contacts_only"]).success();
    }
    bus.relay("RedForest", ["link", "--target", "BlueLake"]).success();
    let send = [letter("RedForest").as_slice(), &["--no-recover"]].concat();
    bus.relay("BlueLake", send).fails("CONTACT_REQUIRED");
    assert_eq!(first("BlueLake", "CONTACT_REQUIRED"), "to_do", "the other one asked");
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["reserve", "src", "--shared"]).success();
    }
    bus.relay("BlueLake", ["reserve", "src", "--if-free"]).fails("FILE_RESERVATION_CONFLICT");
    assert_eq!(first("BlueLake", "FILE_RESERVATION_CONFLICT"), "to_do", "a shared claim is not one's own");
    bus.relay("GreenHill", ["start"]).success();
    let hidden =
        ["send", "--to", "human", "--bcc", "RedForest", "--thread", "secret-1", "--subject", "s", "--body", "b"];
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("GreenHill", ["start"]).success();
    bus.relay("GreenHill", hidden).success();
    for thread in ["secret-1", "nothing-1"] {
        let seen = bus.relay("BlueLake", ["look", "thread", thread]);
        let is_seen = seen.status == 0;
        let dry = ["recover", "THREAD_NOT_FOUND", "--dry-run", "--set", &format!("thread={thread}")];
        let state = states(&bus.relay("BlueLake", dry).success().result())[0].clone();
        assert_eq!(state == "already", is_seen, "{thread} looks like what the caller sees of it");
    }
}

#[test]
fn what_else_is_in_the_way_has_its_own_question() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("BlueLake", ["link", "--target", "GreenHill", "--block"]).success();
    bus.relay("RedForest", ["retire"]).success();
    bus.relay("GreenHill", ["policy", "open"]).success();
    bus.relay("BlueLake", letter("GreenHill,RedForest")).fails("CONTACT_BLOCKED");
    let error = bus.relay("BlueLake", ["recover", "CONTACT_BLOCKED", "--yes"]).fails("CONTACT_BLOCKED").error();
    assert_eq!(error["details"]["own_blocks"], json!([]), "{error}");
    bus.relay("BlueLake", ["recover", "CONTACT_BLOCKED"]).success();
    assert_eq!(questions(&bus).len(), 1);
}

/// What is proposed next is about the same failure, whatever failed since.
#[test]
fn the_next_line_is_about_the_same_failure() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    for (target, key) in [("GreenHill", "k1"), ("RedForest", "k2")] {
        let accept = ["link", "--target", target, "--accept", "--idempotency-key", key];
        bus.relay("BlueLake", accept).fails("LINK_NOT_FOUND");
    }
    let waits = bus.relay("BlueLake", ["recover", "LINK_NOT_FOUND", "--idempotency-key", "k1"]).success().json();
    bus.type_line("", &text(&waits["next"][0]), "").success();
    let links = bus.relay("BlueLake", ["link", "--list"]).success().result()["links"].clone();
    assert_eq!((links.as_array().unwrap().len(), &links[0]["to"]), (1, &json!("GreenHill")), "{links}");
}

/// Where a step fails and the human is asked about it, the error says so, and nobody is asked a second time.
#[test]
fn a_question_that_was_put_is_not_proposed_again() {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    bus.relay("GreenHill", ["policy", "block_all"]).success();
    for _ in 0..2 {
        let args = ["recover", "CONTACT_REQUIRED", "--set", "ask=GreenHill"];
        let error = bus.relay("BlueLake", args).fails("RECOVERY_EXHAUSTED").error();
        assert!(text(&error["message"]).contains("was asked"), "{error}");
        assert_eq!(error["playbook"][0]["state"], "already", "{error}");
    }
    assert_eq!(questions(&bus).len(), 1);
}

/// The first errors that a newcomer meets, with nothing kept anywhere.
#[test]
fn a_newcomer_is_led_out_without_giving_values() {
    let bus = Bus::new();
    bus.relay("BlueLake", ["poll"]).fails("AGENT_NOT_REGISTERED");
    let result = bus.relay("BlueLake", ["recover", "AGENT_NOT_REGISTERED", "--yes"]).success().result();
    assert_eq!(states(&result)[0], "done", "{result}");
    let unnamed = bus.relay("", ["recover", "AGENT_NOT_REGISTERED"]).success().result();
    assert_eq!(unnamed["waits_for"], "you", "{unnamed}");
    bus.relay("human", ["poll"]).fails("UNAUTHORIZED");
    let human = bus.relay("human", ["recover", "UNAUTHORIZED", "--yes"]).success().result();
    assert_eq!(states(&human)[0], "done", "{human}");
    bus.relay("human", ["poll"]).success();
    bus.relay("BlueLake", ["start", "--session", "mine"]).success();
    let mut two = bus.args("", ["recover", "IDENTITY_MISMATCH", "--dry-run"]);
    two.env("RELAY_SESSION", "mine").env("RELAY_AGENT", "RedForest");
    let shown = crate::bus::run(two).success().stdout;
    assert!(shown.contains("--agent BlueLake") && shown.contains("--agent RedForest"), "{shown}");
}

/// What recovered takes its own question away.
#[test]
fn a_question_goes_when_the_recovery_succeeds() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let status = || bus.relay("", ["status"]).success().result()["questions"].clone();
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_SUSPENDED");
    bus.relay("BlueLake", ["recover", "AGENT_SUSPENDED"]).success();
    assert_eq!(status().as_array().unwrap().len(), 1);
    let debt = bus.relay("", ["look", "debt"]).success().result();
    assert_eq!(debt["debt"][0]["kind"], "decision", "{debt}");
    bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success();
    bus.relay("BlueLake", ["recover", "AGENT_SUSPENDED"]).success();
    assert_eq!(status(), Value::Null);
}

#[test]
fn a_project_that_nobody_started_in_is_begun_by_its_playbook() {
    let bus = Bus::new();
    let args = ["recover", "AGENT_NOT_REGISTERED", "--set", "name=BlueLake", "--yes"];
    let result = bus.relay("BlueLake", args).success().result();
    assert_eq!(states(&result), ["done", "waits"], "nothing was kept, so the request is made again by its maker");
    bus.relay("BlueLake", ["poll"]).success();
}

#[test]
fn a_damaged_store_is_made_anew_with_one_command() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    std::fs::write(bus.store().join("relay.db"), "garbage".repeat(10_000)).unwrap();
    let error = bus.relay("BlueLake", ["poll"]).fails("STORE_DAMAGED").error();
    assert!(text(&error["message"]).contains("relay.db"), "{error}");
    let asked = bus.relay("BlueLake", ["recover", "STORE_DAMAGED"]).success();
    assert!(asked.stderr.contains("For the person in charge: The store in"), "{}", asked.stderr);
    let asked = asked.result();
    assert_eq!((&asked["state"], &asked["waits_for"]), (&json!("escalated"), &json!("person")));
    let result = bus.relay("BlueLake", ["recover", "STORE_DAMAGED", "--yes"]).success().result();
    assert_eq!(states(&result), ["already", "failed", "done", "waits"]);
    assert!(result["steps"][2]["result"]["kept"].is_string(), "what the rebuild says is passed on: {result}");
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

/// Whoever says yes is the person: nobody else is asked, and what is settled is not left lying about.
#[test]
fn a_yes_needs_no_question() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let damage = || std::fs::write(bus.store().join("relay.db"), "garbage".repeat(10_000)).unwrap();
    damage();
    let result = bus.relay("BlueLake", ["recover", "STORE_DAMAGED", "--yes"]).success().result();
    assert_eq!(result["steps"][2]["state"], "done", "{result}");
    bus.relay("", ["drain", "--wait"]).success();
    damage();
    bus.relay("BlueLake", ["recover", "STORE_DAMAGED"]).success();
    bus.relay("BlueLake", ["recover", "STORE_DAMAGED", "--yes"]).success();
    assert!(!bus.relay("", ["status"]).success().stdout.contains("questions"), "it is settled");
}

#[test]
fn values_are_given_by_name_and_are_what_the_name_says() {
    let bus = Bus::with(&["BlueLake"]);
    let refused = |code: &str, set: &str, why: &str| {
        let error = bus.relay("BlueLake", ["recover", code, "--dry-run", "--set", set]).fails("INPUT_INVALID").error();
        assert!(text(&error["message"]).contains(why), "{set}: {error}");
    };
    refused("CONTACT_REQUIRED", "ask", "NAME=VALUE");
    refused("CONTACT_REQUIRED", "whom=RedForest", "ask, must_answer");
    refused("CONTACT_REQUIRED", "ask=Red Forest", "names of agents");
    refused("CONTACT_REQUIRED", "ask=--help", "names of agents");
    refused("HOLDER_ALIVE", "id=twelve", "no number");
    let thread = ["recover", "THREAD_NOT_FOUND", "--dry-run", "--set", "thread=a b"];
    bus.relay("BlueLake", thread).fails("THREAD_ID_INVALID");
    refused("STORE_FULL", "path=a\nb", "control characters");
    let bare = bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED"]).fails("INPUT_INVALID").error();
    assert!(text(&bare["message"]).contains("--set NAME=VALUE: ask"), "{bare}");
}

/// The two classes that `send` heals by itself: the same steps, and the answer says so.
#[test]
fn what_send_heals_by_itself_is_what_the_playbook_would_have_done() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let bare = [letter("RedForest").as_slice(), &["--no-recover"]].concat();
    let error = bus.relay("BlueLake", bare).fails("CONTACT_REQUIRED").error();
    let before = bus.tip();
    let sent = bus.relay("BlueLake", letter("RedForest")).success();
    assert_eq!(sent.signals(), ["RECOVERED"]);
    assert!(
        text(&sent.json()["signals"][0]["text"]).contains(&text(&error["playbook"][0]["after"])),
        "{}",
        sent.stdout
    );
    let kinds: Vec<Value> = bus.events(before).iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 1], "message_sent");
    let dry = bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED", "--dry-run"]).success().result();
    assert_eq!(states(&dry)[0], "already", "what its step makes true is true");
}

/// A person at the terminal is shown the steps and asked before each that is not safe without one.
#[test]
fn a_person_at_a_terminal_is_asked() {
    for (answer, expected) in [("n", "waits for a person"), ("y", "it went through")] {
        let bus = Bus::with(&["BlueLake"]);
        bus.relay("BlueLake", ["retire"]).success();
        bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_RETIRED");
        let mut command = Command::new("script");
        bus.environment(&mut command);
        let line = format!("'{RELAY}' recover AGENT_RETIRED --agent BlueLake");
        command.env("TERM", "xterm").args(["-qec", &line, "/dev/null"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.take().unwrap(), "{answer}").unwrap();
        let shown = String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned();
        assert!(shown.contains("Run it? [y/N]") && shown.contains(expected), "{answer}: {shown}");
        assert_eq!(bus.relay("", ["reservations"]).success().result()["total"], u64::from(answer == "y"));
    }
}

#[test]
fn people_see_what_became_of_each_step() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_RETIRED");
    let waits = bus.text("BlueLake", ["recover", "AGENT_RETIRED"]).success().stdout;
    assert!(waits.contains("waits for a person") && waits.contains("1. [waits] revive BlueLake"), "{waits}");
    let done = bus.text("BlueLake", ["recover", "AGENT_RETIRED", "--yes"]).success().stdout;
    assert!(done.contains("1. [done] revive BlueLake") && done.contains("it went through"), "{done}");
}
