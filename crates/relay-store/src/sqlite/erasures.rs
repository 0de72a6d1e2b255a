//! What was erased stays erased when an older copy takes a store's place: whatever is left to say so is asked, and the
//! erasures that the copy is too old to know are made again in it.

use std::collections::BTreeMap;
use std::path::Path;

use relay_core::archive::Entry;
use relay_core::domain::event::{Happened, Number, Payload};
use rusqlite::{Connection, Error, OpenFlags, OptionalExtension};

use super::Sqlite;
use super::entries::entry;
use super::rebuild::Old;
use super::replay::Replay;
use crate::archive::Archive;

/// Redactions, and the messages that they erase as they were sent: another history may have others under their numbers.
#[derive(Default)]
pub(super) struct Erasures {
    redactions: Vec<Entry>,
    messages: BTreeMap<Number, String>,
    /// Whether all could be asked for that was known to have happened.
    pub is_whole: bool,
}

impl Erasures {
    /// All that the store in a folder knows of; where it cannot say, what the archive does of the time after an event.
    pub fn known(folder: &Path, old: &Old, after: Number) -> Self {
        let newest = match old {
            Old::Read(newest) => *newest,
            Old::Gone | Old::Aside(_) | Old::Unreadable => 0,
        };
        let in_store = if newest > 0 { Self::in_store(&Sqlite::file(folder)).ok() } else { None };
        in_store.or_else(|| Self::in_archive(&Archive::of(folder), after, newest)).unwrap_or_default()
    }

    fn in_store(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT number, payload FROM events WHERE kind = 'message_redacted' ORDER BY number";
        let mut erasures = Erasures { is_whole: true, ..Erasures::default() };
        let mut found = connection.prepare(sql)?;
        let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in found {
            let (number, canonical) = row?;
            erasures.add(entry(&connection, number, canonical)?, |number| payload(&connection, number))?;
        }
        Ok(erasures)
    }

    fn in_archive(archive: &Archive, after: Number, newest: Number) -> Option<Self> {
        let mut shown = archive.shown().ok()??;
        let last = shown.cursor()?.number;
        let mut erasures = Erasures { is_whole: last >= newest, ..Erasures::default() };
        for number in after + 1..=last {
            let entry = shown.entry(number).ok()?;
            let _ = erasures.add(entry, |number| Ok(shown.entry(number).ok().map(|entry| entry.canonical)));
        }
        Some(erasures)
    }

    fn add(
        &mut self,
        redaction: Entry,
        mut sent: impl FnMut(Number) -> rusqlite::Result<Option<String>>,
    ) -> rusqlite::Result<()> {
        let Happened::MessageRedacted { message, copies, .. } = &redaction.payload.what else { return Ok(()) };
        for number in std::iter::once(message).chain(copies) {
            if let Some(payload) = sent(*number)? {
                self.messages.insert(*number, payload);
            }
        }
        self.redactions.push(redaction);
        Ok(())
    }
}

fn payload(connection: &Connection, number: Number) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT payload FROM events WHERE number = ?1";
    connection.prepare_cached(sql)?.query_row([number], |row| row.get(0)).optional()
}

/// Erases these messages in a store that has them still, as whoever erased them did, and leaves no byte of them in its file.
/// Which those were.
pub(super) fn erase_again(connection: &Connection, erasures: &Erasures) -> rusqlite::Result<Vec<Number>> {
    let mut erased = Vec::new();
    let mut replay = Replay::resume(connection)?;
    for redaction in &erasures.redactions {
        let Happened::MessageRedacted { message, copies, why } = &redaction.payload.what else { continue };
        let is_same = |number: &Number| -> rusqlite::Result<bool> {
            let known = erasures.messages.get(number);
            Ok(known.is_some() && payload(connection, *number)?.as_ref() == known)
        };
        let still = "SELECT EXISTS (SELECT 1 FROM messages WHERE number = ?1 AND redacted_by IS NULL)";
        if !is_same(message)? || !connection.query_row(still, [message], |row| row.get::<_, bool>(0))? {
            continue;
        }
        let mut again = Vec::new();
        for copy in copies {
            if is_same(copy)? {
                again.push(*copy);
            }
        }
        let what = Happened::MessageRedacted { message: *message, copies: again, why: why.clone() };
        let Payload { at, actor, .. } = redaction.payload.clone();
        let payload = Payload { at, actor, key: None, what };
        let canonical = serde_json::to_string(&payload).map_err(|fault| Error::ToSqlConversionFailure(fault.into()))?;
        let (number, texts) = (replay.number + 1, redaction.texts.clone());
        replay.add(&Entry { number, canonical, payload, texts, erased: None })?;
        erased.push(*message);
    }
    replay.commit()?;
    if !erased.is_empty() {
        connection.execute_batch(
            "PRAGMA temp_store = FILE; INSERT INTO search (search) VALUES ('optimize'); VACUUM; DELETE FROM cleanings",
        )?;
    }
    Ok(erased)
}
