//! The contract of `relay_core::store`, sentence by sentence, on every kind of store.
//!
//! A kind is a way to make an empty place and to open the store in it again and again, as other processes would. Each
//! test runs on all of them; a new kind is a row in `each`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

mod alone;
mod batch;
mod claims;
mod facts;
mod mail;
mod owners;
mod presence;
mod reading;
mod syncs;
mod waits;
mod writing;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Number, Recipient, Text};
use relay_core::domain::limits::Limits;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, Facts, Presence, Result, Size, Store, Tx, Watch};
use relay_store::{Home, sqlite};
use tempfile::TempDir;

/// Somewhere to keep one project.
pub trait Place: Send + Sync {
    /// The store of the project, opened anew: what two of them share, they share through the place.
    fn open(&self) -> Box<dyn Opened>;

    /// What another process needs to find the place: the kind's name and where it is.
    fn address(&self) -> String;
}

/// A store as a place has it: how a request on it runs is the kind's.
pub trait Opened: Store {
    fn request(&self, run: &mut dyn FnMut(&dyn Store));
}

struct Sqlite {
    folder: std::path::PathBuf,
    /// Whether each request is a batch of its own.
    batches: bool,
    _root: Option<TempDir>,
}

impl Sqlite {
    fn new(batches: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        Sqlite { folder: root.path().join("home"), batches, _root: Some(root) }
    }

    fn home(&self) -> Home {
        Home::new(self.folder.clone(), Limits::default(), 0)
    }

    fn project_folder(&self) -> std::path::PathBuf {
        self.home().folder(&ProjectKey::resolved("/srv/app"))
    }

    /// There while a sync of the log may have failed.
    fn doubt(&self) -> std::path::PathBuf {
        self.project_folder().join("unsynced")
    }

    fn store(&self) -> sqlite::Sqlite {
        self.home().open_or_create(&ProjectKey::resolved("/srv/app")).unwrap()
    }
}

impl Place for Sqlite {
    fn open(&self) -> Box<dyn Opened> {
        if self.batches { Box::new(Batches(self.store())) } else { Box::new(self.store()) }
    }

    fn address(&self) -> String {
        format!("{} {}", if self.batches { "batches" } else { "sqlite" }, self.folder.display())
    }
}

impl Opened for sqlite::Sqlite {
    fn request(&self, run: &mut dyn FnMut(&dyn Store)) {
        run(self);
    }
}

struct Batches(sqlite::Sqlite);

impl Opened for Batches {
    fn request(&self, run: &mut dyn FnMut(&dyn Store)) {
        let batch = self.0.batch(errand(Span::seconds(60))).unwrap();
        batch.request(|store| (run(store), true)).unwrap();
        batch.commit().unwrap();
    }
}

/// What is not a request's is the store's own.
impl Store for Batches {
    fn begin(&self, errand: Errand<'_>) -> Result<Box<dyn Tx + '_>> {
        self.0.begin(errand)
    }

    fn read(&self) -> Result<Box<dyn Facts + '_>> {
        self.0.read()
    }

    fn sync(&self) -> Result<()> {
        Store::sync(&self.0)
    }

    fn settle(&self, wait: Span) -> Result<()> {
        Store::settle(&self.0, wait)
    }

    fn presence(&self) -> &dyn Presence {
        self.0.presence()
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        self.0.watch()
    }

    fn archived(&self) -> Result<Number> {
        self.0.archived()
    }

    fn size(&self) -> Size {
        self.0.size()
    }
}

/// Runs a test on an empty place of every kind.
pub fn each(test: impl Fn(&dyn Place)) {
    test(&Sqlite::new(false));
    test(&Sqlite::new(true));
}

/// The place at an address that another process was given.
pub fn at(address: &str) -> Box<dyn Place> {
    let (kind, folder) = address.split_once(' ').unwrap();
    let batches = match kind {
        "sqlite" => false,
        "batches" => true,
        kind => panic!("there is no kind {kind}"),
    };
    Box::new(Sqlite { folder: folder.into(), batches, _root: None })
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

/// A request that is one committed transaction.
pub fn write<T>(store: &dyn Opened, story: impl FnOnce(&mut dyn Tx) -> T) -> T {
    let (mut story, mut told) = (Some(story), None);
    store.request(&mut |store| {
        let mut tx = begin(store);
        told = story.take().map(|story| story(&mut *tx));
        tx.commit().unwrap();
    });
    told.unwrap()
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
