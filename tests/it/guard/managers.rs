//! The managers of hooks that people use, as they really are: relay writes nothing of theirs, says what to add, and is asked
//! once that is added.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::yard::{block, commit, edit, git, git_command, guard, snapshot, states, warned, yard};
use crate::bus::{Bus, Run, run};
use crate::outside;

/// A manager's own program, in the repository, with git as the test has it.
fn manager(bus: &Bus, mut command: Command) -> Run {
    let git = git_command(bus, &bus.repo(), "", &[]);
    command.current_dir(bus.repo());
    for (name, value) in git.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    run(command).success()
}

/// Refused with the lines to add; those are added, and then git asks relay through the manager.
#[track_caller]
fn check(bus: &Bus, whose: &str, own: impl Fn()) {
    own();
    let before = snapshot(&bus.repo());
    let error = guard(bus, &bus.repo(), "install").fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains(whose), "{error}");
    guard(bus, &bus.repo(), "remove").success();
    assert!(snapshot(&bus.repo()) == before, "nothing of {whose} is touched");
    assert!(!warned(&commit(bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    for addition in error["details"]["add"].as_array().unwrap() {
        let file = Path::new(addition["file"].as_str().unwrap());
        let there = fs::read_to_string(file).unwrap_or_default();
        fs::write(file, format!("{there}{}", addition["text"].as_str().unwrap())).unwrap();
    }
    own();
    assert_eq!(states(&guard(bus, &bus.repo(), "install").success()), ["called", "called"]);
    assert_eq!(states(&guard(bus, &bus.repo(), "status").success()), ["called", "called"]);
    let run = commit(bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    assert!(warned(&run), "{run:?}");
    let run = git(bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success();
    assert!(warned(&run), "{run:?}");
    block(bus);
    edit(&bus.repo(), "src/a.rs");
    git(bus, &bus.repo(), "BlueLake", &["add", "-A"]).success();
    let run = git(bus, &bus.repo(), "BlueLake", &["commit", "-m", "work"]);
    assert!(run.status != 0 && warned(&run), "{run:?}");
    git(bus, &bus.repo(), "BlueLake", &["commit", "--no-verify", "-qm", "work"]).success();
    let run = git(bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]);
    assert!(run.status != 0 && warned(&run), "{run:?}");
    git(bus, &bus.repo(), "RedForest", &["push", "-q", "origin", "main"]).success();
}

#[test]
fn husky_keeps_its_hooks() {
    let bus = yard();
    check(&bus, "husky", || {
        let mut command = outside::node(&bus);
        command.arg(outside::npm().join("node_modules/husky/bin.js"));
        manager(&bus, command);
    });
}

#[test]
fn lefthook_keeps_its_hooks() {
    let bus = yard();
    fs::write(bus.repo().join("lefthook.yml"), "commit-msg:\n  commands:\n    always:\n      run: 'true'\n").unwrap();
    check(&bus, "lefthook", || {
        let mut command = Command::new(outside::lefthook());
        command.arg("install");
        manager(&bus, command);
    });
}

#[test]
fn pre_commit_keeps_its_hooks() {
    // However far in people write the list.
    for list in ["repos:\n-   repo: meta\n    hooks:\n    -   id: identity\n", IN_A_BIT] {
        let bus = yard();
        fs::write(bus.repo().join(".pre-commit-config.yaml"), list).unwrap();
        check(&bus, "pre-commit", || {
            let mut command = outside::python(&bus);
            command.args(["-m", "pre_commit", "install", "--hook-type", "pre-commit", "--hook-type", "pre-push"]);
            manager(&bus, command);
        });
    }
}

const IN_A_BIT: &str = "repos:\n  - repo: meta\n    hooks:\n      - id: identity\n";

#[test]
fn pre_commit_that_comes_later_runs_relays_hook_first() {
    let bus = yard();
    guard(&bus, &bus.repo(), "install").success();
    fs::write(bus.repo().join(".pre-commit-config.yaml"), IN_A_BIT).unwrap();
    let pre_commit = |word: &str| {
        let mut command = outside::python(&bus);
        command.args(["-m", "pre_commit", word]);
        manager(&bus, command);
    };
    pre_commit("install");
    let run = commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    assert!(warned(&run), "{run:?}");
    pre_commit("uninstall");
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["installed", "installed"]);
}
