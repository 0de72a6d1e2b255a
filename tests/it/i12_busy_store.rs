//! I12: a busy store is a known error class: named, harmless to repeat, and healed by `send` itself.

use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::store::{Errand, KeptFailure, Store};
use relay_store::Home;
use serde_json::json;

use crate::bus::Bus;
use crate::terminal::text;
use crate::trace::trace;

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

/// More in the log than a writer leaves behind. It is not in the history, and whoever wrote it did not tidy up.
fn grow_log(bus: &Bus) {
    let home = Home::new(bus.home(), Limits::default(), bus.now());
    let store = home.open_existing(&ProjectKey::resolved(bus.key())).unwrap().unwrap();
    let errand = Errand { verb: "keep", agent: "", wait: Span::seconds(60), durable: false };
    let mut tx = store.begin(errand).unwrap();
    let (request, at) = ("x".repeat(2 * 1024 * 1024), Timestamp::from_millis(bus.now()));
    let failure = KeptFailure { code: "STORE_BUSY".into(), at, request, details: "{}".into() };
    tx.keep_failure("nobody", "key", &failure).unwrap();
    tx.commit().unwrap();
}

fn log_bytes(bus: &Bus) -> u64 {
    std::fs::metadata(bus.store().join("relay.db-wal")).unwrap().len()
}

#[test]
fn whoever_wrote_nothing_does_not_tidy_up() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    grow_log(&bus);
    let long = log_bytes(&bus);
    assert!(long > 2 * 1024 * 1024);
    for args in [
        &["status"] as &[&str],
        &["poll"],
        &["search", "words"],
        &["message", "999"],
        &["reserve", ""],
        &["release", "src", "--force"],
    ] {
        let trace = trace(&bus, &bus.args("BlueLake", args), Some("trace=openat,execve"));
        let gates: Vec<&String> = trace.calls.iter().filter(|call| call.contains("/gate\"")).collect();
        assert_eq!(gates, [""; 0], "{args:?}");
    }
    assert_eq!(log_bytes(&bus), long);
    bus.relay("BlueLake", ["reserve", "src"]).success();
    assert_eq!(log_bytes(&bus), 0, "a writer does");
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
    let told = "STORE_BUSY on the first try of send: the store was waited for, and the second went through";
    assert!(run.stdout.contains(told), "{}", run.stdout);
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
