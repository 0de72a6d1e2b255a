//! What the disk and SQLite give by themselves, on the same disk in the same run.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection, params};

use crate::mix;

/// Half of all syncs of a page that was just written take no longer than this.
pub fn disk(dir: &Path) -> Duration {
    let mut file = tempfile::tempfile_in(dir).unwrap();
    let page = vec![7; 4096];
    let mut times: Vec<Duration> = (0..200).map(|_| sync(&mut file, &page)).collect();
    times.sort();
    mix::at(&times, 0.5)
}

fn sync(file: &mut File, page: &[u8]) -> Duration {
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(page).unwrap();
    let begun = Instant::now();
    file.sync_data().unwrap();
    begun.elapsed()
}

/// The tables that a send, an ack, a claim and its release write to, with as many indexes, and nothing of what relay decides.
const TABLES: &str = "
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE events (number INTEGER PRIMARY KEY, kind TEXT, at INTEGER, actor TEXT, key TEXT, payload TEXT, previous BLOB, hash BLOB);
    CREATE TABLE texts (event INTEGER, field TEXT, salt BLOB, text TEXT, PRIMARY KEY (event, field)) WITHOUT ROWID;
    CREATE TABLE messages (id INTEGER PRIMARY KEY, thread TEXT, sender TEXT, sent_at INTEGER);
    CREATE INDEX messages_of ON messages (thread, id);
    CREATE TABLE deliveries (message INTEGER, recipient TEXT, read_at INTEGER, acked_at INTEGER, PRIMARY KEY (message, recipient)) WITHOUT ROWID;
    CREATE INDEX deliveries_to ON deliveries (recipient, read_at, message);
    CREATE TABLE claims (id INTEGER PRIMARY KEY, holder TEXT, pattern TEXT, prefix TEXT, released INTEGER);
    CREATE INDEX claims_near ON claims (prefix);
    CREATE TABLE answers (actor TEXT, key TEXT, verb TEXT, request TEXT, answer TEXT, PRIMARY KEY (actor, key)) WITHOUT ROWID;
    CREATE VIRTUAL TABLE search USING fts5(subject, body);
";

/// How many operations a second, in the proportions of the mix: four that write, each a transaction of its own, and one that reads.
#[expect(clippy::cast_precision_loss, reason = "counts are small")]
pub fn transactions(dir: &Path, time: Duration) -> f64 {
    let folder = tempfile::tempdir_in(dir).unwrap();
    let store = Connection::open(folder.path().join("bare.db")).unwrap();
    store.execute_batch(TABLES).unwrap();
    let body = "the session expires after ten minutes of silence; see src/auth/session.rs. ".repeat(6);
    let begun = Instant::now();
    let mut count = 0_u64;
    let mut number = 0_i64;
    while begun.elapsed() < time {
        number += 4;
        write(&store, number, |store| {
            run(
                store,
                "INSERT INTO texts VALUES (?1, 'subject', zeroblob(16), 'bench'), (?1, 'body', zeroblob(16), ?2)",
                params![number, body],
            );
            run(store, "INSERT INTO messages VALUES (?1, 'bench', 'Agent1', 0)", params![number]);
            run(store, "INSERT INTO deliveries VALUES (?1, 'Agent2', NULL, NULL)", params![number]);
            run(store, "INSERT INTO search VALUES ('bench', ?1)", params![body]);
        });
        let unread =
            "SELECT message FROM deliveries WHERE recipient = 'Agent2' AND read_at IS NULL ORDER BY message LIMIT 5";
        let read: Vec<i64> = store
            .prepare_cached(unread)
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        write(&store, number + 1, |store| {
            read.iter().for_each(|id| {
                run(store, "UPDATE deliveries SET read_at = 1, acked_at = 1 WHERE message = ?1", params![id]);
            });
        });
        write(&store, number + 2, |store| {
            run(store, "INSERT INTO claims VALUES (?1, 'Agent1', 'src/a.rs', 'src/a.rs', 0)", params![number + 2]);
        });
        write(&store, number + 3, |store| {
            run(store, "UPDATE claims SET released = 1 WHERE id = ?1", params![number + 2]);
        });
        count += 5;
    }
    count as f64 / begun.elapsed().as_secs_f64()
}

/// One transaction with its event and its answer.
fn write(store: &Connection, number: i64, more: impl FnOnce(&Connection)) {
    store.execute_batch("BEGIN IMMEDIATE").unwrap();
    let payload = "x".repeat(300);
    run(
        store,
        "INSERT INTO events VALUES (?1, 'kind', 0, 'Agent1', ?2, ?3, zeroblob(32), zeroblob(32))",
        params![number, number.to_string(), payload],
    );
    more(store);
    run(
        store,
        "INSERT INTO answers VALUES ('agent1', ?1, 'send', zeroblob(32), ?2)",
        params![number.to_string(), &payload[..200]],
    );
    store.execute_batch("COMMIT").unwrap();
}

fn run(store: &Connection, sql: &str, values: impl rusqlite::Params) {
    store.prepare_cached(sql).unwrap().execute(values).unwrap();
}
