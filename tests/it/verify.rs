//! `relay verify`: what it says of stores and archives that are whole, behind, in use, or spoilt.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bus::{Bus, RELAY, run};

/// Nothing that verify looks at is changed by it.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let names = ["relay.db", "relay.db-wal", "archive.git/HEAD", "archive.git/refs/heads/main", "project"];
    names.iter().map(|name| ((*name).to_owned(), fs::read(folder.join(name)).unwrap_or_default())).collect()
}

#[test]
fn a_whole_history_is_said_to_be_whole_and_is_left_alone() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let before = contents(&bus.store());
    let lags = bus.relay("", ["verify"]).success();
    assert_eq!(lags.signals(), ["ARCHIVE_LAGS"]);
    assert_eq!(lags.json()["next"][0], "relay drain --wait");
    assert_eq!(lags.result()["archived"], 0);
    assert_eq!(contents(&bus.store()), before);
    bus.relay("", ["drain", "--wait"]).success();
    let before = contents(&bus.store());
    let whole = bus.relay("", ["verify"]).success();
    assert_eq!(whole.signals(), [""; 0]);
    assert_eq!(whole.result()["events"], whole.result()["archived"]);
    assert_eq!(whole.result()["findings"].as_array().unwrap().len(), 0);
    assert_eq!(contents(&bus.store()), before);
    let text = bus.text("", ["verify"]).success();
    assert!(text.stdout.contains("is whole: "), "{}", text.stdout);
    assert_eq!(text.stderr, "", "no bar where nobody watches");
}

#[test]
fn nobody_started_here() {
    let bus = Bus::new();
    bus.relay("", ["verify"]).fails("AGENT_NOT_REGISTERED");
    bus.relay("", ["rebuild", "archive"]).fails("AGENT_NOT_REGISTERED");
    bus.relay("", ["rebuild", "store", "--from-archive"]).fails("AGENT_NOT_REGISTERED");
}

/// What is done to the file, and a part of what is said then.
type Spoilt<'a> = (&'a str, &'a dyn Fn(&Path));

#[test]
fn a_store_that_cannot_be_opened_is_damaged() {
    let spoil: [Spoilt<'_>; 5] = [
        ("not a database", &|file| fs::write(file, "nothing that SQLite knows").unwrap()),
        ("", &|file| {
            let mut bytes = fs::read(file).unwrap();
            bytes[..16].copy_from_slice(b"SQLite format 4\0");
            fs::write(file, bytes).unwrap();
        }),
        ("", &|file| {
            let bytes = fs::read(file).unwrap();
            fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
        }),
        ("is empty, and it held a history", &|file| fs::write(file, "").unwrap()),
        ("is gone, and it held a history", &|file| fs::remove_file(file).unwrap()),
    ];
    for (expected, spoil) in spoil {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        bus.relay("", ["drain", "--wait"]).success();
        let store = bus.store();
        for name in ["relay.db-wal", "relay.db-shm"] {
            fs::remove_file(store.join(name)).unwrap();
        }
        spoil(&store.join("relay.db"));
        let error = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        assert_eq!(error["details"]["findings"][0]["what"], error["message"], "{error}");
        // The steps are run as they are printed, and none leads back here.
        let steps = error["playbook"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["run"][1] != "verify"), "{error}");
        let last = steps.iter().rfind(|step| step["run"].is_array()).unwrap()["run"].clone();
        let run: Vec<String> = serde_json::from_value(last).unwrap();
        assert_eq!(run[1..4], ["rebuild", "store", "--from-archive"]);
        bus.relay("", &run[1..]).success();
        assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login goes on");
    }
}

/// SQLite takes a log beside an empty file for a leftover; what was acknowledged since the last fold is in it alone.
#[test]
fn the_log_of_a_store_that_was_emptied_is_left_alone() {
    // A folder gets its name after its first event, and may have died before.
    for named in [true, false] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("", ["drain", "--wait"]).success();
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let store = bus.store();
        let backup = bus.path("shop.db");
        bus.relay("", ["backup", backup.to_str().unwrap()]).success();
        let log = fs::read(store.join("relay.db-wal")).unwrap();
        assert!(!log.is_empty());
        fs::write(store.join("relay.db"), "").unwrap();
        if !named {
            fs::remove_file(store.join("project")).unwrap();
        }
        for args in
            [&["verify"] as &[&str], &["status"], &["start"], &["poll"], &["drain", "--wait"], &["backup", "x.db"]]
        {
            let error = bus.relay("BlueLake", args).fails("STORE_DAMAGED").error();
            assert!(error["message"].as_str().unwrap().contains("is empty, and it held a history"), "{error}");
            assert!(fs::read(store.join("relay.db-wal")).is_ok_and(|now| now == log), "{args:?}");
        }
        let rebuild = ["rebuild", "store", "--from-archive"];
        let restore = ["rebuild", "store", "--from-backup", backup.to_str().unwrap()];
        for args in [&rebuild as &[&str], &restore] {
            fs::write(store.join("relay.db"), "").unwrap();
            fs::write(store.join("relay.db-wal"), &log).unwrap();
            let kept = bus.relay("", args).success().result()["kept"].as_str().unwrap().to_owned();
            assert!(
                fs::read(format!("{kept}-wal")).is_ok_and(|now| now == log),
                "{args:?}: the log goes with its file"
            );
        }
        bus.relay("", ["verify"]).success();
    }
}

#[test]
fn what_is_foreign_or_missing_in_the_archive_is_named() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let archive = bus.store().join("archive.git");
    let git = |args: &[&str]| String::from_utf8(bus.git_in(&archive, args).stdout).unwrap().trim().to_owned();
    let (tip, message) = (git(&["rev-parse", "main"]), git(&["log", "-1", "--format=%B"]));
    let letter = git(&["ls-tree", "-r", "--name-only", "main"])
        .lines()
        .find(|path| path.starts_with("threads/"))
        .unwrap()
        .to_owned();
    // Each one is a commit with relay's own words over a tree that is not relay's.
    let check = |change: &[&str], expected: &str| {
        git(&["read-tree", "main"]);
        git(&[&["--work-tree=."], change].concat());
        let tree = git(&["write-tree"]);
        let by = ["-c", "user.name=relay", "-c", "user.email=relay@localhost"];
        let made = git(&[&by[..], &["commit-tree", &tree, "-m", &message]].concat());
        git(&["update-ref", "refs/heads/main", &made]);
        let error = bus.relay("", ["verify"]).fails("ARCHIVE_DIVERGED").error();
        let findings = error["details"]["findings"].as_array().unwrap();
        assert!(
            findings.iter().any(|found| found["what"] == expected && found["where"] == "archive"),
            "{expected}: {error}"
        );
        git(&["update-ref", "refs/heads/main", &tip]);
        let _ = fs::remove_file(archive.join("index"));
    };
    let blob = git(&["rev-parse", &format!("main:{letter}")]);
    let add = |path: &str, blob: &str, mode: &str| format!("{mode},{blob},{path}");
    let path = format!("events/0/0/{id}.json");
    check(&["update-index", "--force-remove", &path], &format!("{path} is missing"));
    check(&["update-index", "--force-remove", &letter], &format!("{letter} is missing"));
    check(&["update-index", "--cacheinfo", &add(&path, &blob, "100644")], &format!("{path} differs from the store"));
    check(&["update-index", "--add", "--cacheinfo", &add("README", &blob, "100644")], "README is of no event");
    check(&["update-index", "--cacheinfo", &add(&letter, &blob, "100755")], &format!("{letter} is missing"));
    let later = "events/0/0/99.json";
    check(&["update-index", "--add", "--cacheinfo", &add(later, &blob, "100644")], &format!("{later} is of no event"));
    bus.relay("", ["verify"]).success();
}

#[test]
fn without_git_the_archive_is_read_but_not_written() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let without = |args: &[&str]| {
        let mut command = bus.args("", args);
        command.env("PATH", bus.path("nowhere"));
        run(command)
    };
    assert_eq!(without(&["verify"]).success().signals(), [""; 0]);
    without(&["rebuild", "archive"]).fails("ARCHIVE_UNAVAILABLE");
    without(&["rebuild", "store", "--from-archive"]).success();
    without(&["verify"]).success();
}

#[test]
fn a_busy_store_is_never_called_damaged() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    std::thread::scope(|scope| {
        let senders: Vec<_> = ["BlueLake", "RedForest"]
            .into_iter()
            .zip(["RedForest", "BlueLake"])
            .map(|(from, to)| {
                let bus = &bus;
                scope.spawn(move || {
                    for index in 0..25 {
                        bus.send(from, to, "bd-1", &format!("Login {index}"));
                        if index % 5 == 0 {
                            bus.relay("", ["drain", "--wait"]).success();
                        }
                    }
                })
            })
            .collect();
        while senders.iter().any(|sender| !sender.is_finished()) {
            bus.relay("", ["verify"]).success();
        }
    });
}

/// What the store forgets here, relay would do again for whoever comes back with the key.
#[test]
fn an_answer_that_is_lost_is_missed_and_a_rebuild_keeps_its_key_used() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let send = |from: &str, to: &str, key: &str| {
        let args = ["send", "--to", to, "--thread", "bd-1", "--subject", "Login", "--body", "text"];
        bus.relay(from, [&args[..], &["--idempotency-key", key]].concat())
    };
    let id = send("BlueLake", "RedForest", "k1").success().result()["message"]["id"].as_u64().unwrap();
    send("RedForest", "BlueLake", "k1").success();
    bus.relay("RedForest", ["poll", "--read", "--idempotency-key", "k2"]).success();
    let erased = send("BlueLake", "RedForest", "k3").success().result()["message"]["id"].to_string();
    bus.relay("BlueLake", ["redact", &erased]).success();
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    // The same key of somebody else is another request's.
    assert_eq!(store.execute("DELETE FROM answers WHERE actor = 'bluelake' AND key = 'k1'", []).unwrap(), 1);
    drop(store);
    let error = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
    let found = &error["details"]["findings"];
    assert_eq!((found[0]["where"].as_str(), found[0]["number"].as_u64()), (Some("answers"), Some(id)), "{error}");
    assert!(found[0]["what"].as_str().unwrap().contains("bluelake with the key \"k1\""), "{error}");
    assert_eq!(error["details"]["findings_total"], 1);
    // The steps are run as they are printed.
    for step in error["playbook"].as_array().unwrap().iter().filter(|step| step["run"].is_array()) {
        let run: Vec<String> = serde_json::from_value(step["run"].clone()).unwrap();
        bus.relay("", &run[1..]).success();
    }
    bus.relay("", ["verify"]).success();
    send("BlueLake", "RedForest", "k1").fails("IDEMPOTENCY_REUSED");
}

/// The newcomer's keys are its session's, the guest's its address's, and what relay does is in the name of whoever asked.
#[test]
fn every_answer_is_known_by_its_events() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["start", "--session", "s1"]).success();
    bus.relay("", ["prepare", "--thread", "bd-2", "--session", "s2"]).success();
    bus.relay("", ["verify"]).success();
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    let acted = store.execute("DELETE FROM answers", []).unwrap();
    drop(store);
    let error = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
    assert_eq!(error["details"]["findings_total"], acted);
    bus.forget();
}

#[test]
fn a_person_is_told_everything_that_is_wrong_and_where() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let ids: Vec<u64> = (0..22).map(|n| bus.send("BlueLake", "RedForest", "bd-1", &format!("Login {n}"))).collect();
    let told = |sql: &str| {
        let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
        store.execute_batch(sql).unwrap();
        drop(store);
        bus.text("", ["verify"]).stderr
    };
    let text = told(&format!("UPDATE deliveries SET delivered_at = delivered_at + 1000 WHERE message = {}", ids[0]));
    let row = format!("deliveries: the row with message {} and recipient RedForest: ", ids[0]);
    let times = "delivered_at is 2026-11-15T00:00:01.000Z, by the history 2026-11-15T00:00:00.000Z [STORE_DAMAGED]";
    assert!(text.contains(&row) && text.contains(times), "{text}");
    assert!(!text.contains("relay verify"), "the way out does not lead back: {text}");
    let text = told("UPDATE deliveries SET lapsed = 1");
    assert!(text.contains("(22 findings)") && text.contains("… and 2 more"), "{text}");
    for id in &ids[..20] {
        assert!(text.contains(&format!("message {id} and recipient RedForest: ")), "{id}: {text}");
    }
    bus.forget();
}

#[test]
fn what_stands_in_the_place_of_the_archive_is_named_and_set_aside() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let archive = bus.store().join("archive.git");
    fs::write(&archive, "somebody's").unwrap();
    bus.relay("", ["drain", "--wait"]).fails("ARCHIVE_DIVERGED");
    let error = bus.relay("", ["verify"]).fails("ARCHIVE_DIVERGED").error();
    let what = format!("{} is no folder, where relay keeps the archive", archive.display());
    assert_eq!(error["details"]["findings"][0]["what"], what);
    let steps = error["playbook"].as_array().unwrap().iter();
    let run: Vec<String> =
        steps.filter_map(|step| serde_json::from_value(step["run"].clone()).ok()).next_back().unwrap();
    let kept = bus.relay("", &run[1..]).success().result()["kept"].as_str().unwrap().to_owned();
    assert_eq!(fs::read_to_string(kept).unwrap(), "somebody's");
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
}

/// Whoever looks on is shown how far it is, once it has taken a second; whoever reads a file is not.
#[test]
fn a_long_verification_shows_how_far_it_is() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("", ["drain", "--wait"]).success();
    // As long as somebody writes to the archive, it is not compared.
    let told = |program: &str, args: &[&str]| {
        let lease = fs::File::open(bus.store().join("archive.lease")).unwrap();
        lease.lock().unwrap();
        let mut command = Command::new(program);
        bus.environment(&mut command);
        let child =
            command.args(args).env("TERM", "xterm").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1_500));
        drop(lease);
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
        String::from_utf8(text).unwrap()
    };
    let shown = told("script", &["-qec", &format!("'{RELAY}' verify"), "/dev/null"]);
    assert!(shown.contains('░') && shown.contains("is whole"), "{shown:?}");
    let read = told(RELAY, &["verify"]);
    assert!(!read.contains('░') && read.contains("is whole"), "{read:?}");
}
