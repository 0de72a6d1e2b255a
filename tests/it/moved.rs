//! A moved project: whoever had to do with its agents goes on doing so, and its old path is free for another.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use crate::crossing::Two;
use crate::halves::has_open;
use crate::interrupted::cut_between;
use crate::listening::Server;
use crate::terminal::{column, text};

impl Two {
    /// Moves a repository and follows it; the answer of `project move`.
    fn moves(&self, from: &str, to: &str) -> Value {
        let old = self.key(from);
        std::fs::rename(self.bus.path(from), self.bus.path(to)).unwrap();
        std::fs::create_dir(self.bus.path(from)).unwrap();
        self.here("", &["project", "move", &old, &self.key(to)]).success().result()
    }

    /// Mail in both directions, each with an ack owed: what BlueLake wrote and what RedForest wrote, by the numbers that
    /// their recipients know.
    fn correspond(&self) -> (String, String) {
        self.send("RedForest@other", &["--ack-required"]).success();
        let back = ["send", "--to", "BlueLake@repo", "--thread", "x-1", "--subject", "API", "--body", "b"];
        self.there("RedForest", &[back.as_slice(), &["--ack-required"]].concat()).success();
        (self.inbox("other", "RedForest")[0]["id"].to_string(), self.inbox("repo", "BlueLake")[0]["id"].to_string())
    }

    fn states(&self, folder: &str, agent: &str) -> Vec<Value> {
        let outbox = self.at(folder, agent, &["look", "outbox"]).success().result();
        outbox["outbox"].as_array().unwrap().iter().map(|copy| copy["recipients"][0]["state"].clone()).collect()
    }

    fn link_of(&self, folder: &str, agent: &str) -> [String; 3] {
        let links = self.at(folder, agent, &["link", "--list"]).success().result();
        assert_eq!(links["links"].as_array().unwrap().len(), 1, "{links}");
        ["from", "to", "state"].map(|field| text(&links["links"][0][field]))
    }

    fn written(&self, folder: &str) -> Vec<Value> {
        let log = self.at(folder, "human", &["look", "events", "--after", "0"]).success().result();
        let messages = log["events"].as_array().unwrap().iter().filter(|event| event["kind"] == "message_sent");
        messages.map(|event| json!([event["actor"], event["data"]["recipients"][0]["party"]])).collect()
    }
}

/// A gate that is held is given up on at once; one that is free is not.
fn impatient(two: &Two) {
    std::fs::write(two.bus.home().join("config.toml"), "[limits]\ngate_wait = \"50ms\"\n").unwrap();
}

/// Everything that two linked agents do with each other, after the one's project was moved to `home`.
#[track_caller]
fn check_goes_on(two: &Two, home: &str, (wrote, got): &(String, String)) {
    let blue = format!("BlueLake@{}", two.key(home));
    two.there("RedForest", &["send", "--reply-to", wrote, "--body", "done"]).success();
    two.there("RedForest", &["ack", wrote]).success();
    two.at(home, "BlueLake", &["ack", got]).success();
    two.at(home, "BlueLake", &["send", "--reply-to", got, "--body", "thanks"]).success();
    let answer = two.inbox(home, "BlueLake").pop().unwrap();
    assert_eq!([&answer["thread"], &answer["body"]], ["bd-1", "done"]);
    let thanks = two.inbox("other", "RedForest").pop().unwrap();
    assert_eq!([&thanks["thread"], &thanks["body"], &thanks["from"]], ["x-1", "thanks", &blue]);
    assert_eq!(two.states(home, "BlueLake"), ["stored", "acked"]);
    assert_eq!(two.states("other", "RedForest"), ["stored", "acked"]);
    assert_eq!(two.link_of(home, "BlueLake"), ["BlueLake", &two.abroad("RedForest"), "accepted"]);
    assert_eq!(two.link_of("other", "RedForest"), [&blue, "RedForest", "accepted"]);
    let to = |name: &'static str| ["send", "--to", name, "--thread", "n-1", "--subject", "News", "--body", "b"];
    two.at(home, "BlueLake", &to("RedForest@other")).success();
    // Also under the name that it had.
    two.there("RedForest", &to("BlueLake@repo")).success();
    let all = two.there("RedForest", &["poll", "--all", "--from", &blue]).success().result();
    assert_eq!(column(&all["messages"], "from"), vec![blue; 3]);
}

#[test]
fn links_replies_and_receipts_go_on_in_both_directions() {
    let two = Two::linked();
    two.here("", &["token", "human"]).success();
    let mail = two.correspond();
    let before = two.written("other");
    let moved = two.moves("repo", "new-home");
    assert_eq!(moved["untold"], json!([]));
    let (old, new) = (two.home("BlueLake"), format!("BlueLake@{}", two.key("new-home")));
    let renamed: Value = serde_json::from_str(&json!(before).to_string().replace(&old, &new)).unwrap();
    assert_eq!(json!(two.written("other")), renamed, "nothing of the history is hidden");
    let by = |name: &str| {
        let log = two.there("", &["log", "--kind", "message_sent", "--by", name]).success().result();
        log["events"].as_array().unwrap().len()
    };
    // As with mail, the path that it had leads to the one that it has.
    assert_eq!((by(&new), by(&old)), (1, 1));
    check_goes_on(&two, "new-home", &mail);
}

#[test]
fn a_project_that_is_busy_meanwhile_is_told_by_the_next_command() {
    for moves in [["new-home"].as_slice(), &["middle", "new-home"]] {
        let two = Two::linked();
        impatient(&two);
        let mail = two.correspond();
        let gate = two.hold("other");
        let mut at = "repo";
        for next in moves {
            let untold = two.moves(at, next)["untold"].clone();
            assert!(untold.as_array().unwrap().contains(&json!(two.key("other"))), "{untold}");
            at = next;
        }
        drop(gate);
        // Not told yet, and still led there.
        assert_eq!(two.link_of("other", "RedForest")[0], two.home("BlueLake"));
        check_goes_on(&two, "new-home", &mail);
    }
}

#[test]
fn mail_that_waits_for_consent_is_delivered_after_a_move() {
    let two = Two::new();
    two.send("RedForest@other", &["--hold"]).success();
    two.moves("repo", "new-home");
    two.there("RedForest", &["link", "--target", "BlueLake@new-home", "--accept"]).success();
    assert_eq!(two.inbox("other", "RedForest").len(), 1);
    assert_eq!(two.states("new-home", "BlueLake"), ["stored"]);
}

#[test]
fn a_send_that_was_interrupted_before_a_move_is_completed_after_it() {
    for busy in [false, true] {
        let two = Two::linked();
        cut_between(&two);
        impatient(&two);
        let gate = busy.then(|| two.hold("other"));
        two.moves("repo", "new-home");
        if busy {
            two.at("new-home", "GreenHill", &["poll"]).success();
        }
        drop(gate);
        two.at("new-home", "GreenHill", &["poll"]).success();
        assert_eq!(two.states("new-home", "BlueLake"), ["stored"], "busy: {busy}");
        assert_eq!(two.inbox("other", "RedForest").len(), 1);
    }
}

#[test]
fn whoever_starts_at_the_old_path_inherits_no_consent() {
    let two = Two::linked();
    two.moves("repo", "new-home");
    let error = two.here("BlueLake", &["--project", &two.key("repo"), "poll"]).fails("AGENT_NOT_REGISTERED").error();
    assert!(text(&error["message"]).contains(&two.key("new-home")), "{error}");
    two.at("repo", "BlueLake", &["start"]).success();
    let send = ["send", "--subject", "Hello", "--body", "b", "--to"];
    two.at("repo", "BlueLake", &[send.as_slice(), &["RedForest@other"]].concat()).fails("CONTACT_REQUIRED");
    two.there("RedForest", &[send.as_slice(), &[&two.home("BlueLake")]].concat()).fails("CONTACT_REQUIRED");
    two.there("RedForest", &[send.as_slice(), &["BlueLake@new-home"]].concat()).success();
}

#[test]
fn a_backup_from_before_a_move_is_restored_also_where_the_store_is_lost() {
    for archived in [false, true] {
        let two = Two::new();
        let back_up = |folder: &str, name: &str| {
            let file = text(&json!(two.bus.path(name)));
            two.at(folder, "", &["backup", &file]).success();
            file
        };
        let (own, foreign) = (back_up("repo", "own.db"), back_up("other", "foreign.db"));
        if archived {
            two.here("", &["drain", "--wait"]).success();
        }
        two.moves("repo", "new-home");
        two.at("repo", "BlueLake", &["start"]).success();
        let later = back_up("repo", "later.db");
        for name in ["relay.db", "relay.db-wal", "relay.db-shm"] {
            std::fs::remove_file(two.store("new-home").join(name)).unwrap();
        }
        let restore = |file: &str| two.at("new-home", "", &["rebuild", "store", "--from-backup", file]);
        restore(&foreign).fails("INPUT_INVALID");
        if archived {
            // The path was this project's, and another's by then.
            restore(&later).fails("INPUT_INVALID");
        }
        restore(&own).success();
        two.at("new-home", "BlueLake", &["poll"]).success();
    }
}

/// Whoever stands in line for the archive or the store of a project.
fn lock(store: &Path, name: &str) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(store.join(name)).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn a_move_waits_for_whoever_writes_to_the_archive() {
    let two = Two::new();
    let (store, old) = (two.store("repo"), two.key("repo"));
    let held = lock(&store, "archive.lease");
    std::fs::rename(two.bus.path("repo"), two.bus.path("new-home")).unwrap();
    std::fs::create_dir(two.bus.path("repo")).unwrap();
    let moving = two.bus.spawn("", &["project", "move", &old, &two.key("new-home")]);
    let moving = moving.until(|pid| has_open(pid, &store.join("archive.lease")));
    assert!(store.join("relay.db").exists());
    drop(held);
    moving.finish().success();
    assert!(!store.exists());
    two.at("new-home", "BlueLake", &["poll"]).success();
}

#[test]
fn whoever_waited_while_the_project_moved_makes_no_ghost_of_it() {
    let two = Two::new();
    let backup = text(&json!(two.bus.path("shop.db")));
    two.here("", &["backup", &backup]).success();
    for (args, waits_for) in [
        (["drain", "--wait"].as_slice(), "archive.lease"),
        (&["rebuild", "archive"], "archive.lease"),
        (&["rebuild", "store", "--from-backup", &backup], "archive.lease"),
        (&["start"], "gate"),
    ] {
        let (store, away) = (two.store("repo"), two.bus.path("away"));
        let held = lock(&store, waits_for);
        // At the gate one waits in a line, whose counter is written when a place is taken.
        let places = || std::fs::read(store.join("line/last")).unwrap();
        let before = places();
        let stands_there = |pid| has_open(pid, &store.join(waits_for)) && (waits_for != "gate" || places() != before);
        let waiting = two.bus.spawn("BlueLake", args).until(stands_there);
        std::fs::rename(&store, &away).unwrap();
        drop(held);
        waiting.finish().fails("STORE_BUSY");
        assert!(!store.exists(), "{args:?}");
        std::fs::rename(&away, &store).unwrap();
    }
}

#[test]
fn a_move_that_died_half_way_is_found_under_the_new_path() {
    let two = Two::linked();
    let old = two.key("repo");
    std::fs::rename(two.bus.path("repo"), two.bus.path("new-home")).unwrap();
    std::fs::create_dir(two.bus.path("repo")).unwrap();
    let mut command = two.bus.args("", ["project", "move", &old, &two.key("new-home")]);
    let died = command.env("FAILPOINTS", "move-after-rename=return(abort)").output().unwrap();
    assert!(!died.status.success());
    let again = two.here("", &["project", "move", &old, &two.key("new-home")]).success().result();
    assert_eq!((text(&again["from"]), text(&again["to"])), (old, two.key("new-home")));
    two.at("new-home", "BlueLake", &["poll"]).success();
    let send = ["send", "--to", "BlueLake@repo", "--thread", "x-1", "--subject", "API", "--body", "b"];
    two.there("RedForest", &send).success();
    assert_eq!(two.inbox("new-home", "BlueLake").len(), 1);
    let again = two.here("", &["project", "list"]).success().result();
    assert!(column(&again["projects"], "key").contains(&json!(two.key("new-home"))), "{again}");
}

#[test]
fn what_a_server_could_not_tell_is_told_by_the_next_request() {
    for trouble in ["away", "busy"] {
        let two = Two::linked();
        impatient(&two);
        let (_, got) = two.correspond();
        let server = Server::start(&two.bus);
        let (store, away) = (two.store("other"), two.bus.path("away"));
        let gate = (trouble == "busy").then(|| two.hold("other"));
        if trouble == "away" {
            std::fs::rename(&store, &away).unwrap();
        }
        let ids = [got.parse::<u64>().unwrap()];
        server.does("BlueLake", "ack", json!({"ids": ids}));
        // By one of the server's threads that do not end with a request.
        for _ in 0..3 {
            server.does("GreenHill", "poll", json!({}));
        }
        if trouble == "away" {
            std::fs::rename(&away, &store).unwrap();
        }
        drop(gate);
        assert_eq!(two.states("other", "RedForest"), ["stored"], "{trouble}");
        server.does("GreenHill", "poll", json!({}));
        assert_eq!(two.states("other", "RedForest"), ["acked"], "{trouble}");
    }
}

#[test]
fn a_visit_keeps_nothing_that_it_could_not_tell_a_third_project() {
    let two = Two::linked();
    impatient(&two);
    two.add("third", &["GoldOwl"]);
    two.at("third", "GoldOwl", &["link", "--target", "RedForest@other"]).success();
    two.there("RedForest", &["link", "--target", "GoldOwl@third", "--accept"]).success();
    let send =
        ["send", "--to", "RedForest@other", "--thread", "t-1", "--subject", "API", "--body", "b", "--ack-required"];
    two.at("third", "GoldOwl", &send).success();
    let theirs = two.inbox("other", "RedForest")[0]["id"].to_string();
    let (_, got) = two.correspond();
    let server = Server::start(&two.bus);
    let (other, third) = (two.hold("other"), two.hold("third"));
    two.here("BlueLake", &["ack", &got]).success();
    drop(other);
    two.there("RedForest", &["ack", &theirs]).success();
    // Tells the other project, and on the way what that one has yet to tell, in a thread that lives on.
    server.does("GreenHill", "poll", json!({}));
    assert_eq!(two.states("other", "RedForest"), ["acked"]);
    drop(third);
    assert_eq!(two.states("third", "GoldOwl"), ["stored"]);
    two.there("RedForest", &["poll"]).success();
    assert_eq!(two.states("third", "GoldOwl"), ["acked"]);
}

#[test]
fn a_receipt_waits_for_a_project_that_is_away() {
    let two = Two::linked();
    let (_, got) = two.correspond();
    let (store, away) = (two.store("other"), two.bus.path("away"));
    std::fs::rename(&store, &away).unwrap();
    two.here("BlueLake", &["ack", &got]).success();
    two.here("GreenHill", &["poll"]).success();
    std::fs::rename(&away, &store).unwrap();
    assert_eq!(two.states("other", "RedForest"), ["stored"]);
    two.here("GreenHill", &["poll"]).success();
    assert_eq!(two.states("other", "RedForest"), ["acked"]);
}
