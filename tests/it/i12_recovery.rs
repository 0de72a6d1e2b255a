//! I12: known error classes lead to ordered playbooks whose steps run as they are printed.

use serde_json::{Value, json};

use crate::bus::{Bus, days, hours, letter};
use crate::terminal::{column, text};

fn steps(error: &Value) -> Vec<Value> {
    error["playbook"].as_array().unwrap().clone()
}

/// Runs every step that is a command, in order, as printed.
fn run_all(bus: &Bus, error: &Value) {
    for step in steps(error).iter().filter(|step| step["run"].is_array()) {
        bus.step(step).success();
    }
}

#[test]
fn every_step_carries_project_and_agent_as_argv_and_as_tool_call() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let args = [letter("RedForest").as_slice(), &["--no-recover"]].concat();
    let error = bus.relay("BlueLake", args).fails("CONTACT_REQUIRED").error();
    let expected = json!(["relay", "link", "--target", "RedForest", "--project", bus.key(), "--agent", "BlueLake"]);
    let step = &steps(&error)[0];
    assert_eq!(
        [&step["step"], &step["unattended"], &step["run"], &step["tool"]],
        [&json!(1), &json!(true), &expected, &json!("link")]
    );
    assert_eq!(step["args"], json!({"target": "RedForest", "project": bus.key(), "agent": "BlueLake"}));
    let retry = &steps(&error)[1];
    let key = error["idempotency_key"].clone();
    assert_eq!(
        retry["args"],
        json!({"code": "CONTACT_REQUIRED", "retry": true, "idempotency_key": key, "project": bus.key(), "agent": "BlueLake"})
    );
    run_all(&bus, &error);
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

#[test]
fn an_unregistered_agent_is_registered_and_its_request_made_again() {
    let bus = Bus::with(&["RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let error = bus.relay("BlueLake", letter("RedForest")).fails("AGENT_NOT_REGISTERED").error();
    assert!(
        steps(&error).iter().all(|step| step["tool"] != "start" || step["unattended"] == false),
        "never unattended: {error}"
    );
    run_all(&bus, &error);
    let mail = bus.relay("RedForest", ["poll"]).success().result();
    assert_eq!(column(&mail["messages"], "from"), ["BlueLake"]);
}

#[test]
fn a_misspelt_agent_is_offered_the_one_that_was_meant() {
    let bus = Bus::with(&["BlueLake"]);
    let error = bus.relay("BlueLke", ["reserve", "src"]).fails("AGENT_NOT_REGISTERED").error();
    assert_eq!(error["details"]["nearest"], json!(["BlueLake"]));
    assert!(text(&steps(&error)[0]["why"]).contains("BlueLake"), "{error}");
}

#[test]
fn a_retired_agent_is_revived_and_its_request_made_again() {
    let bus = Bus::with(&["BlueLake"]);
    for retire in [true, false] {
        if retire {
            bus.relay("BlueLake", ["retire"]).success();
        } else {
            bus.advance(days(8));
        }
        let error = bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_RETIRED").error();
        run_all(&bus, &error);
        let held = bus.relay("", ["reservations"]).success().result();
        assert_eq!(column(&held["reservations"], "holder"), ["BlueLake"]);
    }
}

#[test]
fn a_suspended_agents_request_waits_for_a_person() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    let error = bus.relay("BlueLake", ["reserve", "src"]).fails("AGENT_SUSPENDED").error();
    let steps = steps(&error);
    bus.step(&steps[0]).success();
    assert!(steps[1].get("run").is_none() && text(&steps[1]["why"]).contains("relay suspend BlueLake --lift"));
    assert_eq!(steps[1]["who"], "person");
    bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success();
    bus.step(steps.last().unwrap()).success();
    assert_eq!(bus.relay("", ["reservations"]).success().result()["total"], 1);
}

#[test]
fn a_handshake_that_needs_an_answer_is_asked_for_waited_for_and_retried() {
    for pending in [false, true] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", "contacts_only"]).success();
        if pending {
            bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
        }
        let code = if pending { "CONTACT_PENDING" } else { "CONTACT_REQUIRED" };
        let error = bus.relay("BlueLake", letter("RedForest")).fails(code).error();
        let steps = steps(&error);
        let (waits, before) = steps[..steps.len() - 1].split_last().unwrap();
        before.iter().for_each(|step| drop(bus.step(step).success()));
        assert_eq!((&waits["unattended"], &waits["args"]["wait"]), (&json!(false), &json!("10m")));
        let argv: Vec<&str> = waits["run"].as_array().unwrap()[1..].iter().map(|word| word.as_str().unwrap()).collect();
        let waiter = bus.waiting("", &argv);
        bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
        waiter.finish().success();
        bus.step(steps.last().unwrap()).success();
        assert_eq!(bus.inbox("RedForest").len(), 1, "{code}");
    }
}

#[test]
fn a_claim_that_is_not_free_is_looked_at_waited_for_and_then_had() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    let error = bus.relay("BlueLake", ["reserve", "src/a.rs", "--if-free"]).fails("FILE_RESERVATION_CONFLICT").error();
    let steps = steps(&error);
    let argv: Vec<&str> = steps[0]["run"].as_array().unwrap()[1..].iter().map(|word| word.as_str().unwrap()).collect();
    let waiter = bus.waiting("", &argv);
    bus.relay("RedForest", ["release", "--all"]).success();
    waiter.finish().success();
    bus.step(&steps[1]).success();
    let held = bus.relay("", ["reservations"]).success().result();
    assert_eq!(column(&held["reservations"], "pattern"), ["src/a.rs"]);
}

#[test]
fn a_failed_request_is_made_again_by_its_key_or_as_the_newest_of_its_class() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let reserve = |pattern: &str| {
        let error = bus.relay("BlueLake", ["reserve", pattern]).fails("AGENT_RETIRED").error();
        text(&error["idempotency_key"])
    };
    bus.relay("BlueLake", ["retire"]).success();
    let (first, _, _) = (reserve("one"), reserve("two"), reserve("three"));
    bus.relay("BlueLake", ["start"]).success();
    let retry = |flags: &[&str]| bus.relay("BlueLake", [&["recover", "AGENT_RETIRED", "--retry"], flags].concat());
    let pattern = |flags: &[&str]| {
        let retried = retry(flags).success().result()["retried"].clone();
        assert_eq!(retried["verb"], "reserve");
        text(&retried["result"]["granted"][0]["pattern"])
    };
    assert_eq!(pattern(&[]), "three");
    assert_eq!(pattern(&["--idempotency-key", &first]), "one");
    assert_eq!(pattern(&[]), "two", "what succeeded is forgotten");
    retry(&[]).fails("INPUT_INVALID");
    retry(&["--idempotency-key", "unknown"]).fails("INPUT_INVALID");
    bus.relay("RedForest", ["recover", "AGENT_RETIRED", "--retry"]).fails("INPUT_INVALID");
}

#[test]
fn a_retry_that_fails_again_says_why_and_stays() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    bus.relay("BlueLake", ["reserve", "src", "--if-free"]).fails("FILE_RESERVATION_CONFLICT");
    let retry = ["recover", "FILE_RESERVATION_CONFLICT", "--retry"];
    bus.relay("BlueLake", retry).fails("FILE_RESERVATION_CONFLICT");
    bus.relay("RedForest", ["release", "--all"]).success();
    bus.relay("BlueLake", retry).success();
}

#[test]
fn the_last_twenty_failed_requests_are_kept_for_a_day_outside_the_history() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["retire"]).success();
    let tip = bus.tip();
    let fail = |n: usize| {
        let error = bus.relay("BlueLake", ["reserve", &format!("file-{n}")]).fails("AGENT_RETIRED").error();
        text(&error["idempotency_key"])
    };
    let keys: Vec<String> = (0..21).map(fail).collect();
    assert_eq!(bus.tip(), tip);
    bus.advance(hours(24));
    bus.relay("BlueLake", ["start"]).success();
    let retry = |key: &str| bus.relay("BlueLake", ["recover", "AGENT_RETIRED", "--retry", "--idempotency-key", key]);
    retry(&keys[0]).fails("INPUT_INVALID");
    retry(&keys[1]).success();
    bus.advance(1);
    retry(&keys[20]).fails("INPUT_INVALID");
}

#[test]
fn a_dry_run_prints_the_steps_with_real_values_and_does_nothing() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let error = bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_REQUIRED").error();
    let before = bus.events(0);
    let dry = |flags: &[&str]| {
        let args = [&["recover", "CONTACT_REQUIRED", "--dry-run"], flags].concat();
        let mut steps = bus.relay("BlueLake", args).success().result()["steps"].clone();
        for step in steps.as_array_mut().unwrap() {
            assert_eq!(step.as_object_mut().unwrap().remove("state"), Some(json!("to_do")));
        }
        steps
    };
    assert_eq!(dry(&[]), error["playbook"], "of the newest failure");
    assert_eq!(dry(&["--idempotency-key", &text(&error["idempotency_key"])]), error["playbook"]);
    let set = dry(&["--idempotency-key", "none", "--set", "ask=RedForest,GreenHill"]);
    assert_eq!(
        (text(&set[0]["args"]["target"]), text(&set[1]["args"]["target"])),
        ("RedForest".into(), "GreenHill".into())
    );
    assert_eq!(bus.events(0), before);
    bus.relay("BlueLake", ["recover", "NO_SUCH_CLASS", "--dry-run"]).fails("INPUT_INVALID");
    bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED", "--dry-run", "--retry"]).fails("INPUT_INVALID");
}

#[test]
fn every_class_of_the_catalogue_has_a_playbook_to_look_at() {
    let bus = Bus::new();
    for code in relay_core::error::Code::ALL {
        let shown = bus.relay("", ["look", "playbook", code.as_str()]).success().result();
        assert_eq!(
            (text(&shown["code"]), shown["exit_status"].as_u64()),
            (code.as_str().to_owned(), Some(code.kind().exit_status().into()))
        );
        assert!(!text(&shown["symptom"]).is_empty() && !shown["playbook"].as_array().unwrap().is_empty(), "{code}");
    }
    assert!(!bus.home().exists(), "a playbook is a text: it needs no project");
}

#[test]
fn people_get_the_steps_as_lines_they_can_type() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let args = [letter("RedForest").as_slice(), &["--no-recover"]].concat();
    let run = bus.text("BlueLake", args);
    assert_eq!((run.status, run.stdout.as_str()), (4, ""));
    assert!(run.stderr.contains("CONTACT_REQUIRED"), "{}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().map(str::trim).filter(|line| line.starts_with("relay ")).collect();
    assert_eq!(lines.len(), 2, "{}", run.stderr);
    for line in lines {
        bus.type_line("", line, "").success();
    }
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

#[test]
fn arguments_that_make_no_request_are_answered_in_the_one_shape_with_what_is_wrong() {
    let bus = Bus::with(&["BlueLake"]);
    let check = |args: &[&str], verb: &str, named: &str| {
        let run = bus.relay("BlueLake", args).fails("INPUT_INVALID");
        assert_eq!(run.json()["verb"], verb, "{args:?}");
        assert!(text(&run.error()["message"]).contains(named), "{args:?}: {}", run.stdout);
    };
    check(&["send", "--to", "RedForest"], "send", "--body");
    check(&["send", "--body", "text"], "send", "--to");
    check(&["--project", "/", "ack"], "ack", "<N>");
    check(&["reserve", "--shred", "src"], "reserve", "--shred");
    check(&["sned"], "relay", "sned");
    check(&[], "relay", "subcommand");
}
