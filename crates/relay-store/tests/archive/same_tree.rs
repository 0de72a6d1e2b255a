//! The same history gives the same tree, however it was gathered into commits, whatever died on the way, and whatever was
//! erased from it.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use relay_core::domain::event::{Happened, Number};
use relay_core::domain::name::{AgentName, ThreadId};
use relay_core::domain::time::Timestamp;
use relay_store::archive::{Archive, Sizes};

use super::{Place, git};

const BATCHINGS: [Sizes; 3] =
    [Sizes { batch: 1, round: 10_000 }, Sizes { batch: 7, round: 20 }, Sizes { batch: 100, round: 10_000 }];

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Send { thread: usize, body: String },
    Reserve { pattern: String },
    Ack { which: usize },
    Redact { which: usize },
    Drain { archive: usize },
    Crash { archive: usize, how: Crash },
}

/// What a death or a power cut leaves behind in an archive.
#[derive(Clone, Copy, Debug)]
enum Crash {
    /// The packs were written, and the ref was not moved.
    BeforeTheRef,
    RefIsLost,
    RefIsEmpty,
    Locks,
    HalfAPack,
    HalfOfANewOne,
    AllIsGone,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let crash = prop_oneof![
        Just(Crash::BeforeTheRef),
        Just(Crash::RefIsLost),
        Just(Crash::RefIsEmpty),
        Just(Crash::Locks),
        Just(Crash::HalfAPack),
        Just(Crash::HalfOfANewOne),
        Just(Crash::AllIsGone),
    ];
    let step = prop_oneof![
        6 => (0..3usize, "[ -~\n]{0,80}").prop_map(|(thread, body)| Step::Send { thread, body }),
        2 => "[a-z]{1,8}/[a-z*]{1,8}".prop_map(|pattern| Step::Reserve { pattern }),
        1 => any::<usize>().prop_map(|which| Step::Ack { which }),
        1 => any::<usize>().prop_map(|which| Step::Redact { which }),
        4 => (0..3usize).prop_map(|archive| Step::Drain { archive }),
        2 => (0..3usize, crash).prop_map(|(archive, how)| Step::Crash { archive, how }),
    ];
    proptest::collection::vec(step, 4..40)
}

/// A store with three archives, each gathered in another way.
struct History {
    place: Place,
    archives: Vec<Archive>,
    sent: Vec<Number>,
}

impl History {
    fn new() -> Self {
        let place = Place::new();
        let folder = |n: usize| {
            let folder = place.folder.join(format!("archive-{n}"));
            std::fs::create_dir(&folder).unwrap();
            folder
        };
        let archives = BATCHINGS.iter().enumerate().map(|(n, sizes)| Archive::of(&folder(n)).sized(*sizes)).collect();
        History { place, archives, sent: Vec::new() }
    }

    fn take(&mut self, step: &Step) {
        let agent = AgentName::parse("RedForest").unwrap();
        match step {
            Step::Send { thread, body } => {
                let number = self.place.send(&format!("bd-{thread}"), &format!("Topic {thread}"), body);
                self.sent.push(number);
            }
            Step::Reserve { pattern } => {
                self.place.append("RedForest", granted(agent, pattern), Vec::new());
            }
            Step::Ack { which } => {
                let messages = self.sent.get(which % self.sent.len().max(1)).copied().into_iter().collect();
                let agent = relay_core::domain::name::Party::Agent(agent);
                self.place.append("RedForest", Happened::MailAcked { agent, messages }, Vec::new());
            }
            Step::Redact { which } if !self.sent.is_empty() => {
                let message = self.sent.remove(which % self.sent.len());
                let what = Happened::MessageRedacted { message, copies: Vec::new(), why: None };
                self.place.append("BlueLake", what, Vec::new());
            }
            Step::Redact { .. } => {}
            Step::Drain { archive } => {
                self.place.drain(&self.archives[*archive]);
            }
            Step::Crash { archive, how } => self.crash(&self.archives[*archive], *how),
        }
    }

    fn crash(&self, archive: &Archive, how: Crash) {
        let path = archive.path();
        if !path.exists() {
            return;
        }
        let reference = path.join("refs/heads/main");
        match how {
            Crash::BeforeTheRef => {
                let before = std::fs::read(&reference).ok();
                self.place.drain(archive);
                match before {
                    // A redaction makes a new repository, which knows nothing of the old commit.
                    Some(before) if is_known(path, &before) => std::fs::write(reference, before).unwrap(),
                    _ => std::fs::remove_file(reference).unwrap_or_default(),
                }
            }
            Crash::RefIsLost => std::fs::remove_file(reference).unwrap_or_default(),
            Crash::RefIsEmpty => std::fs::write(reference, "").unwrap(),
            Crash::Locks => {
                for lock in ["refs/heads/main.lock", "refs/relay/draft.lock"] {
                    std::fs::write(path.join(lock), "").unwrap();
                }
            }
            Crash::HalfAPack => std::fs::write(path.join("objects/pack/tmp_pack_half"), "PACK").unwrap(),
            Crash::HalfOfANewOne => {
                std::fs::create_dir_all(path.with_file_name("archive.anew.git/objects")).unwrap();
            }
            Crash::AllIsGone => std::fs::remove_dir_all(path).unwrap(),
        }
    }

    fn tree(&self, archive: &Archive) -> String {
        self.place.drain(archive);
        git(archive.path(), &["fsck", "--strict"]);
        git(archive.path(), &["rev-parse", "main^{tree}"])
    }
}

fn is_known(repository: &Path, commit: &[u8]) -> bool {
    let commit = String::from_utf8_lossy(commit).trim().to_owned();
    let found = std::process::Command::new("git").arg("-C").arg(repository).args(["cat-file", "-e", &commit]).status();
    found.unwrap().success()
}

fn granted(agent: AgentName, pattern: &str) -> Happened {
    let at = |millis: i64| Timestamp::from_millis(1_794_700_800_000 + millis);
    Happened::ReservationGranted {
        agent,
        pattern: pattern.to_owned(),
        prefix: String::new(),
        exclusive: true,
        reason: Some(ThreadId::parse("bd-1").unwrap()),
        ttl_ms: 3_600_000,
        first_granted_at: at(0),
        expires_at: at(3_600_000),
        overlaps: Vec::new(),
        conflicts: Vec::new(),
    }
}

/// Each case runs git many times, so that these are counted by themselves.
fn cases() -> u32 {
    let times = std::env::var("RELAY_TIMES").map_or(1, |times| times.parse().unwrap());
    40 * times
}

#[test]
fn same_history_same_tree() {
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let mut history = History::new();
        for step in &steps {
            history.take(step);
        }
        let anew = history.place.folder.join("anew");
        std::fs::create_dir(&anew).unwrap();
        let expected = history.tree(&Archive::of(&anew));
        let found: Vec<String> = history.archives.iter().map(|archive| history.tree(archive)).collect();
        prop_assert_eq!(found, vec![expected; 3], "in {:?}", PathBuf::from(&history.place.folder));
        Ok(())
    });
    outcome.unwrap_or_else(|fault| panic!("{fault}"));
}
