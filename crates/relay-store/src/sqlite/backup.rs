//! A consistent copy of the store while others write.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use relay_core::domain::event::{Number, hex};
use relay_core::domain::name::ProjectKey;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::{Sqlite, open};
use crate::fresh::Fresh;
use crate::verify;

/// What a copy holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// The newest event in it, and the chain's hash there.
    pub number: Number,
    pub chain: String,
    pub bytes: u64,
}

impl Sqlite {
    /// Copies everything that is committed now into one file, which is checked before it gets its name: as `relay verify`
    /// checks a store. One that is not whole gives no backup, which would look like a way back and be none.
    pub fn backup(&self, place: &Path, replaces: bool, progress: impl FnMut(&str, Number, Number)) -> Result<Copied> {
        let fresh = Fresh::beside(place, replaces)?;
        let path = fresh.path().to_str().ok_or_else(|| {
            Code::InputInvalid.refuse(format!("{} is not valid UTF-8, and SQLite's paths are", place.display()))
        })?;
        self.connection.execute("VACUUM INTO ?1", [path]).map_err(|fault| self.not_copied(place, &fault))?;
        let contents = Contents::read(fresh.path()).map_err(|fault| self.not_copied(place, &fault))?;
        let known = contents.project == self.project && contents.schema == open::SCHEMA;
        if contents.check != "ok" || !known || self.chain_at(contents.number)? != contents.chain {
            return Err(Code::StoreIo
                .refuse(format!("the copy in {} is not what was copied ({})", place.display(), contents.check))
                .with("path", place.to_string_lossy()));
        }
        let checked = verify::verify_copy(fresh.path(), &self.folder, progress).map_err(|refusal| {
            let text = format!("the copy in {} cannot be checked: {}", place.display(), refusal.message);
            refusal.code.refuse(text).with("path", place.to_string_lossy())
        })?;
        if let Some(found) = checked.summary() {
            let text = format!("the store is not whole, so that there is no backup in {}: {found}", place.display());
            return Err(Code::StoreDamaged.refuse(text).with("path", self.folder.to_string_lossy()));
        }
        let bytes = fs::metadata(fresh.path()).map_or(0, |metadata| metadata.len());
        fresh.publish()?;
        Ok(Copied { number: contents.number, chain: contents.chain, bytes })
    }

    /// Why a copy came to nothing: mostly because of the place that it was to be in.
    fn not_copied(&self, place: &Path, fault: &rusqlite::Error) -> Refusal {
        let code = match fault.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return self.refuse(fault),
            Some(ErrorCode::DiskFull) => Code::StoreFull,
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Code::StoreReadonly,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::StoreBusy,
            _ => Code::StoreIo,
        };
        code.refuse(format!("{}: {fault}", place.display())).with("path", place.to_string_lossy())
    }
}

/// What stands in a store's file, told without changing it.
pub(super) struct Contents {
    pub schema: i64,
    pub application: i64,
    pub check: String,
    pub project: String,
    pub key: ProjectKey,
    pub number: Number,
    pub chain: String,
}

impl Contents {
    pub fn read(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let (schema, application) = (number("PRAGMA user_version")?, number("PRAGMA application_id")?);
        let check = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let (project, key) = connection
            .query_row("SELECT id, key FROM project", [], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let tip = "SELECT number, hash FROM events ORDER BY number DESC LIMIT 1";
        let (number, chain) = connection.query_row(tip, [], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))?;
        let key = ProjectKey::resolved(key);
        Ok(Contents { schema, application, check, project, key, number, chain: hex(&chain) })
    }

    /// The project's path alone, of a file that nobody writes: SQLite makes nothing beside it.
    pub fn key(path: &Path) -> rusqlite::Result<ProjectKey> {
        let encoded: String = path.as_os_str().as_bytes().iter().map(|byte| format!("%{byte:02x}")).collect();
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(format!("file:{encoded}?immutable=1"), flags)?;
        connection.query_row("SELECT key FROM project", [], |row| row.get::<_, String>(0)).map(ProjectKey::resolved)
    }

    /// The chain's hash at an event, where there is such an event.
    pub fn chain_at(path: &Path, number: Number) -> rusqlite::Result<Option<String>> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let sql = "SELECT hash FROM events WHERE number = ?1";
        Ok(connection.query_row(sql, [number], |row| row.get::<_, Vec<u8>>(0)).optional()?.map(|hash| hex(&hash)))
    }
}
