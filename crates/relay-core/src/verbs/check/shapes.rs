//! What `check` tells of the work trees.

use serde::{Deserialize, Serialize};

use crate::domain::worktree::{ChangeKind, WorkTree};
use crate::wire::v1::ClaimShape;

/// What was found in the work trees beside changes inside the claims of others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trees {
    pub worktrees: Vec<WorkTreeShape>,
    /// Changed, and under no live claim.
    pub outside: Vec<Outside>,
    pub outside_total: usize,
    /// Live claims under which nothing is changed in any work tree, and nothing was committed on what is checked out in one
    /// since they were granted.
    pub untouched: Vec<ClaimShape>,
    pub untouched_total: usize,
    /// Work trees that would conflict if they were merged as they are now.
    pub conflicts: Vec<WouldConflict>,
    pub conflicts_total: usize,
    /// What was not looked at.
    pub unseen: Vec<UnseenShape>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkTreeShape {
    pub root: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// How many files are not committed, of those that were asked for; none where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<usize>,
}

impl WorkTreeShape {
    pub(super) fn of(tree: &WorkTree, changed: Option<usize>) -> Self {
        let head = tree.head.clone().unwrap_or_default();
        WorkTreeShape { root: tree.root.clone(), branch: head.branch, commit: head.commit, changed }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outside {
    pub worktree: String,
    pub path: String,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WouldConflict {
    pub one: WorkTreeShape,
    pub other: WorkTreeShape,
    pub paths: Vec<String>,
    pub paths_total: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnseenShape {
    pub worktree: String,
    /// `changes`, `commits`, or `conflicts` with another one.
    pub what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    pub why: String,
}

/// The same as numbers, for those who ask how things stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub outside: usize,
    pub inside: usize,
    /// Work trees for which there was not enough time, or that cannot be read.
    pub unseen: usize,
}
