//! The bare repository: made whole or not at all, read through gix, its public ref moved by comparison.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use relay_core::archive::Cursor;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;

use super::git::{git, run};
use crate::filesystem::{io_refusal, private_folder, sync_folder};

/// What people see.
pub(super) const PUBLIC: &str = "refs/heads/main";
/// Where commits stand while they are made.
pub(super) const DRAFT: &str = "refs/relay/draft";

/// The newest public commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub commit: String,
    /// None when relay did not write the commit.
    pub cursor: Option<Cursor>,
}

#[derive(Debug)]
pub(super) struct Repository {
    path: PathBuf,
}

impl Repository {
    pub fn at(path: PathBuf) -> Self {
        Repository { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn exists(&self) -> bool {
        self.path.join("HEAD").exists()
    }

    /// Makes an empty repository under another name, and gives it its own when it is whole and on disk.
    pub fn create(&self) -> Result<()> {
        let fresh = self.path.with_extension("fresh");
        let _ = fs::remove_dir_all(&fresh);
        private_folder(&fresh)?;
        run(git(&fresh, &["init", "--quiet", "--bare", "--template=", "--initial-branch=main"])?)?;
        sync_tree(&fresh).map_err(|fault| io_refusal(&fresh, &fault))?;
        point!("archive-before-naming", StoreIo);
        fs::rename(&fresh, &self.path).map_err(|fault| io_refusal(&self.path, &fault))?;
        sync_parent(&self.path)
    }

    /// The refusal of what stands in its place and is no folder.
    pub fn displaced(&self) -> Option<Refusal> {
        if self.path.is_dir() || fs::symlink_metadata(&self.path).is_err() {
            return None;
        }
        let text = format!("{} is no folder, where relay keeps the archive", self.path.display());
        Some(Code::ArchiveDiverged.refuse(text).with("path", self.path.to_string_lossy()))
    }

    /// The newest public commit; none where there is none yet, or where a power cut took the ref.
    pub fn tip(&self) -> Result<Option<Tip>> {
        if let Some(displaced) = self.displaced() {
            return Err(displaced);
        }
        if !self.exists() {
            return Ok(None);
        }
        let repository = self.open()?;
        let reference = match repository.try_find_reference(PUBLIC) {
            Ok(reference) => reference,
            Err(_) if self.is_empty(PUBLIC) => None,
            Err(fault) => return Err(self.unreadable(&fault)),
        };
        let Some(mut reference) = reference else { return Ok(None) };
        let id = reference.peel_to_id().map_err(|fault| self.unreadable(&fault))?;
        let commit = repository.find_commit(id).map_err(|fault| self.unreadable(&fault))?;
        let message = commit.message_raw().map_err(|fault| self.unreadable(&fault))?;
        let cursor = Cursor::read(&String::from_utf8_lossy(message));
        Ok(Some(Tip { commit: id.to_string(), cursor }))
    }

    pub fn open(&self) -> Result<gix::Repository> {
        gix::open_opts(&self.path, gix::open::Options::isolated()).map_err(|fault| self.unreadable(&fault))
    }

    /// Moves the public ref from one commit to the next; refuses when somebody else moved it meanwhile.
    pub fn publish(&self, from: Option<&str>, to: &str) -> Result<()> {
        let nothing = "0".repeat(to.len());
        run(git(&self.path, &["update-ref", "--end-of-options", PUBLIC, to, from.unwrap_or(&nothing)])?)?;
        point!("archive-after-publish", StoreIo);
        sync_folder(&self.path.join("refs/heads"))
    }

    /// The files of all packs.
    pub fn pack_files(&self) -> Result<BTreeSet<PathBuf>> {
        let folder = self.path.join("objects/pack");
        let files = fs::read_dir(&folder).map_err(|fault| io_refusal(&folder, &fault))?;
        Ok(files.flatten().map(|file| file.path()).collect())
    }

    /// Makes the packs of a run durable, by name and by content, before anything leads to them. Those of earlier runs are.
    pub fn sync_packs(&self, earlier: &BTreeSet<PathBuf>) -> Result<()> {
        for path in self.pack_files()?.difference(earlier) {
            File::open(path).and_then(|file| file.sync_all()).map_err(|fault| io_refusal(path, &fault))?;
        }
        sync_folder(&self.path.join("objects/pack"))?;
        sync_folder(&self.path.join("objects"))
    }

    /// Clears away what a writer left that died, or a power cut: locks, and refs without a value. Nobody but the holder of
    /// the lease writes them.
    pub fn clear_leftovers(&self) {
        for name in [PUBLIC, DRAFT, "HEAD", "packed-refs", "config"] {
            let _ = fs::remove_file(self.path.join(format!("{name}.lock")));
        }
        for name in [PUBLIC, DRAFT] {
            if self.is_empty(name) {
                let _ = fs::remove_file(self.path.join(name));
            }
        }
        self.clear_unfinished();
    }

    /// Whether a power cut took the value of a ref.
    fn is_empty(&self, reference: &str) -> bool {
        fs::metadata(self.path.join(reference)).is_ok_and(|metadata| metadata.len() == 0)
    }

    pub(super) fn unreadable(&self, fault: &dyn std::fmt::Display) -> Refusal {
        Code::ArchiveDiverged
            .refuse(format!("{} cannot be read: {fault}", self.path.display()))
            .with("path", self.path.to_string_lossy())
    }
}

pub(super) fn sync_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), sync_folder)
}

fn sync_tree(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sync_tree(&path)?;
        } else {
            File::open(&path)?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}
