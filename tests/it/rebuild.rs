//! Each of the two from the other: the archive from the store, and the store from the archive.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Happened, Number, Recipient, Renewal, Text};
use relay_core::domain::limits::Limits;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, Store, Tx};
use relay_store::Home;
use rusqlite::Connection;
use rusqlite::types::Value;

use crate::bus::{Bus, EPOCH, Run};
use crate::effort::{count, summary};
use crate::terminal::without_size;

const AGENTS: usize = 12;

fn agent(index: usize) -> AgentName {
    AgentName::parse(&format!("Agent{}", index % AGENTS)).unwrap()
}

fn thread(index: usize) -> ThreadId {
    ThreadId::parse(&format!("task-{}", index % 37)).unwrap()
}

fn text(field: &'static str, index: usize, text: String) -> Text {
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&index.to_be_bytes());
    Text { field, salt, text }
}

/// A history of about so many events in the bus's project, with something of most kinds in it.
fn fill(bus: &Bus, events: usize) {
    let home = Home::new(bus.home(), Limits::default(), EPOCH);
    let store = home.open_or_create(&ProjectKey::resolved(bus.key())).unwrap();
    let errand = Errand { verb: "fill", agent: "", wait: Span::seconds(60), durable: false };
    let credential = format!("uid:{}", rustix::process::geteuid().as_raw());
    let mut tx = store.begin(errand).unwrap();
    for index in 0..AGENTS {
        let texts = vec![text("task", index, format!("part {index}"))];
        let what = Happened::AgentRegistered {
            agent: agent(index),
            credential: credential.clone(),
            program: Some("editor".into()),
            model: None,
            task: Some(texts[0].hash()),
            session: Some(format!("s-{index}")),
            parent: None,
            policy: Policy::Auto,
        };
        tx.append(Timestamp::from_millis(EPOCH), &Party::Agent(agent(index)), Some(&format!("r{index}")), what, texts)
            .unwrap();
    }
    let mut history = History { last_message: None, last_claim: None };
    for index in 0..events - AGENTS {
        history.step(&mut *tx, index);
    }
    tx.commit().unwrap();
}

struct History {
    last_message: Option<(Number, AgentName)>,
    last_claim: Option<(Number, AgentName)>,
}

impl History {
    fn step(&mut self, tx: &mut dyn Tx, index: usize) {
        let at = Timestamp::from_millis(EPOCH + i64::try_from(index).unwrap());
        let (me, key) = (agent(index), format!("k{index}"));
        let mine = Party::Agent(me.clone());
        let mut append = |what: Happened, texts: Vec<Text>| tx.append(at, &mine, Some(&key), what, texts).unwrap();
        match (index % 10, &self.last_message, &self.last_claim) {
            (1, _, _) => {
                append(Happened::ThreadPrepared { thread: thread(index), agent: me }, Vec::new());
            }
            (3, Some((message, to)), _) => {
                let (reader, messages) = (Party::Agent(to.clone()), vec![*message]);
                append(Happened::MailRead { agent: reader, messages }, Vec::new());
            }
            (4, Some((message, to)), _) => {
                let (reader, messages) = (Party::Agent(to.clone()), vec![*message]);
                append(Happened::MailAcked { agent: reader, messages }, Vec::new());
            }
            (6, _, _) => {
                let (expires_at, path) = (at.plus(Span::minutes(60)), format!("src/part{}", index % 50));
                let what = Happened::ReservationGranted {
                    agent: me.clone(),
                    pattern: path.clone(),
                    prefix: path,
                    exclusive: index.is_multiple_of(3),
                    reason: Some(thread(index)),
                    ttl_ms: 3_600_000,
                    first_granted_at: at,
                    expires_at,
                    overlaps: self.last_claim.iter().map(|(claim, _)| *claim).collect(),
                    conflicts: Vec::new(),
                };
                self.last_claim = Some((append(what, Vec::new()), me));
            }
            (7, _, Some((id, holder))) => {
                let expires_at = at.plus(Span::minutes(120));
                let claim = Renewal {
                    id: *id,
                    ttl_ms: 7_200_000,
                    expires_at,
                    exclusive: true,
                    reason: None,
                    conflicts: Vec::new(),
                };
                append(Happened::ReservationRenewed { agent: holder.clone(), claims: vec![claim] }, Vec::new());
            }
            (8, _, Some((id, holder))) if index % 20 == 8 => {
                append(Happened::ReservationReleased { agent: holder.clone(), claims: vec![*id] }, Vec::new());
            }
            (9, _, _) => {
                let texts = vec![text("why", index, format!("because of {index}"))];
                let what = Happened::LinkRequested {
                    from: mine.clone(),
                    to: Party::Agent(agent(index + 5)),
                    why: Some(texts[0].hash()),
                    ttl_ms: 3_600_000,
                    expires_at: at.plus(Span::minutes(60)),
                };
                append(what, texts);
            }
            _ => {
                let texts = vec![
                    text("subject", index, format!("Subject \"{}\": of word{}", index % 7, index % 100)),
                    text("body", index + 1, format!("---\nBody {index}\n\nwith word{} and more.\n", index % 211)),
                ];
                let recipient = |party: AgentName, line| Recipient { party: Party::Agent(party), line, held: false };
                let what = Happened::MessageSent {
                    thread: thread(index),
                    from: mine.clone(),
                    recipients: vec![
                        recipient(agent(index + 1), Line::To),
                        recipient(agent(index + 2), Line::Cc),
                        recipient(agent(index + 3), Line::Bcc),
                    ],
                    subject: texts[0].hash(),
                    body: texts[1].hash(),
                    importance: Importance::Normal,
                    ack_within_ms: index.is_multiple_of(5).then_some(60_000),
                    reply_to: None,
                    twin: None,
                };
                self.last_message = Some((append(what, texts), agent(index + 1)));
            }
        }
    }
}

/// Every row of every table that the archive can give back.
fn tables(store: &Path) -> BTreeMap<String, Vec<Vec<Value>>> {
    let connection = Connection::open(store.join("relay.db")).unwrap();
    let names: Vec<String> = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    // Beside the history; and the index, whose pages tell when it was written. It is compared by what it finds.
    let beside = ["answers", "failed_requests", "crossings", "refinery_schema_history"];
    let compared = names.into_iter().filter(|name| !beside.contains(&name.as_str()) && !name.starts_with("search"));
    let dump = |name: String| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect());
        let mut rows: Vec<Vec<Value>> = rows.unwrap().map(Result::unwrap).collect();
        rows.sort_by_key(|row| format!("{row:?}"));
        (name, rows)
    };
    compared.map(dump).collect()
}

/// What everybody can read.
fn reads(bus: &Bus) -> Vec<String> {
    let mut said = Vec::new();
    for index in 0..AGENTS {
        let name = agent(index).to_string();
        for args in [
            &["status"] as &[&str],
            &["look", "debt"],
            &["thread", "task-7"],
            &["reservations"],
            &["look", "outbox"],
            &["look", "contacts"],
            &["search", "word99"],
            &["search", "body 17"],
        ] {
            said.push(without_size(&bus.relay(&name, args).stdout));
        }
    }
    said.push(bus.relay("", ["log"]).success().stdout);
    said.push(bus.relay("", ["agents"]).success().stdout);
    said
}

fn tree(bus: &Bus, store: &Path) -> String {
    String::from_utf8(bus.git_in(&store.join("archive.git"), &["rev-parse", "main^{tree}"]).stdout).unwrap()
}

#[test]
fn each_of_the_two_gives_the_other_in_full() {
    let bus = Bus::new();
    let events = count("RELAY_EVENTS", 2_000);
    fill(&bus, events);
    let store = bus.store();
    bus.relay("", ["drain", "--wait"]).success();
    let (before, said, files) = (tables(&store), reads(&bus), tree(&bus, &store));
    assert!(before["messages"].len() > events * 3 / 10, "{}", before["messages"].len());
    assert!(["overlaps", "links", "members", "sessions"].iter().all(|table| !before[*table].is_empty()));
    fs::remove_dir_all(store.join("archive.git")).unwrap();
    bus.relay("", ["rebuild", "archive"]).success();
    assert_eq!(tree(&bus, &store), files, "the archive from the store");
    let rebuilt = bus.relay("", ["rebuild", "store", "--from-archive"]).success().result();
    assert_eq!(rebuilt["events"], before["events"].len());
    let after = tables(&store);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (table, rows) in &before {
        assert!(*rows == after[table], "{table} differs");
    }
    for (before, after) in said.iter().zip(reads(&bus)) {
        assert_eq!(*before, after);
    }
    bus.relay("", ["rebuild", "archive"]).success();
    assert_eq!(tree(&bus, &store), files, "and the archive from that store");
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
    summary(&format!("rebuilt both ways: {} events, every table, answer and file the same", before["events"].len()));
}

const SEND: [&str; 9] = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"];

fn send_with_key(bus: &Bus, key: &str) -> Run {
    bus.relay("BlueLake", [&SEND[..], &["--idempotency-key", key]].concat())
}

fn messages(bus: &Bus) -> usize {
    bus.relay("BlueLake", ["thread", "bd-1"]).success().result()["messages"].as_array().unwrap().len()
}

#[test]
fn a_store_is_rebuilt_only_by_a_word_that_says_from_what() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let refused = bus.relay("", ["rebuild", "store"]).fails("INPUT_INVALID").error();
    assert!(refused["message"].as_str().unwrap().contains("relay rebuild store --from-archive"), "{refused}");
    let nothing = bus.relay("", ["rebuild", "store", "--from-archive"]).fails("ARCHIVE_BEHIND").error();
    assert!(nothing["message"].as_str().unwrap().contains("nothing in the archive"), "{nothing}");
    // By the playbook, as printed.
    let drain: Vec<String> = serde_json::from_value(nothing["playbook"][0]["run"].clone()).unwrap();
    bus.relay("", &drain[1..]).success();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    let last = bus.tip();
    let wrong = bus.relay("", ["rebuild", "store", "--from-archive", "--lose-after", "999"]).fails("INPUT_INVALID");
    assert_eq!(wrong.error()["message"], format!("the archive ends with #{last}, and not with #999"));
}

#[test]
fn what_the_store_alone_has_is_not_dropped_unless_somebody_says_so() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let last = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let late = bus.send("BlueLake", "RedForest", "bd-1", "Login, late");
    let refused = bus.relay("", ["rebuild", "store", "--from-archive"]).fails("ARCHIVE_BEHIND").error();
    assert_eq!((&refused["details"]["archived"], &refused["details"]["newest"]), (&last.into(), &late.into()));
    // By the playbook, as printed.
    let drain: Vec<String> = serde_json::from_value(refused["playbook"][0]["run"].clone()).unwrap();
    bus.relay("", &drain[1..]).success();
    let whole = bus.relay("", ["rebuild", "store", "--from-archive"]).success().result();
    assert!(whole["missing"][0].as_str().unwrap().starts_with("no events"), "{whole}");
    assert_eq!(messages(&bus), 2);
    let late = bus.send("BlueLake", "RedForest", "bd-1", "Login, later");
    let wrong = (late - 2).to_string();
    bus.relay("", ["rebuild", "store", "--from-archive", "--lose-after", &wrong]).fails("ARCHIVE_BEHIND");
    let right = (late - 1).to_string();
    let lossy = bus.relay("", ["rebuild", "store", "--from-archive", "--lose-after", &right]).success().result();
    assert_eq!(lossy["missing"][0], format!("events #{late} to #{late}, which are in the old file"));
    assert_eq!(messages(&bus), 2);
    let kept = Connection::open(lossy["kept"].as_str().unwrap()).unwrap();
    let in_old: u64 = kept.query_row("SELECT max(number) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!(in_old, late, "the old file is kept with its log");
}

/// The first page of a table.
pub fn spoil_a_page(store: &Path, table: &str) {
    let file = store.join("relay.db");
    let connection = Connection::open(&file).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: usize = connection.query_row(root, [table], |row| row.get(0)).unwrap();
    let size: usize = connection.query_row("PRAGMA page_size", [], |row| row.get(0)).unwrap();
    drop(connection);
    let mut bytes = fs::read(&file).unwrap();
    bytes[(page - 1) * size..page * size].fill(0xff);
    fs::write(&file, bytes).unwrap();
}

#[test]
fn what_a_damaged_store_can_still_tell_is_not_dropped_either() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let last = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let late = bus.send("BlueLake", "RedForest", "bd-1", "Login, late");
    spoil_a_page(&bus.store(), "failed_requests");
    let damaged = bus.relay("", ["verify"]).fails("STORE_DAMAGED").error();
    let refused = bus.relay("", ["rebuild", "store", "--from-archive"]).fails("ARCHIVE_BEHIND").error();
    assert_eq!((&refused["details"]["archived"], &refused["details"]["newest"]), (&last.into(), &late.into()));
    // By the playbook, as printed.
    let steps = damaged["playbook"].as_array().unwrap();
    let run = |step: &serde_json::Value| -> Vec<String> { serde_json::from_value(step["run"].clone()).unwrap() };
    for step in steps.iter().filter(|step| step["unattended"] == false && step.get("run").is_some()) {
        bus.relay("", &run(step)[1..]).success();
    }
    assert_eq!(messages(&bus), 2);
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
}

#[test]
fn a_key_that_acted_before_the_rebuild_does_not_act_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let start = ["start", "--session", "s-9", "--idempotency-key", "new"];
    bus.relay("", start).success();
    // A subagent starts in the environment of its parent.
    bus.relay("BlueLake", ["start", "--session", "s-1"]).success();
    let under = ["register", "--parent", "BlueLake", "--idempotency-key"];
    let subagents = [("RELAY_AGENT", "BlueLake", "by-name"), ("RELAY_SESSION", "s-1", "by-session")];
    let start_under = |(name, value, key): (&'static str, &'static str, &'static str)| {
        bus.with_variables(&[(name, value)], &[&under[..], &[key]].concat())
    };
    for subagent in subagents {
        start_under(subagent).success();
    }
    send_with_key(&bus, "one").success();
    bus.relay("", ["drain", "--wait"]).success();
    let rebuilt = bus.relay("", ["rebuild", "store", "--from-archive"]).success().result();
    assert!(rebuilt["keys_used"].as_u64().unwrap() >= 6, "{rebuilt}");
    for subagent in subagents {
        start_under(subagent).fails("IDEMPOTENCY_REUSED");
    }
    let again = send_with_key(&bus, "one").fails("IDEMPOTENCY_REUSED").error();
    assert!(again["message"].as_str().unwrap().contains("before the store was rebuilt"), "{again}");
    bus.relay("", start).fails("IDEMPOTENCY_REUSED");
    assert_eq!(messages(&bus), 1);
    send_with_key(&bus, "two").success();
    assert_eq!(messages(&bus), 2);
}

#[test]
fn a_store_of_another_history_is_not_replaced() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let store = bus.store();
    let copy = tempfile::tempdir().unwrap();
    fs::copy(store.join("relay.db"), copy.path().join("relay.db")).unwrap();
    bus.send("BlueLake", "RedForest", "bd-1", "One way");
    bus.relay("", ["drain", "--wait"]).success();
    for (message, more) in [("Another way", false), ("And further", true)] {
        for name in ["relay.db-wal", "relay.db-shm"] {
            let _ = fs::remove_file(store.join(name));
        }
        if !more {
            fs::copy(copy.path().join("relay.db"), store.join("relay.db")).unwrap();
        }
        bus.send("BlueLake", "RedForest", "bd-1", message);
        bus.relay("", ["drain"]).fails("ARCHIVE_DIVERGED");
        bus.relay("", ["rebuild", "store", "--from-archive"]).fails("ARCHIVE_DIVERGED");
    }
    // A store that is only older may go: the archive has all that it has.
    let _ = fs::remove_file(store.join("relay.db-wal"));
    fs::copy(copy.path().join("relay.db"), store.join("relay.db")).unwrap();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    assert_eq!(messages(&bus), 2);
}

#[test]
fn a_rebuild_that_died_between_two_moves_is_made_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["drain", "--wait"]).success();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let store = bus.store();
    fs::write(store.join("relay.anew.db"), "half of a store").unwrap();
    let log = fs::read(store.join("relay.db-wal")).unwrap();
    fs::rename(store.join("relay.db"), store.join("relay.before-1.db")).unwrap();
    bus.relay("BlueLake", ["poll"]).fails("STORE_DAMAGED");
    bus.relay("BlueLake", ["start"]).fails("STORE_DAMAGED");
    let rebuilt = bus.relay("", ["rebuild", "store", "--from-archive"]).success().result();
    assert_eq!(rebuilt["kept"], store.join("relay.before-1.db").to_str().unwrap());
    assert_eq!(fs::read(store.join("relay.before-1.db-wal")).unwrap(), log, "the log went with its file");
    let missing = rebuilt["missing"][0].as_str().unwrap();
    assert!(missing.contains(&format!("was moved to {}", rebuilt["kept"].as_str().unwrap())), "{missing}");
    assert_eq!(messages(&bus), 1);
    assert!(!store.join("relay.anew.db").exists());
    let next = bus.relay("", ["rebuild", "store", "--from-archive"]).success().result();
    assert_eq!(next["kept"], store.join("relay.before-2.db").to_str().unwrap());
}

/// Whatever stands in line for the gate: its counter is written when a place is taken.
fn places(store: &Path) -> Vec<u8> {
    fs::read(store.join("line/last")).unwrap()
}

#[test]
fn a_writer_that_opened_the_old_file_does_not_write_into_it() {
    replaced_while_it_waits(&["--no-recover"], |run| {
        let error = run.fails("STORE_BUSY").error();
        assert!(error["message"].as_str().unwrap().contains("was rebuilt"), "{error}");
    });
}

#[test]
fn a_send_that_waited_while_the_store_was_replaced_heals_itself() {
    replaced_while_it_waits(&[], |run| {
        assert!(run.success().signals().contains(&"RECOVERED".to_owned()));
    });
}

fn replaced_while_it_waits(flags: &[&str], check: impl FnOnce(Run)) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let store = bus.store();
    let gate = File::options().read(true).write(true).open(store.join("gate")).unwrap();
    gate.lock().unwrap();
    let before = places(&store);
    let mut command = bus.args("BlueLake", [&SEND[..], &["--idempotency-key", "K"], flags].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while places(&store) == before {
        std::thread::yield_now();
    }
    // What a rebuild does while it holds the gate.
    let aside = |name: &str| -> PathBuf { store.join(name.replace("relay.db", "relay.before-1.db")) };
    fs::copy(store.join("relay.db"), store.join("relay.anew.db")).unwrap();
    for name in ["relay.db", "relay.db-wal", "relay.db-shm"] {
        fs::rename(store.join(name), aside(name)).unwrap();
    }
    fs::rename(store.join("relay.anew.db"), store.join("relay.db")).unwrap();
    drop(gate);
    check(Run::new("send".to_owned(), &child.wait_with_output().unwrap()));
    let old = Connection::open(aside("relay.db")).unwrap();
    let count =
        |store: &Connection| -> u64 { store.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap() };
    assert_eq!(count(&old), 1, "nothing was written there");
    let again = bus.relay("BlueLake", [&SEND[..], &["--idempotency-key", "K"], flags].concat());
    again.success();
    assert_eq!(messages(&bus), 2);
}

#[test]
fn damaged_events_do_not_reach_the_archive() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let store = bus.store();
    let spoil = |sql: &str| Connection::open(store.join("relay.db")).unwrap().execute(sql, [id]).unwrap();
    let refused = |expected: &str| {
        let error = bus.relay("", ["drain", "--wait"]).fails("STORE_DAMAGED").error();
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
        assert!(!store.join("archive.git/refs/heads/main").exists());
    };
    spoil("UPDATE texts SET text = 'tent' WHERE event = ?1 AND field = 'body'");
    refused(&format!("the body of #{id} is not the one that it names"));
    spoil("UPDATE texts SET text = 'text' WHERE event = ?1 AND field = 'body'");
    spoil("UPDATE events SET payload = replace(payload, 'bd-1', 'bd-2') WHERE number = ?1");
    refused("do not chain");
    spoil("UPDATE events SET payload = replace(payload, 'bd-2', 'bd-1') WHERE number = ?1");
    bus.relay("", ["drain", "--wait"]).success();
}
