//! The reading rule, through every verb that reads: the project is the boundary, and blind copies are the exception.

use serde_json::Value;

use crate::bus::{Bus, Run};
use crate::terminal::without_size;

const SENDER: &str = "BlueLake";
const TO: &str = "RedForest";
const CC: &str = "GreenHill";
const BLIND: &str = "GoldRiver";
/// Stands where the blind recipient stands, in the other of two worlds.
const OTHER_BLIND: &str = "SilverFox";
const STRANGER: &str = "GreyStone";
const NOBODY: &str = "";
const HUMAN: &str = "human";

const VIEWERS: [&str; 7] = [SENDER, TO, CC, BLIND, STRANGER, NOBODY, HUMAN];
/// Those who may not learn of a blind copy.
const OUTSIDERS: [&str; 4] = [TO, CC, STRANGER, NOBODY];

/// One message: its thread, the lines of its envelope, and the word that only its body has.
struct Kind {
    thread: &'static str,
    lines: &'static [(&'static str, &'static str)],
    word: &'static str,
}

const PLAIN: Kind = Kind { thread: "plain", lines: &[("to", TO), ("cc", CC)], word: "ordinary" };
const MIXED: Kind = Kind { thread: "mixed", lines: &[("to", TO), ("cc", CC), ("bcc", BLIND)], word: "accompanied" };
const SECRET: Kind = Kind { thread: "secret", lines: &[("bcc", BLIND)], word: "confidential" };
/// Opens a thread that an ordinary message goes on with.
const VEIL: Kind = Kind { thread: "veiled", lines: &[("bcc", BLIND)], word: "hushed" };
const AFTER: Kind = Kind { thread: "veiled", lines: &[("to", TO)], word: "loud" };

/// Everybody, open to everybody, so that no request for contact tells who was written to.
fn project() -> Bus {
    let agents = [SENDER, TO, CC, BLIND, OTHER_BLIND, STRANGER];
    let bus = Bus::with(&agents);
    for agent in agents {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus.relay(NOBODY, ["token", "human"]).success();
    bus
}

fn post(bus: &Bus, kind: &Kind, blind: &str) -> u64 {
    let mut args =
        vec!["send", "--thread", kind.thread, "--subject", kind.thread, "--body", kind.word, "--ack-required"];
    for (line, name) in kind.lines {
        args.push(match *line {
            "to" => "--to",
            "cc" => "--cc",
            _ => "--bcc",
        });
        args.push(if *name == BLIND { blind } else { name });
    }
    bus.relay(SENDER, args).success().result()["message"]["id"].as_u64().unwrap()
}

/// The envelope as the viewer may see it; none where the message does not exist for it.
fn envelope(viewer: &str, kind: &Kind) -> Option<Vec<(String, String)>> {
    let knows = [SENDER, BLIND, HUMAN].contains(&viewer);
    let lines: Vec<_> = kind
        .lines
        .iter()
        .filter(|(line, _)| *line != "bcc" || knows)
        .map(|(line, name)| ((*line).to_owned(), (*name).to_owned()))
        .collect();
    (!lines.is_empty()).then_some(lines)
}

fn sorted(mut lines: Vec<(String, String)>) -> Vec<(String, String)> {
    lines.sort();
    lines
}

/// The lines of a message in an answer, or of its event.
fn lines(found: &Value) -> Vec<(String, String)> {
    let recipients = found.get("recipients").unwrap_or(&found["data"]["recipients"]);
    let text = |recipient: &Value, keys: [&str; 2]| {
        recipient.get(keys[0]).unwrap_or(&recipient[keys[1]]).as_str().unwrap().to_owned()
    };
    recipients
        .as_array()
        .unwrap()
        .iter()
        .map(|recipient| (text(recipient, ["line", "kind"]), text(recipient, ["party", "name"])))
        .collect()
}

fn by_number<'a>(list: &'a Value, field: &str, id: u64) -> Option<&'a Value> {
    list.as_array().unwrap().iter().find(|found| found[field] == id)
}

/// Reads one message in every way there is, and compares what each shows of its envelope.
fn check(bus: &Bus, viewer: &str, kind: &Kind, id: u64) {
    let expected = envelope(viewer, kind).map(sorted);
    let number = id.to_string();
    let same = |way: &str, found: Option<&Value>| {
        assert_eq!(found.map(lines).map(sorted), expected, "{viewer:?} sees #{id} of {} by {way}", kind.thread);
    };
    let read = |args: &[&str]| bus.relay(viewer, args).success().result();

    for args in [["look", "message", &number].as_slice(), &["message", &number]] {
        let run = bus.relay(viewer, args);
        match expected {
            Some(_) => same("message", Some(&run.success().result()["message"])),
            None => assert!(run.fails("MESSAGE_NOT_FOUND").error()["details"] == serde_json::json!({"id": id})),
        }
    }
    same("search", by_number(&read(&["search", kind.word])["found"], "id", id));
    same("events", by_number(&read(&["look", "events", "--after", "0"])["events"], "number", id));
    same("log", by_number(&read(&["log", "--kind", "message_sent", "--after", "0"])["events"], "number", id));
    let thread = bus.relay(viewer, ["thread", kind.thread]);
    if thread.status == 0 {
        same("thread", by_number(&thread.result()["messages"], "id", id));
    } else {
        thread.fails("THREAD_NOT_FOUND");
        same("thread", None);
    }
    if ![NOBODY, HUMAN].contains(&viewer) {
        same("prepare", by_number(&read(&["prepare", "--thread", kind.thread])["messages"], "id", id));
    }
    if kind.lines.iter().any(|(_, name)| *name == viewer) {
        same("poll", by_number(&read(&["poll", "--all"])["messages"], "id", id));
        let started = bus.relay(viewer, ["start"]).success().result();
        same("start", by_number(&started["acks_owed"], "id", id));
        same("start", by_number(&started["inbox"]["newest"], "id", id));
    }
    if viewer == SENDER {
        same("outbox", by_number(&read(&["look", "outbox"])["outbox"], "id", id));
    }
}

#[test]
fn everybody_sees_the_envelope_that_concerns_them_whatever_they_read_it_with() {
    let bus = project();
    let kinds = [&PLAIN, &MIXED, &SECRET, &VEIL, &AFTER].map(|kind| (kind, post(&bus, kind, BLIND)));
    for viewer in VIEWERS {
        for (kind, id) in &kinds {
            check(&bus, viewer, kind, *id);
        }
    }
}

/// Everything that can be read, with a fixed key, so that two answers can be compared as text.
fn every_read(bus: &Bus, viewer: &str, tip: u64) -> Vec<(String, String)> {
    let mut reads: Vec<Vec<String>> = [
        "look thread",
        "look thread plain",
        "look thread mixed",
        "look thread secret",
        "look thread veiled",
        "look agents",
        "look reservations",
        "look contacts",
        "look outbox",
        "look events --after 0",
        "look search ordinary",
        "look search accompanied",
        "look search confidential",
        "look search hushed",
        "look search ordinary --limit 1",
        "look thread mixed --limit 1",
        "look thread veiled --before 18",
        "look traffic",
        "look day 2026-11-15",
        "look status",
        "look debt",
        "log",
        "log --kind mail_surfaced",
        "log --kind mail_acked",
        "poll --all --bodies",
        "ack 1",
    ]
    .iter()
    .map(|words| words.split(' ').map(str::to_owned).collect())
    .collect();
    for id in 1..=tip {
        reads.push(["look", "message"].map(str::to_owned).into_iter().chain([id.to_string()]).collect());
        reads.push(["ack", "--read"].map(str::to_owned).into_iter().chain([id.to_string()]).collect());
    }
    if viewer != NOBODY {
        for thread in ["plain", "mixed", "veiled"] {
            reads.push(["prepare", "--thread", thread].map(str::to_owned).to_vec());
        }
        reads.push(vec!["start".to_owned()]);
    }
    // The one random word that every reader may see.
    let events = bus.relay("", ["look", "events", "--limit", "1"]).success().result();
    let id = events["events"][0]["data"]["project"].as_str().unwrap().to_owned();
    let answer = |(index, words): (usize, Vec<String>)| {
        let key = format!("{viewer}-{index}");
        let run = bus.relay(viewer, words.iter().map(String::as_str).chain(["--idempotency-key", &key]));
        (words.join(" "), without_size(&run.stdout.replace(&bus.key(), "/repo").replace(&id, "ID")))
    };
    reads.into_iter().enumerate().map(answer).collect()
}

/// A world in which `blind` got the blind copies, was shown them, acknowledged one and let the others become overdue.
fn world(blind: &str) -> (Bus, u64) {
    let bus = project();
    let first = post(&bus, &PLAIN, blind);
    for kind in [&MIXED, &SECRET, &VEIL, &AFTER] {
        post(&bus, kind, blind);
    }
    bus.relay(blind, ["poll", "--read"]).success();
    bus.relay(blind, ["ack", &(first + 1).to_string()]).success();
    bus.advance(crate::bus::hours(2));
    // Equally seen, so that nobody's presence tells the two worlds apart.
    for agent in [BLIND, OTHER_BLIND] {
        bus.relay(agent, ["agents"]).success();
    }
    let tip = bus.relay(SENDER, ["status"]).success().result()["tip"].as_u64().unwrap();
    (bus, tip)
}

#[test]
fn whoever_may_not_know_a_blind_copy_cannot_tell_whom_it_went_to() {
    let (one, tip) = world(BLIND);
    let (other, other_tip) = world(OTHER_BLIND);
    assert_eq!(tip, other_tip);
    for viewer in OUTSIDERS {
        let pairs = every_read(&one, viewer, tip).into_iter().zip(every_read(&other, viewer, tip));
        for ((read, in_one), (_, in_other)) in pairs {
            assert_eq!(in_one, in_other, "{viewer:?} reads `{read}`");
        }
    }
    // The comparison can fail: those who may know are told.
    for viewer in [SENDER, HUMAN] {
        let read = |bus: &Bus| bus.relay(viewer, ["log", "--after", "0"]).success().stdout.replace(&bus.key(), "/repo");
        assert_ne!(read(&one), read(&other), "{viewer}");
    }
}

#[test]
fn an_agent_that_may_not_act_may_not_read_as_itself() {
    let bus = project();
    let id = post(&bus, &PLAIN, BLIND).to_string();
    bus.relay(TO, ["retire"]).success();
    bus.relay(HUMAN, ["suspend", CC]).success();
    let reads: [&[&str]; 14] = [
        &["look", "message", &id],
        &["look", "thread", "plain"],
        &["look", "thread"],
        &["look", "agents"],
        &["look", "reservations"],
        &["look", "contacts"],
        &["look", "outbox"],
        &["look", "events"],
        &["log"],
        &["search", "ordinary"],
        &["status"],
        &["look", "debt"],
        &["poll"],
        &["link", "--list"],
    ];
    for (agent, code) in [(TO, "AGENT_RETIRED"), (CC, "AGENT_SUSPENDED"), ("WhiteCloud", "AGENT_NOT_REGISTERED")] {
        for read in reads {
            bus.relay(agent, read).fails(code);
        }
    }
    bus.relay(CC, ["start"]).fails("AGENT_SUSPENDED");
    bus.relay(CC, ["prepare", "--thread", "plain"]).fails("AGENT_SUSPENDED");
    bus.relay(TO, ["prepare", "--thread", "plain"]).fails("AGENT_RETIRED");
    // Starting again is the way back.
    assert_eq!(bus.relay(TO, ["start"]).success().result()["inbox"]["unread"], 1);
    bus.relay(TO, ["look", "message", &id]).success();
}

#[test]
fn an_inbox_belongs_to_an_agent() {
    let bus = project();
    for read in [&["poll"] as &[&str], &["look", "outbox"], &["look", "contacts"], &["link", "--list"], &["ack", "1"]] {
        bus.relay(NOBODY, read).fails("AGENT_NOT_REGISTERED");
    }
}

#[test]
fn the_human_needs_the_humans_credential() {
    let bus = Bus::with(&[SENDER]);
    let read = |bus: &Bus| -> Run { bus.relay(HUMAN, ["status"]) };
    read(&bus).fails("UNAUTHORIZED");
    bus.relay(NOBODY, ["token", "human"]).success();
    read(&bus).success();
    // A credential that others can read proves nothing.
    let file = bus.home().join("human");
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    read(&bus).fails("UNAUTHORIZED");
}

#[test]
fn an_agent_of_another_project_reads_its_own_deliveries_and_nothing_else() {
    let bus = project();
    let other = bus.path("other");
    std::fs::create_dir(&other).unwrap();
    bus.git_in(&other, &["init", "-q"]);
    let there = other.to_str().unwrap();
    let at = |agent: &str, args: &[&str]| bus.relay(agent, ["--project", there].iter().chain(args));
    at("WhiteCloud", &["start"]).success();
    let inside = bus.send(SENDER, TO, "plain", "plain").to_string();
    bus.relay(SENDER, ["link", "--target", "WhiteCloud@other"]).success();
    at("WhiteCloud", &["link", "--target", "BlueLake@repo", "--accept"]).success();
    let to_both = ["send", "--to", "WhiteCloud@other", "--thread", "across", "--subject", "Over", "--body", "text"];
    bus.relay(SENDER, to_both).success();

    let inbox = at("WhiteCloud", &["poll", "--bodies"]).success().result();
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
    assert_eq!(inbox["messages"][0]["body"], "text");
    assert_eq!(inbox["messages"][0]["thread"], "repo.across");
    // In the sender's project it is nobody, and under its own name there neither.
    for read in [&["look", "message", &inside] as &[&str], &["poll"], &["log"], &["look", "thread", "across"]] {
        bus.relay("WhiteCloud", read).fails("AGENT_NOT_REGISTERED");
    }
}
