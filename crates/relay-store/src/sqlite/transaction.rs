//! One writing verb: `BEGIN IMMEDIATE` behind the gate, events appended and applied, then `COMMIT`.

use std::cell::{Cell, RefMut};
use std::path::Path;

use relay_core::domain::event::{Event, Happened, Number, Payload, Text, chain_hash};
use relay_core::domain::limits::{FAILURES_KEPT, FAILURES_KEPT_FOR};
use relay_core::domain::name::Party;
use relay_core::domain::time::Timestamp;
use relay_core::error::Code;
use relay_core::store::{Crossing, Facts, KeptFailure, Remembered, Result, Tx};
use rusqlite::{Connection, params};

use super::apply::apply;
use super::doubt;
use super::fault::Fault;
use super::gate::Gate;
use super::rows::unhex;
use super::savepoint::Share;
use super::view::{Role, View};

impl<'a> View<'a> {
    pub(super) fn begin(
        connection: &'a Connection,
        gate: Gate,
        folder: &'a Path,
        project: &'a str,
        durable: bool,
        committed: &'a Cell<bool>,
    ) -> Result<Self> {
        // Said each time: what an earlier errand of this process did without may not hold for this one.
        let synchronous = if durable { "FULL" } else { "NORMAL" };
        connection
            .execute_batch(&format!("PRAGMA synchronous = {synchronous}; BEGIN IMMEDIATE"))
            .map_err(|fault| Fault::new(folder).refuse(&fault))?;
        Ok(View { connection, folder, project, role: Role::Writes, committed: Some(committed), _gate: Some(gate) })
    }

    /// A transaction inside of this one. `wrote` is set when it has committed something.
    pub(super) fn share<'b>(&'b self, wrote: RefMut<'b, bool>) -> Result<View<'b>> {
        let View { connection, folder, project, .. } = *self;
        let share = Share::begin(connection, wrote).map_err(|fault| self.refuse(&fault))?;
        Ok(View { connection, folder, project, role: Role::Shares(share), committed: None, _gate: None })
    }

    /// What were written after the transaction was given up would stand alone: a disk without room, or one that fails, can
    /// make SQLite undo more than a statement.
    pub(super) fn must_stand(&self) -> Result<()> {
        if self.connection.is_autocommit() {
            return Err(Code::StoreBusy.refuse("the store gave up the transaction, and nothing of it happened"));
        }
        Ok(())
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        self.must_stand()?;
        let mut statement = self.connection.prepare_cached(sql).map_err(|fault| self.refuse(&fault))?;
        statement.execute(values).map(|_| ()).map_err(|fault| self.refuse(&fault))
    }

    /// Commits, and keeps the turn until the view is dropped.
    pub(super) fn close(&mut self) -> Result<()> {
        if let Role::Shares(share) = &mut self.role {
            return share.keep().map_err(|fault| Fault::new(self.folder).refuse(&fault));
        }
        point!("store-before-commit", StoreFull);
        if let Err(fault) = self.connection.execute_batch("COMMIT") {
            doubt::note_if(self.folder, &fault);
            return Err(Fault::new(self.folder).refuse_commit(&fault));
        }
        self.role = Role::Committed;
        self.committed.inspect(|committed| committed.set(true));
        point!("store-after-commit", StoreIo);
        Ok(())
    }
}

impl Tx for View<'_> {
    fn append(
        &mut self,
        at: Timestamp,
        actor: &Party,
        key: Option<&str>,
        what: Happened,
        texts: Vec<Text>,
    ) -> Result<Number> {
        let tip = self.tip()?;
        let number = tip.number + 1;
        let payload = Payload { at, actor: actor.clone(), key: key.map(str::to_owned), what };
        let canonical = serde_json::to_string(&payload).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        let hash = chain_hash(self.project, number, &tip.hash, &canonical);
        self.run(
            "INSERT INTO events (number, kind, at, actor, key, payload, previous, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![number, payload.what.kind(), at.millis(), actor.to_string(), key, canonical, unhex(&tip.hash), unhex(&hash)],
        )?;
        for text in &texts {
            self.run(
                "INSERT INTO texts (event, field, salt, text) VALUES (?1, ?2, ?3, ?4)",
                params![number, text.field, text.salt, text.text],
            )?;
        }
        let event = Event { number, payload, hash };
        apply(self.connection, &event).map_err(|fault| self.refuse(&fault))?;
        point!("store-after-append", StoreFull);
        Ok(number)
    }

    fn remember(&mut self, actor: &str, key: &str, answer: &Remembered) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO answers (actor, key, verb, salt, request, answer, number) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![actor, key, answer.verb, answer.salt, answer.request, answer.answer, answer.number],
        )
    }

    fn keep_failure(&mut self, actor: &str, key: &str, failure: &KeptFailure) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO failed_requests (actor, key, code, at, request, details, ordinal)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, (SELECT coalesce(max(ordinal), 0) + 1 FROM failed_requests WHERE actor = ?1))",
            params![actor, key, failure.code, failure.at.millis(), failure.request, failure.details],
        )?;
        self.run(
            "DELETE FROM failed_requests WHERE actor = ?1 AND ordinal NOT IN
             (SELECT ordinal FROM failed_requests WHERE actor = ?1 ORDER BY ordinal DESC LIMIT ?2)",
            params![actor, FAILURES_KEPT],
        )?;
        // Of everybody's: nobody may come back for them.
        let since = failure.at.minus(FAILURES_KEPT_FOR);
        self.run("DELETE FROM failed_requests WHERE at < ?1", [since.millis()])
    }

    fn forget_failure(&mut self, actor: &str, key: &str) -> Result<()> {
        self.run("DELETE FROM failed_requests WHERE actor = ?1 AND key = ?2", params![actor, key])
    }

    fn note_crossing(&mut self, crossing: &Crossing) -> Result<()> {
        self.run(
            "INSERT OR REPLACE INTO crossings (key, project, actor, pid, errand) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![crossing.key, crossing.project.as_str(), crossing.actor.to_string(), crossing.pid, crossing.errand],
        )
    }

    fn drop_crossing(&mut self, actor: &Party, key: &str) -> Result<()> {
        self.run("DELETE FROM crossings WHERE actor = ?1 AND key = ?2", params![actor.to_string(), key])
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        self.close()
    }
}

#[cfg(test)]
mod tests {
    use relay_core::domain::name::{Party, ProjectKey};
    use relay_core::domain::time::Span;
    use relay_core::error::Code;
    use relay_core::store::{Crossing, Errand, Result, Store, Tx};

    use crate::sqlite::Sqlite;

    #[test]
    fn a_durable_errand_is_synced_whatever_came_before_it() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let store = Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), Span::seconds(10), 0)
            .unwrap_or_else(|refusal| panic!("{refusal}"));
        for durable in [true, false, true, false, false] {
            let errand = Errand { verb: "test", agent: "", wait: Span::seconds(10), durable };
            let tx = store.begin(errand).unwrap_or_else(|refusal| panic!("{refusal}"));
            let synchronous = store.connection.query_row("PRAGMA synchronous", [], |row| row.get::<_, i64>(0));
            assert_eq!(synchronous, Ok(if durable { 2 } else { 1 }));
            drop(tx);
        }
    }

    #[test]
    fn nothing_is_written_past_a_transaction_that_was_given_up() -> Result<()> {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let wait = Span::seconds(10);
        let store = Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), wait, 0)?;
        let limit = "PRAGMA max_page_count = 1";
        assert!(store.connection.query_row(limit, [], |row| row.get::<_, i64>(0)).is_ok_and(|pages| pages > 1));
        let note = |tx: &mut dyn Tx, errand: &str| {
            let (key, project) = (errand.len().to_string(), ProjectKey::resolved("/srv/other"));
            let code = tx.note_crossing(&Crossing { key, project, actor: Party::Relay, pid: 1, errand: errand.into() });
            code.map_err(|refusal| refusal.code)
        };
        let mut tx = store.begin(Errand { verb: "test", agent: "", wait, durable: true })?;
        assert_eq!(note(&mut *tx, "short"), Ok(()));
        assert_eq!(note(&mut *tx, &"long".repeat(100_000)), Err(Code::StoreFull));
        assert_eq!(note(&mut *tx, "little"), Err(Code::StoreBusy));
        drop(tx);
        assert_eq!(store.read()?.crossings()?, []);
        Ok(())
    }
}
