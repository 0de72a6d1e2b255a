//! What would conflict between two work trees, against `git merge-tree` on commits of the same states.

use proptest::prelude::*;
use relay_core::store::Repository;

use crate::trees::{PATIENT, Trees, command, git, sorted, write};

const PATHS: [&str; 6] = ["a", "b", "dir/c", "dir/d", "e", "dir/sub/f"];

fn text(lines: &[usize]) -> String {
    lines.iter().map(|line| format!("line {line}\n")).collect()
}

/// What is done in a work tree before it is merged.
#[derive(Debug, Clone)]
enum Edit {
    Replace(usize, usize, usize),
    Rewrite(usize, Vec<usize>),
    Delete(usize),
    Commit,
    Stage,
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = 0..PATHS.len();
    prop_oneof![
        6 => (path.clone(), 0..12usize, 100..104usize).prop_map(|(path, line, with)| Edit::Replace(path, line, with)),
        2 => (path.clone(), prop::collection::vec(200..203usize, 1..3)).prop_map(|(path, lines)| Edit::Rewrite(path, lines)),
        1 => path.prop_map(Edit::Delete),
        // The path that nobody has yet.
        2 => (200..203usize).prop_map(|line| Edit::Rewrite(PATHS.len() - 1, vec![line])),
        1 => Just(Edit::Commit),
        1 => Just(Edit::Stage),
    ]
}

impl Edit {
    fn make(&self, root: &std::path::Path) {
        match self {
            Edit::Replace(path, line, with) => {
                let Ok(old) = std::fs::read_to_string(root.join(PATHS[*path])) else { return };
                let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
                if let Some(line) = lines.get_mut(*line) {
                    *line = format!("line {with}");
                }
                write(root, PATHS[*path], &(lines.join("\n") + "\n"));
            }
            Edit::Rewrite(path, lines) => write(root, PATHS[*path], &text(lines)),
            Edit::Delete(path) => {
                let _ = std::fs::remove_file(root.join(PATHS[*path]));
            }
            Edit::Commit => {
                git(root, &["add", "-A"]);
                let _ = command(root, &["commit", "-q", "-m", "edit"]).output().unwrap();
            }
            Edit::Stage => {
                git(root, &["add", "-A"]);
            }
        }
    }
}

/// The paths in conflict, as git tells them of two commits.
fn told_by_git(trees: &Trees, one: &str, other: &str) -> Vec<String> {
    let args = ["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", one, other];
    let output = command(&trees.root, &args).output().unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let (_tree, paths) = listed.split_once('\0').unwrap();
    sorted(paths)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_would_conflict_is_what_git_tells(
        ours in prop::collection::vec(edit(), 0..6),
        theirs in prop::collection::vec(edit(), 0..6),
    ) {
        let trees = Trees::new();
        for (index, path) in PATHS.iter().take(5).enumerate() {
            // Files that have nothing in common: none of them is taken for another one that was moved.
            trees.write(path, &text(&(0..12).map(|line| index * 1_000 + 300 + line).collect::<Vec<_>>()));
        }
        trees.git(&["add", "-A"]);
        trees.commit("base");
        let other = trees.beside("other");
        trees.git(&["worktree", "add", "-q", "-b", "side", other.to_str().unwrap()]);
        ours.iter().for_each(|edit| edit.make(&trees.root));
        theirs.iter().for_each(|edit| edit.make(&other));
        let (one, two) = (trees.root.to_str().unwrap(), other.to_str().unwrap());
        let files = trees.files();
        let told = files.conflicts(one, two, PATIENT).unwrap();
        prop_assert_eq!(&files.conflicts(two, one, PATIENT).unwrap(), &told);
        for root in [&trees.root, &other] {
            git(root, &["add", "-A"]);
            git(root, &["commit", "-q", "--allow-empty", "-m", "everything"]);
        }
        prop_assert_eq!(told, told_by_git(&trees, "main", "side"));
    }
}
