//! I10: what happened is durable and can be inspected; the history is a result like any other.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;

use crate::bus::{Bus, RELAY, hours, minutes};
use crate::terminal::{column, text};
use crate::trace::trace;

#[test]
fn everything_that_happens_is_a_line_of_the_log() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let mut seen = bus.tip();
    let mut check = |agent: &str, args: &[&str], expected: &[&str]| {
        bus.relay(agent, args).success();
        let events = bus.events(seen);
        assert_eq!(column(&Value::from(events.clone()), "kind"), expected, "{args:?}");
        for event in &events {
            assert!(event["at"].is_string() && event["actor"].is_string(), "{event}");
            seen = event["number"].as_u64().unwrap();
        }
        seen
    };
    check("BlueLake", &["start", "--task", "Login"], &["agent_resumed"]);
    check("BlueLake", &["prepare", "--thread", "bd-1"], &["thread_prepared"]);
    let claim = check("BlueLake", &["reserve", "src/**"], &["reservation_granted"]).to_string();
    check("BlueLake", &["release", "--id", &claim, "--renew", "2h"], &["reservation_renewed"]);
    check("RedForest", &["policy", "contacts_only"], &["policy_set"]);
    let hold = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "S", "--body", "b", "--hold"];
    let held = check("BlueLake", &hold, &["link_requested", "message_sent"]).to_string();
    check("RedForest", &["link", "--target", "BlueLake", "--accept"], &["link_accepted"]);
    check("RedForest", &["poll"], &["mail_surfaced"]);
    check("RedForest", &["ack", &held, "--read"], &["mail_read"]);
    check("RedForest", &["ack", &held], &["mail_acked"]);
    check("RedForest", &["link", "--target", "BlueLake", "--revoke"], &["link_revoked"]);
    check("BlueLake", &hold, &["link_requested", "message_sent"]);
    check("RedForest", &["link", "--target", "BlueLake", "--block"], &["link_blocked", "held_lapsed", "message_sent"]);
    check("BlueLake", &["poll"], &["mail_surfaced"]);
    check("RedForest", &["leave", "bd-1"], &["thread_left"]);
    check("BlueLake", &["release", "--reason", "bd-1", "--done"], &["thread_closed"]);
    check("GreenHill", &["suspend", "RedForest"], &["agent_suspended"]);
    check("GreenHill", &["suspend", "RedForest", "--lift"], &["agent_reinstated"]);
    bus.advance(minutes(11));
    check(
        "GreenHill",
        &["release", "--id", &claim, "--force", "--why", "gone"],
        &["reservation_taken", "message_sent"],
    );
    check("GreenHill", &["retire"], &["reservation_released", "agent_retired"]);
    let last = check("GreenHill", &["start"], &["agent_resumed"]);
    let numbers: Vec<Value> = column(&Value::from(bus.events(0)), "number");
    assert_eq!(numbers, (1..=last).map(Value::from).collect::<Vec<_>>(), "numbers without gaps");
}

#[test]
fn the_number_of_the_event_that_made_a_thing_is_its_id() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let of_kind =
        |kind: &str| bus.events(0).into_iter().rfind(|event| event["kind"] == kind).unwrap()["number"].clone();
    let link = bus.relay("BlueLake", ["link", "--target", "RedForest"]).success().result();
    assert_eq!(link["link"]["id"], of_kind("link_requested"));
    let message = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    assert_eq!(of_kind("message_sent"), message);
    let claim = bus.relay("BlueLake", ["reserve", "src"]).success().result();
    assert_eq!(claim["granted"][0]["id"], of_kind("reservation_granted"));
}

#[test]
fn the_log_can_be_narrowed_and_read_on_from_any_number() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.send("RedForest", "BlueLake", "bd-2", "Logout");
    let log = |flags: &[&str]| bus.relay("", [&["log"], flags].concat()).success().result();
    let kinds = |flags: &[&str]| column(&log(flags)["events"], "kind");
    assert_eq!(kinds(&["--kind", "message_sent"]).len(), 2);
    assert_eq!(kinds(&["--kind", "message_sent", "--by", "redforest"]).len(), 1);
    assert_eq!(column(&log(&["--thread", "BD-1"])["events"], "actor"), ["BlueLake"]);
    let events = |flags: &[&str]| bus.relay("", [&["look", "events"], flags].concat()).success().result();
    let first = events(&["--after", "0", "--limit", "2"]);
    assert_eq!((column(&first["events"], "number"), &first["cursor"]), (vec![1.into(), 2.into()], &Value::from(2)));
    assert_eq!(events(&["--after", "2", "--limit", "1"])["events"][0]["number"], 3);
    assert_eq!(column(&log(&["--after", "1", "--before", "4"])["events"], "number"), [3, 2]);
    let newest = log(&["--limit", "1"]);
    assert_eq!(newest["events"][0]["number"], bus.tip(), "people want the end of the history");
    let plain = bus.text("", ["log"]).success().stdout;
    assert_eq!(plain.lines().filter(|line| line.starts_with('#')).count() as u64, bus.tip(), "{plain}");
}

#[test]
fn reading_leaves_no_trace_in_the_history() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    bus.relay("RedForest", ["poll"]).success();
    let before = bus.events(0);
    for args in [
        ["message", &id].as_slice(),
        &["thread", "bd-1"],
        &["thread"],
        &["agents"],
        &["whois", "BlueLake"],
        &["reservations"],
        &["look", "contacts"],
        &["look", "outbox"],
        &["look", "debt"],
        &["search", "login"],
        &["status"],
        &["log"],
        &["link", "--list"],
        &["poll"],
        &["health"],
        &["look", "playbook", "STORE_BUSY"],
        &["recover", "CONTACT_REQUIRED", "--dry-run"],
        &["project", "list"],
    ] {
        bus.relay("RedForest", args).success();
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn order_comes_from_the_number_and_never_from_the_clock() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let first = bus.send("BlueLake", "RedForest", "bd-1", "First");
    bus.advance(-minutes(5));
    let run = bus.relay("BlueLake", ["send", "--to", "RedForest", "--subject", "Second", "--body", "b"]).success();
    assert!(!run.signals().contains(&"CLOCK_JUMPED".to_owned()), "five minutes are believed");
    let second = run.result()["message"]["id"].as_u64().unwrap();
    assert_eq!((second, bus.inbox("RedForest")), (first + 1, vec![first, second]));
}

#[test]
fn an_event_from_the_future_is_signalled_and_not_believed() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.advance(hours(10));
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    bus.advance(-hours(10));
    let run = bus.relay("BlueLake", ["reserve", "src/a.rs"]).success();
    assert!(run.signals().contains(&"CLOCK_JUMPED".to_owned()));
    assert_eq!(run.result()["conflicts_total"], 0, "a claim that would stand for ever does not stand");
    let poll = bus.relay("BlueLake", ["poll"]).success();
    assert!(!poll.signals().contains(&"CLOCK_JUMPED".to_owned()), "the newest event is believable again");
}

#[test]
fn nothing_that_was_answered_is_lost_when_the_process_is_killed() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let mut answered = Vec::new();
    for round in 0..15 {
        let body = format!("message {round}");
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", &body];
        let mut child = bus.args("BlueLake", args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        answered.push(answer["result"]["message"]["id"].as_u64().unwrap());
    }
    assert_eq!(bus.inbox("RedForest"), answered);
    let sent: Vec<Value> = (0..15).map(|round| format!("message {round}").into()).collect();
    let mail = bus.relay("RedForest", ["poll", "--bodies"]).success().result();
    assert_eq!(column(&mail["messages"], "body"), sent);
    bus.relay("", ["health"]).success();
}

/// Every file and folder below, with its permissions.
fn modes(folder: &Path, found: &mut Vec<(String, bool, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let metadata = entry.metadata().unwrap();
        found.push((entry.path().display().to_string(), metadata.is_dir(), metadata.permissions().mode() & 0o7777));
        if metadata.is_dir() {
            modes(&entry.path(), found);
        }
    }
}

#[test]
fn what_is_kept_is_its_owners_alone_under_any_umask() {
    for umask in ["000", "077", "022", "777"] {
        let bus = Bus::new();
        let script = format!(
            "umask {umask}; for verb in 'start' 'prepare --thread bd-1' 'reserve src' 'poll' 'poll --wait 1s' 'send --to human --subject S --body b' 'send --to Nobody --subject S --body b' 'token human' 'drain'; do
             \"$0\" --agent BlueLake --json $verb; done"
        );
        let mut command = Command::new("sh");
        bus.environment(&mut command);
        let output = command.args(["-c", &script, RELAY]).output().unwrap();
        let answers = String::from_utf8(output.stdout).unwrap();
        assert_eq!(answers.matches("\"ok\":true").count(), 8, "{umask}: {answers}");
        let mut found = vec![(
            text(&Value::from(bus.home().to_str().unwrap())),
            true,
            bus.home().metadata().unwrap().permissions().mode() & 0o7777,
        )];
        modes(&bus.home(), &mut found);
        assert!(found.len() > 6, "{found:?}");
        for (path, is_folder, mode) in found {
            // git writes its packs once and for all.
            let is_packed = path.contains("/objects/pack/");
            let expected = if is_folder { 0o700 } else { 0o600 };
            assert!(mode == expected || is_packed && mode == 0o400, "umask {umask}: {path} {mode:o}");
        }
    }
}

#[test]
fn nothing_is_written_into_the_working_tree() {
    let bus = Bus::with(&["BlueLake"]);
    bus.track(&["src/a.rs"]);
    bus.relay("BlueLake", ["reserve", "src/**", "--", "true"]).success();
    let listed = bus.git(&["status", "--porcelain", "--ignored"]).stdout;
    assert_eq!(String::from_utf8(listed).unwrap(), "");
}

/// Surfaced mail is committed without a sync of its own; `drain` makes up for it, also when a reader keeps the log from
/// being folded.
#[test]
fn drain_makes_everything_durable_whoever_reads() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let reader = Connection::open(bus.store().join("relay.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let events = |reader: &Connection| reader.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0));
    let seen = events(&reader).unwrap();
    bus.relay("RedForest", ["poll"]).success();
    let drained = trace(&bus, &bus.args("", ["drain"]), Some("trace=execve,openat,fsync,fdatasync"));
    let durable = drained.run.success().result()["durable_up_to"].as_i64().unwrap();
    assert_eq!((durable, events(&reader).unwrap()), (seen + 1, seen), "the reader stands where it stood");
    let log = drained.calls.iter().position(|call| call.contains("/relay.db-wal\"") && call.contains("O_RDONLY"));
    let synced = drained.calls.iter().rposition(|call| call.starts_with("fsync("));
    assert!(log.is_some_and(|log| synced.is_some_and(|synced| log < synced)), "{:?}", drained.calls);
}
