//! I7: waiting for a claim to become free is coordination too: first come first served, seen by the holder, never a ring.

use crate::bus::{Bus, minutes};
use crate::crossing::Two;
use crate::halves::has_open;
use crate::terminal::{column, text};

const IF_FREE: [&str; 5] = ["reserve", "src/a.rs", "--if-free", "--wait", "60s"];

fn held_by_blue() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus
}

#[test]
fn a_waiter_gets_the_claim_when_it_becomes_free() {
    let bus = held_by_blue();
    let waiter = bus.waiting("RedForest", &IF_FREE);
    bus.relay("BlueLake", ["release", "--all"]).success();
    let granted = waiter.finish().success().result();
    assert_eq!(column(&granted["granted"], "pattern"), ["src/a.rs"]);
    assert_eq!(granted["conflicts_total"], 0);
}

#[test]
fn what_is_free_is_not_waited_for() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", IF_FREE).success();
}

#[test]
fn a_waiter_is_woken_by_a_narrowing_that_frees_its_path() {
    let bus = held_by_blue();
    let waiter = bus.waiting("RedForest", &IF_FREE);
    bus.relay("BlueLake", ["release", "src/**", "--keep", "src/b.rs"]).success();
    waiter.finish().success();
}

#[test]
fn the_holder_sees_that_someone_waits() {
    let bus = held_by_blue();
    let waits = |args: &[&str]| bus.relay("BlueLake", args).success().signals().contains(&"SOMEONE_WAITS".to_owned());
    assert!(!waits(&["poll"]));
    let waiter = bus.waiting("RedForest", &IF_FREE);
    for args in [["poll"].as_slice(), &["start"], &["status"], &["reserve", "docs/**"]] {
        assert!(waits(args), "{args:?}");
    }
    let green = bus.relay("GreenHill", ["poll"]).success();
    assert_eq!(green.signals(), [""; 0], "who holds nothing is waited for by nobody");
    // Counted only while the process lives.
    waiter.kill();
    assert!(!waits(&["poll"]));
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let bus = held_by_blue();
    let mut waiters = Vec::new();
    for agent in ["RedForest", "GreenHill"] {
        waiters.push((agent, bus.waiting(agent, &IF_FREE)));
    }
    bus.relay("BlueLake", ["release", "--all"]).success();
    let (first, second) = (waiters.remove(0), waiters.remove(0));
    first.1.finish().success();
    let held = || column(&bus.relay("", ["reservations"]).success().result()["reservations"], "holder");
    assert_eq!(held(), ["RedForest"]);
    bus.relay("RedForest", ["release", "--all"]).success();
    second.1.finish().success();
    assert_eq!(held(), ["GreenHill"]);
}

#[test]
fn a_newcomer_with_if_free_does_not_overtake_a_waiter_of_the_same_path() {
    let bus = held_by_blue();
    let waiter = bus.waiting("RedForest", &IF_FREE);
    // Waiting for something else stands in nobody's way.
    bus.relay("GreenHill", ["reserve", "docs/**", "--if-free", "--wait", "60s"]).success();
    let late = bus.waiting("GreenHill", &["reserve", "src/*.rs", "--if-free", "--wait", "60s"]);
    bus.relay("BlueLake", ["release", "--all"]).success();
    waiter.finish().success();
    late.kill();
}

#[test]
fn a_wait_that_ends_in_vain_says_whom_it_waited_for_and_claims_nothing() {
    let bus = held_by_blue();
    let tip = bus.tip();
    let error =
        bus.relay("RedForest", ["reserve", "src/a.rs", "--if-free", "--wait", "1s"]).fails("WAIT_TIMEOUT").error();
    assert_eq!(error["details"]["holders"], serde_json::json!(["BlueLake"]));
    assert!(text(&error["message"]).contains("BlueLake"), "{error}");
    assert_eq!(bus.tip(), tip);
}

#[test]
fn two_who_wait_for_each_other_are_told_instead_of_waiting() {
    let bus = held_by_blue();
    bus.relay("RedForest", ["reserve", "docs/**"]).success();
    let waiter = bus.waiting("RedForest", &IF_FREE);
    let error =
        bus.relay("BlueLake", ["reserve", "docs/a.md", "--if-free", "--wait", "60s"]).fails("WAIT_CYCLE").error();
    assert_eq!(error["details"]["ring"], serde_json::json!(["BlueLake", "RedForest", "BlueLake"]));
    for name in ["BlueLake", "RedForest"] {
        assert!(text(&error["message"]).contains(name), "{error}");
    }
    bus.relay("BlueLake", ["release", "--all"]).success();
    waiter.finish().success();
}

#[test]
fn a_ring_closes_across_the_three_kinds_of_waiting() {
    let bus = held_by_blue();
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    // RedForest waits for BlueLake's claim, GreenHill for RedForest's consent.
    let red = bus.waiting("RedForest", &IF_FREE);
    let green = bus.waiting("GreenHill", &["link", "--target", "RedForest", "--wait", "60s"]);
    let error = bus.relay("BlueLake", ["poll", "--wait", "60s", "--from", "GreenHill"]).fails("WAIT_CYCLE").error();
    assert_eq!(error["details"]["ring"], serde_json::json!(["BlueLake", "GreenHill", "RedForest", "BlueLake"]));
    // A poll for anybody's mail waits for nobody in particular.
    bus.relay("BlueLake", ["poll", "--wait", "1s"]).success();
    green.kill();
    // The ring is broken with the process that was part of it.
    bus.relay("BlueLake", ["poll", "--wait", "1s", "--from", "GreenHill"]).success();
    drop(red);
}

#[test]
fn whoever_has_mail_to_read_closes_no_ring() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["send", "--to", "BlueLake", "--thread", "bd-1", "--subject", "Parser", "--body", "Ready?"])
        .success();
    let red = bus.waiting("RedForest", &["poll", "--wait", "60s", "--from", "BlueLake"]);
    let asked = bus.relay("BlueLake", ["poll", "--wait", "60s", "--from", "RedForest", "--read"]).result();
    assert_eq!(asked["messages"].as_array().map(Vec::len), Some(1), "{asked}");
    let ring = ["poll", "--wait", "60s", "--from", "RedForest"];
    bus.relay("BlueLake", ring).fails("WAIT_CYCLE");
    drop(red);
}

#[test]
fn an_answer_on_its_way_opens_the_ring() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for turn in 0..10 {
        let red = bus.waiting("RedForest", &["poll", "--wait", "60s", "--from", "BlueLake", "--read"]);
        let body = format!("turn {turn}");
        bus.relay(
            "BlueLake",
            ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Parser", "--body", &body],
        )
        .success();
        // RedForest was woken and may not have looked yet; it does not wait for BlueLake any more.
        bus.relay("BlueLake", ["poll", "--wait", "10ms", "--from", "RedForest"]).success();
        red.finish().success();
    }
}

#[test]
fn a_ring_through_two_projects_is_seen() {
    let two = Two::linked();
    let (red, blue) = (two.abroad("RedForest"), two.home("BlueLake"));
    let waiter = two.bus.waiting("BlueLake", &["poll", "--wait", "60s", "--from", &red]);
    let error = two.there("RedForest", &["poll", "--wait", "60s", "--from", &blue]).fails("WAIT_CYCLE").error();
    assert_eq!(error["details"]["ring"], serde_json::json!(["RedForest", blue, "RedForest"]));
    waiter.kill();
    two.there("RedForest", &["poll", "--wait", "1s", "--from", &blue]).success();
}

#[test]
fn one_gate_is_given_up_before_another_project_is_looked_at() {
    let two = Two::linked();
    let green = two.bus.waiting("GreenHill", &["poll", "--wait", "60s", "--from", &two.abroad("RedForest")]);
    // A store that was never opened is made under its gate by whoever looks at it.
    let store = two.store("other");
    let gate = two.hold("other");
    for name in ["project", "relay.db", "relay.db-wal", "relay.db-shm"] {
        std::fs::remove_file(store.join(name)).unwrap();
    }
    std::fs::File::create(store.join("relay.db")).unwrap();
    let here = std::fs::File::open(two.store("repo").join("gate")).unwrap();
    let blue = two.bus.spawn("BlueLake", &["poll", "--wait", "60s", "--from", "GreenHill"]);
    let blue = blue.until(|pid| has_open(pid, &store.join("gate")));
    assert!(here.try_lock().is_ok(), "both gates are held at once");
    drop((here, gate));
    two.there("RedForest", &["start"]).success();
    drop((blue, green));
}

#[test]
fn a_link_is_waited_for_until_it_is_answered() {
    for (answer, expected) in [("--accept", Ok("accepted")), ("--block", Err("CONTACT_BLOCKED"))] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", "contacts_only"]).success();
        let waiter = bus.waiting("BlueLake", &["link", "--target", "RedForest", "--wait", "60s"]);
        bus.relay("RedForest", ["link", "--target", "BlueLake", answer]).success();
        let run = waiter.finish();
        match expected {
            Ok(state) => assert_eq!(run.success().result()["link"]["state"], state),
            Err(code) => drop(run.fails(code)),
        }
    }
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--wait", "1s"]).fails("WAIT_TIMEOUT");
    let waiting = bus.relay("RedForest", ["start"]).success().result();
    assert_eq!(waiting["contacts_waiting"][0]["from"], "BlueLake", "the request still waits");
}

#[test]
fn a_waiter_is_alive_however_long_it_waits() {
    let bus = held_by_blue();
    bus.relay("RedForest", ["reserve", "docs/**"]).success();
    let waiter = bus.waiting("RedForest", &IF_FREE);
    bus.advance(minutes(30));
    let args = ["release", "docs/**", "--force", "--why", "silent"];
    bus.relay("GreenHill", args).fails("HOLDER_ALIVE");
    waiter.kill();
    bus.relay("GreenHill", args).success();
}

#[test]
fn a_ring_that_closes_while_waiting_is_refused_too() {
    let bus = held_by_blue();
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let red = bus.waiting("RedForest", &IF_FREE);
    let green = bus.waiting("GreenHill", &["link", "--target", "RedForest", "--wait", "60s"]);
    // The way from BlueLake is free, and now it is GreenHill that RedForest waits for.
    bus.relay("GreenHill", ["reserve", "src/a.rs"]).success();
    bus.relay("BlueLake", ["release", "--all"]).success();
    let error = red.finish().fails("WAIT_CYCLE").error();
    assert_eq!(error["details"]["ring"], serde_json::json!(["RedForest", "GreenHill", "RedForest"]));
    green.kill();
}

#[test]
fn waiting_is_no_busy_loop() {
    let bus = held_by_blue();
    let mut waiters = ["RedForest", "GreenHill"]
        .map(|agent| bus.waiting(agent, &["reserve", "src/a.rs", "--if-free", "--wait", "3s"]));
    // Both are watched at once: whoever looks at the second after the first has ended finds it gone.
    let writes: Vec<_> = std::thread::scope(|scope| {
        let watched = waiters.each_mut().map(|waiter| scope.spawn(|| waiter.writes_until_end()));
        watched.map(|watch| watch.join().unwrap()).into()
    });
    for waiter in waiters {
        waiter.finish().fails("WAIT_TIMEOUT");
    }
    // Every turn at the gate leaves a note in it, so a waiter that keeps asking writes hundreds of times.
    assert!(writes.iter().all(|writes| (1..40).contains(writes)), "{writes:?}");
}
