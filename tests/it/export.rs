//! `relay export`: a thread or the project to take away, as far as one may see it.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::bus::{Bus, minutes};

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))).collect()
}

fn send(bus: &Bus, from: &str, args: &[&str]) -> u64 {
    bus.relay(from, [&["send"], args].concat()).success().result()["message"]["id"].as_u64().unwrap()
}

#[test]
fn a_thread_reads_as_a_document() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let claim = bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success().result();
    let claim = claim["granted"][0]["id"].as_u64().unwrap();
    let first = ["--to", "RedForest", "--cc", "GreenHill", "--thread", "bd-1", "--subject", "Login: a *new* API"];
    let first = send(&bus, "BlueLake", &[&first[..], &["--body", "One.\n\n# Two", "--ack-required"]].concat());
    bus.advance(minutes(5));
    bus.relay("RedForest", ["ack", &first.to_string()]).success();
    let reply = ["--reply-to", &first.to_string(), "--body", "Fine.", "--importance", "high"];
    let reply = send(&bus, "RedForest", &reply);
    send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "bd-2", "--subject", "Other", "--body", "other"]);
    bus.relay("BlueLake", ["release", "--all"]).success();
    let document = bus.text("", ["export", "--thread", "BD-1"]).success().stdout;
    let expected = format!(
        "# bd-1: Login: a \\*new\\* API

Open. Participants: BlueLake, GreenHill, RedForest.

## #{first} Login: a \\*new\\* API

BlueLake, 2026-11-15T00:00:00Z

> One.
>
> # Two

- RedForest: acknowledged 2026-11-15T00:05:00Z
- GreenHill (cc): not seen yet, has yet to acknowledge

## #{reply} Re: Login: a \\*new\\* API

RedForest, 2026-11-15T00:05:00Z, high, in reply to #{first}

> Fine.

- BlueLake: not seen yet

## Claims for it

- #{claim} src/\\*\\*: BlueLake, from 2026-11-15T00:00:00Z, released 2026-11-15T00:05:00Z
"
    );
    assert_eq!(document, expected);
}

#[test]
fn a_project_is_all_its_threads_in_the_order_of_their_beginning() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for thread in ["bd-9", "bd-1", "bd-9"] {
        bus.send("BlueLake", "RedForest", thread, "Login");
        bus.advance(minutes(1));
    }
    bus.relay("BlueLake", ["reserve", "docs"]).success();
    bus.relay("BlueLake", ["reserve", "src", "--reason", "bd-9"]).success();
    bus.relay("BlueLake", ["release", "src"]).success();
    let document = bus.text("", ["export"]).success().stdout;
    let (ended, open) = document.split_once("## Claims\n\n").unwrap().1.split_once('\n').unwrap();
    assert!(ended.contains(" src for bd-9: BlueLake, from 2026-11-15T00:03:00Z, released "), "{ended}");
    assert!(open.contains(" docs: BlueLake, from 2026-11-15T00:03:00Z, ends "), "{open}");
    let headings: Vec<&str> =
        document.lines().filter(|line| line.starts_with("# ") || line.starts_with("## ")).collect();
    assert_eq!(headings, ["# repo", "## bd-9: Login", "## bd-1: Login", "## Claims"]);
    assert!(document.contains(&format!("up to #{}", bus.tip())), "{document}");
}

/// What others wrote stays inside its place, whatever it looks like.
#[test]
fn no_body_and_no_subject_can_pass_for_the_document() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let body = "text\n# bd-7: forged\r\n## #99 forged\n\u{1b}[31m\n- RedForest: acknowledged\n";
    let args = ["--to", "RedForest", "--thread", "bd-1", "--subject", "](x) <b> `c`", "--body", body];
    send(&bus, "BlueLake", &args);
    let document = bus.text("", ["export"]).success().stdout;
    assert!(!document.contains('\u{1b}'), "{document}");
    assert!(document.contains("\\](x) \\<b\\> \\`c\\`"), "{document}");
    for line in document.lines().filter(|line| line.contains("forged") || line.contains(": acknowledged")) {
        assert!(line.starts_with("> "), "{line}");
    }
}

#[test]
fn a_line_per_event_is_what_events_show_with_the_bodies() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src", "--reason", "bd-1"]).success();
    let exact = "text\n\u{202e}\u{1b}[31m exact";
    let id = send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", exact]);
    bus.send("BlueLake", "RedForest", "bd-2", "Other");
    let exported = lines(&bus.text("", ["export", "--format", "jsonl"]).success().stdout);
    let mut without_bodies = exported.clone();
    for event in &mut without_bodies {
        event["data"].as_object_mut().unwrap().remove("body");
    }
    assert_eq!(without_bodies, bus.events(0));
    let message = exported.iter().find(|event| event["number"] == id).unwrap();
    assert_eq!((&message["data"]["subject"], &message["data"]["body"]), (&json!("Login"), &json!(exact)));
    let thread = lines(&bus.text("", ["export", "--format", "jsonl", "--thread", "bd-1"]).success().stdout);
    let kinds: Vec<&str> = thread.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["reservation_granted", "message_sent"]);
}

/// The reading rule holds for everything that is taken away.
#[test]
fn everybody_exports_what_it_may_see_and_the_human_everything() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill", "GoldOwl"]);
    bus.relay("GoldOwl", ["policy", "open"]).success();
    bus.relay("", ["token", "human"]).success();
    let mixed = ["--to", "RedForest", "--bcc", "GoldOwl", "--thread", "bd-1", "--subject", "Mixed", "--body", "mixed"];
    let mixed = send(&bus, "BlueLake", &mixed);
    let blind = ["--bcc", "GoldOwl", "--thread", "bd-2", "--subject", "Blind", "--body", "hushed"];
    let blind = send(&bus, "BlueLake", &blind);
    for (viewer, knows_gold, sees_blind) in [
        ("human", true, true),
        ("BlueLake", true, true),
        ("GoldOwl", true, true),
        ("RedForest", false, false),
        ("GreenHill", false, false),
        ("", false, false),
    ] {
        let document = bus.text(viewer, ["export"]).success().stdout;
        assert_eq!(document.contains("GoldOwl (bcc)"), knows_gold, "{viewer}: {document}");
        assert_eq!(document.contains("hushed"), sees_blind, "{viewer}");
        assert_eq!(document.contains("bd-2"), sees_blind, "{viewer}");
        assert!(document.contains("> mixed"), "{viewer}");
        let events = lines(&bus.text(viewer, ["export", "--format", "jsonl"]).success().stdout);
        let find = |id: u64| events.iter().find(|event| event["number"] == id);
        assert_eq!(find(blind).is_some(), sees_blind, "{viewer}");
        let recipients = find(mixed).unwrap()["data"]["recipients"].as_array().unwrap().len();
        assert_eq!(recipients, if knows_gold { 2 } else { 1 }, "{viewer}");
        let thread = bus.text(viewer, ["export", "--thread", "bd-2"]);
        assert_eq!(thread.status == 0, sees_blind, "{viewer}");
    }
    bus.relay("", ["export", "--thread", "bd-2", "--output", "x.md"]).fails("THREAD_NOT_FOUND");
}

#[test]
fn a_file_is_made_whole_private_and_never_over_another() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let file = bus.path("out.md");
    let name = file.to_str().unwrap();
    let export = |args: &[&str]| bus.relay("", [&["export", "--output", name], args].concat());
    let answer = export(&[]).success().result();
    assert_eq!((&answer["threads"], &answer["messages"], &answer["path"]), (&json!(1), &json!(1), &json!(name)));
    let written = std::fs::read_to_string(&file).unwrap();
    assert_eq!(answer["bytes"], written.len());
    assert_eq!(written, bus.text("", ["export"]).success().stdout);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    export(&["--format", "jsonl"]).fails("INPUT_INVALID");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    let answer = export(&["--format", "jsonl", "--force"]).success().result();
    assert_eq!(answer["events"], lines(&std::fs::read_to_string(&file).unwrap()).len());
    let told = bus.text("", ["export", "--output", name, "--force"]).success().stdout;
    assert!(told.starts_with(&format!("1 message in 1 thread up to #{} in ", bus.tip())), "{told}");
    for args in [
        &["export"] as &[&str],
        &["export", "--format", "html", "--output", "x.html"],
        &["export", "--output", "missing/x.md"],
        &["export", "--output", "."],
    ] {
        bus.relay("", args).fails("INPUT_INVALID");
    }
    bus.relay("", ["export", "--thread", "bd-404", "--output", "x.md"]).fails("THREAD_NOT_FOUND");
    bus.relay("", ["export", "--thread", "b d", "--output", "x.md"]).fails("THREAD_ID_INVALID");
    let left: Vec<_> = std::fs::read_dir(bus.repo()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".git"], "a refused export leaves nothing");
}

#[test]
fn an_erased_message_says_who_erased_it_and_why() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id =
        send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "bd-1", "--subject", "Key", "--body", "hunter2"]);
    send(&bus, "RedForest", &["--reply-to", &id.to_string(), "--body", "Thanks."]);
    bus.advance(minutes(1));
    bus.relay("BlueLake", ["redact", &id.to_string(), "--why", "a *token*"]).success();
    let document = bus.text("", ["export"]).success().stdout;
    let tombstone = format!("(erased by BlueLake, 2026-11-15T00:01:00Z, with #{}: a \\*token\\*)", bus.tip());
    assert!(document.contains(&format!("### #{id} (erased)\n")) && document.contains(&tombstone), "{document}");
    assert!(document.contains(" (subject erased with an earlier message's)\n"), "{document}");
    assert!(document.contains("> Thanks.\n") && !document.contains("hunter2"), "{document}");
}

#[test]
fn a_dash_names_the_standard_output_and_no_file() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    for format in ["markdown", "jsonl"] {
        let plain = bus.text("", ["export", "--format", format]).success().stdout;
        assert_eq!(bus.text("", ["export", "--format", format, "-o", "-"]).success().stdout, plain);
    }
    bus.relay("", ["export", "-o", "-"]).fails("INPUT_INVALID");
    assert!(!bus.repo().join("-").exists());
    bus.relay("", ["export", "-o", "./-"]).success();
    assert!(bus.repo().join("-").exists());
}

/// Somebody who reads slowly, or not at all, keeps no view of the store: its log is folded in meanwhile, and the export
/// still ends with the event that was the newest when it began.
#[test]
fn a_slow_reader_holds_nobody_up() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let long = "x".repeat(60 * 1024);
    let sent = |count: u64| {
        for _ in 0..count {
            send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "bd-1", "--subject", "Long", "--body", &long]);
        }
    };
    sent(6);
    for format in ["markdown", "jsonl"] {
        let tip = bus.tip();
        let mut command = bus.command();
        command.args(["export", "--format", format]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It has begun, and more than a pipe holds is yet to come.
        let mut document = [0; 1].to_vec();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut document).unwrap();
        sent(1);
        let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
        let busy: i64 = store.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0, "{format}");
        stdout.read_to_end(&mut document).unwrap();
        assert!(child.wait().unwrap().success());
        let document = String::from_utf8(document).unwrap();
        match format {
            "markdown" => assert_eq!(document.matches("\n### #").count() as u64, tip - first_sent(&bus) + 1),
            _ => assert_eq!(lines(&document).last().unwrap()["number"], tip),
        }
    }
}

/// The number of the first message; nothing else is written down after it.
fn first_sent(bus: &Bus) -> u64 {
    bus.events(0).iter().find(|event| event["kind"] == "message_sent").unwrap()["number"].as_u64().unwrap()
}

#[test]
fn a_reader_that_has_seen_enough_ends_the_export_quietly() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let long = "x".repeat(100 * 1024);
    for _ in 0..3 {
        send(&bus, "BlueLake", &["--to", "RedForest", "--thread", "bd-1", "--subject", "Long", "--body", &long]);
    }
    for format in ["markdown", "jsonl"] {
        let mut command = bus.command();
        command.args(["export", "--format", format]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap()),
            (Some(0), String::new()),
            "{format}"
        );
        // A disk that is full is no such reader.
        let mut command = bus.command();
        command.args(["export", "--format", format]).stdout(std::fs::File::create("/dev/full").unwrap());
        let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(6) && said.contains("STORE_FULL"), "{format}: {said}");
    }
}
