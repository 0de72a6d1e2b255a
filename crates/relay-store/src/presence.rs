//! Who is here, and who waits for whom: small files beside the store, never synced.
//!
//! A living process holds a lock on its file. The kernel lets go of it however the process ends, so a file that can be
//! locked speaks of the dead and is removed.
//!
//! The verb stands in the file's name too: whoever asks for the waits of one verb, as every writer does while it holds the
//! gate, opens no others.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use relay_core::domain::name::AgentName;
use relay_core::domain::time::Timestamp;
use relay_core::store::{Guard, Harness, Presence, Result, Wait};

use crate::filesystem::{io_refusal, private_file, private_folder, put_private};
use crate::harness;

#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
}

/// Tells several announcements of one process apart.
static ENTERED: AtomicU32 = AtomicU32::new(0);

impl Files {
    pub fn open(store: &Path) -> Result<Self> {
        let folder = store.join("presence");
        private_folder(&folder)?;
        Ok(Files { folder })
    }

    fn seen_file(&self, agent: &AgentName) -> PathBuf {
        self.folder.join(format!("{}.seen", agent.key()))
    }

    fn harness_file(&self, agent: &AgentName) -> PathBuf {
        self.folder.join(format!("{}.harness", agent.key()))
    }

    fn harness(&self, agent: &AgentName) -> Option<Harness> {
        serde_json::from_str(&fs::read_to_string(self.harness_file(agent)).ok()?).ok()
    }

    /// Announcements whose process lives, of those whose file is asked for; the others of these are cleared away.
    fn living(&self, is_asked_for: impl Fn(&Path) -> bool) -> Vec<Wait> {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return Vec::new();
        };
        let is_announcement = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "live");
        let mut waits: Vec<Wait> = entries
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| is_announcement(path) && is_asked_for(path))
            .filter_map(|path| read_living(&path))
            .collect();
        waits.sort_by_key(|wait| (wait.ticket, wait.pid));
        waits
    }
}

/// Whether a file may announce a wait of this verb, or has to go: one of an earlier relay has no verb in its name, and whose
/// process is gone cannot take its file along.
fn may_be_of(path: &Path, verb: &str) -> bool {
    let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { return false };
    let Some((process, of)) = name.split_once('.') else { return true };
    let pid = process.split('-').next().and_then(|pid| pid.parse().ok());
    of == verb || pid.is_none_or(|pid| !lives(pid))
}

fn read_living(path: &Path) -> Option<Wait> {
    let mut file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        clear_away(path, &file);
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Removes an announcement of the dead. One that its process replaced while we looked is let go of too, but what has the
/// name by now is another file, and speaks of the living.
fn clear_away(path: &Path, dead: &File) {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    let (there, here) = (fs::symlink_metadata(path).map(identity), dead.metadata().map(identity));
    if there.is_ok_and(|there| here.is_ok_and(|here| there == here)) {
        let _ = fs::remove_file(path);
    }
}

impl Presence for Files {
    fn seen(&self, agent: &AgentName) -> Option<Timestamp> {
        let touched = fs::read_to_string(self.seen_file(agent)).ok();
        let touched = touched.and_then(|text| text.trim().parse().ok()).map(Timestamp::from_millis);
        touched.max(self.harness(agent).as_ref().and_then(harness::wrote_at))
    }

    fn touch(&self, agent: &AgentName, now: Timestamp) {
        // Presence is a hint: a disk that refuses it does not fail a verb. A fixed width makes the write atomic enough.
        if let Ok(mut file) = private_file(&self.seen_file(agent)) {
            let _ = file.write_all(format!("{:<20}", now.millis()).as_bytes());
        }
    }

    fn has_process(&self, agent: &AgentName) -> bool {
        self.waits().iter().any(|wait| wait.agent.is(agent)) || self.harness(agent).as_ref().is_some_and(harness::runs)
    }

    fn note(&self, agent: &AgentName, harness: &Harness) {
        if self.harness(agent).as_ref() == Some(harness) {
            return;
        }
        let _ = put_private(&self.harness_file(agent), &serde_json::to_string(harness).unwrap_or_default());
    }

    fn forget(&self, agent: &AgentName) {
        let _ = fs::remove_file(self.harness_file(agent));
        let _ = fs::remove_file(self.seen_file(agent));
    }

    fn process_lives(&self, pid: u32) -> bool {
        lives(pid)
    }

    fn enter(&self, wait: &Wait) -> Result<Box<dyn Guard>> {
        let ordinal = ENTERED.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{}-{ordinal}.{}.live", std::process::id(), wait.verb));
        let lock = announce(&path, wait).map_err(|fault| io_refusal(&path, &fault))?;
        Ok(Box::new(Entered { lock, path, ticket: wait.ticket, verb: wait.verb.clone() }))
    }

    fn waits(&self) -> Vec<Wait> {
        self.living(|_| true)
    }

    fn waits_of(&self, verb: &str) -> Vec<Wait> {
        let mut waits = self.living(|path| may_be_of(path, verb));
        waits.retain(|wait| wait.verb == verb);
        waits
    }
}

/// Locked and written before it has the name that others look for: an unlocked announcement speaks of the dead.
fn announce(path: &Path, wait: &Wait) -> std::io::Result<File> {
    let fresh = path.with_extension("fresh");
    let mut file = private_file(&fresh)?;
    file.lock()?;
    file.set_len(0)?;
    file.write_all(serde_json::to_string(wait).unwrap_or_default().as_bytes())?;
    fs::rename(&fresh, path)?;
    Ok(file)
}

struct Entered {
    lock: File,
    path: PathBuf,
    ticket: u64,
    verb: String,
}

impl Guard for Entered {
    fn update(&mut self, wait: &Wait) {
        let wait = Wait { ticket: self.ticket, verb: self.verb.clone(), ..wait.clone() };
        if let Ok(lock) = announce(&self.path, &wait) {
            self.lock = lock;
        }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether a process of this number runs.
pub(crate) fn lives(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(agent: &str, ticket: u64) -> Wait {
        let agent =
            relay_core::domain::name::Party::try_from(agent.to_owned()).unwrap_or_else(|fault| panic!("{fault}"));
        let (for_whom, patterns) = (Vec::new(), vec!["src/**".to_owned()]);
        Wait { agent, verb: "reserve".to_owned(), pid: std::process::id(), ticket, for_whom, patterns }
    }

    /// A folder for announcements that goes with the value.
    fn place() -> (tempfile::TempDir, Files) {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let files = Files::open(folder.path()).unwrap_or_else(|refusal| panic!("{refusal}"));
        (folder, files)
    }

    fn enter(files: &Files, wait: &Wait) -> Box<dyn Guard> {
        files.enter(wait).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    #[test]
    fn an_announcement_lasts_as_long_as_its_guard() {
        let (_folder, files) = place();
        let (first, second) = (wait("BlueLake", 7), wait("RedForest", 3));
        let held = (enter(&files, &first), enter(&files, &second));
        assert_eq!(files.waits(), [second.clone(), first], "first come, first served");
        drop(held.0);
        assert_eq!(files.waits(), [second]);
        drop(held.1);
        assert_eq!(files.waits(), []);
        assert_eq!(fs::read_dir(&files.folder).map(Iterator::count).ok(), Some(0));
    }

    #[test]
    fn an_unlocked_announcement_speaks_of_the_dead_and_is_removed() {
        let (_folder, files) = place();
        let left_behind = files.folder.join("4711-0.live");
        fs::write(&left_behind, serde_json::to_string(&wait("BlueLake", 1)).unwrap_or_default())
            .unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(files.waits(), []);
        assert!(!left_behind.exists());
    }

    #[test]
    fn whoever_asks_for_one_verb_opens_no_others() {
        let (_folder, files) = place();
        let held = enter(&files, &wait("BlueLake", 1));
        let put = |name: String| {
            let path = files.folder.join(name);
            fs::write(&path, "nobody holds it, so whoever opens it removes it")
                .unwrap_or_else(|fault| panic!("{fault}"));
            path
        };
        let (here, gone) = (std::process::id(), u32::MAX);
        let (of_another, of_the_dead) = (put(format!("{here}-99.poll.live")), put(format!("{gone}-99.poll.live")));
        let (of_this, without) = (put(format!("{here}-99.reserve.live")), put(format!("{here}-99.live")));
        assert_eq!(files.waits_of("reserve"), [wait("BlueLake", 1)]);
        assert_eq!(files.waits_of("link"), []);
        let left = [&of_another, &of_the_dead, &of_this, &without].map(|path| path.exists());
        assert_eq!(left, [true, false, false, false]);
        assert_eq!(files.waits(), [wait("BlueLake", 1)]);
        assert!(!of_another.exists());
        drop(held);
    }

    #[test]
    fn an_announcement_of_an_earlier_relay_is_of_the_verb_that_it_says() {
        let (_folder, files) = place();
        let path = files.folder.join(format!("{}-7.live", std::process::id()));
        let _lock = announce(&path, &wait("BlueLake", 2)).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(files.waits_of("reserve"), [wait("BlueLake", 2)]);
        assert_eq!(files.waits_of("poll"), []);
        assert_eq!(files.waits(), [wait("BlueLake", 2)]);
    }

    #[test]
    fn an_update_replaces_what_was_announced() {
        let (_folder, files) = place();
        let mut guard = enter(&files, &wait("BlueLake", 1));
        let changed = Wait { patterns: vec!["doc".to_owned()], ..wait("BlueLake", 1) };
        guard.update(&changed);
        assert_eq!(files.waits(), [changed]);
    }

    #[test]
    fn an_announcement_that_replaced_a_dead_one_stays() {
        let (_folder, files) = place();
        let path = files.folder.join("4711-0.live");
        let dead = private_file(&path).unwrap_or_else(|fault| panic!("{fault}"));
        // Between the look at the old file and its removal the process announces itself anew.
        let _lock = announce(&path, &wait("BlueLake", 2)).unwrap_or_else(|fault| panic!("{fault}"));
        clear_away(&path, &dead);
        assert_eq!(files.waits(), [wait("BlueLake", 2)]);
    }

    #[test]
    fn when_an_agent_was_seen_is_overwritten_in_place() {
        let (_folder, files) = place();
        let agent = AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(files.seen(&agent), None);
        for millis in [1_794_700_800_000, 5, 1_794_700_800_001] {
            files.touch(&agent, Timestamp::from_millis(millis));
            assert_eq!(files.seen(&agent), Some(Timestamp::from_millis(millis)));
        }
    }

    #[test]
    fn where_a_session_runs_is_noted_until_it_leaves() {
        let (_folder, files) = place();
        let agent = AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}"));
        let here = harness::of(std::process::id(), None).unwrap_or_else(|| panic!("this process runs"));
        assert!(!files.has_process(&agent));
        files.note(&agent, &here);
        assert!(files.has_process(&agent));
        files.note(&agent, &Harness { began: here.began + 1, ..here.clone() });
        assert!(!files.has_process(&agent), "another process has its number");
        files.note(&agent, &here);
        files.forget(&agent);
        assert_eq!((files.has_process(&agent), files.seen(&agent)), (false, None));
    }

    #[test]
    fn what_a_harness_writes_down_is_a_sign_of_life() {
        let (folder, files) = place();
        let agent = AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}"));
        let transcript = folder.path().join("transcript.jsonl");
        let write = |millis: u64| {
            let file = File::create(&transcript).unwrap_or_else(|fault| panic!("{fault}"));
            let at = std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis);
            file.set_modified(at).unwrap_or_else(|fault| panic!("{fault}"));
        };
        write(1_794_700_800_007);
        let text = transcript.to_string_lossy().into_owned();
        let here = harness::of(std::process::id(), Some(text)).unwrap_or_else(|| panic!("this process runs"));
        files.note(&agent, &here);
        assert_eq!(files.seen(&agent), Some(Timestamp::from_millis(1_794_700_800_007)));
        files.touch(&agent, Timestamp::from_millis(1_794_700_800_009));
        assert_eq!(files.seen(&agent), Some(Timestamp::from_millis(1_794_700_800_009)));
        write(1_794_700_800_011);
        assert_eq!(files.seen(&agent), Some(Timestamp::from_millis(1_794_700_800_011)));
        files.note(&agent, &Harness { machine: "another".to_owned(), ..here });
        assert_eq!(files.seen(&agent), Some(Timestamp::from_millis(1_794_700_800_009)), "that file is not here");
    }

    #[test]
    fn a_process_lives_until_it_is_gone() {
        let (_folder, files) = place();
        assert!(files.process_lives(std::process::id()));
        assert!(!files.process_lives(0));
        assert!(!files.process_lives(u32::MAX));
    }
}
