//! What the files of a repository say, and what they are not believed.

use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::folder::{MOST_CONFIG, MOST_PATH};
use super::*;

fn well<T>(result: std::result::Result<T, impl std::fmt::Display>) -> T {
    result.unwrap_or_else(|fault| panic!("{fault}"))
}

/// A repository, a linked worktree of it, and the part of its git folder that is the worktree's own.
fn linked() -> (tempfile::TempDir, PathBuf, PathBuf, PathBuf) {
    let folder = well(tempfile::tempdir());
    let root = well(fs::canonicalize(folder.path()));
    let (main, worktree) = (root.join("main"), root.join("worktree"));
    let own = main.join(".git/worktrees/worktree");
    well(fs::create_dir_all(&own));
    well(fs::create_dir(&worktree));
    well(fs::write(main.join(".git/config"), "[core]\n\tignorecase = true\n"));
    well(fs::write(worktree.join(".git"), format!("gitdir: {}\n", own.display())));
    well(fs::write(own.join("commondir"), "../..\n"));
    well(fs::write(own.join("gitdir"), format!("{}/.git\n", worktree.display())));
    (folder, main, worktree, own)
}

fn named(path: &Path) -> String {
    well(resolve(path)).as_str().to_owned()
}

/// What is read of the repository, in a thread that may hang.
fn looks(main: &Path, worktree: &Path) -> (String, Vec<String>, Case, bool) {
    let (done, is_done) = mpsc::channel();
    let (main, worktree) = (main.to_owned(), worktree.to_owned());
    let look = move || {
        let files = Files::new(&well(resolve(&main)));
        let _ = done.send((named(&worktree), files.roots(), files.case(), files.tracked().is_some()));
    };
    let _thread = std::thread::Builder::new().spawn(look);
    is_done.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("it waits for what is no file"))
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let (_folder, main, worktree, own) = linked();
    let roots = vec![text(&main), text(&worktree)];
    assert_eq!(looks(&main, &worktree), (text(&main), roots.clone(), Case::Insensitive, false));
    let check = |path: PathBuf, expected: (&Path, &[String], Case)| {
        let _ = fs::remove_file(&path);
        well(mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0));
        let (key, roots, case) = expected;
        assert_eq!(looks(&main, &worktree), (text(key), roots.to_vec(), case, false), "{}", path.display());
    };
    check(main.join(".git/index"), (&main, &roots, Case::Insensitive));
    check(main.join(".git/config"), (&main, &roots, Case::Sensitive));
    check(own.join("gitdir"), (&main, &roots[..1], Case::Sensitive));
    check(own.join("commondir"), (&worktree, &roots[..1], Case::Sensitive));
    check(worktree.join(".git"), (&worktree, &roots[..1], Case::Sensitive));
    well(fs::remove_dir_all(main.join(".git")));
    check(main.join(".git"), (&worktree, &roots[..1], Case::Sensitive));
}

#[test]
fn what_is_too_long_for_a_path_is_none() {
    let (_folder, main, worktree, _own) = linked();
    let dot_git = worktree.join(".git");
    let line = well(fs::read_to_string(&dot_git));
    let fill = |length: u64| {
        let rest = usize::try_from(length).unwrap_or(usize::MAX) - line.len();
        well(fs::write(&dot_git, format!("{line}{}", "\n".repeat(rest))));
    };
    fill(MOST_PATH);
    assert_eq!(named(&worktree), text(&main));
    fill(MOST_PATH + 1);
    assert_eq!(named(&worktree), text(&worktree));
}

#[test]
fn a_configuration_is_read_up_to_its_limit() {
    let (_folder, main, _worktree, _own) = linked();
    let config = main.join(".git/config");
    let check = |length: u64, expected: Case| {
        let line = b"[core]\n\tignorecase = true\n";
        let mut text = b"\n".repeat(usize::try_from(length).unwrap_or(usize::MAX));
        text[..line.len()].copy_from_slice(line);
        well(fs::write(&config, text));
        assert_eq!(Files::new(&well(resolve(&main))).case(), expected, "{length}");
    };
    check(MOST_CONFIG, Case::Insensitive);
    check(MOST_CONFIG + 1, Case::Sensitive);
}
