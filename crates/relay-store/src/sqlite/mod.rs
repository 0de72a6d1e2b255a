//! The embedded store: one SQLite file per project, behind a fair gate.

mod answered;
mod apply;
pub mod backup;
pub mod batch;
mod clean;
mod compare;
mod doubt;
mod entries;
mod erasures;
mod facts;
mod fault;
mod gate;
mod inbox;
mod open;
#[cfg(test)]
mod plan;
pub mod rebuild;
mod replay;
pub mod restore;
mod rows;
mod savepoint;
mod search;
mod transaction;
mod verify;
mod view;
mod watch;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use relay_core::domain::event::{Happened, Number};
use relay_core::domain::name::{Party, ProjectKey};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Facts, Presence, Result, Size, Store, Tx, Watch};
use relay_core::verbs::moved;
use rusqlite::{Connection, OptionalExtension};

use crate::archive::Archive;
use crate::filesystem::io_refusal;
use crate::presence::Files;
use fault::Fault;
use gate::Gate;
use open::FileId;
pub(crate) use verify::{Replayed, Snapshot};
use view::View;
pub use watch::Bell;

/// A one-shot writer that leaves more than this of write-ahead log behind folds it into the store, if its turn comes soon.
const LOG_KEPT: u64 = 1024 * 1024;
/// Whoever goes on writing leaves more: folding costs three syncs, which are to be few beside those of the commits.
const LOG_SERVED: u64 = 4 * LOG_KEPT;
/// On a store so busy that nobody's turn came soon, the writer that leaves more than this waits for it.
const LOG_LONG: u64 = 8 * LOG_KEPT;
/// How soon: nobody who has its answer should notice.
const TIDY_PATIENCE: Span = Span::millis(50);

#[derive(Debug)]
pub struct Sqlite {
    folder: PathBuf,
    connection: Connection,
    /// The file that is open.
    file: FileId,
    presence: Files,
    project: String,
    /// Whether this process has added to the log.
    committed: Cell<bool>,
    /// How long the log is to be when whoever goes on writing folds it.
    fold_at: Cell<u64>,
}

/// How the store is, for people and scripts.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Health {
    pub path: String,
    pub sqlite: String,
    pub schema: i64,
    pub events: u64,
    pub bytes: u64,
    pub log_bytes: u64,
    /// What the integrity check said; "ok" when all is well.
    pub check: String,
}

impl Sqlite {
    pub(crate) fn file(folder: &Path) -> PathBuf {
        folder.join("relay.db")
    }

    /// What was committed since it was last folded into the file.
    fn log(folder: &Path) -> PathBuf {
        folder.join("relay.db-wal")
    }

    /// Whether there is a store, or was one.
    pub(crate) fn exists(folder: &Path) -> Result<bool> {
        match std::fs::symlink_metadata(Self::file(folder)) {
            Ok(_) => Ok(true),
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(open::history_is_known(folder)),
            Err(fault) => Err(io_refusal(folder, &fault)),
        }
    }

    /// Opens the store in a folder, makes or migrates it where needed, and gives a new one its first event.
    pub(crate) fn open(folder: &Path, project: &ProjectKey, gate_wait: Span, now: i64) -> Result<Self> {
        let (connection, file) = open::connect(folder, gate_wait)?;
        let presence = Files::open(folder)?;
        let mut store = Sqlite {
            folder: folder.to_owned(),
            connection,
            file,
            presence,
            project: String::new(),
            committed: Cell::new(false),
            fold_at: Cell::new(LOG_SERVED),
        };
        let id = "SELECT id FROM project";
        let known = store.connection.query_row(id, [], |row| row.get(0)).optional();
        let known = known.map_err(|fault| store.refuse(&fault))?;
        store.project = match known {
            Some(id) => id,
            None => store.first_event(project, gate_wait, now)?,
        };
        Ok(store)
    }

    fn first_event(&mut self, project: &ProjectKey, gate_wait: Span, now: i64) -> Result<String> {
        use relay_core::store::Random;
        self.project = relay_core::domain::event::hex(&crate::SystemRandom.bytes());
        let mut tx = self.begin(Errand { verb: "open", agent: "", wait: gate_wait, durable: true })?;
        // Another process may have been first.
        let known = tx.tip()?;
        if known.number == 0 {
            let what = Happened::ProjectOpened { project: self.project.clone(), path: project.clone() };
            tx.append(Timestamp::from_millis(now), &Party::Relay, None, what, Vec::new())?;
            tx.commit()?;
        } else {
            drop(tx);
        }
        self.connection.query_row("SELECT id FROM project", [], |row| row.get(0)).map_err(|fault| self.refuse(&fault))
    }

    pub(crate) fn note_move(&self, from: &ProjectKey, to: &ProjectKey, now: i64) -> Result<()> {
        let mut tx = self.begin(Errand { verb: "move", agent: "", wait: Span::seconds(10), durable: true })?;
        moved::record(&mut *tx, Timestamp::from_millis(now), std::process::id(), from, to)?;
        tx.commit()
    }

    /// Does something to a store's folder while nobody writes to the store or its archive.
    pub(crate) fn while_still<T>(folder: &Path, verb: &str, wait: Span, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let _lease = Archive::of(folder).lease()?;
        let _gate = Gate::take(folder, Errand { verb, agent: "", wait, durable: true })?;
        open::must_not_have_moved(folder)?;
        act()
    }

    /// Waits for this writer's turn, then begins its transaction.
    fn turn(&self, errand: Errand<'_>) -> Result<View<'_>> {
        let gate = Gate::take(&self.folder, errand)?;
        point!("store-after-gate", StoreBusy);
        self.must_be_current()?;
        doubt::settle(&self.folder)?;
        View::begin(&self.connection, gate, &self.folder, &self.project, errand.durable, &self.committed)
    }

    fn refuse(&self, fault: &rusqlite::Error) -> relay_core::error::Refusal {
        Fault::new(&self.folder).refuse(fault)
    }

    /// Refuses when another file stands in the place of the one that is open, or none: what would be written there is lost.
    pub(crate) fn must_be_current(&self) -> Result<()> {
        match open::file_id(&self.folder) {
            Some(file) if file == self.file => Ok(()),
            Some(_) => Err(Code::StoreBusy.refuse("the store was rebuilt while this command waited")),
            // A project that moved takes its store along. What else were written to its folder would be a ghost of it.
            None => open::must_not_have_moved(&self.folder).and_then(|()| Err(open::lost(&self.folder, "is gone"))),
        }
    }

    /// Looks again at a file that is gone.
    fn after_a_swap(&self, refusal: Refusal) -> Result<()> {
        if refusal.code != Code::StoreDamaged {
            return Err(refusal);
        }
        open::swapped(&self.folder, Errand { verb: "read", agent: "", wait: SWAP_PATIENCE, durable: false })?;
        self.must_be_current()
    }

    /// Whether another file stands in the place of the one that is open.
    pub fn was_replaced(&self) -> bool {
        open::file_id(&self.folder).is_some_and(|file| file != self.file)
    }

    fn log_bytes(&self) -> u64 {
        std::fs::metadata(Self::log(&self.folder)).map_or(0, |metadata| metadata.len())
    }

    /// Whether this process has changed anything.
    pub fn has_committed(&self) -> bool {
        self.committed.get()
    }

    /// What rebuilding has kept of older stores and archives.
    pub fn kept_beside(&self) -> Vec<String> {
        let is_kept = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("archive.before-") || name.starts_with("relay.before-") && name.ends_with(".db")
        };
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|file| file.path());
        let mut kept: Vec<String> = files.filter(is_kept).map(|path| path.to_string_lossy().into_owned()).collect();
        kept.sort();
        kept
    }

    /// Rings with every commit from now on, also of another process.
    pub fn bell(&self) -> Result<Bell> {
        watch::bell(&self.folder)
    }

    pub fn archive(&self) -> Archive {
        Archive::of(&self.folder)
    }

    /// After an answer: folds a log that has grown into the store, under the gate, where this process made it grow. Best
    /// effort, since readers may stand in its way and the next writer tries again.
    pub fn tidy(&self, gate_wait: Span) {
        self.fold_beyond(LOG_KEPT, gate_wait);
    }

    /// The same for whoever goes on writing, after the answers to each batch. What a reader kept from being folded is tried
    /// again when there is as much again: a try costs syncs too. Says whether anything was written since the last time.
    pub fn tidy_between(&self, gate_wait: Span) -> bool {
        if !self.committed.get() {
            return false;
        }
        let at = self.fold_at.get().min(self.log_bytes() + LOG_SERVED);
        let is_tried = self.fold_beyond(at, gate_wait);
        self.fold_at.set(if is_tried { self.log_bytes() + LOG_SERVED } else { at });
        self.committed.replace(false)
    }

    /// Folds a log that is longer than what may be kept, when this writer's turn comes soon enough. False when it did not.
    fn fold_beyond(&self, kept: u64, gate_wait: Span) -> bool {
        let Some(wait) = patience(self.log_bytes(), kept, gate_wait).filter(|_| self.committed.get()) else {
            return false;
        };
        let errand = Errand { verb: "tidy", agent: "", wait, durable: true };
        let Ok(_gate) = Gate::take(&self.folder, errand) else { return false };
        // Of many writers that saw the log too long, one is enough.
        if self.log_bytes() > kept {
            self.fold();
        }
        true
    }

    /// Folds the log into the store unless a reader stands in the way: nobody waits for one who holds the gate.
    fn fold(&self) -> bool {
        let _ = self.connection.busy_timeout(std::time::Duration::ZERO);
        let blocked = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
        let _ = self.connection.busy_timeout(open::PATIENCE);
        let _ = blocked.as_ref().inspect_err(|fault| doubt::note_if(&self.folder, fault));
        blocked == Ok(false)
    }

    /// Makes everything committed so far durable, also what was committed without a sync of its own, and says up to which
    /// event. The log is folded into the store as well unless a reader stands in the way.
    pub fn settle(&self, gate_wait: Span) -> Result<u64> {
        let _gate = Gate::take(&self.folder, Errand { verb: "settle", agent: "", wait: gate_wait, durable: true })?;
        self.must_be_current()?;
        doubt::settle(&self.folder)?;
        let number = self.read()?.tip()?.number;
        self.sync()?;
        self.fold();
        Ok(number)
    }

    /// Makes everything that can be read now durable. What is no longer in the log was synced when it was folded.
    pub(crate) fn sync(&self) -> Result<()> {
        self.must_be_current()?;
        doubt::must_be_free(&self.folder)?;
        let log = Self::log(&self.folder);
        match std::fs::File::open(&log).and_then(|log| log.sync_all()) {
            Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => {
                doubt::note(&self.folder);
                Err(io_refusal(&log, &fault))
            }
            _ => Ok(()),
        }
    }

    pub fn health(&self) -> Result<Health> {
        let one = |sql: &str| {
            self.connection.query_row(sql, [], |row| row.get::<_, String>(0)).map_err(|fault| self.refuse(&fault))
        };
        let Size { bytes, log_bytes } = self.size();
        let schema = self
            .connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(|fault| self.refuse(&fault))?;
        let check = one("PRAGMA quick_check(1)")?;
        if check != "ok" {
            return Err(Code::StoreDamaged
                .refuse(format!("{}: {check}", Self::file(&self.folder).display()))
                .with("path", self.folder.to_string_lossy()));
        }
        Ok(Health {
            path: self.folder.to_string_lossy().into_owned(),
            sqlite: one("SELECT sqlite_version()")?,
            schema,
            events: self.read()?.tip()?.number,
            bytes,
            log_bytes,
            check,
        })
    }
}

/// How long whoever reads waits for one file to take the place of another.
const SWAP_PATIENCE: Span = Span::seconds(5);

/// How long a writer that leaves so much of a log waits for its turn to fold one of this length.
fn patience(log: u64, kept: u64, gate_wait: Span) -> Option<Span> {
    let wait = if log > LOG_LONG { gate_wait } else { gate_wait.min(TIDY_PATIENCE) };
    (log > kept).then_some(wait)
}

impl Store for Sqlite {
    fn begin(&self, errand: Errand<'_>) -> Result<Box<dyn Tx + '_>> {
        Ok(Box::new(self.turn(errand)?))
    }

    fn read(&self) -> Result<Box<dyn Facts + '_>> {
        // Whoever waits for mail would look into the old file for ever.
        self.must_be_current().or_else(|refusal| self.after_a_swap(refusal))?;
        Ok(Box::new(View::read(&self.connection, &self.folder, &self.project)?))
    }

    fn sync(&self) -> Result<()> {
        Sqlite::sync(self)
    }

    fn settle(&self, wait: Span) -> Result<()> {
        Sqlite::settle(self, wait).map(|_| ())
    }

    fn presence(&self) -> &dyn Presence {
        &self.presence
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        watch::arm(&self.folder)
    }

    fn archived(&self) -> Result<Number> {
        self.archive().archived()
    }

    fn size(&self) -> Size {
        let bytes = std::fs::metadata(Self::file(&self.folder)).map_or(0, |metadata| metadata.len());
        Size { bytes, log_bytes: self.log_bytes() }
    }
}

#[cfg(test)]
mod tests {
    use relay_core::store::KeptFailure;

    use super::*;

    #[test]
    fn a_longer_log_is_worth_a_longer_wait() {
        let check = |log: u64, wait: i64, expected: Option<i64>| {
            assert_eq!(patience(log, LOG_KEPT, Span::millis(wait)), expected.map(Span::millis), "{log} {wait}");
        };
        check(0, 10_000, None);
        check(LOG_KEPT, 10_000, None);
        check(LOG_KEPT + 1, 10_000, Some(50));
        check(LOG_LONG, 10_000, Some(50));
        check(LOG_LONG, 20, Some(20));
        check(LOG_LONG + 1, 10_000, Some(10_000));
    }

    /// Adds a little more than this to the log. What is as long as before it would leave as it is.
    fn write(store: &Sqlite, bytes: u64) -> Result<()> {
        let mut tx = store.begin(Errand { verb: "keep", agent: "", wait: Span::seconds(10), durable: false })?;
        let (request, at) = ("x".repeat(usize::try_from(bytes).unwrap_or(usize::MAX)), Timestamp::from_millis(0));
        let failure = KeptFailure { code: "STORE_BUSY".into(), at, request, details: "{}".into() };
        tx.keep_failure("bluelake", "key", &failure)?;
        tx.commit()
    }

    #[test]
    fn whoever_committed_folds_a_long_log_and_nobody_else() -> Result<()> {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let wait = Span::seconds(10);
        let open = || Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), wait, 0);
        let writer = open()?;
        write(&writer, 2 * LOG_KEPT)?;
        let long = writer.log_bytes();
        assert!(long > LOG_KEPT);
        let reader = open()?;
        reader.read()?.tip()?;
        drop(reader.begin(Errand { verb: "wait", agent: "", wait, durable: false })?);
        reader.tidy(wait);
        assert_eq!(writer.log_bytes(), long, "it only looked");
        write(&reader, 1)?;
        reader.tidy(wait);
        assert_eq!(writer.log_bytes(), 0);
        Ok(())
    }

    #[test]
    fn whoever_goes_on_writing_folds_seldom_and_does_not_try_in_vain_after_each_commit() -> Result<()> {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let wait = Span::seconds(10);
        let open = || Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), wait, 0);
        let (store, other) = (open()?, open()?);
        let left = |bytes: u64| -> Result<u64> {
            write(&store, bytes)?;
            store.tidy_between(wait);
            Ok(store.log_bytes())
        };
        let left_while_somebody_reads = |bytes: u64| -> Result<u64> {
            let reading = other.read()?;
            reading.tip()?;
            left(bytes)
        };
        assert!(left(2 * LOG_KEPT)? > 2 * LOG_KEPT, "not yet");
        let blocked = left_while_somebody_reads(LOG_SERVED)?;
        assert!(blocked > LOG_SERVED);
        assert!(left(1)? > blocked, "it was tried just now");
        assert_eq!(left(LOG_SERVED)?, 0);
        // What somebody else has folded counts from the beginning.
        assert!(left_while_somebody_reads(LOG_SERVED + 1)? > LOG_SERVED);
        other.settle(wait)?;
        assert!(left(LOG_KEPT)? > LOG_KEPT);
        assert_eq!(left(LOG_SERVED)?, 0);
        assert!(!store.tidy_between(wait), "nothing was written since");
        Ok(())
    }
}
