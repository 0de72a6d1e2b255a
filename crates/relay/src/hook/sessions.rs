//! Which session is meant. A session that was cleared has a new name and the same agent: its first name stands for it, also
//! for programs that still know it by that one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use relay_core::domain::event::hex;
use relay_core::store::Harness;
use relay_store::filesystem::{own_text, private_folder_below, put_private};
use relay_store::harness;
use sha2::{Digest, Sha256};

/// A few names, each of a session.
const MOST_BYTES: u64 = 64 * 1024;
/// Nobody goes on after this long.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A name that a file can have, whatever a harness calls things.
pub fn short(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

fn folder(home: &Path) -> PathBuf {
    home.join("hooks").join("sessions")
}

/// The first name of a session.
pub fn canonical(home: &Path, session: String) -> String {
    read(home, &short(&session)).unwrap_or(session)
}

/// The session that this process belongs to: the one that runs in the nearest program above it, where no other does. For programs that
/// tell what they start nothing of their sessions.
pub fn around(home: &Path) -> Option<String> {
    let above = std::iter::successors(harness::parent(std::process::id()), |pid| harness::parent(*pid));
    let there = above.filter_map(|pid| harness::of(pid, None)).find_map(|harness| read(home, &process(&harness)))?;
    let mut there = there.lines();
    there.next().filter(|_| there.next().is_none()).map(str::to_owned)
}

/// Notes that a session runs in this process. One that carries on takes over the name of the one that was there before, where
/// that is certain: one process may have many.
pub fn note(home: &Path, session: &str, harness: &Harness, carries_on: bool) {
    let process = process(harness);
    let there = read(home, &process).unwrap_or_default();
    let mut there: Vec<&str> = there.lines().collect();
    match there.as_slice() {
        [first] if carries_on && *first != session => write(home, &short(session), first),
        _ => {
            let first = canonical(home, session.to_owned());
            if !there.contains(&first.as_str()) {
                there.push(&first);
                write(home, &process, &there.join("\n"));
            }
        }
    }
}

/// Notes that a session has ended.
pub fn forget(home: &Path, session: &str, harness: &Harness) {
    let (process, first) = (process(harness), canonical(home, session.to_owned()));
    let Some(there) = read(home, &process) else { return };
    let left: Vec<&str> = there.lines().filter(|session| *session != first).collect();
    if left.is_empty() {
        let _ = fs::remove_file(folder(home).join(process));
    } else {
        write(home, &process, &left.join("\n"));
    }
}

fn process(harness: &Harness) -> String {
    format!("{}-{}", harness.pid, short(&format!("{} {}", harness.machine, harness.began)))
}

fn read(home: &Path, name: &str) -> Option<String> {
    own_text(&folder(home).join(name), MOST_BYTES).filter(|session| !session.is_empty())
}

/// What cannot be written is not known: then a cleared session has an agent of its own.
fn write(home: &Path, name: &str, session: &str) {
    if read(home, name).as_deref() != Some(session) && private_folder_below(home, &folder(home)).is_ok() {
        let _ = put_private(&folder(home).join(name), session);
    }
}

/// Clears away what sessions left that were not heard of for a month. Time is that of the newest of these files.
pub fn sweep(home: &Path) {
    let folders = [home.join("hooks"), folder(home)];
    let entries = || folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().filter_map(Result::ok);
    let time = |entry: &fs::DirEntry| entry.metadata().ok().filter(fs::Metadata::is_file)?.modified().ok();
    let Some(newest) = entries().filter_map(|entry| time(&entry)).max() else { return };
    for entry in entries() {
        if time(&entry).is_some_and(|time| newest.duration_since(time).is_ok_and(|age| age > KEPT)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_session_keeps_its_first_name_however_often() {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let of = |pid| Harness { machine: "here".to_owned(), pid, began: 7, transcript: None };
        let name = |session: &str| canonical(home.path(), session.to_owned());
        note(home.path(), "one", &of(1), false);
        note(home.path(), "two", &of(1), true);
        note(home.path(), "three", &of(1), true);
        assert_eq!([name("one"), name("two"), name("three")], ["one", "one", "one"]);
        note(home.path(), "other", &of(2), true);
        assert_eq!(name("other"), "other", "nothing was there before");
        forget(home.path(), "three", &of(1));
        note(home.path(), "resumed", &of(1), false);
        note(home.path(), "four", &of(1), true);
        assert_eq!([name("resumed"), name("four"), name("three")], ["resumed", "resumed", "one"]);
    }

    #[test]
    fn among_several_sessions_of_one_process_none_is_taken_for_the_one_before() {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let daemon = Harness { machine: "here".to_owned(), pid: 1, began: 7, transcript: None };
        note(home.path(), "one", &daemon, false);
        note(home.path(), "two", &daemon, false);
        note(home.path(), "three", &daemon, true);
        assert_eq!(canonical(home.path(), "three".to_owned()), "three");
        forget(home.path(), "one", &daemon);
        forget(home.path(), "three", &daemon);
        note(home.path(), "four", &daemon, true);
        assert_eq!(canonical(home.path(), "four".to_owned()), "two");
    }

    #[test]
    fn what_sessions_left_a_month_ago_is_cleared_away() {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let here = |pid| Harness { machine: "here".to_owned(), pid, began: 7, transcript: None };
        note(home.path(), "old", &here(1), false);
        note(home.path(), "new", &here(2), false);
        let old = folder(home.path()).join(process(&here(1)));
        let long_ago = std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = fs::File::options().write(true).open(&old).unwrap_or_else(|fault| panic!("{fault}"));
        file.set_modified(long_ago).unwrap_or_else(|fault| panic!("{fault}"));
        sweep(home.path());
        assert!(!old.exists() && folder(home.path()).join(process(&here(2))).exists());
    }
}
