//! Opening the file: whose it is, where it lies, which version wrote it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Sqlite;
use super::fault::Fault;
use super::gate::Gate;
use crate::filesystem::{check_owner, io_refusal, known_metadata, must_be_local, private_file};

/// The format that this relay reads and writes.
pub(super) const SCHEMA: i64 = 2;
/// "rely": marks the file as relay's.
pub(super) const APPLICATION: i64 = 0x7265_6c79;
/// Older libraries can corrupt a store when two connections meet at a reset of the write-ahead log.
const OLDEST_SQLITE: i32 = 3_051_003;

/// With what SQLite itself locks for a moment; writers take turns at the gate.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// A file by its device and its number there, which a name that leads to it may change.
pub(super) type FileId = (u64, u64);

pub(super) fn file_id(folder: &Path) -> Option<FileId> {
    fs::metadata(Sqlite::file(folder)).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// What opening says of files that do not belong together; of files that do it says the same again.
const MAY_BE_A_SWAP: [Code; 3] = [Code::StoreDamaged, Code::StoreIo, Code::StoreReadonly];

/// As many swaps as somebody who opens the file may meet, one after the other.
const SWAPS: usize = 2;

/// Opens the file, and says which one it is.
pub(super) fn connect(folder: &Path, gate_wait: Span) -> Result<(Connection, FileId)> {
    for _ in 0..SWAPS {
        match connect_now(folder, gate_wait) {
            Err(refusal) if MAY_BE_A_SWAP.contains(&refusal.code) => {
                // Who opens it meanwhile may get the store of one and the log of the other, which fails in many ways.
                swapped(folder, Errand { verb: "open", agent: "", wait: gate_wait, durable: true })?;
            }
            outcome => return outcome,
        }
    }
    connect_now(folder, gate_wait)
}

/// Waits until nobody puts another file into the store's place: who rebuilds it holds the gate while one goes and the other comes.
/// What is gone while somebody is still at it is not lost.
pub(super) fn swapped(folder: &Path, errand: Errand<'_>) -> Result<()> {
    match Gate::take(folder, errand) {
        Err(busy) if busy.code == Code::StoreBusy && file_id(folder).is_none() => Err(busy),
        _ => Ok(()),
    }
}

fn connect_now(folder: &Path, gate_wait: Span) -> Result<(Connection, FileId)> {
    let path = Sqlite::file(folder);
    must_be_local(folder)?;
    let had_history = history_is_known(folder);
    must_be_there(folder)?;
    // Made by us first: SQLite gives its log and shared memory the mode of the file itself. Where there was a history, none
    // is made: whoever rebuilds the store may have moved the file away just now, and not yet its log.
    let found = if had_history { known_metadata(&path) } else { private_file(&path).and_then(|file| file.metadata()) };
    let metadata = found.map_err(|fault| match fault.kind() {
        ErrorKind::NotFound if had_history => lost(folder, "is gone"),
        _ => io_refusal(&path, &fault),
    })?;
    check_owner(&path, &metadata)?;
    must_be_there(folder)?;
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(
            Code::Internal.refuse(format!("SQLite {} is too old to be trusted with a store", rusqlite::version()))
        );
    }
    let mut connection = open(&path).map_err(|fault| Fault::new(folder).refuse(&fault))?;
    let version = version(&connection, folder)?;
    if version == 0 && had_history {
        return Err(lost(folder, "is empty"));
    }
    if version != SCHEMA {
        migrate(&mut connection, folder, gate_wait)?;
    }
    // By now its log is open too. When the name still leads to the same file, they belong together.
    let id = (metadata.dev(), metadata.ino());
    if file_id(folder) != Some(id) {
        return Err(lost(folder, "was replaced"));
    }
    Ok((connection, id))
}

/// Refuses a store that is gone or empty where there was a history. It is asked before SQLite looks: that takes a log beside
/// an empty file for a leftover and deletes it, with everything that was not folded yet.
pub(super) fn must_be_there(folder: &Path) -> Result<()> {
    // Also looked for before the store: it is begun when the store has its first page.
    let has_log = fs::metadata(Sqlite::log(folder)).is_ok_and(|metadata| metadata.len() > 0);
    if !has_log && !history_is_known(folder) {
        return Ok(());
    }
    match fs::metadata(Sqlite::file(folder)) {
        Ok(metadata) if metadata.len() == 0 => Err(lost(folder, "is empty")),
        Ok(_) => Ok(()),
        Err(_) => Err(lost(folder, "is gone")),
    }
}

/// Refuses when the folder went away while this command waited: whatever it made there would be nobody's.
pub(super) fn must_not_have_moved(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Code::StoreBusy.refuse("the project was moved while this command waited"))
}

/// A folder gets its name after the first event was committed. It is looked for before the store, so that somebody who
/// makes both at this moment is not taken for damage.
pub(super) fn history_is_known(folder: &Path) -> bool {
    folder.join("project").exists()
}

/// Where there was a history, a new store would hide that it is lost.
pub(super) fn lost(folder: &Path, how: &str) -> Refusal {
    Code::StoreDamaged
        .refuse(format!("{} {how}, and it held a history", Sqlite::file(folder).display()))
        .with("path", folder.to_string_lossy())
}

pub(super) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    // A folder that resolves through a link of the system's own (`/tmp` on some) is not the link we guard against.
    let resolved = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let connection = Connection::open_with_flags(resolved, flags)?;
    connection.busy_timeout(PATIENCE)?;
    // The last to close must not fold the log: that costs a one-shot command three more syncs, and openers see it busy.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // Otherwise a statement is planned anew for every value that it is given. There are no statistics that would make another plan
    // of it, and planning is more than half of all the work.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.execute_batch(
        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;
         PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY;",
    )?;
    connection.set_prepared_statement_cache_capacity(128);
    Ok(connection)
}

/// The version that wrote the file; 0 for an empty one. Refuses what is newer, or not relay's.
pub(super) fn version(connection: &Connection, folder: &Path) -> Result<i64> {
    let read = |pragma: &str| {
        connection.query_row(pragma, [], |row| row.get::<_, i64>(0)).map_err(|fault| Fault::new(folder).refuse(&fault))
    };
    let (version, application) = (read("PRAGMA user_version")?, read("PRAGMA application_id")?);
    if version > SCHEMA {
        return Err(Code::StoreTooNew
            .refuse(format!("{} has format {version}; this relay knows up to {SCHEMA}", Sqlite::file(folder).display()))
            .with("path", folder.to_string_lossy())
            .with("found", version)
            .with("known", SCHEMA));
    }
    if version > 0 && application != APPLICATION {
        return Err(Code::StoreDamaged
            .refuse(format!("{} is a database, but not one of relay's", Sqlite::file(folder).display()))
            .with("path", folder.to_string_lossy()));
    }
    Ok(version)
}

/// Brings the file to this relay's format, under the gate, unless another process did so first.
fn migrate(connection: &mut Connection, folder: &Path, gate_wait: Span) -> Result<()> {
    let _gate = Gate::take(folder, Errand { verb: "migrate", agent: "", wait: gate_wait, durable: true })?;
    if version(connection, folder)? == SCHEMA {
        return Ok(());
    }
    let refuse = |fault: rusqlite::Error| Fault::new(folder).refuse(&fault);
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(refuse)?;
    lay_out(connection, folder)
}

/// Makes the tables, or brings them to this relay's format, and marks the file as such.
pub(super) fn lay_out(connection: &mut Connection, folder: &Path) -> Result<()> {
    let refuse = |fault: rusqlite::Error| Fault::new(folder).refuse(&fault);
    let before: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(refuse)?;
    let migrated = embedded::migrations::runner().set_abort_divergent(true).run(connection);
    if let Err(fault) = migrated {
        // Refinery hides SQLite's own code; a plain write that changes nothing asks for it again.
        let probe = connection.execute_batch(&format!("PRAGMA user_version = {before}")).err();
        return Err(probe.map_or_else(
            || Code::StoreIo.refuse(format!("{}: {fault}", folder.display())).with("path", folder.to_string_lossy()),
            refuse,
        ));
    }
    connection
        .execute_batch(&format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA}"))
        .map_err(refuse)
}

#[cfg(test)]
mod tests {
    use relay_core::domain::name::ProjectKey;

    use super::*;

    /// Whether this process holds a lock on the store's file. It tells a foreign SQLite that closes the file not to take the log
    /// away under us.
    #[cfg(target_os = "linux")]
    fn is_locked(folder: &Path) -> bool {
        let (_, inode) = file_id(folder).unwrap_or_default();
        let file = format!(":{inode}");
        let ours = format!(" {} ", std::process::id());
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        locks.lines().any(|lock| lock.contains(&ours) && lock.split_whitespace().any(|word| word.ends_with(&file)))
    }

    /// A store as the first format had it, with whatever `spoil` does to it.
    fn of_format_one(root: &Path, spoil: &str) -> Result<std::path::PathBuf> {
        let home = crate::Home::new(root.join("home"), relay_core::domain::limits::Limits::default(), 0);
        let folder = home.open_or_create(&ProjectKey::resolved("/p"))?.folder.clone();
        let refuse = |fault: rusqlite::Error| Fault::new(&folder).refuse(&fault);
        Connection::open(Sqlite::file(&folder))
            .and_then(|connection| {
                connection.execute_batch(&format!(
                    "DROP INDEX acks_owed;
                     CREATE INDEX acks_owed ON deliveries (recipient, message) WHERE ack_due IS NOT NULL AND acked_at IS NULL;
                     DELETE FROM refinery_schema_history WHERE version > 1; PRAGMA user_version = 1; {spoil}"
                ))
            })
            .map_err(refuse)?;
        Ok(folder)
    }

    fn format_of(folder: &Path) -> (i64, String) {
        let connection = Connection::open(Sqlite::file(folder)).expect("it opens");
        let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
        let index = one("SELECT coalesce(max(sql), '') FROM sqlite_schema WHERE name = 'acks_owed'");
        let (Ok(rusqlite::types::Value::Integer(version)), Ok(rusqlite::types::Value::Text(index))) =
            (one("PRAGMA user_version"), index)
        else {
            panic!("{}", folder.display())
        };
        (version, index)
    }

    #[test]
    fn a_store_of_the_first_format_is_brought_to_this_one() -> Result<()> {
        let root = tempfile::tempdir().expect("a folder");
        let folder = of_format_one(root.path(), "")?;
        assert_eq!(format_of(&folder).0, 1);
        drop(connect(&folder, Span::seconds(5))?);
        let (version, index) = format_of(&folder);
        assert_eq!(version, SCHEMA);
        assert!(index.contains("acked_at)"), "{index}");
        Ok(())
    }

    #[test]
    fn a_store_that_cannot_be_brought_to_this_format_keeps_the_one_it_has() -> Result<()> {
        let root = tempfile::tempdir().expect("a folder");
        let folder = of_format_one(root.path(), "DROP INDEX acks_owed")?;
        let refused = connect(&folder, Span::seconds(5)).err().map(|refusal| refusal.code);
        assert_eq!(refused, Some(Code::StoreIo));
        assert_eq!(format_of(&folder).0, 1, "it is not taken for an empty one");
        Ok(())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn whoever_opens_a_second_store_keeps_the_lock_of_the_first() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let open = || {
            let store = Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), Span::seconds(10), 0)
                .unwrap_or_else(|refusal| panic!("{refusal}"));
            crate::home::name_project(folder.path(), &ProjectKey::resolved("/srv/app"))
                .unwrap_or_else(|refusal| panic!("{refusal}"));
            store
        };
        let first = open();
        assert!(is_locked(folder.path()));
        let second = open();
        assert!(is_locked(folder.path()), "opening the second let go of it");
        drop(second);
        assert!(is_locked(folder.path()), "closing the second let go of it");
        drop(first);
        assert!(!is_locked(folder.path()));
    }
}
