//! The way back from a backup: into the place of whatever is left of the store, also where nothing is.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use relay_core::archive::Cursor;
use relay_core::domain::event::{Happened, Number};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};
use rusqlite::{Connection, OpenFlags};

use super::backup::Contents;
use super::erasures::{Erasures, erase_again};
use super::fault::{Fault, keeps_from_reading};
use super::gate::Gate;
use super::rebuild::{self, Old};
use super::{Sqlite, open};
use crate::archive::Archive;
use crate::filesystem::{io_refusal, private_folder, sync_folder};
use crate::home::former_paths;
use crate::verify;

/// A store that is as its backup was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The newest event.
    pub number: Number,
    /// How many events that were known before are gone.
    pub lost: Number,
    /// The last event that was known before, or is in the backup.
    pub known: Number,
    /// Whether the store or the archive that was there had other events than the backup.
    pub parted: bool,
    /// Messages that were erased after the backup was made, and are again.
    pub erased: Vec<Number>,
    /// Whether others may have been that nobody could tell of.
    pub erased_more: bool,
    /// The store that was there.
    pub old: Old,
    /// Where the store that was there is kept.
    pub kept: Option<PathBuf>,
    /// The archive knows what the store no longer does, and has to be made anew.
    pub archive_leads: bool,
}

/// What the store in a folder can still say of itself.
struct Now {
    old: Old,
    project: Option<String>,
}

impl Now {
    fn read(folder: &Path) -> Result<Self> {
        let path = Sqlite::file(folder);
        let silent = |old| Ok(Now { old, project: None });
        match fs::symlink_metadata(&path) {
            Err(fault) if fault.kind() == ErrorKind::NotFound => return silent(Old::Gone),
            Err(fault) => return Err(io_refusal(&path, &fault)),
            Ok(_) if open::must_be_there(folder).is_err() => return silent(Old::Unreadable),
            Ok(_) => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let Some(connection) = said(folder, Connection::open_with_flags(&path, flags))? else {
            return silent(Old::Unreadable);
        };
        // One without the other: a page that cannot be read says nothing about the rest.
        let newest = connection.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0));
        let old = said(folder, newest)?.filter(|newest| *newest > 0).map_or(Old::Unreadable, Old::Read);
        let project = connection.query_row("SELECT id FROM project", [], |row| row.get(0));
        Ok(Now { old, project: said(folder, project)? })
    }

    fn number(&self) -> Option<Number> {
        if let Old::Read(newest) = self.old { Some(newest) } else { None }
    }
}

/// What could be read, if anything; refuses where something stood in the way of reading.
fn said<T>(folder: &Path, read: rusqlite::Result<T>) -> Result<Option<T>> {
    match read {
        Err(fault) if keeps_from_reading(&fault) => Err(Fault::new(folder).refuse(&fault)),
        read => Ok(read.ok()),
    }
}

/// Puts a backup in the place of a project's store, whatever state that is in, also where its whole folder is gone. The
/// backup is copied and the copy checked in full first; the store that was there is kept, and whoever has it open is
/// refused from then on.
/// Where events are known that the backup lacks, it is refused, unless the caller says after which event they may be lost.
/// What is known to be erased since stays erased.
pub fn restore(
    folder: &Path,
    project: &ProjectKey,
    backup: &Path,
    wait: Span,
    lose_after: Option<Number>,
) -> Result<Restored> {
    if !folder.is_dir() {
        must_name(project, backup)?;
    }
    rebuild::make_room(folder)?;
    // Before anything is staged: there is one place for it.
    let _lease = Archive::of(folder).lease()?;
    open::must_not_have_moved(folder)?;
    let (stage, gone) = (folder.join(STAGE), Old::gone(folder));
    let outcome = staged(&stage, backup).and_then(|contents| {
        let _gate = Gate::take(folder, Errand { verb: "restore", agent: "", wait, durable: true })?;
        let now = Now::read(folder)?;
        let archive = Archive::of(folder);
        let tip = archive.tip();
        // What the archive has, the store has too, as far as that can say.
        let is_known = tip.is_ok() || now.number().is_some();
        let cursor = tip.ok().flatten().and_then(|tip| tip.cursor);
        let archived = cursor.as_ref().map_or(0, |cursor| cursor.number);
        let known = now.number().unwrap_or(0).max(archived).max(contents.number);
        let archive_parts = archive_parts(&stage, &contents, cursor.as_ref())?;
        let begun_anew = must_be_of(folder, project, backup, &contents, &now)?;
        let store_parts = store_parts(folder, &stage, &contents, &now)?;
        let parted = begun_anew || archive_parts || store_parts;
        let mut restored = Restored {
            number: contents.number,
            lost: known - contents.number,
            known,
            parted,
            erased: Vec::new(),
            erased_more: false,
            old: if now.old == Old::Gone { gone } else { now.old },
            kept: None,
            archive_leads: archived > contents.number || archive_parts,
        };
        match lose_after {
            None if begun_anew => {
                let newest = if let Old::Read(newest) = restored.old { newest } else { archived };
                let why = format!("{project} has begun another history since, which goes to #{newest}");
                return Err(asks_consent(backup, &contents, &why, Some(newest)));
            }
            None if archive_parts && !store_parts => {
                return Err(asks_consent(backup, &contents, "the archive has another history by now", None));
            }
            None => must_lose_nothing(backup, &contents, &restored, is_known)?,
            Some(after) if after == contents.number => {}
            Some(after) => {
                let ends = format!("{} ends with #{}, and not with #{after}", backup.display(), contents.number);
                return Err(Code::InputInvalid.refuse(ends).with("number", contents.number));
            }
        }
        let erasures = Erasures::known(folder, &restored.old, contents.number);
        restored.erased_more = !erasures.is_whole;
        restored.erased = erased_again(&stage, &erasures)?;
        restored.number += restored.erased.len() as Number;
        restored.kept = rebuild::put_in_place(folder, &Sqlite::file(&stage), project)?;
        Ok(restored)
    });
    let _ = fs::remove_dir_all(&stage);
    outcome
}

/// Where a backup is copied to before it is put in the store's place; written under the archive's lease.
pub(super) const STAGE: &str = "restoring";

/// For a project of which nothing is left: a backup of another makes it no folder.
fn must_name(project: &ProjectKey, backup: &Path) -> Result<()> {
    fs::File::open(backup).map_err(|fault| not_restorable(backup, &fault.to_string()))?;
    let key = Contents::key(backup).map_err(|fault| not_restorable(backup, &no_store(&fault)))?;
    if key == *project { Ok(()) } else { Err(of_another(project, backup, &key)) }
}

/// The backup as a store of its own, checked from the file's header to the last projection.
fn staged(stage: &Path, backup: &Path) -> Result<Contents> {
    let refuse = |why: &str| not_restorable(backup, why);
    let _ = fs::remove_dir_all(stage);
    private_folder(stage)?;
    let copy = Sqlite::file(stage);
    let mut from = fs::File::open(backup).map_err(|fault| refuse(&fault.to_string()))?;
    if !from.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(refuse("it is no file"));
    }
    let mut to = crate::filesystem::private_file(&copy).map_err(|fault| io_refusal(&copy, &fault))?;
    std::io::copy(&mut from, &mut to).map_err(|fault| io_refusal(&copy, &fault))?;
    let contents = Contents::read(&copy).map_err(|fault| refuse(&no_store(&fault)))?;
    if contents.application != open::APPLICATION {
        return Err(refuse("it is a database, but not one of relay's"));
    }
    if contents.schema > open::SCHEMA {
        return Err(Code::StoreTooNew
            .refuse(format!(
                "{} has format {}; this relay knows up to {}",
                backup.display(),
                contents.schema,
                open::SCHEMA
            ))
            .with("path", backup.to_string_lossy())
            .with("found", contents.schema)
            .with("known", open::SCHEMA));
    }
    if contents.check != "ok" {
        return Err(refuse(&format!("it is damaged: {}", contents.check)));
    }
    let report = verify::verify(stage, |_, _, _| {})?;
    if let Some(first) = report.findings.told().next() {
        return Err(refuse(&format!("it is damaged: {}: {}", first.place, first.what)));
    }
    settle(&copy).map_err(|fault| refuse(&fault.to_string()))?;
    to.sync_all().map_err(|fault| io_refusal(&copy, &fault))?;
    sync_folder(stage)?;
    Ok(contents)
}

/// A copy is made without a write-ahead log, and a store has one.
fn settle(copy: &Path) -> rusqlite::Result<()> {
    let connection = open::open(copy)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn not_restorable(backup: &Path, why: &str) -> Refusal {
    Code::InputInvalid
        .refuse(format!("{} cannot be restored: {why}", backup.display()))
        .with("path", backup.to_string_lossy())
}

fn no_store(fault: &rusqlite::Error) -> String {
    format!("it is no store of relay's ({fault})")
}

/// Whether the backup is of this project; true where that has begun another history since under the same path.
fn must_be_of(folder: &Path, project: &ProjectKey, backup: &Path, contents: &Contents, now: &Now) -> Result<bool> {
    // A store that is lost cannot say who it was, and the backup may be from before a move.
    let had = || former_paths(folder).iter().any(|path| path == contents.key.as_str());
    match now.project.clone().or_else(|| archived_project(folder)) {
        Some(id) if id == contents.project => Ok(false),
        id if contents.key == *project => Ok(id.is_some()),
        None if had() => Ok(false),
        _ => Err(of_another(project, backup, &contents.key)),
    }
}

fn of_another(project: &ProjectKey, backup: &Path, key: &ProjectKey) -> Refusal {
    let text = format!(
        "{} is a backup of {key}, and not of {project}; restore it there with --project {key}, and if that is now {project}, go on with `relay project move {key} {project}`",
        backup.display()
    );
    Code::InputInvalid.refuse(text).with("path", backup.to_string_lossy()).with("project", key.as_str())
}

/// Which project the archive is of, as its first event says.
fn archived_project(folder: &Path) -> Option<String> {
    match Archive::of(folder).shown().ok()??.entry(1).ok()?.payload.what {
        Happened::ProjectOpened { project, .. } => Some(project),
        _ => None,
    }
}

/// Whether the store has another event where it and the backup must have the same.
fn store_parts(folder: &Path, stage: &Path, contents: &Contents, now: &Now) -> Result<bool> {
    let shared = now.number().map_or(0, |newest| newest.min(contents.number));
    Ok(shared > 0
        && said(folder, Contents::chain_at(&Sqlite::file(folder), shared))?
            != Contents::chain_at(&Sqlite::file(stage), shared).ok())
}

/// The same of the archive, as far as it goes.
fn archive_parts(stage: &Path, contents: &Contents, cursor: Option<&Cursor>) -> Result<bool> {
    let Some(cursor) = cursor.filter(|cursor| cursor.number <= contents.number) else { return Ok(false) };
    let own =
        Contents::chain_at(&Sqlite::file(stage), cursor.number).map_err(|fault| Fault::new(stage).refuse(&fault))?;
    Ok(own.as_ref() != Some(&cursor.chain))
}

/// Erases in the copy what is known to be erased since the backup was made.
fn erased_again(stage: &Path, erasures: &Erasures) -> Result<Vec<Number>> {
    let copy = Sqlite::file(stage);
    let refuse = |fault: rusqlite::Error| Fault::new(stage).refuse(&fault);
    let erased = erase_again(&open::open(&copy).map_err(refuse)?, erasures).map_err(refuse)?;
    if !erased.is_empty() {
        settle(&copy).map_err(refuse)?;
        fs::File::open(&copy).and_then(|copy| copy.sync_all()).map_err(|fault| io_refusal(&copy, &fault))?;
    }
    Ok(erased)
}

fn asks_consent(backup: &Path, contents: &Contents, why: &str, lost: Option<Number>) -> Refusal {
    let number = contents.number;
    let text = format!("{} ends with #{number}, and {why}; give that up with --lose-after {number}", backup.display());
    Code::InputInvalid.refuse(text).with("path", backup.to_string_lossy()).with("number", number).with("lost", lost)
}

fn must_lose_nothing(backup: &Path, contents: &Contents, restored: &Restored, is_known: bool) -> Result<()> {
    let lost = is_known.then_some(restored.lost);
    let refuse = |why: &str| asks_consent(backup, contents, why, lost);
    if restored.parted {
        return Err(refuse("the store has another history by now"));
    }
    let Some(lost) = lost else {
        return Err(refuse("neither the store nor the archive can be read to say what came after it"));
    };
    if lost > 0 {
        let events = if lost == 1 { "1 event".to_owned() } else { format!("{lost} events") };
        return Err(refuse(&format!("{events} up to #{} would be lost", restored.known)));
    }
    Ok(())
}
