//! The contract of `relay_core::store`, sentence by sentence, on every kind of store.
//!
//! A kind is a way to make an empty place and to open the store in it again and again, as other processes would. Each
//! test runs on all of them; a new kind is a row in `each`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

mod alone;
mod claims;
mod facts;
mod mail;
mod presence;
mod reading;
mod waits;
mod writing;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Number, Recipient, Text};
use relay_core::domain::limits::Limits;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, Store, Tx};
use relay_store::Home;
use tempfile::TempDir;

/// Somewhere to keep one project.
pub trait Place: Send + Sync {
    /// The store of the project, opened anew: what two of them share, they share through the place.
    fn open(&self) -> Box<dyn Store>;

    /// What another process needs to find the place: the kind's name and where it is.
    fn address(&self) -> String;
}

struct Sqlite {
    folder: std::path::PathBuf,
    _root: Option<TempDir>,
}

impl Sqlite {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        Sqlite { folder: root.path().join("home"), _root: Some(root) }
    }
}

impl Place for Sqlite {
    fn open(&self) -> Box<dyn Store> {
        let home = Home::new(self.folder.clone(), Limits::default(), 0);
        Box::new(home.open_or_create(&ProjectKey::resolved("/srv/app")).unwrap())
    }

    fn address(&self) -> String {
        format!("sqlite {}", self.folder.display())
    }
}

/// Runs a test on an empty place of every kind.
pub fn each(test: impl Fn(&dyn Place)) {
    test(&Sqlite::new());
}

/// The place at an address that another process was given.
pub fn at(address: &str) -> Box<dyn Place> {
    match address.split_once(' ').unwrap() {
        ("sqlite", folder) => Box::new(Sqlite { folder: folder.into(), _root: None }),
        (kind, _) => panic!("there is no kind {kind}"),
    }
}

pub const NOW: Timestamp = Timestamp::from_millis(1_794_700_800_000);

pub fn later(minutes: i64) -> Timestamp {
    NOW.plus(Span::minutes(minutes))
}

pub fn errand(wait: Span) -> Errand<'static> {
    Errand { verb: "reserve", agent: "BlueLake", wait, durable: true }
}

pub fn begin(store: &dyn Store) -> Box<dyn Tx + '_> {
    store.begin(errand(Span::seconds(60))).unwrap()
}

/// One committed transaction.
pub fn write<T>(store: &dyn Store, story: impl FnOnce(&mut dyn Tx) -> T) -> T {
    let mut tx = begin(store);
    let told = story(&mut *tx);
    tx.commit().unwrap();
    told
}

pub fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

pub fn party(text: &str) -> Party {
    Party::try_from(text.to_owned()).unwrap()
}

pub fn thread(text: &str) -> ThreadId {
    ThreadId::parse(text).unwrap()
}

/// Appends an event without texts, as an agent.
pub fn append(tx: &mut dyn Tx, actor: &str, at: Timestamp, what: Happened) -> Number {
    tx.append(at, &party(actor), Some("key"), what, Vec::new()).unwrap()
}

pub fn register(tx: &mut dyn Tx, agent: &str) -> Number {
    let what = Happened::AgentRegistered {
        agent: name(agent),
        credential: "uid:1".into(),
        program: None,
        model: None,
        task: None,
        session: Some(format!("session of {agent}")),
        parent: None,
        policy: Policy::Auto,
    };
    append(tx, agent, NOW, what)
}

/// A message; each recipient is written with its line: `to RedForest`, and `held` before it where it waits for consent.
pub struct Mail<'a> {
    pub from: &'a str,
    pub recipients: &'a [&'a str],
    pub thread: &'a str,
    pub at: Timestamp,
    pub importance: Importance,
    pub ack_within: Option<Span>,
    pub body: &'a str,
}

impl Default for Mail<'_> {
    fn default() -> Self {
        Mail {
            from: "BlueLake",
            recipients: &["to RedForest"],
            thread: "bd-1",
            at: NOW,
            importance: Importance::Normal,
            ack_within: None,
            body: "text",
        }
    }
}

pub fn send(tx: &mut dyn Tx, mail: &Mail<'_>) -> Number {
    let recipient = |text: &&str| {
        let held = text.starts_with("held ");
        let (line, name) = text.trim_start_matches("held ").split_once(' ').unwrap();
        Recipient { party: party(name), line: Line::parse(line).unwrap(), held }
    };
    let text = |field, text: &str| Text { field, salt: [7; 16], text: text.to_owned() };
    let texts = vec![text("subject", "Login"), text("body", mail.body)];
    let what = Happened::MessageSent {
        thread: thread(mail.thread),
        from: party(mail.from),
        recipients: mail.recipients.iter().map(recipient).collect(),
        subject: texts[0].hash(),
        body: texts[1].hash(),
        importance: mail.importance,
        ack_within_ms: mail.ack_within.map(Span::as_millis),
        reply_to: None,
        twin: None,
    };
    tx.append(mail.at, &party(mail.from), None, what, texts).unwrap()
}

/// A claim for an hour.
pub fn grant(tx: &mut dyn Tx, holder: &str, pattern: &str, at: Timestamp, overlaps: &[Number]) -> Number {
    use relay_core::domain::pattern::{Case, Pattern};
    let hour = Span::hours(1);
    let what = Happened::ReservationGranted {
        agent: name(holder),
        pattern: pattern.to_owned(),
        prefix: Pattern::from_canonical(pattern).unwrap().prefix(Case::Sensitive),
        exclusive: true,
        reason: Some(thread("bd-1")),
        ttl_ms: hour.as_millis(),
        first_granted_at: at,
        expires_at: at.plus(hour),
        overlaps: overlaps.to_vec(),
        conflicts: Vec::new(),
    };
    append(tx, holder, at, what)
}

pub fn ids<T>(all: &[T], id: impl Fn(&T) -> Number) -> Vec<Number> {
    all.iter().map(id).collect()
}
