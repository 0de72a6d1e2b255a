//! The history as the archive takes it: each event with the texts beside it, byte for byte.

use std::collections::BTreeMap;

use relay_core::archive::{Cursor, Entry, Erased, KeptText};
use relay_core::domain::event::{Number, chain_hash, hex};
use relay_core::error::Code;
use relay_core::store::Result;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Sqlite, rows};

/// How many events are its end.
const CHAIN_TIP: Number = 100;

impl Sqlite {
    /// The number of the newest event, and the chain's hash there.
    pub(crate) fn newest(&self) -> Result<(Number, String)> {
        let sql = "SELECT number, hash FROM events ORDER BY number DESC LIMIT 1";
        let newest = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row([], |row| Ok((row.get(0)?, hash(row, 1)?))).optional());
        Ok(newest.map_err(|fault| self.refuse(&fault))?.unwrap_or_default())
    }

    /// The chain's hash at an event that is there.
    pub(crate) fn chain_at(&self, number: Number) -> Result<String> {
        let found = self
            .connection
            .prepare_cached("SELECT hash FROM events WHERE number = ?1")
            .and_then(|mut statement| statement.query_row([number], |row| hash(row, 0)).optional());
        let missing = || Code::Internal.refuse(format!("there is no event #{number}"));
        found.map_err(|fault| self.refuse(&fault))?.ok_or_else(missing)
    }

    /// The end of the chain, event by event: a look at what was written last, where all of it would take long.
    pub fn check_chain_tip(&self) -> Result<()> {
        let (newest, _) = self.newest()?;
        let number = newest.saturating_sub(CHAIN_TIP);
        let chain = if number == 0 { String::new() } else { self.chain_at(number)? };
        if newest == 0 { Ok(()) } else { self.entries(&Cursor { number, chain }, newest).map(drop) }
    }

    /// Whether texts were erased after one number, up to another.
    pub(crate) fn erases(&self, after: Number, up_to: Number) -> Result<bool> {
        let sql =
            "SELECT EXISTS (SELECT 1 FROM events WHERE number > ?1 AND number <= ?2 AND kind = 'message_redacted')";
        let found =
            self.connection.prepare_cached(sql).and_then(|mut found| found.query_row([after, up_to], |row| row.get(0)));
        found.map_err(|fault| self.refuse(&fault))
    }

    /// The events after a place in the chain up to a number, with their texts, and the place that they lead to. What is not
    /// as it was written is not copied.
    pub(crate) fn entries(&self, after: &Cursor, up_to: Number) -> Result<(Vec<Entry>, Cursor)> {
        let entries = entries(&self.connection, after.number, up_to).map_err(|fault| self.refuse(&fault))?;
        let damaged = |what: &str| Code::StoreDamaged.refuse(what).with("path", self.folder.to_string_lossy());
        let mut chain = after.chain.clone();
        for entry in &entries {
            if let Some(fault) = entry.faults().first() {
                return Err(damaged(fault));
            }
            chain = chain_hash(&self.project, entry.number, &chain, &entry.canonical);
        }
        if chain != self.chain_at(up_to)? {
            return Err(damaged(&format!("#{} to #{up_to} do not chain", after.number + 1)));
        }
        Ok((entries, Cursor { number: up_to, chain }))
    }
}

fn hash(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<String> {
    row.get::<_, Vec<u8>>(column).map(|bytes| hex(&bytes))
}

pub(super) fn entries(connection: &Connection, after: Number, up_to: Number) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection
        .prepare_cached("SELECT number, payload FROM events WHERE number > ?1 AND number <= ?2 ORDER BY number")?;
    let rows = statement.query_map(params![after, up_to], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut entries = Vec::new();
    for row in rows {
        let (number, canonical) = row?;
        entries.push(entry(connection, number, canonical)?);
    }
    Ok(entries)
}

/// An event by its payload, with what is kept beside it.
pub(super) fn entry(connection: &Connection, number: Number, canonical: String) -> rusqlite::Result<Entry> {
    let payload = serde_json::from_str(&canonical)
        .map_err(|fault| rusqlite::Error::FromSqlConversionFailure(1, rusqlite::types::Type::Text, Box::new(fault)))?;
    let (texts, erased) = (texts(connection, number)?, erased(connection, number)?);
    Ok(Entry { number, canonical, payload, texts, erased })
}

fn texts(connection: &Connection, number: Number) -> rusqlite::Result<BTreeMap<String, KeptText>> {
    let mut statement = connection.prepare_cached("SELECT field, salt, text FROM texts WHERE event = ?1")?;
    let rows =
        statement.query_map([number], |row| Ok((row.get(0)?, KeptText { salt: row.get(1)?, text: row.get(2)? })))?;
    rows.collect()
}

fn erased(connection: &Connection, number: Number) -> rusqlite::Result<Option<Erased>> {
    let sql = "SELECT e.number, e.actor, t.text, m.redacted_by IS NULL FROM messages m JOIN events e ON e.number = coalesce(m.redacted_by, m.subject_redacted_by)
        LEFT JOIN texts t ON t.event = e.number AND t.field = 'why' WHERE m.number = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([number], |row| {
        Ok(Erased { number: row.get(0)?, by: rows::party(row, 1)?, why: row.get(2)?, only_subject: row.get(3)? })
    });
    found.optional()
}
