//! The store itself is the problem: a person decides, and is told beside the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use serde_json::Value;

use super::{Way, nobody};
use crate::bus::{Bus, Run, letter, run};
use crate::fuse;
use crate::privilege::{Foreign, Stage};
use crate::terminal::text;

const SEND: [&str; 11] = [
    "send",
    "--to",
    "RedForest",
    "--thread",
    "bd-1",
    "--subject",
    "Login",
    "--body",
    "text",
    "--idempotency-key",
    "k1",
];

/// The questions that lie in a folder for a person.
fn notes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut notes: Vec<PathBuf> = entries.filter(|path| path.to_str().unwrap().contains("for-the-human")).collect();
    notes.sort();
    notes
}

#[track_caller]
fn noted(folder: &Path, code: &str) -> String {
    let notes = notes(folder);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].to_str().unwrap().contains(code), "{notes:?}");
    fs::read_to_string(&notes[0]).unwrap()
}

/// The key of the failed request settles it: that is what its last step says.
#[track_caller]
fn repeats(step: &Value, relay: impl Fn() -> Run) {
    assert!(text(&step["why"]).contains("k1") || text(&step["why"]).contains("request again"), "{step}");
    relay().success();
}

pub fn busy(code: &str) {
    let bus = Bus::drained();
    fs::write(bus.home().join("config.toml"), "[limits]\ngate_wait = \"1s\"\n").unwrap();
    let mut gate = Some(fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap());
    gate.as_ref().unwrap().lock().unwrap();
    let args = [SEND.as_slice(), &["--no-recover"]].concat();
    let error = bus.relay("BlueLake", &args).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        drop(gate.take());
        repeats(step, || bus.relay("BlueLake", &args));
    });
    assert_eq!(bus.inbox("RedForest").len(), 2);
}

pub fn full(code: &str) {
    let bus = Bus::new();
    fs::create_dir(bus.home()).unwrap();
    let stage = Stage::new();
    stage.mount(&["-t", "tmpfs", "-o", "size=4m,mode=0700", "relay-test"], &bus.home());
    let around = |command: Command| stage.enter(&command);
    let way = Way { bus: &bus, agent: "BlueLake", around: &around };
    for agent in ["BlueLake", "RedForest"] {
        way.relay(&["start", "--agent", agent]).success();
    }
    let ballast = stage.look(&bus.home()).join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    let error = way.relay(&SEND).fails(code).error();
    way.follow(&error, |step| match step["who"].as_str() {
        Some("person") => fs::remove_file(&ballast).unwrap(),
        Some(_) => repeats(step, || way.relay(&SEND)),
        None => {}
    });
    let mail = run(stage.enter(&bus.args("RedForest", ["poll"]))).success().result();
    assert_eq!(mail["messages"].as_array().unwrap().len(), 1);
    let mut folders = fs::read_dir(stage.look(&bus.home())).unwrap().map(|entry| entry.unwrap().path());
    // There was room for the name of the question and not for more.
    noted(&folders.find(|folder| folder.join("relay.db").exists()).unwrap(), code);
}

pub fn readonly(code: &str) {
    let bus = Bus::drained();
    let stage = Stage::new();
    stage.mount(&["--bind", bus.home().to_str().unwrap()], &bus.home());
    stage.mount(&["-o", "remount,bind,ro"], &bus.home());
    let around = |command: Command| stage.enter(&command);
    let way = Way { bus: &bus, agent: "BlueLake", around: &around };
    let error = way.relay(&SEND).fails(code).error();
    way.follow(&error, |step| match step["who"].as_str() {
        Some("person") => stage.mount(&["-o", "remount,bind,rw"], &bus.home()),
        Some(_) => repeats(step, || way.relay(&SEND)),
        None => {}
    });
    let own = bus.path("");
    assert!(
        noted(&own, code).contains("cannot be written"),
        "where the store takes nothing it lies in the user's folder"
    );
    assert_eq!(bus.inbox("RedForest").len(), 2);
}

pub fn io(code: &str) {
    let bus = Bus::drained();
    let command = bus.args("BlueLake", SEND);
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
    strace.args(["-e", "inject=fsync,fdatasync:error=EIO:when=1", "--"]);
    bus.environment(strace.arg(command.get_program()).args(command.get_args()));
    let error = run(strace).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["who"] == "you" {
            repeats(step, || bus.relay("BlueLake", SEND));
        }
    });
    assert!(noted(&bus.store(), code).contains("look at it"));
    assert_eq!(bus.inbox("RedForest").len(), 2, "the key settled it: once, whatever had happened");
}

pub fn damaged(code: &str) {
    let bus = Bus::drained();
    let store = bus.store();
    fs::write(store.join("relay.db"), "garbage".repeat(10_000)).unwrap();
    let error = bus.relay("BlueLake", SEND).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["who"] == "you" {
            bus.relay("BlueLake", SEND).success();
        }
    });
    assert!(noted(&store, code).contains("relay verify"));
    let status = bus.relay("", ["status"]).success().result();
    assert!(text(&status["questions"][0]["text"]).contains("is damaged"), "{status}");
    bus.relay("", ["doctor", "--fix"]).success();
    assert_eq!(notes(&store), Vec::<PathBuf>::new(), "what is settled is taken away");
    assert_eq!(bus.inbox("RedForest").len(), 2);
}

/// What is damaged was made from the history, which is sound: what the archive lacks can still be copied.
#[test]
fn what_can_still_be_read_of_a_damaged_store_is_saved_first() {
    let bus = Bus::drained();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let sql = "UPDATE agents SET policy = 'block_all'";
    Connection::open(bus.store().join("relay.db")).unwrap().execute(sql, []).unwrap();
    let error = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
    Way::new(&bus, "").follow(&error, |step| {
        if step["who"] == "you" {
            bus.relay("", ["verify"]).success();
        }
    });
    assert_eq!(bus.inbox("RedForest").len(), 2, "nothing was lost");
}

fn set_version(store: &Path, version: u32) {
    Connection::open(store.join("relay.db")).unwrap().pragma_update(None, "user_version", version).unwrap();
}

pub fn too_new(code: &str) {
    let bus = Bus::drained();
    let store = bus.store();
    let known: u32 = Connection::open(store.join("relay.db"))
        .unwrap()
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .unwrap();
    set_version(&store, known + 1);
    let error = bus.relay("BlueLake", SEND).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        if step["who"] == "person" {
            set_version(&store, known);
        }
    });
    assert!(noted(&store, code).contains("newer relay"));
    bus.relay("BlueLake", SEND).success();
}

pub fn foreign(code: &str) {
    let bus = Bus::drained();
    let mut owner = Some(Foreign::new(&bus.store().join("relay.db")));
    let error = bus.relay("BlueLake", SEND).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        assert_eq!(step["who"], "person");
        drop(owner.take());
    });
    bus.relay("BlueLake", SEND).success();
}

pub fn unsupported(code: &str) {
    let bus = Bus::new();
    fs::create_dir(bus.home()).unwrap();
    let stage = Stage::new();
    fuse::mount(&stage, &bus.home());
    let error = run(stage.enter(&bus.args("BlueLake", ["start"]))).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |step| {
        assert!(text(&step["why"]).contains("RELAY_HOME"), "{step}");
        let mut local = bus.args("BlueLake", ["start"]);
        local.env("RELAY_HOME", bus.path("local"));
        run(stage.enter(&local)).success();
    });
}

pub fn internal(code: &str) {
    let bus = Bus::drained();
    let mut broken = bus.args("BlueLake", letter("RedForest"));
    broken.env("RELAY_TEST_BREAK", "send");
    let error = run(broken).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, |_| {});
    assert!(noted(&bus.store(), code).contains("fault of its own"));
    nobody(&error["playbook"][0]);
}
