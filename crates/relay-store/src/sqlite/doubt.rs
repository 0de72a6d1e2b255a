//! A sync that failed once proves nothing when it succeeds the next time: the kernel may have dropped what it could not
//! write, and yet shows it to whoever reads. So the failure is noted beside the log, and whoever writes next writes the whole
//! log again, with what it holds, before a sync is relied on.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use relay_core::error::Code;
use relay_core::store::Result;

use super::Sqlite;
use super::fault::is_of_the_disk;
use crate::filesystem::{io_refusal, known_file, private_file};

const PIECE: usize = 1024 * 1024;

fn path(folder: &Path) -> PathBuf {
    folder.join("unsynced")
}

/// For whatever SQLite says: an error of the disk may have been a sync's.
pub(super) fn note_if(folder: &Path, fault: &rusqlite::Error) {
    if is_of_the_disk(fault) {
        note(folder);
    }
}

/// Best effort, and not synced itself: after a power cut everybody reads what the disk has.
pub(super) fn note(folder: &Path) {
    let _ = private_file(&path(folder));
}

/// Refuses to believe a sync while the log is in doubt.
pub(super) fn must_be_free(folder: &Path) -> Result<()> {
    if !path(folder).exists() {
        return Ok(());
    }
    Err(Code::StoreIo
        .refuse(format!(
            "{}: the disk failed to take it, and it was not written again yet",
            Sqlite::log(folder).display()
        ))
        .with("path", folder.to_string_lossy()))
}

/// For whoever holds the gate: nobody else writes to the log or folds it.
pub(super) fn settle(folder: &Path) -> Result<()> {
    if !path(folder).exists() {
        return Ok(());
    }
    let log = Sqlite::log(folder);
    let written = match known_file(&log) {
        Ok(file) => write_again(&file),
        // What is no longer in the log was synced where it was folded to.
        Err(fault) if fault.kind() == ErrorKind::NotFound => Ok(()),
        Err(fault) => Err(fault),
    };
    written.and_then(|()| fs::remove_file(path(folder))).map_err(|fault| io_refusal(&log, &fault))
}

fn write_again(file: &File) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    loop {
        let read = file.read_at(&mut piece, at)?;
        if read == 0 {
            return file.sync_all();
        }
        file.write_all_at(&piece[..read], at)?;
        at += read as u64;
    }
}
