//! `guard`: what is about to be committed or pushed, held against the live claims of others. It stands behind the agents' own
//! hooks, for whatever writes past them.
//!
//! `relay guard install` puts two hooks where git looks for them and never in the place of somebody else's; they call
//! `relay guard pre-commit` and `relay guard pre-push`, which let git go on whenever they cannot tell.

mod call;
mod install;
mod owner;
mod place;
mod pushed;
mod script;
mod stand;
mod status;
mod warning;

pub use install::{install, remove};
pub use stand::stand;
pub use status::status;

use serde::Serialize;

/// The hooks of git in which the guard stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Hook {
    #[serde(rename = "pre-commit")]
    PreCommit,
    #[serde(rename = "pre-push")]
    PrePush,
}

impl Hook {
    pub const ALL: [Hook; 2] = [Hook::PreCommit, Hook::PrePush];

    /// The name of its file.
    pub fn as_str(self) -> &'static str {
        match self {
            Hook::PreCommit => "pre-commit",
            Hook::PrePush => "pre-push",
        }
    }
}

/// What can be said of one hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// git runs relay's hook.
    Installed,
    /// The same, and the hook that was there before runs first.
    Chained,
    /// Somebody else's hook calls the guard.
    Called,
    /// Somebody else's hook is there, and does not.
    Foreign,
    /// relay's hook is there, with lines of somebody else's in it.
    Changed,
    /// A hook is there, and git ignores it.
    NotExecutable,
    /// relay's hook is in the repository's own folder, and git looks elsewhere.
    Shadowed,
    Missing,
}

/// One hook, as `install`, `remove` and `status` tell of it.
#[derive(Debug, Serialize)]
pub struct Row {
    pub hook: Hook,
    pub state: State,
    /// The file that it is about.
    pub path: String,
    /// What else a person should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
