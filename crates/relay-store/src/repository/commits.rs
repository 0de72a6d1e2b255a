//! The paths that commits change: the one that is about to be made, and those between two.

use std::collections::BTreeSet;
use std::path::Path;

use gix::bstr::{BString, ByteSlice};
use relay_core::domain::worktree::Seen;

use super::Tree;
use super::folder::{MOST_PATH, read};
use super::open::{index, open, pathspec, unreadable};
use super::patience::{Over, flow, go_on};

/// The paths whose content in the index differs from that in HEAD.
pub(super) fn staged(tree: &Tree, named: Option<&Path>, over: &Over) -> Seen<Vec<String>> {
    let repository = open(&tree.folder, None)?;
    let path = named.map_or_else(|| repository.index_path(), Path::to_owned);
    let index = index(&repository, &path)?;
    let head = repository.head_tree_id_or_empty().map_err(unreadable)?;
    let against = |id: &gix::oid| -> Seen<BTreeSet<BString>> {
        let mut pathspec = pathspec(&repository, &index, &tree.inside)?;
        let mut paths = BTreeSet::new();
        let renames = gix::status::tree_index::TrackRenames::Disabled;
        repository
            .tree_index_status(id, &index, Some(&mut pathspec), renames, |change, _, _| {
                paths.insert(change.location().to_owned());
                Ok(flow(over))
            })
            .map_err(unreadable)?;
        go_on(over)?;
        Ok(paths)
    };
    let mut paths = against(&head)?;
    for merged in merged(&repository) {
        let other = against(&tree_of(&repository, merged)?.id)?;
        paths.retain(|path| other.contains(path));
    }
    // What a merge left undecided is in the index several times, and in none as it was.
    let undecided = index.entries().iter().filter(|entry| entry.stage_raw() != 0);
    paths.extend(undecided.map(|entry| entry.path(&index).to_owned()));
    Ok(told(tree, paths))
}

/// The commits that are being merged into HEAD, none where nothing is.
fn merged(repository: &gix::Repository) -> Vec<gix::ObjectId> {
    let text = read(&repository.git_dir().join("MERGE_HEAD"), MOST_PATH).unwrap_or_default();
    text.lines().filter_map(|line| gix::ObjectId::from_hex(line).ok()).collect()
}

/// Two ends of a piece of history.
pub(super) struct Between {
    pub tree: Tree,
    pub old: Option<String>,
    pub new: String,
}

impl Between {
    pub fn paths(&self, over: &Over) -> Seen<Vec<String>> {
        let mut repository = open(&self.tree.folder, None)?;
        repository.object_cache_size_if_unset(4 * 1024 * 1024);
        // What is pushed may be a tag, or known by its name alone.
        let new = match repository.try_find_reference(&self.new).map_err(unreadable)? {
            Some(mut named) => named.peel_to_id().map_err(unreadable)?.detach(),
            None => id(&self.new)?,
        };
        let new = repository.find_object(new).map_err(unreadable)?;
        let new = new.peel_to_kind(gix::object::Kind::Commit).map_err(unreadable)?.id;
        // A commit that was never fetched is known to the other side alone.
        let old = self.old.as_deref().map(id).transpose()?.and_then(|old| repository.find_commit(old).ok());
        let mut paths = BTreeSet::new();
        match old {
            Some(old) => {
                let (old, new) = (old.tree().map_err(unreadable)?, tree_of(&repository, new)?);
                differences(Some(&old), &new, over, &mut |path| {
                    paths.insert(path);
                })?;
            }
            None => unpushed(&repository, new, over, &mut paths)?,
        }
        Ok(told(&self.tree, paths))
    }
}

/// The paths changed in commits that no remote-tracking branch has. A merge changes what differs from all its parents:
/// the rest came with one of them.
fn unpushed(repository: &gix::Repository, new: gix::ObjectId, over: &Over, paths: &mut BTreeSet<BString>) -> Seen<()> {
    let platform = repository.references().map_err(unreadable)?;
    let remote = platform.remote_branches().map_err(unreadable)?;
    let known: Vec<gix::ObjectId> = remote
        .filter_map(|branch| branch.ok()?.peel_to_id().ok().map(gix::Id::detach))
        .filter(|id| repository.find_commit(*id).is_ok())
        .collect();
    let walk = repository.rev_walk([new]).with_hidden(known).all().map_err(unreadable)?;
    for commit in walk {
        go_on(over)?;
        let commit = commit.map_err(unreadable)?;
        let tree = tree_of(repository, commit.id)?;
        let mut changed: Option<BTreeSet<BString>> = None;
        for parent in commit.parent_ids() {
            let mut here = BTreeSet::new();
            let parent = tree_of(repository, parent.detach())?;
            differences(Some(&parent), &tree, over, &mut |path| {
                here.insert(path);
            })?;
            changed = Some(changed.map_or(here.clone(), |others| others.intersection(&here).cloned().collect()));
        }
        match changed {
            Some(changed) => paths.extend(changed),
            None => differences(None, &tree, over, &mut |path| {
                paths.insert(path);
            })?,
        }
    }
    Ok(())
}

/// The files that are not the same in two trees.
fn differences(
    old: Option<&gix::Tree<'_>>,
    new: &gix::Tree<'_>,
    over: &Over,
    note: &mut dyn FnMut(BString),
) -> Seen<()> {
    let empty = new.repo.empty_tree();
    let old = old.unwrap_or(&empty);
    let mut platform = old.changes().map_err(unreadable)?;
    platform.options(|options| {
        options.track_path().track_rewrites(None);
    });
    let seen = |change: gix::object::tree::diff::Change<'_, '_, '_>| {
        if !change.entry_mode().is_tree() {
            note(change.location().to_owned());
        }
        Ok(flow(over))
    };
    platform.for_each_to_obtain_tree(new, seen).map_err(unreadable)?;
    go_on(over)
}

fn tree_of(repository: &gix::Repository, commit: gix::ObjectId) -> Seen<gix::Tree<'_>> {
    repository.find_commit(commit).map_err(unreadable)?.tree().map_err(unreadable)
}

fn id(text: &str) -> Seen<gix::ObjectId> {
    gix::ObjectId::from_hex(text.as_bytes()).map_err(unreadable)
}

fn told(tree: &Tree, paths: BTreeSet<BString>) -> Vec<String> {
    paths.iter().filter_map(|path| tree.inside(path.to_str().ok()?)).collect()
}
