//! What is seen of the work tree that a session works in: what a call is about to do to it, and what it did.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use relay_core::domain::pattern::Pattern;
use relay_core::domain::time::Span;
use relay_core::domain::worktree::{Changed, Head, Unseen};
use relay_core::store::Repository;
use relay_core::verbs::hook::{Input, Moment};
use relay_store::repository::Files;

use super::calls::Calls;
use super::checkout::{self, Move};
use super::event::{Call, Deed};
use super::memory::Memory;
use super::visit::Visit;
use super::{tree, words};

/// What asks git after a tool has run may take this long; then it is left to the next time.
const PATIENCE: Span = Span::millis(150);
/// After so many looks in vain it is left to the end of the turn: nobody should pay for every command in a large work tree.
const IN_VAIN: u32 = 2;
/// At the end of a turn nobody waits for the next word: what was left until then is looked at.
const AT_REST: Span = Span::seconds(2);

/// How long somebody who waits lets git look.
fn patience() -> Span {
    #[cfg(feature = "test-doors")]
    if let Some(millis) = crate::environment::test_patience() {
        return Span::millis(millis);
    }
    PATIENCE
}

/// With so many other work trees this one is compared.
const OTHER_TREES: usize = 5;

/// The work tree, where there is one.
pub struct Ground<'a> {
    files: &'a Files,
    tree: Option<Tree>,
}

struct Tree {
    root: String,
    calls: Calls,
    head: Option<Head>,
}

/// What was seen, and what is to be looked at no more once the bus knows it.
#[derive(Default)]
pub struct Seen {
    pub input: Input,
    pub root: String,
    /// Everything that is not committed, where that was looked at.
    changed: Option<Vec<Changed>>,
    /// It took too long, or would have.
    put_off: bool,
    /// Whether git was too slow after a command, where it was asked.
    pub was_slow: Option<bool>,
}

impl<'a> Ground<'a> {
    /// What the session stands on: for a command, where that goes first.
    pub fn under(visit: &Visit<'a>) -> Self {
        let files = visit.place.files();
        let folder = match visit.event.call.as_ref().map(|call| &call.deed) {
            Some(Deed::Shell(command)) => checkout::folder(command, &visit.event.cwd),
            _ => visit.event.cwd.clone(),
        };
        let root = tree::around(files, &folder).or_else(|| tree::around(files, &visit.event.cwd));
        let tree = root.map(|root| Tree {
            calls: Calls::of(visit.home, &root, &visit.who, visit.harness.clone()),
            head: files.head(&root),
            root,
        });
        Ground { files, tree }
    }

    /// Looks at the files, as far as this moment asks for it.
    pub fn see(&self, visit: &Visit<'_>, memory: &Memory) -> Seen {
        let root = self.tree.as_ref().map(|tree| tree.root.clone()).unwrap_or_default();
        let mut seen = Seen { root, ..Seen::default() };
        let cwd = &visit.event.cwd;
        match (visit.event.moment, visit.event.call.as_ref().map(|call| (call, &call.deed))) {
            (Moment::Before, Some((call, Deed::Edit(paths)))) => {
                seen.input.edits = tree::resolved(paths, cwd);
                if let Some(tree) = &self.tree {
                    tree.calls.begin_edit(call.id.as_deref(), &tree::inside(&seen.input.edits, &tree.root));
                }
            }
            (Moment::Before, Some((call, Deed::Shell(command)))) => {
                if let Some(moved) = checkout::moved(command, cwd) {
                    self.moves(&moved, &mut seen.input);
                }
                if let Some(tree) = &self.tree {
                    tree.calls.begin_shell(call.id.as_deref(), command);
                }
            }
            (Moment::After, Some((call, Deed::Edit(paths)))) if !call.failed => {
                seen.input.changed = tree::resolved(paths, cwd);
                // What is edited may lie in another work tree than the session.
                let folder = seen.input.changed.first().and_then(|path| Path::new(path).parent());
                seen.root = folder.and_then(|folder| tree::around(self.files, folder)).unwrap_or(seen.root);
            }
            (Moment::After, Some((call, Deed::Shell(_)))) => {
                let taken = memory.checkouts.get(call.id.as_deref().unwrap_or_default());
                seen.input.done_with.extend(taken);
                self.ran(call, memory, &mut seen);
            }
            (Moment::TurnEnd, _) => self.at_rest(memory, &mut seen),
            _ => {}
        }
        seen
    }

    /// What lies open in a checkout that is about to move.
    fn moves(&self, moved: &Move, input: &mut Input) {
        let Some(root) = tree::around(self.files, &moved.folder) else { return };
        input.checkout = tree::checkout(self.files, Some(&root));
        let named = tree::inside(&tree::resolved(&moved.paths, &moved.folder), &root);
        let is_named = |path: &str| {
            let is_at = |name: &String| {
                path.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            moved.paths.is_empty() || named.iter().any(|name| name.is_empty() || is_at(name))
        };
        match self.files.changes(&root, patience()) {
            Ok(dirty) => {
                input.dirty = dirty.into_iter().map(|change| change.path).filter(|path| is_named(path)).collect();
            }
            Err(Unseen::Slow) => input.blind = true,
            Err(_) => {}
        }
    }

    /// What a command changed.
    fn ran(&self, call: &Call, memory: &Memory, seen: &mut Seen) {
        let Some(tree) = &self.tree else { return };
        let Some(since) = tree.calls.since(call.id.as_deref()) else { return };
        if memory.slow >= IN_VAIN {
            seen.put_off = true;
            return;
        }
        let looked = self.files.changes(&tree.root, patience());
        seen.was_slow = Some(looked == Err(Unseen::Slow));
        match looked {
            Ok(changed) => {
                let doings = tree.calls.doings(since, &changed);
                (seen.input.changed, seen.input.stray) = (doings.own, doings.stray);
                seen.input.changed.extend(still_dirty(tree, memory, &changed));
                seen.changed = Some(changed);
            }
            Err(Unseen::Slow) => seen.put_off = true,
            Err(_) => {}
        }
    }

    /// At the end of a turn: calls whose end nobody told, and files in which nothing is changed any more.
    fn at_rest(&self, memory: &Memory, seen: &mut Seen) {
        let Some(tree) = self.tree.as_ref().filter(|tree| !memory.claims.is_empty() || tree.calls.are_open()) else {
            return;
        };
        let Ok(changed) = self.files.changes(&tree.root, AT_REST) else { return };
        seen.input.changed = tree.calls.left_over(&changed);
        seen.input.changed.extend(still_dirty(tree, memory, &changed));
        seen.input.done_with = self.committed(tree, memory, &changed);
        seen.changed = Some(changed);
    }

    /// The claims that hooks made on files of this tree in which nothing is changed any more. Of a file that git does not
    /// know, nobody can say that.
    fn committed(&self, tree: &Tree, memory: &Memory, changed: &[Changed]) -> Vec<u64> {
        let dirty: HashSet<String> = changed.iter().filter_map(pattern).collect();
        let tracked = self.files.tracked();
        let known: BTreeSet<String> =
            tracked.iter().flat_map(|paths| paths.iter()).filter_map(|path| text(path)).collect();
        let is_settled = |pattern: &str| {
            let named = Pattern::from_canonical(pattern).ok();
            let path = named.as_ref().and_then(Pattern::path);
            let is_gone = path.is_some_and(|path| !Path::new(&tree.root).join(path).exists());
            !dirty.contains(pattern) && (is_gone || known.contains(pattern))
        };
        let own = memory.claims.iter().filter(|(_, made)| made.root == tree.root && is_settled(&made.pattern));
        own.map(|(id, _)| *id).collect()
    }

    /// What was seen is known by now.
    pub fn settle(&self, visit: &Visit<'_>, seen: &Seen) {
        let Some(tree) = &self.tree else { return };
        let call = visit.event.call.as_ref();
        let id = call.and_then(|call| call.id.as_deref());
        match (visit.event.moment, call.map(|call| (call, &call.deed)), &seen.changed) {
            (Moment::After, Some((call, Deed::Edit(_))), _) if call.failed => tree.calls.forget(id),
            (Moment::After, Some((_, Deed::Edit(_))), _) => {
                tree.calls.end_edit(id, &tree::inside(&seen.input.changed, &tree.root));
            }
            (Moment::After, Some((_, Deed::Shell(_))), Some(changed)) => tree.calls.end_shell(id, changed),
            (Moment::After, Some((_, Deed::Shell(_))), None) if seen.put_off => self.put_off(visit),
            (Moment::TurnEnd, _, Some(changed)) => tree.calls.end_all(changed),
            // Whoever is spoken to, or has ended, has no call under way.
            (Moment::Prompt | Moment::End | Moment::SubagentEnd, _, _) => tree.calls.forget_all(),
            _ => {}
        }
    }

    /// What a call changed could not be seen, or nobody could be told: the next one looks again.
    pub fn put_off(&self, visit: &Visit<'_>) {
        if let (Some(tree), Moment::After, Some(call)) = (&self.tree, visit.event.moment, &visit.event.call) {
            tree.calls.put_off(call.id.as_deref());
        }
    }

    /// The files in which this work tree would conflict with others if they were merged as they are, as far as that is soon seen.
    pub fn would_conflict(&self) -> Vec<(String, Vec<String>)> {
        let Some(tree) = &self.tree else { return Vec::new() };
        let others = self.files.work_trees().into_iter().filter(|other| other.root != tree.root).take(OTHER_TREES);
        let met = others.filter_map(|other| {
            let paths = self.files.conflicts(&tree.root, &other.root, patience()).ok()?;
            let branch = other.head.and_then(|head| head.branch);
            (!paths.is_empty()).then(|| (branch.unwrap_or(other.root), paths))
        });
        met.collect()
    }

    /// The call does not run.
    pub fn forget(&self, visit: &Visit<'_>) {
        if let (Some(tree), Some(call)) = (&self.tree, &visit.event.call) {
            tree.calls.forget(call.id.as_deref());
        }
    }

    /// Whether somebody else moved HEAD since the session last looked. What a git command of its own moved is no news.
    pub fn head_news(&self, visit: &Visit<'_>, memory: &mut Memory) -> Option<String> {
        let tree = self.tree.as_ref()?;
        let now = tree.head.clone()?;
        let Some(before) = memory.heads.get(&tree.root).cloned() else {
            memory.heads.insert(tree.root.clone(), now);
            return None;
        };
        if (&before.commit, &before.branch) == (&now.commit, &now.branch) {
            return None;
        }
        let deed = visit.event.call.as_ref().map(|call| &call.deed);
        let by_this_call = matches!(deed, Some(Deed::Shell(command)) if visit.event.moment == Moment::After && command.contains("git"));
        if by_this_call {
            tree.calls.note_head(visit.session(), &now);
        }
        let is_own = by_this_call || tree.calls.moved_head(visit.session(), &now);
        if is_own || visit.is_heard() {
            memory.heads.insert(tree.root.clone(), now.clone());
        }
        (!is_own && visit.is_heard()).then(|| words::head_moved(&before, &now))
    }
}

/// What hooks claimed for the session and is not committed yet: a claim that has run out is made again.
fn still_dirty(tree: &Tree, memory: &Memory, changed: &[Changed]) -> Vec<String> {
    let made: HashSet<&str> =
        memory.claims.values().filter(|made| made.root == tree.root).map(|made| made.pattern.as_str()).collect();
    let is_made = |change: &&Changed| pattern(change).is_some_and(|pattern| made.contains(pattern.as_str()));
    changed.iter().filter(is_made).map(|change| change.path.clone()).collect()
}

fn pattern(change: &Changed) -> Option<String> {
    text(&change.path)
}

fn text(path: &str) -> Option<String> {
    Pattern::of_path(path, &[]).ok().map(|pattern| pattern.as_str().to_owned())
}
