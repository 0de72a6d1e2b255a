//! The tree of claims as lines of text, for the printed page and the live screen.

use relay_core::domain::pattern::RESOURCE;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::look::{Branch, Leaf};

use super::relative;

/// One line of the drawn tree.
pub struct Row<'a> {
    /// What leads to it, as lines.
    pub rails: String,
    pub what: What<'a>,
}

pub enum What<'a> {
    Folder(&'a Branch),
    Claim(&'a Leaf),
    /// Claims for which there was no room.
    More(usize),
}

/// Every line below a folder, from top to bottom.
pub fn rows(tree: &Branch) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    add(&mut rows, tree, "");
    rows
}

fn add<'a>(rows: &mut Vec<Row<'a>>, branch: &'a Branch, rails: &str) {
    let leaves = branch.leaves.iter().map(What::Claim);
    let folders = branch.branches.iter().map(What::Folder);
    let more = (branch.hidden > 0).then_some(What::More(branch.hidden));
    let mut left = branch.leaves.len() + branch.branches.len() + usize::from(branch.hidden > 0);
    for what in leaves.chain(folders).chain(more) {
        left -= 1;
        let (turn, on) = if left == 0 { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let below = if let What::Folder(folder) = &what { Some(*folder) } else { None };
        rows.push(Row { rails: format!("{rails}{turn}"), what });
        if let Some(folder) = below {
            add(rows, folder, &format!("{rails}{on}"));
        }
    }
}

/// A folder by its name; named things that are no files hang together.
pub fn folder(branch: &Branch) -> String {
    if branch.path == RESOURCE { RESOURCE.to_owned() } else { format!("{}/", escape_line(&branch.name)) }
}

/// Whose a claim is, how long yet, and what else is to be known of it.
pub fn holding(leaf: &Leaf, now: Timestamp) -> String {
    let claim = &leaf.claim;
    let silent = if leaf.silent { " (silent)" } else { "" };
    let mode = if claim.exclusive { "" } else { ", shared" };
    let reason = claim.reason.as_ref().map(|thread| format!(", for {thread}")).unwrap_or_default();
    let ends = relative(claim.expires_at, now);
    format!("{}{silent} #{}, ends {ends}{mode}{reason}", claim.holder, claim.id)
}
