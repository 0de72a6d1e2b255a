//! Whose doing a change is. Every call of a tool that may change files leaves a note in its work tree's folder before it runs.
//! A file that changed while one call alone was under way is that call's; what several may have done is nobody's for certain.
//!
//! Time is read from the file system itself, from the notes and the files: no other clock agrees with it. A note is kept after its
//! call only while others are under way, who may have to know what it did.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use relay_core::domain::worktree::{ChangeKind, Changed, Head};
use relay_core::store::Harness;
use relay_store::filesystem::{own_text, private_folder_below, put_private};
use relay_store::harness;
use serde::{Deserialize, Serialize};

use super::sessions::short;

/// A note that is older tells of nobody who still works.
const KEPT_NS: i128 = 3_600_000_000_000;
/// What the names of notes end in.
const NOTE: &str = "call";
/// A note is no longer than this.
const MOST_BYTES: u64 = 256 * 1024;
/// As much of a command as is needed to see which files it names.
const COMMAND: usize = 4_000;

/// One call, under way or over.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    /// The session, and its subagent.
    who: String,
    /// The process that the session runs in.
    harness: Option<Harness>,
    /// The files that it edits, from the project root.
    edits: Vec<String>,
    command: Option<String>,
    /// It is over, and nobody could look in time at what it did.
    due: bool,
    /// When it began, once it is over and looked at: then the note's own time is that of its end.
    began_ns: Option<i128>,
}

impl Note {
    fn is_open(&self) -> bool {
        self.began_ns.is_none()
    }

    /// Whether somebody may still be at it.
    fn lives(&self) -> bool {
        self.harness.as_ref().is_none_or(harness::runs)
    }
}

/// What is noted of one call: when that was, and where it is written.
struct Noted {
    path: PathBuf,
    at: i128,
    note: Note,
}

/// Who moved HEAD last, and to where.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Moved {
    session: String,
    head: Head,
}

/// The calls in one work tree.
pub struct Calls {
    home: PathBuf,
    folder: PathBuf,
    root: PathBuf,
    who: String,
    harness: Option<Harness>,
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
    pub fn of(home: &Path, root: &str, who: &str, harness: Option<Harness>) -> Self {
        let folder = home.join("hooks").join("calls").join(short(root));
        Calls { home: home.to_owned(), folder, root: PathBuf::from(root), who: who.to_owned(), harness }
    }

    fn path(&self, call: Option<&str>) -> PathBuf {
        self.folder.join(format!("{}.{NOTE}", short(&format!("{} {}", self.who, call.unwrap_or_default()))))
    }

    /// A call that edits these files is about to run.
    pub fn begin_edit(&self, call: Option<&str>, edits: &[String]) {
        self.begin(call, Note { edits: edits.to_vec(), ..Note::default() });
    }

    /// A command is about to run.
    pub fn begin_shell(&self, call: Option<&str>, command: &str) {
        let command = Some(command.chars().take(COMMAND).collect());
        self.begin(call, Note { command, ..Note::default() });
    }

    fn begin(&self, call: Option<&str>, note: Note) {
        if private_folder_below(&self.home, &self.folder).is_ok() {
            let harness = self.harness.clone().filter(|harness| harness.pid > 0);
            put(&self.path(call), &Note { who: self.who.clone(), harness, ..note });
        }
    }

    /// The call does not run.
    pub fn forget(&self, call: Option<&str>) {
        let _ = fs::remove_file(self.path(call));
    }

    /// No call of the session is under way: what it never told the end of did not run, or nobody will know.
    pub fn forget_all(&self) {
        let of_it =
            |who: &str| who == self.who || who.strip_prefix(&self.who).is_some_and(|rest| rest.starts_with('/'));
        for noted in self.notes().iter().filter(|noted| of_it(&noted.note.who) && noted.note.is_open()) {
            let _ = fs::remove_file(&noted.path);
        }
    }

    /// An edit is over: others will know that these files are its doing.
    pub fn end_edit(&self, call: Option<&str>, edits: &[String]) {
        let (path, notes) = (self.path(call), self.notes());
        let note = Note { who: self.who.clone(), edits: edits.to_vec(), ..Note::default() };
        self.close(&path, note, &notes);
    }

    /// Whether a call of this session is under way, or nobody was told its end.
    pub fn are_open(&self) -> bool {
        self.notes().iter().any(|noted| noted.note.who == self.who && noted.note.is_open())
    }

    /// Since when this command may have changed files, or an earlier one at whose doings nobody could look in time.
    pub fn since(&self, call: Option<&str>) -> Option<i128> {
        let path = self.path(call);
        let is_meant = |noted: &&Noted| noted.note.who == self.who && (noted.path == path || noted.note.due);
        self.notes().iter().filter(is_meant).filter(|noted| noted.note.is_open()).map(|noted| noted.at).min()
    }

    /// Nobody could look in time: the next one looks at it too.
    pub fn put_off(&self, call: Option<&str>) {
        let path = self.path(call);
        if let Some(noted) = self.notes().into_iter().find(|noted| noted.path == path) {
            // What is written keeps the time of what was there.
            put(&path, &Note { due: true, ..noted.note });
            set_time(&path, noted.at);
        }
    }

    /// The files that calls of this session changed whose end nobody told: those that an edit names, or a command.
    pub fn left_over(&self, changed: &[Changed]) -> Vec<String> {
        let mut left = Vec::new();
        for noted in self.notes().iter().filter(|noted| noted.note.who == self.who && noted.note.is_open()) {
            let note = &noted.note;
            let own = self.doings(noted.at, changed).own;
            let names = |path: &String| note.edits.contains(path) || mentions(note.command.as_deref(), path);
            left.extend(own.into_iter().filter(|path| note.due || names(path)));
        }
        left
    }

    /// Whose doing the changes since then are.
    pub fn doings(&self, since: i128, changed: &[Changed]) -> Doings {
        let notes = self.notes();
        let own: Vec<&Note> = notes.iter().map(|noted| &noted.note).filter(|note| note.who == self.who).collect();
        let newest = notes.iter().map(|noted| noted.at).max().unwrap_or(since);
        let is_near = |noted: &&Noted| {
            let is_under_way = noted.note.is_open() && noted.note.lives() && newest - noted.at < KEPT_NS;
            noted.note.who != self.who && (is_under_way || (!noted.note.is_open() && noted.at >= since))
        };
        let others: Vec<&Note> = notes.iter().filter(is_near).map(|noted| &noted.note).collect();
        let gone = self.gone();
        let mut doings = Doings::default();
        for change in changed.iter().filter(|change| self.is_since(change, since, &gone)) {
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

    /// A command is over, and it is known what it changed, and what those changed that were put off.
    pub fn end_shell(&self, call: Option<&str>, changed: &[Changed]) {
        let (path, notes) = (self.path(call), self.notes());
        for noted in notes.iter().filter(|noted| noted.note.who == self.who && noted.note.is_open()) {
            if noted.path == path || noted.note.due {
                self.close(&noted.path, noted.note.clone(), &notes);
            }
        }
        self.note_gone(changed);
    }

    /// The turn is over, and so are the session's calls.
    pub fn end_all(&self, changed: &[Changed]) {
        let notes = self.notes();
        for noted in notes.iter().filter(|noted| noted.note.who == self.who && noted.note.is_open()) {
            self.close(&noted.path, noted.note.clone(), &notes);
        }
        self.note_gone(changed);
    }

    /// What is gone by now was not deleted later.
    fn note_gone(&self, changed: &[Changed]) {
        let gone =
            changed.iter().filter(|change| change.kind == ChangeKind::Deleted).map(|change| change.path.as_str());
        put(&self.folder.join("gone"), &gone.collect::<Vec<_>>());
    }

    /// Keeps the note while others are under way; with the last of them all of these go.
    fn close(&self, path: &Path, note: Note, notes: &[Noted]) {
        let now = time_of(path).unwrap_or(0);
        let is_under_way = |noted: &Noted| {
            noted.note.is_open() && noted.note.who != self.who && noted.note.lives() && now - noted.at < KEPT_NS
        };
        if notes.iter().any(is_under_way) {
            return put(path, &Note { began_ns: Some(now), ..note });
        }
        let _ = fs::remove_file(path);
        for noted in notes.iter().filter(|noted| !noted.note.is_open() || noted.note.who != self.who) {
            let _ = fs::remove_file(&noted.path);
        }
    }

    /// Notes that the session moved HEAD.
    pub fn note_head(&self, session: &str, head: &Head) {
        if private_folder_below(&self.home, &self.folder).is_ok() {
            put(&self.folder.join("head"), &Moved { session: session.to_owned(), head: head.clone() });
        }
    }

    /// Whether the session, or one of its subagents, moved HEAD to where it is.
    pub fn moved_head(&self, session: &str, head: &Head) -> bool {
        let text = own_text(&self.folder.join("head"), MOST_BYTES).unwrap_or_default();
        let moved: Moved = serde_json::from_str(&text).unwrap_or_default();
        moved.session == session && moved.head == *head
    }

    /// Whether a file changed since then. Of one that is gone the folder tells, whose own time changes with its entries.
    fn is_since(&self, change: &Changed, since: i128, gone: &[String]) -> bool {
        let path = self.root.join(&change.path);
        match fs::symlink_metadata(&path) {
            Ok(metadata) => stamp(&metadata) >= since,
            Err(_) => {
                let folder = path.ancestors().skip(1).find_map(|folder| fs::symlink_metadata(folder).ok());
                folder.is_some_and(|folder| stamp(&folder) >= since) && !gone.contains(&change.path)
            }
        }
    }

    /// What was deleted and not committed at the last look.
    fn gone(&self) -> Vec<String> {
        let text = own_text(&self.folder.join("gone"), u64::MAX).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn notes(&self) -> Vec<Noted> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().filter_map(Result::ok);
        let paths = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == NOTE));
        paths
            .filter_map(|path| {
                let note = serde_json::from_str(&own_text(&path, MOST_BYTES)?).ok()?;
                Some(Noted { at: time_of(&path)?, path, note })
            })
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
    let _ = put_private(path, &serde_json::to_string(note).unwrap_or_default());
}

fn time_of(path: &Path) -> Option<i128> {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some(i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()))
}

fn set_time(path: &Path, at: i128) {
    let after = u64::try_from(at).map(std::time::Duration::from_nanos).unwrap_or_default();
    let file = fs::File::options().write(true).open(path);
    let _ = file.and_then(|file| file.set_modified(std::time::UNIX_EPOCH + after));
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
            Calls::of(self.folder.path(), &self.folder.path().join("tree").to_string_lossy(), who, None)
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
            self.ends_call(who, "1", dirty)
        }

        fn ends_call(&self, who: &str, call: &str, dirty: &[&str]) -> Doings {
            let calls = self.calls(who);
            let changed: Vec<Changed> = dirty.iter().map(|path| changed(path, ChangeKind::Modified)).collect();
            let since = calls.since(Some(call)).unwrap_or(i128::MAX);
            let doings = calls.doings(since, &changed);
            calls.end_shell(Some(call), &changed);
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
    fn no_note_is_left_behind_a_link() {
        let tree = Tree::new();
        let (hooks, victim) = (tree.folder.path().join("hooks"), tree.folder.path().join("victim"));
        well(fs::create_dir(&hooks));
        well(fs::create_dir(&victim));
        well(std::os::unix::fs::symlink(&victim, hooks.join("calls")));
        tree.calls("one").begin_shell(None, "make");
        assert_eq!(well(fs::read_dir(&victim)).count(), 0);
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
    fn commands_of_one_session_side_by_side_end_one_by_one() {
        let tree = Tree::new();
        tree.calls("one").begin_shell(Some("1"), "make a");
        tree.calls("one").begin_shell(Some("2"), "make b");
        tree.change("a");
        assert_eq!(tree.ends_call("one", "1", &["a"]), doings(&["a"], &[]));
        tree.change("b");
        assert_eq!(tree.ends_call("one", "2", &["a", "b"]).own.last().map(String::as_str), Some("b"));
        assert!(!tree.calls("one").are_open());
    }

    #[test]
    fn what_nobody_could_look_at_in_time_is_looked_at_with_the_next() {
        let tree = Tree::new();
        tree.calls("one").begin_shell(Some("1"), "make");
        tree.change("early");
        tree.calls("one").put_off(Some("1"));
        tree.tick();
        tree.calls("one").begin_shell(Some("2"), "ls");
        assert_eq!(tree.ends_call("one", "2", &["early"]), doings(&["early"], &[]));
        assert!(!tree.calls("one").are_open());
    }

    #[test]
    fn of_a_call_whose_end_nobody_told_only_what_it_names_is_its_doing() {
        let tree = Tree::new();
        tree.change("before");
        tree.tick();
        let calls = tree.calls("one");
        calls.begin_edit(Some("1"), &["patched".to_owned(), "before".to_owned()]);
        calls.begin_shell(Some("2"), "refused > named");
        for path in ["patched", "named", "other"] {
            tree.change(path);
        }
        let dirty = ["before", "named", "other", "patched"].map(|path| changed(path, ChangeKind::Modified));
        let mut left = calls.left_over(&dirty);
        left.sort();
        assert_eq!(left, ["named", "patched"]);
        calls.end_all(&dirty);
        assert!(calls.left_over(&dirty).is_empty() && !calls.are_open());
    }

    #[test]
    fn the_dead_are_not_under_way_and_a_session_takes_its_notes_along() {
        let tree = Tree::new();
        let gone = Harness { machine: "here".to_owned(), pid: u32::MAX, began: 1, transcript: None };
        let dead = Calls { harness: Some(gone), ..tree.calls("dead") };
        dead.begin_shell(Some("1"), "make");
        tree.calls("one").begin_shell(Some("1"), "make");
        tree.change("a");
        assert_eq!(tree.ends("one", &["a"]), doings(&["a"], &[]));
        tree.calls("two").begin_shell(Some("1"), "make");
        tree.calls("two/sub").begin_shell(Some("1"), "make");
        tree.calls("twofold").begin_shell(Some("1"), "make");
        tree.calls("two").forget_all();
        assert_eq!(tree.calls("any").notes().len(), 1);
    }

    #[test]
    fn a_deletion_is_the_doing_of_the_command_during_which_the_folder_changed() {
        let tree = Tree::new();
        let gone = [changed("gone", ChangeKind::Deleted)];
        let calls = tree.calls("one");
        let doings_of = |call: &str| calls.doings(calls.since(Some(call)).unwrap_or_default(), &gone);
        tree.change("gone");
        well(fs::remove_file(tree.folder.path().join("tree/gone")));
        tree.tick();
        calls.begin_shell(Some("1"), "ls");
        assert_eq!(doings_of("1"), doings(&[], &[]), "somebody deleted it before");
        calls.forget(Some("1"));
        calls.begin_shell(Some("2"), "rm gone");
        tree.change("gone");
        well(fs::remove_file(tree.folder.path().join("tree/gone")));
        assert_eq!(doings_of("2"), doings(&["gone"], &[]));
        calls.end_shell(Some("2"), &gone);
        calls.begin_shell(Some("3"), "touch new");
        tree.change("new");
        assert_eq!(doings_of("3"), doings(&[], &[]), "it was gone at the last look");
    }

    #[test]
    fn who_moved_head_is_known_by_session_and_place() {
        let tree = Tree::new();
        let head = |branch: &str| Head { branch: Some(branch.to_owned()), ..Head::default() };
        assert!(!tree.calls("one").moved_head("one", &head("main")));
        tree.calls("one/sub").note_head("one", &head("main"));
        assert!(tree.calls("one").moved_head("one", &head("main")));
        assert!(!tree.calls("one").moved_head("one", &head("other")));
        assert!(!tree.calls("two").moved_head("two", &head("main")));
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
