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
