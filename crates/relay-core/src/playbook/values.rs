//! The values that a person gives to a playbook: each is what its name says, or it is refused.

use serde_json::{Map, Value};

use super::file::Playbook;
use crate::domain::name::{Address, AgentName, ThreadId};
use crate::domain::pattern::Pattern;
use crate::error::{Code, Refusal};

/// No value that a playbook needs is longer.
const WORD_BYTES: usize = 512;

/// What stands behind a name in the details, wherever it stands.
#[derive(Clone, Copy)]
enum Kind {
    Agent,
    Agents,
    Number,
    Thread,
    Patterns,
    Pattern,
    Flag,
    /// A path, a session, a duration or an error class: one word of the machine's, without control characters.
    Word,
}

const KINDS: [(&str, Kind); 35] = [
    ("name", Kind::Agent),
    ("nearest", Kind::Agents),
    ("unknown", Kind::Agents),
    ("bound", Kind::Agent),
    ("variable", Kind::Agent),
    ("taken", Kind::Agent),
    ("writer", Kind::Agent),
    ("ask", Kind::Agents),
    ("must_answer", Kind::Agents),
    ("pending", Kind::Agents),
    ("blocked", Kind::Agents),
    ("own_blocks", Kind::Agents),
    ("holder", Kind::Agent),
    ("holders", Kind::Agents),
    ("taker", Kind::Agent),
    ("ring", Kind::Agents),
    ("id", Kind::Number),
    ("erases", Kind::Number),
    ("after", Kind::Number),
    ("archived", Kind::Number),
    ("thread", Kind::Thread),
    ("reason", Kind::Thread),
    ("patterns", Kind::Patterns),
    ("pattern", Kind::Pattern),
    ("path", Kind::Word),
    ("session", Kind::Word),
    ("ttl", Kind::Word),
    ("code", Kind::Word),
    ("shared", Kind::Flag),
    ("damaged", Kind::Flag),
    ("beside", Kind::Flag),
    ("served", Kind::Flag),
    ("token", Kind::Flag),
    ("place", Kind::Flag),
    ("elsewhere", Kind::Flag),
];

/// `NAME=VALUE`, each held to what its name stands for.
pub fn given(code: Code, playbook: &Playbook, set: &[String]) -> Result<Map<String, Value>, Refusal> {
    let names = playbook.names();
    let is_known = |name: &&str| code.details().contains(name) && KINDS.iter().any(|(known, _)| known == name);
    let known: Vec<&str> = names.iter().map(String::as_str).filter(is_known).collect();
    let mut values = Map::new();
    for setting in set {
        let Some((name, text)) = setting.split_once('=') else {
            return Err(Code::InputInvalid.refuse(format!("{setting:?} is not NAME=VALUE")));
        };
        let kind = KINDS.iter().find(|(known_as, _)| *known_as == name && known.contains(known_as));
        let Some((_, kind)) = kind else {
            let there_are = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let text = format!("the playbook of {code} has no value called {name:?}; it takes: {there_are}");
            return Err(Code::InputInvalid.refuse(text));
        };
        values.insert(name.to_owned(), kind.read(name, text)?);
    }
    Ok(values)
}

impl Kind {
    fn read(self, name: &str, text: &str) -> Result<Value, Refusal> {
        let wrong = |what: &str| Code::InputInvalid.refuse(format!("--set {name}={text:?}: {what}"));
        Ok(match self {
            Kind::Agent => agent(text).map(Value::from).ok_or_else(|| wrong("that is no agent's name"))?,
            Kind::Agents => {
                let names: Option<Vec<Value>> = text.split(',').map(|name| agent(name).map(Value::from)).collect();
                Value::Array(names.ok_or_else(|| wrong("these are names of agents, with commas between them"))?)
            }
            Kind::Number => text.parse::<u64>().map(Value::from).map_err(|_| wrong("that is no number"))?,
            Kind::Thread => ThreadId::parse(text).map(|id| Value::from(id.as_str())).map_err(Refusal::from)?,
            Kind::Pattern => pattern(text).ok_or_else(|| wrong("that is no pattern"))?,
            Kind::Patterns => {
                let patterns: Option<Vec<Value>> = text.split(',').map(pattern).collect();
                Value::Array(patterns.ok_or_else(|| wrong("these are patterns, with commas between them"))?)
            }
            Kind::Flag if text == "true" => Value::from(true),
            Kind::Flag => return Err(wrong("that is `true`, or left out")),
            Kind::Word => {
                if text.is_empty() || text.len() > WORD_BYTES || text.chars().any(char::is_control) {
                    return Err(wrong("that is 1 to 512 bytes without control characters"));
                }
                Value::from(text)
            }
        })
    }
}

/// An agent as it is addressed, here or in another project; the human too.
fn agent(text: &str) -> Option<String> {
    let address = Address::parse(text);
    (address.is_human() || AgentName::parse(&address.name).is_ok()).then(|| text.to_owned())
}

fn pattern(text: &str) -> Option<Value> {
    (text.len() <= WORD_BYTES && Pattern::parse(text, &[]).is_ok()).then(|| Value::from(text))
}
