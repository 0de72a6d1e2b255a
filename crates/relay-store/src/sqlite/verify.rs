//! The store as one read transaction shows it, held against its own history.

use std::path::{Path, PathBuf};

use relay_core::archive::Entry;
use relay_core::domain::event::{Happened, Number, chain_hash, hex};
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use rusqlite::{Connection, ErrorCode, Row};

use super::fault::{Fault, keeps_from_reading};
use super::replay::Replay;
use super::{Sqlite, entries, open};
use crate::verify::Findings;

/// While it lives, what it sees does not change.
pub(crate) struct Snapshot {
    pub(super) connection: Connection,
    folder: PathBuf,
}

/// What a replay of the history gave.
pub(crate) struct Replayed {
    pub(super) connection: Connection,
}

/// An event with the chain's hash at it, or the number of one that is not as it was written.
pub(crate) type Sound<'a> = std::result::Result<(&'a Entry, &'a str), Number>;

/// Where the chain is.
struct Link {
    project: String,
    number: Number,
    /// None after an event that could not be read.
    chain: Option<String>,
}

/// The tables of the replay lie where the system keeps temporary files.
fn no_room(fault: &rusqlite::Error) -> Refusal {
    let is_full = fault.sqlite_error_code() == Some(ErrorCode::DiskFull);
    let code = if is_full { Code::StoreFull } else { Code::StoreIo };
    code.refuse(format!("the history is replayed into a temporary file, and that failed: {fault}"))
}

impl Snapshot {
    pub fn open(folder: &Path) -> Result<Self> {
        open::must_be_there(folder)?;
        Self::of(&Sqlite::file(folder), folder)
    }

    /// Of a file that is the store in a folder, or a copy of that.
    pub fn of(file: &Path, folder: &Path) -> Result<Self> {
        let refuse = |fault: rusqlite::Error| Fault::new(folder).refuse(&fault);
        let connection = open::open(file).map_err(refuse)?;
        open::version(&connection, folder)?;
        connection.execute_batch("BEGIN").map_err(refuse)?;
        Ok(Snapshot { connection, folder: folder.to_owned() })
    }

    /// What SQLite cannot read is found damaged; what keeps it from reading is no finding.
    pub(super) fn found(
        &self,
        findings: &mut Findings,
        place: &str,
        number: Option<Number>,
        how: &str,
        fault: &rusqlite::Error,
    ) -> Result<()> {
        if keeps_from_reading(fault) {
            return Err(Fault::new(&self.folder).refuse(fault));
        }
        findings.store(place, number, format!("{how}: {fault}"));
        Ok(())
    }

    pub fn newest(&self, findings: &mut Findings) -> Result<Number> {
        let newest = self.connection.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0));
        newest.or_else(|fault| {
            self.found(findings, "events", None, "the history cannot be read", &fault)?;
            Ok(0)
        })
    }

    pub fn entry(&self, number: Number) -> Option<Entry> {
        entries::entries(&self.connection, number.checked_sub(1)?, number).ok()?.pop()
    }

    /// Walks the history, says what is wrong in it, and replays it as far as it can be.
    pub fn events(
        &self,
        findings: &mut Findings,
        mut each: impl FnMut(Sound<'_>, &mut Findings),
    ) -> Result<Option<Replayed>> {
        let replayed = self.empty_tables()?;
        let mut replay = Some(Replay::begin(&replayed).map_err(|fault| no_room(&fault))?);
        let walked = self.walk(findings, &mut |sound, findings| {
            each(sound, findings);
            let added = match (&mut replay, sound) {
                (Some(replay), Ok((entry, _))) => replay.add(entry).map_err(|fault| (entry.number, fault)),
                (_, Err(_)) => {
                    replay = None;
                    Ok(())
                }
                (None, _) => Ok(()),
            };
            added.or_else(|(number, fault)| {
                replay = None;
                if keeps_from_reading(&fault) {
                    return Err(no_room(&fault));
                }
                self.found(findings, "events", Some(number), &format!("#{number} cannot be replayed"), &fault)
            })
        });
        if let Err(fault) = walked? {
            replay = None;
            self.found(findings, "events", None, "the history cannot be read to its end", &fault)?;
        }
        let Some(replay) = replay else { return Ok(None) };
        replay.commit().map_err(|fault| no_room(&fault))?;
        Ok(Some(Replayed { connection: replayed }))
    }

    /// In a file that SQLite deletes by itself, since a long history does not fit into memory twice.
    fn empty_tables(&self) -> Result<Connection> {
        let refuse = |fault: rusqlite::Error| no_room(&fault);
        let mut connection = Connection::open("").map_err(refuse)?;
        connection
            .execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -32768")
            .map_err(refuse)?;
        connection.set_prepared_statement_cache_capacity(128);
        open::lay_out(&mut connection, &self.folder)?;
        Ok(connection)
    }

    /// The outer result is what keeps us from reading, the inner one what SQLite could not read.
    fn walk(
        &self,
        findings: &mut Findings,
        each: &mut dyn FnMut(Sound<'_>, &mut Findings) -> Result<()>,
    ) -> Result<rusqlite::Result<()>> {
        let sql = "SELECT number, kind, at, actor, key, payload, previous, hash FROM events ORDER BY number";
        let mut statement = match self.connection.prepare(sql) {
            Ok(statement) => statement,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut rows = match statement.query([]) {
            Ok(rows) => rows,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut link = Link { project: String::new(), number: 0, chain: Some(String::new()) };
        loop {
            let row = match rows.next() {
                Ok(Some(row)) => row,
                Ok(None) => return Ok(Ok(())),
                Err(fault) => return Ok(Err(fault)),
            };
            let before = findings.total();
            let number: Number = match row.get(0) {
                Ok(number) => number,
                Err(fault) => return Ok(Err(fault)),
            };
            if number != link.number + 1 {
                let what = match link.number + 1 {
                    first if first + 1 == number => format!("#{first} is missing"),
                    first => format!("#{first} to #{} are missing", number.saturating_sub(1)),
                };
                findings.store("events", Some(link.number + 1), what);
            }
            link.number = number;
            match self.event(row, &mut link, findings) {
                Ok(entry) => {
                    let chain = link.chain.clone().unwrap_or_default();
                    // What is not as it was written says nothing about the archive, nor about the tables.
                    let sound = if findings.total() == before { Ok((&entry, chain.as_str())) } else { Err(number) };
                    each(sound, findings)?;
                }
                Err(fault) => {
                    link.chain = None;
                    let how = format!("#{number} cannot be read");
                    self.found(findings, "events", Some(number), &how, &fault)?;
                    each(Err(number), findings)?;
                }
            }
        }
    }

    /// One event: its place in the chain, its columns against its payload, its texts against their hashes.
    fn event(&self, row: &Row<'_>, link: &mut Link, findings: &mut Findings) -> rusqlite::Result<Entry> {
        let number = link.number;
        let canonical: String = row.get(5)?;
        let (previous, hash) = (hex(&row.get::<_, Vec<u8>>(6)?), hex(&row.get::<_, Vec<u8>>(7)?));
        let entry = entries::entry(&self.connection, number, canonical)?;
        if let Happened::ProjectOpened { project, .. } = &entry.payload.what {
            link.project.clone_from(project);
        }
        let before = link.chain.take().unwrap_or_else(|| previous.clone());
        if previous != before || chain_hash(&link.project, number, &before, &entry.canonical) != hash {
            findings.store("events", Some(number), format!("#{number} does not chain"));
        }
        let payload = &entry.payload;
        let said =
            (payload.what.kind().to_owned(), payload.at.millis(), payload.actor.to_string(), payload.key.clone());
        let columns: (String, i64, String, Option<String>) = (row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
        if columns != said {
            findings.store("events", Some(number), format!("the columns of #{number} differ from its payload"));
        }
        for fault in entry.faults() {
            findings.store("texts", Some(number), fault);
        }
        link.chain = Some(hash);
        Ok(entry)
    }

    /// What no event gives: texts without one, answers of the future, and pages that are not as SQLite wrote them.
    pub fn rest(&self, newest: Number, findings: &mut Findings) -> Result<()> {
        let texts = "SELECT DISTINCT event FROM texts WHERE event NOT IN (SELECT number FROM events) LIMIT 100";
        let mut found: Vec<(&str, Option<Number>, String)> = Vec::new();
        let read = self.column(texts, [], |row| row.get::<_, i64>(0)).map(|events| {
            found.extend(
                events.iter().map(|event| ("texts", None, format!("there is a text of #{event}, and no such event"))),
            );
        });
        read.or_else(|fault| self.found(findings, "texts", None, "the texts cannot be read", &fault))?;
        let answers = "SELECT actor || ' ' || quote(key) FROM answers WHERE number > ?1 OR number < 1 LIMIT 100";
        let read = self.column(answers, [newest], |row| row.get::<_, String>(0)).map(|answers| {
            found
                .extend(answers.iter().map(|whose| ("answers", None, format!("the answer to {whose} is of no event"))));
        });
        read.or_else(|fault| self.found(findings, "answers", None, "the answers cannot be read", &fault))?;
        let read = self.column("PRAGMA integrity_check(100)", [], |row| row.get::<_, String>(0)).map(|lines| {
            found.extend(lines.into_iter().filter(|line| line != "ok").map(|line| ("file", None, line)));
        });
        read.or_else(|fault| self.found(findings, "file", None, "the file cannot be checked", &fault))?;
        found.into_iter().for_each(|(place, number, what)| findings.store(place, number, what));
        Ok(())
    }

    fn column<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.connection.prepare(sql)?.query_map(values, read)?.collect()
    }
}
