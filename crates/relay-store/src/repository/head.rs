//! What a work tree has checked out, from the files that say so. Hooks ask this every time, so nothing else is opened.

use std::path::Path;

use relay_core::domain::worktree::{Head, Underway};

use super::folder::{GitFolder, read, read_path};

/// A repository with tens of thousands of packed branches has less.
const MOST_PACKED: u64 = 4 * 1024 * 1024;

/// What git leaves in a work tree's own folder until it has finished.
const MARKS: [(&str, Underway); 6] = [
    ("rebase-merge", Underway::Rebase),
    ("rebase-apply", Underway::Rebase),
    ("MERGE_HEAD", Underway::Merge),
    ("CHERRY_PICK_HEAD", Underway::CherryPick),
    ("REVERT_HEAD", Underway::Revert),
    ("BISECT_LOG", Underway::Bisect),
];

pub(super) fn of(git: &GitFolder) -> Option<Head> {
    let text = read_path(&git.own.join("HEAD"))?;
    let text = text.trim_end();
    let underway = MARKS.iter().find(|(mark, _)| git.own.join(mark).symlink_metadata().is_ok()).map(|(_, what)| *what);
    let Some(name) = text.strip_prefix("ref:").map(str::trim) else {
        return id(text).map(|commit| Head { commit: Some(commit), branch: None, underway });
    };
    let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
    // This is what a repository puts there that keeps its branches in another way.
    if branch == ".invalid" {
        return Some(Head { commit: None, branch: None, underway });
    }
    Some(Head { commit: resolve(&git.common, name), branch: Some(branch.to_owned()), underway })
}

fn resolve(common: &Path, name: &str) -> Option<String> {
    // The name comes from a file that anybody may have written.
    if !name.starts_with("refs/") || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    if let Some(loose) = read_path(&common.join(name)) {
        return id(loose.trim_end());
    }
    let packed = read(&common.join("packed-refs"), MOST_PACKED)?;
    let packed = String::from_utf8_lossy(&packed);
    packed.lines().find_map(|line| id(line.strip_suffix(name)?.strip_suffix(' ')?))
}

/// The id of an object, of either kind of hash.
fn id(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| text.to_owned())
}
