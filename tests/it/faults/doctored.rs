//! The oracle's own test: it objects to every history that somebody tampered with, and to none that nobody did.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::oracle::{Archive, Done, Ledger, connect, findings};
use crate::bus::Bus;

/// A bus with mail, an acknowledgement and a claim, in the archive but for the last message.
struct Told {
    bus: Bus,
    acknowledged: Vec<Done>,
}

impl Told {
    fn new() -> Self {
        let told = Told { bus: Bus::with(&["BlueLake", "RedForest"]), acknowledged: Vec::new() };
        let mut told = told.sends("K1", "first").sends("K2", "second");
        let first = told.acknowledged[0].id.to_string();
        told.says("RedForest", "K3", "", &["ack", &first]);
        told.says("BlueLake", "K4", "src/a.rs", &["reserve", "src/a.rs"]);
        told.bus.relay("", ["drain", "--wait"]).success();
        told.sends("K5", "third")
    }

    fn sends(mut self, key: &str, body: &str) -> Self {
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body];
        self.says("BlueLake", key, body, &args);
        self
    }

    fn says(&mut self, agent: &str, key: &str, what: &str, args: &[&str]) {
        let args = [args, &["--idempotency-key", key]].concat();
        let answer = self.bus.relay(agent, args).success().json();
        self.acknowledged.push(Done::new(agent, key, what, &answer));
    }

    fn drained(self) -> Self {
        self.bus.relay("", ["drain", "--wait"]).success();
        self
    }

    fn sql(&self, sql: &str) {
        connect(&self.bus.store()).and_then(|store: Connection| store.execute_batch(sql)).unwrap();
    }

    fn repository(&self) -> PathBuf {
        self.bus.store().join("archive.git")
    }

    fn git(&self, args: &[&str]) -> String {
        String::from_utf8(self.bus.git_in(&self.repository(), args).stdout).unwrap().trim().to_owned()
    }

    /// The oracle says this, and nothing is compared when the bus is dropped.
    #[track_caller]
    fn objects(self, archive: Archive, expected: &str) {
        let said = findings(&self.bus.store(), &self.acknowledged, archive);
        self.bus.forget();
        assert!(said.iter().any(|line| line.contains(expected)), "{expected:?} is not among {said:#?}");
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn what_nobody_tampered_with_is_whole() {
    let told = Told::new();
    assert_eq!(findings(&told.bus.store(), &told.acknowledged, Archive::MayLag), Vec::<String>::new());
    let told = told.drained();
    assert_eq!(findings(&told.bus.store(), &told.acknowledged, Archive::Complete), Vec::<String>::new());
}

#[test]
fn a_ledger_gives_back_what_was_noted_by_many() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::at(folder.path().join("ledger"));
    let done = |agent: usize, id: u64| Done {
        verb: "send".into(),
        agent: format!("Agent{agent}"),
        key: format!("\"K\"\n{agent}-{id}"),
        id,
        what: "x".repeat(64 + agent),
    };
    std::thread::scope(|scope| {
        for agent in 0..4 {
            let ledger = &ledger;
            scope.spawn(move || (0..200).for_each(|id| ledger.note(&done(agent, id))));
        }
    });
    let read = ledger.read();
    for agent in 0..4 {
        let of_agent: Vec<&Done> = read.iter().filter(|found| found.agent == format!("Agent{agent}")).collect();
        assert_eq!(of_agent, (0..200).map(|id| done(agent, id)).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_lost_message_is_missed() {
    // The store as it was before the last message was acknowledged.
    let mut told = Told::new();
    let (store, older) = (told.bus.store(), told.bus.path("older"));
    copy(&store, &older);
    told.says("BlueLake", "K6", "src/b.rs", &["reserve", "src/b.rs"]);
    let told = told.sends("K7", "lost");
    std::fs::remove_dir_all(&store).unwrap();
    copy(&older, &store);
    let said = findings(&told.bus.store(), &told.acknowledged, Archive::MayLag);
    assert_eq!(said.len(), 2, "{said:#?}");
    told.objects(Archive::MayLag, "acknowledged and lost");
}

#[test]
fn a_lost_acknowledgement_is_missed() {
    let told = Told::new();
    told.sql("UPDATE deliveries SET acked_at = NULL");
    told.objects(Archive::MayLag, "acknowledged and lost: Done { verb: \"ack\"");
}

#[test]
fn another_message_under_the_same_number_is_no_substitute() {
    let mut told = Told::new();
    told.acknowledged[1].key = "K0".into();
    told.objects(Archive::MayLag, "acknowledged and lost, its number is that of");
}

#[test]
fn a_message_that_is_there_twice_is_found() {
    let told = Told::new();
    told.sql(
        "UPDATE events SET key = 'K1', payload = replace(payload, '\"key\":\"K2\"', '\"key\":\"K1\"') WHERE key = 'K2'",
    );
    told.objects(Archive::MayLag, "twice: message_sent of BlueLake with the key K1");
}

#[test]
fn an_altered_body_is_found() {
    let told = Told::new();
    told.sql("UPDATE texts SET text = 'another' WHERE text = 'second'");
    told.objects(Archive::MayLag, "acknowledged and altered");
}

#[test]
fn an_altered_claim_is_found() {
    let told = Told::new();
    told.sql("UPDATE reservations SET pattern = 'src'");
    told.objects(Archive::MayLag, "acknowledged and altered");
}

#[test]
fn a_gap_in_the_numbers_is_found() {
    let told = Told::new();
    told.sql("PRAGMA foreign_keys = OFF; DELETE FROM events WHERE number = 2");
    told.objects(Archive::MayLag, "a gap before #3");
}

#[test]
fn a_projection_that_no_event_explains_is_found() {
    let told = Told::new();
    told.sql("UPDATE deliveries SET read_at = 5");
    told.objects(Archive::MayLag, "verify: deliveries");
}

#[test]
fn a_damaged_page_is_found() {
    let told = Told::new().drained();
    let path = told.bus.store().join("relay.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.windows(6).rposition(|window| window == b"second").unwrap() / 4096 * 4096;
    bytes[at + 8..at + 64].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    told.objects(Archive::MayLag, "");
}

#[test]
fn a_flipped_byte_in_a_pack_is_found() {
    let told = Told::new().drained();
    let packs = std::fs::read_dir(told.repository().join("objects/pack")).unwrap();
    let pack = packs.map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "pack"));
    let pack = pack.unwrap();
    let mut bytes = std::fs::read(&pack).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::remove_file(&pack).unwrap();
    std::fs::write(&pack, bytes).unwrap();
    told.objects(Archive::Complete, "git fsck");
}

/// Puts a commit on top that alters a file and says what the one below it says.
fn forge(told: &Told, path: &str, text: Option<&str>, message: &str) {
    let index = told.bus.path("index");
    let script = format!(
        "export GIT_INDEX_FILE={index}; git read-tree main && {} && tree=$(git write-tree) &&
         git update-ref refs/heads/main $(git commit-tree $tree -p main -m \"$0\")",
        match text {
            Some(text) => format!(
                "git update-index --add --cacheinfo 100644,$(printf '%s' '{text}' | git hash-object -w --stdin),{path}"
            ),
            None => format!("printf '0 {}\\t{path}\\n' | git update-index --index-info", "0".repeat(40)),
        },
        index = index.display(),
    );
    let mut command = std::process::Command::new("sh");
    told.bus.environment(&mut command);
    let identity = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"];
    command.envs(identity.map(|name| (name, "somebody"))).env("GIT_DIR", told.repository());
    let output = command.args(["-c", &script, message]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_foreign_commit_is_found() {
    let told = Told::new().drained();
    forge(&told, "README", Some("hello"), "hello");
    told.objects(Archive::Complete, "a foreign commit");
}

/// A letter with the wrong body.
const LETTER: &str = "---\nnumber: 4\nsubject: \"Login\"\n---\n\nfirst!\n";

#[test]
fn a_file_that_was_altered_added_or_removed_under_a_forged_cursor_is_found() {
    for (path, text, expected) in [
        ("events/0/0/3.json", Some("{}"), "the archive's events/0/0/3.json differs"),
        ("events/0/0/3.json", Some("{}"), "the archive does not say of #3 what the store says"),
        ("threads/a2/bd-1/0/4.md", Some(LETTER), "the archive does not say of #4 what the store says"),
        ("events/0/0/3.json", None, "the archive lacks events/0/0/3.json"),
        ("events/0/0/99.json", Some("{}"), "the archive has events/0/0/99.json, and nobody put it there"),
    ] {
        let told = Told::new();
        let tip: u64 = told.acknowledged.last().unwrap().id;
        let hash: String = connect(&told.bus.store())
            .and_then(|store| {
                store.query_row("SELECT lower(hex(hash)) FROM events WHERE number = ?1", [tip], |row| row.get(0))
            })
            .unwrap();
        forge(&told, path, text, &format!("#{tip}\n\nRelay-Number: {tip}\nRelay-Chain: {hash}"));
        told.objects(Archive::Complete, expected);
    }
}

#[test]
fn an_archive_of_another_chain_is_found() {
    let told = Told::new();
    let tip = told.acknowledged.last().unwrap().id;
    let message = format!("#{tip}\n\nRelay-Number: {tip}\nRelay-Chain: {}", "0".repeat(64));
    forge(&told, "README", Some("hello"), &message);
    told.objects(Archive::MayLag, "the chain of the archive differs");
}

#[test]
fn an_archive_that_leads_is_found() {
    let told = Told::new();
    let (store, older) = (told.bus.store(), told.bus.path("older"));
    copy(&store, &older);
    let told = told.sends("K6", "fourth").drained();
    let newer = told.bus.path("newer.git");
    std::fs::rename(told.repository(), &newer).unwrap();
    std::fs::remove_dir_all(&store).unwrap();
    copy(&older, &store);
    std::fs::remove_dir_all(told.repository()).unwrap();
    std::fs::rename(&newer, told.repository()).unwrap();
    told.objects(Archive::MayLag, "the archive leads");
}

#[test]
fn an_archive_that_lags_or_is_gone_is_not_complete() {
    Told::new().objects(Archive::Complete, "the archive lags");
    let told = Told::new();
    std::fs::remove_dir_all(told.repository()).unwrap();
    told.objects(Archive::Complete, "the archive: it is not there");
    let told = Told::new();
    told.git(&["update-ref", "-d", "refs/heads/main"]);
    told.objects(Archive::Complete, "the archive has no ref");
}

#[test]
fn what_lies_about_in_an_archive_is_found() {
    for name in [
        "HEAD.lock",
        "refs/heads/main.lock",
        "objects/pack/tmp_pack_1",
        "objects/pack/pack-1.keep",
        "objects/pack/pack-1.pack",
    ] {
        let told = Told::new().drained();
        std::fs::write(told.repository().join(name), "").unwrap();
        told.objects(Archive::Complete, "left lying about");
    }
}
