//! Who acts.

use serde_json::Value;

use super::{Way, nobody, questions};
use crate::bus::{Bus, letter};
use crate::mcp::{CURRENT, Client};
use crate::terminal::column;

fn holders(bus: &Bus) -> Vec<Value> {
    column(&bus.relay("", ["reservations"]).success().result()["reservations"], "holder")
}

pub fn not_registered(code: &str) {
    let bus = Bus::with(&["RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let error = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, nobody);
    assert_eq!(column(&bus.relay("RedForest", ["poll"]).success().result()["messages"], "from"), ["BlueLake"]);
}

/// Whoever is nobody starts, is told who it is, and says so from then on.
fn becomes_somebody(bus: &Bus, mut call: impl FnMut(&Value) -> Value) {
    bus.relay("RedForest", ["start"]).success();
    let error = call(&Value::Null)["error"].clone();
    assert_eq!(error["code"], "AGENT_NOT_REGISTERED", "{error}");
    let [first, last] = error["playbook"].as_array().unwrap().as_slice() else { panic!("{error}") };
    // It registers somebody, and what it returns is needed: nobody else takes that step.
    assert_eq!((&first["tool"], &first["unattended"], &first["who"]), (&"start".into(), &false.into(), &"you".into()));
    assert_eq!(first["args"], serde_json::json!({"project": bus.key()}), "{error}");
    let name = call(first)["result"]["agent"]["name"].clone();
    assert_eq!((&last["args"]["agent"], &last["unattended"]), (&"NAME_THAT_START_RETURNED".into(), &false.into()));
    let said = last.to_string().replace("NAME_THAT_START_RETURNED", name.as_str().unwrap());
    let again = call(&serde_json::from_str(&said).unwrap());
    assert_eq!(again["result"]["retried"]["verb"], "poll", "{again}");
}

#[test]
fn whoever_names_no_agent_is_led_to_a_name_by_commands() {
    let bus = Bus::new();
    becomes_somebody(&bus, |step| match step["run"].as_array() {
        None => bus.relay("", ["poll"]).json(),
        Some(argv) => {
            let mut command = bus.args("", argv.iter().skip(1).map(|word| word.as_str().unwrap()));
            // What the first step proposes is to export it.
            command.envs(step["args"]["agent"].as_str().map(|name| ("RELAY_AGENT", name)));
            crate::bus::run(command).success().json()
        }
    });
}

#[test]
fn whoever_names_no_agent_is_led_to_a_name_by_tools() {
    let bus = Bus::new();
    let mut client = Client::over_pipe(&bus, CURRENT);
    becomes_somebody(&bus, |step| match step["tool"].as_str() {
        None => client.call("poll", &serde_json::json!({})),
        Some(tool) => client.call(tool, &step["args"]),
    });
}

#[test]
fn a_recovery_registers_nobody_for_whoever_would_not_know_it() {
    let bus = Bus::with(&["RedForest"]);
    bus.relay("", ["poll"]).fails("AGENT_NOT_REGISTERED");
    let waits = bus.relay("", ["recover", "AGENT_NOT_REGISTERED", "--yes"]).success();
    assert_eq!((&waits.result()["waits_for"], &waits.json()["next"]), (&"you".into(), &serde_json::json!([])));
    assert_eq!(column(&bus.relay("", ["agents"]).success().result()["agents"], "name"), ["RedForest"]);
}

pub fn name_invalid(code: &str) {
    let bus = Bus::new();
    let error = bus.relay("Blue Lake", ["start"]).fails(code).error();
    Way::new(&bus, "").follow(&error, |_| drop(bus.relay("", ["start"]).success()));
}

pub fn name_taken(code: &str) {
    let bus = Bus::new();
    bus.relay("BlueLake", ["start", "--session", "one"]).success();
    let error = bus.relay("BlueLake", ["start", "--session", "two", "--task", "Login"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, nobody);
    let agent = bus.relay("", ["whois", "BlueLake"]).success().result()["agents"][0].clone();
    assert_eq!(agent["task"], "Login", "the original request succeeded");
}

pub fn retired(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    let error = bus.relay("BlueLake", ["reserve", "src"]).fails(code).error();
    Way::new(&bus, "BlueLake").follow(&error, nobody);
    assert_eq!(holders(&bus), ["BlueLake"]);
}

pub fn suspended(code: &str) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    let error = bus.relay("BlueLake", ["reserve", "src"]).fails(code).error();
    let person = |step: &Value| {
        if step["who"] == "person" {
            bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success();
        }
    };
    Way::new(&bus, "BlueLake").follow(&error, person);
    assert_eq!(holders(&bus), ["BlueLake"]);
}

pub fn mismatch(code: &str) {
    let bus = Bus::new();
    let session = |name: &'static str| {
        move |mut command: std::process::Command| {
            command.env("RELAY_SESSION", name);
            command
        }
    };
    let (mine, other) = (session("mine"), session("other"));
    let (mine, other) = (Way { bus: &bus, agent: "", around: &mine }, Way { bus: &bus, agent: "", around: &other });
    mine.relay(&["start", "--agent", "BlueLake"]).success();
    other.relay(&["start", "--agent", "BlueLake", "--take-over"]).success();
    let error = mine.relay(&["reserve", "src"]).fails(code).error();
    mine.follow(&error, nobody);
    assert_eq!(holders(&bus), ["BlueLake"]);
}

#[test]
fn whoever_would_erase_what_others_wrote_asks_them_or_the_human() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("RedForest", "BlueLake", "bd-1", "Login").to_string();
    let error = bus.relay("BlueLake", ["redact", &id]).fails("IDENTITY_MISMATCH").error();
    Way::new(&bus, "BlueLake").follow(&error, nobody);
    assert_eq!((bus.inbox("RedForest").len(), questions(&bus).len()), (1, 1));
}

#[test]
fn whoever_is_two_says_which_one_acts() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let both = |agent: &str| {
        let mut command = bus.args(agent, ["reserve", "src"]);
        command.env("RELAY_SESSION", "mine").env("RELAY_AGENT", "RedForest");
        crate::bus::run(command)
    };
    bus.relay("BlueLake", ["start", "--session", "mine"]).success();
    let error = both("").fails("IDENTITY_MISMATCH").error();
    Way::new(&bus, "").follow(&error, |_| drop(both("BlueLake").success()));
    assert_eq!(holders(&bus), ["BlueLake"]);
}

pub fn unauthorized(code: &str) {
    let bus = Bus::with(&["BlueLake"]);
    let error = bus.relay("human", letter("BlueLake")).fails(code).error();
    Way::new(&bus, "human").follow(&error, |step| {
        if step["who"] == "you" {
            bus.relay("human", letter("BlueLake")).success();
        }
    });
    assert_eq!(bus.inbox("BlueLake").len(), 1);
}
