//! Reading the archive back, as one public commit shows it.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use gix::ObjectId;
use gix::objs::tree::EntryKind;
use gix::odb::pack::cache::lru::MemoryCappedHashmap;
use relay_core::archive::{Cursor, Entry, Unreadable, path};
use relay_core::domain::event::Number;
use relay_core::error::Refusal;
use relay_core::store::Result;

use super::Archive;
use super::repository::Repository;

/// Folders that are remembered: a message's lies four deep, and its neighbours in number are neighbours in the tree.
const FOLDERS_KEPT: usize = 4096;
/// For folders, which are asked for again and again.
const OBJECT_CACHE: usize = 16 * 1024 * 1024;
/// For what others are stored as differences from: without it each is unpacked from the beginning of its line.
const PACK_CACHE: usize = 16 * 1024 * 1024;

/// The archive at its newest public commit.
pub(crate) struct Shown<'a> {
    repository: &'a Repository,
    objects: gix::Repository,
    /// Every commit, oldest first.
    pub commits: Vec<Commit>,
    root: ObjectId,
    folders: HashMap<String, Rc<Folder>>,
}

type Folder = BTreeMap<Vec<u8>, (ObjectId, EntryKind)>;

/// A commit, by what it says of itself.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    pub id: ObjectId,
    /// None when relay did not write it.
    pub cursor: Option<Cursor>,
}

/// A commit in full.
pub(crate) struct Full {
    pub message: String,
    pub committer: String,
    pub author: String,
}

impl Archive {
    /// What is public now; none where nothing is yet.
    pub(crate) fn shown(&self) -> Result<Option<Shown<'_>>> {
        let repository = &self.repository;
        let Some(tip) = repository.tip()? else { return Ok(None) };
        let unreadable = |fault: &dyn std::fmt::Display| repository.unreadable(fault);
        let mut objects = repository.open()?;
        objects.object_cache_size(OBJECT_CACHE);
        objects.objects.set_pack_cache(|| Box::new(MemoryCappedHashmap::new(PACK_CACHE)));
        let id = ObjectId::from_hex(tip.commit.as_bytes()).map_err(|fault| unreadable(&fault))?;
        let newest = objects.find_commit(id).map_err(|fault| unreadable(&fault))?;
        let root = newest.tree_id().map_err(|fault| unreadable(&fault))?.detach();
        drop(newest);
        let mut shown = Shown { repository, objects, commits: Vec::new(), root, folders: HashMap::new() };
        shown.commits = shown.line(id)?;
        Ok(Some(shown))
    }
}

impl Shown<'_> {
    fn unreadable(&self, fault: &dyn std::fmt::Display) -> Refusal {
        self.repository.unreadable(fault)
    }

    /// From the newest commit back to the first. History here is a line.
    fn line(&self, newest: ObjectId) -> Result<Vec<Commit>> {
        let mut commits = Vec::new();
        let mut next = Some(newest);
        while let Some(id) = next {
            let commit = self.objects.find_commit(id).map_err(|fault| self.unreadable(&fault))?;
            let message = commit.message_raw().map_err(|fault| self.unreadable(&fault))?;
            commits.push(Commit { id, cursor: Cursor::read(&String::from_utf8_lossy(message)) });
            let parents: Vec<ObjectId> = commit.parent_ids().map(gix::Id::detach).collect();
            if parents.len() > 1 {
                return Err(self.unreadable(&format!("commit {id} joins {} lines", parents.len())));
            }
            next = parents.first().copied();
        }
        commits.reverse();
        Ok(commits)
    }

    /// How far it has come, by the trailer of the newest commit.
    pub fn cursor(&self) -> Option<&Cursor> {
        self.commits.last().and_then(|commit| commit.cursor.as_ref())
    }

    /// The id of the newest commit.
    pub fn newest(&self) -> String {
        self.commits.last().map(|commit| commit.id.to_string()).unwrap_or_default()
    }

    pub fn full(&self, commit: &Commit) -> Result<Full> {
        let read = self.objects.find_commit(commit.id).map_err(|fault| self.unreadable(&fault))?;
        let decoded = read.decode().map_err(|fault| self.unreadable(&fault))?;
        Ok(Full {
            message: decoded.message.to_string(),
            committer: decoded.committer.to_string(),
            author: decoded.author.to_string(),
        })
    }

    /// The file of this path.
    pub fn file(&mut self, path: &str) -> Result<Option<Vec<u8>>> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let Some(folder) = self.folder(parent)? else { return Ok(None) };
        match folder.get(name.as_bytes()) {
            Some((id, EntryKind::Blob)) => {
                let mut blob = self.objects.find_blob(*id).map_err(|fault| self.unreadable(&fault))?;
                Ok(Some(blob.take_data()))
            }
            _ => Ok(None),
        }
    }

    fn folder(&mut self, path: &str) -> Result<Option<Rc<Folder>>> {
        if let Some(known) = self.folders.get(path) {
            return Ok(Some(known.clone()));
        }
        let id = match path.rsplit_once('/') {
            None if path.is_empty() => self.root,
            split => {
                let (parent, name) = split.unwrap_or(("", path));
                let Some(parent) = self.folder(parent)? else { return Ok(None) };
                match parent.get(name.as_bytes()) {
                    Some((id, EntryKind::Tree)) => *id,
                    _ => return Ok(None),
                }
            }
        };
        if self.folders.len() >= FOLDERS_KEPT {
            self.folders.clear();
        }
        let mut folder = Folder::new();
        self.each_in(id, |name, id, kind| {
            folder.insert(name.to_vec(), (id, kind));
        })?;
        let folder = Rc::new(folder);
        self.folders.insert(path.to_owned(), folder.clone());
        Ok(Some(folder))
    }

    fn each_in(&self, tree: ObjectId, mut each: impl FnMut(&[u8], ObjectId, EntryKind)) -> Result<()> {
        let tree = self.objects.find_tree(tree).map_err(|fault| self.unreadable(&fault))?;
        let decoded = tree.decode().map_err(|fault| self.unreadable(&fault))?;
        decoded.entries.iter().for_each(|entry| each(entry.filename, entry.oid.to_owned(), entry.mode.kind()));
        Ok(())
    }

    /// Walks all that is there; `each` gets the path of everything that is no folder.
    pub fn walk(&self, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut open = vec![(String::new(), self.root)];
        while let Some((path, tree)) = open.pop() {
            let mut files = Vec::new();
            self.each_in(tree, |name, id, kind| {
                let path = format!("{path}{}", String::from_utf8_lossy(name));
                if kind == EntryKind::Tree {
                    open.push((format!("{path}/"), id));
                } else {
                    files.push(path);
                }
            })?;
            files.iter().try_for_each(|path| each(path))?;
        }
        Ok(())
    }

    /// The event of this number, read back.
    pub fn entry(&mut self, number: Number) -> Result<Entry> {
        let missing = |path: String| Unreadable { path, why: "it is missing".to_owned() };
        let unreadable = |shown: &Self, why: Unreadable| shown.unreadable(&why);
        let Some(bytes) = self.file(&path(number))? else {
            return Err(unreadable(self, missing(path(number))));
        };
        let mut failed = None;
        let read = Entry::read(number, &bytes, |path| {
            self.file(path).unwrap_or_else(|refusal| {
                failed = Some(refusal);
                None
            })
        });
        match failed {
            Some(refusal) => Err(refusal),
            None => read.map_err(|why| unreadable(self, why)),
        }
    }
}
