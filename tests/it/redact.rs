//! `redact` erases a message's texts everywhere, and leaves a chain that holds and a tombstone.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;

use crate::bus::{Bus, run};

/// What must not be found anywhere afterwards; each also as the search index writes it, in small letters.
const SUBJECT: &str = "Zebrafish";
const BODY: &str = "quagmirenought";

/// The human, two agents, and a message that says too much.
fn told() -> (Bus, u64) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["token", "human"]).success();
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", SUBJECT, "--body", BODY];
    let sent = bus.relay("BlueLake", args).success().result();
    (bus, sent["message"]["id"].as_u64().unwrap())
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The files under the bus's home that hold a word, whatever its letters' case.
pub fn holding(bus: &Bus, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&bus.home(), &mut found);
    let word = word.to_lowercase();
    found.retain(|path| {
        let bytes = std::fs::read(path).unwrap().to_ascii_lowercase();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    });
    found
}

/// All objects of the archive, in the clear.
pub fn archived(bus: &Bus) -> String {
    let archive = bus.store().join("archive.git");
    let objects = bus.git_in(&archive, &["cat-file", "--batch-all-objects", "--batch", "--unordered"]).stdout;
    String::from_utf8_lossy(&objects).to_lowercase()
}

#[track_caller]
fn nowhere(bus: &Bus) {
    for word in [SUBJECT, BODY] {
        assert_eq!(holding(bus, word), [""; 0].map(PathBuf::from), "{word}");
        assert!(!archived(bus).contains(&word.to_lowercase()), "{word} is in the archive");
    }
}

fn message(bus: &Bus, agent: &str, id: u64) -> Value {
    bus.relay(agent, ["look", "message", &id.to_string()]).success().result()["message"].clone()
}

#[test]
fn nothing_of_the_texts_is_left_in_any_file() {
    let (bus, id) = told();
    // In the search index, in a kept failed request, in the log, in the store's file and in the archive.
    for n in 0..40 {
        bus.send("BlueLake", "RedForest", "bd-2", &format!("Filler {n}"));
    }
    bus.relay("GoldPeak", ["start"]).success();
    bus.relay("GoldPeak", ["policy", "contacts_only"]).success();
    let fail = || {
        let args =
            ["send", "--to", "GoldPeak", "--thread", "bd-1", "--subject", SUBJECT, "--body", BODY, "--no-recover"];
        bus.relay("BlueLake", args).fails("CONTACT_REQUIRED");
    };
    fail();
    bus.relay("", ["drain", "--wait"]).success();
    fail();
    assert!(!holding(&bus, BODY).is_empty());
    assert!(archived(&bus).contains(BODY));
    let done = bus.relay("BlueLake", ["redact", &id.to_string(), "--why", "it held a secret"]).success().result();
    assert_eq!(done["pending"], serde_json::json!([]));
    nowhere(&bus);
    assert_eq!(bus.relay("RedForest", ["search", BODY]).success().result()["found"], serde_json::json!([]));
    assert_ne!(bus.relay("RedForest", ["search", "Filler", "39"]).success().result()["found"], serde_json::json!([]));
}

#[test]
fn a_tombstone_says_who_and_why_in_the_store_and_in_the_archive() {
    let (bus, id) = told();
    bus.relay("human", ["redact", &id.to_string(), "--why", "it held a secret"]).success();
    let shown = message(&bus, "RedForest", id);
    assert_eq!(shown["subject"], Value::Null);
    assert_eq!(shown["body"], Value::Null);
    assert_eq!(shown["redacted"]["by"], "human");
    assert_eq!(shown["redacted"]["why"], "it held a secret");
    let text = bus.text("RedForest", ["look", "message", &id.to_string()]).success().stdout;
    assert!(text.contains("erased by human") && text.contains("it held a secret"), "{text}");
    let file = format!("main:threads/a2/bd-1/0/{id}.md");
    let file = bus.git_in(&bus.store().join("archive.git"), &["show", &file]).stdout;
    let file = String::from_utf8(file).unwrap();
    assert!(file.contains("erased: \"by human with #") && file.contains("why: \"it held a secret\""), "{file}");
    bus.relay("RedForest", ["ack", &id.to_string()]).success();
}

#[test]
fn who_wrote_it_or_the_human_and_nobody_else() {
    let (bus, id) = told();
    let refused = bus.relay("RedForest", ["redact", &id.to_string()]).fails("IDENTITY_MISMATCH");
    assert!(refused.error()["message"].as_str().unwrap().contains("BlueLake"), "{refused:?}");
    let steps = refused.error()["playbook"].as_array().unwrap().clone();
    assert_eq!(steps.len(), 2, "{refused:?}");
    let ask: Vec<String> = serde_json::from_value(steps[0]["run"].clone()).unwrap();
    bus.relay("", &ask[1..]).success();
    let mail = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    assert_eq!(mail["messages"][0]["body"], format!("Please erase #{id}: relay redact {id}"));
    assert!(steps[1]["run"].to_string().contains(&format!("relay redact {id} --agent human")), "{refused:?}");
    bus.relay("BlueLake", ["redact", "999"]).fails("MESSAGE_NOT_FOUND");
    bus.relay("BlueLake", ["redact", "1"]).fails("MESSAGE_NOT_FOUND");
    bus.relay("BlueLake", ["redact", "x"]).fails("INPUT_INVALID");
    bus.relay("BlueLake", ["redact", &id.to_string(), "--why", ""]).fails("INPUT_INVALID");
    assert_eq!(message(&bus, "RedForest", id)["body"], BODY, "nothing happened");
    bus.relay("human", ["redact", &id.to_string()]).success();
    assert_eq!(message(&bus, "RedForest", id)["body"], Value::Null);
}

#[test]
fn a_subject_goes_with_the_replies_that_took_it_over_and_their_words_stay() {
    let (bus, id) = told();
    let reply = |body: &str| {
        let args = ["send", "--to", "BlueLake", "--reply-to", &id.to_string(), "--body", body];
        bus.relay("RedForest", args).success().result()["message"]["id"].as_u64().unwrap()
    };
    let first = reply("understood");
    assert_eq!(message(&bus, "BlueLake", first)["subject"], format!("Re: {SUBJECT}"));
    let done = bus.relay("BlueLake", ["redact", &id.to_string()]).success().result();
    assert_eq!(done["copies"], serde_json::json!([first]));
    // Erased once more it is told of the others no more, so a second thread says how it reads.
    let root = bus.send("BlueLake", "RedForest", "bd-2", "Other");
    let args = ["send", "--to", "BlueLake", "--reply-to", &root.to_string(), "--body", "yes"];
    let copy = bus.relay("RedForest", args).success().result()["message"]["id"].to_string();
    let text = bus.text("BlueLake", ["redact", &root.to_string()]).success().stdout;
    assert!(text.contains(&format!("#{copy} had taken its subject over and has none now.")), "{text}");
    let shown = message(&bus, "BlueLake", first);
    assert_eq!((&shown["subject"], &shown["body"]), (&Value::Null, &Value::from("understood")));
    assert_eq!(bus.relay("BlueLake", ["search", "understood"]).success().result()["found"][0]["id"], first);
    nowhere(&bus);
    // A reply to what has no subject any more needs none either; in the thread somebody has to say what it is about.
    assert_eq!(message(&bus, "BlueLake", reply("later"))["subject"], format!("Re: #{id}"));
    let refused = bus.relay("BlueLake", ["send", "--to", "RedForest", "--thread", "bd-1", "--body", "b"]);
    assert!(refused.fails("INPUT_INVALID").stdout.contains("was erased"));
}

#[test]
fn made_again_after_a_failure_it_erases_everywhere_too() {
    let (bus, id) = told();
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["redact", &id.to_string()]).fails("AGENT_RETIRED");
    bus.relay("BlueLake", ["start"]).success();
    let mut command = bus.args("BlueLake", ["recover", "AGENT_RETIRED", "--retry"]);
    command.env("PATH", bus.path("nothing"));
    let done = run(command).success().result()["retried"].clone();
    let pending = done["result"]["pending"].as_array().unwrap();
    assert!(pending.len() == 1 && pending[0].as_str().unwrap().starts_with("archive: "), "{done}");
    bus.relay("BlueLake", ["retire"]).success();
    bus.relay("BlueLake", ["redact", &id.to_string()]).fails("AGENT_RETIRED");
    bus.relay("BlueLake", ["start"]).success();
    let text = bus.text("BlueLake", ["recover", "AGENT_RETIRED", "--retry"]).success().stdout;
    assert!(text.contains(&format!("The texts of #{id} are erased")), "{text}");
    nowhere(&bus);
}

#[test]
fn again_it_is_the_same_redaction() {
    let (bus, id) = told();
    let redact = || bus.relay("BlueLake", ["redact", &id.to_string()]).success().result()["redaction"].clone();
    let first = redact();
    assert_eq!(redact(), first);
    let events = bus.relay("BlueLake", ["look", "events"]).success().result()["events"].clone();
    let told = events.as_array().unwrap().iter().filter(|event| event["kind"] == "message_redacted").count();
    assert_eq!(told, 1);
}

#[test]
fn the_key_of_an_erased_request_stays_used_and_stands_for_no_other() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let send = |body: &str| {
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", SUBJECT, "--body", body];
        bus.relay("BlueLake", [&args[..], &["--idempotency-key", "k1"]].concat())
    };
    let id = send(BODY).success().result()["message"]["id"].as_u64().unwrap();
    bus.relay("BlueLake", ["redact", &id.to_string()]).success();
    for body in [BODY, "something else"] {
        let refused = send(body).fails("IDEMPOTENCY_REUSED");
        assert_eq!(refused.error()["details"]["number"], id);
        assert!(refused.error()["message"].as_str().unwrap().contains(&format!("#{id}")), "{refused:?}");
    }
    nowhere(&bus);
    let store = Connection::open(bus.store().join("relay.db")).unwrap();
    let sql = "SELECT count(*) FROM answers WHERE key = 'k1' AND (request <> '' OR salt <> zeroblob(16))";
    assert_eq!(store.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap(), 0, "nothing to guess from");
}

#[test]
fn the_copy_in_another_project_is_named() {
    let bus = Bus::with(&["BlueLake"]);
    let other = bus.path("other");
    std::fs::create_dir(&other).unwrap();
    bus.git_in(&other, &["init", "-q"]);
    let other = std::fs::canonicalize(other).unwrap().to_str().unwrap().to_owned();
    let there = |args: &[&str]| bus.relay("GoldPeak", [args, &["--project", &other]].concat());
    there(&["start"]).success();
    let target = format!("GoldPeak@{other}");
    bus.relay("BlueLake", ["link", "--target", &target]).success();
    there(&["link", "--target", &format!("BlueLake@{}", bus.key()), "--accept"]).success();
    let args = ["send", "--to", &target, "--thread", "bd-1", "--subject", SUBJECT, "--body", BODY];
    let id = bus.relay("BlueLake", args).success().result()["message"]["id"].to_string();
    let done = bus.relay("BlueLake", ["redact", &id]).success();
    let elsewhere = done.result()["elsewhere"].clone();
    assert_eq!(elsewhere["project"], other);
    assert!(!holding(&bus, BODY).is_empty(), "the other project keeps it");
    bus.relay("", ["token", "human"]).success();
    // The step runs as it is printed, and names the first copy in turn.
    let step = done.json()["next"][0].as_str().unwrap().to_owned();
    let words: Vec<&str> = step.split_whitespace().skip(1).collect();
    let there = bus.relay("", words).success().result();
    assert_eq!(there["elsewhere"], serde_json::json!({"project": bus.key(), "message": id.parse::<u64>().unwrap()}));
    assert_eq!(holding(&bus, BODY), [""; 0].map(PathBuf::from));
}

#[test]
fn who_still_reads_from_before_delays_it_and_a_drain_finishes() {
    let (bus, id) = told();
    let reader = Connection::open(bus.store().join("relay.db")).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = |reader: &Connection| reader.query_row("SELECT count(*) FROM texts", [], |row| row.get::<_, i64>(0));
    count(&reader).unwrap();
    let done = bus.relay("BlueLake", ["redact", &id.to_string()]).success().result();
    let pending = done["pending"][0].as_str().unwrap();
    assert!(pending.starts_with("store: "), "{pending}");
    assert_eq!(bus.relay("", ["drain", "--wait"]).success().result()["cleaned"], false);
    // Reading the files ends the reader's locks, so this comes last.
    assert!(!holding(&bus, BODY).is_empty());
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(bus.relay("", ["drain", "--wait"]).success().result()["cleaned"], true);
    drop(reader);
    nowhere(&bus);
}

#[test]
fn without_git_the_store_is_cleaned_and_the_archive_later() {
    let (bus, id) = told();
    bus.relay("", ["drain", "--wait"]).success();
    let mut command = bus.args("BlueLake", ["redact", &id.to_string()]);
    command.env("PATH", bus.path("nothing"));
    let done = run(command).success().result();
    let pending = done["pending"].as_array().unwrap();
    assert!(pending.len() == 1 && pending[0].as_str().unwrap().starts_with("archive: "), "{pending:?}");
    assert!(archived(&bus).contains(BODY));
    assert_eq!(bus.relay("", ["verify"]).success().signals(), ["ARCHIVE_LAGS"]);
    bus.relay("", ["drain", "--wait"]).success();
    nowhere(&bus);
}

#[test]
fn a_history_with_erased_texts_is_whole_and_comes_back_from_the_archive() {
    let (bus, id) = told();
    let args = ["send", "--to", "BlueLake", "--reply-to", &id.to_string(), "--body", "understood"];
    let reply = bus.relay("RedForest", args).success().result()["message"]["id"].as_u64().unwrap();
    bus.relay("BlueLake", ["redact", &id.to_string(), "--why", "it held a secret"]).success();
    let shown = [message(&bus, "BlueLake", id), message(&bus, "BlueLake", reply)];
    bus.relay("", ["verify"]).success();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    bus.relay("", ["verify"]).success();
    assert_eq!([message(&bus, "BlueLake", id), message(&bus, "BlueLake", reply)], shown);
    bus.relay("", ["rebuild", "archive"]).success();
    bus.relay("", ["verify"]).success();
    let again = bus.relay("BlueLake", ["redact", &id.to_string()]).success().result();
    let kept: Vec<&str> = again["kept"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    assert!(kept.len() == 2 && kept[0].ends_with("archive.before-1.git"), "{kept:?}");
    assert!(kept[1].ends_with("relay.before-1.db"), "{kept:?}");
}

#[test]
fn an_archive_that_still_had_to_forget_is_not_kept() {
    let (bus, id) = told();
    bus.relay("", ["drain", "--wait"]).success();
    let mut command = bus.args("BlueLake", ["redact", &id.to_string()]);
    command.env("PATH", bus.path("nothing"));
    run(command).success();
    assert!(archived(&bus).contains(BODY));
    let rebuilt = bus.relay("", ["rebuild", "archive"]).success().result();
    assert_eq!(rebuilt["kept"], Value::Null);
    nowhere(&bus);
}

#[test]
fn a_text_that_vanishes_without_a_redaction_is_found() {
    let (bus, id) = told();
    bus.relay("", ["drain", "--wait"]).success();
    let store = Connection::open(bus.store().join("relay.db")).unwrap();
    store.execute("DELETE FROM texts WHERE event = ?1 AND field = 'body'", [id]).unwrap();
    drop(store);
    let found = bus.relay("", ["verify"]).fails("STORE_DAMAGED");
    assert!(found.stdout.contains(&format!("the body of #{id} is missing")), "{}", found.stdout);
    bus.forget();
}
