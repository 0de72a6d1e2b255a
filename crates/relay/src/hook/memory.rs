//! What a session was told, and what was done for it: small files beside the stores, never synced. Losing one repeats a
//! warning, no more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use relay_core::domain::event::Number;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::domain::worktree::Head;
use relay_store::filesystem::{own_text, private_file, private_folder};
use serde::{Deserialize, Serialize};

use super::sessions::short;

/// The same again within this time is no other event.
const ECHO: Span = Span::seconds(5);
/// An idle session is woken at most so often within this time.
const WAKES: usize = 6;
const WAKING: Span = Span::hours(1);
/// A memory is no longer than this.
const MOST_BYTES: u64 = 1024 * 1024;
/// So many things are remembered to have been told; the oldest are told again.
const MOST_TOLD: usize = 500;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// What was told once, by its key.
    told: Vec<String>,
    /// How often that was forgotten.
    forgotten: u64,
    /// What each work tree had checked out when the session last looked.
    pub heads: BTreeMap<String, Head>,
    /// Claims that hooks made for it.
    pub claims: BTreeMap<Number, Made>,
    /// The checkouts that its calls hold for as long as they run, by the calls.
    pub checkouts: BTreeMap<String, Number>,
    /// How often in a row git took too long to look at after a command.
    pub slow: u32,
    /// It was told who it is.
    pub introduced: bool,
    /// When it was woken lately.
    pub wakes: Vec<Timestamp>,
    /// Counts what the session did, so that one who waits for it to be idle sees that it is not.
    pub steps: u64,
    /// What was told a moment ago, by its digest, and when.
    lately: Vec<(String, Timestamp)>,
    /// Who waits to wake it.
    pub waiter: Option<u32>,
}

impl Memory {
    /// Whether this is news. From now on it is not.
    pub fn is_news(&mut self, key: String) -> bool {
        if self.told.contains(&key) {
            return false;
        }
        self.told.push(key);
        let excess = self.told.len().saturating_sub(MOST_TOLD);
        self.told.drain(..excess);
        true
    }

    /// Whether the very same was told a moment ago: some programs run the hooks of several configurations.
    pub fn is_echo(&mut self, told: &str, now: Timestamp) -> bool {
        let told = short(told);
        self.lately.retain(|(_, at)| (Span::millis(0)..=ECHO).contains(&now.since(*at)));
        let is_echo = self.lately.iter().any(|(known, _)| *known == told);
        self.lately.push((told, now));
        is_echo
    }

    /// Whether the session may be woken once more. Two that thank each other would do so all night.
    pub fn may_wake(&mut self, now: Timestamp) -> bool {
        self.wakes.retain(|at| (Span::millis(0)..=WAKING).contains(&now.since(*at)));
        let may = self.wakes.len() < WAKES;
        if may {
            self.wakes.push(now);
        }
        may
    }

    /// Takes over what was told and seen by a hook that read an earlier state; others may have added to it meanwhile.
    pub fn take_over(&mut self, read: &Memory) {
        if read.forgotten > self.forgotten {
            (self.told, self.introduced, self.forgotten) = (Vec::new(), false, read.forgotten);
        }
        for key in &read.told {
            self.is_news(key.clone());
        }
        self.heads.extend(read.heads.clone());
        self.introduced |= read.introduced;
    }

    /// Forgets what was told: whoever was compacted or cleared has forgotten it too.
    pub fn forget_told(&mut self) {
        self.told.clear();
        self.introduced = false;
        self.forgotten += 1;
    }
}

/// A claim that a hook made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// The work tree that the file is in.
    pub root: String,
    pub pattern: String,
}

/// The memory of one session, or of one of its subagents.
pub struct Book {
    path: PathBuf,
}

impl Book {
    pub fn of(home: &Path, who: &str) -> Self {
        Book { path: home.join("hooks").join(format!("{}.json", short(who))) }
    }

    pub fn read(&self) -> Memory {
        let text = own_text(&self.path, MOST_BYTES).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Changes it under a lock: hooks of one session run side by side.
    pub fn change(&self, change: impl FnOnce(&mut Memory)) {
        let _ = self.open().and_then(|mut file| {
            let mut text = String::new();
            file.read_to_string(&mut text)?;
            let before: Memory = serde_json::from_str(&text).unwrap_or_default();
            let mut after = before.clone();
            change(&mut after);
            if after == before {
                return Ok(());
            }
            file.rewind()?;
            file.set_len(0)?;
            file.write_all(serde_json::to_string(&after).unwrap_or_default().as_bytes())
        });
    }

    fn open(&self) -> std::io::Result<File> {
        if let Some(folder) = self.path.parent() {
            private_folder(folder).map_err(|refusal| std::io::Error::other(refusal.to_string()))?;
        }
        let file = private_file(&self.path)?;
        file.lock()?;
        Ok(file)
    }

    /// The session is over.
    pub fn burn(&self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_is_news_once() {
        let mut memory = Memory::default();
        assert!(memory.is_news("met 7".to_owned()));
        assert!(!memory.is_news("met 7".to_owned()));
        for index in 0..MOST_TOLD {
            assert!(memory.is_news(index.to_string()));
        }
        assert!(memory.is_news("met 7".to_owned()), "long ago");
        memory.forget_told();
        assert!(memory.is_news("met 7".to_owned()));
    }

    #[test]
    fn a_session_is_woken_so_often_in_an_hour_and_no_more() {
        let mut memory = Memory::default();
        let at = |minute: i64| Timestamp::from_millis(minute * 60_000);
        assert!((0..6).all(|minute| memory.may_wake(at(minute))));
        assert!(!memory.may_wake(at(6)));
        assert!(memory.may_wake(at(61)));
    }

    #[test]
    fn the_same_again_is_an_echo_for_a_moment() {
        let mut memory = Memory::default();
        let at = Timestamp::from_millis;
        assert!(!memory.is_echo("one", at(0)));
        assert!(memory.is_echo("one", at(4_000)));
        assert!(!memory.is_echo("two", at(4_000)));
        assert!(memory.is_echo("one", at(4_000)) && memory.is_echo("two", at(4_001)), "side by side");
        assert!(!memory.is_echo("one", at(9_002)), "a moment later it is another event");
        assert!(!memory.is_echo("one", at(1_000)), "the clock was set back");
    }

    #[test]
    fn what_hooks_do_side_by_side_is_all_remembered() {
        let home = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        std::thread::scope(|scope| {
            for index in 0..20 {
                let book = Book::of(home.path(), "session");
                let made = Made { root: "/repo".to_owned(), pattern: "a".to_owned() };
                scope.spawn(move || book.change(|memory| drop(memory.claims.insert(index, made))));
            }
        });
        let book = Book::of(home.path(), "session");
        assert_eq!(book.read().claims.len(), 20);
        assert_eq!(Book::of(home.path(), "other").read(), Memory::default());
        book.burn();
        assert_eq!(book.read(), Memory::default());
    }
}
