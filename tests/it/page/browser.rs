//! The page in a real browser, with agents that work meanwhile through the command line. What is seen there is in
//! `tests/clients/page/`; what came of it on the bus is looked at here.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::effort::summary;
use crate::page::stage::Stage;
use crate::page::story;
use crate::terminal::text;

/// Which of the things that a list is about a scene looks at.
fn about(thread: &str, agent: &str, words: &str) -> Value {
    json!({"thread": thread, "agent": agent, "words": words, "day": "2026-11-16"})
}

fn morning() -> Value {
    about("bd-101", "BlueLake", "session")
}

#[test]
fn every_screen_tells_the_morning_in_both_themes_and_narrow() {
    let bus = story::told();
    Stage::open(&bus).plays(&["screens"], &morning());
}

#[test]
fn lists_are_filtered_paged_and_replayed() {
    let bus = story::told();
    Stage::open(&bus).plays(&["lists"], &morning());
}

#[test]
fn a_narrow_screen_begins_with_what_is_to_be_decided_and_the_live_tree_is_the_tree() {
    let bus = story::told();
    Stage::open(&bus).plays(&["narrow", "tree"], &morning());
}

/// The longest names that there are, and letters with more marks than anybody writes.
#[test]
fn nothing_is_wider_than_its_screen_or_paints_over_its_neighbours() {
    let (name, other) = ("W".repeat(64), "m".repeat(64));
    let bus = Bus::with(&[&name, &other]);
    bus.relay("", ["token", "human"]).success();
    let (thread, marks) = ("w".repeat(128), format!("Z{}", "\u{336}\u{30d}\u{323}".repeat(20)));
    let task = format!("{marks} {}", "M".repeat(120));
    bus.relay(&name, ["start", "--task", &task, "--program", &"p".repeat(100), "--model", &"m".repeat(100)]).success();
    let path = format!("src/{}/**", "d".repeat(120));
    for agent in [&name, &other] {
        bus.relay(agent, ["reserve", &path, "--reason", &thread]).success();
        let letter =
            ["send", "--to", "human", "--thread", &thread, "--subject", &task, "--body", &task, "--ack-required"];
        bus.relay(agent, letter).success();
    }
    bus.relay(&other, ["policy", "contacts_only"]).success();
    bus.relay(&name, ["link", "--target", &other, "--why", &task]).success();
    let told = json!({"thread": thread, "agent": name, "words": "M".repeat(120), "day": "2026-11-15"});
    Stage::open(&bus).plays(&["widths"], &told);
}

#[test]
fn what_happens_meanwhile_appears_by_itself() {
    let bus = story::told();
    Stage::open(&bus).plays(&["live"], &morning());
}

#[test]
fn the_human_decides_and_acts_while_agents_work() {
    let bus = story::told();
    Stage::open(&bus).plays(&["acts"], &morning());
    assert_eq!(subjects(&bus, "BlueLake")[..3], ["To one", "To several", "To all"]);
    assert_eq!(subjects(&bus, "GreenHill")[..1], ["To all"]);
    let answered = bus.relay("RedForest", ["poll", "--all", "--from", "human", "--bodies"]).success().result();
    let bodies = answered["messages"].as_array().unwrap().iter().map(|message| text(&message["body"]));
    assert!(bodies.collect::<Vec<_>>().contains(&"Wait for the release.".to_owned()), "{answered}");
    assert_eq!(link_state(&bus, "BlueLake"), "accepted");
    assert_eq!(link_state(&bus, "RedForest"), "blocked");
    let held = bus.relay("", ["reservations", "src/search/index.rs"]).success().result();
    assert_eq!(held["reservations"], json!([]), "the human gave it back");
    let agents = bus.relay("", ["agents"]).success().result()["agents"].clone();
    let state =
        |name: &str| agents.as_array().unwrap().iter().find(|agent| agent["name"] == name).unwrap()["state"].clone();
    assert_eq!([state("QuietOwl"), state("GreenHill")], ["retired", "active"]);
    let waiting = bus.relay("human", ["status"]).success().result()["for_the_human"].clone();
    assert_eq!(waiting, json!([]), "nothing waits for the human any more");
}

#[test]
fn a_step_out_of_an_error_is_a_button_that_takes_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 2\n").unwrap();
    for _ in 0..2 {
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
    }
    Stage::open(&bus).plays(&["steps"], &json!({}));
    assert_eq!(subjects(&bus, "RedForest"), ["Stop"]);
}

/// What became of an agent's wish to write to GreenHill.
fn link_state(bus: &Bus, agent: &str) -> String {
    let links = bus.relay(agent, ["link", "--list"]).success().result()["links"].clone();
    let link = links.as_array().unwrap().iter().find(|link| link["with"] == "GreenHill" || link["to"] == "GreenHill");
    text(&link.unwrap_or_else(|| panic!("{links}"))["state"])
}

#[test]
fn it_works_by_keyboard_alone_and_without_scripts() {
    let bus = story::told();
    Stage::open(&bus).plays(&["keyboard", "plain"], &morning());
    assert_eq!(subjects(&bus, "BlueLake"), ["By keyboard", "Without scripts"]);
}

#[test]
fn other_sites_in_the_same_browser_are_refused() {
    let bus = story::told();
    Stage::open(&bus).plays(&["attacks"], &morning());
}

#[test]
fn an_empty_project_and_an_empty_machine_say_what_to_do() {
    let bus = Bus::new();
    bus.relay("", ["token", "human"]).success();
    bus.relay("BlueLake", ["start"]).success();
    bus.relay("BlueLake", ["retire"]).success();
    Stage::open(&bus).plays(&["empty"], &about("bd-1", "BlueLake", "nothing"));
    let nowhere = Bus::new();
    Stage::open(&nowhere).plays(&["empty"], &about("bd-1", "BlueLake", "nothing"));
}

#[test]
fn no_screen_of_a_large_project_weighs_more_than_it_may() {
    let bus = large(300);
    let found = Stage::open(&bus).plays(&["weight"], &about("bd-1", "Worker1", "words"));
    summary(&format!("bytes of each screen with 300 agents, claims and threads: {}", found["weight"]));
}

/// Hundreds of agents, each with a claim and a thread, and a thread in which much was said.
fn large(count: usize) -> Bus {
    let bus = Bus::with(&["Reader"]);
    bus.relay("Reader", ["policy", "open"]).success();
    let body = "Some words about what was found in `src/part`, and *why* it matters.\n\n".repeat(20);
    let one = |index: usize| {
        let name = format!("Worker{index}");
        let task = format!("Part {index} of the large migration");
        let claim = format!("src/part{index}/**");
        bus.relay(&name, ["start", "--task", &task, "--program", "claude-code", "--path", &claim]).success();
        let thread = if index.is_multiple_of(4) { "bd-1".to_owned() } else { format!("part-{index}") };
        let send =
            ["send", "--to", "Reader", "--thread", &thread, "--subject", &task, "--body", &body, "--ack-required"];
        bus.relay(&name, send).success();
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            scope.spawn(move || (1..=count).filter(|index| index % 2 == half).for_each(one));
        }
    });
    bus
}

/// What an agent got from the human.
fn subjects(bus: &Bus, agent: &str) -> Vec<String> {
    let mail = bus.relay(agent, ["poll", "--all", "--from", "human"]).success().result();
    mail["messages"].as_array().unwrap().iter().map(|message| text(&message["subject"])).collect()
}
