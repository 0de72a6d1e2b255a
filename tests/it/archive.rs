//! The git archive as users meet it (I10): a copy that follows by itself, is never in the way, and heals.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::bus::{Bus, minutes, run};

fn archive(bus: &Bus) -> PathBuf {
    bus.store().join("archive.git")
}

fn git(bus: &Bus, args: &[&str]) -> String {
    String::from_utf8(bus.git_in(&archive(bus), args).stdout).unwrap()
}

/// How many events the archive lacks.
fn behind(bus: &Bus) -> u64 {
    bus.relay("", ["health"]).success().result()["archive"]["behind"].as_u64().unwrap()
}

/// Looks until the archive has everything.
fn follows(bus: &Bus) {
    let came = (0..3_000).any(|_| behind(bus) == 0);
    assert!(came, "nobody drained");
}

fn drain(bus: &Bus) -> u64 {
    bus.relay("", ["drain", "--wait"]).success().result()["archive"]["number"].as_u64().unwrap()
}

/// A command that leaves the archive to a process of its own, as outside of tests.
fn leaving<const N: usize>(bus: &Bus, agent: &str, args: [&str; N]) -> Command {
    let mut command = bus.args(agent, args);
    command.env_remove("RELAY_DRAIN");
    command
}

/// The processes that drain this bus in the background.
fn drainers(bus: &Bus) -> Vec<PathBuf> {
    let key = bus.key();
    let is_one = |process: &PathBuf| {
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        let words: Vec<&str> = line.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).unwrap()).collect();
        words.contains(&"--background") && words.contains(&key.as_str())
    };
    std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()).filter(is_one).collect()
}

#[test]
fn the_archive_follows_by_itself() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for subject in ["Login", "Login again", "Login at last"] {
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", subject, "--body", "text"];
        run(leaving(&bus, "BlueLake", args)).success();
    }
    follows(&bus);
    let told = git(&bus, &["log", "--format=%an: %B"]);
    assert!(told.contains("BlueLake wrote to RedForest in bd-1"), "{told}");
    assert!(told.contains("relay: "), "{told}");
}

#[test]
fn the_process_left_behind_holds_nothing_of_its_callers() {
    let bus = Bus::with(&["BlueLake"]);
    // As long as the lease is taken, whoever drains does not come to its end.
    let _lease = relay_store::archive::Archive::of(&bus.store()).lease().unwrap();
    let kept = bus.path("kept");
    std::fs::write(&kept, "").unwrap();
    let mut command = Command::new("sh");
    bus.environment(&mut command);
    command.env_remove("RELAY_DRAIN").env("KEPT", &kept).args(["-c", "exec 7<\"$KEPT\"; exec \"$0\" \"$@\""]);
    command.args([crate::bus::RELAY, "--agent", "BlueLake", "reserve", "src"]);
    // The pipes of the answer are at their end: whoever was left behind has none of them.
    run(command).success();
    // A process that has just been started has no words yet.
    let found = (0..1_000).map(|_| drainers(&bus)).find(|found| !found.is_empty()).unwrap_or_default();
    assert_eq!(found.len(), 1);
    let opened = std::fs::read_dir(found[0].join("fd")).unwrap().flatten();
    let targets: Vec<PathBuf> = opened.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect();
    assert!(!targets.is_empty());
    for target in targets {
        let text = target.to_str().unwrap();
        let own = target.starts_with(bus.home()) || text == "/dev/null" || text.starts_with("anon_inode:inotify");
        let clock = target == bus.path("clock");
        assert!(own || clock || text.starts_with("/proc"), "{text}");
    }
    assert_eq!(std::fs::read_link(found[0].join("cwd")).unwrap(), PathBuf::from("/"));
}

#[test]
fn where_no_process_can_be_left_behind_a_later_command_drains() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let number = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    assert_eq!(behind(&bus), number, "nothing drained by itself");
    run(leaving(&bus, "RedForest", ["ack", &number.to_string()])).success();
    follows(&bus);
}

#[test]
fn without_git_everything_else_goes_on() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let empty = bus.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let without_git = |args: &[&str]| {
        let mut command = bus.args("BlueLake", args);
        command.env("PATH", &empty).env_remove("RELAY_DRAIN");
        run(command)
    };
    without_git(&["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "b"]).success();
    let refused = without_git(&["drain", "--wait"]).fails("ARCHIVE_UNAVAILABLE");
    assert!(refused.error()["message"].as_str().unwrap().contains("git"), "{refused:?}");
    assert_eq!(without_git(&["status"]).success().signals(), [""; 0], "it may lag for a moment");
    bus.advance(minutes(2));
    let told = without_git(&["status"]).success();
    assert_eq!(told.signals(), ["ARCHIVE_LAGS"]);
    assert!(told.result()["archive"]["behind"].as_u64().unwrap() > 0);
    assert_eq!(without_git(&["health"]).success().signals(), ["ARCHIVE_LAGS"]);
    drain(&bus);
    assert_eq!(bus.relay("BlueLake", ["status"]).success().signals(), [""; 0]);
}

#[test]
fn an_archive_that_was_deleted_is_made_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    drain(&bus);
    let tree = git(&bus, &["rev-parse", "main^{tree}"]);
    std::fs::remove_dir_all(archive(&bus)).unwrap();
    bus.relay("BlueLake", ["status"]).success();
    drain(&bus);
    assert_eq!(git(&bus, &["rev-parse", "main^{tree}"]), tree);
}

/// Whoever can write to the store's folder must not have git start a program, or fetch: nothing of the kind is gone by.
#[test]
fn what_somebody_configured_in_the_archive_stops_it_and_runs_nothing() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    drain(&bus);
    let (script, trace) = (bus.path("upload-pack"), bus.path("trace"));
    std::fs::write(&script, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).unwrap();
    let config = archive(&bus).join("config");
    let whole = std::fs::read_to_string(&config).unwrap();
    let promisor = format!("\turl = /\n\tpromisor = true\n\tuploadpack = {}\n", script.display());
    std::fs::write(&config, format!("{whole}[remote \"origin\"]\n{promisor}")).unwrap();
    // git would fetch what the draft leads to and is not there.
    std::fs::write(archive(&bus).join("refs/relay/draft"), format!("{}\n", "1".repeat(40))).unwrap();
    bus.send("BlueLake", "RedForest", "bd-1", "Login again");
    let refused = bus.relay("", ["drain", "--wait"]).fails("ARCHIVE_DIVERGED").error();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("line 7 of config") && message.contains("`relay rebuild archive`"), "{message}");
    let found = bus.relay("", ["verify"]).fails("ARCHIVE_DIVERGED").error();
    assert!(found.to_string().contains("line 7 of config is not relay's"), "{found}");
    bus.relay("", ["rebuild", "archive"]).success();
    drain(&bus);
    assert!(!trace.exists(), "what was configured has run");
    // Where a copy of it is kept is the user's to write there.
    git(&bus, &["remote", "add", "--mirror=push", "copy", bus.path("copy.git").to_str().unwrap()]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login at last");
    drain(&bus);
    bus.relay("", ["verify"]).success();
}

#[test]
fn a_commit_of_somebody_else_stops_the_archive_and_nothing_else() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    drain(&bus);
    let foreign = git(&bus, &["commit-tree", "main^{tree}", "-p", "main", "-m", "mine"]);
    git(&bus, &["update-ref", "refs/heads/main", foreign.trim()]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).fails("ARCHIVE_DIVERGED");
    assert_eq!(git(&bus, &["rev-parse", "main"]), foreign, "it is left as it was");
    bus.advance(minutes(2));
    let told = bus.relay("BlueLake", ["status"]).success();
    assert_eq!(told.signals(), ["ARCHIVE_LAGS"]);
    assert!(told.stdout.contains("not relay's"), "{}", told.stdout);
    let found = bus.relay("", ["verify"]).fails("ARCHIVE_DIVERGED").error();
    let what = format!("its newest commit {} is not relay's", foreign.trim());
    assert_eq!(found["details"]["findings"][0]["what"], what);
    // A person has compared the two, and goes on by the playbook, which does not lead back here.
    let step = &found["playbook"][1]["run"];
    assert_eq!([&step[1], &step[2]], ["rebuild", "archive"]);
    let kept = bus.relay("", ["rebuild", "archive"]).success().result()["kept"].as_str().unwrap().to_owned();
    let old = bus.git_in(kept.as_ref(), &["rev-parse", "main"]).stdout;
    assert_eq!(String::from_utf8(old).unwrap(), foreign);
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
}

#[test]
fn a_lock_that_a_dead_drainer_left_is_no_obstacle() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    drain(&bus);
    for lock in ["refs/heads/main.lock", "refs/relay/draft.lock"] {
        std::fs::write(archive(&bus).join(lock), "").unwrap();
    }
    let number = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    assert_eq!(drain(&bus), number);
}

#[test]
fn a_ref_that_is_no_ref_is_said_to_be_so_and_rebuilt() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let number = drain(&bus);
    std::fs::write(archive(&bus).join("refs/heads/main"), "zz".repeat(20)).unwrap();
    bus.relay("", ["drain", "--wait"]).fails("ARCHIVE_DIVERGED");
    bus.relay("", ["verify"]).fails("ARCHIVE_DIVERGED");
    bus.relay("", ["rebuild", "store", "--from-archive"]).fails("ARCHIVE_DIVERGED");
    bus.relay("", ["rebuild", "archive"]).success();
    assert_eq!(drain(&bus), number);
    bus.relay("", ["verify"]).success();
}

#[test]
fn the_log_of_the_archive_betrays_no_blind_recipient() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldPeak"]);
    let args = ["send", "--to", "RedForest", "--bcc", "GoldPeak", "--thread", "bd-1", "--subject", "S", "--body", "b"];
    let id = bus.relay("BlueLake", [&args[..], &["--ack-required"]].concat()).success().result()["message"]["id"]
        .to_string();
    bus.relay("GoldPeak", ["poll", "--read"]).success();
    bus.relay("GoldPeak", ["ack", &id]).success();
    drain(&bus);
    let told = git(&bus, &["log", "--format=%B"]);
    let betrays = told.lines().find(|line| line.contains("GoldPeak") && line.contains(&format!("#{id}")));
    assert_eq!(betrays, None, "{told}");
    assert!(told.contains("GoldPeak acknowledged mail"), "{told}");
}

#[test]
fn nobodys_file_takes_the_place_of_one_of_relays_own() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    drain(&bus);
    let store = bus.store();
    for name in ["relay.db", "gate", "archive.git/HEAD", "archive.git", "new.db"] {
        let place = store.join(name);
        let place = place.to_str().unwrap();
        bus.relay("", ["backup", place, "--force"]).fails("INPUT_INVALID");
        bus.relay("BlueLake", ["export", "--output", place, "--force"]).fails("INPUT_INVALID");
    }
    bus.relay("", ["verify"]).success();
}

/// git does not always say why it could not write.
#[test]
fn an_archive_that_finds_no_room_says_so() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    drain(&bus);
    let home = bus.home();
    // Mounting needs a namespace of our own, where nobody else sees it.
    let script = "cp -a \"$1\" \"$1.small\" && mount -t tmpfs -o size=4m tmpfs \"$1\" && cp -a \"$1.small/.\" \"$1\" &&
        rm -r \"$1.small\" && free=$(df --output=avail -k \"$1\" | tail -1) &&
        head -c $((free - $2))K /dev/zero > \"$1/filler\" && exec \"$0\" --json rebuild archive";
    for left in ["0", "4", "8", "12", "16"] {
        let mut command = Command::new("unshare");
        bus.environment(&mut command);
        let words = ["--mount", "--map-root-user", "sh", "-c", script, crate::bus::RELAY, home.to_str().unwrap(), left];
        command.args(words);
        let error = run(command).fails("STORE_FULL").error();
        assert!(error["details"]["path"].as_str().unwrap().starts_with(home.to_str().unwrap()), "{error}");
    }
}
