//! Waiting: whatever is waited for wakes the waiter, at every interleaving, and nobody waits for the dead.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bus::{Bus, Run};
use crate::effort::times;

const LANES: usize = 4;
const RACES: usize = 1_000;

/// A waiter that nothing wakes looks by itself after this long. Whoever answers earlier was woken.
const SAFETY_LOOK: Duration = Duration::from_secs(30);

/// A command that waits, in a process of its own.
struct Waiter {
    child: Child,
    since: Instant,
    line: String,
}

impl Waiter {
    fn start(bus: &Bus, agent: &str, args: &[&str]) -> Self {
        let mut command = bus.args(agent, args);
        let since = Instant::now();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Waiter { child, since, line: format!("{agent} {args:?}") }
    }

    /// What it answered; fails when only the safety look or the deadline made it answer.
    #[track_caller]
    fn woken(self) -> Run {
        let output = self.child.wait_with_output().unwrap();
        assert!(self.since.elapsed() < SAFETY_LOOK, "{} was not woken", self.line);
        Run::new(self.line, &output)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// One wait and one send at once. Every other time the send has a head start.
fn race(bus: &Bus, pair: (&str, &str), cursor: u64, round: usize) -> u64 {
    let after = cursor.to_string();
    let wait = ["poll", "--wait", "10m", "--after", &after];
    let send = ["send", "--to", pair.0, "--thread", "bd-1", "--subject", "Work", "--body", &after];
    let start_send = || Waiter::start(bus, pair.1, &send);
    let (waiter, sender) = if round.is_multiple_of(2) {
        let waiter = Waiter::start(bus, pair.0, &wait);
        (waiter, start_send())
    } else {
        let sender = start_send();
        (Waiter::start(bus, pair.0, &wait), sender)
    };
    let sent = sender.woken().success().result()["message"]["id"].as_u64().unwrap();
    let mut got = waiter.woken().success().result();
    // Mail whose mark lost the race for the gate is shown once more; the wait after it finds the news at once.
    while got["messages"][0]["id"].as_u64() <= Some(cursor) {
        got = Waiter::start(bus, pair.0, &wait).woken().success().result();
    }
    assert_eq!(got["messages"].as_array().unwrap().len(), 1, "round {round}: {got}");
    assert_eq!(got["messages"][0]["id"], sent, "round {round}");
    got["cursor"].as_u64().unwrap()
}

#[test]
fn no_wake_up_is_lost_in_a_thousand_races_of_send_and_wait() {
    let lane = || {
        // A bus for each lane: what happens in another would wake this one's waiter, and hide that nothing else did.
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.send("RedForest", "BlueLake", "bd-1", "Work");
        let first = bus.relay("BlueLake", ["poll"]).success().result()["cursor"].as_u64().unwrap();
        (0..times(RACES) / LANES).fold(first, |cursor, round| race(&bus, ("BlueLake", "RedForest"), cursor, round))
    };
    std::thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
}

/// Waits until a store has this many announced waiters.
fn until_announced(bus: &Bus, count: usize) {
    let presence = bus.store().join("presence");
    let announced = || {
        let names = std::fs::read_dir(&presence).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".live")).count()
    };
    while announced() < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_contested_claim_wakes_its_holder_and_so_does_the_end_of_the_contest() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let waiter = Waiter::start(&bus, "BlueLake", &["poll", "--wait", "10m"]);
    until_announced(&bus, 1);
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let told = waiter.woken().success().result();
    assert_eq!((&told["contested"][0]["holder"], &told["contested"][0]["ended"]), (&"RedForest".into(), &false.into()));
    assert_eq!(told["messages"], Value::Array(Vec::new()));
    let waiter = Waiter::start(&bus, "BlueLake", &["poll", "--wait", "10m"]);
    until_announced(&bus, 1);
    bus.relay("RedForest", ["release", "--all"]).success();
    assert_eq!(waiter.woken().success().result()["contested"][0]["ended"], true);
}

#[test]
fn an_answer_wakes_whoever_asked_for_contact() {
    for (answer, code) in
        [("--accept", None), ("--block", Some("CONTACT_BLOCKED")), ("--revoke", Some("LINK_NOT_FOUND"))]
    {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", "contacts_only"]).success();
        let waiter = Waiter::start(&bus, "BlueLake", &["link", "--target", "RedForest", "--wait", "10m"]);
        until_announced(&bus, 1);
        bus.relay("RedForest", ["link", "--target", "BlueLake", answer]).success();
        let run = waiter.woken();
        match code {
            None => {
                let answer = run.success().json();
                assert_eq!(answer["result"]["link"]["state"], "accepted");
                assert_eq!(answer["next"], json!([]), "there is nothing left to wait for");
            }
            Some(code) => drop(run.fails(code)),
        }
    }
}

#[test]
fn an_answer_from_another_project_wakes_whoever_asked_for_contact() {
    let two = crate::crossing::Two::new();
    let waiter = Waiter::start(&two.bus, "BlueLake", &["link", "--target", "RedForest@other", "--wait", "10m"]);
    until_announced(&two.bus, 1);
    two.there("RedForest", &["link", "--target", "BlueLake@repo", "--accept"]).success();
    assert_eq!(waiter.woken().success().result()["link"]["state"], "accepted");
}

#[test]
fn mail_from_another_project_wakes_its_recipient() {
    let two = crate::crossing::Two::linked();
    let key = two.key("other");
    let waiter = Waiter::start(&two.bus, "RedForest", &["--project", &key, "poll", "--wait", "10m"]);
    two.send("RedForest@other", &[]).success();
    assert_eq!(waiter.woken().success().result()["messages"][0]["subject"], "Login");
}

const IF_FREE: [&str; 5] = ["reserve", "src/a.rs", "--if-free", "--wait", "10m"];

#[test]
fn a_release_wakes_whoever_waits_for_the_path_first_come_first_served() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldPeak"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let first = Waiter::start(&bus, "RedForest", &IF_FREE);
    until_announced(&bus, 1);
    let second = Waiter::start(&bus, "GoldPeak", &IF_FREE);
    until_announced(&bus, 2);
    let signals = bus.relay("BlueLake", ["look", "status"]).success().signals();
    assert!(signals.contains(&"SOMEONE_WAITS".to_owned()), "{signals:?}");
    bus.relay("BlueLake", ["release", "--all"]).success();
    let granted = first.woken().success().result();
    assert_eq!(granted["granted"][0]["pattern"], "src/a.rs");
    bus.relay("GoldPeak", ["reserve", "src/a.rs", "--if-free"]).fails("FILE_RESERVATION_CONFLICT");
    bus.relay("RedForest", ["release", "--all"]).success();
    second.woken().success();
}

#[test]
fn a_killed_waiter_is_no_obstacle() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldPeak"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let first = Waiter::start(&bus, "RedForest", &IF_FREE);
    until_announced(&bus, 1);
    let second = Waiter::start(&bus, "GoldPeak", &IF_FREE);
    until_announced(&bus, 2);
    first.kill();
    bus.relay("BlueLake", ["release", "--all"]).success();
    second.woken().success();
    let signals = bus.relay("BlueLake", ["look", "status"]).success().signals();
    assert!(!signals.contains(&"SOMEONE_WAITS".to_owned()), "{signals:?}");
}

#[test]
fn a_wait_that_closes_a_ring_is_refused_only_while_the_other_lives() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let other = Waiter::start(&bus, "RedForest", &["poll", "--wait", "10m", "--from", "BlueLake"]);
    until_announced(&bus, 1);
    let refused = bus.relay("BlueLake", ["poll", "--wait", "10m", "--from", "RedForest"]).fails("WAIT_CYCLE").error();
    assert_eq!(refused["details"]["ring"], serde_json::json!(["BlueLake", "RedForest", "BlueLake"]));
    other.kill();
    let waiter = Waiter::start(&bus, "BlueLake", &["poll", "--wait", "10m", "--from", "RedForest"]);
    bus.send("RedForest", "BlueLake", "bd-1", "Work");
    assert_eq!(waiter.woken().success().result()["messages"][0]["from"], "RedForest");
}

#[test]
fn a_writer_killed_after_its_commit_still_wakes_the_waiter() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let send = ["send", "--to", "BlueLake", "--thread", "bd-1", "--subject", "Work", "--body", "text", "--no-recover"];
    bus.relay("BlueLake", ["policy", "open"]).success();
    let waiter = Waiter::start(&bus, "BlueLake", &["poll", "--wait", "10m"]);
    until_announced(&bus, 1);
    let mut command = bus.args("RedForest", send);
    let mut writer = command.env("FAILPOINTS", "store-after-commit=pause").stdout(Stdio::null()).spawn().unwrap();
    let is_sent = || bus.relay("", ["look", "search", "Work"]).success().result()["found"][0]["subject"] == "Work";
    while !is_sent() {
        assert_eq!(writer.try_wait().unwrap(), None);
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    assert_eq!(waiter.woken().success().result()["messages"][0]["subject"], "Work");
}
