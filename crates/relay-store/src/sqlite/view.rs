//! A view of the store: of a reader, or of the one writer. Both read with the same words.

use std::cell::Cell;
use std::path::Path;

use relay_core::error::Refusal;
use relay_core::store::Result;
use rusqlite::Connection;

use super::fault::Fault;
use super::gate::Gate;
use super::savepoint::Share;

pub(super) struct View<'a> {
    pub(super) connection: &'a Connection,
    pub(super) folder: &'a Path,
    pub(super) project: &'a str,
    pub(super) role: Role<'a>,
    /// The writer's, to be set when it has committed.
    pub(super) committed: Option<&'a Cell<bool>>,
    /// The writer's. It opens after the commit is visible, when the view is dropped.
    pub(super) _gate: Option<Gate>,
}

pub(super) enum Role<'a> {
    /// Holds a read transaction, so that what it sees does not change.
    Reads,
    /// Looks through a transaction that somebody else ends.
    Borrows,
    Writes,
    /// Writes in a part of a transaction that somebody else ends.
    Shares(Share<'a>),
    Committed,
}

impl<'a> View<'a> {
    pub(super) fn read(connection: &'a Connection, folder: &'a Path, project: &'a str) -> Result<Self> {
        let role = if connection.is_autocommit() {
            connection.execute_batch("BEGIN").map_err(|fault| Fault::new(folder).refuse(&fault))?;
            Role::Reads
        } else {
            Role::Borrows
        };
        Ok(View { connection, folder, project, role, committed: None, _gate: None })
    }

    pub(super) fn refuse(&self, fault: &rusqlite::Error) -> Refusal {
        Fault::new(self.folder).refuse(fault)
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        if matches!(self.role, Role::Reads | Role::Writes) {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}
