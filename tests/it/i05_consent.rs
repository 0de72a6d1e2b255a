//! I5: delivery respects the recipient's policy; a missing handshake and a block are different answers.

use serde_json::json;

use crate::bus::{Bus, days, hours};
use crate::terminal::{column, text};

/// What sender and recipient share at the moment of the send.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Context {
    Nothing,
    Link,
    Thread,
    Claims,
    RecipientWrote,
    Reply,
}

const CONTEXTS: [Context; 6] =
    [Context::Nothing, Context::Link, Context::Thread, Context::Claims, Context::RecipientWrote, Context::Reply];

/// BlueLake will write to RedForest; returns the flags that the context needs. Nothing else connects the two.
fn set_up(bus: &Bus, context: Context) -> Vec<String> {
    // The sender's door is open, so that being written to makes no link.
    bus.relay("BlueLake", ["policy", "open"]).success();
    let flags = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect();
    match context {
        Context::Nothing => {}
        Context::Link => {
            bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
        }
        Context::Thread => {
            bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
            bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success();
            return flags(&["--thread", "bd-1"]);
        }
        Context::Claims => {
            bus.relay("BlueLake", ["reserve", "src/**", "--shared"]).success();
            bus.relay("RedForest", ["reserve", "src/a.rs", "--shared"]).success();
        }
        Context::RecipientWrote => {
            bus.send("RedForest", "BlueLake", "bd-2", "Login");
        }
        Context::Reply => {
            let id = bus.send("RedForest", "BlueLake", "bd-3", "Login").to_string();
            bus.relay("BlueLake", ["leave", "bd-3"]).success();
            bus.advance(hours(25));
            return flags(&["--reply-to", &id]);
        }
    }
    Vec::new()
}

fn letter(flags: &[String]) -> Vec<String> {
    let mut args: Vec<String> =
        ["send", "--to", "RedForest", "--subject", "Hello", "--body", "text", "--no-recover"].map(str::to_owned).into();
    args.extend(flags.iter().cloned());
    args
}

#[test]
fn each_policy_takes_mail_from_whom_it_says() {
    for policy in ["open", "auto", "contacts_only", "block_all"] {
        for context in CONTEXTS {
            let bus = Bus::with(&["BlueLake", "RedForest"]);
            let flags = set_up(&bus, context);
            bus.relay("RedForest", ["policy", policy]).success();
            let expected = match (policy, context) {
                ("block_all", _) => Err("CONTACT_BLOCKED"),
                ("open", _) | (_, Context::Link) => Ok(()),
                ("auto", Context::Nothing) | ("contacts_only", _) => Err("CONTACT_REQUIRED"),
                _ => Ok(()),
            };
            let tip = bus.tip();
            let sent = bus.relay("BlueLake", letter(&flags));
            match expected {
                Ok(()) => assert_eq!(sent.success().result()["message"]["recipients"][0]["state"], "stored"),
                Err(code) => {
                    sent.fails(code);
                    assert_eq!(bus.tip(), tip, "{policy} {context:?}");
                }
            }
        }
    }
}

#[test]
fn having_been_written_to_counts_for_a_day_and_claims_while_they_live() {
    for (context, life) in [(Context::RecipientWrote, hours(24)), (Context::Claims, hours(1) - 1)] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let flags = set_up(&bus, context);
        bus.advance(life);
        let mut dry = letter(&flags);
        dry.extend(["--cc".to_owned(), "Nobody".to_owned()]);
        let rows = |run: crate::bus::Run| column(&run.error()["details"]["recipients"], "name");
        // A send that fails for another reason shows who could have been reached without reaching anybody.
        assert_eq!(rows(bus.relay("BlueLake", &dry)), ["Nobody"], "{context:?}");
        bus.advance(1);
        assert_eq!(rows(bus.relay("BlueLake", &dry)), ["Nobody", "RedForest"], "{context:?}");
        bus.relay("BlueLake", letter(&flags)).fails("CONTACT_REQUIRED");
    }
}

#[test]
fn a_block_and_a_retirement_beat_every_context() {
    for context in CONTEXTS {
        for (agent, args, reason) in [
            ("RedForest", ["link", "--target", "BlueLake", "--block"].as_slice(), "blocked"),
            // A block is directed, and stops the blocker's own mail too.
            ("BlueLake", &["link", "--target", "RedForest", "--block"], "blocked"),
            ("RedForest", &["retire"], "retired"),
            ("BlueLake", &["suspend", "RedForest"], "suspended"),
        ] {
            let bus = Bus::with(&["BlueLake", "RedForest"]);
            let flags = set_up(&bus, context);
            bus.relay(agent, args).success();
            let error = bus.relay("BlueLake", letter(&flags)).fails("CONTACT_BLOCKED").error();
            assert_eq!(error["details"]["recipients"][0]["reason"], reason, "{context:?}");
        }
    }
}

#[test]
fn no_policy_consents_for_an_agent_that_is_gone() {
    for (agent, args, reason) in
        [("RedForest", ["retire"].as_slice(), "retired"), ("BlueLake", &["suspend", "RedForest"], "suspended")]
    {
        for policy in ["auto", "open"] {
            let bus = Bus::with(&["BlueLake", "RedForest"]);
            bus.relay("RedForest", ["policy", policy]).success();
            bus.relay(agent, args).success();
            let tip = bus.tip();
            let error = bus.relay("BlueLake", ["link", "--target", "RedForest"]).fails("CONTACT_BLOCKED").error();
            assert_eq!((text(&error["details"]["recipients"][0]["reason"]), bus.tip()), (reason.into(), tip));
        }
    }
}

#[test]
fn ones_own_block_is_lifted_by_the_step_that_the_error_prints() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--block"]).success();
    let error = bus.relay("BlueLake", letter(&[])).fails("CONTACT_BLOCKED").error();
    assert_eq!(error["playbook"][0]["unattended"], false);
    bus.step(&error["playbook"][0]).success();
    // What is left is a link that was revoked, and after a revoke there is a handshake.
    bus.relay("BlueLake", letter(&[])).fails("CONTACT_REQUIRED");
    // Somebody else's block has no such step.
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    let error = bus.relay("BlueLake", letter(&[])).fails("CONTACT_BLOCKED").error();
    let steps = error["playbook"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["tool"] != "link"), "{error}");
    assert_eq!(steps[0]["args"]["to"], json!(["human"]), "escalate or reroute: {error}");
}

#[test]
fn auto_is_standing_consent_and_is_recorded_as_such() {
    for policy in ["auto", "open"] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", policy]).success();
        let link = bus.relay("BlueLake", ["link", "--target", "RedForest"]).success().result()["link"].clone();
        assert_eq!((text(&link["state"]), link["by_policy"].as_bool()), ("accepted".into(), Some(true)));
        let accepted = bus.events(0).into_iter().find(|event| event["kind"] == "link_accepted").unwrap();
        assert_eq!(
            (text(&accepted["data"]["by"]), accepted["data"]["by_policy"].as_bool()),
            ("RedForest".into(), Some(true))
        );
        assert_eq!(link["id"], accepted["data"]["link"]);
    }
}

#[test]
fn after_a_revoke_the_next_request_waits() {
    for (agent, other) in [("RedForest", "BlueLake"), ("BlueLake", "RedForest")] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let state = |args: &[&str]| text(&bus.relay("BlueLake", args).success().result()["link"]["state"]);
        assert_eq!(state(&["link", "--target", "RedForest"]), "accepted");
        bus.relay(agent, ["link", "--target", other, "--revoke"]).success();
        bus.relay("BlueLake", letter(&[])).fails("CONTACT_REQUIRED");
        assert_eq!(state(&["link", "--target", "RedForest"]), "requested");
        bus.relay("BlueLake", letter(&[])).fails("CONTACT_PENDING");
        bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
        bus.relay("BlueLake", letter(&[])).success();
    }
}

#[test]
fn under_contacts_only_a_request_waits_for_the_recipient_or_the_human() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let asked = bus.relay("BlueLake", ["link", "--target", "RedForest", "--why", "We share auth"]).success().result();
    assert_eq!(asked["link"]["state"], "requested");
    // The same request again is the same request.
    assert_eq!(
        bus.relay("BlueLake", ["link", "--target", "RedForest"]).success().result()["link"]["id"],
        asked["link"]["id"]
    );
    bus.relay("BlueLake", letter(&[])).fails("CONTACT_PENDING");
    let situation = bus.relay("RedForest", ["start"]).success();
    assert_eq!(situation.result()["contacts_waiting"][0]["from"], "BlueLake");
    assert!(situation.signals().contains(&"CONTACT_WAITING".to_owned()));

    // Nobody accepts for somebody else, and nobody accepts the own request.
    bus.relay("GreenHill", ["link", "--target", "RedForest", "--accept"]).fails("LINK_NOT_FOUND");
    bus.relay("GreenHill", ["link", "--target", "BlueLake", "--accept"]).fails("LINK_NOT_FOUND");
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--accept"]).fails("LINK_NOT_FOUND");

    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["link", "--target", "RedForest", "--accept"]).success();
    bus.relay("BlueLake", letter(&[])).success();
    let accepted = bus.events(0).into_iter().find(|event| event["kind"] == "link_accepted").unwrap();
    assert_eq!((text(&accepted["actor"]), accepted["data"]["by_policy"].as_bool()), ("human".into(), Some(false)));
}

#[test]
fn an_accepted_link_is_mutual_and_asking_back_is_consent() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["policy", "contacts_only"]).success();
    }
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    let back = bus.relay("RedForest", ["link", "--target", "BlueLake"]).success().result();
    assert_eq!(back["link"]["state"], "accepted");
    bus.relay("BlueLake", letter(&[])).success();
    bus.send("RedForest", "BlueLake", "bd-1", "Login");
}

#[test]
fn a_revoke_is_not_outwaited() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let ask = |flags: &[&str]| {
        let args = [&["link", "--target", "RedForest"], flags].concat();
        text(&bus.relay("BlueLake", args).success().result()["link"]["state"])
    };
    assert_eq!(ask(&[]), "accepted", "by policy");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--revoke"]).success();
    for _ in 0..3 {
        assert_eq!(ask(&["--ttl", "60s"]), "requested");
        bus.advance(61_000);
    }
    bus.relay("BlueLake", ["send", "--to", "RedForest", "--subject", "Hi", "--body", "text"]).fails("CONTACT_REQUIRED");
    // From the other side too: what was decided was decided about both.
    let back = bus.relay("RedForest", ["link", "--target", "BlueLake", "--ttl", "60s"]).success().result();
    assert_eq!(back["link"]["state"], "requested");
    bus.advance(61_000);
    assert_eq!(ask(&["--ttl", "60s"]), "requested");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    bus.advance(61_000);
    assert_eq!(ask(&[]), "accepted", "an acceptance makes a revoke good, also after it lapsed");
}

#[test]
fn a_link_lives_for_its_time() {
    for (ttl, life) in [("2h", hours(2)), ("7d", days(7))] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", "contacts_only"]).success();
        bus.relay("BlueLake", ["link", "--target", "RedForest", "--ttl", ttl]).success();
        bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
        bus.advance(life - 1);
        bus.relay("BlueLake", letter(&[])).success();
        bus.relay("RedForest", ["poll"]).success();
        bus.advance(1);
        bus.relay("BlueLake", letter(&[])).fails("CONTACT_REQUIRED");
    }
}

#[test]
fn first_contact_just_works_and_says_so() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let tip = bus.tip();
    let bare = letter(&[]);
    let error = bus.relay("BlueLake", &bare).fails("CONTACT_REQUIRED").error();
    assert_eq!((error["retryable"].as_bool(), bus.tip()), (Some(true), tip), "--no-recover shows the bare error");
    let healed = bus.relay("BlueLake", &bare[..bare.len() - 1]).success();
    assert!(healed.signals().contains(&"RECOVERED".to_owned()));
    // It tells what was done, and orders nothing.
    let told =
        "CONTACT_REQUIRED on the first try of send: RedForest was asked for contact, and the second went through";
    assert_eq!(healed.json()["signals"][0]["text"], told);
    assert_eq!(bus.kinds(tip), ["link_requested", "link_accepted", "message_sent"]);
    let again = bus.relay("BlueLake", &bare[..bare.len() - 1]).success();
    assert!(!again.signals().contains(&"RECOVERED".to_owned()), "there is nothing left to heal");
}

#[test]
fn what_needs_an_answer_is_not_healed() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let tip = bus.tip();
    let args = ["send", "--to", "RedForest,GreenHill", "--subject", "Hello", "--body", "text"];
    let error = bus.relay("BlueLake", args).fails("CONTACT_REQUIRED").error();
    assert_eq!(bus.tip(), tip, "a failed send asked nobody and delivered nothing");
    let steps = error["playbook"].as_array().unwrap();
    let unattended: Vec<bool> = steps.iter().map(|step| step["unattended"].as_bool().unwrap()).collect();
    assert_eq!(unattended, [true, true, false, true], "ask both, wait for RedForest, again: {error}");
}

#[test]
fn the_human_is_outside_policies_and_cannot_be_blocked() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    bus.relay("RedForest", ["policy", "block_all"]).success();
    bus.relay("human", ["send", "--to", "RedForest", "--subject", "Stop", "--body", "text"]).success();
    assert_eq!(bus.inbox("RedForest").len(), 1);
    for action in ["--block", "--revoke", "--accept"] {
        bus.relay("RedForest", ["link", "--target", "human", action]).fails("INPUT_INVALID");
    }
    bus.relay("RedForest", ["send", "--to", "human", "--subject", "Why?", "--body", "text"]).success();
}
