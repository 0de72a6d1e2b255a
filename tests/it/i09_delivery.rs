//! I9: a copy goes from stored to surfaced to read, and looking at it consumes nothing.

use std::io::Read;
use std::process::Stdio;

use serde_json::Value;

use crate::bus::Bus;
use crate::terminal::{column, ids, text};

/// RedForest with this many messages from BlueLake. Returns their numbers.
fn mailed(count: usize) -> (Bus, Vec<u64>) {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let sent =
        (0..count).map(|n| bus.send("BlueLake", "RedForest", &format!("bd-{n}"), &format!("Part {n}"))).collect();
    (bus, sent)
}

fn page(bus: &Bus, flags: &[&str]) -> (Vec<u64>, u64) {
    let result = bus.relay("RedForest", [&["poll"], flags].concat()).success().result();
    (ids(&result["messages"]), result["cursor"].as_u64().unwrap())
}

#[test]
fn unread_mail_comes_oldest_first_page_by_page() {
    let (bus, sent) = mailed(5);
    assert_eq!(page(&bus, &[]), (sent.clone(), sent[4]));
    let mut cursor = 0;
    for expected in [&sent[0..2], &sent[2..4], &sent[4..5]] {
        let (found, next) = page(&bus, &["--limit", "2", "--after", &cursor.to_string()]);
        assert_eq!((found.as_slice(), next), (expected, *expected.last().unwrap()));
        cursor = next;
    }
    let after = cursor.to_string();
    assert_eq!(page(&bus, &["--after", &after]), (vec![], cursor), "an empty page returns the given cursor");
    assert_eq!(page(&bus, &["--after", "100000"]), (vec![], 100_000));
    for limit in ["0", "101", "-1", "many"] {
        bus.relay("RedForest", ["poll", &format!("--limit={limit}")]).fails("INPUT_INVALID");
    }
}

/// Follows `next` to the end of what these flags ask for; the pages, and the lines that were typed.
fn followed(bus: &Bus, flags: &[&str]) -> (Vec<Vec<u64>>, Vec<String>) {
    let mut run = bus.relay("RedForest", [&["poll"], flags].concat()).success();
    let (mut pages, mut lines) = (Vec::new(), Vec::new());
    loop {
        pages.push(ids(&run.result()["messages"]));
        let next = run.json()["next"].as_array().unwrap().clone();
        let Some(line) = next.iter().map(text).find(|line| line.starts_with("relay poll")) else {
            return (pages, lines);
        };
        run = bus.type_line("RedForest", &format!("{line} --json"), "").success();
        lines.push(line);
    }
}

#[test]
fn the_next_page_is_asked_for_with_the_same_flags_and_only_where_there_is_one() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let send = |from: &str, thread: &str| bus.send(from, "RedForest", thread, "Part");
    let sent: Vec<u64> = ["t1", "t2", "t1", "t2", "t2", "t1", "t2"].map(|thread| send("BlueLake", thread)).to_vec();
    let other = send("GreenHill", "t1");
    let check = |flags: &[&str], pages: &[&[u64]], lines: &[String]| {
        assert_eq!(followed(&bus, flags), (pages.iter().map(|page| page.to_vec()).collect(), lines.to_vec()));
    };
    let t2 = [sent[1], sent[3], sent[4], sent[6]];
    let after =
        |flags: &str, number: u64, rest: &str| format!("relay poll {flags}--after {number}{rest} --agent RedForest");
    check(&["--thread", "t2"], &[&t2], &[]);
    check(&["--thread", "t2", "--limit", "4"], &[&t2], &[]);
    check(&["--thread", "t2", "--limit", "3"], &[&t2[..3], &t2[3..]], &[after("--limit 3 ", t2[2], " --thread t2")]);
    check(&["--urgent", "--limit", "1"], &[&[]], &[]);
    let from = " --from BlueLake --bodies";
    check(
        &["--from", "BlueLake", "--bodies", "--limit", "4"],
        &[&sent[..4], &sent[4..]],
        &[after("--limit 4 ", sent[3], from)],
    );
    check(
        &["--after", &sent[5].to_string(), "--limit", "1", "--read"],
        &[&sent[6..], &[other]],
        &[after("--limit 1 ", sent[6], " --read")],
    );
    let all: Vec<u64> = sent.iter().copied().chain([other]).collect();
    check(&["--all", "--limit", "5"], &[&all[..5], &all[5..]], &[after("--limit 5 ", all[4], " --all")]);
    check(
        &["--after", "0", "--wait", "1s", "--limit", "5"],
        &[&all[..5], &all[5..6]],
        &[after("--limit 5 ", all[4], "")],
    );
}

#[test]
fn peeking_consumes_nothing_and_read_mail_comes_back_only_with_all() {
    let (bus, sent) = mailed(2);
    for _ in 0..3 {
        assert_eq!(page(&bus, &[]).0, sent);
    }
    bus.relay("RedForest", ["read", &sent[0].to_string()]).success();
    assert_eq!(page(&bus, &[]).0, sent[1..]);
    assert_eq!(page(&bus, &["--all"]).0, sent);
    let marked = bus.relay("RedForest", ["poll", "--read"]).success().result();
    assert!(marked["messages"][0]["read_at"].is_string());
    assert_eq!(page(&bus, &[]).0, [0; 0]);
    assert_eq!(bus.relay("RedForest", ["start"]).success().result()["inbox"]["unread"], 0);
}

#[test]
fn filters_choose_and_bodies_come_on_request_byte_for_byte() {
    let (bus, sent) = mailed(1);
    let body = "line one\n\tline two \u{1b}[31m\u{202e} ünïcode\r\n";
    let urgent =
        ["send", "--to", "RedForest", "--thread", "bd-9", "--subject", "Now", "--importance", "urgent", "--body", body];
    let now = bus.relay("GreenHill", urgent).success().result()["message"]["id"].as_u64().unwrap();
    assert_eq!(page(&bus, &["--urgent"]).0, [now]);
    assert_eq!(page(&bus, &["--from", "greenhill"]).0, [now]);
    assert_eq!(page(&bus, &["--from", "BlueLake"]).0, sent);
    assert_eq!(page(&bus, &["--thread", "bd-0"]).0, sent);
    assert_eq!(page(&bus, &["--thread", "bd-0", "--urgent"]).0, [0; 0]);
    let bare = bus.relay("RedForest", ["poll"]).success().result();
    assert!(bare["messages"].as_array().unwrap().iter().all(|message| message.get("body").is_none()));
    let full = bus.relay("RedForest", ["poll", "--bodies", "--urgent"]).success().result();
    assert_eq!(full["messages"][0]["body"], body);
}

#[test]
fn mail_surfaces_once_as_one_event_for_the_batch() {
    let (bus, sent) = mailed(3);
    let tip = bus.tip();
    page(&bus, &[]);
    let events = bus.events(tip);
    assert_eq!(column(&Value::from(events.clone()), "kind"), ["mail_surfaced"]);
    assert_eq!(events[0]["data"]["messages"], serde_json::json!(sent));
    page(&bus, &[]);
    page(&bus, &["--all", "--bodies"]);
    assert_eq!(bus.tip(), tip + 1, "a poll that surfaces nothing new writes nothing");
}

#[test]
fn what_was_not_written_out_was_not_surfaced() {
    let (bus, sent) = mailed(1);
    let tip = bus.tip();
    let mut command = bus.args("RedForest", ["poll", "--read"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = command.stdout(Stdio::from(writer)).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "", "a closed pipe is no reason to complain");
    assert_eq!(bus.tip(), tip);
    let shown = bus.relay("RedForest", ["poll", "--wait", "60s"]).success().result();
    assert_eq!(ids(&shown["messages"]), sent, "it is still news");
}

#[test]
fn the_answer_is_written_before_the_mail_counts_as_surfaced() {
    let (bus, sent) = mailed(1);
    // Whoever holds the gate keeps the poll from noting it, not from answering; the mail is shown again.
    let gate = std::fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let mut child = bus.args("RedForest", ["poll"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(child.wait().unwrap().success());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(ids(&answer["result"]["messages"]), sent);
    gate.unlock().unwrap();
    drop(gate);
    assert!(!bus.kinds(0).contains(&"mail_surfaced".to_owned()));
    assert_eq!(ids(&bus.relay("RedForest", ["poll", "--wait", "60s"]).success().result()["messages"]), sent);
}

#[test]
fn a_wait_returns_at_once_for_mail_that_never_surfaced_or_lies_after_the_cursor() {
    let (bus, sent) = mailed(2);
    let wait = |flags: &[&str]| {
        let run = bus.relay("RedForest", [&["poll", "--wait", "60s"], flags].concat());
        ids(&run.success().result()["messages"])
    };
    assert_eq!(wait(&["--thread", "bd-0"]), sent[..1]);
    assert_eq!(wait(&[]), sent, "the second never surfaced");
    assert_eq!(wait(&["--after", &sent[0].to_string()]), sent[1..], "after the cursor, though it surfaced");
}

#[test]
fn a_wait_finds_mail_that_never_surfaced_before_the_cursor_too() {
    let (bus, sent) = mailed(3);
    page(&bus, &["--thread", "bd-2"]);
    let cursor = sent[2].to_string();
    let result = bus.relay("RedForest", ["poll", "--wait", "1s", "--after", &cursor]).success().result();
    assert_eq!(ids(&result["messages"]), sent[..2]);
    assert_eq!(result["cursor"].to_string(), cursor, "a cursor does not go back");
    let result = bus.relay("RedForest", ["poll", "--wait", "1s", "--after", &cursor]).success().result();
    assert_eq!(ids(&result["messages"]), Vec::<u64>::new(), "once");
    assert_eq!(page(&bus, &["--after", &cursor]), (vec![], sent[2]), "without a wait only what comes after");
}

#[test]
fn mail_was_read_at_the_time_that_the_answer_said() {
    let (bus, sent) = mailed(1);
    let gate = std::fs::File::open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let mut child = bus.args("RedForest", ["poll", "--read"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut answer = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut answer).unwrap();
    // The clock goes on between the answer and the mark.
    bus.advance(1);
    gate.unlock().unwrap();
    assert!(child.wait().unwrap().success());
    let shown = serde_json::from_str::<Value>(&answer).unwrap()["result"]["messages"][0]["read_at"].clone();
    assert!(shown.is_string(), "{answer}");
    let stored = bus.relay("RedForest", ["message", &sent[0].to_string()]).success().result();
    assert_eq!(stored["message"]["read_at"], shown);
}

#[test]
fn a_wait_goes_on_over_mail_that_was_shown_and_ends_with_the_next() {
    let (bus, sent) = mailed(1);
    page(&bus, &[]);
    let waiter = bus.waiting("RedForest", &["poll", "--wait", "60s"]);
    let next = bus.send("BlueLake", "RedForest", "bd-5", "Another part");
    let result = waiter.finish().success().result();
    assert_eq!((ids(&result["messages"]), result["cursor"].as_u64()), (vec![sent[0], next], Some(next)));
}

#[test]
fn a_wait_for_one_sender_or_thread_sleeps_through_the_others() {
    let (bus, _) = mailed(0);
    for flags in [["--from", "BlueLake"], ["--thread", "bd-1"]] {
        page(&bus, &["--read"]);
        let mut waiter = bus.waiting("RedForest", &[&["poll", "--wait", "60s"], flags.as_slice()].concat());
        bus.send("GreenHill", "RedForest", "bd-2", "Other");
        assert!(!waiter.has_ended());
        let wanted = bus.send("BlueLake", "RedForest", "bd-1", "Wanted");
        assert_eq!(ids(&waiter.finish().success().result()["messages"]), [wanted]);
    }
}

#[test]
fn at_its_deadline_a_wait_answers_ok_with_an_empty_list() {
    let (bus, sent) = mailed(1);
    page(&bus, &[]);
    let tip = bus.tip();
    let result = bus.relay("RedForest", ["poll", "--wait", "1s"]).success().result();
    assert_eq!((ids(&result["messages"]), result["unread"].as_u64()), (vec![], Some(1)));
    let after = sent[0].to_string();
    let result = bus.relay("RedForest", ["poll", "--wait", "1s", "--after", &after]).success().result();
    assert_eq!((ids(&result["messages"]), result["cursor"].to_string()), (vec![], after));
    assert_eq!(bus.tip(), tip);
}

#[test]
fn a_full_page_of_old_mail_hides_no_news_from_a_waiter() {
    let (bus, sent) = mailed(3);
    page(&bus, &[]);
    let news = bus.send("BlueLake", "RedForest", "bd-7", "News");
    let found = bus.relay("RedForest", ["poll", "--wait", "60s", "--limit", "2"]).success().result();
    assert!(ids(&found["messages"]).contains(&news), "{sent:?} {found}");
}

#[test]
fn a_message_to_oneself_to_nobody_or_twice_to_one_is_refused() {
    let (bus, _) = mailed(0);
    let tip = bus.tip();
    for flags in [
        ["--to", "BlueLake"].as_slice(),
        &["--to", "RedForest,redforest"],
        &["--to", "RedForest", "--cc", "RedForest"],
        &["--to", ""],
        &[],
    ] {
        let args = [&["send", "--subject", "S", "--body", "b"], flags].concat();
        let run = bus.relay("BlueLake", args);
        assert!([2, 3].contains(&run.status), "{flags:?}");
    }
    assert_eq!(bus.tip(), tip);
}

#[test]
fn an_inbox_has_an_end_and_its_sender_hears_of_it() {
    let (bus, sent) = mailed(2);
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 2\n").unwrap();
    let send = ["send", "--to", "GreenHill,RedForest", "--thread", "bd-1", "--subject", "More", "--body", "text"];
    bus.relay("GreenHill", ["policy", "open"]).success();
    let error = bus.relay("BlueLake", send).fails("INBOX_FULL").error();
    assert_eq!(error["details"]["name"], "RedForest");
    assert_eq!((bus.inbox("GreenHill"), bus.inbox("RedForest")), (vec![], sent), "all recipients or none");
    let group = ["send", "--to", "@all", "--subject", "More", "--body", "text"];
    let result = bus.relay("BlueLake", group).success().result();
    assert_eq!(result["left_out"], serde_json::json!([{"name": "RedForest", "reason": "inbox full"}]));
    bus.relay("RedForest", ["poll", "--read"]).success();
    bus.relay("BlueLake", send).success();
}
