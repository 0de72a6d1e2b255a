//! What would conflict if two work trees were merged as they are now. Each becomes a commit that is in memory alone: its HEAD
//! with what is not committed on top. No driver takes part: text is merged as text.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::merge::tree::{TreatAsUnresolved, apply_index_entries::RemovalMode};
use gix::objs::tree::EntryKind;
use relay_core::domain::worktree::{ChangeKind, Changed, Seen, Unseen};

use super::changes::Place;
use super::folder::{git_folder, read};
use super::head;
use super::index::index;
use super::open::{open, unreadable};
use super::patience::{Over, go_on};

/// More than this is not merged by hand either.
const MOST_CHANGED: u64 = 64 * 1024 * 1024;

/// The paths in which two work trees of a repository would conflict.
pub(super) fn conflicts(one: &Place, other: &Place, over: &Over) -> Seen<Vec<String>> {
    let mut memory = open(&one.tree.folder, None)?.with_object_memory();
    memory.object_cache_size_if_unset(16 * 1024 * 1024);
    let (ours, theirs) = (Side::of(one, over)?, Side::of(other, over)?);
    if ours.head == theirs.head && (ours.changes.is_empty() || theirs.changes.is_empty()) {
        return Ok(Vec::new());
    }
    let (Some(our_head), Some(their_head)) = (ours.head, theirs.head) else { return Ok(Vec::new()) };
    // Those who have no commit in common are not going to be merged.
    if !matches!(memory.merge_base(our_head, their_head), Ok(Some(_))) {
        return Ok(Vec::new());
    }
    let our_commit = ours.commit(&memory, our_head, &theirs, over)?;
    let their_commit = theirs.commit(&memory, their_head, &ours, over)?;
    go_on(over)?;
    let options = memory.tree_merge_options().map_err(unreadable)?;
    let labels = gix::merge::blob::builtin_driver::text::Labels::default();
    let merged = memory.merge_commits(our_commit, their_commit, labels, options.into()).map_err(unreadable)?;
    let mut merged = merged.tree_merge;
    let tree = merged.tree.write().map_err(unreadable)?;
    let mut index = memory.index_from_tree(&tree).map_err(unreadable)?;
    merged.index_changed_after_applying_conflicts(&mut index, TreatAsUnresolved::git(), RemovalMode::Prune);
    let undecided = index.entries().iter().filter(|entry| entry.stage_raw() != 0);
    let paths: BTreeSet<&str> = undecided.filter_map(|entry| entry.path(&index).to_str().ok()).collect();
    Ok(paths.into_iter().filter_map(|path| one.tree.inside(path)).collect())
}

/// A work tree as it is now.
struct Side<'a> {
    place: &'a Place,
    repository: gix::Repository,
    head: Option<ObjectId>,
    changes: Vec<Changed>,
}

impl<'a> Side<'a> {
    fn of(place: &'a Place, over: &Over) -> Seen<Self> {
        let repository = open(&place.tree.folder, None)?;
        let head = repository.head_id().ok().map(gix::Id::detach);
        Ok(Side { place, repository, head, changes: place.changes(over)? })
    }

    /// Whether something is at this path, committed or not.
    fn has(&self, path: &str) -> bool {
        self.place.tree.folder.join(path).symlink_metadata().is_ok()
    }

    /// Its HEAD with everything on top that a merge would meet, written to memory.
    fn commit(&self, memory: &gix::Repository, head: ObjectId, other: &Side<'_>, over: &Over) -> Seen<ObjectId> {
        let is_met = |changed: &&Changed| changed.kind != ChangeKind::Untracked || other.has(&changed.path);
        let met: Vec<&Changed> = self.changes.iter().filter(is_met).collect();
        if met.is_empty() {
            return Ok(head);
        }
        let below = memory.find_commit(head).map_err(unreadable)?;
        let mut tree = below.tree().map_err(unreadable)?.edit().map_err(unreadable)?;
        let mut files = Files::of(self)?;
        for changed in met {
            go_on(over)?;
            match files.entry(&changed.path)? {
                Some((kind, Content::Bytes(bytes))) => {
                    let blob = memory.write_blob(bytes).map_err(unreadable)?;
                    tree.upsert(changed.path.as_str(), kind, blob.detach()).map_err(unreadable)?;
                }
                Some((kind, Content::Commit(id))) => {
                    tree.upsert(changed.path.as_str(), kind, id).map_err(unreadable)?;
                }
                None => {
                    tree.remove(changed.path.as_str()).map_err(unreadable)?;
                }
            }
        }
        let tree = tree.write().map_err(unreadable)?.detach();
        let nobody = gix::actor::Signature::default();
        let commit = gix::objs::Commit {
            tree,
            parents: [head].into_iter().collect(),
            author: nobody.clone(),
            committer: nobody,
            encoding: None,
            message: Default::default(),
            extra_headers: Vec::new(),
        };
        memory.write_object(&commit).map_err(unreadable).map(gix::Id::detach)
    }
}

enum Content {
    Bytes(Vec<u8>),
    /// The commit that a submodule has checked out.
    Commit(ObjectId),
}

/// The files of a work tree, as git would store them.
struct Files<'a> {
    folder: &'a Path,
    pipeline: gix::filter::Pipeline<'a>,
    index: gix::index::File,
    left: u64,
}

impl<'a> Files<'a> {
    fn of(side: &'a Side<'_>) -> Seen<Self> {
        let (pipeline, _) = side.repository.filter_pipeline(None).map_err(unreadable)?;
        let index = index(&side.repository, &side.repository.index_path())?;
        Ok(Files { folder: &side.place.tree.folder, pipeline, index, left: MOST_CHANGED })
    }

    /// What is at a path, if it is something that git stores.
    fn entry(&mut self, path: &str) -> Seen<Option<(EntryKind, Content)>> {
        let file = self.folder.join(path);
        let Ok(metadata) = fs::symlink_metadata(&file) else { return Ok(None) };
        if metadata.is_symlink() {
            let target = fs::read_link(&file).map_err(unreadable)?;
            return Ok(Some((EntryKind::Link, Content::Bytes(target.as_os_str().as_bytes().to_owned()))));
        }
        if metadata.is_dir() {
            let head = git_folder(&file).and_then(|git| head::of(&git)).and_then(|head| head.commit);
            let commit = head.and_then(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
            return Ok(commit.map(|commit| (EntryKind::Commit, Content::Commit(commit))));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        let is_executable = metadata.permissions().mode() & 0o100 != 0;
        let kind = if is_executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
        Ok(Some((kind, Content::Bytes(self.stored(path, &file)?))))
    }

    fn stored(&mut self, path: &str, file: &Path) -> Seen<Vec<u8>> {
        let too_much = || Unseen::Unreadable(format!("more is changed in {} than is merged", self.folder.display()));
        let bytes = read(file, self.left).ok_or_else(too_much)?;
        self.left -= bytes.len() as u64;
        let mut stored = Vec::new();
        let converted = self.pipeline.convert_to_git(bytes.as_slice(), Path::new(path), &self.index);
        converted.map_err(unreadable)?.read_to_end(&mut stored).map_err(unreadable)?;
        Ok(stored)
    }
}
