//! `relay log` and the lists: the newest part, as far as one may see it, without reading what nobody is shown.

use serde_json::{Value, json};

use crate::bus::{Bus, minutes};
use crate::terminal::column;

/// Mail in two threads and claims, so that every filter leaves out something between what it takes.
fn busy() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for thread in ["bd-1", "bd-2", "bd-1", "bd-2", "bd-1"] {
        bus.send("BlueLake", "RedForest", thread, "Login");
        bus.relay("RedForest", ["reserve", "src", "--reason", thread]).success();
    }
    bus
}

/// What `log` shows with these arguments: the newest so many of everything that they take, the newest first, and where the
/// older ones are; `look events` the oldest so many, and where to go on.
#[track_caller]
fn check(bus: &Bus, args: &[&str], takes: impl Fn(&Value) -> bool, limit: usize) {
    let all: Vec<Value> = bus.events(0).into_iter().filter(|event| takes(event)).collect();
    assert!(all.len() > limit, "{args:?} takes {}", all.len());
    let limited = ["--limit", &limit.to_string()].map(str::to_owned);
    let read = |command: &[&str]| {
        let words = command.iter().chain(args).map(ToString::to_string).chain(limited.clone());
        bus.relay("", words).success().result()
    };
    let mut newest_first = all.clone();
    newest_first.reverse();
    let shown = read(&["log"]);
    assert_eq!(shown["events"], json!(newest_first[..limit]), "{args:?}");
    assert_eq!(shown["cursor"], bus.tip(), "{args:?}");
    assert_eq!(shown["before"], newest_first[limit - 1]["number"], "{args:?}");
    let first = read(&["look", "events"]);
    assert_eq!(first["events"], json!(all[..limit]), "{args:?}");
    assert_eq!(first["cursor"], all[limit - 1]["number"], "{args:?}");
    assert_eq!(first["before"], Value::Null);
    // Page by page nothing is left out and nothing comes twice, in either direction.
    let (mut older, mut before) = (Vec::new(), (bus.tip() + 1).to_string());
    let (mut newer, mut after) = (Vec::new(), "0".to_owned());
    for _ in 0..=all.len() {
        let page = read(&["log", "--before", &before]);
        older.extend(page["events"].as_array().unwrap().clone());
        before = page["before"].as_u64().unwrap_or(1).to_string();
        let page = read(&["look", "events", "--after", &after]);
        newer.extend(page["events"].as_array().unwrap().clone());
        after = page["cursor"].to_string();
    }
    assert_eq!((older, newer), (newest_first, all), "{args:?}");
}

fn is(event: &Value, field: &str, value: &str) -> bool {
    event[field] == value
}

#[test]
fn the_log_shows_the_newest_part_whatever_is_wanted_of_it() {
    let bus = busy();
    check(&bus, &[], |_| true, 5);
    check(&bus, &["--by", "BlueLake"], |event| is(event, "actor", "BlueLake"), 3);
    check(&bus, &["--by", "redforest"], |event| is(event, "actor", "RedForest"), 3);
    check(&bus, &["--kind", "message_sent"], |event| is(event, "kind", "message_sent"), 2);
    check(&bus, &["--kind", "MESSAGE_SENT"], |event| is(event, "kind", "message_sent"), 2);
    let either = |event: &Value| is(event, "kind", "message_sent") || is(event, "kind", "agent_registered");
    check(&bus, &["--kind", "message_sent,agent_registered"], either, 3);
    check(&bus, &["--kind", "message_sent", "--kind", "agent_registered"], either, 3);
    let of_bd_2 = |event: &Value| is(&event["data"], "thread", "bd-2") || is(&event["data"], "reason", "bd-2");
    let granted = |event: &Value| is(event, "kind", "message_sent") || is(event, "kind", "reservation_granted");
    let both = ["--thread", "BD-2", "--kind", "message_sent,reservation_granted"];
    check(&bus, &both, |event| of_bd_2(event) && granted(event), 1);
    let all_three = ["--thread", "bd-1", "--kind", "message_sent", "--by", "bluelake"];
    check(&bus, &all_three, |event| is(event, "kind", "message_sent") && event["data"]["thread"] == "bd-1", 2);
}

/// The numbers that a filter takes, oldest first.
#[track_caller]
fn takes(bus: &Bus, args: &[&str], expected: &[u64]) {
    let events = bus.relay("", [&["look", "events"], args].concat()).success().result();
    assert_eq!(column(&events["events"], "number"), expected, "{args:?}");
    let mut log = column(&bus.relay("", [&["log"], args].concat()).success().result()["events"], "number");
    log.reverse();
    assert_eq!(log, expected, "{args:?}");
}

fn granted(bus: &Bus, agent: &str, args: &[&str]) -> u64 {
    bus.relay(agent, [&["reserve"], args].concat()).success().result()["granted"][0]["id"].as_u64().unwrap()
}

#[test]
fn a_thread_takes_its_receipts_and_the_ends_of_its_claims_with_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let other = bus.send("BlueLake", "RedForest", "bd-2", "Other");
    let sent = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let claim = granted(&bus, "BlueLake", &["src", "--reason", "bd-1"]);
    let elsewhere = granted(&bus, "BlueLake", &["docs", "--reason", "bd-2"]);
    bus.relay("RedForest", ["ack", &sent.to_string()]).success();
    let acked = bus.tip();
    bus.relay("RedForest", ["ack", &other.to_string()]).success();
    bus.relay("BlueLake", ["release", "--id", &claim.to_string()]).success();
    let released = bus.tip();
    bus.relay("BlueLake", ["release", "--id", &elsewhere.to_string()]).success();
    let kinds = ["--kind", "message_sent,mail_acked,reservation_granted,reservation_released"];
    takes(&bus, &[&["--thread", "bd-1"], &kinds[..]].concat(), &[sent, claim, acked, released]);
}

#[test]
fn a_path_takes_the_claims_that_share_a_path_with_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let wide = granted(&bus, "BlueLake", &["src/**"]);
    let narrow = granted(&bus, "RedForest", &["src/a.rs"]);
    let beside = granted(&bus, "RedForest", &["src/b.rs"]);
    let docs = granted(&bus, "RedForest", &["docs/*.md"]);
    bus.relay("BlueLake", ["release", "src/**"]).success();
    let gone = bus.tip();
    takes(&bus, &["--path", "src/a.rs"], &[wide, narrow, gone]);
    takes(&bus, &["--path", "src"], &[wide, narrow, beside, gone]);
    takes(&bus, &["--path", "docs/x.md"], &[docs]);
    takes(&bus, &["--path", "docs/x.txt"], &[]);
    takes(&bus, &["--path", &format!("{}/src/a.rs", bus.key())], &[wide, narrow, gone]);
    takes(&bus, &["--path", "src/a.rs", "--kind", "reservation_granted", "--by", "RedForest"], &[narrow]);
    bus.relay("", ["log", "--path", "src/a.rs", "--kind", "message_sent"]).fails("INPUT_INVALID");
    bus.relay("", ["log", "--path", "../x"]).fails("PATTERN_OUTSIDE_PROJECT");
}

#[test]
fn a_time_is_named_as_people_name_one() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let early = bus.send("BlueLake", "RedForest", "bd-1", "Early");
    bus.advance(minutes(120));
    let late = bus.send("BlueLake", "RedForest", "bd-1", "Late");
    let of = |args: &[&str], expected: &[u64]| takes(&bus, &[&["--kind", "message_sent"], args].concat(), expected);
    of(&["--since", "1h"], &[late]);
    of(&["--since", "2h"], &[early, late]);
    of(&["--until", "1h"], &[early]);
    of(&["--until", "2026-11-15T00:00:00Z"], &[early]);
    of(&["--since", "2026-11-15T02:00:00.000Z"], &[late]);
    of(&["--since", "2026-11-15T02:00:00.001Z"], &[]);
    of(&["--since", "2026-11-15", "--until", "2026-11-16"], &[early, late]);
    of(&["--since", "2026-11-15T03:00+02:00"], &[late]);
    for bad in ["yesterday", "2026-13-01", ""] {
        bus.relay("", ["log", "--since", bad]).fails("INPUT_INVALID");
        bus.relay("", ["log", "--until", bad]).fails("INPUT_INVALID");
    }
}

#[test]
fn a_filter_that_takes_nothing_shows_nothing_and_where_the_end_is() {
    let bus = busy();
    for args in [&["log", "--by", "human"] as &[&str], &["log", "--by", "human", "--after", "3"]] {
        let shown = bus.relay("", args).success().result();
        assert_eq!((shown["events"].as_array().unwrap().len(), &shown["cursor"]), (0, &bus.tip().into()), "{args:?}");
    }
    let beyond = bus.relay("", ["log", "--after", "9999"]).success().result();
    assert_eq!((beyond["events"].as_array().unwrap().len(), &beyond["cursor"]), (0, &9999.into()));
    assert_eq!(bus.text("", ["log", "--by", "human"]).success().stdout, "Nothing on record.\n");
}

/// What is asked for by a name that nobody bears is refused, and those are named whose name is near.
#[test]
fn a_name_that_nobody_bears_is_refused_with_the_nearest() {
    let bus = busy();
    for (args, code, near) in [
        (["--by", "BlueLak"], "RECIPIENT_NOT_FOUND", "BlueLake"),
        (["--by", "red forest"], "RECIPIENT_NOT_FOUND", "RedForest"),
        (["--thread", "bd-11"], "THREAD_NOT_FOUND", "bd-1"),
    ] {
        for command in [&["log"] as &[&str], &["look", "events"]] {
            let error = bus.relay("", [command, &args].concat()).fails(code).error();
            assert_eq!(error["details"]["nearest"][0], near, "{error}");
            assert!(error["message"].as_str().unwrap().contains("did you mean"), "{error}");
        }
    }
    bus.relay("", ["log", "--by", "Nobody"]).fails("RECIPIENT_NOT_FOUND");
    bus.relay("", ["log", "--by", "BlueLake@/gone"]).fails("RECIPIENT_NOT_FOUND");
    bus.relay("", ["log", "--by", "relay"]).success();
    // A thread that one may not see is as one that is not there, and is not proposed either.
    bus.relay("RedForest", ["policy", "open"]).success();
    bus.relay("GreenHill", ["start"]).success();
    let blind = ["send", "--bcc", "RedForest", "--thread", "hidden-7", "--subject", "Blind", "--body", "text"];
    bus.relay("BlueLake", blind).success();
    for thread in ["hidden-7", "hidden"] {
        let error = bus.relay("GreenHill", ["log", "--thread", thread]).fails("THREAD_NOT_FOUND").error();
        assert_eq!(error["details"]["nearest"], json!([]));
    }
    bus.relay("RedForest", ["log", "--thread", "hidden-7"]).success();
    // What claims were made for is known, though nobody wrote there.
    bus.relay("BlueLake", ["reserve", "lib", "--reason", "bd-77"]).success();
    bus.relay("BlueLake", ["release", "lib"]).success();
    let shown = bus.relay("", ["log", "--thread", "bd-77"]).success().result();
    assert_eq!(column(&shown["events"], "number").len(), 2, "{shown}");
}

/// Nobody is sent to look for older ones that are not there.
#[test]
fn older_ones_are_promised_only_where_there_are_some() {
    let bus = busy();
    let all = bus.tip() as usize;
    let sent = [&["--kind", "message_sent"] as &[&str], &["--thread", "bd-2", "--kind", "message_sent"]];
    for (args, count) in [(&[] as &[&str], all), (sent[0], 5), (sent[1], 2), (&["--after", "3"], all - 3)] {
        for (limit, is_promised) in [(count, false), (count - 1, true)] {
            let limit = limit.to_string();
            let args = [&["log", "--limit", &limit], args].concat();
            let shown = bus.relay("", &args).success().result();
            assert_eq!(shown["before"].is_u64(), is_promised, "{args:?}: {shown}");
            assert_eq!(bus.text("", &args).success().stdout.contains("(older: "), is_promised, "{args:?}");
        }
    }
}

#[test]
fn a_word_that_is_no_kind_is_refused_with_those_that_are() {
    let bus = busy();
    for command in [&["log"] as &[&str], &["look", "events"]] {
        let message = bus.relay("", [command, &["--kind", "message_snet"]].concat()).fails("INPUT_INVALID").error();
        let message = message["message"].as_str().unwrap().to_owned();
        assert!(message.contains("did you mean message_sent?"), "{message}");
        assert!(message.contains("reservation_granted"), "{message}");
    }
    // The help is that of the command that was typed, whatever stands in the way.
    for (args, command) in [
        (&["log", "--kind", "nothing"] as &[&str], "log"),
        (&["log", "--before", "x"], "log"),
        (&["log", "--line", "a"], "log"),
        (&["look", "events", "--kind", "nothing"], "look"),
        (&["thread", "--limit", "0"], "thread"),
    ] {
        let steps = bus.relay("", args).fails("INPUT_INVALID").error()["playbook"].to_string();
        assert!(steps.contains(&format!("`relay {command} --help`")), "{args:?}: {steps}");
    }
    // What is no list of events cannot be filtered.
    for args in [&["look", "agents", "--by", "BlueLake"] as &[&str], &["look", "status", "--before", "3"]] {
        bus.relay("", args).fails("INPUT_INVALID");
    }
}

/// As `git log` shows commits: number, who and when, then what happened and in which words.
#[test]
fn an_entry_says_who_and_when_and_what_in_which_words() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Log\u{202e}in", "--body", "secret"];
    let id = bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap();
    bus.advance(minutes(5));
    let shown = bus.text("", ["log", "--kind", "message_sent"]).success().stdout;
    let head = format!("#{id} BlueLake 2026-11-15T00:00:00Z (5m ago)\n    wrote to RedForest in bd-1\n");
    assert_eq!(shown, format!("{head}    subject: Log\\u{{202e}}in\n"));
    let short = bus.text("", ["log", "--kind", "message_sent", "--oneline"]).success().stdout;
    assert_eq!(short, format!("#{id} BlueLake wrote to RedForest in bd-1: Log\\u{{202e}}in\n"));
    let line = bus.text("", ["look", "events", "--kind", "message_sent"]).success().stdout;
    assert_eq!(line, format!("#{id} 2026-11-15T00:00:00Z BlueLake wrote to RedForest in bd-1: Log\\u{{202e}}in\n"));
    let first = bus.text("", ["log", "-n", "1"]).success().stdout;
    assert!(first.ends_with(&format!("(older: --before {})\n", bus.tip())), "{first}");
}

/// What is given back is named, and what stands below each other is aligned.
#[test]
fn many_lines_read_as_a_table() {
    let bus = Bus::with(&["BlueLake", "Owl"]);
    bus.relay("Owl", ["reserve", "src/**", "--shared", "--reason", "bd-1"]).success();
    for _ in 0..4 {
        bus.relay("BlueLake", ["reserve", "docs"]).success();
        bus.relay("BlueLake", ["release", "docs"]).success();
    }
    bus.relay("Owl", ["release", "--all"]).success();
    let shown = bus.text("", ["log", "--oneline"]).success().stdout;
    let lines: Vec<&str> = shown.lines().collect();
    let tip = bus.tip();
    assert_eq!(lines[0], format!("#{tip} Owl      released #4: src/**"));
    assert_eq!(lines[1], format!("#{} BlueLake released #{}: docs", tip - 1, tip - 2));
    let granted = lines.iter().find(|line| line.starts_with("#4 ")).unwrap();
    assert_eq!(*granted, "#4  Owl      reserved src/** for bd-1, shared, until 2026-11-15T01:00:00Z");
    let full = bus.text("", ["log", "-n", "1"]).success().stdout;
    assert!(full.contains("\n    released #4\n    patterns: src/**\n"), "{full}");
}

/// Hidden events leave no gap in a page: the newest that one may see are shown.
#[test]
fn a_page_is_filled_with_what_one_may_see() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let seen = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    for _ in 0..3 {
        let args = ["send", "--bcc", "RedForest", "--thread", "bd-9", "--subject", "Blind", "--body", "text"];
        bus.relay("BlueLake", args).success();
    }
    let shown = bus.relay("GreenHill", ["log", "--limit", "1"]).success().result();
    assert_eq!(column(&shown["events"], "number"), [seen]);
}

/// A body that cannot be read at all: whoever reads it fails.
fn spoil(bus: &Bus, id: u64) {
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    let spoilt = "UPDATE texts SET text = CAST(x'ff' AS TEXT) WHERE event = ?1 AND field = 'body'";
    assert_eq!(store.execute(spoilt, [id]).unwrap(), 1);
}

#[test]
fn a_body_is_read_where_it_is_shown_and_nowhere_else() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("RedForest", ["poll"]).success();
    let long = "x".repeat(20 * 1024);
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--body", &long];
    bus.relay("BlueLake", args).success();
    spoil(&bus, id);
    assert_ne!(bus.relay("RedForest", ["message", &id.to_string()]).status, 0, "the body is spoilt");
    for args in [
        &["log"] as &[&str],
        &["log", "--thread", "bd-1"],
        &["log", "--kind", "mail_surfaced"],
        &["thread"],
        // The newest body spends the budget.
        &["thread", "bd-1"],
        &["prepare", "--thread", "bd-1"],
        &["look", "outbox"],
        &["look", "debt"],
        &["poll"],
        &["poll", "--read"],
        &["ack", &id.to_string()],
        &["send", "--reply-to", &id.to_string(), "--body", "answer"],
        &["release", "--reason", "bd-1", "--done"],
    ] {
        bus.relay("RedForest", args).success();
    }
    bus.forget();
}
