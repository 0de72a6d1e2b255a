//! A look at the work trees that ends in time, and notes what it could not see.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::shapes::{UnseenShape, WorkTreeShape, WouldConflict};
use super::trees::first;
use crate::domain::pattern::{Case, Compiled, Pattern};
use crate::domain::time::{Span, Timestamp};
use crate::domain::worktree::{Changed, Unseen, WorkTree};
use crate::error::Refusal;
use crate::store::Result;
use crate::verbs::Ctx;
use crate::verbs::wait::Deadline;

pub(super) struct Look<'a> {
    pub ctx: &'a Ctx<'a>,
    pub case: Case,
    pub trees: Vec<Tree>,
    pub unseen: RefCell<Vec<UnseenShape>>,
    /// Nothing else is wanted, where there are any.
    only: Vec<Compiled>,
    until: Deadline,
}

/// A work tree and what is not committed there, of what is wanted; none where that was not seen.
pub(super) struct Tree {
    pub tree: WorkTree,
    changes: Option<Vec<Changed>>,
}

impl Tree {
    pub fn changes(&self) -> &[Changed] {
        self.changes.as_deref().unwrap_or_default()
    }

    pub fn shape(&self) -> WorkTreeShape {
        WorkTreeShape::of(&self.tree, self.changes.as_ref().map(Vec::len))
    }
}

impl<'a> Look<'a> {
    pub fn new(ctx: &'a Ctx<'a>, paths: &[String], patience: Span) -> Result<Self> {
        let (roots, case) = (ctx.repository.roots(), ctx.repository.case());
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let only = |path: &String| match Pattern::of_path(path, &roots) {
            Ok(pattern) => Ok(pattern.compile(case)),
            Err(fault) => Err(Refusal::from(fault).with("pattern", path.as_str())),
        };
        let only = paths.iter().map(only).collect::<Result<Vec<_>>>()?;
        let until = Deadline::after(ctx, patience);
        let mut look = Look { ctx, case, trees: Vec::new(), unseen: RefCell::default(), only, until };
        for tree in ctx.repository.work_trees() {
            let mut changes = look.seen(ctx.repository.changes(&tree.root, look.left()), &tree, "changes", None);
            changes.iter_mut().for_each(|changes| changes.retain(|changed| look.wants(&changed.path)));
            look.trees.push(Tree { tree, changes });
        }
        Ok(look)
    }

    fn left(&self) -> Span {
        self.until.left(self.ctx.clock)
    }

    /// What was seen; what was not is noted.
    fn seen<T>(
        &self,
        seen: std::result::Result<T, Unseen>,
        tree: &WorkTree,
        what: &str,
        with: Option<&WorkTree>,
    ) -> Option<T> {
        let note = |why: &Unseen| {
            let (worktree, with) = (tree.root.clone(), with.map(|other| other.root.clone()));
            self.unseen.borrow_mut().push(UnseenShape { worktree, what: what.to_owned(), with, why: why.to_string() });
        };
        seen.inspect_err(note).ok()
    }

    pub fn wants(&self, path: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.matches(path))
    }

    /// Whether a claim could hold something that is wanted.
    pub fn wants_some_of(&self, claim: &Compiled) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only.overlap(claim).is_some())
    }

    pub fn saw_all_changes(&self) -> bool {
        self.trees.iter().all(|tree| tree.changes.is_some())
    }

    /// What was committed since then on whatever is checked out, each path with the newest time; none where not all of it
    /// was seen.
    pub fn committed(&self, since: Timestamp) -> Option<BTreeMap<String, Timestamp>> {
        let mut known = BTreeSet::new();
        let mut newest = BTreeMap::new();
        for Tree { tree, .. } in &self.trees {
            // Those who have the same commit have the same history.
            if !known.insert(tree.head.as_ref().and_then(|head| head.commit.as_ref())) {
                continue;
            }
            let committed = self.ctx.repository.committed(&tree.root, since, self.left());
            for (path, at) in self.seen(committed, tree, "commits", None)? {
                let newest = newest.entry(path).or_insert(at);
                *newest = at.max(*newest);
            }
        }
        Some(newest)
    }

    /// Every pair of work trees that would conflict in something that is wanted.
    pub fn conflicts(&self) -> Vec<WouldConflict> {
        let mut conflicts = Vec::new();
        for (index, one) in self.trees.iter().enumerate() {
            for other in &self.trees[index + 1..] {
                let paths = self.ctx.repository.conflicts(&one.tree.root, &other.tree.root, self.left());
                let mut paths = self.seen(paths, &one.tree, "conflicts", Some(&other.tree)).unwrap_or_default();
                paths.retain(|path| self.wants(path));
                if !paths.is_empty() {
                    let (one, other, paths_total) = (one.shape(), other.shape(), paths.len());
                    conflicts.push(WouldConflict { one, other, paths_total, paths: first(paths) });
                }
            }
        }
        conflicts
    }
}
