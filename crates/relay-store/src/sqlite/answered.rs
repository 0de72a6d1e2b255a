//! Whether relay still knows every request that it acted on: whoever comes back with a key of the history must not act twice.
//!
//! The events carry the keys. What is gathered on the way lies in the replay's file, so that a long history needs no memory.

use relay_core::store::Result;
use rusqlite::{Connection, params};

use super::verify::{Replayed, Snapshot};
use crate::verify::Findings;

impl Snapshot {
    /// An event with a key has its request's answer beside it, or what a redaction or a rebuild left of that.
    pub fn answered(&self, replayed: &Replayed, findings: &mut Findings) -> Result<()> {
        let missing = unanswered(&self.connection, &replayed.connection)
            .and_then(|any| if any { told(&replayed.connection, findings) } else { Ok(()) });
        missing.or_else(|fault| self.found(findings, "answers", None, "the answers cannot be read", &fault))
    }
}

/// Gathers the requests whose answers are missing; whether there are any.
fn unanswered(stored: &Connection, replayed: &Connection) -> rusqlite::Result<bool> {
    replayed.execute_batch(
        "CREATE TABLE IF NOT EXISTS unanswered (key TEXT, actor TEXT, number INTEGER, PRIMARY KEY (key, actor)) WITHOUT ROWID;
         BEGIN",
    )?;
    // What was shown is written down after its answer, and by itself; done twice, it changes nothing.
    let keyed = "SELECT key, actor, number FROM events
        WHERE key IS NOT NULL AND kind NOT IN ('mail_surfaced', 'mail_read') ORDER BY number";
    let mut is_known = stored.prepare("SELECT EXISTS (SELECT 1 FROM answers WHERE actor = ?1 AND key = ?2)")?;
    let mut gather = replayed.prepare("INSERT OR IGNORE INTO unanswered (key, actor, number) VALUES (?1, ?2, ?3)")?;
    let mut events = replayed.prepare(keyed)?;
    let mut events = events.query([])?;
    while let Some(event) = events.next()? {
        let (key, actor): (String, String) = (event.get(0)?, event.get(1)?);
        // An agent's keys are kept under its name in small letters; a guest's under its whole address.
        let scope = if actor.contains('@') { actor.clone() } else { actor.to_ascii_lowercase() };
        if !is_known.query_row([&scope, &key], |row| row.get::<_, bool>(0))? {
            gather.execute(params![key, scope, event.get::<_, i64>(2)?])?;
        }
    }
    drop(events);
    let is_any = "SELECT EXISTS (SELECT 1 FROM unanswered)";
    if replayed.query_row(is_any, [], |row| row.get(0))? {
        forgive(stored, replayed)?;
    }
    replayed.execute_batch("COMMIT")?;
    replayed.query_row(is_any, [], |row| row.get(0))
}

/// What an agent does when it starts is kept under the name or session that the caller had, what relay does on the way under
/// whoever asked, and what a guest did under the path that its project has now.
fn forgive(stored: &Connection, replayed: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM unanswered WHERE key = ?1
        AND (?3 IN ('start', 'prepare') OR actor = 'relay' OR instr(actor, '@') > 0 AND instr(?2, '@') > 0)";
    let mut forgive = replayed.prepare(sql)?;
    let mut answers = stored.prepare("SELECT key, actor, verb FROM answers")?;
    let mut answers = answers.query([])?;
    while let Some(answer) = answers.next()? {
        forgive.execute([answer.get::<_, String>(0)?, answer.get(1)?, answer.get(2)?])?;
    }
    Ok(())
}

fn told(replayed: &Connection, findings: &mut Findings) -> rusqlite::Result<()> {
    let mut missing = replayed.prepare("SELECT number, actor, key FROM unanswered ORDER BY number")?;
    let mut missing = missing.query([])?;
    while let Some(row) = missing.next()? {
        let (number, actor, key): (u64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let what = format!(
            "the answer to the request of #{number} is missing: made again by {actor} with the key {key:?}, it would act twice"
        );
        findings.store("answers", Some(number), what);
    }
    Ok(())
}
