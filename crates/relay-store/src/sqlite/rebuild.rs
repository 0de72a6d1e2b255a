//! The store made anew from its archive: beside the old one, proven hash by hash on the way, and then put in its place.
//!
//! What the archive does not have cannot come back: remembered answers, kept failed requests, and what another project has yet to be told.

use std::fs;
use std::path::{Path, PathBuf};

use relay_core::archive::{Cursor, Entry};
use relay_core::domain::event::{Happened, Number, hex};
use relay_core::domain::name::{AgentName, Party, ProjectKey};
use relay_core::domain::shell;
use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};
use rusqlite::{Connection, OptionalExtension, params};

use super::entries::entries;
use super::erasures::{Erasures, erase_again};
use super::fault::{self, Fault};
use super::gate::Gate;
use super::replay::Replay;
use super::restore::STAGE;
use super::{Sqlite, open};
use crate::archive::{Archive, Shown};
use crate::filesystem::{free_name, io_refusal, private_file, private_folder, sync_folder, with_end};
use crate::home::{former_paths, name_project};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// The newest event.
    pub events: Number,
    /// Where the old file is kept.
    pub kept: Option<PathBuf>,
    /// How many keys are known to be used, though their answers are lost.
    pub keys: u64,
    /// Messages that the archive has with texts which were erased since, and are again.
    pub erased: Vec<Number>,
    /// Whether others may have been that the old store could not tell of.
    pub erased_more: bool,
    /// Whether the store that was there had other events than the archive.
    pub parted: bool,
    pub old: Old,
}

/// The store that was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Old {
    Gone,
    /// An attempt that died had moved it there.
    Aside(PathBuf),
    /// It cannot say what it had.
    Unreadable,
    /// Its newest event.
    Read(Number),
}

impl Old {
    /// Where the file is not that should be there. Asked before the leftovers of an earlier attempt are cleared away.
    pub(super) fn gone(folder: &Path) -> Self {
        let has_died = [ANEW, STAGE].iter().any(|name| folder.join(name).exists());
        let aside = last_aside(folder).filter(|_| has_died);
        aside.map_or(Old::Gone, |aside| Old::Aside(with_end(&aside, PARTS[0])))
    }
}

/// What the old store says where its history and the archive's must meet.
struct Meeting {
    number: Number,
    /// None where it cannot be read.
    chain: Option<String>,
    newest: Number,
}

impl Meeting {
    /// Whether it is known to have another event there.
    fn differs(&self, chain: &str) -> bool {
        self.chain.as_ref().is_some_and(|own| own != chain)
    }
}

/// Makes the store of a folder anew. Where the old one has events that the archive lacks, it is refused, unless the caller
/// says after which event they may be lost.
pub fn rebuild(
    folder: &Path,
    project: &ProjectKey,
    lose_after: Option<Number>,
    gate_wait: Span,
    progress: impl FnMut(Number, Number),
) -> Result<Rebuilt> {
    let archive = Archive::of(folder);
    // Also where there is no folder: nothing is made for a project that has no archive.
    archive.shown()?.ok_or_else(|| nothing_in(&archive))?;
    // A clone that somebody put there brought its folder along.
    make_room(folder)?;
    let _lease = archive.lease()?;
    let _gate = Gate::take(folder, Errand { verb: "rebuild", agent: "", wait: gate_wait, durable: true })?;
    let mut shown = archive.shown()?.ok_or_else(|| nothing_in(&archive))?;
    let cursor = shown.cursor().cloned().ok_or_else(|| archive.foreign(&shown.newest()))?;
    let meeting = look(folder, &cursor)?;
    let old = match &meeting {
        Ok(meeting) => Old::Read(meeting.newest),
        Err(old) => old.clone(),
    };
    let meeting = meeting.ok();
    // A number that is not the archive's last was said of another archive, or of an earlier one.
    if let Some(meeting) = meeting.as_ref().filter(|_| lose_after != Some(cursor.number)) {
        may_go(folder, &archive, meeting, &cursor)?;
    }
    if let Some(after) = lose_after.filter(|after| *after != cursor.number) {
        let ends = format!("the archive ends with #{}, and not with #{after}", cursor.number);
        return Err(Code::InputInvalid.refuse(ends).with("number", cursor.number));
    }
    let anew = folder.join(ANEW);
    let made = make(&anew, &archive, &mut shown, meeting.as_ref(), progress).and_then(|made| {
        must_be_of(&anew, folder, project, &archive)?;
        if made.parted && lose_after.is_none() {
            return Err(other_history(&archive, meeting.map_or(0, |meeting| meeting.number), &cursor));
        }
        let erasures = Erasures::known(folder, &old, cursor.number);
        Ok((made, finish(&anew, &erasures)?, !erasures.is_whole))
    });
    let (Made { keys, parted }, erased, erased_more) = made.inspect_err(|_| remove(&anew))?;
    let kept = put_in_place(folder, &anew, project)?;
    Ok(Rebuilt { events: cursor.number + erased.len() as Number, kept, keys, erased, erased_more, parted, old })
}

fn nothing_in(archive: &Archive) -> Refusal {
    let path = archive.path().to_string_lossy();
    let text = format!(
        "there is nothing in the archive {path}; put a clone of it there (`{}`), or take a backup with --from-backup FILE",
        shell::line(&["git", "clone", "--bare", "CLONE", &path])
    );
    Code::ArchiveBehind.refuse(text).with("path", archive.path().to_string_lossy())
}

/// What the old store can still say.
fn look(folder: &Path, cursor: &Cursor) -> Result<std::result::Result<Meeting, Old>> {
    let path = Sqlite::file(folder);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(Err(Old::gone(folder)));
    }
    if open::must_be_there(folder).is_err() {
        return Ok(Err(Old::Unreadable));
    }
    let version = open::open(&path).map(|store| open::version(&store, folder));
    if let Ok(Err(refusal)) = version
        && refusal.code == Code::StoreTooNew
    {
        return Err(refusal);
    }
    let read = || -> rusqlite::Result<Option<Meeting>> {
        let store = open::open(&path)?;
        let newest: Number = store.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0))?;
        let number = newest.min(cursor.number);
        let hash = store
            .query_row("SELECT hash FROM events WHERE number = ?1", [number], |row| row.get::<_, Vec<u8>>(0))
            .map(Some)
            .or_else(|fault| if fault::keeps_from_reading(&fault) { Err(fault) } else { Ok(None) })?;
        Ok((newest > 0).then(|| Meeting { number, chain: hash.map(|hash| hex(&hash)), newest }))
    };
    match read() {
        Ok(meeting) => Ok(meeting.ok_or(Old::Unreadable)),
        Err(fault) if fault::keeps_from_reading(&fault) => Err(Fault::new(folder).refuse(&fault)),
        Err(_) => Ok(Err(Old::Unreadable)),
    }
}

/// A store may go when the archive has all that it has, or somebody gives that up. One that is damaged is asked for no less:
/// what it can still number, it may still be able to give.
fn may_go(folder: &Path, archive: &Archive, old: &Meeting, cursor: &Cursor) -> Result<()> {
    if old.number == cursor.number && old.differs(&cursor.chain) {
        return Err(other_history(archive, old.number, cursor));
    }
    if old.newest > cursor.number {
        let refusal = Code::ArchiveBehind
            .refuse(format!(
                "the archive ends with #{} and the store with #{}; drain it first, or give up what is between with --lose-after {}",
                cursor.number, old.newest, cursor.number
            ))
            .with("archived", cursor.number)
            .with("newest", old.newest);
        return Err(if can_be_drained(folder, cursor, old.newest) { refusal } else { refusal.with("damaged", true) });
    }
    Ok(())
}

/// Whether what the archive lacks is as it was written: a drain copies nothing else.
fn can_be_drained(folder: &Path, cursor: &Cursor, newest: Number) -> bool {
    let read = open::open(&Sqlite::file(folder)).and_then(|store| entries(&store, cursor.number, newest));
    read.is_ok_and(|entries| {
        let are_all = entries.len() as u64 == newest - cursor.number;
        are_all && entries.iter().all(|entry| entry.faults().is_empty())
    })
}

fn other_history(archive: &Archive, number: Number, cursor: &Cursor) -> Refusal {
    let how = format!("#{number} is another event in the store; --lose-after {} gives that one up", cursor.number);
    archive.diverged(&how)
}

/// What came of a replay.
struct Made {
    /// How many keys are known to be used.
    keys: u64,
    /// Whether the old store has another event where it and the archive must meet.
    parted: bool,
}

/// Writes the new file.
fn make(
    path: &Path,
    archive: &Archive,
    shown: &mut Shown<'_>,
    meeting: Option<&Meeting>,
    mut progress: impl FnMut(Number, Number),
) -> Result<Made> {
    remove(path);
    private_file(path).map_err(|fault| io_refusal(path, &fault))?;
    let folder = path.parent().unwrap_or(path);
    let refuse = |fault: rusqlite::Error| Fault::new(folder).refuse(&fault);
    let mut connection = Connection::open(path).map_err(refuse)?;
    connection
        .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32768")
        .map_err(refuse)?;
    connection.set_prepared_statement_cache_capacity(128);
    open::lay_out(&mut connection, folder)?;
    let mut replay = Replay::begin(&connection).map_err(refuse)?;
    let (mut keys, mut parted) = (0, false);
    let commits: Vec<Cursor> = shown.commits.iter().filter_map(|commit| commit.cursor.clone()).collect();
    let tip = shown.cursor().cloned().ok_or_else(|| archive.foreign(&shown.newest()))?;
    for cursor in commits {
        for number in replay.number + 1..=cursor.number {
            let entry = shown.entry(number)?;
            // Whether a message's texts were erased, only a later event can tell.
            let faults = if entry.is_message() { entry.wrong() } else { entry.faults() };
            if let Some(fault) = faults.first() {
                return Err(archive.diverged(fault));
            }
            replay.add(&entry).map_err(|fault| match fault.sqlite_error_code() {
                Some(rusqlite::ErrorCode::ConstraintViolation) => {
                    archive.diverged(&format!("#{number} does not follow: {fault}"))
                }
                _ => refuse(fault),
            })?;
            parted |= meeting.is_some_and(|old| old.number == number && old.differs(&replay.chain));
            keys += use_up(&connection, &entry).map_err(refuse)?;
            progress(number, tip.number);
        }
        if replay.chain != cursor.chain {
            return Err(archive.diverged(&format!("the events up to #{} do not chain", cursor.number)));
        }
    }
    replay.commit().map_err(refuse)?;
    if let Some(number) = unexplained(&connection).map_err(refuse)? {
        return Err(archive.diverged(&format!("a text of #{number} is missing, and nobody erased it")));
    }
    connection.close().map_err(|(_, fault)| refuse(fault))?;
    Ok(Made { keys, parted })
}

/// What stands in the archive is another project's when neither its path nor one that it had is this project's.
fn must_be_of(anew: &Path, folder: &Path, project: &ProjectKey, archive: &Archive) -> Result<()> {
    let paths = || -> rusqlite::Result<Vec<String>> {
        let connection = Connection::open(anew)?;
        let mut payloads = connection.prepare(
            "SELECT json_extract(payload, iif(kind = 'project_moved', '$.to', '$.path')) FROM events
             WHERE kind IN ('project_opened', 'project_moved') ORDER BY number DESC",
        )?;
        payloads.query_map([], |row| row.get(0))?.collect()
    };
    let paths = paths().map_err(|fault| Fault::new(folder).refuse(&fault))?;
    let own = [former_paths(folder), vec![project.to_string()]].concat();
    if paths.iter().any(|path| own.contains(path)) {
        return Ok(());
    }
    let text = format!(
        "the archive {} is of {}, and not of {project}; put that of {project} there, or take a backup with --from-backup FILE",
        archive.path().display(),
        paths.first().map_or("nobody", String::as_str)
    );
    Err(Code::ArchiveDiverged.refuse(text).with("path", archive.path().to_string_lossy()))
}

/// Erases what is known to be erased since, and makes the file durable; which messages those were.
fn finish(path: &Path, erasures: &Erasures) -> Result<Vec<Number>> {
    let folder = path.parent().unwrap_or(path);
    let refuse = |fault: rusqlite::Error| Fault::new(folder).refuse(&fault);
    let connection = Connection::open(path).map_err(refuse)?;
    let erased = erase_again(&connection, erasures).map_err(refuse)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(refuse)?;
    connection.close().map_err(|(_, fault)| refuse(fault))?;
    fs::File::open(path).and_then(|file| file.sync_all()).map_err(|fault| io_refusal(path, &fault))?;
    Ok(erased)
}

/// A message that lacks a text which nobody erased.
fn unexplained(connection: &Connection) -> rusqlite::Result<Option<Number>> {
    let sql = "SELECT number FROM messages
        WHERE redacted_by IS NULL AND NOT EXISTS (SELECT 1 FROM texts WHERE event = number AND field = 'body')
        OR coalesce(redacted_by, subject_redacted_by) IS NULL
        AND NOT EXISTS (SELECT 1 FROM texts WHERE event = number AND field = 'subject') ORDER BY number LIMIT 1";
    connection.query_row(sql, [], |row| row.get(0)).optional()
}

/// A request that is repeated with a key of the history must not act twice; its answer is lost, so that it gets none.
fn use_up(connection: &Connection, entry: &Entry) -> rusqlite::Result<u64> {
    let Some(key) = &entry.payload.key else { return Ok(0) };
    let mut scopes = vec![match &entry.payload.actor {
        Party::Agent(agent) => agent.key(),
        other => other.to_string(),
    }];
    // Whoever starts without a name is known by its session, and one that does not own the stores by its credential too. Who
    // owned them is not in the history, so both are used up.
    if let Happened::AgentRegistered { agent, session, .. } | Happened::AgentResumed { agent, session, .. } =
        &entry.payload.what
    {
        scopes.extend(by_session(&credential(connection, agent)?, session.as_deref().unwrap_or_default()));
    }
    // A subagent that has no name yet starts in the environment of its parent, and is known as that.
    if let Happened::AgentRegistered { credential, parent: Some(parent), .. } = &entry.payload.what {
        let sql = "SELECT session FROM sessions WHERE agent = ?1";
        let mut sessions = connection.prepare_cached(sql)?;
        let sessions = sessions.query_map([parent.key()], |row| row.get::<_, String>(0))?;
        for session in sessions {
            scopes.extend(by_session(credential, &session?));
        }
        scopes.push(parent.key());
    }
    let sql = "INSERT OR IGNORE INTO answers (actor, key, verb, salt, request, answer, number) VALUES (?1, ?2, '', zeroblob(16), '', '', ?3)";
    let mut added = 0;
    for scope in scopes {
        added += connection.prepare_cached(sql)?.execute(params![scope, key, entry.number])?;
    }
    Ok(u64::from(added > 0))
}

fn by_session(credential: &str, session: &str) -> [String; 2] {
    let scope = format!("session {session}");
    [format!("{credential} {scope}"), scope]
}

fn credential(connection: &Connection, agent: &AgentName) -> rusqlite::Result<String> {
    let sql = "SELECT credential FROM agents WHERE name = ?1";
    connection.prepare_cached(sql)?.query_row([agent.as_str()], |row| row.get(0))
}

/// What SQLite keeps a store in.
const PARTS: [&str; 3] = [".db", ".db-wal", ".db-shm"];

/// The folder of a project of which nothing may be left.
pub(super) fn make_room(folder: &Path) -> Result<()> {
    folder.parent().map_or(Ok(()), private_folder)?;
    private_folder(folder)
}

/// Makes a file the project's store, and says where the old one is kept.
pub(super) fn put_in_place(folder: &Path, file: &Path, project: &ProjectKey) -> Result<Option<PathBuf>> {
    let kept = set_aside(folder)?;
    let path = Sqlite::file(folder);
    fs::rename(file, &path).map_err(|fault| io_refusal(&path, &fault))?;
    sync_folder(folder)?;
    name_project(folder, project)?;
    Ok(kept)
}

/// Moves the old file away with its log: a log that stayed would be taken for the new file's.
fn set_aside(folder: &Path) -> Result<Option<PathBuf>> {
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    let (current, free) = (folder.join("relay"), free_name(folder, "relay.before", &PARTS));
    // An earlier attempt may have died when it had moved the file, and not yet its log.
    let begun = if is_there(&Sqlite::file(folder)) { None } else { begun(folder) };
    let kept = begun.unwrap_or(free);
    for part in PARTS {
        let (from, to) = (with_end(&current, part), with_end(&kept, part));
        if is_there(&from) {
            fs::rename(&from, &to).map_err(|fault| io_refusal(&from, &fault))?;
            point!("store-amid-aside", StoreIo);
        }
    }
    sync_folder(folder)?;
    Ok(Some(with_end(&kept, PARTS[0])).filter(|kept| is_there(kept)))
}

/// The last file that was moved away, when its log was not.
fn begun(folder: &Path) -> Option<PathBuf> {
    last_aside(folder).filter(|last| !with_end(last, PARTS[1]).exists())
}

/// The last file that was moved away.
fn last_aside(folder: &Path) -> Option<PathBuf> {
    let named = |number: u32| folder.join(format!("relay.before-{number}"));
    let has = |path: &PathBuf, part: &str| with_end(path, part).exists();
    let last = (1..).map(named).take_while(|path| PARTS.iter().any(|part| has(path, part))).last();
    last.filter(|last| has(last, PARTS[0]))
}

/// Where a store is made; written under the archive's lease.
const ANEW: &str = "relay.anew.db";

/// Clears away what somebody left who died while making a store, or restoring one: it may hold texts that are erased by
/// now. For the holder of the archive's lease, under which both are written.
pub(crate) fn clear(folder: &Path) {
    // Without a store they tell the next attempt what became of it.
    if fs::symlink_metadata(Sqlite::file(folder)).is_err() {
        return;
    }
    remove(&folder.join(ANEW));
    let _ = fs::remove_dir_all(folder.join(STAGE));
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(with_end(path, end));
    }
}
