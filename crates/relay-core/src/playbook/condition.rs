//! What must be true after a step, with its values filled in.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Something that can be looked at before a step and after it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The agent is registered and active.
    Active(String),
    /// The call speaks for a registered, active agent.
    Acting(bool),
    /// The agent is bound to the session.
    Bound {
        agent: String,
        session: String,
    },
    /// The caller has asked for contact, or has it.
    Asked(String),
    /// The caller has contact.
    Linked(String),
    /// The caller does not block the agent.
    Unblocked(String),
    /// The caller holds every one of these patterns, for itself alone unless sharing will do.
    Held {
        #[serde(deserialize_with = "one_or_many")]
        patterns: Vec<String>,
        #[serde(default, deserialize_with = "said")]
        shared: bool,
    },
    /// There is such a thread.
    Thread(String),
    /// The caller has written to somebody in a thread.
    Written {
        to: String,
        thread: String,
    },
    /// None of these waits for the caller, directly or through others.
    Apart(#[serde(deserialize_with = "one_or_many")] Vec<String>),
    /// The human has a question of the caller in this thread, and has not answered it.
    Asks(String),
    /// A question of this name lies beside the store.
    Noted(String),
    Archive(State),
    Store(State),
    /// The server that has the stores lets the caller in.
    Server(State),
    /// This credential lies on the machine.
    Credential(String),
}

/// A list, also where one value stands for it.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Given::deserialize(deserializer)? {
        Given::One(value) => vec![value],
        Given::Many(values) => values,
    })
}

/// A flag, also where its name stands for it.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Value::deserialize(deserializer)? != Value::Bool(false))
}

/// What a store or an archive can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Whole, and what its history says.
    Sound,
    /// It takes what is written.
    Writable,
    /// Nothing is behind.
    Current,
    /// It answers.
    Reachable,
}

impl Condition {
    /// From what stands in a file, with its values filled in.
    pub fn read(name: &str, value: Value) -> Option<Condition> {
        let mut tagged = serde_json::Map::new();
        tagged.insert(name.to_owned(), value);
        serde_json::from_value(Value::Object(tagged)).ok()
    }

    /// As a sentence without its full stop.
    pub fn tell(&self) -> String {
        match self {
            Condition::Active(name) => format!("{name} is active"),
            Condition::Acting(_) => "the call speaks for a registered agent".to_owned(),
            Condition::Bound { agent, session } => format!("{agent} is bound to session {session}"),
            Condition::Asked(name) => format!("{name} was asked for contact"),
            Condition::Linked(name) => format!("contact with {name} is accepted"),
            Condition::Unblocked(name) => format!("you do not block {name}"),
            Condition::Held { patterns, .. } => format!("you hold {}", patterns.join(", ")),
            Condition::Thread(thread) => format!("there is a thread {thread}"),
            Condition::Written { to, thread } => format!("{to} has a message of yours in {thread}"),
            Condition::Apart(names) => format!("nobody of {} waits for you", names.join(", ")),
            Condition::Asks(thread) => format!("the human has the question in {thread}"),
            Condition::Noted(_) => "the question lies beside the store".to_owned(),
            Condition::Archive(State::Current) => "the archive has every event".to_owned(),
            Condition::Archive(State::Writable) => "the archive can be written".to_owned(),
            Condition::Archive(State::Sound | State::Reachable) => "the archive is what the store says".to_owned(),
            Condition::Store(State::Writable) => "the store takes what is written".to_owned(),
            Condition::Store(_) => "the store is whole".to_owned(),
            Condition::Server(_) => "the server lets the caller in".to_owned(),
            Condition::Credential(name) => format!("the credential of the {name} is on this machine"),
        }
    }
}
