//! Erased texts leave their bytes behind: in free pages, in the search index, in the log. A note in the store says so until
//! they are gone, so that whoever comes next finishes what somebody began who died.

use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{Errand, Result};

use super::gate::Gate;
use super::{Sqlite, doubt};

/// What a vacuum needs: the store once more in a temporary file, and once more in the log.
const ROOM: u64 = 2;

impl Sqlite {
    /// Rewrites the store without what was erased. False when a reader with an old view keeps the log as it is.
    pub fn clean(&self, gate_wait: Span) -> Result<bool> {
        if !self.any("SELECT EXISTS (SELECT 1 FROM cleanings)")? {
            return Ok(true);
        }
        let _gate = Gate::take(&self.folder, Errand { verb: "clean", agent: "", wait: gate_wait, durable: true })?;
        self.must_be_current()?;
        doubt::settle(&self.folder)?;
        // A rewritten store is not rewritten again for a log that somebody still reads.
        if self.any("SELECT EXISTS (SELECT 1 FROM cleanings WHERE NOT rewritten)")? {
            self.rewrite()?;
        }
        let is_folded = self.fold();
        if is_folded {
            self.execute("DELETE FROM cleanings")?;
        }
        Ok(is_folded)
    }

    fn rewrite(&self) -> Result<()> {
        self.must_have_room()?;
        // A file has more room than memory has.
        self.execute("PRAGMA temp_store = FILE; INSERT INTO search (search) VALUES ('optimize'); VACUUM")?;
        point!("store-after-vacuum", StoreIo);
        self.execute("PRAGMA temp_store = MEMORY; UPDATE cleanings SET rewritten = 1")
    }

    /// Said before it is tried: a disk that fills up on the way is full for everybody.
    fn must_have_room(&self) -> Result<()> {
        let bytes = std::fs::metadata(Self::file(&self.folder)).map_or(0, |metadata| metadata.len());
        let Ok(disk) = rustix::fs::statvfs(&self.folder) else { return Ok(()) };
        let (free, needed) = (disk.f_bavail.saturating_mul(disk.f_frsize), bytes.saturating_mul(ROOM));
        if free < needed {
            let text = format!("erasing needs {needed} bytes of room to rewrite the store, and {free} are free");
            return Err(Code::StoreFull.refuse(text).with("path", self.folder.to_string_lossy()));
        }
        Ok(())
    }

    fn any(&self, sql: &str) -> Result<bool> {
        self.connection.query_row(sql, [], |row| row.get(0)).map_err(|fault| self.refuse(&fault))
    }

    fn execute(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(|fault| {
            doubt::note_if(&self.folder, &fault);
            self.refuse(&fault)
        })
    }
}
