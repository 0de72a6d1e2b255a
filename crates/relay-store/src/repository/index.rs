//! The index of a work tree: what is tracked there, and what git noted of it.

use std::fs;
use std::path::Path;

use gix::bstr::{BString, ByteSlice};
use gix::index::entry::Flags;
use gix::index::{File, State};
use relay_core::domain::worktree::Seen;

use super::open::unreadable;

/// Several times what an index of fifty thousand files takes.
pub(super) const MOST_INDEX: u64 = 64 * 1024 * 1024;

/// An index that is a file of a size that can be meant; an empty one where there is none.
pub(super) fn index(repository: &gix::Repository, path: &Path) -> Seen<File> {
    let options = gix::index::decode::Options::default();
    let index = match fs::metadata(path) {
        Ok(file) if !file.is_file() || file.len() > MOST_INDEX => {
            return Err(unreadable(format!("{} is no index that relay reads", path.display())));
        }
        Ok(_) => File::at(path, repository.object_hash(), true, options).map_err(unreadable)?,
        Err(_) => File::from_state(State::new(repository.object_hash()), path.to_owned()),
    };
    if index.is_sparse() { whole(repository, &index) } else { Ok(index) }
}

/// An index that names folders which are not checked out, with every file of them instead.
fn whole(repository: &gix::Repository, sparse: &File) -> Seen<File> {
    let mut index = State::new(repository.object_hash());
    index.set_timestamp(sparse.timestamp());
    for entry in sparse.entries() {
        let path = entry.path(sparse);
        if !entry.mode.is_sparse() {
            index.dangerously_push_entry(entry.stat, entry.id, entry.flags, entry.mode, path);
            continue;
        }
        let folder = repository.index_from_tree(&entry.id).map_err(unreadable)?;
        for file in folder.entries() {
            let mut below = BString::from(path.trim_end_with(|end| end == '/'));
            below.push(b'/');
            below.extend_from_slice(file.path(&folder));
            let flags = file.flags | Flags::EXTENDED | Flags::SKIP_WORKTREE;
            index.dangerously_push_entry(file.stat, file.id, flags, file.mode, below.as_bstr());
        }
    }
    index.sort_entries();
    Ok(File::from_state(index, sparse.path().to_owned()))
}

/// Whether the index holds the very content of this tree: git notes that there, and it need not be compared.
pub(super) fn is_tree(index: &State, tree: &gix::oid) -> bool {
    index.tree().is_some_and(|noted| noted.num_entries.is_some() && noted.id == tree)
}

/// Paths of a tree that are only intended to be added again: git takes them for deleted until they are, gix for unchanged.
pub(super) fn taken_back(repository: &gix::Repository, index: &State, tree: &gix::oid) -> Seen<Vec<BString>> {
    let intended = index.entries().iter().filter(|entry| entry.flags.contains(Flags::INTENT_TO_ADD));
    let mut paths: Vec<BString> = intended.map(|entry| entry.path(index).to_owned()).collect();
    if !paths.is_empty() {
        let tree = repository.find_tree(tree).map_err(unreadable)?;
        let is_there = |path: &BString| tree.lookup_entry(path.split_str("/")).is_ok_and(|entry| entry.is_some());
        paths.retain(is_there);
    }
    Ok(paths)
}
