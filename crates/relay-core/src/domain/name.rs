//! Names that people and agents choose: agents, threads, projects, and the addresses built from them.
//!
//! Each is parsed once at the edge; a function that takes one has nothing left to check.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::event::hex;

/// Names with a meaning of their own; nobody may register them.
pub const RESERVED: [&str; 4] = ["human", "relay", "all", "thread"];

/// The person in charge.
pub const HUMAN: &str = "human";

/// The bus itself, as the sender of notices.
pub const RELAY: &str = "relay";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("{name:?} has a length of {count}; a name has 2 to 64 characters")]
    Length { name: String, count: usize },
    #[error("{name:?} does not start with a letter")]
    FirstLetter { name: String },
    #[error("{name:?} has the character {found:?}; letters, digits, `_` and `-` are allowed")]
    Character { name: String, found: char },
    #[error("`{name}` is reserved; an agent has a name of its own")]
    Reserved { name: String },
}

/// An agent's name, as it was first written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    pub fn parse(name: &str) -> Result<Self, NameFault> {
        let owned = || name.to_owned();
        let count = name.chars().count();
        if let Some(found) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')) {
            return Err(NameFault::Character { name: owned(), found });
        }
        if !(2..=64).contains(&count) {
            return Err(NameFault::Length { name: owned(), count });
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(NameFault::FirstLetter { name: owned() });
        }
        if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
            return Err(NameFault::Reserved { name: owned() });
        }
        Ok(AgentName(owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form under which names are unique.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    pub fn same_as(&self, other: &AgentName) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl TryFrom<String> for AgentName {
    type Error = NameFault;
    fn try_from(name: String) -> Result<Self, NameFault> {
        AgentName::parse(&name)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> String {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadFault {
    #[error("{id:?} has a length of {count}; a thread id has 1 to 128 characters")]
    Length { id: String, count: usize },
    #[error("{id:?} does not start with a letter or digit")]
    First { id: String },
    #[error("{id:?} has the character {found:?}; letters, digits, `.`, `_`, `#` and `-` are allowed")]
    Character { id: String, found: char },
}

/// A thread's id, as it was first written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadId(String);

impl ThreadId {
    pub const MAX: usize = 128;

    pub fn parse(id: &str) -> Result<Self, ThreadFault> {
        let owned = || id.to_owned();
        if let Some(found) = id.chars().find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '#' | '-')) {
            return Err(ThreadFault::Character { id: owned(), found });
        }
        let count = id.chars().count();
        if !(1..=Self::MAX).contains(&count) {
            return Err(ThreadFault::Length { id: owned(), count });
        }
        if !id.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return Err(ThreadFault::First { id: owned() });
        }
        Ok(ThreadId(owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form under which ids are unique.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    pub fn same_as(&self, other: &ThreadId) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }

    /// Where a message from another project lands: `<project>.<thread>`, made to fit the rules of an id.
    pub fn of_other_project(project: &ProjectKey, thread: &ThreadId) -> Self {
        let mut prefix: String = project
            .basename()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '-' })
            .collect();
        if !prefix.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            prefix.insert(0, 'p');
        }
        prefix.truncate(Self::MAX / 2);
        let mut id = format!("{prefix}.{thread}");
        if id.len() > Self::MAX {
            // Two long ids must not become one when their ends are cut off.
            let digest = hex(&Sha256::digest(id.as_bytes()));
            id.truncate(Self::MAX - 9);
            id = format!("{id}-{}", &digest[..8]);
        }
        ThreadId(id)
    }
}

impl TryFrom<String> for ThreadId {
    type Error = ThreadFault;
    fn try_from(id: String) -> Result<Self, ThreadFault> {
        ThreadId::parse(&id)
    }
}

impl From<ThreadId> for String {
    fn from(id: ThreadId) -> String {
        id.0
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The absolute, cleaned path that names a project. Only the front that looked at the disk makes one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProjectKey(String);

impl ProjectKey {
    /// `path` is absolute and already cleaned and resolved.
    pub fn resolved(path: impl Into<String>) -> Self {
        ProjectKey(path.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn basename(&self) -> &str {
        self.0.rsplit('/').find(|part| !part.is_empty()).unwrap_or("root")
    }
}

impl fmt::Display for ProjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One side of a message or link: an agent of this project, one of another project, the human, or relay itself.
///
/// Its text is what events and answers hold: `BlueLake`, `BlueLake@/abs/path`, `human`, `relay`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Party {
    Agent(AgentName),
    Elsewhere(AgentName, ProjectKey),
    Human,
    Relay,
}

impl Party {
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Party::Agent(name) => Some(name),
            _ => None,
        }
    }

    /// Takes the new path of a project that was moved.
    pub fn follow(&mut self, from: &ProjectKey, to: &ProjectKey) {
        if let Party::Elsewhere(_, project) = self
            && project == from
        {
            *project = to.clone();
        }
    }

    pub fn is(&self, name: &AgentName) -> bool {
        self.agent().is_some_and(|own| own.same_as(name))
    }
}

impl TryFrom<String> for Party {
    type Error = NameFault;
    fn try_from(text: String) -> Result<Self, NameFault> {
        match text.as_str() {
            HUMAN => return Ok(Party::Human),
            RELAY => return Ok(Party::Relay),
            _ => {}
        }
        match text.split_once('@') {
            Some((name, project)) => Ok(Party::Elsewhere(AgentName::parse(name)?, ProjectKey::resolved(project))),
            None => AgentName::parse(&text).map(Party::Agent),
        }
    }
}

impl From<Party> for String {
    fn from(party: Party) -> String {
        party.to_string()
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Party::Agent(name) => write!(f, "{name}"),
            Party::Elsewhere(name, project) => write!(f, "{name}@{project}"),
            Party::Human => f.write_str(HUMAN),
            Party::Relay => f.write_str(RELAY),
        }
    }
}

impl From<AgentName> for Party {
    fn from(name: AgentName) -> Party {
        Party::Agent(name)
    }
}

/// Somebody as a caller writes it, before anyone looked whether that somebody exists.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Address {
    /// Any text: what is not a name is an unknown recipient with near names, not a spelling lesson.
    pub name: String,
    /// An absolute path, or the last part of one.
    pub project: Option<String>,
}

impl Address {
    pub fn parse(text: &str) -> Self {
        match text.split_once('@') {
            Some((name, project)) if !name.is_empty() => {
                Address { name: name.to_owned(), project: Some(project.to_owned()) }
            }
            _ => Address { name: text.to_owned(), project: None },
        }
    }

    pub fn is_human(&self) -> bool {
        self.project.is_none() && self.name.eq_ignore_ascii_case(HUMAN)
    }
}

impl From<String> for Address {
    fn from(text: String) -> Self {
        Address::parse(&text)
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.project {
            Some(project) => write!(f, "{}@{project}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_agent(name: &str, valid: bool) {
        assert_eq!(AgentName::parse(name).is_ok(), valid, "{name:?}");
    }

    #[test]
    fn an_agent_name_is_a_letter_then_letters_digits_dash_and_underscore() {
        for name in ["ab", "BlueLake", "a-", "a_1", "Z9", &"x".repeat(64)] {
            check_agent(name, true);
        }
        for name in [
            "",
            "a",
            &"x".repeat(65),
            "1a",
            "-a",
            "_a",
            "a b",
            "a\n",
            "a\u{7}",
            "caf\u{e9}",
            "😀😀",
            "..",
            "a/b",
            "a.b",
            "a@b",
        ] {
            check_agent(name, false);
        }
    }

    #[test]
    fn reserved_words_are_nobody_in_any_case() {
        for name in ["human", "Human", "RELAY", "all", "Thread"] {
            assert!(matches!(AgentName::parse(name), Err(NameFault::Reserved { .. })), "{name}");
        }
    }

    #[test]
    fn a_thread_id_starts_with_a_letter_or_digit() {
        for id in ["a", "1", "bd-123", "GH#12", "a.b_c-d", &"x".repeat(128)] {
            assert!(ThreadId::parse(id).is_ok(), "{id:?}");
        }
        for id in ["", ".a", "#1", "-x", "_x", "a b", "a/b", "a\t", "é", &"x".repeat(129)] {
            assert!(ThreadId::parse(id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_thread_of_another_project_is_a_valid_id() {
        let thread = ThreadId::parse("bd-1").unwrap_or_else(|fault| panic!("{fault}"));
        for (project, expected) in
            [("/srv/app", "app.bd-1"), ("/srv/my app", "my-app.bd-1"), ("/srv/.dot", "p-dot.bd-1"), ("/", "root.bd-1")]
        {
            let id = ThreadId::of_other_project(&ProjectKey::resolved(project), &thread);
            assert_eq!(id.as_str(), expected);
            assert!(ThreadId::parse(id.as_str()).is_ok());
        }
        let app = ProjectKey::resolved("/srv/app");
        let long = |end: &str| {
            let thread =
                ThreadId::parse(&format!("{}{end}", "t".repeat(127))).unwrap_or_else(|fault| panic!("{fault}"));
            ThreadId::of_other_project(&app, &thread)
        };
        assert_eq!(long("a").as_str().len(), 128);
        assert!(ThreadId::parse(long("a").as_str()).is_ok());
        assert_ne!(long("a"), long("b"));
    }

    #[test]
    fn an_address_splits_at_the_first_at_sign() {
        assert_eq!(Address::parse("Red"), Address { name: "Red".into(), project: None });
        assert_eq!(Address::parse("Red@/a/b@c").project.as_deref(), Some("/a/b@c"));
        assert_eq!(Address::parse("@thread").name, "@thread");
        assert!(Address::parse("Human").is_human());
        assert!(!Address::parse("human@/x").is_human());
    }

    #[test]
    fn a_party_reads_back_from_its_text() {
        for text in ["BlueLake", "BlueLake@/abs/path", "human", "relay"] {
            assert_eq!(Party::try_from(text.to_owned()).map(String::from), Ok(text.to_owned()));
        }
    }

    #[test]
    fn names_and_ids_are_the_same_without_regard_to_case_and_keep_their_spelling() {
        let agent = |text: &str| AgentName::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
        let thread = |text: &str| ThreadId::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
        let (blue, shouted) = (agent("BlueLake"), agent("BLUELAKE"));
        assert_eq!((blue.as_str(), blue.key().as_str(), shouted.key()), ("BlueLake", "bluelake", blue.key()));
        assert!(blue.same_as(&shouted) && !blue.same_as(&agent("BlueLakes")));
        let (task, same) = (thread("BD-1"), thread("bd-1"));
        assert_eq!((task.as_str(), task.key().as_str(), same.key()), ("BD-1", "bd-1", task.key()));
        assert!(task.same_as(&same) && !task.same_as(&thread("bd-2")));
        assert_eq!(ProjectKey::resolved("/srv/app").as_str(), "/srv/app");
    }

    #[test]
    fn only_an_agent_of_this_project_is_one_by_its_name() {
        let name = |text: &str| AgentName::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
        let party = |text: &str| Party::try_from(text.to_owned()).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(party("BlueLake").agent(), Some(&name("BlueLake")));
        assert!(party("BlueLake").is(&name("bluelake")) && !party("BlueLake").is(&name("RedForest")));
        for other in ["BlueLake@/srv/app", "human", "relay"] {
            assert_eq!(party(other).agent(), None, "{other}");
            assert!(!party(other).is(&name("BlueLake")), "{other}");
        }
    }

    #[test]
    fn an_address_reads_back_from_its_text() {
        for text in ["BlueLake", "BlueLake@/srv/app", "@thread", "not a name", ""] {
            let address = Address::parse(text);
            assert_eq!((address.to_string(), String::from(address)), (text.to_owned(), text.to_owned()));
        }
    }

    #[test]
    fn a_long_project_leaves_room_for_the_thread() {
        let thread = ThreadId::parse("bd-1").unwrap_or_else(|fault| panic!("{fault}"));
        let project = ProjectKey::resolved(format!("/srv/{}", "x".repeat(200)));
        let id = ThreadId::of_other_project(&project, &thread);
        assert_eq!(id.as_str(), format!("{}.bd-1", "x".repeat(64)));
        let just_fits = ThreadId::parse(&"t".repeat(124)).unwrap_or_else(|fault| panic!("{fault}"));
        let id = ThreadId::of_other_project(&ProjectKey::resolved("/srv/app"), &just_fits);
        assert_eq!(id.as_str(), format!("app.{just_fits}"), "nothing is cut off that fits");
    }
}
