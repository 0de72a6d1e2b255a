//! Nobody writes in somebody else's name: whatever is tried in whichever order, an agent acts for the credential that registered
//! it and for no other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::bus::Bus;
use crate::effort;
use crate::listening::{Server, token};
use crate::terminal::text;

/// Which token calls which tool as which agent, and how it pretends to be another.
type Try = (usize, usize, usize, usize);

const AGENTS: usize = 4;

/// Calls that act as somebody; the first registers.
fn call(which: usize, to: &str) -> (&'static str, Value) {
    match which {
        0 => ("start", json!({})),
        1 => ("prepare", json!({"thread": "bd-1"})),
        2 => ("send", json!({"to": [to], "subject": "Login", "body": "b", "thread": "bd-1"})),
        3 => ("reserve", json!({"patterns": ["src/**"]})),
        4 => ("release", json!({"all": true})),
        5 => ("poll", json!({"bodies": true, "read": true})),
        6 => ("link", json!({"target": to})),
        _ => ("start", json!({"take_over": true, "session": "stolen"})),
    }
}

/// Arguments that say who one is in other words; no tool takes them.
const FORGERIES: [&str; 5] = ["sender", "credential", "actor", "as", "on_behalf_of"];

#[test]
fn an_agent_acts_for_the_credential_that_registered_it_and_for_no_other() {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let tokens = [server.token.clone(), token(&bus, "guest", &["--separate"]), token(&bus, "other", &["--separate"])];
    // Tells the agents of one case from those of another.
    let case = AtomicU32::new(0);
    let tries = prop::collection::vec((0..tokens.len(), 0..AGENTS, 0..8_usize, 0..8_usize), 1..25);
    let mut runner = TestRunner::new(Config {
        cases: effort::times(12).try_into().unwrap(),
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&tries, |tries| {
            let number = case.fetch_add(1, Ordering::Relaxed);
            play(&bus, &server, &tokens, number, &tries)
        })
        .unwrap();
}

fn play(bus: &Bus, server: &Server<'_>, tokens: &[String], case: u32, tries: &[Try]) -> Result<(), TestCaseError> {
    let mut owners: HashMap<String, usize> = HashMap::new();
    for (caller, agent, which, forgery) in tries {
        let name = format!("Agent{case}x{agent}");
        let (tool, arguments) = call(*which, "Reader");
        let before = bus.tip();
        if let Some(forged) = FORGERIES.get(*forgery) {
            let mut forging = arguments.clone();
            forging[*forged] = json!("Reader");
            let answer = server.call_with(&tokens[*caller], &name, tool, forging);
            prop_assert_eq!(text(&answer["error"]["code"]), "INPUT_INVALID", "{}", answer);
            prop_assert_eq!(bus.tip(), before);
        }
        let answer = server.call_with(&tokens[*caller], &name, tool, arguments);
        match (owners.get(&name), answer["ok"] == true) {
            (Some(owner), true) => prop_assert_eq!(owner, caller, "{} as {}: {}", tool, name, answer),
            (None, true) => {
                prop_assert!(["start", "prepare"].contains(&tool), "{} as {}, who is nobody: {}", tool, name, answer);
                owners.insert(name.clone(), *caller);
            }
            (Some(owner), false) if owner != caller => {
                let code = text(&answer["error"]["code"]);
                prop_assert!(["IDENTITY_MISMATCH", "AGENT_NAME_TAKEN"].contains(&code.as_str()), "{}", answer);
                prop_assert_eq!(bus.tip(), before, "a refused forgery changes nothing");
            }
            _ => {}
        }
    }
    for event in bus.events(0) {
        let actor = text(&event["actor"]);
        let is_of_this_case = actor.starts_with(&format!("Agent{case}x"));
        prop_assert!(!is_of_this_case || owners.contains_key(&actor), "{actor} did something and was never registered");
    }
    Ok(())
}
