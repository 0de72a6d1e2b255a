//! I12: a busy store is a known error class: named, harmless to repeat, and healed by `send` itself.

use serde_json::json;

use crate::bus::Bus;
use crate::terminal::text;

const SEND: [&str; 9] = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"];

/// The gate of the store, held by the test, and a bus that has little patience with it.
fn held_gate(bus: &Bus) -> std::fs::File {
    std::fs::write(bus.home().join("config.toml"), "[limits]\ngate_wait = \"2s\"\n").unwrap();
    let gate = std::fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    gate
}

#[test]
fn a_busy_store_stops_writers_with_a_name_and_readers_not_at_all() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let gate = held_gate(&bus);
    bus.relay("RedForest", ["status"]).success();
    bus.relay("RedForest", ["poll"]).success();
    let args = ["reserve", "src", "--idempotency-key", "k1"];
    let error = bus.relay("BlueLake", args).fails("STORE_BUSY").error();
    assert!(text(&error["message"]).contains("RedForest"), "who had it last: {error}");
    assert_eq!((&error["retryable"], text(&error["idempotency_key"])), (&json!(true), "k1".into()));
    drop(gate);
    bus.relay("BlueLake", args).success();
}

#[test]
fn a_send_outlasts_a_busy_store_and_says_so() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let gate = held_gate(&bus);
    let sender = bus.spawn("BlueLake", &SEND);
    // The second try has begun when the first one's wait at the gate has company.
    let sender = sender.until(|pid| gate_waits(pid) >= 2);
    drop(gate);
    let run = sender.finish().success();
    assert!(run.signals().contains(&"RECOVERED".to_owned()), "{}", run.stdout);
    assert_eq!(bus.inbox("RedForest").len(), 1);
    let gate = held_gate(&bus);
    bus.relay("BlueLake", [SEND.as_slice(), &["--no-recover"]].concat()).fails("STORE_BUSY");
    drop(gate);
}

#[test]
fn a_retry_that_went_well_is_no_failure_because_nobody_could_forget_it() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    let key = text(&bus.relay("BlueLake", ["poll"]).fails("AGENT_RETIRED").error()["idempotency_key"]);
    bus.relay("BlueLake", ["start"]).success();
    let retry = ["recover", "AGENT_RETIRED", "--retry", "--idempotency-key", &key];
    let gate = held_gate(&bus);
    assert_eq!(bus.relay("BlueLake", retry).success().result()["retried"]["verb"], "poll");
    drop(gate);
    bus.relay("BlueLake", retry).success();
    bus.relay("BlueLake", retry).fails("INPUT_INVALID");
}

/// How often a process has the gate open.
fn gate_waits(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().filter_map(Result::ok);
    open.filter_map(|entry| std::fs::read_link(entry.path()).ok()).filter(|path| path.ends_with("gate")).count()
}
