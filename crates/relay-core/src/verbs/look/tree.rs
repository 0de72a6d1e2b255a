//! The live claims, drawn on the tree of files that they are about. A pure function of the claims, so that every front draws the
//! same tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::pattern::RESOURCE;
use crate::wire::v1::ClaimShape;

/// A folder on the way to a claim. Folders that only lead to one other are drawn as one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    /// From the folder above; empty for the project itself.
    pub name: String,
    /// From the project's root.
    pub path: String,
    /// How many claims there are here and below, drawn or not.
    pub claims: usize,
    /// How many of them are contested.
    pub contested: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<Leaf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<Branch>,
    /// How many claims of this folder are not drawn, for want of room; those of drawn folders are counted there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// A claim where it hangs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The pattern from the folder on.
    pub name: String,
    pub contested: bool,
    /// Its holder was not seen for a while.
    pub silent: bool,
    #[serde(flatten)]
    pub claim: ClaimShape,
}

/// A claim as the tree needs it.
pub struct Drawn<'a> {
    pub claim: &'a ClaimShape,
    pub contested: bool,
    pub silent: bool,
}

/// Draws no more than about so many claims and folders; what is contested comes first.
pub fn draw(claims: &[Drawn<'_>], room: usize) -> Branch {
    let mut root = Growing::default();
    for drawn in claims {
        root.add(drawn);
    }
    let mut tree = root.grown(String::new(), String::new());
    tree.prune(room);
    tree
}

/// The folders of a pattern up to its first wildcard, and the rest. A pattern without one names what lies in its last folder.
fn parts(pattern: &str) -> (Vec<&str>, String) {
    if let Some(resource) = pattern.strip_prefix(RESOURCE) {
        return (vec![RESOURCE], resource.to_owned());
    }
    let segments: Vec<&str> = pattern.trim_end_matches('/').split('/').collect();
    let wild = segments.iter().position(|segment| is_wild(segment)).unwrap_or(segments.len());
    let folders = wild.min(segments.len() - 1);
    (segments[..folders].to_vec(), segments[folders..].join("/"))
}

fn is_wild(segment: &str) -> bool {
    let mut characters = segment.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '*' | '?' | '[' | '{' => return true,
            _ => {}
        }
    }
    false
}

#[derive(Default)]
struct Growing<'a> {
    leaves: Vec<Leaf>,
    branches: BTreeMap<&'a str, Growing<'a>>,
}

impl<'a> Growing<'a> {
    fn add(&mut self, drawn: &Drawn<'a>) {
        let (folders, name) = parts(&drawn.claim.pattern);
        let mut here = self;
        for folder in folders {
            here = here.branches.entry(folder).or_default();
        }
        let (contested, silent) = (drawn.contested, drawn.silent);
        here.leaves.push(Leaf { name, contested, silent, claim: drawn.claim.clone() });
    }

    fn grown(mut self, name: String, path: String) -> Branch {
        // The project itself is always drawn, whatever it leads to.
        if !path.is_empty()
            && self.leaves.is_empty()
            && self.branches.len() == 1
            && let Some((next, only)) = self.branches.pop_first()
        {
            let longer = join(&name, next);
            return only.grown(longer, join(&path, next));
        }
        let grow = |(name, branch): (&str, Growing<'_>)| branch.grown(name.to_owned(), join(&path, name));
        let branches: Vec<Branch> = self.branches.into_iter().map(grow).collect();
        self.leaves.sort_by(|one, other| (&one.name, one.claim.id).cmp(&(&other.name, other.claim.id)));
        let contested = self.leaves.iter().filter(|leaf| leaf.contested).count();
        Branch {
            claims: self.leaves.len() + branches.iter().map(|branch| branch.claims).sum::<usize>(),
            contested: contested + branches.iter().map(|branch| branch.contested).sum::<usize>(),
            name,
            path,
            leaves: self.leaves,
            branches,
            hidden: 0,
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

impl Branch {
    /// Half of the room is for what hangs here, and the rest is shared among the folders below.
    fn prune(&mut self, room: usize) {
        if self.claims <= room {
            return;
        }
        let mut left = room;
        self.leaves.sort_by_key(|leaf| !leaf.contested);
        let kept = if self.branches.is_empty() { room } else { room.div_ceil(2) }.min(self.leaves.len());
        self.hidden += self.leaves.len() - kept;
        self.leaves.truncate(kept);
        self.leaves.sort_by(|one, other| (&one.name, one.claim.id).cmp(&(&other.name, other.claim.id)));
        left -= kept;
        self.branches.sort_by_key(|branch| std::cmp::Reverse((branch.contested, branch.claims)));
        let dropped = self.branches.split_off(left.min(self.branches.len()));
        self.hidden += dropped.iter().map(|branch| branch.claims).sum::<usize>();
        let mut waiting = self.branches.len();
        for branch in &mut self.branches {
            // A folder takes a line of its own.
            let share = (left / waiting).saturating_sub(1);
            branch.prune(share);
            left -= branch.drawn().min(left);
            waiting -= 1;
        }
        self.branches.sort_by(|one, other| one.name.cmp(&other.name));
    }

    /// How many lines it takes.
    fn drawn(&self) -> usize {
        1 + self.leaves.len() + self.branches.iter().map(Branch::drawn).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;

    fn claim(id: u64, pattern: &str) -> ClaimShape {
        ClaimShape {
            id,
            pattern: pattern.to_owned(),
            holder: "Blue".to_owned(),
            exclusive: true,
            expires_at: Timestamp::from_millis(60_000),
            reason: None,
            generation: 0,
        }
    }

    /// Patterns that begin with `!` are contested.
    fn drawn(patterns: &[&str], room: usize) -> Branch {
        let claims: Vec<(ClaimShape, bool)> = (1..)
            .zip(patterns)
            .map(|(id, pattern)| (claim(id, pattern.trim_start_matches('!')), pattern.starts_with('!')))
            .collect();
        let all: Vec<Drawn<'_>> =
            claims.iter().map(|(claim, contested)| Drawn { claim, contested: *contested, silent: false }).collect();
        draw(&all, room)
    }

    fn lines(branch: &Branch, depth: usize, into: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        for leaf in &branch.leaves {
            into.push(format!("{indent}{}{}", if leaf.contested { "!" } else { "" }, leaf.name));
        }
        for below in &branch.branches {
            into.push(format!("{indent}{}/ {}", below.name, below.claims));
            lines(below, depth + 1, into);
        }
        if branch.hidden > 0 {
            into.push(format!("{indent}+{}", branch.hidden));
        }
    }

    fn check(patterns: &[&str], room: usize, expected: &[&str]) {
        let mut seen = Vec::new();
        lines(&drawn(patterns, room), 0, &mut seen);
        assert_eq!(seen, expected, "{patterns:?}");
    }

    #[test]
    fn claims_hang_in_the_folder_that_they_are_about() {
        check(&[], 10, &[]);
        check(&["README.md"], 10, &["README.md"]);
        check(&["**"], 10, &["**"]);
        check(&["src/auth/**", "src/auth.rs"], 10, &["src/ 2", "  auth.rs", "  auth/ 1", "    **"]);
        check(&["src/*/mod.rs"], 10, &["src/ 1", "  */mod.rs"]);
        check(&[r"docs/\[old\]/a.md"], 10, &[r"docs/\[old\]/ 1", "  a.md"]);
        check(&["res:port-8080", "res:db"], 10, &["res:/ 2", "  db", "  port-8080"]);
    }

    #[test]
    fn folders_that_only_lead_on_are_drawn_as_one() {
        check(&["a/b/c/d.rs", "a/b/c/e.rs"], 10, &["a/b/c/ 2", "  d.rs", "  e.rs"]);
        check(&["a/b/c/d.rs", "a/b/e.rs"], 10, &["a/b/ 2", "  e.rs", "  c/ 1", "    d.rs"]);
    }

    #[test]
    fn what_is_contested_is_drawn_where_there_is_room_for_little() {
        let many: Vec<String> = (0..100).map(|n| format!("src/file{n:02}.rs")).collect();
        let mut patterns: Vec<&str> = many.iter().map(String::as_str).collect();
        patterns.push("!src/zebra.rs");
        check(&patterns, 5, &["src/ 101", "  file00.rs", "  file01.rs", "  file02.rs", "  !zebra.rs", "  +97"]);
    }

    #[test]
    fn however_many_claims_there_are_the_tree_stays_small_and_counts_them_all() {
        let many: Vec<String> = (0..5_000).map(|n| format!("src/part{}/deep/file{n}.rs", n % 700)).collect();
        let patterns: Vec<&str> = many.iter().map(String::as_str).collect();
        let tree = drawn(&patterns, 100);
        assert_eq!(tree.claims, 5_000);
        assert!(tree.drawn() <= 110, "{}", tree.drawn());
        let mut counted = 0;
        let mut open = vec![&tree];
        while let Some(branch) = open.pop() {
            counted += branch.leaves.len() + branch.hidden;
            open.extend(&branch.branches);
        }
        assert_eq!(counted, 5_000);
    }
}
