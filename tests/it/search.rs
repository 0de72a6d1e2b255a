//! `look search`: every message is found, whether the index knows it already or not.

use crate::bus::Bus;

/// The numbers that a search finds, newest first.
fn found(bus: &Bus, words: &[&str]) -> Vec<u64> {
    let run = bus.relay("RedForest", [&["look", "search"], words].concat()).success();
    run.result()["found"].as_array().unwrap().iter().map(|message| message["id"].as_u64().unwrap()).collect()
}

#[test]
fn a_message_is_found_from_the_moment_it_is_sent_and_for_ever() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let mut sent = Vec::new();
    for round in 0..70 {
        let subject = format!("Überblick over number{round} again");
        sent.push(bus.send("BlueLake", "RedForest", "bd-1", &subject));
        assert_eq!(found(&bus, &[&format!("number{round}")]), [sent[round]]);
        assert_eq!(found(&bus, &["uberblick", "number0"]), [sent[0]], "after {round}");
    }
    let all: Vec<u64> = sent.iter().rev().copied().collect();
    assert_eq!(found(&bus, &["again"]), all);
    assert_eq!(found(&bus, &["again", "--limit", "5"]), all[..5]);
    assert_eq!(found(&bus, &["\"AND", "number7"]), Vec::<u64>::new());
}

#[test]
fn a_search_is_a_few_words_and_those_once() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.send("BlueLake", "RedForest", "bd-1", "needle");
    let many: Vec<String> = (0..33).map(|n| format!("w{n}")).collect();
    let search = |words: &[String]| bus.relay("BlueLake", [&["search".to_owned()], words].concat());
    let refused = search(&many).fails("INPUT_INVALID").error();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("at most 32 words")), "{refused}");
    search(&["n".repeat(1_001)]).fails("INPUT_INVALID");
    let again = vec!["needle".to_owned(); 5_000];
    assert_eq!(search(&again).success().result()["found"].as_array().map(Vec::len), Some(1), "the same word once");
}
