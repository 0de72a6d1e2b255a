//! What is not committed in a work tree. It is told by the index, the commit that is checked out and the files
//! themselves; the index is read and never refreshed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::index::ChangeRef;
use gix::dir::entry::{Kind, Status};
use gix::status::plumbing::index_as_worktree::traits::{CompareBlobs, FastEq, ReadData, SubmoduleStatus};
use gix::status::plumbing::index_as_worktree::{Change, EntryStatus};
use gix::status::plumbing::index_as_worktree_with_renames::{Entry, VisitEntry};
use relay_core::domain::worktree::{ChangeKind, Changed, Seen, Stamp};

use super::folder::git_folder;
use super::index::{index, is_tree, taken_back};
use super::open::{only, open, pathspec, unreadable};
use super::patience::{Over, flow, go_on};
use super::{Tree, head};

/// Where changes are looked for.
pub(super) struct Place {
    pub tree: Tree,
    /// The user's own list of what is ignored everywhere.
    pub ignores: Option<PathBuf>,
    /// The other work trees of the repository: one may lie inside this one.
    pub others: Vec<PathBuf>,
}

impl Place {
    pub fn changes(&self, over: &Over) -> Seen<Vec<Changed>> {
        let repository = open(&self.tree.folder, self.ignores.as_deref())?;
        let index = index(&repository, &repository.index_path())?;
        let mut found = Found { place: self, changes: BTreeMap::new(), doubtful: Vec::new() };
        found.staged(&repository, &index, over)?;
        go_on(over)?;
        found.unstaged(&repository, &index, over)?;
        go_on(over)?;
        Ok(found.told())
    }
}

/// The paths of the repository that are not as the commit has them.
struct Found<'a> {
    place: &'a Place,
    changes: BTreeMap<BString, (ChangeKind, bool)>,
    /// What git noted of these files fits, though their content does not: they were changed in the very second, or it takes
    /// a filter to see that they were not.
    doubtful: Vec<BString>,
}

impl Found<'_> {
    fn staged(&mut self, repository: &gix::Repository, index: &gix::index::State, over: &Over) -> Seen<()> {
        let head = repository.head_tree_id_or_empty().map_err(unreadable)?;
        if is_tree(index, &head) {
            return Ok(());
        }
        let mut pathspec = pathspec(repository, index, &self.place.tree.inside)?;
        let renames = gix::status::tree_index::TrackRenames::Disabled;
        let note = |change: ChangeRef<'_, '_>, _: &gix::index::State, _: &gix::index::State| {
            let kind = match &change {
                ChangeRef::Addition { .. } => ChangeKind::Added,
                ChangeRef::Deletion { .. } => ChangeKind::Deleted,
                ChangeRef::Modification { .. } | ChangeRef::Rewrite { .. } => ChangeKind::Modified,
            };
            self.changes.insert(change.location().to_owned(), (kind, true));
            Ok(flow(over))
        };
        repository.tree_index_status(&head, index, Some(&mut pathspec), renames, note).map_err(unreadable)?;
        let taken_back = taken_back(repository, index, &head)?;
        self.changes.extend(taken_back.into_iter().map(|path| (path, (ChangeKind::Deleted, true))));
        Ok(())
    }

    fn unstaged(&mut self, repository: &gix::Repository, index: &gix::index::State, over: &Over) -> Seen<()> {
        let walk = repository.dirwalk_options().map_err(unreadable)?;
        let options = gix::status::index_worktree::Options {
            dirwalk_options: Some(walk.emit_untracked(gix::dir::walk::EmissionMode::Matching)),
            ..Default::default()
        };
        let submodules = Submodules(self.place.tree.folder.clone());
        let patterns = only(&self.place.tree.inside);
        let mut progress = gix::progress::Discard;
        repository
            .index_worktree_status(index, patterns, self, Lenient, submodules, &mut progress, over, options)
            .map_err(unreadable)?;
        self.settle(repository, index)
    }

    /// A file with a filter is unchanged while what git noted of it fits; any other was changed.
    fn settle(&mut self, repository: &gix::Repository, index: &gix::index::State) -> Seen<()> {
        let doubtful = std::mem::take(&mut self.doubtful);
        if doubtful.is_empty() {
            return Ok(());
        }
        let source = gix::worktree::stack::state::attributes::Source::WorktreeThenIdMapping;
        let mut attributes = repository.attributes_only(index, source).map_err(unreadable)?;
        let mut found = attributes.selected_attribute_matches(["filter"]);
        for path in doubtful {
            let at = attributes.at_entry(path.as_bstr(), None).map_err(unreadable)?;
            let has_filter = at.matching_attributes(&mut found)
                && found.iter_selected().any(|found| found.assignment.state.as_bstr().is_some());
            if !has_filter || !self.is_as_noted(index, path.as_bstr()) {
                self.note(path, ChangeKind::Modified);
            }
        }
        Ok(())
    }

    /// Whether the file has the very time that git noted. git compares whole seconds, and notes more.
    fn is_as_noted(&self, index: &gix::index::State, path: &BStr) -> bool {
        let noted = index.entry_by_path(path).map(|entry| entry.stat.mtime);
        let file = path.to_path().ok().and_then(|path| fs::symlink_metadata(self.place.tree.folder.join(path)).ok());
        noted.zip(file).is_some_and(|(noted, file)| {
            i64::from(noted.secs) == file.mtime() && i64::from(noted.nsecs) == file.mtime_nsec()
        })
    }

    /// A difference between the index and the files.
    fn note(&mut self, path: BString, kind: ChangeKind) {
        let (was, staged) = self.changes.get(&path).copied().unzip();
        // What was added and then edited is still new.
        let kind =
            if was == Some(ChangeKind::Added) && kind == ChangeKind::Modified { ChangeKind::Added } else { kind };
        self.changes.insert(path, (kind, staged.unwrap_or(false)));
    }

    fn is_work_tree(&self, path: &BStr) -> bool {
        let Ok(path) = path.to_path() else { return false };
        let path = self.place.tree.folder.join(path);
        self.place.others.contains(&path)
    }

    fn told(self) -> Vec<Changed> {
        let tree = &self.place.tree;
        let told = |(path, (kind, staged)): (BString, (ChangeKind, bool))| {
            let whole = path.to_str().ok()?;
            let stamp = stamp(&tree.folder.join(whole));
            Some(Changed { path: tree.inside(whole)?, kind, staged, stamp })
        };
        self.changes.into_iter().filter_map(told).collect()
    }
}

impl<'index> VisitEntry<'index> for Found<'_> {
    type ContentChange = ();
    type SubmoduleStatus = ();

    fn visit_entry(&mut self, entry: Entry<'index, (), ()>) {
        let (path, kind) = match entry {
            Entry::Modification { rela_path, status, .. } => match status {
                EntryStatus::NeedsUpdate(_) => return,
                EntryStatus::Conflict { .. } => (rela_path.to_owned(), ChangeKind::Conflicted),
                EntryStatus::IntentToAdd => (rela_path.to_owned(), ChangeKind::Added),
                EntryStatus::Change(Change::Removed) => (rela_path.to_owned(), ChangeKind::Deleted),
                EntryStatus::Change(Change::Modification { set_entry_stat_size_zero: true, .. }) => {
                    return self.doubtful.push(rela_path.to_owned());
                }
                EntryStatus::Change(_) => (rela_path.to_owned(), ChangeKind::Modified),
            },
            Entry::DirectoryContents { entry, .. } => {
                let is_told = match entry.disk_kind {
                    Some(Kind::File | Kind::Symlink) => true,
                    Some(Kind::Repository) => !self.is_work_tree(entry.rela_path.as_bstr()),
                    _ => false,
                };
                if entry.status != Status::Untracked || !is_told {
                    return;
                }
                (entry.rela_path, ChangeKind::Untracked)
            }
            Entry::Rewrite { .. } => return,
        };
        self.note(path, kind);
    }
}

/// A file that cannot be read is not what was committed, and the others are looked at all the same.
#[derive(Clone)]
struct Lenient;

impl CompareBlobs for Lenient {
    type Output = ();

    fn compare_blobs<'a, 'b>(
        &mut self,
        entry: &gix::index::Entry,
        size: u64,
        data: impl ReadData<'a>,
        buffer: &mut Vec<u8>,
    ) -> gix::Result<Option<()>> {
        Ok(FastEq.compare_blobs(entry, size, data, buffer).unwrap_or(Some(())))
    }
}

/// A submodule has changed when another commit is checked out in it than was committed here. What is in it is its own.
#[derive(Clone)]
struct Submodules(PathBuf);

impl SubmoduleStatus for Submodules {
    type Output = ();

    fn status(&mut self, entry: &gix::index::Entry, path: &BStr) -> gix::Result<Option<()>> {
        let folder = path.to_path().ok().map(|path| self.0.join(path));
        let head = folder.as_deref().and_then(git_folder).and_then(|git| head::of(&git));
        let commit = head.and_then(|head| gix::ObjectId::from_hex(head.commit?.as_bytes()).ok());
        Ok(commit.filter(|commit| *commit != entry.id).map(|_| ()))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = fs::symlink_metadata(path).ok()?;
    let modified_ns = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
    Some(Stamp { modified_ns, size: file.size(), inode: file.ino(), mode: file.mode() })
}
