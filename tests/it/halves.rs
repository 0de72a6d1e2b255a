//! Across projects, when one of the two is busy at the wrong moment: an error says what is so, and nothing happens twice
//! or in one project only.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bus::Run;
use crate::crossing::Two;
use crate::terminal::{column, text};
use crate::unchanged::{copy_of, refused};

const SEND: [&str; 9] = ["send", "--to", "RedForest@other", "--thread", "bd-1", "--subject", "Login", "--body", "text"];
const ASK: [&str; 3] = ["link", "--target", "RedForest@other"];

impl Two {
    pub fn store(&self, folder: &str) -> PathBuf {
        let listed = self.here("", &["project", "list"]).success().result();
        let key = self.key(folder);
        let project = listed["projects"].as_array().unwrap().iter().find(|project| project["key"] == key).unwrap();
        std::fs::canonicalize(project["store"].as_str().unwrap()).unwrap()
    }

    /// The gate of a project, held by the test.
    pub fn hold(&self, folder: &str) -> File {
        let gate = File::options().read(true).write(true).open(self.store(folder).join("gate")).unwrap();
        gate.lock().unwrap();
        gate
    }

    /// A command of BlueLake's that comes to the gate of the other project, and is let in after `meanwhile`.
    fn interrupted<T>(&self, args: &[&str], meanwhile: impl FnOnce() -> T) -> Run {
        std::fs::write(self.bus.home().join("config.toml"), "[limits]\ngate_wait = \"4s\"\n").unwrap();
        let gate = self.store("other").join("gate");
        let held = self.hold("other");
        let command = self.bus.spawn("BlueLake", args).until(|pid| has_open(pid, &gate));
        let until_the_end = meanwhile();
        drop(held);
        let run = command.finish();
        drop(until_the_end);
        run
    }

    fn notes(&self, folder: &str) -> u64 {
        let copy = copy_of(&self.store(folder));
        let store = rusqlite::Connection::open(copy.path().join("relay.db")).unwrap();
        store.query_row("SELECT count(*) FROM crossings", [], |row| row.get(0)).unwrap()
    }

    /// The states of the links of BlueLake and of RedForest.
    fn both_links(&self) -> [Vec<Value>; 2] {
        [("repo", "BlueLake"), ("other", "RedForest")].map(|(folder, agent)| {
            column(&self.at(folder, agent, &["link", "--list"]).success().result()["links"], "state")
        })
    }
}

/// Whether a process has a file open.
pub fn has_open(pid: u32, file: &Path) -> bool {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).any(|path| path == file)
}

#[track_caller]
fn check_one_of_each(two: &Two) {
    let copies = (two.outbox().len(), two.inbox("other", "RedForest").len());
    assert_eq!(copies, (1, 1), "the sender's and the recipient's copies");
}

#[test]
fn a_delivered_send_whose_copy_cannot_be_kept_does_not_say_that_nothing_happened() {
    let two = Two::linked();
    let error = two.interrupted(&SEND, || two.hold("repo")).fails("STORE_IO").error();
    assert_eq!(two.inbox("other", "RedForest").len(), 1);
    let key = text(&error["idempotency_key"]);
    let again = text(&error["playbook"].as_array().unwrap().last().unwrap()["why"]);
    assert!(again.ends_with(&format!("--idempotency-key {key}")), "{error}");
    assert!(text(&error["message"]).contains(&two.key("other")), "{error}");
    let keyed = [SEND.as_slice(), &["--idempotency-key", &key]].concat();
    let first = two.here("BlueLake", &keyed).success().result();
    assert_eq!(first["message"]["id"], two.outbox()[0]["id"]);
    assert_eq!(two.here("BlueLake", &keyed).success().result(), first);
    check_one_of_each(&two);
}

#[test]
fn whoever_was_let_through_keeps_the_copy_of_what_was_delivered() {
    for (stop, agent, back) in [
        (["retire", "BlueLake"], "BlueLake", ["start"].as_slice()),
        (["suspend", "BlueLake"], "GreenHill", &["suspend", "BlueLake", "--lift"]),
    ] {
        let two = Two::linked();
        two.interrupted(&SEND, || two.here("GreenHill", &stop).success()).success();
        two.here("BlueLake", &["poll"]).fails(if stop[0] == "retire" { "AGENT_RETIRED" } else { "AGENT_SUSPENDED" });
        two.here(agent, back).success();
        check_one_of_each(&two);
    }
}

#[test]
fn a_recorded_request_whose_copy_cannot_be_kept_is_in_both_projects_after_the_next_command() {
    for keyed in [true, false] {
        let two = Two::new();
        let error = two.interrupted(&ASK, || two.hold("repo")).fails("STORE_IO").error();
        assert_eq!(two.both_links(), [vec![], vec![Value::from("requested")]]);
        if keyed {
            let key = text(&error["idempotency_key"]);
            let asked = two.here("BlueLake", &[ASK.as_slice(), &["--idempotency-key", &key]].concat()).success();
            assert_eq!(asked.result()["link"]["state"], "requested");
        } else {
            two.here("GreenHill", &["poll"]).success();
        }
        assert_eq!(two.both_links(), [["requested"], ["requested"]]);
        assert_eq!(two.notes("repo"), 0);
    }
}

#[test]
fn a_refused_request_is_not_made_later_because_its_note_stayed() {
    let two = Two::new();
    two.there("RedForest", &["policy", "block_all"]).success();
    two.interrupted(&ASK, || two.hold("repo")).fails("CONTACT_BLOCKED");
    two.there("RedForest", &["policy", "auto"]).success();
    two.here("GreenHill", &["poll"]).success();
    assert_eq!(two.both_links(), [Vec::<Value>::new(), Vec::new()]);
    assert_eq!(two.notes("repo"), 0);
}

#[test]
fn a_request_to_somebody_whom_one_blocks_asks_nobody() {
    let two = Two::linked();
    // The other project has not been told of the block yet.
    let gate = two.hold("other");
    std::fs::write(two.bus.home().join("config.toml"), "[limits]\ngate_wait = \"50ms\"\n").unwrap();
    two.here("BlueLake", &["link", "--target", "RedForest@other", "--block"]).success();
    two.here("BlueLake", &ASK).fails("CONTACT_BLOCKED");
    drop(gate);
    assert_eq!(two.both_links()[0], ["blocked"]);
}

#[test]
fn a_request_that_changes_nothing_leaves_no_note() {
    let two = Two::new();
    for _ in 0..3 {
        two.here("BlueLake", &ASK).success();
        assert_eq!(two.notes("repo"), 0);
    }
    two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
    for _ in 0..2 {
        two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
        two.here("BlueLake", &ASK).success();
        assert_eq!((two.notes("repo"), two.notes("other")), (0, 0));
    }
}

#[test]
fn the_human_is_nobodys_agent_and_is_not_reached_in_another_project() {
    let two = Two::linked();
    for to in ["human@other", "HUMAN@other", "RedForest@other,human@other"] {
        let mut args = SEND;
        args[2] = to;
        let error = refused(&two.bus, "BlueLake", &args, "RECIPIENT_NOT_FOUND", &["human"]).error();
        assert_eq!(error["details"]["nearest"][0], "human", "{to}");
    }
    let mut args = SEND;
    args[2] = "human@repo";
    two.here("BlueLake", &args).success();
}
