//! A consistent copy of the store while others write, and the way back from one.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use relay_core::domain::event::{Happened, Number, hex};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::fault::{Fault, keeps_from_reading};
use super::gate::Gate;
use super::rebuild::{self, Old};
use super::{Sqlite, open};
use crate::archive::Archive;
use crate::filesystem::{io_refusal, private_folder, sync_folder};
use crate::fresh::Fresh;
use crate::home::former_paths;
use crate::verify;

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The newest event in it, and the chain's hash there.
    pub number: Number,
    pub chain: String,
    pub bytes: u64,
}

/// A store that is as its backup was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The newest event.
    pub number: Number,
    /// How many events that were known before are gone.
    pub lost: Number,
    /// The store that was there.
    pub old: Old,
    /// Where the store that was there is kept.
    pub kept: Option<PathBuf>,
    /// The archive knows what the store no longer does, and has to be made anew.
    pub archive_leads: bool,
}

impl Sqlite {
    /// Copies everything that is committed now into one file, which is checked before it gets its name: as `relay verify`
    /// checks a store. One that is not whole gives no backup, which would look like a way back and be none.
    pub fn backup(&self, place: &Path, replaces: bool, progress: impl FnMut(&str, Number, Number)) -> Result<Copied> {
        let fresh = Fresh::beside(place, replaces)?;
        let path = fresh.path().to_str().ok_or_else(|| {
            Code::InputInvalid.refuse(format!("{} is not valid UTF-8, and SQLite's paths are", place.display()))
        })?;
        self.connection.execute("VACUUM INTO ?1", [path]).map_err(|fault| self.not_copied(place, &fault))?;
        let contents = Contents::read(fresh.path()).map_err(|fault| self.not_copied(place, &fault))?;
        let known = contents.project == self.project && contents.schema == open::SCHEMA;
        if contents.check != "ok" || !known || self.chain_at(contents.number)? != contents.chain {
            return Err(Code::StoreIo
                .refuse(format!("the copy in {} is not what was copied ({})", place.display(), contents.check))
                .with("path", place.to_string_lossy()));
        }
        let checked = verify::verify_copy(fresh.path(), &self.folder, progress).map_err(|refusal| {
            let text = format!("the copy in {} cannot be checked: {}", place.display(), refusal.message);
            refusal.code.refuse(text).with("path", place.to_string_lossy())
        })?;
        if let Some(found) = checked.summary() {
            let text = format!("the store is not whole, so that there is no backup in {}: {found}", place.display());
            return Err(Code::StoreDamaged.refuse(text).with("path", self.folder.to_string_lossy()));
        }
        let bytes = fs::metadata(fresh.path()).map_or(0, |metadata| metadata.len());
        fresh.publish()?;
        Ok(Copied { number: contents.number, chain: contents.chain, bytes })
    }

    /// Why a copy came to nothing: mostly because of the place that it was to be in.
    fn not_copied(&self, place: &Path, fault: &rusqlite::Error) -> Refusal {
        let code = match fault.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return self.refuse(fault),
            Some(ErrorCode::DiskFull) => Code::StoreFull,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Code::StoreReadonly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::StoreBusy,
            _ => Code::StoreIo,
        };
        code.refuse(format!("{}: {fault}", place.display())).with("path", place.to_string_lossy())
    }
}

/// What stands in a store's file, told without changing it.
struct Contents {
    schema: i64,
    application: i64,
    check: String,
    project: String,
    key: ProjectKey,
    number: Number,
    chain: String,
}

impl Contents {
    fn read(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let (schema, application) = (number("PRAGMA user_version")?, number("PRAGMA application_id")?);
        let check = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let (project, key) = connection
            .query_row("SELECT id, key FROM project", [], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let tip = "SELECT number, hash FROM events ORDER BY number DESC LIMIT 1";
        let (number, chain) = connection.query_row(tip, [], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        let key = ProjectKey::resolved(key);
        Ok(Contents { schema, application, check, project, key, number, chain: hex(&chain) })
    }

    /// The chain's hash at an event, where there is such an event.
    fn chain_at(path: &Path, number: Number) -> rusqlite::Result<Option<String>> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT hash FROM events WHERE number = ?1";
        Ok(connection.query_row(sql, [number], |row| row.get::<_, Vec<u8>>(0)).optional()?.map(|hash| hex(&hash)))
    }
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

/// Puts a backup in the place of a project's store, whatever state that is in. The backup is copied and the copy checked in
/// full first; the store that was there is kept, and whoever has it open is refused from then on.
/// Where events are known that the backup lacks, it is refused, unless the caller says after which event they may be lost.
pub fn restore(
    folder: &Path,
    project: &ProjectKey,
    backup: &Path,
    wait: Span,
    lose_after: Option<Number>,
) -> Result<Restored> {
    // Before anything is staged: there is one place for it.
    let _lease = Archive::of(folder).lease()?;
    open::must_not_have_moved(folder)?;
    let stage = folder.join("restoring");
    let outcome = staged(&stage, backup).and_then(|contents| {
        let _gate = Gate::take(folder, Errand { verb: "restore", agent: "", wait, durable: true })?;
        let now = Now::read(folder)?;
        must_be_of(folder, project, backup, &contents, &now)?;
        let tip = Archive::of(folder).tip();
        // What the archive has, the store has too, as far as that can say.
        let is_known = tip.is_ok() || now.number().is_some();
        let archived = tip.ok().flatten().and_then(|tip| tip.cursor).map_or(0, |cursor| cursor.number);
        let known = now.number().unwrap_or(0).max(archived);
        let lost = known.saturating_sub(contents.number);
        match lose_after {
            None => must_lose_nothing(folder, backup, &stage, &contents, &now, is_known.then_some(lost))?,
            Some(after) if after == contents.number => {}
            Some(after) => {
                let ends = format!("{} ends with #{}, and not with #{after}", backup.display(), contents.number);
                return Err(Code::InputInvalid.refuse(ends).with("number", contents.number));
            }
        }
        let kept = rebuild::set_aside(folder)?;
        let path = Sqlite::file(folder);
        fs::rename(Sqlite::file(&stage), &path).map_err(|fault| io_refusal(&path, &fault))?;
        sync_folder(folder)?;
        let archive_leads = archived > contents.number;
        Ok(Restored { number: contents.number, lost, old: now.old, kept, archive_leads })
    });
    let _ = fs::remove_dir_all(&stage);
    outcome
}

/// The backup as a store of its own, checked from the file's header to the last projection.
fn staged(stage: &Path, backup: &Path) -> Result<Contents> {
    let refuse = |why: &str| {
        Code::InputInvalid
            .refuse(format!("{} cannot be restored: {why}", backup.display()))
            .with("path", backup.to_string_lossy())
    };
    let _ = fs::remove_dir_all(stage);
    private_folder(stage)?;
    let copy = Sqlite::file(stage);
    let mut from = fs::File::open(backup).map_err(|fault| refuse(&fault.to_string()))?;
    if !from.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err(refuse("it is no file"));
    }
    let mut to = crate::filesystem::private_file(&copy).map_err(|fault| io_refusal(&copy, &fault))?;
    std::io::copy(&mut from, &mut to).map_err(|fault| io_refusal(&copy, &fault))?;
    let contents = Contents::read(&copy).map_err(|fault| refuse(&format!("it is no store of relay's ({fault})")))?;
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

fn must_be_of(folder: &Path, project: &ProjectKey, backup: &Path, contents: &Contents, now: &Now) -> Result<()> {
    // A store that is lost cannot say who it was, and the backup may be from before a move.
    let had = || former_paths(folder).iter().any(|path| path == contents.key.as_str());
    let by_key = || contents.key == *project || had();
    let id = now.project.clone().or_else(|| archived_project(folder));
    let is_same = id.map_or_else(by_key, |id| id == contents.project);
    if is_same {
        return Ok(());
    }
    Err(Code::InputInvalid
        .refuse(format!("{} is a backup of {}, and not of {project}", backup.display(), contents.key))
        .with("path", backup.to_string_lossy())
        .with("project", contents.key.as_str()))
}

/// Which project the archive is of, as its first event says.
fn archived_project(folder: &Path) -> Option<String> {
    match Archive::of(folder).shown().ok()??.entry(1).ok()?.payload.what {
        Happened::ProjectOpened { project, .. } => Some(project),
        _ => None,
    }
}

fn must_lose_nothing(
    folder: &Path,
    backup: &Path,
    stage: &Path,
    contents: &Contents,
    now: &Now,
    lost: Option<Number>,
) -> Result<()> {
    let shared = now.number().map_or(0, |newest| newest.min(contents.number));
    let parts_ways = shared > 0
        && said(folder, Contents::chain_at(&Sqlite::file(folder), shared))?
            != Contents::chain_at(&Sqlite::file(stage), shared).ok();
    let refuse = |why: String| {
        Code::InputInvalid
            .refuse(format!(
                "{} ends with #{}, and {why}; give that up with --lose-after {}",
                backup.display(),
                contents.number,
                contents.number
            ))
            .with("path", backup.to_string_lossy())
            .with("number", contents.number)
            .with("lost", lost)
    };
    if parts_ways {
        return Err(refuse("the store has another history by now".to_owned()));
    }
    let Some(lost) = lost else {
        return Err(refuse("neither the store nor the archive can be read to say what came after it".to_owned()));
    };
    if lost > 0 {
        let last = contents.number + lost;
        let events = if lost == 1 { "1 event".to_owned() } else { format!("{lost} events") };
        return Err(refuse(format!("{events} up to #{last} would be lost")));
    }
    Ok(())
}
