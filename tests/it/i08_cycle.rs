//! I8: `relay reserve PATTERN -- COMMAND` is the whole cycle: claim, run, release, pass the status on.

use std::process::Stdio;

use crate::bus::{Bus, RELAY, minutes, run};
use crate::terminal::{column, text};

fn live(bus: &Bus) -> Vec<serde_json::Value> {
    column(&bus.relay("", ["reservations"]).success().result()["reservations"], "pattern")
}

#[test]
fn the_commands_status_is_passed_on_and_the_claim_given_back() {
    let bus = Bus::with(&["BlueLake"]);
    for (script, status) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        let tip = bus.tip();
        let ran = bus.text("BlueLake", ["reserve", "src/**", "--", "sh", "-c", script]);
        assert_eq!(ran.status, status, "{script}");
        assert_eq!(bus.kinds(tip), ["reservation_granted", "reservation_released"], "{script}");
        assert_eq!(live(&bus), [""; 0]);
    }
}

#[test]
fn the_claim_is_held_while_the_command_runs_and_the_holder_is_alive() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let fifo = bus.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = bus.args("BlueLake", ["reserve", "src/**", "--", "cat"]);
    command.arg(&fifo);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Opening the other end returns when the command runs.
    let writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    assert_eq!(live(&bus), ["src/**"]);
    let other = bus.relay("RedForest", ["reserve", "src/a.rs"]).success().result();
    assert_eq!(column(&other["conflicts"], "holder"), ["BlueLake"]);
    bus.advance(minutes(30));
    bus.relay("RedForest", ["release", "src/**", "--force", "--why", "silent?"]).fails("HOLDER_ALIVE");
    drop(writer);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(live(&bus), ["src/a.rs"]);
}

#[test]
fn it_runs_and_warns_on_conflict_and_does_not_run_with_if_free() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let touch = |name: &str| bus.path(name).to_str().unwrap().to_owned();
    let warned = bus.text("BlueLake", ["reserve", "src/**", "--", "touch", &touch("ran")]).success();
    assert!(bus.path("ran").exists());
    assert!(warned.stderr.contains("RedForest"), "{warned:?}");
    let refused = bus.relay("BlueLake", ["reserve", "src/**", "--if-free", "--", "touch", &touch("did-not")]);
    let error = refused.fails("FILE_RESERVATION_CONFLICT").error();
    // Nobody but the caller can start the command again, so nothing is kept that would claim without it.
    let retries = error["playbook"].as_array().unwrap().iter().any(|step| step["tool"] == "recover");
    assert!(!retries, "{error}");
    assert!(!bus.path("did-not").exists());
    assert_eq!(live(&bus), ["src/a.rs"]);
    bus.text("BlueLake", ["reserve", "docs", "--if-free", "--", "touch", &touch("free")]).success();
    assert!(bus.path("free").exists());
}

#[test]
fn a_cycle_holds_its_claim_whatever_key_it_was_given() {
    let bus = Bus::with(&["BlueLake"]);
    for _ in 0..2 {
        let cycle = ["reserve", "src", "--idempotency-key", "k", "--", RELAY, "reservations", "--json"];
        let shown = bus.text("BlueLake", cycle).success();
        assert!(shown.stdout.contains("\"total\":1"), "{shown:?}");
        assert_eq!(shown.stderr, "");
    }
}

#[test]
fn under_json_the_answer_is_one_line_and_the_commands_text_goes_elsewhere() {
    let bus = Bus::with(&["BlueLake"]);
    let ran = bus.relay("BlueLake", ["reserve", "src/**", "--", "sh", "-c", "echo from the command"]).success();
    assert_eq!(ran.result()["granted"][0]["pattern"], "src/**");
    assert!(ran.stderr.contains("from the command"));
    let plain = bus.text("BlueLake", ["reserve", "src/**", "--", "echo", "from the command"]).success();
    assert_eq!(plain.stdout, "from the command\n");
}

#[test]
fn a_command_that_does_not_exist_leaves_no_claim_behind() {
    let bus = Bus::with(&["BlueLake"]);
    let failed = bus.text("BlueLake", ["reserve", "src/**", "--", "no-such-command-anywhere"]);
    assert_eq!(failed.status, 2);
    assert!(failed.stderr.contains("no-such-command-anywhere"), "{failed:?}");
    assert_eq!(live(&bus), [""; 0]);
    // One line, and it is the error.
    let error = bus.relay("BlueLake", ["reserve", "src/**", "--", "no-such-command-anywhere"]).fails("INPUT_INVALID");
    assert!(text(&error.error()["message"]).contains("no-such-command-anywhere"), "{error:?}");
    assert_eq!(live(&bus), [""; 0]);
}

/// A cycle over two patterns whose command runs until the writer is dropped.
fn two_held(bus: &Bus, script: &str) -> (std::process::Child, std::fs::File) {
    let fifo = bus.path("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let mut command = bus.args("BlueLake", ["reserve", "docs", "src/**", "--", "sh", "-c", script, "sh"]);
    command.arg(&fifo);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    (child, writer)
}

#[test]
fn a_claim_that_is_gone_meanwhile_does_not_keep_the_others() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    for gone in [
        ("BlueLake", &["release", "docs"] as &[&str]),
        ("human", &["release", "docs", "--force", "--why", "mine"]),
        ("BlueLake", &["release", "--all"]),
    ] {
        let (child, writer) = two_held(&bus, "cat \"$1\"; exit 7");
        assert_eq!(live(&bus), ["docs", "src/**"]);
        bus.relay(gone.0, gone.1).success();
        drop(writer);
        let ended = child.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(7), "{gone:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{gone:?}");
        assert_eq!(String::from_utf8_lossy(&ended.stdout).matches('\n').count(), 1, "{gone:?}");
        assert_eq!(live(&bus), [""; 0], "{gone:?}");
        std::fs::remove_file(bus.path("fifo")).unwrap();
    }
}

#[test]
fn what_is_still_held_is_renewed_while_the_command_runs() {
    let bus = Bus::with(&["BlueLake"]);
    let (child, writer) = two_held(&bus, "cat \"$1\"");
    let expiry = || column(&bus.relay("", ["reservations"]).success().result()["reservations"], "expires_at");
    bus.relay("BlueLake", ["release", "docs"]).success();
    let before = expiry();
    bus.advance(minutes(21));
    while expiry() == before {
        std::thread::park_timeout(std::time::Duration::from_millis(20));
    }
    assert_eq!(live(&bus), ["src/**"]);
    drop(writer);
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(live(&bus), [""; 0]);
}

#[test]
fn the_command_runs_in_the_callers_folder_with_its_arguments_untouched() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::create_dir(bus.repo().join("deep")).unwrap();
    let mut command = bus.command();
    command.current_dir(bus.repo().join("deep")).args(["--agent", "BlueLake", "reserve", "src", "--"]);
    command.args(["sh", "-c", "pwd; printf '%s\\n' \"$@\"", "x", "--json", "*", "a b"]);
    let ran = run(command).success();
    let expected = format!("{}/deep\n--json\n*\na b\n", bus.key());
    assert_eq!(ran.stdout, expected);
}

#[test]
fn a_claim_held_before_the_cycle_is_given_back_with_it() {
    let bus = Bus::with(&["BlueLake"]);
    let id = bus.relay("BlueLake", ["reserve", "src/**"]).success().result()["granted"][0]["id"].clone();
    let ran = bus.relay("BlueLake", ["reserve", "src/**", "--", "true"]).success().result();
    assert_eq!((&ran["granted"][0]["id"], text(&ran["granted"][0]["pattern"])), (&id, "src/**".into()));
    assert_eq!(live(&bus), [""; 0]);
}

/// A command that cannot be run is no cycle, and gives nothing away that was held before.
#[test]
fn what_was_held_before_a_command_that_cannot_be_run_stays_held() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["reserve", "src/keep.rs"]).success();
    let args = ["reserve", "src/keep.rs", "src/new.rs", "--", "/nonexistent/program"];
    bus.relay("BlueLake", args).fails("INPUT_INVALID");
    assert_eq!(live(&bus), ["src/keep.rs"]);
}
