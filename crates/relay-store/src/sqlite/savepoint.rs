//! A part of a transaction that can be undone without the rest of it.

use std::cell::RefMut;

use rusqlite::{Connection, Result};

/// What was done since it was set is undone when it is dropped, unless it was released before.
pub(super) struct Savepoint<'a> {
    connection: &'a Connection,
    name: &'static str,
    is_set: bool,
}

impl<'a> Savepoint<'a> {
    /// For whoever is in a transaction. Outside of one it would begin one.
    pub(super) fn set(connection: &'a Connection, name: &'static str) -> Result<Self> {
        run(connection, &format!("SAVEPOINT {name}"))?;
        Ok(Savepoint { connection, name, is_set: true })
    }

    /// Leaves what was done since to the transaction around it.
    pub(super) fn release(&mut self) -> Result<()> {
        run(self.connection, &format!("RELEASE {}", self.name))?;
        self.is_set = false;
        Ok(())
    }

    fn undo(&mut self) -> Result<()> {
        run(self.connection, &format!("ROLLBACK TO {}", self.name))?;
        self.release()
    }
}

impl Drop for Savepoint<'_> {
    fn drop(&mut self) {
        if !self.is_set {
            return;
        }
        // What cannot be undone alone is undone with everything around it.
        if self.undo().is_err() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

/// Parsed once: a request sets and releases several.
fn run(connection: &Connection, sql: &str) -> Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// A transaction inside of another one, from its beginning to its commit.
pub(super) struct Share<'a> {
    connection: &'a Connection,
    savepoint: Savepoint<'a>,
    /// How much the connection had changed before.
    changes: u64,
    wrote: RefMut<'a, bool>,
}

impl<'a> Share<'a> {
    pub(super) fn begin(connection: &'a Connection, wrote: RefMut<'a, bool>) -> Result<Self> {
        let savepoint = Savepoint::set(connection, "share")?;
        Ok(Share { connection, savepoint, changes: connection.total_changes(), wrote })
    }

    pub(super) fn keep(&mut self) -> Result<()> {
        self.savepoint.release()?;
        *self.wrote |= self.connection.total_changes() != self.changes;
        Ok(())
    }
}
