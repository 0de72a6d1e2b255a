//! Full-text search. Indexing one message writes a third of all pages of a send; indexing many at a time writes hardly
//! more. So the newest messages wait, and whoever searches indexes those few in memory.

use relay_core::domain::event::Number;
use relay_core::store::Result;
use rusqlite::{Connection, params};

use super::view::View;

/// Messages that wait for the index at most.
const WAITING: i64 = 32;

/// The texts of the messages that the index does not know yet.
const FRESH: &str =
    "SELECT m.number, s.text, b.text FROM messages m LEFT JOIN texts s ON s.event = m.number AND s.field = 'subject'
     LEFT JOIN texts b ON b.event = m.number AND b.field = 'body'
     WHERE m.number > coalesce((SELECT rowid FROM search ORDER BY rowid DESC LIMIT 1), 0)";

const MATCHING: &str = "MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3";

/// Brings the index up to date once enough messages wait for it.
pub(super) fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    let count = "SELECT count(*) FROM messages
        WHERE number > coalesce((SELECT rowid FROM search ORDER BY rowid DESC LIMIT 1), 0)";
    let waiting: i64 = connection.prepare_cached(count)?.query_row([], |row| row.get(0))?;
    if waiting < WAITING {
        return Ok(());
    }
    connection.prepare_cached(&format!("INSERT INTO search (rowid, subject, body) {FRESH}"))?.execute([]).map(|_| ())
}

/// Indexes a message anew by its body alone, where it was indexed before.
pub(super) fn without_subject(connection: &Connection, message: Number) -> rusqlite::Result<()> {
    let removed = connection.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([message])?;
    if removed > 0 {
        let body = "INSERT INTO search (rowid, body) SELECT event, text FROM texts WHERE event = ?1 AND field = 'body'";
        connection.prepare_cached(body)?.execute([message])?;
    }
    Ok(())
}

impl View<'_> {
    /// The messages before a number that hold all the words, newest first.
    pub(super) fn search_words(&self, words: &str, before: Number, limit: usize) -> Result<Vec<Number>> {
        // Each word is quoted: what people type is text to find, not a query language. A zero would end the query inside of a quote.
        let words = words.split(|each: char| each.is_whitespace() || each == '\0').filter(|word| !word.is_empty());
        let quoted: Vec<String> = words.map(|word| format!("\"{}\"", word.replace('"', "\"\""))).collect();
        let quoted = quoted.join(" ");
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        let in_memory = format!(
            "DROP TABLE IF EXISTS temp.fresh; CREATE VIRTUAL TABLE temp.fresh USING fts5 (subject, body, content = '');
             INSERT INTO temp.fresh (rowid, subject, body) {FRESH}"
        );
        self.connection.execute_batch(&in_memory).map_err(|fault| self.refuse(&fault))?;
        let fresh = format!("SELECT rowid FROM temp.fresh WHERE fresh {MATCHING}");
        let mut found: Vec<Number> = self.all(&fresh, params![quoted, before, limit], |row| row.get(0))?;
        let rest = limit - found.len();
        let indexed = format!("SELECT rowid FROM search WHERE search {MATCHING}");
        let mut older: Vec<Number> = self.all(&indexed, params![quoted, before, rest], |row| row.get(0))?;
        found.append(&mut older);
        Ok(found)
    }
}
