//! Two hundred commands at once: everybody gets an answer, nobody hears that the store is busy, no number is missing.

use std::collections::BTreeSet;
use std::process::{Child, Stdio};

use crate::bus::{Bus, Run};

const CROWD: usize = 200;
const AGENTS: [&str; 8] =
    ["BlueLake", "RedForest", "GreenHill", "OldOak", "DryRiver", "TallPine", "WarmStone", "ColdWind"];

/// How long the last of two hundred waits for its turn depends on the machine; whether it gets one must not.
fn patient(bus: &Bus) {
    std::fs::write(bus.home().join("config.toml"), "[limits]\ngate_wait = \"10m\"\n").unwrap();
}

/// What the command with this ordinal does: every verb that agents use all day.
fn request(ordinal: usize, mail: &str) -> (&'static str, Vec<String>) {
    let agent = AGENTS[ordinal % AGENTS.len()];
    let other = AGENTS[(ordinal + 1) % AGENTS.len()];
    let line = match ordinal / AGENTS.len() % 10 {
        0 | 5 => format!("send --to {other} --thread crowd --subject Crowd --body text-{ordinal}"),
        1 => format!("reserve src/{ordinal}.rs --reason crowd"),
        2 => "poll --bodies".to_owned(),
        3 => format!("ack {mail}"),
        4 => "release --all".to_owned(),
        6 => format!("prepare --thread crowd-{ordinal}"),
        7 => "status".to_owned(),
        8 => "start".to_owned(),
        _ => format!("link --target {other}"),
    };
    (agent, line.split(' ').map(str::to_owned).collect())
}

fn begin(bus: &Bus, ordinal: usize, mail: &str) -> (String, Child) {
    let (agent, args) = request(ordinal, mail);
    let mut command = bus.args(agent, &args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    (format!("{command:?}"), child)
}

#[test]
fn two_hundred_commands_at_once_all_succeed() {
    let bus = Bus::with(&AGENTS);
    patient(&bus);
    bus.relay("BlueLake", ["prepare", "--thread", "crowd"]).success();
    // One message to everybody, for all to acknowledge.
    let mail = "send --agent human --to @all --thread crowd --subject Crowd --body hello";
    bus.relay("", ["token", "human"]).success();
    let mail = bus.relay("", mail.split(' ')).success().result()["message"]["id"].to_string();
    let crowd: Vec<(String, Child)> = (0..CROWD).map(|ordinal| begin(&bus, ordinal, &mail)).collect();
    let runs: Vec<Run> =
        crowd.into_iter().map(|(line, child)| Run::new(line, &child.wait_with_output().unwrap()).success()).collect();
    let sent: BTreeSet<u64> = runs.iter().filter_map(|run| run.result()["message"]["id"].as_u64()).collect();
    let senders = (0..CROWD).filter(|ordinal| request(*ordinal, &mail).1[0] == "send").count();
    assert_eq!(sent.len(), senders, "two messages have one number");
    for run in &runs {
        // Where a send had to try again because the store was busy, it says so.
        let signals = run.json()["signals"].to_string();
        assert!(!signals.contains("STORE_BUSY"), "{signals}");
    }
    let tip = bus.relay("", ["health"]).success().result()["store"]["events"].as_u64().unwrap();
    assert_eq!(numbers(&bus), (1..=tip).collect::<Vec<_>>());
    assert!(sent.iter().all(|number| *number <= tip));
}

/// All numbers in the history, page by page.
fn numbers(bus: &Bus) -> Vec<u64> {
    let mut numbers = Vec::new();
    loop {
        let after = numbers.last().copied().unwrap_or(0).to_string();
        let page = bus.relay("", ["look", "events", "--after", &after]).success().result();
        let events = page["events"].as_array().unwrap();
        if events.is_empty() {
            return numbers;
        }
        numbers.extend(events.iter().map(|event| event["number"].as_u64().unwrap()));
    }
}

#[test]
fn the_first_commands_of_a_project_may_come_at_once() {
    let bus = Bus::new();
    std::fs::create_dir(bus.home()).unwrap();
    patient(&bus);
    let start = |name: &String| {
        let mut command = bus.args(name, ["start"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (format!("{command:?}"), child)
    };
    let names: Vec<String> = (0..40).map(|count| format!("Agent{count}")).collect();
    let crowd: Vec<(String, Child)> = names.iter().map(start).collect();
    for (line, child) in crowd {
        let started = Run::new(line, &child.wait_with_output().unwrap()).success().result();
        assert_eq!(started["new"], true);
    }
    // One event opened the project, and each of them registered.
    assert_eq!(numbers(&bus), (1..=41).collect::<Vec<_>>());
}
