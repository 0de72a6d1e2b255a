//! A copy of the store, and the way back from it.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

use std::path::{Path, PathBuf};

use relay_core::domain::agent::Policy;
use relay_core::domain::event::{Happened, Number};
use relay_core::domain::limits::Limits;
use relay_core::domain::name::{AgentName, Party, ProjectKey};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::store::{Errand, Result, Store};
use relay_store::Home;
use relay_store::sqlite::Sqlite;
use relay_store::sqlite::rebuild::Old;
use relay_store::sqlite::restore::{Restored, restore};
use rusqlite::Connection;
use tempfile::TempDir;

const WAIT: Span = Span::seconds(10);

struct Place {
    root: TempDir,
    project: ProjectKey,
}

impl Place {
    fn new() -> Self {
        Place { root: tempfile::tempdir().unwrap(), project: ProjectKey::resolved("/srv/app") }
    }

    fn home(&self) -> Home {
        Home::new(self.root.path().join("home"), Limits::default(), 0)
    }

    fn folder(&self) -> PathBuf {
        self.home().folder(&self.project)
    }

    fn open(&self) -> Sqlite {
        self.home().open_or_create(&self.project).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn restore(&self, backup: &Path, lose_after: Option<Number>) -> Result<Restored> {
        restore(&self.folder(), &self.project, backup, WAIT, lose_after)
    }

    /// A store with this many events, and a backup of it.
    fn with_backup(events: u64) -> (Self, PathBuf) {
        let place = Place::new();
        let (store, backup) = (place.open(), place.path("backup.db"));
        (1..events).for_each(|number| _ = register(&store, number).unwrap());
        assert_eq!(store.backup(&backup, false, |_, _, _| {}).unwrap().number, events);
        (place, backup)
    }
}

fn register(store: &Sqlite, number: u64) -> Result<Number> {
    let mut tx = store.begin(Errand { verb: "start", agent: "", wait: WAIT, durable: true })?;
    let agent = AgentName::parse(&format!("Agent{number}"))?;
    let what = Happened::AgentRegistered {
        agent: agent.clone(),
        credential: "uid:1".into(),
        program: None,
        model: None,
        task: None,
        session: None,
        parent: None,
        policy: Policy::Auto,
    };
    let number = tx.append(Timestamp::from_millis(0), &Party::Agent(agent), None, what, Vec::new())?;
    tx.commit()?;
    Ok(number)
}

fn tip(store: &Sqlite) -> Number {
    store.read().unwrap().tip().unwrap().number
}

/// What is in a folder, by name.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_restored_store_is_as_its_backup_was_and_goes_on() {
    let (place, backup) = Place::with_backup(5);
    std::fs::remove_file(place.folder().join("relay.db")).unwrap();
    let restored = place.restore(&backup, None).unwrap();
    let expected = Restored {
        number: 5,
        lost: 0,
        known: 5,
        parted: false,
        erased: Vec::new(),
        erased_more: true,
        old: Old::Gone,
        kept: None,
        archive_leads: false,
    };
    assert_eq!(restored, expected);
    let store = place.open();
    assert_eq!((tip(&store), register(&store, 9).unwrap()), (5, 6));
    let mode: String = Connection::open(place.folder().join("relay.db"))
        .unwrap()
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "wal");
    assert!(!names(&place.folder()).contains(&"restoring".to_owned()));
}

#[test]
fn newer_events_are_lost_only_when_that_is_wanted() {
    let (place, backup) = Place::with_backup(5);
    (10..13).for_each(|number| _ = register(&place.open(), number).unwrap());
    let refusal = place.restore(&backup, None).unwrap_err();
    assert_eq!((refusal.code, &refusal.details["lost"]), (Code::InputInvalid, &3.into()));
    assert!(
        refusal.message.contains("ends with #5, and 3 events up to #8 would be lost; give that up with --lose-after 5"),
        "{refusal}"
    );
    let other = place.restore(&backup, Some(4)).unwrap_err();
    assert!(other.message.contains("ends with #5, and not with #4"), "{other}");
    assert_eq!(tip(&place.open()), 8, "nothing happened");
    let restored = place.restore(&backup, Some(5)).unwrap();
    let kept = place.folder().join("relay.before-1.db");
    assert_eq!((restored.number, restored.lost, restored.kept.as_ref()), (5, 3, Some(&kept)));
    assert_eq!(tip(&place.open()), 5);
    // The store that was there is whole beside it, and the next one gets a name of its own.
    let count: u64 =
        Connection::open(&kept).unwrap().query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 8);
    let again = place.restore(&backup, None).unwrap();
    assert_eq!(again.kept, Some(place.folder().join("relay.before-2.db")));
}

#[test]
fn a_log_that_cannot_be_folded_is_kept_with_its_store() {
    let (place, backup) = Place::with_backup(5);
    let store = place.open();
    let reader = Connection::open(place.folder().join("relay.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM events").unwrap();
    register(&store, 10).unwrap();
    place.restore(&backup, Some(5)).unwrap();
    assert_eq!(tip(&place.open()), 5);
    drop((store, reader));
    let kept = Connection::open(place.folder().join("relay.before-1.db")).unwrap();
    let count: u64 = kept.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 6);
}

#[test]
fn whoever_had_the_old_store_open_is_told_so() {
    let (place, backup) = Place::with_backup(5);
    let store = place.open();
    assert_eq!(tip(&store), 5);
    place.restore(&backup, None).unwrap();
    assert_eq!(register(&store, 10).map_err(|refusal| refusal.code), Err(Code::StoreBusy));
    assert_eq!(store.read().err().map(|refusal| refusal.code), Some(Code::StoreBusy));
    assert_eq!(register(&place.open(), 10).unwrap(), 6);
}

#[test]
fn a_store_that_cannot_be_read_is_kept_and_replaced() {
    let (place, backup) = Place::with_backup(5);
    place.open().settle(WAIT).unwrap();
    std::fs::write(place.folder().join("relay.db"), "not a database at all").unwrap();
    let restored = place.restore(&backup, None).unwrap();
    assert_eq!((restored.number, restored.lost), (5, 0));
    assert_eq!(std::fs::read_to_string(restored.kept.unwrap()).unwrap_or_default(), "not a database at all");
    assert_eq!(tip(&place.open()), 5);
}

/// What has been done to a backup, and what is said about it.
fn check(spoil: impl Fn(&Path), code: Code, said: &str) {
    let (place, backup) = Place::with_backup(5);
    spoil(&backup);
    let state = || {
        let stores = names(&place.folder()).into_iter().filter(|name| name.starts_with("re"));
        (stores.collect::<Vec<_>>(), std::fs::read(place.folder().join("relay.db")).unwrap())
    };
    let before = state();
    let refusal = place.restore(&backup, Some(5)).unwrap_err();
    assert_eq!(refusal.code, code, "{refusal}");
    assert!(refusal.message.contains(said), "{refusal}");
    assert!(refusal.message.contains(backup.to_str().unwrap()), "{refusal}");
    assert!(before == state(), "{said}: the store was touched");
}

fn sql(text: &'static str) -> impl Fn(&Path) {
    move |path| Connection::open(path).unwrap().execute_batch(text).unwrap()
}

#[test]
fn what_is_not_a_whole_backup_of_this_project_is_not_restored() {
    check(|path| std::fs::remove_file(path).unwrap(), Code::InputInvalid, "cannot be restored");
    check(|path| std::fs::write(path, "").unwrap(), Code::InputInvalid, "no store of relay's");
    check(|path| std::fs::write(path, "x".repeat(9_000)).unwrap(), Code::InputInvalid, "no store of relay's");
    let folder = |path: &Path| {
        std::fs::remove_file(path).unwrap();
        std::fs::create_dir(path).unwrap();
    };
    check(folder, Code::InputInvalid, "it is no file");
    check(sql("PRAGMA application_id = 7"), Code::InputInvalid, "not one of relay's");
    check(sql("PRAGMA user_version = 99"), Code::StoreTooNew, "has format 99");
    check(sql("UPDATE events SET hash = zeroblob(32) WHERE number = 3"), Code::InputInvalid, "it is damaged");
    check(sql("UPDATE agents SET policy = 'open' WHERE number = 2"), Code::InputInvalid, "it is damaged");
    check(sql("DELETE FROM agents WHERE number = 2"), Code::InputInvalid, "it is damaged");
    let torn = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    check(torn, Code::InputInvalid, "");
    let other = |path: &Path| {
        let home = tempfile::tempdir().unwrap();
        let home = Home::new(home.path().join("home"), Limits::default(), 0);
        let store = home.open_or_create(&ProjectKey::resolved("/srv/other")).unwrap();
        store.backup(path, true, |_, _, _| {}).unwrap();
    };
    check(other, Code::InputInvalid, "is a backup of /srv/other, and not of /srv/app");
}

#[test]
fn a_history_that_went_another_way_is_not_replaced_unasked() {
    let (place, backup) = Place::with_backup(5);
    let (store, older) = (place.open(), place.path("older.db"));
    assert!(store.backup(&older, false, |_, _, _| {}).is_ok());
    register(&store, 10).unwrap();
    let newer = place.path("newer.db");
    store.backup(&newer, false, |_, _, _| {}).unwrap();
    drop(store);
    // Back at #5, another #6 happens; the backup with the first #6 is of another history by now.
    place.restore(&backup, Some(5)).unwrap();
    register(&place.open(), 20).unwrap();
    let refusal = place.restore(&newer, None).unwrap_err();
    assert!(refusal.message.contains("the store has another history by now"), "{refusal}");
    assert_eq!(place.restore(&newer, Some(6)).unwrap().lost, 0);
    assert_eq!(tip(&place.open()), 6);
}
