//! SQLite's errors as classes. Damage is claimed only after a check on a fresh connection confirms it.

use std::path::Path;

use relay_core::error::{Code, Refusal};
use rusqlite::{Connection, Error, ErrorCode, OpenFlags};

use super::{Sqlite, open};
use crate::filesystem::not_a_file;

/// Whether something stood in the way of reading, so that it says nothing about what there is to read.
pub(super) fn keeps_from_reading(fault: &Error) -> bool {
    matches!(
        fault.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::OutOfMemory
                | ErrorCode::OperationInterrupted
        )
    )
}

pub(super) struct Fault<'a> {
    folder: &'a Path,
}

impl<'a> Fault<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        Fault { folder }
    }

    pub(super) fn refuse(&self, fault: &Error) -> Refusal {
        let path = Sqlite::file(self.folder);
        if matches!(fault.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
            && let Some(displaced) = self.displaced()
        {
            return displaced;
        }
        let code = match fault.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::StoreBusy,
            Some(ErrorCode::DiskFull) => Code::StoreFull,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Code::StoreReadonly,
            _ if is_damage(fault) => return self.damaged(fault),
            Some(ErrorCode::SystemIoFailure) if self.disk_is_full() => Code::StoreFull,
            Some(ErrorCode::SystemIoFailure) => Code::StoreIo,
            _ => Code::Internal,
        };
        code.refuse(format!("{}: {fault}", path.display())).with("path", self.folder.to_string_lossy())
    }

    /// What a commit failed with. Once the log is written, an I/O error leaves open whether the next one to read it finds the
    /// commit, however full the disk is.
    pub(super) fn refuse_commit(&self, fault: &Error) -> Refusal {
        if !is_of_the_disk(fault) {
            return self.refuse(fault);
        }
        let path = Sqlite::file(self.folder);
        Code::StoreIo.refuse(format!("{}: {fault}", path.display())).with("path", self.folder.to_string_lossy())
    }

    /// A write-ahead log that could not grow reports an I/O error; the disk tells which.
    fn disk_is_full(&self) -> bool {
        rustix::fs::statvfs(self.folder).is_ok_and(|info| info.f_bavail == 0)
    }

    /// SQLite opens none of its files through a link, and says no more than that it could not.
    fn displaced(&self) -> Option<Refusal> {
        ["relay.db", "relay.db-wal", "relay.db-shm"].iter().find_map(|name| not_a_file(&self.folder.join(name)))
    }

    fn damaged(&self, fault: &Error) -> Refusal {
        let path = Sqlite::file(self.folder);
        if let Err(lost) = open::must_be_there(self.folder) {
            return lost;
        }
        let check = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|fresh| fresh.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0)));
        let (code, finding) = match check {
            Ok(verdict) if verdict == "ok" => {
                (Code::StoreIo, format!("{fault}, though a fresh check found nothing wrong"))
            }
            Ok(verdict) => (Code::StoreDamaged, verdict),
            Err(confirmed) if is_damage(&confirmed) => (Code::StoreDamaged, confirmed.to_string()),
            // A check that could not be made confirms nothing.
            Err(other) => (Code::StoreIo, format!("{fault}, and it cannot be checked: {other}")),
        };
        code.refuse(format!("{}: {finding}", path.display())).with("path", self.folder.to_string_lossy())
    }
}

fn is_damage(fault: &Error) -> bool {
    matches!(fault.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

pub(super) fn is_of_the_disk(fault: &Error) -> bool {
    fault.sqlite_error_code() == Some(ErrorCode::SystemIoFailure)
}
