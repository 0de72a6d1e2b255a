//! Stores that cannot be used: whose folder or disk does not allow it, or whose file is not what it should be.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use crate::bus::{Bus, Run, run};
use crate::fuse;
use crate::privilege::{self, Foreign, STRANGER, Stage};
use crate::unchanged::{assert_clear, copy_of, refused, snapshot};

/// One request that makes a store, some that write, some that read.
const REQUESTS: [&[&str]; 5] = [WRITING[0], WRITING[1], WRITING[2], READING[0], READING[1]];
const WRITING: [&[&str]; 4] = [
    &["start"],
    &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"],
    &["reserve", "src"],
    &["drain"],
];
const READING: [&[&str]; 7] =
    [&["poll"], &["status"], &["log"], &["thread", "bd-1"], &["search", "Login"], &["health"], &["verify"]];

fn busy_bus() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    // Into the file itself, so that what is done to it matters.
    bus.relay("BlueLake", ["drain"]).success();
    bus
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The bytes of every file of a store that must stay as it is, broken as it may be.
fn files(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !["gate", "relay.db-shm"].iter().any(|name| path.ends_with(name)))
        .map(|path| (path.clone(), fs::read(path).ok()))
        // A log without anything in it comes and goes.
        .filter(|(path, bytes)| !(path.ends_with("relay.db-wal") && bytes.as_ref().is_some_and(Vec::is_empty)))
        .collect();
    files.sort();
    files
}

#[test]
fn a_folder_that_is_read_only_is_named() {
    let bus = busy_bus();
    let store = bus.store();
    let relay = privilege::binary_for_all(&bus.path(""));
    let anybody = |args: &[&str]| {
        let mut command = Command::new(&relay);
        bus.environment(&mut command);
        command.arg("--json").args(args);
        privilege::unprivileged(&command)
    };
    let command = |args: &[&str]| anybody(&[&["--agent", "BlueLake"], args].concat());
    privilege::hand_over(&bus.home());
    // The store as it is works for that user; each refusal below is the mode's alone.
    run(command(&["health"])).success();
    let before = snapshot(&store);
    let everything =
        [vec![store.clone(), store.join("presence")], files(&store).into_iter().map(|(path, _)| path).collect()]
            .concat();
    let modes: Vec<(PathBuf, u32)> =
        everything.into_iter().map(|path| (path.clone(), fs::metadata(path).unwrap().permissions().mode())).collect();
    let set = |modes: &[(PathBuf, u32)], mask: u32| {
        modes.iter().for_each(|(path, mode)| fs::set_permissions(path, Permissions::from_mode(mode & mask)).unwrap());
    };
    set(&modes, !0o222);
    // The agents are another user's where root runs this, so that nobody is named.
    for args in &READING[1..] {
        run(anybody(args)).success();
    }
    for args in WRITING {
        let refusal = run(command(args)).fails("STORE_READONLY");
        assert_clear(&refusal, &[text(&store)]);
        let step = refusal.error()["playbook"][1]["why"].as_str().unwrap().to_owned();
        assert!(step.contains("writable") && step.contains(text(&store)), "{step}");
    }
    set(&modes, !0);
    assert_eq!(snapshot(&store), before);
    // A new project in a home that is read-only.
    fs::set_permissions(bus.home(), Permissions::from_mode(0o500)).unwrap();
    let other = bus.path("");
    let refusal = run(command(&["start", "--project", text(&other)])).fails("STORE_READONLY");
    assert_clear(&refusal, &[text(&bus.home())]);
    fs::set_permissions(bus.home(), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(snapshot(&store), before);
    run(command(&["health"])).success();
    // It is that user's by now, who finds it whole.
    run(command(&["verify"])).success();
    bus.forget();
}

#[test]
fn a_file_system_that_is_read_only_is_named() {
    let bus = busy_bus();
    let (store, before) = (bus.store(), snapshot(&bus.home()));
    let stage = Stage::new();
    stage.mount(&["--bind", text(&bus.home())], &bus.home());
    stage.mount(&["-o", "remount,bind,ro"], &bus.home());
    for args in READING {
        run(stage.enter(&bus.args("BlueLake", args))).success();
    }
    for args in WRITING {
        let refusal = run(stage.enter(&bus.args("BlueLake", args))).fails("STORE_READONLY");
        assert_clear(&refusal, &[text(&store)]);
    }
    let other = ["start", "--project", text(&bus.path("")).trim_end_matches('/')].map(str::to_owned);
    let refusal = run(stage.enter(&bus.args("BlueLake", other))).fails("STORE_READONLY");
    assert_clear(&refusal, &[text(&bus.home())]);
    assert_eq!(snapshot(&bus.home()), before);
}

#[test]
fn in_the_sandbox_of_a_coding_agent_a_write_names_the_tool_that_does_the_same() {
    let bus = busy_bus();
    let stage = Stage::new();
    stage.mount(&["--bind", text(&bus.home())], &bus.home());
    stage.mount(&["-o", "remount,bind,ro"], &bus.home());
    let message = |args: &[&str], session: &str| {
        let mut command = bus.args("BlueLake", args);
        command.env("CODEX_SESSION_ID", session);
        let error = run(stage.enter(&command)).fails("STORE_READONLY").error();
        error["message"].as_str().unwrap().to_owned()
    };
    let said = message(&["reserve", "src/**"], "one");
    assert!(said.contains("the tool `reserve` of the MCP server `relay` does the same"), "{said}");
    assert!(!message(&["reserve", "src/**"], "").contains("MCP"), "this is no coding agent's shell");
    let mut poll = bus.args("BlueLake", ["poll"]);
    poll.env("CODEX_SESSION_ID", "one");
    run(stage.enter(&poll)).success();
}

/// A file that takes the last byte of the disk.
fn fill(at: &Path) {
    use std::io::Write;
    let mut file = fs::File::create(at).unwrap();
    let block = [0; 4096];
    while file.write(&block).is_ok_and(|written| written > 0) {}
}

#[test]
fn a_full_disk_fails_without_a_trace() {
    let bus = Bus::new();
    fs::create_dir(bus.home()).unwrap();
    let stage = Stage::new();
    stage.mount(&["-t", "tmpfs", "-o", "size=4m,mode=0700", "relay-test"], &bus.home());
    let home = stage.look(&bus.home());
    let relay = |agent: &str, args: &[&str]| run(stage.enter(&bus.args(agent, args)));
    // A project that cannot even begin.
    fill(&home.join("filling"));
    assert_clear(&relay("BlueLake", &["start"]).fails("STORE_FULL"), &[text(&bus.home())]);
    fs::remove_file(home.join("filling")).unwrap();
    for agent in ["BlueLake", "RedForest"] {
        relay(agent, &["start"]).success();
    }
    let id = relay("BlueLake", REQUESTS[1]).success().result()["message"]["id"].to_string();
    let before = snapshot(&home);
    fill(&home.join("filling"));
    let body = "x".repeat(100_000);
    let large = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", &body];
    for args in [&large as &[&str], REQUESTS[1], REQUESTS[2]] {
        let refusal = relay("BlueLake", args).fails("STORE_FULL");
        assert_clear(&refusal, &[text(&bus.home())]);
        let last = refusal.error()["playbook"].as_array().unwrap().last().unwrap()["why"].clone();
        let key = refusal.error()["idempotency_key"].as_str().unwrap().to_owned();
        assert_eq!(last, format!("make the same request again with --idempotency-key {key}"));
    }
    // What needs no room works.
    relay("RedForest", &["status"]).success();
    relay("RedForest", &["message", &id]).success();
    fs::remove_file(home.join("filling")).unwrap();
    assert_eq!(snapshot(&home), before);
    for args in [&large as &[&str], REQUESTS[1], REQUESTS[2]] {
        relay("BlueLake", args).success();
    }
    let store = fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    let copy = copy_of(&store);
    assert_eq!(crate::bus::findings(copy.path()), []);
}

#[test]
fn a_store_of_another_owner_is_left_alone() {
    let bus = busy_bus();
    let store = bus.store();
    let relay = privilege::binary_for_all(&bus.path(""));
    let mut own = Command::new(&relay);
    bus.environment(&mut own);
    own.args(["--json", "--agent", "BlueLake"]);
    // With the right to look into it, and without.
    let mut callers = vec![own];
    if privilege::is_root() {
        callers.push(privilege::as_user(STRANGER, &callers[0]));
    }
    let before = snapshot(&bus.home());
    for folder in [store.clone(), bus.home()] {
        let foreign = Foreign::new(&folder);
        for caller in &callers {
            for args in REQUESTS {
                let mut command = Command::new(caller.get_program());
                bus.environment(&mut command);
                command.args(caller.get_args()).args(args);
                let refusal = run(command).fails("STORE_FOREIGN");
                assert_clear(&refusal, &[text(&bus.home()), "belongs to user"]);
            }
        }
        drop(foreign);
    }
    assert_eq!(snapshot(&bus.home()), before);
    bus.relay("BlueLake", ["health"]).success();
}

#[test]
fn a_file_of_another_owner_in_our_store_is_left_alone() {
    let bus = busy_bus();
    let file = bus.store().join("relay.db");
    let before = snapshot(&bus.home());
    let foreign = Foreign::new(&file);
    for args in REQUESTS {
        let refusal = bus.relay("BlueLake", args).fails("STORE_FOREIGN");
        assert_clear(&refusal, &[text(&file), "belongs to user"]);
    }
    drop(foreign);
    assert_eq!(snapshot(&bus.home()), before);
}

#[test]
fn a_file_system_in_user_space_is_refused() {
    let bus = Bus::new();
    fs::create_dir(bus.home()).unwrap();
    let stage = Stage::new();
    let made = fuse::mount(&stage, &bus.home());
    let refused = |command: Command| {
        let refusal = run(stage.enter(&command)).fails("STORE_UNSUPPORTED");
        assert_clear(&refusal, &[text(&bus.home()), "FUSE"]);
        let step = refusal.error()["playbook"][0]["why"].as_str().unwrap().to_owned();
        assert!(step.contains("RELAY_HOME") && step.contains("local disk"), "{step}");
    };
    refused(bus.args("BlueLake", ["start"]));
    refused(bus.args("BlueLake", ["prepare", "--thread", "bd-1"]));
    let mut deeper = bus.args("BlueLake", ["start"]);
    deeper.env("RELAY_HOME", bus.home().join("not/there/yet"));
    refused(deeper);
    assert_eq!(made.names(), Vec::<String>::new());
    // A store that was there before the folder became a mount of that kind: under it, nobody has started.
    let refusal = run(stage.enter(&bus.args("BlueLake", ["poll"]))).fails("AGENT_NOT_REGISTERED");
    assert_clear(&refusal, &[&bus.key()]);
}

/// Spoils the store, sees every request refused with this class, and the spoilt files left as they are.
#[track_caller]
fn check_spoilt(spoil: impl Fn(&Path), code: &str, shown: &[&str]) {
    let bus = busy_bus();
    let store = bus.store();
    spoil(&store);
    let before = files(&store);
    let health: &[&str] = &["health"];
    for args in REQUESTS.iter().chain([&health]) {
        let refusal = bus.relay("BlueLake", *args).fails(code);
        assert_clear(&refusal, shown);
        let message = refusal.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(text(&store)), "{message}");
        assert!(files(&store) == before, "{args:?} touched a store that is {code}");
    }
    bus.forget();
}

#[test]
fn a_database_of_garbage_is_damaged() {
    check_spoilt(
        |store| fs::write(store.join("relay.db"), "garbage".repeat(10_000)).unwrap(),
        "STORE_DAMAGED",
        &["not a database"],
    );
    check_spoilt(|store| fs::write(store.join("relay.db"), "x").unwrap(), "STORE_DAMAGED", &[]);
    // The header is fine and nothing after it is.
    let garble = |store: &Path| {
        let mut bytes = fs::read(store.join("relay.db")).unwrap();
        bytes[4096..].fill(0xa5);
        fs::write(store.join("relay.db"), bytes).unwrap();
    };
    check_spoilt(garble, "STORE_DAMAGED", &[]);
}

#[test]
fn a_database_that_is_cut_off_is_damaged() {
    let cut = |keep: &'static dyn Fn(u64) -> u64| {
        move |store: &Path| {
            let file = fs::OpenOptions::new().write(true).open(store.join("relay.db")).unwrap();
            file.set_len(keep(file.metadata().unwrap().len())).unwrap();
        }
    };
    check_spoilt(cut(&|length| length / 2), "STORE_DAMAGED", &[]);
    check_spoilt(cut(&|length| length - 4096), "STORE_DAMAGED", &[]);
    check_spoilt(cut(&|_| 4096), "STORE_DAMAGED", &[]);
    check_spoilt(cut(&|_| 1000), "STORE_DAMAGED", &[]);
    check_spoilt(cut(&|_| 50), "STORE_DAMAGED", &[]);
    // An empty file is how a new store begins; where there was a history it is none.
    check_spoilt(cut(&|_| 0), "STORE_DAMAGED", &["empty"]);
}

#[test]
fn a_database_that_is_gone_is_not_begun_anew() {
    let bus = busy_bus();
    let file = bus.store().join("relay.db");
    fs::remove_file(&file).unwrap();
    let refusal = bus.relay("BlueLake", ["start"]).fails("STORE_DAMAGED");
    assert_clear(&refusal, &[text(&file)]);
    assert!(!file.exists());
    bus.forget();
}

#[test]
fn a_database_of_a_newer_relay_is_not_touched() {
    let newer = |store: &Path| {
        let connection = Connection::open(store.join("relay.db")).unwrap();
        connection.execute_batch("PRAGMA user_version = 99").unwrap();
    };
    check_spoilt(newer, "STORE_TOO_NEW", &["format 99", "up to 2"]);
}

#[test]
fn a_database_of_another_program_is_not_touched() {
    let other = |store: &Path| {
        fs::remove_file(store.join("relay.db")).unwrap();
        let connection = Connection::open(store.join("relay.db")).unwrap();
        connection.execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 1").unwrap();
    };
    check_spoilt(other, "STORE_DAMAGED", &["not one of relay's"]);
}

/// What stands in the place of a file of the store is not followed, and not overwritten.
#[test]
fn links_and_folders_in_place_of_files_are_refused() {
    for name in ["relay.db", "relay.db-wal", "relay.db-shm", "gate"] {
        let to_folder = |store: &Path| {
            let _ = fs::remove_file(store.join(name));
            fs::create_dir(store.join(name)).unwrap();
        };
        check_displaced(name, "folder", to_folder);
        let to_link = |store: &Path| {
            let elsewhere = store.parent().unwrap().parent().unwrap().join("elsewhere");
            fs::rename(store.join(name), &elsewhere).unwrap();
            std::os::unix::fs::symlink(elsewhere, store.join(name)).unwrap();
        };
        check_displaced(name, "link", to_link);
    }
}

#[test]
fn links_and_files_in_place_of_folders_are_refused() {
    let displace = |path: &Path| {
        let elsewhere = path.parent().unwrap().join("elsewhere");
        fs::rename(path, &elsewhere).unwrap();
        elsewhere
    };
    for name in ["presence", ""] {
        let to_link = |store: &Path| {
            let path = PathBuf::from(text(&store.join(name)).trim_end_matches('/'));
            std::os::unix::fs::symlink(displace(&path), path).unwrap();
        };
        check_displaced(name, "link", to_link);
        let to_file = |store: &Path| {
            let path = PathBuf::from(text(&store.join(name)).trim_end_matches('/'));
            displace(&path);
            fs::write(path, "text").unwrap();
        };
        check_displaced(name, "file", to_file);
    }
}

#[track_caller]
fn check_displaced(name: &str, by: &str, displace: impl Fn(&Path)) {
    let bus = busy_bus();
    let store = bus.store();
    displace(&store);
    let path = store.join(name);
    let shown = text(&path).trim_end_matches('/');
    let before = snapshot(&bus.home());
    for args in [REQUESTS[0], REQUESTS[1], REQUESTS[2]] {
        let refusal: Run = refused(&bus, "BlueLake", args, "STORE_FOREIGN", &[shown, by]);
        let step = refusal.error()["playbook"][0]["why"].as_str().unwrap().to_owned();
        assert!(step.contains(shown), "{step}");
    }
    assert_eq!(snapshot(&bus.home()), before);
    bus.forget();
}

/// A home that is a link was chosen by its user; what is below it was not.
#[test]
fn a_home_that_is_a_link_is_the_folder_that_it_leads_to() {
    let bus = Bus::new();
    let elsewhere = bus.path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, bus.home()).unwrap();
    for args in [&["start"] as &[&str], &["reserve", "src"], &["status"]] {
        bus.relay("BlueLake", args).success();
    }
    assert_eq!(fs::metadata(&elsewhere).unwrap().permissions().mode() & 0o777, 0o700);
}
