//! Whenever the guard cannot tell, git goes on: where it blocks, too.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::yard::{block, commit, edit, git_command, guard, guarded, warned};
use crate::bus::{Bus, Run, run};
use crate::privilege::{self, Foreign};

/// A guard that blocks, and has a reason to.
fn strict() -> Bus {
    let bus = guarded();
    block(&bus);
    assert_ne!(commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").status, 0, "it blocks as long as all is well");
    bus
}

fn commits(bus: &Bus, variables: &[(&str, &str)]) -> Run {
    edit(&bus.repo(), "src/a.rs");
    let mut command = git_command(bus, &bus.repo(), "BlueLake", &["commit", "-qam", "work"]);
    command.envs(variables.iter().copied());
    run(command)
}

/// The commit was made, one line says why nobody was asked, and `doctor` will find it.
#[track_caller]
fn passes(bus: &Bus, variables: &[(&str, &str)], why: &str) {
    let run = commits(bus, variables).success();
    assert!(run.stderr.contains("the guard cannot tell") && run.stderr.contains(why), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    let noted = fs::read_to_string(bus.home().join("hooks/trace.jsonl")).unwrap();
    let last: Value = serde_json::from_str(noted.lines().last().unwrap()).unwrap();
    assert_eq!(last["what"], "guard pre-commit");
    assert!(last["why"].as_str().unwrap().contains(why), "{last}");
}

#[track_caller]
fn passes_silently(bus: &Bus, variables: &[(&str, &str)]) {
    let run = commits(bus, variables).success();
    assert_eq!(run.stderr, "", "{run:?}");
}

#[test]
fn when_the_store_is_away() {
    let bus = strict();
    fs::rename(bus.store(), bus.path("away")).unwrap();
    passes_silently(&bus, &[]);
    fs::remove_dir_all(bus.home()).unwrap();
    passes_silently(&bus, &[]);
    passes_silently(&bus, &[("RELAY_HOME", "/nowhere/at/all")]);
}

#[test]
fn when_the_store_is_damaged() {
    let bus = strict();
    let store = bus.store();
    for log in ["relay.db-wal", "relay.db-shm"] {
        let _ = fs::remove_file(store.join(log));
    }
    fs::write(store.join("relay.db"), "this is no store at all, and never was one").unwrap();
    passes(&bus, &[], "STORE_DAMAGED");
    bus.forget();
}

#[test]
fn when_the_store_is_anothers() {
    let bus = strict();
    let store = bus.store();
    let foreign = Foreign::new(&store);
    passes(&bus, &[], "STORE_FOREIGN");
    drop(foreign);
    assert!(warned(&commits(&bus, &[])), "and it is back");
}

#[test]
fn when_relay_breaks() {
    let bus = strict();
    passes(&bus, &[("RELAY_TEST_BREAK", "guard")], "INTERNAL: broken by a test");
    // It cannot say a word any more; the script alone lets git go on.
    commits(&bus, &[("RELAY_TEST_BREAK", "guard:abort")]).success();
}

#[test]
fn when_somebody_writes() {
    let bus = strict();
    let gate = fs::File::options().write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let run = commits(&bus, &[]);
    assert!(run.status != 0 && warned(&run), "whoever only reads waits for nobody: {run:?}");
}

#[test]
fn when_relay_is_gone_or_an_older_one() {
    let bus = strict();
    let hook = bus.repo().join(".git/hooks/pre-commit");
    let program = fs::canonicalize(privilege::binary_for_all(&bus.path("."))).unwrap();
    let mut command = Command::new(&program);
    bus.environment(&mut command);
    run({
        command.args(["--json", "guard", "install"]);
        command
    })
    .success();
    assert!(fs::read_to_string(&hook).unwrap().contains(program.to_str().unwrap()));
    fs::remove_file(&program).unwrap();
    passes_silently(&bus, &[]);
    // One that does not know the word.
    super::yard::script(&program, "#!/bin/sh\necho 'error: unrecognized subcommand' >&2\nexit 2\n", 0o755);
    commits(&bus, &[]).success();
}

#[test]
fn when_the_repository_is_none_of_relays() {
    let bus = strict();
    let other = bus.path("other");
    super::yard::git(&bus, &bus.path("."), "", &["init", "-q", other.to_str().unwrap()]).success();
    guard(&bus, &other, "install").success();
    for agent in ["", "BlueLake"] {
        let run = commit(&bus, &other, agent, "src/a.rs").success();
        assert_eq!(run.stderr, "", "{run:?}");
    }
    assert!(!bus.home().join("hooks/trace.jsonl").exists());
}

#[test]
fn when_the_repository_cannot_be_read() {
    let bus = guarded();
    block(&bus);
    edit(&bus.repo(), "src/a.rs");
    let odd = bus.path("odd.index");
    fs::write(&odd, "DIRC this is no index").unwrap();
    let mut command = bus.command();
    command.args(["--agent", "BlueLake", "guard", "pre-commit"]).env("GIT_INDEX_FILE", &odd);
    let run = run(command).success();
    assert!(run.stderr.contains("the guard cannot tell") && run.stderr.lines().count() == 1, "{run:?}");
}
