//! The proof that the projections are nothing but the history: replay it, and compare every table row by row.

use std::path::Path;

use relay_core::domain::event::{chain_hash, hex, text_hash};
use rusqlite::{Connection, OpenFlags, Result, params};

use super::apply::apply;
use super::{Sqlite, rows};

/// The tables that a replay gives again.
const PROJECTIONS: [&str; 13] = [
    "project",
    "agents",
    "sessions",
    "threads",
    "members",
    "messages",
    "deliveries",
    "reservations",
    "overlaps",
    "takeovers",
    "told",
    "links",
    "moves",
];

/// Everything in the store of this folder that is not as its history says; empty when all is well.
pub fn differences(folder: &Path) -> Result<Vec<String>> {
    let store = Connection::open_with_flags(Sqlite::file(folder), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    store.execute_batch("BEGIN")?;
    let replayed = Connection::open_in_memory()?;
    replayed.execute_batch(include_str!("../../migrations/V1__the_bus.sql"))?;
    let mut findings = chain(&store)?;
    copy_history(&store, &replayed)?;
    for table in PROJECTIONS {
        let (stored, computed) = (dump(&store, table)?, dump(&replayed, table)?);
        findings.extend(
            stored
                .iter()
                .filter(|row| computed.binary_search(row).is_err())
                .map(|row| format!("{table}: only in the store: {row}")),
        );
        findings.extend(
            computed
                .iter()
                .filter(|row| stored.binary_search(row).is_err())
                .map(|row| format!("{table}: only in the replay: {row}")),
        );
        if stored.len() != computed.len() {
            findings.push(format!("{table}: {} rows in the store, {} in the replay", stored.len(), computed.len()));
        }
    }
    Ok(findings)
}

/// Numbers without gaps, hashes that chain, columns that agree with their payload, texts that agree with their hashes.
fn chain(store: &Connection) -> Result<Vec<String>> {
    let project: String = store.query_row("SELECT id FROM project", [], |row| row.get(0))?;
    let mut findings = Vec::new();
    let mut previous = String::new();
    let mut statement =
        store.prepare("SELECT number, payload, hash, kind, at, actor, key, previous FROM events ORDER BY number")?;
    let mut events = statement.query([])?;
    let mut expected = 1;
    while let Some(row) = events.next()? {
        let event = rows::event(row)?;
        let (number, payload): (u64, String) = (row.get(0)?, row.get(1)?);
        let columns: (String, i64, String, Option<String>) = (row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?);
        let said = (
            event.payload.what.kind().to_owned(),
            event.payload.at.millis(),
            event.payload.actor.to_string(),
            event.payload.key.clone(),
        );
        if number != expected {
            findings.push(format!("events: #{expected} is missing"));
        }
        if hex(&row.get::<_, Vec<u8>>(7)?) != previous
            || chain_hash(&project, number, &previous, &payload) != event.hash
        {
            findings.push(format!("events: #{number} does not chain"));
        }
        if columns != said {
            findings.push(format!("events: the columns of #{number} differ from its payload"));
        }
        if serde_json::to_string(&event.payload).ok().as_deref() != Some(&payload) {
            findings.push(format!("events: the payload of #{number} is not canonical"));
        }
        findings.extend(texts(store, number, &payload)?);
        previous = event.hash;
        expected = number + 1;
    }
    Ok(findings)
}

fn texts(store: &Connection, number: u64, payload: &str) -> Result<Vec<String>> {
    let mut statement = store.prepare_cached("SELECT field, salt, text FROM texts WHERE event = ?1")?;
    let rows = statement.query_map([number], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, String>(2)?))
    })?;
    let mut findings = Vec::new();
    for row in rows {
        let (field, salt, text) = row?;
        let expected = format!("\"{field}\":\"{}\"", text_hash(&salt, &text).0);
        if !payload.contains(&expected) {
            findings.push(format!("texts: the {field} of #{number} is not the one that its event names"));
        }
    }
    Ok(findings)
}

fn copy_history(store: &Connection, replayed: &Connection) -> Result<()> {
    replayed.execute_batch("BEGIN")?;
    let mut statement =
        store.prepare("SELECT number, payload, hash, kind, at, actor, key, previous FROM events ORDER BY number")?;
    let mut events = statement.query([])?;
    while let Some(row) = events.next()? {
        let event = rows::event(row)?;
        replayed.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?.execute(params![
            row.get::<_, i64>(0)?,
            row.get::<_, String>(3)?,
            row.get::<_, i64>(4)?,
            row.get::<_, String>(5)?,
            row.get::<_, Option<String>>(6)?,
            row.get::<_, String>(1)?,
            row.get::<_, Vec<u8>>(7)?,
            row.get::<_, Vec<u8>>(2)?
        ])?;
        let mut texts = store.prepare_cached("SELECT field, salt, text FROM texts WHERE event = ?1")?;
        let mut texts = texts.query([event.number])?;
        while let Some(text) = texts.next()? {
            replayed.prepare_cached("INSERT INTO texts VALUES (?1, ?2, ?3, ?4)")?.execute(params![
                event.number,
                text.get::<_, String>(0)?,
                text.get::<_, Vec<u8>>(1)?,
                text.get::<_, String>(2)?
            ])?;
        }
        apply(replayed, &event)?;
    }
    replayed.execute_batch("COMMIT")
}

/// Every row of a table as text, sorted.
fn dump(connection: &Connection, table: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table}"))?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let cells: Result<Vec<String>> = (0..columns)
            .map(|column| row.get::<_, rusqlite::types::Value>(column).map(|value| format!("{value:?}")))
            .collect();
        Ok(cells?.join(" | "))
    })?;
    let mut rows: Vec<String> = rows.collect::<Result<_>>()?;
    rows.sort();
    Ok(rows)
}
