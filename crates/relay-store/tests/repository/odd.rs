//! Repositories that are not as one thinks of them, and what is never done to any.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use relay_core::domain::time::{Span, Timestamp};
use relay_core::domain::worktree::{ChangeKind, Head, Underway, Unseen, WorkTree};
use relay_core::store::Repository;
use relay_store::repository::{Files, User};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::trees::{PATIENT, Told, Trees, agrees, changes, git, key, told_by_git, write};

/// A repository with a commit of some files.
fn trees() -> Trees {
    let trees = Trees::new();
    for path in ["a", "b", "dir/c", "dir/d", "other/e"] {
        trees.write(path, &format!("{path}\n"));
    }
    trees.git(&["add", "-A"]);
    trees.commit("first");
    trees
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn fifo(path: &Path) {
    let _ = std::fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn linked(trees: &Trees, name: &str) -> PathBuf {
    let folder = trees.beside(name);
    trees.git(&["worktree", "add", "-q", "-b", name, folder.to_str().unwrap()]);
    folder
}

/// Every file below a folder with its content and times.
fn everything(folder: &Path) -> BTreeMap<PathBuf, (i64, i64, Vec<u8>)> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let metadata = entry.symlink_metadata().unwrap();
        if metadata.is_dir() {
            all.extend(everything(&entry));
        }
        let content = if metadata.is_file() { std::fs::read(&entry).unwrap() } else { Vec::new() };
        all.insert(entry, (metadata.mtime(), metadata.mtime_nsec(), content));
    }
    all
}

#[test]
fn looking_writes_nothing() {
    let trees = trees();
    let other = linked(&trees, "side");
    // A file whose times git has not noted, one that is changed, and one that conflicts.
    trees.write("b", "b\n");
    trees.write("a", "ours\n");
    write(&other, "a", "theirs\n");
    write(&other, "new", "new\n");
    let before = everything(trees.root.parent().unwrap());
    let files = trees.files();
    let (one, two) = (text(&trees.root), text(&other));
    for root in [&one, &two] {
        assert!(files.head(root).is_some());
        assert!(!files.changes(root, PATIENT).unwrap().is_empty());
        assert_eq!(files.staged(root, None, PATIENT), Ok(Vec::new()));
        assert_eq!(files.committed(root, Timestamp::from_millis(0), PATIENT).unwrap().len(), 5);
    }
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(vec!["a".to_owned()]));
    let head = files.head(&one).unwrap().commit.unwrap();
    assert_eq!(files.between(None, &head, PATIENT).unwrap().len(), 5);
    assert_eq!(everything(trees.root.parent().unwrap()), before);
}

#[test]
fn a_head_tells_branch_commit_and_what_is_underway() {
    let trees = Trees::new();
    let root = text(&trees.root);
    let files = trees.files();
    let on = |branch: &str, commit: Option<&str>| Head {
        commit: commit.map(str::to_owned),
        branch: Some(branch.to_owned()),
        underway: None,
    };
    assert_eq!(files.head(&root), Some(on("main", None)));
    let first = trees.commit("first");
    assert_eq!(files.head(&root), Some(on("main", Some(&first))));
    trees.git(&["pack-refs", "--all"]);
    assert_eq!(files.head(&root), Some(on("main", Some(&first))));
    trees.git(&["checkout", "-q", "-b", "feature/x-main"]);
    trees.git(&["pack-refs", "--all"]);
    let second = trees.commit("second");
    assert_eq!(files.head(&root), Some(on("feature/x-main", Some(&second))));
    trees.git(&["checkout", "-q", &first]);
    assert_eq!(files.head(&root), Some(Head { commit: Some(first.clone()), branch: None, underway: None }));
    trees.write("a", "one\n");
    trees.git(&["add", "a"]);
    trees.commit("one");
    trees.git(&["branch", "one"]);
    trees.git(&["checkout", "-q", "main"]);
    trees.write("a", "two\n");
    trees.git(&["add", "a"]);
    let two = trees.commit("two");
    let fails = |args: &[&str]| assert!(!crate::trees::command(&trees.root, args).output().unwrap().status.success());
    fails(&["merge", "one"]);
    assert_eq!(files.head(&root), Some(Head { underway: Some(Underway::Merge), ..on("main", Some(&two)) }));
    trees.agrees();
    trees.git(&["merge", "--abort"]);
    fails(&["rebase", "one"]);
    assert_eq!(files.head(&root).unwrap().underway, Some(Underway::Rebase));
    assert_eq!(files.head("/nonexistent"), None);
}

#[test]
fn the_main_work_tree_comes_first_and_each_has_a_head_of_its_own() {
    let trees = trees();
    let side = linked(&trees, "side");
    let commit = trees.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let head =
        |branch: &str| Some(Head { commit: Some(commit.clone()), branch: Some(branch.to_owned()), underway: None });
    let expected = [
        WorkTree { root: text(&trees.root), name: None, head: head("main") },
        WorkTree { root: text(&side), name: Some("side".to_owned()), head: head("side") },
    ];
    assert_eq!(trees.files().work_trees(), expected);
    // The same seen from the other one.
    assert_eq!(Files::new(&key(&side)).work_trees(), expected);
    let bare = trees.beside("bare.git");
    trees.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let files = Files::new(&key(&bare));
    assert_eq!(files.work_trees(), []);
    let tree = trees.beside("of-bare");
    git(&bare, &["worktree", "add", "-q", tree.to_str().unwrap(), "main"]);
    assert_eq!(
        files.work_trees(),
        [WorkTree { root: text(&tree), name: Some("of-bare".to_owned()), head: head("main") }]
    );
    agrees(&tree);
    assert_eq!(Files::new(&key(trees.root.parent().unwrap())).work_trees(), []);
}

#[test]
fn a_folder_inside_a_repository_tells_its_own_paths() {
    let trees = trees();
    trees.write("a", "changed\n");
    trees.write("dir/c", "changed\n");
    trees.write("dir/new", "new\n");
    trees.write("dirt", "new\n");
    trees.git(&["add", "a", "dir/c"]);
    let folder = trees.root.join("dir");
    let (files, root) = (Files::new(&key(&folder)), text(&folder));
    let head = files.head(&root);
    assert_eq!(files.work_trees(), [WorkTree { root: root.clone(), name: None, head }]);
    let told = changes(&files, &root);
    let expected = [("c", (ChangeKind::Modified, true)), ("new", (ChangeKind::Untracked, false))];
    assert_eq!(told, expected.map(|(path, how)| (path.to_owned(), how)).into_iter().collect::<Told>());
    assert_eq!(files.staged(&root, None, PATIENT), Ok(vec!["c".to_owned()]));
    let new = trees.commit("second");
    assert_eq!(files.between(None, &new, PATIENT), Ok(vec!["c".to_owned(), "d".to_owned()]));
}

#[test]
fn what_is_staged_is_told_of_the_index_that_is_named() {
    let trees = trees();
    trees.write("a", "changed\n");
    let other = trees.beside("index");
    std::fs::copy(trees.root.join(".git/index"), &other).unwrap();
    let root = text(&trees.root);
    trees.git(&["add", "a"]);
    assert_eq!(trees.files().staged(&root, None, PATIENT), Ok(vec!["a".to_owned()]));
    assert_eq!(trees.files().staged(&root, Some(&other), PATIENT), Ok(Vec::new()));
}

#[test]
fn sparse_and_split_indexes_are_read() {
    for flags in [&["--cone"][..], &["--cone", "--sparse-index"], &["--no-cone"]] {
        let trees = trees();
        trees.git(&[&["sparse-checkout", "set"], flags, &["dir"]].concat());
        trees.agrees();
        trees.write("dir/c", "changed\n");
        trees.write("new", "new\n");
        trees.agrees();
    }
    let trees = trees();
    trees.git(&["update-index", "--split-index"]);
    trees.write("a", "changed\n");
    trees.git(&["add", "a"]);
    trees.write("b", "changed\n");
    trees.agrees();
}

#[test]
fn a_submodule_is_one_path() {
    let (trees, inner) = (trees(), Trees::new());
    inner.write("x", "x\n");
    inner.git(&["add", "-A"]);
    inner.commit("inner");
    trees.git(&["submodule", "add", "-q", inner.root.to_str().unwrap(), "sub"]);
    trees.agrees();
    trees.commit("with it");
    trees.agrees();
    // What is changed in it is its own affair; another commit in it is a change here.
    trees.write("sub/x", "changed\n");
    trees.write("sub/y", "new\n");
    let root = text(&trees.root);
    assert_eq!(changes(&trees.files(), &root), Told::new());
    git(&trees.root.join("sub"), &["commit", "-q", "-a", "-m", "another"]);
    let expected = [("sub".to_owned(), (ChangeKind::Modified, false))];
    assert_eq!(changes(&trees.files(), &root), expected.into_iter().collect::<Told>());
}

#[test]
fn a_repository_inside_is_one_path_and_a_work_tree_inside_is_none() {
    let trees = trees();
    trees.git(&["worktree", "add", "-q", "-b", "side", "trees/side"]);
    trees.git(&["clone", "-q", ".", "clone"]);
    trees.write("clone/new", "new\n");
    trees.write("trees/side/new", "new\n");
    let root = text(&trees.root);
    let mut told = told_by_git(&trees.root);
    assert!(told.remove("trees/side").is_some());
    assert_eq!(changes(&trees.files(), &root), told);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["clone"]);
}

#[test]
fn names_that_are_no_text_are_left_out() {
    let trees = trees();
    std::fs::write(trees.root.join(OsStr::from_bytes(b"no\xfftext")), "new\n").unwrap();
    trees.write("text", "new\n");
    let told = changes(&trees.files(), &text(&trees.root));
    assert_eq!(told.keys().collect::<Vec<_>>(), ["text"]);
}

#[test]
fn case_and_line_endings_are_as_the_repository_says() {
    let trees = trees();
    trees.git(&["config", "core.ignorecase", "true"]);
    trees.write("A", "other\n");
    trees.write("b", "changed\n");
    trees.agrees();
    let trees = Trees::new();
    trees.git(&["config", "core.autocrlf", "true"]);
    trees.git(&["config", "core.safecrlf", "true"]);
    trees.write("a", "one\r\ntwo\r\n");
    trees.git(&["add", "-A"]);
    trees.commit("first");
    // The same content, with times that git has not noted.
    trees.write("a", "one\r\ntwo\r\n");
    trees.write("mixed", "one\r\ntwo\n");
    trees.agrees();
    trees.write("a", "ONE\r\ntwo\r\n");
    trees.agrees();
}

#[test]
fn a_filter_is_not_run_and_what_it_stored_is_unchanged_until_it_is_touched() {
    let trees = Trees::new();
    trees.git(&["config", "filter.big.clean", "sed s/^/pointer-/"]);
    trees.git(&["config", "filter.big.smudge", "sed s/^pointer-//"]);
    trees.git(&["config", "filter.big.required", "true"]);
    trees.write(".gitattributes", "*.bin filter=big\n");
    trees.write("x.bin", "content\n");
    trees.git(&["add", "-A"]);
    trees.commit("first");
    trees.write("y", "new\n");
    trees.git(&["add", "y"]);
    let fired = trees.beside("fired");
    let program = trees.beside("canary");
    std::fs::write(&program, format!("#!/bin/sh\n: > '{}'\ncat\n", fired.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for key in ["clean", "smudge", "process"] {
        trees.git(&["config", &format!("filter.big.{key}"), program.to_str().unwrap()]);
    }
    let root = text(&trees.root);
    assert_eq!(changes(&trees.files(), &root).keys().collect::<Vec<_>>(), ["y"]);
    trees.write("x.bin", "CONTENT\n");
    assert_eq!(changes(&trees.files(), &root).keys().collect::<Vec<_>>(), ["x.bin", "y"]);
    assert!(!fired.exists());
}

#[test]
fn what_a_user_ignores_everywhere_is_not_told() {
    let trees = trees();
    let (home, config) = (trees.beside("home"), trees.beside("home/.config"));
    write(&config, "git/ignore", "*.local\n");
    trees.write("mine.local", "x\n");
    trees.write("mine.other", "x\n");
    let told = || {
        let files = trees.files().of_user(User { home: home.clone(), config: config.clone() });
        changes(&files, &text(&trees.root)).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(told(), ["mine.other"]);
    assert_eq!(changes(&trees.files(), &text(&trees.root)).len(), 2);
    write(&home, ".gitconfig", "[core]\n\texcludesFile = ~/ignored\n");
    write(&home, "ignored", "*.other\n");
    assert_eq!(told(), ["mine.local"]);
    // The repository's own word is the last one, where it is a path that means the same to everybody.
    trees.git(&["config", "core.excludesFile", "~/elsewhere"]);
    assert_eq!(told(), ["mine.local"]);
    write(&home, "own", "mine.*\n");
    trees.git(&["config", "core.excludesFile", home.join("own").to_str().unwrap()]);
    assert_eq!(told(), [""; 0]);
}

#[test]
fn what_never_answers_is_not_waited_for() {
    let trees = trees();
    let root = text(&trees.root);
    fifo(&trees.root.join("a"));
    fifo(&trees.root.join("new"));
    let told = changes(&trees.files(), &root);
    assert_eq!(told.keys().collect::<Vec<_>>(), ["a"]);
    fifo(&trees.root.join(".gitignore"));
    assert_eq!(trees.files().changes(&root, Span::millis(300)), Err(Unseen::Slow));
    std::fs::remove_file(trees.root.join(".gitignore")).unwrap();
    fifo(&trees.root.join(".git/index"));
    assert!(matches!(trees.files().changes(&root, PATIENT), Err(Unseen::Unreadable(_))));
    assert!(matches!(trees.files().staged(&root, None, PATIENT), Err(Unseen::Unreadable(_))));
    assert!(trees.files().head(&root).is_some());
}

#[test]
fn no_patience_sees_nothing() {
    let trees = trees();
    let root = text(&trees.root);
    let none = Span::millis(0);
    assert_eq!(trees.files().changes(&root, none), Err(Unseen::Slow));
    assert_eq!(trees.files().staged(&root, None, none), Err(Unseen::Slow));
}

#[test]
fn what_is_no_repository_or_of_another_kind_is_not_known() {
    let nowhere = tempfile::tempdir().unwrap();
    let root = std::fs::canonicalize(nowhere.path()).unwrap();
    let files = Files::new(&key(&root));
    assert_eq!(files.changes(&text(&root), PATIENT), Err(Unseen::Nowhere));
    assert_eq!(files.head(&text(&root)), None);
    let trees = Trees::init(&["--object-format=sha256"]);
    trees.write("a", "a\n");
    trees.git(&["add", "-A"]);
    let commit = trees.commit("first");
    let root = text(&trees.root);
    assert_eq!(trees.files().head(&root).unwrap().commit, Some(commit.clone()));
    assert!(matches!(trees.files().changes(&root, PATIENT), Err(Unseen::Unreadable(_))));
    assert!(matches!(trees.files().between(None, &commit, PATIENT), Err(Unseen::Unreadable(_))));
    let trees = self::trees();
    std::fs::write(trees.root.join(".git/index"), "no index\n").unwrap();
    assert!(matches!(trees.files().changes(&text(&trees.root), PATIENT), Err(Unseen::Unreadable(_))));
    assert!(matches!(trees.files().between(Some("HEAD"), "x", PATIENT), Err(Unseen::Unreadable(_))));
}

#[test]
fn untracked_files_conflict_where_both_have_them_and_unrelated_histories_do_not() {
    let trees = trees();
    let side = linked(&trees, "side");
    let (one, two) = (text(&trees.root), text(&side));
    let files = trees.files();
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(Vec::new()));
    trees.write("new", "ours\n");
    trees.write("ours", "ours\n");
    write(&side, "new", "theirs\n");
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(vec!["new".to_owned()]));
    write(&side, "new", "ours\n");
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(Vec::new()));
    trees.write("a", "ours\n");
    std::fs::remove_file(side.join("a")).unwrap();
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(vec!["a".to_owned()]));
    git(&side, &["checkout", "-q", "--orphan", "pages"]);
    git(&side, &["commit", "-q", "-m", "pages"]);
    assert_eq!(files.conflicts(&one, &two, PATIENT), Ok(Vec::new()));
}

#[test]
fn what_was_committed_since_is_told_with_its_newest_time() {
    let trees = trees();
    let at = |path: &str, seconds: i64| {
        trees.write(path, &format!("{seconds}\n"));
        trees.git(&["add", "-A"]);
        let when = format!("{seconds} +0000");
        let mut command = crate::trees::command(&trees.root, &["commit", "-q", "-m", path]);
        let done = command.env("GIT_COMMITTER_DATE", &when).env("GIT_AUTHOR_DATE", &when).status().unwrap();
        assert!(done.success());
    };
    let now = 4_000_000_000;
    at("a", now);
    at("b", now + 10);
    at("a", now + 20);
    let told = |since: i64| {
        let told = trees.files().committed(&text(&trees.root), Timestamp::from_millis(since), PATIENT).unwrap();
        told.into_iter().map(|(path, at)| (path, at.millis() / 1_000 - now)).collect::<Vec<_>>()
    };
    let row = |path: &str, at: i64| (path.to_owned(), at);
    assert_eq!(told(now * 1_000), [row("a", 20), row("b", 10)]);
    assert_eq!(told(now * 1_000 + 10_999), [row("a", 20), row("b", 10)]);
    assert_eq!(told(now * 1_000 + 11_000), [row("a", 20)]);
    assert_eq!(told(now * 1_000 + 21_000), []);
}
