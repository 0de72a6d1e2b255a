//! Whose doing a change is. Every call of a tool that may change files leaves a note in its work tree's folder before it runs.
//! A file that changed while one call alone was under way is that call's; what several may have done is nobody's for certain.
//!
//! Time is read from the file system itself, from the notes and the files: no other clock agrees with it. A note is kept after its
//! call only while others are under way, who may have to know what it did.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use relay_core::domain::worktree::{ChangeKind, Changed};
use relay_store::filesystem::{private_file, private_folder};
use serde::{Deserialize, Serialize};

use super::sessions::short;

/// A note that is older tells of nobody who still works.
const KEPT_NS: i128 = 3_600_000_000_000;
/// What the names of notes end in.
const NOTE: &str = "call";

/// One call, under way or over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    /// The session, and its subagent.
    who: String,
    /// The files that it edits, from the project root.
    edits: Vec<String>,
    command: Option<String>,
    /// When it began, once it is over: then the note's own time is that of its end.
    began_ns: Option<i128>,
}

impl Note {
    fn is_open(&self) -> bool {
        self.began_ns.is_none()
    }
}

/// The calls in one work tree.
pub struct Calls {
    folder: PathBuf,
    root: PathBuf,
    who: String,
}

/// What changed while a call was under way.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Doings {
    /// By this call.
    pub own: Vec<String>,
    /// By this call, or by another that was under way too.
    pub stray: Vec<String>,
}

impl Calls {
    pub fn of(home: &Path, root: &str, who: &str) -> Self {
        let folder = home.join("hooks").join("calls").join(short(root));
        Calls { folder, root: PathBuf::from(root), who: who.to_owned() }
    }

    fn path(&self, call: Option<&str>) -> PathBuf {
        self.folder.join(format!("{}.{NOTE}", short(&format!("{} {}", self.who, call.unwrap_or_default()))))
    }

    /// A call that edits these files is about to run.
    pub fn begin_edit(&self, call: Option<&str>, edits: &[String]) {
        self.begin(call, &Note { who: self.who.clone(), edits: edits.to_vec(), ..Note::default() });
    }

    /// A command is about to run.
    pub fn begin_shell(&self, call: Option<&str>, command: &str) {
        let command = Some(command.to_owned());
        self.begin(call, &Note { who: self.who.clone(), command, ..Note::default() });
    }

    fn begin(&self, call: Option<&str>, note: &Note) {
        if private_folder(&self.folder).is_ok() {
            put(&self.path(call), note);
        }
    }

    /// The call does not run.
    pub fn forget(&self, call: Option<&str>) {
        let _ = fs::remove_file(self.path(call));
    }

    /// An edit is over: others will know that these files are its doing.
    pub fn end_edit(&self, call: Option<&str>, edits: &[String]) {
        let (path, notes) = (self.path(call), self.notes());
        let note = Note { who: self.who.clone(), edits: edits.to_vec(), ..Note::default() };
        self.close(&path, note, &notes);
    }

    /// Whether a call of this session is under way, or nobody was told its end.
    pub fn are_open(&self) -> bool {
        self.notes().iter().any(|(_, note)| note.who == self.who && note.is_open())
    }

    /// Since when files may have been changed by commands of this session whose end was not told yet, this one included.
    pub fn open_since(&self) -> Option<i128> {
        let own = |(path, note): &(PathBuf, Note)| {
            (note.who == self.who && note.command.is_some() && note.is_open()).then(|| time_of(path)).flatten()
        };
        self.notes().iter().filter_map(own).min()
    }

    /// The files of this session's edits that nobody was told the end of, where they changed since the edit began.
    pub fn open_edits(&self, changed: &[Changed]) -> Vec<String> {
        let gone = self.gone();
        let mut edited = Vec::new();
        for (path, note) in self.notes().iter().filter(|(_, note)| note.who == self.who && note.is_open()) {
            let Some(since) = time_of(path) else { continue };
            let is_its = |change: &&Changed| note.edits.contains(&change.path) && self.is_since(change, since, &gone);
            edited.extend(changed.iter().filter(is_its).map(|change| change.path.clone()));
        }
        edited
    }

    /// Whose doing the changes since then are.
    pub fn doings(&self, since: i128, changed: &[Changed]) -> Doings {
        let notes = self.notes();
        let own: Vec<&Note> = notes.iter().map(|(_, note)| note).filter(|note| note.who == self.who).collect();
        let others: Vec<&Note> = notes
            .iter()
            .filter(|(path, note)| note.who != self.who && (note.is_open() || time_of(path) >= Some(since)))
            .map(|(_, note)| note)
            .collect();
        let gone_before = self.gone();
        let mut doings = Doings::default();
        for change in changed.iter().filter(|change| self.is_since(change, since, &gone_before)) {
            let path = &change.path;
            // An edit names its files: those are its own.
            if others.iter().any(|note| note.edits.contains(path)) {
                continue;
            }
            let says = |notes: &[&Note]| notes.iter().any(|note| mentions(note.command.as_deref(), path));
            let others_run = others.iter().any(|note| note.command.is_some());
            let is_own = !others_run || (says(&own) && !says(&others));
            if is_own { &mut doings.own } else { &mut doings.stray }.push(path.clone());
        }
        doings
    }

    /// The session's calls are over, and it is known what they changed; what is gone by now was not deleted later.
    pub fn end_all(&self, changed: &[Changed]) {
        let notes = self.notes();
        for (path, note) in notes.iter().filter(|(_, note)| note.who == self.who && note.is_open()) {
            self.close(path, note.clone(), &notes);
        }
        let gone: Vec<&str> = changed
            .iter()
            .filter(|change| change.kind == ChangeKind::Deleted)
            .map(|change| change.path.as_str())
            .collect();
        put(&self.folder.join("gone"), &gone);
    }

    /// Keeps the note while others are under way; with the last of them all of these go.
    fn close(&self, path: &Path, note: Note, notes: &[(PathBuf, Note)]) {
        let now = time_of(path).unwrap_or(0);
        let is_under_way = |(other, note): &&(PathBuf, Note)| {
            note.is_open() && note.who != self.who && time_of(other).is_some_and(|began| now - began < KEPT_NS)
        };
        if notes.iter().any(|note| is_under_way(&note)) {
            return put(path, &Note { began_ns: Some(now), ..note });
        }
        let _ = fs::remove_file(path);
        for (old, _) in notes.iter().filter(|(_, note)| !note.is_open() || note.who != self.who) {
            let _ = fs::remove_file(old);
        }
    }

    fn is_since(&self, change: &Changed, since: i128, gone_before: &[String]) -> bool {
        match fs::symlink_metadata(self.root.join(&change.path)) {
            Ok(metadata) => stamp(&metadata) >= since,
            Err(_) => !gone_before.contains(&change.path),
        }
    }

    /// What was deleted and not committed at the last look.
    fn gone(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("gone")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn notes(&self) -> Vec<(PathBuf, Note)> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == NOTE));
        paths
            .filter_map(|path| Some((path.clone(), serde_json::from_str(&fs::read_to_string(&path).ok()?).ok()?)))
            .collect()
    }
}

/// Whether a command names a file.
fn mentions(command: Option<&str>, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    command.is_some_and(|command| {
        let is_end = |letter: Option<char>| letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_');
        command.match_indices(name).any(|(at, _)| {
            is_end(command[..at].chars().next_back()) && is_end(command[at + name.len()..].chars().next())
        })
    })
}

/// What cannot be noted is not known, and then less is claimed.
fn put(path: &Path, note: &impl Serialize) {
    use std::io::Write;
    let fresh = path.with_extension(std::process::id().to_string());
    let text = serde_json::to_string(note).unwrap_or_default();
    let written = private_file(&fresh).and_then(|mut file| file.write_all(text.as_bytes()));
    let _ = written.and_then(|()| fs::rename(&fresh, path));
}

fn time_of(path: &Path) -> Option<i128> {
    fs::symlink_metadata(path)
        .ok()
        .map(|metadata| i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()))
}

/// When a file, or what is noted about it, last changed; no program can set that back.
fn stamp(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree {
        folder: tempfile::TempDir,
    }

    fn well<T>(result: std::io::Result<T>) -> T {
        result.unwrap_or_else(|fault| panic!("{fault}"))
    }

    impl Tree {
        fn new() -> Self {
            let folder = well(tempfile::tempdir());
            well(fs::create_dir(folder.path().join("tree")));
            Tree { folder }
        }

        fn calls(&self, who: &str) -> Calls {
            Calls::of(self.folder.path(), &self.folder.path().join("tree").to_string_lossy(), who)
        }

        /// A change that has a later time than everything before it.
        fn change(&self, path: &str) {
            let path = self.folder.path().join("tree").join(path);
            let before = self.tick();
            loop {
                well(fs::write(&path, "text"));
                if well(fs::symlink_metadata(&path).map(|metadata| stamp(&metadata))) > before {
                    return;
                }
            }
        }

        fn tick(&self) -> i128 {
            let path = self.folder.path().join("tick");
            well(fs::write(&path, "tick"));
            let first = time_of(&path);
            loop {
                well(fs::write(&path, "tick"));
                if time_of(&path) > first {
                    return time_of(&path).unwrap_or_default();
                }
            }
        }

        fn ends(&self, who: &str, dirty: &[&str]) -> Doings {
            let calls = self.calls(who);
            let changed: Vec<Changed> = dirty.iter().map(|path| changed(path, ChangeKind::Modified)).collect();
            let since = calls.open_since().unwrap_or(i128::MAX);
            let doings = calls.doings(since, &changed);
            calls.end_all(&changed);
            doings
        }
    }

    fn changed(path: &str, kind: ChangeKind) -> Changed {
        Changed { path: path.to_owned(), kind, staged: false, stamp: None }
    }

    fn doings(own: &[&str], stray: &[&str]) -> Doings {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        Doings { own: owned(own), stray: owned(stray) }
    }

    #[test]
    fn what_changed_while_a_command_ran_alone_is_its_doing_and_what_was_changed_before_is_not() {
        let tree = Tree::new();
        tree.change("before");
        tree.tick();
        tree.calls("one").begin_shell(Some("1"), "make");
        tree.change("during");
        assert_eq!(tree.ends("one", &["before", "during"]), doings(&["during"], &[]));
        tree.tick();
        tree.calls("two").begin_shell(Some("1"), "make");
        assert_eq!(tree.ends("two", &["before", "during"]), doings(&[], &[]));
    }

    #[test]
    fn what_another_edited_meanwhile_is_the_others() {
        let tree = Tree::new();
        tree.calls("one").begin_shell(Some("1"), "sleep 9");
        tree.calls("two").begin_edit(Some("1"), &["theirs".to_owned()]);
        tree.change("theirs");
        assert_eq!(tree.ends("one", &["theirs"]), doings(&[], &[]), "it is under way");
        tree.calls("two").end_edit(Some("1"), &["theirs".to_owned()]);
        tree.calls("three").begin_shell(Some("1"), "sleep 9");
        tree.calls("two").begin_edit(Some("2"), &["again".to_owned()]);
        tree.change("again");
        tree.calls("two").end_edit(Some("2"), &["again".to_owned()]);
        tree.change("mine");
        assert_eq!(tree.ends("three", &["again", "mine", "theirs"]), doings(&["mine"], &[]), "it is over");
    }

    #[test]
    fn what_two_commands_may_have_changed_is_nobodys_unless_one_of_them_names_it() {
        let tree = Tree::new();
        tree.calls("one").begin_shell(Some("1"), "make all");
        tree.calls("two").begin_shell(Some("1"), "sed -i s/a/b/ src/named.rs");
        well(fs::create_dir(tree.folder.path().join("tree/src")));
        tree.change("src/named.rs");
        tree.change("src/renamed.rs");
        let dirty = ["src/named.rs", "src/renamed.rs"];
        assert_eq!(tree.ends("two", &dirty), doings(&["src/named.rs"], &["src/renamed.rs"]));
        assert_eq!(tree.ends("one", &dirty), doings(&[], &["src/named.rs", "src/renamed.rs"]));
    }

    #[test]
    fn a_command_whose_end_nobody_told_is_looked_at_with_the_next() {
        let tree = Tree::new();
        tree.calls("one").begin_shell(Some("1"), "apply_patch");
        tree.change("early");
        tree.tick();
        tree.calls("one").begin_shell(Some("2"), "ls");
        assert_eq!(tree.ends("one", &["early"]), doings(&["early"], &[]));
        assert_eq!(tree.calls("one").open_since(), None);
    }

    #[test]
    fn an_edit_whose_end_nobody_told_is_its_doing_where_the_file_changed() {
        let tree = Tree::new();
        tree.change("before");
        tree.tick();
        let calls = tree.calls("one");
        calls.begin_edit(Some("1"), &["patched".to_owned(), "before".to_owned()]);
        tree.change("patched");
        tree.change("other");
        let dirty = ["before", "other", "patched"].map(|path| changed(path, ChangeKind::Modified));
        assert_eq!(calls.open_edits(&dirty), ["patched"]);
        calls.end_all(&dirty);
        assert_eq!(calls.open_edits(&dirty), [""; 0]);
    }

    #[test]
    fn a_deletion_is_the_doing_of_the_command_during_which_it_was_first_seen() {
        let tree = Tree::new();
        let gone = [changed("gone", ChangeKind::Deleted)];
        let calls = tree.calls("one");
        calls.begin_shell(Some("1"), "rm gone");
        let since = calls.open_since().unwrap_or_default();
        assert_eq!(calls.doings(since, &gone), doings(&["gone"], &[]));
        calls.end_all(&gone);
        calls.begin_shell(Some("2"), "ls");
        assert_eq!(calls.doings(calls.open_since().unwrap_or_default(), &gone), doings(&[], &[]));
    }

    #[test]
    fn notes_go_with_the_last_call_that_may_need_them() {
        let tree = Tree::new();
        let notes = || tree.calls("any").notes().len();
        tree.calls("one").begin_shell(Some("1"), "make");
        for index in 0..50 {
            let call = index.to_string();
            tree.calls("two").begin_edit(Some(&call), &["a".to_owned()]);
            tree.calls("two").end_edit(Some(&call), &["a".to_owned()]);
        }
        assert_eq!(notes(), 51);
        tree.ends("one", &[]);
        assert_eq!(notes(), 0);
        tree.calls("two").begin_edit(Some("1"), &["a".to_owned()]);
        tree.calls("two").forget(Some("1"));
        assert_eq!(notes(), 0);
    }

    #[test]
    fn a_command_names_a_file_by_its_whole_name() {
        for (command, path, named) in [
            ("sed -i s/x/y/ src/a.rs", "src/a.rs", true),
            ("touch 'a.rs'", "src/a.rs", true),
            ("touch ba.rs", "src/a.rs", false),
            ("touch a.rs2", "src/a.rs", false),
            ("make", "src/a.rs", false),
            ("é a.rs é", "a.rs", true),
        ] {
            assert_eq!(mentions(Some(command), path), named, "{command}");
        }
        assert!(!mentions(None, "a"));
    }
}
