//! What `check` found, as sentences.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::verbs::check::{Counted, Outcome, Trees, WorkTreeShape, WouldConflict};
use relay_core::wire::v1::ConflictShape;

use super::{Page, conflicts, count, relative, state};

pub fn check(outcome: &Outcome, page: &Page<'_>) -> String {
    let Some(trees) = &outcome.trees else {
        return conflicts(&outcome.inside, outcome.inside_total, page.now);
    };
    let mut text = worktrees(trees);
    outside(&mut text, trees);
    inside(&mut text, outcome, page);
    if trees.untouched_total > 0 {
        let _ = writeln!(text, "{}", "Claimed, and nothing changed or committed since:".bold());
        text.push_str(&state::claims(&trees.untouched, page));
        more(&mut text, trees.untouched_total, trees.untouched.len());
    }
    for conflict in &trees.conflicts {
        would_conflict(&mut text, conflict);
    }
    more(&mut text, trees.conflicts_total, trees.conflicts.len());
    for unseen in &trees.unseen {
        let with = unseen.with.as_deref().map(|other| format!(" with {}", escape_line(other))).unwrap_or_default();
        let (root, why) = (escape_line(&unseen.worktree), escape_line(&unseen.why));
        let _ = writeln!(text, "{} {} of {root}{with}: {why}", "not seen".yellow(), unseen.what);
    }
    text
}

fn worktrees(trees: &Trees) -> String {
    if trees.worktrees.is_empty() {
        return "There is no work tree here, so nothing is changed in one.\n".to_owned();
    }
    let line = |tree: &WorkTreeShape| {
        let changed = tree.changed.map_or_else(|| "not known".to_owned(), |changed| count(changed, "changed file"));
        format!("{}: {changed}\n", named(tree))
    };
    trees.worktrees.iter().map(line).collect()
}

/// A work tree by its place and what it has checked out.
fn named(tree: &WorkTreeShape) -> String {
    let short = tree.commit.as_deref().map(|commit| &commit[..commit.len().min(8)]);
    match tree.branch.as_deref().or(short) {
        Some(at) => format!("{} ({})", escape_line(&tree.root).bold(), escape_line(at)),
        None => escape_line(&tree.root).bold().to_string(),
    }
}

fn outside(text: &mut String, trees: &Trees) {
    if trees.outside_total == 0 {
        return;
    }
    let _ = writeln!(text, "{}", "Changed, and under no live claim:".bold());
    for outside in &trees.outside {
        let (path, root) = (escape_line(&outside.path), escape_line(&outside.worktree));
        let _ = writeln!(text, "  {} {path} in {root}", outside.kind.as_str());
    }
    more(text, trees.outside_total, trees.outside.len());
}

fn inside(text: &mut String, outcome: &Outcome, page: &Page<'_>) {
    if outcome.inside_total == 0 {
        return;
    }
    let whose =
        if outcome.agent.is_some() { "Changed under claims of others:" } else { "Changed under several claims:" };
    let _ = writeln!(text, "{}", whose.bold());
    for found in &outcome.inside {
        let ConflictShape { id, pattern, holder, expires_at, example, worktree, silent, .. } = found;
        let root = worktree.as_deref().map(|root| format!(" in {}", escape_line(root))).unwrap_or_default();
        let silent = if *silent { ", and was not seen for ten minutes" } else { "" };
        let ends = relative(*expires_at, page.now);
        let (path, pattern) = (escape_line(example), escape_line(pattern));
        let _ = writeln!(text, "  {path}{root}: {} holds {pattern} (#{id}, ends {ends}){silent}", holder.bold());
    }
    more(text, outcome.inside_total, outcome.inside.len());
}

fn would_conflict(text: &mut String, conflict: &WouldConflict) {
    let WouldConflict { one, other, paths, paths_total } = conflict;
    let _ = writeln!(text, "{} {} and {}, if merged now:", "conflict".yellow(), named(one), named(other));
    for path in paths {
        let _ = writeln!(text, "  {}", escape_line(path));
    }
    more(text, *paths_total, paths.len());
}

fn more(text: &mut String, total: usize, shown: usize) {
    if total > shown {
        let _ = writeln!(text, "  … and {} more", total - shown);
    }
}

/// The line of `status`; nothing where there is nothing to say.
pub fn counted(work: &Counted) -> Option<String> {
    let mut said = Vec::new();
    if work.outside > 0 {
        said.push(format!("{} under no live claim", count(work.outside, "change")));
    }
    if work.inside > 0 {
        said.push(format!("{} under claims of others", count(work.inside, "change")));
    }
    if work.unseen > 0 {
        said.push(format!("{} not looked at in time", count(work.unseen, "work tree")));
    }
    (!said.is_empty()).then(|| format!("{}: `relay check`.", said.join(", ")))
}
