//! The archive against real git: what a plain clone shows, how it goes on, and what it refuses.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;
mod rebuild;
mod same_tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Number, Recipient, Text};
use relay_core::domain::limits::Limits;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::store::{Errand, Store};
use relay_store::Home;
use relay_store::archive::{Archive, Sizes};
use relay_store::sqlite::Sqlite;
use tempfile::TempDir;

/// A project with two agents and a store of its own.
struct Place {
    _root: TempDir,
    folder: PathBuf,
    store: Sqlite,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = Home::new(root.path().join("home"), Limits::default(), 1_794_700_800_000);
        let project = ProjectKey::resolved("/srv/app");
        let store = home.open_or_create(&project).unwrap();
        let place = Place { folder: home.folder(&project), store, _root: root };
        for agent in ["BlueLake", "RedForest"] {
            place.append(agent, registered(agent), Vec::new());
        }
        place
    }

    fn append(&self, actor: &str, what: Happened, texts: Vec<Text>) -> Number {
        let errand = Errand { verb: "test", agent: actor, wait: Span::seconds(60), durable: true };
        let mut tx = self.store.begin(errand).unwrap();
        let actor = Party::Agent(AgentName::parse(actor).unwrap());
        let at = Timestamp::from_millis(1_794_700_800_000 + i64::try_from(tx.tip().unwrap().number).unwrap() * 1000);
        let number = tx.append(at, &actor, Some("key"), what, texts).unwrap();
        tx.commit().unwrap();
        number
    }

    fn send(&self, thread: &str, subject: &str, body: &str) -> Number {
        let text = |field, salt, text: &str| Text { field, salt: [salt; 16], text: text.to_owned() };
        let texts = vec![text("subject", 1, subject), text("body", 2, body)];
        let what = Happened::MessageSent {
            thread: ThreadId::parse(thread).unwrap(),
            from: Party::Agent(AgentName::parse("BlueLake").unwrap()),
            recipients: vec![Recipient {
                party: Party::Agent(AgentName::parse("RedForest").unwrap()),
                line: Line::To,
                held: false,
            }],
            subject: texts[0].hash(),
            body: texts[1].hash(),
            importance: Importance::Normal,
            ack_within_ms: None,
            reply_to: None,
            twin: None,
        };
        self.append("BlueLake", what, texts)
    }

    fn archive(&self) -> Archive {
        Archive::of(&self.folder)
    }

    fn drain(&self, archive: &Archive) -> Number {
        let lease = archive.lease().unwrap();
        archive.drain(&lease, &self.store, |_, _| {}).unwrap()
    }

    /// What git itself says about the archive.
    fn git(&self, args: &[&str]) -> String {
        git(&self.folder.join("archive.git"), args)
    }
}

fn registered(agent: &str) -> Happened {
    Happened::AgentRegistered {
        agent: AgentName::parse(agent).unwrap(),
        credential: "uid:1".into(),
        program: None,
        model: None,
        task: None,
        session: None,
        parent: None,
        policy: Policy::Auto,
    }
}

fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_plain_clone_shows_the_history() {
    let place = Place::new();
    let id = place.send("bd-1", "Login: done?", "The session expires.\n\n--- and so on");
    assert_eq!(place.drain(&place.archive()), id);
    let clone = place.folder.join("clone");
    git(&place.folder, &["clone", "--quiet", "archive.git", clone.to_str().unwrap()]);
    let letter = std::fs::read_to_string(clone.join(format!("threads/a2/bd-1/0/{id}.md"))).unwrap();
    assert!(letter.contains("\nsubject: \"Login: done?\"\n"), "{letter}");
    assert!(letter.ends_with("---\n\nThe session expires.\n\n--- and so on\n"), "{letter}");
    for number in 1..=id {
        assert!(clone.join(format!("events/0/0/{number}.json")).exists(), "#{number}");
    }
    let log = git(&clone, &["log", "--format=%an <%ae> %cI%n%B"]);
    assert!(log.starts_with("relay <relay@localhost> 2026-11-1"), "{log}");
    assert!(log.contains(&format!("#{id} BlueLake wrote to RedForest in bd-1\n")), "{log}");
    assert!(log.contains(&format!("\nRelay-Number: {id}\nRelay-Chain: ")), "{log}");
    assert_eq!(git(&clone, &["symbolic-ref", "--short", "HEAD"]), "main\n");
}

#[test]
fn it_goes_on_where_it_stopped_and_does_nothing_twice() {
    let place = Place::new();
    place.drain(&place.archive());
    let first = place.git(&["rev-parse", "main"]);
    place.drain(&place.archive());
    assert_eq!(place.git(&["rev-parse", "main"]), first, "nothing new, nothing written");
    let id = place.send("bd-1", "s", "b");
    assert_eq!(place.drain(&place.archive()), id);
    assert_eq!(place.git(&["rev-parse", "main^"]), first);
    assert_eq!(place.git(&["fsck", "--strict", "--full"]), "");
    assert_eq!(place.git(&["count-objects", "-v"]).lines().next(), Some("count: 0"), "packs, no loose objects");
}

#[test]
fn the_tree_does_not_depend_on_how_events_are_gathered() {
    let place = Place::new();
    for index in 0..250 {
        place.send(&format!("bd-{}", index % 7), "Subject", &format!("body {index}"));
    }
    let mut trees = Vec::new();
    for sizes in [Sizes { batch: 100, round: 10_000 }, Sizes { batch: 1, round: 7 }, Sizes { batch: 33, round: 99 }] {
        let _ = std::fs::remove_dir_all(place.folder.join("archive.git"));
        place.drain(&place.archive().sized(sizes));
        trees.push(place.git(&["rev-parse", "main^{tree}"]));
        let commits: usize = place.git(&["rev-list", "--count", "main"]).trim().parse().unwrap();
        assert!(commits >= 253 / usize::try_from(sizes.batch).unwrap(), "{commits}");
    }
    assert!(trees.windows(2).all(|pair| pair[0] == pair[1]), "{trees:?}");
}

#[test]
fn only_one_drains() {
    let place = Place::new();
    let held = place.archive().try_lease().unwrap();
    assert!(held.is_some());
    assert!(place.archive().try_lease().unwrap().is_none());
    drop(held);
    place.archive().lease().unwrap();
}

#[test]
fn an_archive_of_another_history_is_left_alone() {
    let check = |spoil: &dyn Fn(&Place), expected: &str| {
        let place = Place::new();
        place.send("bd-1", "s", "b");
        place.drain(&place.archive());
        spoil(&place);
        place.send("bd-1", "s", "b");
        let before = place.git(&["rev-parse", "main"]);
        let archive = place.archive();
        let lease = archive.lease().unwrap();
        let refusal = archive.drain(&lease, &place.store, |_, _| {}).unwrap_err();
        assert_eq!(refusal.code, Code::ArchiveDiverged);
        let expected = expected.replace("COMMIT", before.trim());
        assert!(refusal.message.contains(&expected), "{refusal}");
        assert_eq!(place.git(&["rev-parse", "main"]), before);
    };
    let commit = |place: &Place, message: &str| {
        let tree = place.git(&["rev-parse", "main^{tree}"]);
        let by = ["-c", "user.name=Somebody", "-c", "user.email=some@body"];
        let made = place.git(&[&by[..], &["commit-tree", "-p", "main", "-m", message, tree.trim()]].concat());
        place.git(&["update-ref", "refs/heads/main", made.trim()]);
    };
    check(&|place| commit(place, "Somebody was here"), "its newest commit COMMIT is not relay's");
    let trailer = |number: u64| format!("x\n\nRelay-Number: {number}\nRelay-Chain: {}", "ab".repeat(32));
    check(&|place| commit(place, &trailer(3)), "#3 is another event there");
    check(&|place| commit(place, &trailer(99)), "it goes to #99 and the store to #5");
}

#[test]
fn the_lock_of_a_dead_writer_is_no_obstacle() {
    let place = Place::new();
    place.drain(&place.archive());
    for name in ["refs/heads/main.lock", "refs/relay/draft.lock"] {
        std::fs::write(place.folder.join("archive.git").join(name), "").unwrap();
    }
    let id = place.send("bd-1", "s", "b");
    assert_eq!(place.drain(&place.archive()), id);
}

#[test]
fn an_archive_that_is_gone_is_made_again() {
    let place = Place::new();
    place.send("bd-1", "s", "b");
    place.drain(&place.archive());
    let tree = place.git(&["rev-parse", "main^{tree}"]);
    std::fs::remove_dir_all(place.folder.join("archive.git")).unwrap();
    place.drain(&place.archive());
    assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
    // And where only the ref is gone, as a power cut may leave it.
    std::fs::write(place.folder.join("archive.git/refs/heads/main"), "").unwrap();
    place.drain(&place.archive());
    assert_eq!(place.git(&["rev-parse", "main^{tree}"]), tree);
}

/// Every object of the repository, whatever pack it is in.
fn objects(repository: &Path) -> BTreeSet<String> {
    let listed = git(repository, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    listed.lines().map(str::to_owned).collect()
}

fn packs(repository: &Path) -> usize {
    let files = std::fs::read_dir(repository.join("objects/pack")).unwrap();
    files.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|ending| ending == "pack")).count()
}

#[test]
fn many_packs_are_rolled_up_and_nothing_is_lost() {
    let place = Place::new();
    let archive = place.archive();
    let mut most = 0;
    for round in 0..60 {
        place.send("bd-1", "Login", &format!("round {round}"));
        let before = if archive.path().exists() { objects(archive.path()) } else { BTreeSet::new() };
        place.drain(&archive);
        assert!(objects(archive.path()).is_superset(&before), "round {round}");
        most = most.max(packs(archive.path()));
    }
    assert_eq!(most, 50);
    assert!(packs(archive.path()) < 12);
    git(archive.path(), &["fsck", "--strict", "--full"]);
}

#[test]
fn what_a_dead_git_left_is_cleared_away() {
    let place = Place::new();
    let archive = place.archive();
    place.drain(&archive);
    let left = ["objects/pack/tmp_pack_abc", "objects/pack/tmp_idx_abc", "fast_import_crash_123"];
    for name in left {
        std::fs::write(archive.path().join(name), "half").unwrap();
    }
    place.drain(&archive);
    assert_eq!(left.map(|name| archive.path().join(name).exists()), [false; 3]);
}
