//! Whether the store is what the model says.

use std::collections::{BTreeMap, BTreeSet};

use relay_core::domain::agent::Standing;
use relay_core::domain::delivery::State;
use relay_core::domain::name::{AgentName, Party, ThreadId};
use relay_core::domain::time::Timestamp;
use relay_core::store::{EventQuery, Facts, InboxQuery, Presence, Store};
use serde_json::Value;

use super::paths;
use super::state::{AGENTS, Copy, Model, Who};

/// Everything that the model expects of an answer is in it. An empty list may be left out.
pub fn answer(actual: &Value, expected: &Value) -> Result<(), String> {
    match (actual, expected) {
        (Value::Object(actual), Value::Object(expected)) => expected.iter().try_for_each(|(name, expected)| {
            let found = actual.get(name).unwrap_or(&Value::Null);
            answer(found, expected).map_err(|fault| format!(".{name}{fault}"))
        }),
        (Value::Array(actual), Value::Array(expected)) if actual.len() == expected.len() => {
            actual.iter().zip(expected).enumerate().try_for_each(|(index, (actual, expected))| {
                answer(actual, expected).map_err(|fault| format!("[{index}]{fault}"))
            })
        }
        (Value::Null, Value::Array(expected)) if expected.is_empty() => Ok(()),
        _ if actual == expected => Ok(()),
        _ => Err(format!(": {actual} instead of {expected}")),
    }
}

/// A conflict names a path, and both patterns match it.
pub fn examples(answer: &Value) {
    for conflict in answer["conflicts"].as_array().into_iter().flatten() {
        let text = |name: &str| conflict[name].as_str().unwrap();
        for pattern in [text("pattern"), text("overlaps")] {
            assert!(paths::matches(pattern, text("example")), "{conflict}");
        }
    }
}

/// The events of the last step: exactly these kinds, with the next numbers.
pub fn history(facts: &dyn Facts, model: &Model) {
    let last = model.last.as_ref().unwrap();
    assert_eq!(facts.tip().unwrap().number, model.tip, "the newest event; expected {:?}", last.kinds);
    let events = facts.events(&EventQuery::between(last.tip_before, u64::MAX)).unwrap();
    let kinds: Vec<&str> = events.iter().map(|event| event.payload.what.kind()).collect();
    assert_eq!(kinds, last.kinds);
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (last.tip_before + 1..=model.tip).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event.payload.at.millis() == model.now));
}

/// What changes with almost every step.
pub fn state(store: &dyn Store, facts: &dyn Facts, model: &Model) {
    agents(store.presence(), facts, model);
    claims(facts, model);
    links(facts, model);
    for agent in &model.agents {
        let unread = model.unread(agent.name);
        assert_eq!(facts.unread(&party(agent.name), 1_000).unwrap(), unread, "unread of {}", agent.name);
        let expected: Vec<u64> = inbox_of(model, agent.name, false).map(|(id, _)| id).collect();
        assert_eq!(inbox(facts, agent.name, false), expected, "inbox of {}", agent.name);
    }
}

/// The rest, which costs more to look at.
pub fn everything(facts: &dyn Facts, model: &Model) {
    for agent in &model.agents {
        let expected: Vec<u64> = inbox_of(model, agent.name, true).map(|(id, _)| id).collect();
        assert_eq!(inbox(facts, agent.name, true), expected, "all mail of {}", agent.name);
        let held: BTreeSet<(u64, String)> =
            facts.held_of(&party(agent.name)).unwrap().into_iter().map(|(id, to)| (id, to.to_string())).collect();
        let expected = model.held_of(agent.name).into_iter().map(|(id, to)| (id, to.to_owned())).collect();
        assert_eq!(held, expected, "held mail of {}", agent.name);
    }
    for message in &model.messages {
        let found = facts.message(message.id).unwrap().unwrap();
        assert_eq!(found.from.to_string(), message.from, "#{}", message.id);
        let found: BTreeMap<String, _> = found
            .deliveries
            .iter()
            .map(|copy| (copy.recipient.to_string(), (copy.line, copy.state(), copy.delivered_by)))
            .collect();
        let expected =
            message.copies.iter().map(|copy| (copy.to.to_owned(), (copy.line, state_of(copy), copy.by))).collect();
        assert_eq!(found, expected, "the copies of #{}", message.id);
    }
    for (key, thread) in &model.threads {
        let found = facts.thread(&ThreadId::parse(key).unwrap()).unwrap().unwrap();
        assert_eq!(
            (found.id.to_string(), found.messages, found.done),
            (thread.id.clone(), thread.messages, thread.done)
        );
        let members: BTreeSet<String> = facts.members(&found.id).unwrap().iter().map(ToString::to_string).collect();
        let expected: BTreeSet<String> = thread.members.iter().map(ToString::to_string).collect();
        assert_eq!(members, expected, "the members of {key}");
    }
}

fn party(who: Who) -> Party {
    Party::Agent(AgentName::parse(who).unwrap())
}

fn state_of(copy: &Copy) -> State {
    match copy {
        Copy { acked: Some(_), .. } => State::Acked,
        Copy { read: Some(_), .. } => State::Read,
        Copy { surfaced: Some(_), .. } => State::Surfaced,
        Copy { by: Some(_), .. } => State::Stored,
        Copy { lapsed: true, .. } => State::Lapsed,
        _ => State::Held,
    }
}

fn inbox_of(model: &Model, who: Who, with_read: bool) -> impl Iterator<Item = (u64, &Copy)> {
    let inbox = model.inbox(who).into_iter().map(|(_, message, copy)| (message.id, copy));
    inbox.filter(move |(_, copy)| with_read || copy.read.is_none())
}

fn inbox(facts: &dyn Facts, who: Who, with_read: bool) -> Vec<u64> {
    let query = InboxQuery {
        recipient: &party(who),
        after: 0,
        thread: None,
        from: None,
        urgent: false,
        with_read,
        never_surfaced: false,
        limit: 10_000,
        bodies: false,
    };
    facts.inbox(&query).unwrap().iter().map(|message| message.id).collect()
}

fn agents(presence: &dyn Presence, facts: &dyn Facts, model: &Model) {
    let now = Timestamp::from_millis(model.now);
    let found: Vec<_> = facts
        .agents()
        .unwrap()
        .into_iter()
        .map(|agent| {
            let seen = agent.seen_at(presence.seen(&agent.name), now);
            let state = agent.state(seen, now);
            let thread = agent.thread.as_ref().map(ThreadId::key);
            (agent.name.to_string(), state, agent.policy, agent.session, thread, seen.millis())
        })
        .collect();
    let expected: Vec<_> = model
        .agents
        .iter()
        .map(|agent| {
            let state = match model.standing(agent) {
                super::state::Standing::Active => Standing::Active,
                super::state::Standing::Suspended => Standing::Suspended,
                super::state::Standing::Retired => Standing::Retired,
            };
            (agent.name.to_owned(), state, agent.policy, agent.session.clone(), agent.thread.clone(), agent.seen)
        })
        .collect();
    assert_eq!(found, expected);
}

fn claims(facts: &dyn Facts, model: &Model) {
    let now = Timestamp::from_millis(model.now);
    let found: Vec<_> = facts
        .claims()
        .unwrap()
        .into_iter()
        .filter(|claim| claim.is_live(now))
        .map(|claim| {
            let reason = claim.reason.as_ref().map(ThreadId::key);
            let holder = claim.holder.to_string();
            (claim.id, holder, claim.pattern, claim.exclusive, reason, claim.expires_at.millis(), claim.generation)
        })
        .collect();
    let expected: Vec<_> = model
        .live()
        .map(|claim| {
            let reason = claim.reason.as_ref().map(|reason| reason.to_ascii_lowercase());
            let (holder, pattern) = (claim.holder.to_owned(), claim.pattern.clone());
            (claim.id, holder, pattern, claim.exclusive, reason, claim.expires, claim.generation)
        })
        .collect();
    assert_eq!(found, expected);
}

fn links(facts: &dyn Facts, model: &Model) {
    let now = Timestamp::from_millis(model.now);
    for (index, one) in AGENTS.iter().enumerate() {
        for other in &AGENTS[index + 1..] {
            let found = facts.link(&party(one), &party(other)).unwrap();
            let found = found.map(|link| (link.id, format!("{:?}", link.state(now)), link.from.to_string()));
            let expected = model.link(one, other);
            let expected =
                expected.map(|link| (link.id, format!("{:?}", model.link_state(link)), link.from.to_owned()));
            assert_eq!(found, expected, "the link between {one} and {other}");
        }
    }
}
