//! The tables made again from the history, event by event: to prove that they are nothing else, or to have them back.

use relay_core::archive::Entry;
use relay_core::domain::event::{Event, Happened, Number, chain_hash, hex};
use rusqlite::{Connection, Result, params};

use super::apply::apply;
use super::rows::unhex;

/// The tables that a replay gives again.
pub(super) const PROJECTIONS: [&str; 13] = [
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

pub(super) struct Replay<'a> {
    connection: &'a Connection,
    project: String,
    /// The newest event, and the chain's hash there.
    pub number: Number,
    pub chain: String,
}

impl<'a> Replay<'a> {
    /// Into empty tables, as one transaction.
    pub fn begin(connection: &'a Connection) -> Result<Self> {
        connection.execute_batch("BEGIN")?;
        Ok(Replay { connection, project: String::new(), number: 0, chain: String::new() })
    }

    /// After the last event of tables that are there.
    pub fn resume(connection: &'a Connection) -> Result<Self> {
        connection.execute_batch("BEGIN")?;
        let project = connection.query_row("SELECT id FROM project", [], |row| row.get(0))?;
        let tip = "SELECT number, hash FROM events ORDER BY number DESC LIMIT 1";
        let (number, hash) = connection.query_row(tip, [], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        Ok(Replay { connection, project, number, chain: hex(&hash) })
    }

    /// Adds an event, its texts, and what follows from it.
    pub fn add(&mut self, entry: &Entry) -> Result<()> {
        let payload = &entry.payload;
        if let Happened::ProjectOpened { project, .. } = &payload.what {
            self.project.clone_from(project);
        }
        let hash = chain_hash(&self.project, entry.number, &self.chain, &entry.canonical);
        let columns = params![
            entry.number,
            payload.what.kind(),
            payload.at.millis(),
            payload.actor.to_string(),
            payload.key,
            entry.canonical,
            unhex(&self.chain),
            unhex(&hash)
        ];
        let sql = "INSERT INTO events (number, kind, at, actor, key, payload, previous, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        self.connection.prepare_cached(sql)?.execute(columns)?;
        for (field, kept) in &entry.texts {
            let sql = "INSERT INTO texts (event, field, salt, text) VALUES (?1, ?2, ?3, ?4)";
            self.connection.prepare_cached(sql)?.execute(params![entry.number, field, kept.salt, kept.text])?;
        }
        let event = Event { number: entry.number, payload: payload.clone(), hash };
        apply(self.connection, &event)?;
        (self.number, self.chain) = (event.number, event.hash);
        Ok(())
    }

    pub fn commit(self) -> Result<()> {
        self.connection.execute_batch("COMMIT")
    }
}
