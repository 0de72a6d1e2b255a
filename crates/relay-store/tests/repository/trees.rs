//! A repository with real git, and what git says about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::domain::worktree::ChangeKind;
use relay_core::store::Repository;
use relay_store::repository::{Files, resolve};
use tempfile::TempDir;

/// Longer than any of these looks takes on a busy machine.
pub const PATIENT: Span = Span::seconds(60);

pub struct Trees {
    _folder: TempDir,
    pub root: PathBuf,
}

/// What is told of a path: how it changed, and whether that is staged.
pub type Told = BTreeMap<String, (ChangeKind, bool)>;

impl Trees {
    pub fn new() -> Self {
        Self::init(&[])
    }

    pub fn init(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(folder.path()).unwrap().join("repo");
        std::fs::create_dir(&root).unwrap();
        let trees = Trees { _folder: folder, root };
        trees.git(&[&["init", "-q", "-b", "main"], flags].concat());
        trees
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap().join(name)
    }

    pub fn git(&self, args: &[&str]) -> String {
        git(&self.root, args)
    }

    pub fn write(&self, path: &str, text: &str) {
        write(&self.root, path, text);
    }

    pub fn commit(&self, message: &str) -> String {
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"]).trim().to_owned()
    }

    pub fn files(&self) -> Files {
        Files::new(&key(&self.root))
    }

    /// Changes and staged paths are those that git tells.
    pub fn agrees(&self) {
        agrees(&self.root);
    }
}

pub fn key(root: &Path) -> ProjectKey {
    resolve(root).unwrap()
}

pub fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

pub fn git(folder: &Path, args: &[&str]) -> String {
    let output = command(folder, args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // git would write into the index what it found out.
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "protocol.file.allow=always"])
        .args(args);
    command
}

pub fn agrees(root: &Path) {
    let files = Files::new(&key(root));
    let text = root.to_str().unwrap();
    assert_eq!(changes(&files, text), told_by_git(root), "{}", git(root, &["status"]));
    assert_eq!(files.staged(text, None, PATIENT).unwrap(), staged_by_git(root), "{}", git(root, &["status"]));
}

/// What a commit would change; of a merge what differs from both sides, and what is left to decide.
fn staged_by_git(root: &Path) -> Vec<String> {
    let against = |flags: &[&str]| {
        sorted(&git(root, &[&["diff", "--cached", "--name-only", "--no-renames", "-z"], flags].concat()))
    };
    let mut staged = against(&[]);
    if command(root, &["rev-parse", "-q", "--verify", "MERGE_HEAD"]).output().unwrap().status.success() {
        let (other, undecided) = (against(&["MERGE_HEAD"]), against(&["--diff-filter=U"]));
        staged.retain(|path| other.contains(path) || undecided.contains(path));
    }
    staged
}

pub fn changes(files: &Files, root: &str) -> Told {
    let changes = files.changes(root, PATIENT).unwrap();
    let is_there = |path: &str| Path::new(root).join(path).symlink_metadata().is_ok();
    assert!(changes.iter().all(|changed| changed.stamp.is_some() == is_there(&changed.path)));
    let told: Told = changes.iter().map(|changed| (changed.path.clone(), (changed.kind, changed.staged))).collect();
    assert_eq!(told.len(), changes.len());
    told
}

/// Paths that stand one after the other, each ended by a NUL.
pub fn sorted(listed: &str) -> Vec<String> {
    let mut paths: Vec<String> =
        listed.split(['\0', '\n']).filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

/// What `git status` tells, in the words of relay.
pub fn told_by_git(root: &Path) -> Told {
    let status = git(root, &["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]);
    let mut told = Told::new();
    for line in status.split('\0').filter(|line| !line.is_empty()) {
        let (what, rest) = line.split_once(' ').unwrap();
        let (path, kind, staged) = match what {
            "?" => (rest.trim_end_matches('/'), ChangeKind::Untracked, false),
            "u" => (rest.splitn(10, ' ').last().unwrap(), ChangeKind::Conflicted, false),
            _ => {
                let (x, y) = (&rest[..1], &rest[1..2]);
                let kind = match (x, y) {
                    (_, "D") => ChangeKind::Deleted,
                    ("A", _) | (_, "A") => ChangeKind::Added,
                    ("D", _) => ChangeKind::Deleted,
                    _ => ChangeKind::Modified,
                };
                (rest.splitn(8, ' ').last().unwrap(), kind, x != ".")
            }
        };
        // What was taken out of the index and is still there stands in two lines.
        let was_staged = told.get(path).is_some_and(|(_, staged)| *staged);
        told.insert(path.to_owned(), (kind, staged || was_staged));
    }
    told
}
