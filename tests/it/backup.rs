//! `relay backup`: one moment of the store in one file, while others write; and the bus goes on from it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;

use crate::bus::{Bus, RELAY, Run};
use crate::halves::has_open;
use crate::rebuild::spoil_a_page;

fn back_up(bus: &Bus, dest: &Path) -> Value {
    bus.relay("", ["backup", dest.to_str().unwrap()]).success().result()
}

/// The bodies of the messages in a store's file.
fn bodies(file: &Path) -> BTreeSet<String> {
    let store = Connection::open(file).unwrap();
    let mut rows = store.prepare("SELECT text FROM texts WHERE field = 'body'").unwrap();
    rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

/// A shell that sends one message after the other and notes each that was acknowledged, with one write per line.
fn sender(bus: &Bus, number: usize) -> Child {
    let script = "i=0; while [ ! -e \"$1/stop\" ]; do i=$((i+1)); \"$0\" --json --agent BlueLake send --to RedForest \
        --thread bd-1 --subject Login --body \"s$2-$i\" --idempotency-key \"s$2-$i\" > /dev/null || exit 1; \
        echo \"s$2-$i\" >> \"$1/acked-$2\"; done";
    let mut command = Command::new("sh");
    bus.environment(&mut command);
    let root = bus.path("");
    command.args(["-c", script, RELAY, root.to_str().unwrap(), &number.to_string()]).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn acked(bus: &Bus) -> BTreeSet<String> {
    let files = (0..8).filter_map(|number| std::fs::read_to_string(bus.path(&format!("acked-{number}"))).ok());
    files.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn a_backup_among_eight_senders_is_one_moment_and_the_bus_goes_on_from_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let senders: Vec<Child> = (0..8).map(|number| sender(&bus, number)).collect();
    let mut copies: Vec<(PathBuf, BTreeSet<String>)> = Vec::new();
    for round in 0..3 {
        // Everybody is in the midst of it: each has had another message acknowledged since the last copy.
        let before = acked(&bus).len();
        while acked(&bus).len() < before + 16 {
            bus.relay("RedForest", ["poll", "--read", "--wait", "60s"]).success();
        }
        let (file, before) = (bus.path(&format!("copy-{round}.db")), acked(&bus));
        back_up(&bus, &file);
        copies.push((file, before));
    }
    std::fs::write(bus.path("stop"), "").unwrap();
    for mut sender in senders {
        assert!(sender.wait().unwrap().success());
    }
    let all = acked(&bus);
    for (file, before) in &copies {
        let found = bodies(file);
        let missing: Vec<_> = before.difference(&found).collect();
        assert!(missing.is_empty(), "acknowledged before {} began, and not in it: {missing:?}", file.display());
        assert!(found.is_subset(&all), "{} holds what nobody sent", file.display());
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    // The newest copy is whole, and the bus goes on from it: what it knows is settled, what came later is sent again.
    let (file, _) = copies.last().unwrap();
    let known = bodies(file);
    let folder = bus.store();
    let rebuild = ["rebuild", "store", "--from-backup", file.to_str().unwrap()];
    let last = bus.relay("", rebuild).fails("INPUT_INVALID").error()["details"]["number"].to_string();
    let restored = bus.relay("", [&rebuild[..], &["--lose-after", &last]].concat()).success().result();
    assert_eq!((restored["events"].to_string(), &restored["events"]), (last, &bus.tip().into()));
    for body in &all {
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body];
        bus.relay("BlueLake", [&args[..], &["--idempotency-key", body]].concat()).success();
    }
    assert_eq!(bodies(&folder.join("relay.db")), all);
    let count: usize = Connection::open(folder.join("relay.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM messages", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, all.len(), "nothing twice; {} of them were in the copy", known.len());
}

#[test]
fn a_backup_says_what_is_in_it_and_how_to_go_back() {
    let bus = Bus::with(&["BlueLake"]);
    let (tip, file) = (bus.tip(), bus.path("shop.db"));
    let copied = back_up(&bus, &file);
    assert_eq!((&copied["number"], &copied["path"]), (&tip.into(), &file.to_str().unwrap().into()));
    assert_eq!(copied["bytes"], std::fs::metadata(&file).unwrap().len());
    assert_eq!(copied["restore"][3], "--from-backup");
    assert_eq!(copied["checked"], serde_json::json!(["chain", "texts", "tables", "search", "answers", "file"]));
    let told = bus.text("", ["backup", bus.path("two.db").to_str().unwrap()]).success().stdout;
    assert!(told.starts_with(&format!("Everything up to #{tip} is in ")), "{told}");
    assert!(told.contains("relay rebuild store --from-backup "), "{told}");
    // In a folder it is named after the project and the time.
    std::fs::create_dir(bus.path("backups")).unwrap();
    let named = back_up(&bus, &bus.path("backups"))["path"].as_str().unwrap().to_owned();
    assert!(named.ends_with("/backups/repo-20261115T000000000Z.db"), "{named}");
    // A path is the caller's own: from where it stands.
    bus.relay("", ["backup", "beside.db"]).success();
    assert!(bus.repo().join("beside.db").exists());
}

/// The archive goes no further than the store: what a backup lacks is kept beside, and the bus goes on draining.
#[test]
fn an_archive_that_knows_more_than_the_backup_is_made_anew_with_the_store() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let file = bus.path("shop.db");
    let last = back_up(&bus, &file)["number"].to_string();
    bus.send("BlueLake", "RedForest", "bd-1", "Lost");
    let lost = bus.tip() - last.parse::<u64>().unwrap();
    bus.relay("", ["drain", "--wait"]).success();
    let rebuild = ["rebuild", "store", "--from-backup", file.to_str().unwrap(), "--lose-after", &last];
    let restored = bus.relay("", rebuild).success().result();
    assert_eq!((restored["events"].to_string(), &restored["lost"]), (last.clone(), &lost.into()));
    assert_eq!(restored["archive"]["events"].to_string(), last);
    for kept in [&restored["kept"], &restored["archive"]["kept"]] {
        assert!(Path::new(kept.as_str().unwrap()).exists(), "{restored}");
    }
    let sent = bus.send("BlueLake", "RedForest", "bd-1", "Again");
    let drained = bus.relay("", ["drain", "--wait"]).success().result();
    assert_eq!((&drained["archive"]["number"], bus.tip() >= sent), (&bus.tip().into(), true));
    bus.relay("", ["verify"]).success();
    bus.relay("", ["rebuild", "store", "--from-backup", "missing.db"]).fails("INPUT_INVALID");
}

/// A store that cannot be asked is not one that has nothing.
#[test]
fn what_keeps_a_restore_from_reading_the_store_is_no_consent() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let file = bus.path("shop.db");
    let last = back_up(&bus, &file)["number"].to_string();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let store = bus.store();
    let restore = ["rebuild", "store", "--from-backup", file.to_str().unwrap()];
    let alone = Connection::open(store.join("relay.db")).unwrap();
    alone.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; ROLLBACK").unwrap();
    bus.relay("", restore).fails("STORE_BUSY");
    drop(alone);
    // A table that cannot be read hides nothing of the others.
    spoil_a_page(&store, "project");
    let refused = bus.relay("", restore).fails("INPUT_INVALID").error();
    assert_eq!(refused["details"]["lost"], newest(&store) - last.parse::<u64>().unwrap(), "{refused}");
    // What says nothing may go, and that is said.
    let check = |spoil: &dyn Fn(&Path), expected: &str| {
        spoil(&store.join("relay.db"));
        let said = bus.relay("", restore).success().result();
        let missing = format!(
            "events after #{last}; the old file {expected} and cannot say how many, and what they erased is readable again"
        );
        assert_eq!(said["missing"], missing);
        assert_eq!(bus.relay("", restore).success().result()["missing"], Value::Null);
    };
    check(&|file| std::fs::write(file, "garbage".repeat(10_000)).unwrap(), "cannot be read");
    check(&|file| std::fs::remove_file(file).unwrap(), "is gone");
    // Where the archive says nothing either, a person has to.
    bus.relay("", ["drain", "--wait"]).success();
    let public = store.join("archive.git/refs/heads/main");
    let nothing = "1".repeat(std::fs::read_to_string(&public).unwrap().trim().len());
    std::fs::write(&public, nothing + "\n").unwrap();
    std::fs::remove_file(store.join("relay.db")).unwrap();
    let refused = bus.relay("", restore).fails("INPUT_INVALID").error();
    assert!(refused["message"].as_str().unwrap().contains("neither the store nor the archive"), "{refused}");
    bus.relay("", [&restore[..], &["--lose-after", &last]].concat()).success();
    bus.relay("", ["rebuild", "archive"]).success();
}

/// The newest event, read past what is spoilt.
fn newest(store: &Path) -> u64 {
    let store = Connection::open(store.join("relay.db")).unwrap();
    store.query_row("SELECT max(number) FROM events", [], |row| row.get(0)).unwrap()
}

#[test]
fn what_one_restore_has_staged_another_leaves_alone() {
    let bus = Bus::with(&["BlueLake"]);
    let file = bus.path("shop.db");
    back_up(&bus, &file);
    let folder = bus.store();
    let (lease, staged) = (folder.join("archive.lease"), folder.join("restoring/relay.db"));
    let held = std::fs::File::create(&lease).unwrap();
    held.lock().unwrap();
    std::fs::create_dir(folder.join("restoring")).unwrap();
    std::fs::write(&staged, "another's").unwrap();
    let mut command = bus.args("", ["rebuild", "store", "--from-backup", file.to_str().unwrap()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !has_open(child.id(), &lease) {
        std::thread::yield_now();
    }
    assert_eq!(std::fs::read_to_string(&staged).unwrap(), "another's");
    drop(held);
    Run::new("rebuild".to_owned(), &child.wait_with_output().unwrap()).success();
}

#[test]
fn a_place_that_is_no_place_for_a_backup_is_refused_and_left_alone() {
    let bus = Bus::with(&["BlueLake"]);
    let file = bus.path("taken.db");
    std::fs::write(&file, "mine").unwrap();
    let at = |path: &Path, flags: &[&str]| bus.relay("", [&["backup", path.to_str().unwrap()], flags].concat());
    at(&file, &[]).fails("INPUT_INVALID");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    at(&bus.path("nowhere/at/all.db"), &[]).fails("INPUT_INVALID");
    at(Path::new("/dev/null"), &["--force"]).fails("INPUT_INVALID");
    at(&file, &["--force"]).success();
    assert_ne!(std::fs::read(&file).unwrap(), b"mine");
    let left = std::fs::read_dir(bus.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(left.filter(|name| name.ends_with(".part")).count(), 0);
    let nobody = bus.path("nobody");
    std::fs::create_dir(&nobody).unwrap();
    let project = ["backup", "x.db", "--project", nobody.to_str().unwrap()];
    bus.relay("", project).fails("AGENT_NOT_REGISTERED");
}

/// A disk without room, and one that cannot be written to.
#[test]
fn a_disk_that_cannot_take_it_is_named() {
    let bus = Bus::with(&["BlueLake"]);
    let small = bus.path("small");
    std::fs::create_dir(&small).unwrap();
    // Mounting needs a namespace of our own, where nobody else sees it.
    let mounted = |options: &str| {
        let script = format!("mount -t tmpfs -o {options} tmpfs \"$1\" && exec \"$0\" --json backup \"$1/x.db\"");
        let mut command = Command::new("unshare");
        bus.environment(&mut command);
        command.args(["--mount", "--map-root-user", "sh", "-c", &script, RELAY, small.to_str().unwrap()]);
        crate::bus::run(command)
    };
    mounted("size=64k").fails("STORE_FULL");
    mounted("size=16m,ro").fails("STORE_READONLY");
    mounted("size=16m").success();
}

/// A copy of what is not whole would look like a way back, and be found out when it is needed.
#[test]
fn a_store_that_is_not_whole_gives_no_backup() {
    let spoil = [
        ("UPDATE texts SET text = 'forged' WHERE field = 'body'", "is not the one that it names"),
        ("UPDATE events SET payload = replace(payload, 'bd-1', 'bd-2')", "does not chain"),
        ("UPDATE deliveries SET lapsed = 1", "by the history"),
        ("DELETE FROM answers WHERE verb = 'send'", "is missing"),
    ];
    for (sql, expected) in spoil {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        assert!(Connection::open(bus.store().join("relay.db")).unwrap().execute(sql, []).unwrap() > 0, "{sql}");
        let file = bus.path("shop.db");
        std::fs::write(&file, "the one from yesterday").unwrap();
        let refused = bus.relay("", ["backup", file.to_str().unwrap(), "--force"]).fails("STORE_DAMAGED").error();
        assert!(refused["message"].as_str().unwrap().contains(expected), "{refused}");
        assert_eq!(refused["playbook"][2]["run"][1], "rebuild");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "the one from yesterday");
        bus.forget();
    }
}
