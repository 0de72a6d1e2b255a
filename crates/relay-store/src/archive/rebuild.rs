//! The archive made anew from the store: beside the old one, and swapped in when it is whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use relay_core::domain::event::Number;
use relay_core::store::Result;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::repository::{Repository, sync_parent};
use super::{Archive, Copied, Lease};
use crate::filesystem::{free_name, io_refusal, with_end};
use crate::sqlite::Sqlite;

/// What becomes of the archive that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Old {
    /// It stays beside the new one, under a name that says so.
    Kept,
    /// It held what nobody shall read again.
    Erased,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// How far the archive has come.
    pub events: Number,
    /// Where the old one is kept; what held erased texts is not.
    pub kept: Option<PathBuf>,
}

impl Archive {
    /// Writes the whole history into a new repository and puts it in the place of whatever is there: nothing, an archive
    /// of another history, or one that cannot be read. At every moment one or the other stands there, whole.
    pub fn rebuild(
        &self,
        _lease: &Lease,
        store: &Sqlite,
        old: Old,
        mut progress: impl FnMut(Number, Number),
    ) -> Result<Rebuilt> {
        let anew = anew(&self.folder);
        let made = Archive { folder: self.folder.clone(), repository: Repository::at(anew.clone()), sizes: self.sizes };
        let events = loop {
            clear(&self.folder)?;
            // What is erased while we copy begins it anew.
            if let Copied::UpTo(events) = made.copy(store, &mut progress)? {
                break events;
            }
        };
        let current = self.path();
        if fs::symlink_metadata(current).is_err() {
            rename(&anew, current)?;
            sync_parent(current)?;
            return Ok(Rebuilt { events, kept: None });
        }
        // What was erased since the old one was written is not kept in it either.
        let had = self.archived().unwrap_or(0);
        if old == Old::Erased || store.erases(had, events)? {
            exchange(&anew, current)?;
            sync_parent(current)?;
            clear(&self.folder)?;
            return Ok(Rebuilt { events, kept: None });
        }
        // Named first, so that what is in the way of nobody is never taken for a leftover.
        let kept = with_end(&free_name(&self.folder, "archive.before", &[".git"]), ".git");
        rename(&anew, &kept)?;
        exchange(&kept, current)?;
        sync_parent(current)?;
        Ok(Rebuilt { events, kept: Some(kept) })
    }
}

/// Where the new one is made.
fn anew(folder: &Path) -> PathBuf {
    folder.join("archive.anew.git")
}

/// Removes what an earlier attempt left: half of a new archive, or the whole of an old one that was to be erased.
pub(super) fn clear(folder: &Path) -> Result<()> {
    remove(&anew(folder))
}

/// Removes the old one that was to be erased, where the swap takes three steps and died between them. Only when the archive
/// stands again: until then there may be no other.
pub(super) fn clear_aside(folder: &Path) -> Result<()> {
    remove(&aside(&anew(folder)))
}

fn remove(path: &Path) -> Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    removed.map_err(|fault| io_refusal(path, &fault))?;
    sync_parent(path)
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|fault| io_refusal(to, &fault))
}

/// Each gets the other's name, in one step where the file system can.
fn exchange(one: &Path, other: &Path) -> Result<()> {
    point!("archive-before-exchange", StoreIo);
    match renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => one_by_one(one, other),
        outcome => outcome.map_err(io::Error::from),
    }
    .map_err(|fault| io_refusal(other, &fault))?;
    point!("archive-after-exchange", StoreIo);
    Ok(())
}

/// In between there is none under the other's name, and whoever looks for the archive then finds that it has yet to be made.
fn one_by_one(one: &Path, other: &Path) -> io::Result<()> {
    let aside = aside(one);
    fs::rename(other, &aside)?;
    fs::rename(one, other)?;
    fs::rename(&aside, one)
}

fn aside(one: &Path) -> PathBuf {
    one.with_extension("aside")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gets_the_others_name_in_one_step_or_three() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let (one, other) = (folder.path().join("one.git"), folder.path().join("other.git"));
        for swap in [|a: &Path, b: &Path| exchange(a, b).is_ok(), |a: &Path, b: &Path| one_by_one(a, b).is_ok()] {
            for (path, text) in [(&one, "1"), (&other, "2")] {
                let _ = fs::remove_dir_all(path);
                assert!(fs::create_dir(path).and_then(|()| fs::write(path.join("who"), text)).is_ok());
            }
            assert!(swap(&one, &other));
            assert_eq!(fs::read_to_string(one.join("who")).ok().as_deref(), Some("2"));
            assert_eq!(fs::read_to_string(other.join("who")).ok().as_deref(), Some("1"));
            assert_eq!(fs::read_dir(folder.path()).map(Iterator::count).ok(), Some(2));
        }
    }
}
