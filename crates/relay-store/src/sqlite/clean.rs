//! Erased texts leave their bytes behind: in free pages, in the search index, in the log. A note in the store says so until
//! they are gone, so that whoever comes next finishes what somebody began who died.

use relay_core::domain::time::Span;
use relay_core::store::{Errand, Result};

use super::Sqlite;
use super::gate::Gate;

impl Sqlite {
    /// Rewrites the store without what was erased. False when a reader with an old view keeps the log as it is.
    pub fn clean(&self, gate_wait: Span) -> Result<bool> {
        if !self.must_clean()? {
            return Ok(true);
        }
        let _gate = Gate::take(&self.folder, Errand { verb: "clean", agent: "", wait: gate_wait, durable: true })?;
        // A vacuum needs room for a second store; a file has more than memory has.
        self.batch("PRAGMA temp_store = FILE; INSERT INTO search (search) VALUES ('optimize'); VACUUM")?;
        point!("store-after-vacuum", StoreIo);
        self.batch("PRAGMA temp_store = MEMORY")?;
        let is_folded = self.fold();
        if is_folded {
            self.batch("DELETE FROM cleanings")?;
        }
        Ok(is_folded)
    }

    fn must_clean(&self) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM cleanings)";
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(|fault| self.refuse(&fault))
    }

    fn batch(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|fault| self.refuse(&fault))
    }
}
