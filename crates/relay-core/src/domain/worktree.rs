//! What a git repository says about the work in it: its work trees, what they have checked out, and what is not
//! committed there.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A checkout of the project's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTree {
    /// The project's folder in it, absolute.
    pub root: String,
    /// Its name in the repository; the main one has none.
    pub name: Option<String>,
    pub head: Option<Head>,
}

/// What a work tree has checked out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// None before the first commit, and where it cannot be told without reading more than two small files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its short name; none where HEAD is detached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underway: Option<Underway>,
}

/// What git was told to do there and has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Underway {
    Rebase,
    Merge,
    CherryPick,
    Revert,
    Bisect,
}

impl Underway {
    pub fn as_str(self) -> &'static str {
        match self {
            Underway::Rebase => "rebase",
            Underway::Merge => "merge",
            Underway::CherryPick => "cherry-pick",
            Underway::Revert => "revert",
            Underway::Bisect => "bisect",
        }
    }
}

/// A path that is not as the commit that is checked out has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// From the project root.
    pub path: String,
    pub kind: ChangeKind,
    /// The index differs from the commit.
    pub staged: bool,
    /// What is there now; none where nothing is.
    pub stamp: Option<Stamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    Modified,
    /// In the index, and not in the commit.
    Added,
    Deleted,
    Untracked,
    /// A merge left it to somebody to decide.
    Conflicted,
}

impl ChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ChangeKind::Modified => "modified",
            ChangeKind::Added => "added",
            ChangeKind::Deleted => "deleted",
            ChangeKind::Untracked => "untracked",
            ChangeKind::Conflicted => "conflicted",
        }
    }
}

/// Tells two looks at a file apart when it was changed in between. It says nothing about the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub modified_ns: i128,
    pub size: u64,
    pub inode: u64,
    /// Type and permissions.
    pub mode: u32,
}

/// Why something in a repository is not known. It stops nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unseen {
    /// There is no repository.
    Nowhere,
    /// The look took longer than somebody was ready to wait.
    Slow,
    /// A repository that cannot be read, or of a kind that relay does not know.
    Unreadable(String),
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unseen::Nowhere => f.write_str("there is no git repository"),
            Unseen::Slow => f.write_str("there was not enough time"),
            Unseen::Unreadable(why) => f.write_str(why),
        }
    }
}

/// What was seen in a repository, or why it was not.
pub type Seen<T> = std::result::Result<T, Unseen>;
