//! The paths that commits change: the one that is about to be made, and those between two.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gix::bstr::{BString, ByteSlice};
use relay_core::domain::time::Timestamp;
use relay_core::domain::worktree::Seen;

use super::Tree;
use super::folder::{MOST_PATH, read};
use super::index::{index, is_tree, taken_back};
use super::open::{open, pathspec, unreadable};
use super::patience::{Over, flow, go_on};

/// Trees that follow each other share most of their folders.
const CACHE: usize = 4 * 1024 * 1024;

/// The paths whose content in the index differs from that in HEAD.
pub(super) fn staged(tree: &Tree, named: Option<&Path>, over: &Over) -> Seen<Vec<String>> {
    let repository = open(&tree.folder, None)?;
    let path = named.map_or_else(|| repository.index_path(), Path::to_owned);
    let index = index(&repository, &path)?;
    let head = repository.head_tree_id_or_empty().map_err(unreadable)?;
    if is_tree(&index, &head) {
        return Ok(Vec::new());
    }
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
        paths.extend(taken_back(&repository, &index, id)?);
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
    Ok(told(tree, &paths))
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
        repository.object_cache_size_if_unset(CACHE);
        // What is pushed may be a tag, or known by its name alone.
        let new = match repository.try_find_reference(&self.new).map_err(unreadable)? {
            Some(mut named) => named.peel_to_id().map_err(unreadable)?.detach(),
            None => id(&self.new)?,
        };
        let new = repository.find_object(new).map_err(unreadable)?;
        let new = new.peel_to_kind(gix::object::Kind::Commit).map_err(unreadable)?.id;
        // A commit that was never fetched is known to the other side alone.
        let old = self.old.as_deref().map(id).transpose()?.and_then(|old| repository.find_commit(old).ok());
        let paths = match old {
            Some(old) => {
                let (old, new) = (old.tree().map_err(unreadable)?, tree_of(&repository, new)?);
                differences(Some(&old), &new, over)?
            }
            None => unpushed(&repository, new, over)?,
        };
        Ok(told(&self.tree, &paths))
    }
}

/// The paths changed in commits that no remote-tracking branch has.
fn unpushed(repository: &gix::Repository, new: gix::ObjectId, over: &Over) -> Seen<BTreeSet<BString>> {
    let platform = repository.references().map_err(unreadable)?;
    let remote = platform.remote_branches().map_err(unreadable)?;
    let known: Vec<gix::ObjectId> = remote
        .filter_map(|branch| branch.ok()?.peel_to_id().ok().map(gix::Id::detach))
        .filter(|id| repository.find_commit(*id).is_ok())
        .collect();
    let walk = repository.rev_walk([new]).with_hidden(known).all().map_err(unreadable)?;
    let mut paths = BTreeSet::new();
    for commit in walk {
        go_on(over)?;
        paths.append(&mut brought(repository, &commit.map_err(unreadable)?, over)?);
    }
    Ok(paths)
}

/// The paths that commits changed which HEAD has and which are not older than this, each with its newest one.
pub(super) fn committed(tree: &Tree, since: Timestamp, over: &Over) -> Seen<Vec<(String, Timestamp)>> {
    let mut repository = open(&tree.folder, None)?;
    repository.object_cache_size_if_unset(CACHE);
    let Ok(head) = repository.head_id() else { return Ok(Vec::new()) };
    let order = gix::traverse::commit::simple::CommitTimeOrder::NewestFirst;
    let seconds = since.millis().div_euclid(1_000);
    let sorting = gix::revision::walk::Sorting::ByCommitTimeCutoff { order, seconds };
    let walk = repository.rev_walk([head.detach()]).sorting(sorting).all().map_err(unreadable)?;
    let mut newest: BTreeMap<BString, i64> = BTreeMap::new();
    for commit in walk {
        go_on(over)?;
        let commit = commit.map_err(unreadable)?;
        let at = commit.commit_time.unwrap_or_default();
        for path in brought(&repository, &commit, over)? {
            let known = newest.entry(path).or_insert(at);
            *known = at.max(*known);
        }
    }
    let told = |(path, at): (&BString, &i64)| {
        Some((tree.inside(path.to_str().ok()?)?, Timestamp::from_millis(at.saturating_mul(1_000))))
    };
    Ok(newest.iter().filter_map(told).collect())
}

/// What a commit changed. A merge changes what differs from all its parents: the rest came with one of them.
fn brought(
    repository: &gix::Repository,
    commit: &gix::revision::walk::Info<'_>,
    over: &Over,
) -> Seen<BTreeSet<BString>> {
    let tree = tree_of(repository, commit.id)?;
    let mut changed: Option<BTreeSet<BString>> = None;
    for parent in commit.parent_ids() {
        let here = differences(Some(&tree_of(repository, parent.detach())?), &tree, over)?;
        changed = Some(match changed {
            Some(others) => others.intersection(&here).cloned().collect(),
            None => here,
        });
    }
    changed.map_or_else(|| differences(None, &tree, over), Ok)
}

/// The files that are not the same in two trees; the first of all has none before it.
fn differences(old: Option<&gix::Tree<'_>>, new: &gix::Tree<'_>, over: &Over) -> Seen<BTreeSet<BString>> {
    let empty = new.repo.empty_tree();
    let mut platform = old.unwrap_or(&empty).changes().map_err(unreadable)?;
    platform.options(|options| {
        options.track_path().track_rewrites(None);
    });
    let mut paths = BTreeSet::new();
    let note = |change: gix::object::tree::diff::Change<'_, '_, '_>| {
        if !change.entry_mode().is_tree() {
            paths.insert(change.location().to_owned());
        }
        Ok(flow(over))
    };
    platform.for_each_to_obtain_tree(new, note).map_err(unreadable)?;
    go_on(over)?;
    Ok(paths)
}

fn tree_of(repository: &gix::Repository, commit: gix::ObjectId) -> Seen<gix::Tree<'_>> {
    repository.find_commit(commit).map_err(unreadable)?.tree().map_err(unreadable)
}

fn id(text: &str) -> Seen<gix::ObjectId> {
    gix::ObjectId::from_hex(text.as_bytes()).map_err(unreadable)
}

fn told(tree: &Tree, paths: &BTreeSet<BString>) -> Vec<String> {
    paths.iter().filter_map(|path| tree.inside(path.to_str().ok()?)).collect()
}
