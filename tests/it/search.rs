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

#[test]
fn an_excerpt_shows_where_a_text_has_the_words() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let body = format!("{}\nThe needle\u{1b}[31m lies here.\n{}", "hay ".repeat(200), "hay ".repeat(200));
    bus.relay("BlueLake", ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Straw", "--body", &body])
        .success();
    let seen = bus.relay("RedForest", ["search", "NEEDLE"]).success().result()["found"][0].clone();
    let excerpt = seen["excerpt"].as_str().unwrap();
    assert!(
        excerpt.starts_with("…hay") && excerpt.contains("hay The needle") && excerpt.ends_with("hay…"),
        "{excerpt}"
    );
    assert!(seen.get("body").is_none(), "{seen}");
    let text = bus.text("RedForest", ["search", "needle"]).success().stdout;
    assert!(text.contains("│ …hay") && text.contains("needle\\u{1b}[31m lies"), "{text}");
    let subject = bus.relay("RedForest", ["search", "straw"]).success().result()["found"][0].clone();
    assert!(subject.get("excerpt").is_none(), "{subject}");
}

#[test]
fn agents_threads_and_claims_are_found_by_any_part_of_what_they_are_called() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("BlueLake", ["start", "--program", "codex", "--task", "Mend the Login"]).success();
    bus.relay("RedForest", ["reserve", "src/login/**", "--reason", "bd-7"]).success();
    bus.relay("GreenHill", ["reserve", "docs"]).success();
    bus.send("RedForest", "GreenHill", "login-2", "Hello");
    bus.send("RedForest", "GreenHill", "bd-9", "Nothing of it");
    let search = |viewer: &str, words: &[&str]| {
        let seen = bus.relay(viewer, [&["search"], words].concat()).success().result();
        let names = |list: &str, field: &str| -> Vec<String> {
            let rows = seen[list].as_array().cloned().unwrap_or_default();
            rows.iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
        };
        [names("agents", "name"), names("threads", "id"), names("reservations", "pattern")]
    };
    let none = Vec::<String>::new;
    let one = |name: &str| vec![name.to_owned()];
    assert_eq!(search("", &["logi"]), [one("BlueLake"), one("login-2"), one("src/login/**")]);
    assert_eq!(search("", &["CODEX", "mend"]), [one("BlueLake"), none(), none()]);
    assert_eq!(search("", &["redforest", "bd-7"]), [none(), none(), one("src/login/**")]);
    assert_eq!(search("", &["login", "nowhere"]), [none(), none(), none()]);
    // They stand beside the first page alone.
    assert_eq!(search("", &["logi", "--before", "999"]), [none(), none(), none()]);
    let text = bus.text("", ["search", "logi"]).success().stdout;
    assert!(["BlueLake", "login-2", "src/login/**"].iter().all(|name| text.contains(name)), "{text}");
    assert_eq!(bus.text("", ["search", "nowhere"]).success().stdout, "Nothing found.\n");
    bus.relay("RedForest", ["release", "--all"]).success();
    assert_eq!(search("", &["src/login"]), [none(), none(), none()], "what was given back is no claim");
}

#[test]
fn a_thread_that_the_viewer_does_not_see_is_not_found() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let send = ["send", "--bcc", "RedForest", "--thread", "veiled", "--subject", "s", "--body", "b"];
    bus.relay("BlueLake", send).success();
    let threads = |viewer: &str| bus.relay(viewer, ["search", "veil"]).success().result()["threads"].clone();
    assert_eq!(threads("RedForest")[0]["id"], "veiled");
    assert_eq!(threads("GreenHill"), serde_json::Value::Null);
}
