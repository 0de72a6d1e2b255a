//! The git archive of a project: a copy of the history that may lag and never leads.
//!
//! Whoever holds the lease drains: it makes the store durable, writes the next events as commits into one pack, and then
//! moves the public ref. Dying anywhere in between costs a pack that nothing leads to; the next one begins from the ref.

mod config;
mod git;
mod import;
mod read;
mod rebuild;
mod repack;
mod repository;
mod verify;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relay_core::archive::Cursor;
use relay_core::domain::event::Number;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

use crate::filesystem::{io_refusal, private_file};
use crate::sqlite::Sqlite;
use import::Import;
pub(crate) use read::Shown;
pub use rebuild::{Old, Rebuilt};
use repository::Repository;
pub use repository::Tip;
pub(crate) use verify::Beside;

/// How many events are gathered. The trees are the same whatever is chosen.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Events in one commit at most.
    pub batch: Number,
    /// Events in one run of git at most: what a kill can cost.
    pub round: Number,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { batch: 100, round: 10_000 }
    }
}

/// How often somebody who wants the lease looks for it, and how many times.
const LEASE_LOOK: Duration = Duration::from_millis(10);
const LEASE_LOOKS: usize = 12_000;

/// The files whose locks are the lease and the office.
const LEASE: &str = "archive.lease";
const OFFICE: &str = "archive.office";

#[derive(Debug)]
pub struct Archive {
    folder: PathBuf,
    repository: Repository,
    sizes: Sizes,
}

/// The right to write to the archive; given up when dropped, or when the process dies and the last git that it had started.
#[derive(Debug)]
pub struct Lease {
    _file: File,
}

impl Lease {
    /// Every git inherits the lock: one whose drainer was killed may still write, and nobody may write beside it.
    fn held(file: File) -> Self {
        let _ = rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty());
        Lease { _file: file }
    }
}

/// The office of the one process that drains for those who have left. It is another lock than the lease, so that nobody who
/// wants the archive now waits for somebody who is still gathering.
#[derive(Debug)]
pub struct Office {
    _file: File,
}

/// A file to be locked.
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    fn open(path: PathBuf) -> Result<Self> {
        let file = private_file(&path).map_err(|fault| io_refusal(&path, &fault))?;
        Ok(Lock { path, file })
    }

    /// Takes it, unless somebody has it.
    fn try_take(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(fault)) => Err(io_refusal(&self.path, &fault)),
        }
    }
}

impl Archive {
    /// The archive in a store's folder.
    pub fn of(folder: &Path) -> Self {
        let repository = Repository::at(folder.join("archive.git"));
        Archive { folder: folder.to_owned(), repository, sizes: Sizes::default() }
    }

    #[must_use]
    pub fn sized(self, sizes: Sizes) -> Self {
        Archive { sizes, ..self }
    }

    pub fn path(&self) -> &Path {
        self.repository.path()
    }

    pub fn tip(&self) -> Result<Option<Tip>> {
        self.repository.tip()
    }

    /// The git that is there, in its own words; a refusal where it cannot be started.
    pub fn git_version(&self) -> Result<String> {
        git::version(self.path())
    }

    /// The last event that it says it has; 0 when there is nothing in it.
    pub fn archived(&self) -> Result<Number> {
        match self.tip()? {
            Some(Tip { cursor: None, commit }) => Err(self.foreign(&commit)),
            tip => Ok(tip.and_then(|tip| tip.cursor).map_or(0, |cursor| cursor.number)),
        }
    }

    /// The lease, unless somebody has it.
    pub fn try_lease(&self) -> Result<Option<Lease>> {
        let lock = Lock::open(self.folder.join(LEASE))?;
        Ok(lock.try_take()?.then(|| Lease::held(lock.file)))
    }

    /// The office, unless somebody has it.
    pub fn try_office(&self) -> Result<Option<Office>> {
        let lock = Lock::open(self.folder.join(OFFICE))?;
        Ok(lock.try_take()?.then(|| Office { _file: lock.file }))
    }

    /// Waits for the lease, as long as it takes to copy a long history.
    pub fn lease(&self) -> Result<Lease> {
        let lock = Lock::open(self.folder.join(LEASE))?;
        for _ in 0..LEASE_LOOKS {
            if lock.try_take()? {
                return Ok(Lease::held(lock.file));
            }
            #[expect(clippy::disallowed_methods, reason = "whoever holds it may be a git whose drainer died")]
            std::thread::sleep(LEASE_LOOK);
        }
        let text = format!("somebody has been writing to the archive {} for minutes", self.path().display());
        Err(Code::StoreBusy.refuse(text).with("path", self.path().to_string_lossy()))
    }

    /// Copies everything that the store has and the archive lacks. Returns how far the archive has come.
    pub fn drain(&self, lease: &Lease, store: &Sqlite, mut progress: impl FnMut(Number, Number)) -> Result<Number> {
        rebuild::clear(&self.folder)?;
        crate::sqlite::rebuild::clear(&self.folder);
        self.repository.clear_leftovers();
        let number = match self.copy(store, &mut progress)? {
            Copied::UpTo(number) => number,
            Copied::WhatIsErased => self.rebuild(lease, store, Old::Erased, progress)?.events,
        };
        rebuild::clear_aside(&self.folder)?;
        Ok(number)
    }

    fn copy(&self, store: &Sqlite, progress: &mut impl FnMut(Number, Number)) -> Result<Copied> {
        // What was erased up to here cannot be in the repository.
        let mut never_had = 0;
        loop {
            store.must_be_current()?;
            let (number, chain) = store.newest()?;
            let from = self.position(store, number, &chain)?;
            let behind = from.cursor.as_ref().map_or(0, |cursor| cursor.number);
            progress(behind, number);
            if behind == number {
                self.tidy();
                return Ok(Copied::UpTo(number));
            }
            // Only what survives a power cut is copied: the archive never leads.
            store.sync()?;
            point!("archive-after-sync", StoreIo);
            if !self.repository.exists() {
                self.repository.create()?;
                never_had = number;
            }
            if store.erases(behind.max(never_had), number)? {
                return Ok(Copied::WhatIsErased);
            }
            let to = number.min(behind + self.sizes.round);
            let earlier = self.repository.pack_files()?;
            let commit = self.import(store, &from, to, progress)?;
            point!("archive-after-import", StoreIo);
            self.repository.sync_packs(&earlier)?;
            point!("archive-before-publish", StoreIo);
            self.repository.publish(from.commit.as_deref(), &commit)?;
        }
    }

    /// Best effort: packs that stay many are only slower to read, and the next one to drain tries again.
    fn tidy(&self) {
        if self.repository.exists() {
            let _ = self.repository.repack();
        }
    }

    /// Where the archive stands, when it stands in this history.
    fn position(&self, store: &Sqlite, newest: Number, chain: &str) -> Result<Position> {
        let Some(tip) = self.repository.tip()? else {
            return Ok(Position { commit: None, cursor: None });
        };
        let Some(cursor) = tip.cursor else { return Err(self.foreign(&tip.commit)) };
        if cursor.number > newest {
            return Err(self.diverged(&format!("it goes to #{} and the store to #{newest}", cursor.number)));
        }
        let known = if cursor.number == newest { chain.to_owned() } else { store.chain_at(cursor.number)? };
        if known != cursor.chain {
            return Err(self.diverged(&format!("#{} is another event there", cursor.number)));
        }
        Ok(Position { commit: Some(tip.commit), cursor: Some(cursor) })
    }

    fn import(
        &self,
        store: &Sqlite,
        from: &Position,
        up_to: Number,
        progress: &mut impl FnMut(Number, Number),
    ) -> Result<String> {
        let mut import = Import::begin(self.repository.path(), from.commit.as_deref())?;
        let mut done = from.cursor.clone().unwrap_or_else(|| Cursor { number: 0, chain: String::new() });
        while done.number < up_to {
            let last = up_to.min(done.number + self.sizes.batch);
            let (entries, cursor) = store.entries(&done, last)?;
            import.commit(&entries, &cursor.chain);
            done = cursor;
            progress(done.number, up_to);
        }
        import.finish()
    }

    pub(crate) fn foreign(&self, commit: &str) -> Refusal {
        self.diverged(&format!("its newest commit {commit} is not relay's"))
    }

    pub(crate) fn diverged(&self, how: &str) -> Refusal {
        Code::ArchiveDiverged
            .refuse(format!("the archive {} is not of this history: {how}", self.path().display()))
            .with("path", self.path().to_string_lossy())
    }
}

struct Position {
    commit: Option<String>,
    cursor: Option<Cursor>,
}

/// What copying came to.
enum Copied {
    UpTo(Number),
    /// Texts were erased since, and the repository may hold them, also where nothing leads to them: it must be made anew.
    WhatIsErased,
}
