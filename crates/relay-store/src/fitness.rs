//! Whether a store and its archive are what a playbook says they must be. Each is looked at as it is now, from the outside:
//! what was open when things went wrong may be another file by now.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, iter};

use relay_core::error::Code;
use relay_core::store::Result;

use crate::archive::Archive;
use crate::filesystem::private_file;
use crate::verify::verify;

/// As much as a few commits write.
const PROBE: usize = 256 * 1024;

/// Whole, and what its history says.
pub fn store_is_sound(folder: &Path) -> Result<bool> {
    let report = verify(folder, |_, _, _| {})?;
    Ok(report.refusal(folder).is_none_or(|refusal| refusal.code != Code::StoreDamaged))
}

/// The archive is what the store says, as far as it has come.
pub fn archive_is_sound(folder: &Path) -> Result<bool> {
    Ok(verify(folder, |_, _, _| {})?.refusal(folder).is_none())
}

/// git runs, and there is somewhere to write to.
pub fn archive_is_writable(folder: &Path) -> bool {
    let archive = Archive::of(folder);
    let place = if archive.path().exists() { archive.path() } else { folder };
    archive.git_version().is_ok() && takes(place)
}

/// There is room, and it may be used.
pub fn store_is_writable(folder: &Path) -> bool {
    // Before the first start it is the folder in which the store's will be.
    folder.ancestors().find(|place| place.is_dir()).is_some_and(takes)
}

/// Whether the file system and the modes allow to write there; nothing is written.
pub fn may_be_written(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}

fn takes(folder: &Path) -> bool {
    let path = folder.join(format!("probe-{}", std::process::id()));
    let written =
        private_file(&path).and_then(|mut file| file.write_all(&vec![0; PROBE]).and_then(|()| file.sync_all()));
    let removed = fs::remove_file(&path);
    written.and(removed).is_ok()
}

/// What in a store's folder can be read by others. relay makes nothing like that; somebody else changed it.
pub fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut open: Vec<PathBuf> =
        iter::once(folder.to_owned()).chain(entries).filter(|path| is_open_to_others(path)).collect();
    open.sort();
    open
}

pub fn is_open_to_others(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.mode() & 0o077 != 0)
}

/// For its owner alone again.
pub fn close_to_others(path: &Path) -> std::io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(found.mode() & 0o700))
}

/// What a process left that died at its work. The next drain takes it away.
pub fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let is_leftover = |name: &str| name.starts_with("relay.anew.db") || name == "restoring";
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut left: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(is_leftover)).map(|entry| entry.path()).collect();
    left.sort();
    left
}

/// Locks of git in the archive. Nobody holds one while this process has the lease.
pub fn stale_locks(folder: &Path) -> Vec<PathBuf> {
    let archive = Archive::of(folder);
    // Whoever has the lease has the locks.
    let Ok(Some(_lease)) = archive.try_lease() else { return Vec::new() };
    let places = ["", "refs/heads", "refs/relay", "objects/pack"].map(|place| archive.path().join(place));
    let entries = places.iter().flat_map(|place| fs::read_dir(place).into_iter().flatten().flatten());
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "lock")).collect()
}

/// How much room a disk has, of how much.
pub fn room(folder: &Path) -> Option<(u64, u64)> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
}

/// What everything under a folder takes.
pub fn bytes_under(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let found = fs::symlink_metadata(entry.path()).ok()?;
            Some(if found.is_dir() { bytes_under(&entry.path()) } else { found.len() })
        })
        .sum()
}
