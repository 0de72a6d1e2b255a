//! Generated repositories: whatever was done in them, git and relay tell the same.

use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use relay_core::store::Repository;

use crate::trees::{PATIENT, Trees, command, git, sorted};

/// What somebody does in a work tree.
#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Delete(usize),
    Rename(usize, usize),
    Link(usize),
    Executable(usize),
    Ignore(usize),
    Attribute(usize),
    Add(usize),
    AddAll,
    IntendToAdd(usize),
    Forget(usize),
    Commit,
    Branch,
    Merge,
    /// Two branches bring different texts to the same path.
    Clash(usize),
}

const PATHS: [&str; 9] =
    ["a", "b", "dir/a", "dir/b", "dir/sub/c", "other/d.log", "with space", "ünïcode", "dir/sub/.hidden"];

const TEXTS: [&str; 7] =
    ["", "one\n", "two\n", "one\ntwo\nthree\n", "one\r\ntwo\r\n", "one\ntwo\n", "long\nlong\nlong\nlong\n"];

fn step() -> impl Strategy<Value = Step> {
    let path = 0..PATHS.len();
    prop_oneof![
        8 => (path.clone(), 0..TEXTS.len()).prop_map(|(path, text)| Step::Write(path, text)),
        2 => path.clone().prop_map(Step::Delete),
        2 => (path.clone(), path.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => path.clone().prop_map(Step::Link),
        1 => path.clone().prop_map(Step::Executable),
        1 => (0..4usize).prop_map(Step::Ignore),
        1 => (0..4usize).prop_map(Step::Attribute),
        4 => path.clone().prop_map(Step::Add),
        2 => Just(Step::AddAll),
        1 => path.clone().prop_map(Step::IntendToAdd),
        1 => path.clone().prop_map(Step::Forget),
        2 => path.prop_map(Step::Clash),
        3 => Just(Step::Commit),
        2 => Just(Step::Branch),
        2 => Just(Step::Merge),
    ]
}

impl Step {
    /// Some steps cannot be done in every state; git's refusal is no fault.
    fn take(&self, trees: &Trees) {
        let at = |index: &usize| trees.root.join(PATHS[*index]);
        let may_fail = |args: &[&str]| {
            command(&trees.root, args).output().unwrap();
        };
        match self {
            Step::Write(path, text) => {
                let _ = std::fs::remove_file(at(path));
                trees.write(PATHS[*path], TEXTS[*text]);
            }
            Step::Delete(path) => {
                let _ = std::fs::remove_file(at(path));
            }
            Step::Rename(from, to) => {
                std::fs::create_dir_all(at(to).parent().unwrap()).unwrap();
                let _ = std::fs::rename(at(from), at(to));
            }
            Step::Link(path) => {
                let _ = std::fs::remove_file(at(path));
                std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
                symlink("somewhere/else", at(path)).unwrap();
            }
            Step::Executable(path) => {
                if at(path).symlink_metadata().is_ok_and(|file| file.is_file()) {
                    std::fs::set_permissions(at(path), std::fs::Permissions::from_mode(0o755)).unwrap();
                }
            }
            Step::Ignore(which) => {
                trees.write(".gitignore", ["*.log\n", "dir/\n", "/dir/sub\n!/dir/sub/c\n", ""][*which]);
            }
            Step::Attribute(which) => {
                trees.write(
                    ".gitattributes",
                    ["* text=auto\n", "* text eol=crlf\n", "*.log binary\na -text\n", ""][*which],
                );
            }
            Step::Add(path) => may_fail(&["add", "-f", "--", PATHS[*path]]),
            Step::AddAll => may_fail(&["add", "-A"]),
            Step::IntendToAdd(path) => may_fail(&["add", "-f", "-N", "--", PATHS[*path]]),
            Step::Forget(path) => may_fail(&["rm", "-q", "--cached", "-f", "--", PATHS[*path]]),
            Step::Commit => may_fail(&["commit", "-q", "-m", "step"]),
            // Another branch goes on from here, and this one from where it was before.
            Step::Branch => {
                may_fail(&["branch", "-f", "side"]);
                may_fail(&["reset", "-q", "--hard", "HEAD~1"]);
            }
            Step::Merge => may_fail(&["merge", "-q", "-m", "merge", "side"]),
            Step::Clash(path) => {
                Step::AddAll.take(trees);
                may_fail(&["commit", "-q", "--allow-empty", "-m", "before"]);
                let brings = |text| [Step::Write(*path, text), Step::Add(*path), Step::Commit];
                brings(1).iter().chain([&Step::Branch]).chain(&brings(2)).for_each(|step| step.take(trees));
                Step::Merge.take(trees);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_not_committed_and_what_is_staged_are_what_git_tells(steps in prop::collection::vec(step(), 1..24)) {
        let trees = Trees::new();
        for (taken, step) in steps.iter().enumerate() {
            step.take(&trees);
            if taken % 6 == 5 {
                trees.agrees();
            }
        }
        trees.agrees();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_differs_between_commits_is_what_git_tells(
        rounds in prop::collection::vec((prop::collection::vec(step(), 1..5), 0..8usize), 2..6),
        pushed in 0..4usize,
    ) {
        let trees = Trees::new();
        let mut commits = vec![trees.commit("first")];
        for (steps, from) in &rounds {
            trees.git(&["checkout", "-q", "-f", &commits[from % commits.len()]]);
            steps.iter().for_each(|step| step.take(&trees));
            trees.git(&["add", "-A"]);
            commits.push(trees.commit("round"));
            if from % 3 == 0 {
                let other = &commits[commits.len() / 2];
                if command(&trees.root, &["merge", "-q", "-m", "both", other]).output().unwrap().status.success() {
                    commits.push(trees.git(&["rev-parse", "HEAD"]).trim().to_owned());
                } else {
                    let _ = command(&trees.root, &["merge", "--abort"]).output().unwrap();
                }
            }
        }
        let files = trees.files();
        for old in &commits {
            for new in &commits {
                let told = trees.git(&["diff", "--name-only", "--no-renames", "-z", old, new]);
                prop_assert_eq!(files.between(Some(old), new, PATIENT).unwrap(), sorted(&told));
            }
        }
        if let Some(tip) = commits.get(pushed) {
            trees.git(&["update-ref", "refs/remotes/origin/main", tip]);
        }
        for new in &commits {
            let log = ["log", "--format=", "--name-only", "--no-renames", "--diff-merges=combined", "-z", new, "--not", "--remotes"];
            let told = sorted(&git(&trees.root, &log));
            prop_assert_eq!(&files.between(None, new, PATIENT).unwrap(), &told);
            prop_assert_eq!(&files.between(Some(&"1".repeat(40)), new, PATIENT).unwrap(), &told);
        }
    }
}
