//! Pages: whatever is listed newest first, or by its number, can be walked through without gap or repetition, whoever looks.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::terminal::ids;

/// Everybody takes everybody's mail, and a page has at most five rows.
fn project() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldRiver", "GreyStone"]);
    for agent in ["BlueLake", "RedForest", "GoldRiver", "GreyStone"] {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus.relay("", ["token", "human"]).success();
    std::fs::write(bus.home().join("config.toml"), "[limits]\npage = 5\n").unwrap();
    bus
}

/// Visible and hidden mail in one thread; there are more hidden messages in a row than a page has rows. Which are seen by all, and
/// all of them, oldest first.
fn mixed(bus: &Bus) -> (Vec<u64>, Vec<u64>) {
    let (mut seen, mut all) = (Vec::new(), Vec::new());
    for hidden in "..xx.xxxxxxxxxxxxx...x.x".chars().map(|mark| mark == 'x') {
        let line = if hidden { ["--bcc", "GoldRiver"] } else { ["--to", "RedForest"] };
        let args = ["send", "--thread", "mixed", "--subject", "Login", "--body", "token"].into_iter().chain(line);
        let id = bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap();
        all.push(id);
        seen.extend(Some(id).filter(|_| !hidden));
    }
    (seen, all)
}

/// Every page in turn, as lists of ids; `turn` names the flag that turns it.
fn walk(bus: &Bus, viewer: &str, words: &[&str], list: &str, turn: &str, size: usize) -> Vec<Vec<u64>> {
    let (mut pages, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let (size, at) = (size.to_string(), cursor.to_string());
        let flags = if cursor.is_null() { vec!["-n", &size] } else { vec!["-n", &size, turn, &at] };
        let page = bus.relay(viewer, words.iter().copied().chain(flags)).success().result();
        pages.push(ids(&page[list]));
        cursor = page[turn.trim_start_matches('-')].clone();
        if cursor.is_null() {
            return pages;
        }
    }
}

/// Each page is full but the last, and together they are what is expected.
#[track_caller]
fn check(pages: &[Vec<u64>], size: usize, expected: &[u64], who: &str) {
    assert_eq!(pages.concat(), expected, "{who:?} in pages of {size}");
    let (last, full) = pages.split_last().unwrap();
    assert!(full.iter().all(|page| page.len() == size), "{who:?} in pages of {size}: {pages:?}");
    assert!(!last.is_empty() && last.len() <= size, "{who:?} in pages of {size}: {pages:?}");
}

#[test]
fn a_thread_is_read_back_to_its_beginning_past_what_is_hidden() {
    let bus = project();
    let (seen, all) = mixed(&bus);
    for (viewer, expected) in
        [("GreyStone", &seen), ("", &seen), ("RedForest", &seen), ("GoldRiver", &all), ("human", &all)]
    {
        for size in [1, 3, 5] {
            // A page is oldest first, and the pages go back.
            let mut pages = walk(&bus, viewer, &["thread", "mixed"], "messages", "--before", size);
            pages.iter_mut().for_each(|page| page.reverse());
            let newest_first: Vec<u64> = expected.iter().rev().copied().collect();
            check(&pages, size, &newest_first, viewer);
        }
    }
    // The same thread on every page.
    let thread =
        |before: &str| bus.relay("human", ["thread", "mixed", "--before", before]).success().result()["thread"].clone();
    assert_eq!(thread(&all[3].to_string()), thread(&u64::MAX.to_string()));
}

#[test]
fn what_is_older_and_hidden_is_not_told_by_a_page_that_could_be_turned() {
    let bus = project();
    for lines in [["--bcc", "GoldRiver"], ["--to", "RedForest"]] {
        let args = ["send", "--thread", "veiled", "--subject", "Login", "--body", "token"].into_iter().chain(lines);
        bus.relay("BlueLake", args).success();
    }
    for (viewer, has_older) in [("GreyStone", false), ("", false), ("GoldRiver", true), ("human", true)] {
        for words in [["thread", "veiled", "-n", "1"], ["search", "token", "-n", "1"]] {
            let page = bus.relay(viewer, words).success().result();
            assert_eq!(page.get("before").is_some(), has_older, "{viewer:?} {words:?}");
        }
    }
}

#[test]
fn a_search_is_read_to_its_end_past_what_is_hidden() {
    let bus = project();
    let (seen, all) = mixed(&bus);
    for (viewer, expected) in [("GreyStone", &seen), ("", &seen), ("GoldRiver", &all), ("human", &all)] {
        for size in [1, 4, 5] {
            let pages = walk(&bus, viewer, &["search", "token"], "found", "--before", size);
            let newest_first: Vec<u64> = expected.iter().rev().copied().collect();
            check(&pages, size, &newest_first, viewer);
        }
    }
}

#[test]
fn the_list_of_threads_goes_on_before_the_last_one() {
    let bus = project();
    let names: Vec<String> = (1..=12).map(|number| format!("bd-{number}")).collect();
    for name in &names {
        bus.send("BlueLake", "RedForest", name, "Login");
    }
    let mut expected = names.clone();
    expected.reverse();
    let (mut found, mut before) = (Vec::new(), u64::MAX);
    loop {
        let page = bus.relay("", ["thread", "-n", "5", "--before", &before.to_string()]).success().result();
        found
            .extend(page["threads"].as_array().unwrap().iter().map(|thread| thread["id"].as_str().unwrap().to_owned()));
        match page["before"].as_u64() {
            Some(number) => before = number,
            None => break,
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn the_human_sees_the_contacts_of_all_and_an_agent_its_own() {
    let bus = project();
    for (from, to) in
        [("BlueLake", "RedForest"), ("GoldRiver", "BlueLake"), ("GreyStone", "RedForest"), ("GreyStone", "GoldRiver")]
    {
        bus.relay(from, ["link", "--target", to]).success();
    }
    let links = |viewer: &str, flags: &[&str]| {
        let told = bus.relay(viewer, ["look", "contacts"].iter().chain(flags)).success().result();
        let pairs = told["links"].as_array().unwrap().iter().map(|link| json!([link["from"], link["to"]]));
        (pairs.collect::<Vec<_>>(), told["before"].clone())
    };
    let all =
        [["GreyStone", "GoldRiver"], ["GreyStone", "RedForest"], ["GoldRiver", "BlueLake"], ["BlueLake", "RedForest"]];
    let all = all.map(|pair| json!(pair));
    assert_eq!(links("human", &[]), (all.to_vec(), Value::Null));
    for size in [1, 3] {
        let pages = walk(&bus, "human", &["look", "contacts"], "links", "--before", size);
        check(&pages, size, &ids(&bus.relay("human", ["look", "contacts"]).success().result()["links"]), "human");
    }
    let (own, _) = links("BlueLake", &[]);
    assert_eq!(own, [all[3].clone(), all[2].clone()]);
    let newest = bus.relay("BlueLake", ["look", "contacts"]).success().result()["links"][1]["id"].to_string();
    assert_eq!(links("BlueLake", &["--before", &newest]).0, [all[3].clone()]);
}

#[test]
fn claims_go_on_after_the_last_one() {
    let bus = project();
    let patterns: Vec<String> = (0..12).map(|number| format!("src/{number:02}.rs")).collect();
    let granted = bus.relay("BlueLake", ["reserve"].into_iter().chain(patterns.iter().map(String::as_str)));
    let expected = ids(&granted.success().result()["granted"]);
    for size in [1, 4, 5] {
        check(&walk(&bus, "", &["reservations"], "reservations", "--after", size), size, &expected, "");
        check(&walk(&bus, "", &["reservations", "src"], "reservations", "--after", size), size, &expected, "");
        let at = bus.tip().to_string();
        check(&walk(&bus, "", &["reservations", "--at", &at], "reservations", "--after", size), size, &expected, "");
    }
    let page = bus.relay("", ["reservations", "--after", &expected[9].to_string()]).success().result();
    assert_eq!((&page["total"], page.get("after")), (&json!(12), None));
    assert!(bus.text("", ["reservations"]).success().stdout.contains("(12 in all, more: --after"));
    assert!(!bus.text("", ["reservations", "--after", &expected[9].to_string()]).success().stdout.contains("more:"));
}

#[test]
fn a_page_that_cannot_be_is_refused_with_what_can() {
    let bus = project();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let tip = bus.tip();
    for (words, says) in [
        ("agents --before 3", "thread"),
        ("reservations --before 3", "--after"),
        ("status --before 3", "thread"),
        ("outbox --before 3", "thread"),
        ("debt --before 3", "thread"),
        ("traffic --before 3", "thread"),
        ("day 2026-11-15 --before 3", "thread"),
        ("message 3 --before 3", "thread"),
        ("thread bd-1 --before first", "\"first\" is not a number"),
        ("search Login --before=-1", "not a number"),
        ("search", "say what to search for"),
        ("thread bd-1 --limit 6", "--limit is 1 to 5"),
        ("traffic of-last-week", "takes no argument"),
        ("day", "takes one argument"),
        ("day yesterday", "write it as 2026-11-15"),
        ("day 2026-13-01", "write it as 2026-11-15"),
        ("day 2026-02-30", "write it as 2026-11-15"),
        ("day 2026-11-15T10:00:00Z", "write it as 2026-11-15"),
        ("day 15.11.2026", "write it as 2026-11-15"),
        ("trafic", "traffic"),
    ] {
        let error = bus.relay("BlueLake", ["look"].into_iter().chain(words.split(' '))).fails("INPUT_INVALID").error();
        assert!(error["message"].as_str().unwrap().contains(says), "{words}: {error}");
    }
    for (at, says) in
        [("0", "the newest is #"), ("99999", "the newest is #"), ("x", "not a number"), ("-1", "not a number")]
    {
        let at = format!("--at={at}");
        let error = bus.relay("BlueLake", ["reservations", &at]).fails("INPUT_INVALID").error();
        assert!(error["message"].as_str().unwrap().contains(says), "{at}: {error}");
    }
    assert_eq!(bus.tip(), tip);
}
