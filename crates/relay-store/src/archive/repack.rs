//! Packs that have become many are rolled up. The new pack is on disk, by content and by name, before an old one goes; what is
//! taken up is everything in the old ones, also what nothing leads to any more.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use relay_core::error::Refusal;
use relay_core::store::Result;

use super::git::{self, git};
use super::repository::Repository;
use crate::filesystem::io_refusal;

/// From so many packs on, reading slows down.
const MANY: usize = 50;

/// A pack, and how large it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pack {
    bytes: u64,
    name: String,
}

impl Repository {
    /// Rolls the smaller packs up into one when there are too many.
    pub fn repack(&self) -> Result<()> {
        let packs = self.packs()?;
        if packs.len() <= MANY {
            return Ok(());
        }
        let (old, earlier) = (smaller(packs), self.pack_files()?);
        let new = self.roll_up(&old)?;
        self.sync_packs(&earlier)?;
        point!("archive-before-removal", StoreIo);
        for pack in old.iter().filter(|pack| pack.name != new) {
            self.remove(&pack.name)?;
            point!("archive-amid-removal", StoreIo);
        }
        Ok(())
    }

    fn pack_folder(&self) -> PathBuf {
        self.path().join("objects/pack")
    }

    fn packs(&self) -> Result<Vec<Pack>> {
        let folder = self.pack_folder();
        let files = fs::read_dir(&folder).map_err(|fault| io_refusal(&folder, &fault))?.flatten();
        let pack = |file: fs::DirEntry| {
            let name = file.file_name().into_string().ok()?.strip_suffix(".pack")?.to_owned();
            Some(Pack { bytes: file.metadata().ok()?.len(), name })
        };
        Ok(files.filter_map(pack).collect())
    }

    /// One pack of everything in these; its name.
    fn roll_up(&self, packs: &[Pack]) -> Result<String> {
        let base = self.pack_folder().join("pack");
        let mut command = git(self.path(), &["pack-objects", "--quiet", "--stdin-packs", "--end-of-options"])?;
        let mut child = command.arg(&base).stdin(Stdio::piped()).spawn().map_err(|fault| git::missing(&fault))?;
        let lines: String = packs.iter().map(|pack| format!("{}.pack\n", pack.name)).collect();
        let told = child.stdin.take().map(|mut stdin| stdin.write_all(lines.as_bytes()));
        let output = child.wait_with_output().map_err(|fault| git::missing(&fault))?;
        if !output.status.success() {
            return Err(git::failed(self.path(), &output));
        }
        // git packs what it was told of. Of a list that broke off it makes a good pack with too little in it.
        told.transpose().map_err(|fault| git::missing(&fault))?;
        Ok(format!("pack-{}", String::from_utf8_lossy(&output.stdout).trim()))
    }

    /// Without its index a pack is not looked at, so that goes first.
    fn remove(&self, pack: &str) -> Result<()> {
        let remove = |ending: &str| {
            let path = self.pack_folder().join(format!("{pack}.{ending}"));
            match fs::remove_file(&path) {
                Err(fault) if fault.kind() != std::io::ErrorKind::NotFound => Err(io_refusal(&path, &fault)),
                _ => Ok::<(), Refusal>(()),
            }
        };
        ["idx", "rev", "pack"].into_iter().try_for_each(remove)
    }

    /// Clears away what a git left that died on the way, or somebody who removed packs: files that have no name yet, packs that
    /// it still kept for itself, what belongs to one without an index, and reports. Nobody but the holder of the lease starts a git that writes.
    pub fn clear_unfinished(&self) {
        let is_unfinished = |path: &Path, name: &str| {
            let is_part = name.ends_with(".pack") || name.ends_with(".rev");
            let is_left = is_part && !path.with_extension("idx").exists();
            name.starts_with("tmp_") || name.ends_with(".keep") || is_left
        };
        let is_report = |_: &Path, name: &str| name.starts_with("fast_import_crash_");
        remove_where(&self.pack_folder(), is_unfinished);
        remove_where(self.path(), is_report);
    }
}

fn remove_where(folder: &Path, is_meant: impl Fn(&Path, &str) -> bool) {
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_meant(&file.path(), &file.file_name().to_string_lossy()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// The smallest packs, as many as it takes that each one left is at least twice as large as all before it together.
fn smaller(mut packs: Vec<Pack>) -> Vec<Pack> {
    packs.sort();
    let mut taken = 0;
    let mut before = 0;
    for (index, pack) in packs.iter().enumerate() {
        if pack.bytes < 2 * before {
            taken = index + 1;
        }
        before += pack.bytes;
    }
    packs.truncate(taken.max(2));
    packs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_removal_left_of_a_pack_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let repository = Repository::at(folder.path().to_owned());
        let packs = repository.pack_folder();
        assert!(fs::create_dir_all(&packs).is_ok());
        for name in ["pack-1.idx", "pack-1.rev", "pack-1.pack", "pack-2.rev", "pack-2.pack", "pack-3.rev"] {
            assert!(fs::write(packs.join(name), "").is_ok());
        }
        repository.clear_unfinished();
        let files = repository.pack_files().unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(files.into_iter().eq(["idx", "pack", "rev"].map(|end| packs.join(format!("pack-1.{end}")))));
    }

    #[test]
    fn few_large_packs_are_left_alone() {
        let check = |sizes: &[u64], expected: usize| {
            let packs = sizes.iter().map(|&bytes| Pack { bytes, name: format!("pack-{bytes}") }).collect();
            assert_eq!(smaller(packs).len(), expected, "{sizes:?}");
        };
        check(&[1, 1, 1], 3);
        check(&[100, 1, 1, 1], 3);
        check(&[100, 10, 1, 1, 1], 3);
        check(&[100, 60, 1, 1], 4);
        check(&[1, 2, 6, 18], 2);
        check(&[1000, 500, 1, 2, 3], 5);
        check(&[2000, 500, 1, 2, 3], 3);
    }
}
