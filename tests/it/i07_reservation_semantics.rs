//! I7: a reservation is advisory intent. Every valid claim is granted, and what it conflicts with is told beside it.

use serde_json::Value;

use crate::bus::{Bus, Run, hours};
use crate::terminal::{column, ids, text};

fn holders(run: &Run) -> Vec<Value> {
    column(&run.result()["conflicts"], "holder")
}

#[test]
fn every_valid_claim_is_granted_and_its_conflicts_are_told_beside_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let first = bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1", "--ttl", "2h"]).success();
    assert_eq!((first.result()["conflicts"].clone(), first.signals()), (serde_json::json!([]), vec![]));
    let second = bus.relay("RedForest", ["reserve", "src/auth/*.rs", "docs/**"]).success();
    assert_eq!(second.status, 0);
    assert_eq!(column(&second.result()["granted"], "pattern"), ["src/auth/*.rs", "docs/**"]);
    let conflict = second.result()["conflicts"][0].clone();
    assert_eq!(conflict["id"], first.result()["granted"][0]["id"]);
    assert_eq!(
        [&conflict["pattern"], &conflict["holder"], &conflict["overlaps"], &conflict["reason"]],
        ["src/**", "BlueLake", "src/auth/*.rs", "bd-1"]
    );
    assert_eq!(
        (&conflict["exclusive"], &conflict["expires_at"]),
        (&Value::Bool(true), &first.result()["granted"][0]["expires_at"])
    );
    let example = text(&conflict["example"]);
    assert!(example.starts_with("src/auth/") && example.ends_with(".rs"), "{example}");
    assert_eq!(second.result()["conflicts_total"], 1);
    assert!(second.signals().contains(&"CONTESTED".to_owned()));
    let held = bus.relay("", ["reservations", "src/auth/login.rs"]).success().result();
    assert_eq!(column(&held["reservations"], "holder"), ["BlueLake", "RedForest"]);
}

#[test]
fn two_patterns_conflict_if_and_only_if_some_path_matches_both() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let check = |mine: &str, theirs: &str, expected: bool| {
        bus.relay("BlueLake", ["reserve", mine]).success();
        let answer = bus.relay("RedForest", ["reserve", theirs]).success();
        assert_eq!(!holders(&answer).is_empty(), expected, "{mine} {theirs}");
        for agent in ["BlueLake", "RedForest"] {
            bus.relay(agent, ["release", "--all"]).success();
        }
    };
    check("src", "src/deep/a.rs", true);
    check("src/", "src/a.rs", true);
    check("src/a.rs", "src/b.rs", false);
    check("a.rs", "src/a.rs", false);
    check("*.rs", "src/a.rs", false);
    check("**/*.rs", "src/deep/a.rs", true);
    check("*/a.rs", "src/*.rs", true);
    check("src/*.rs", "src/*.md", false);
    check("src/{a,b}.rs", "src/[bc].rs", true);
    check("src/[!b].rs", "src/b.rs", false);
    check("src/[^b].rs", "src/c.rs", true);
    check("src/?.rs", "src/ab.rs", false);
    check(r"src/\*.rs", "src/a.rs", false);
    check("**", ".hidden/file", true);
    check("./src/../lib", "lib/x", true);
    check("Src/a.rs", "src/a.rs", false);
    check("res:db", "res:db", true);
    check("res:db", "res:port", false);
    check("res:db", "**", false);
}

#[test]
fn case_matters_unless_the_repository_says_otherwise() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.git(&["config", "core.ignorecase", "true"]);
    bus.relay("BlueLake", ["reserve", "Src/**"]).success();
    assert_eq!(holders(&bus.relay("RedForest", ["reserve", "src/A.rs"]).success()), ["BlueLake"]);
}

#[test]
fn patterns_start_at_the_root_of_the_project_wherever_they_are_typed() {
    let bus = Bus::with(&["BlueLake"]);
    bus.track(&["src/deep/a.rs"]);
    let inside = bus.repo().join("src/deep/a.rs").to_str().unwrap().to_owned();
    for (typed, expected) in
        [("a.rs", "a.rs"), ("./src/./x", "src/x"), ("src//y", "src/y"), (inside.as_str(), "src/deep/a.rs")]
    {
        let mut command = bus.args("BlueLake", ["reserve", typed]);
        command.current_dir(bus.repo().join("src/deep"));
        assert_eq!(crate::bus::run(command).success().result()["granted"][0]["pattern"], expected);
    }
    let before = bus.events(0);
    for outside in ["../x", "/etc/passwd", "src/../../x"] {
        bus.relay("BlueLake", ["reserve", outside]).fails("PATTERN_OUTSIDE_PROJECT");
    }
    for invalid in ["", "[a", "{a,b", "src/[]"] {
        bus.relay("BlueLake", ["reserve", invalid]).fails("PATTERN_INVALID");
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn only_shared_claims_live_side_by_side() {
    for (mine, theirs, expected) in [
        (None, None, true),
        (Some("--shared"), None, true),
        (None, Some("--shared"), true),
        (Some("--shared"), Some("--shared"), false),
    ] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let reserve = |agent: &str, flag: Option<&'static str>| {
            bus.relay(agent, ["reserve", "src/**"].into_iter().chain(flag)).success()
        };
        assert_eq!(reserve("BlueLake", mine).result()["granted"][0]["exclusive"], mine.is_none());
        assert_eq!(!holders(&reserve("RedForest", theirs)).is_empty(), expected, "{mine:?} {theirs:?}");
    }
}

#[test]
fn ones_own_claims_and_those_that_ended_are_no_obstacle() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    assert_eq!(holders(&bus.relay("BlueLake", ["reserve", "src/a.rs"]).success()), [""; 0]);
    bus.relay("BlueLake", ["release", "--all"]).success();
    assert_eq!(holders(&bus.relay("RedForest", ["reserve", "src/a.rs"]).success()), [""; 0]);
    bus.advance(hours(1) - 1);
    assert_eq!(holders(&bus.relay("BlueLake", ["reserve", "src/b.rs", "src/**"]).success()), ["RedForest"]);
    bus.relay("BlueLake", ["release", "--all"]).success();
    bus.advance(1);
    assert_eq!(holders(&bus.relay("BlueLake", ["reserve", "src/**"]).success()), [""; 0]);
}

#[test]
fn a_subagent_shares_its_parents_claims_and_contests_its_siblings() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for helper in ["Helper-1", "Helper-2"] {
        bus.relay(helper, ["register", "--parent", "BlueLake"]).success();
    }
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let reserve = |agent: &str, pattern: &str| holders(&bus.relay(agent, ["reserve", pattern]).success());
    assert_eq!(reserve("Helper-1", "src/a.rs"), [""; 0], "a child works inside its parent's claim");
    assert_eq!(reserve("Helper-2", "src/a.rs"), ["Helper-1"], "siblings are strangers");
    assert_eq!(reserve("BlueLake", "src/a.rs"), [""; 0], "and so does the parent inside its child's");
    let mut all = reserve("RedForest", "src/a.rs");
    all.sort_by_key(Value::to_string);
    assert_eq!(all, ["BlueLake", "BlueLake", "Helper-1", "Helper-2"], "towards others each of them holds it");
    bus.relay("Helper-1", ["release", "src/**"]).fails("RESERVATION_NOT_HELD");
}

#[test]
fn if_free_claims_nothing_where_anything_is_held() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let held = bus.relay("BlueLake", ["reserve", "src/**"]).success().result()["granted"][0]["id"].clone();
    let before = bus.events(0);
    let error = bus
        .relay("RedForest", ["reserve", "docs/**", "src/a.rs", "--if-free"])
        .fails("FILE_RESERVATION_CONFLICT")
        .error();
    assert_eq!(bus.events(0), before, "nothing is recorded");
    let conflict = &error["details"]["conflicts"][0];
    assert_eq!(
        (&conflict["id"], text(&conflict["holder"]), text(&conflict["overlaps"])),
        (&held, "BlueLake".into(), "src/a.rs".into())
    );
    let free = bus.relay("RedForest", ["reserve", "docs/**", "--if-free"]).success();
    assert_eq!((ids(&free.result()["granted"]).len(), holders(&free)), (1, vec![]));
    bus.relay("RedForest", ["reserve", "docs/**", "--wait", "1s"]).fails("INPUT_INVALID");
}

#[test]
fn the_same_pattern_again_renews_and_keeps_its_id() {
    let bus = Bus::with(&["BlueLake"]);
    let first =
        bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success().result()["granted"][0].clone();
    bus.advance(60_000);
    let again = bus.relay("BlueLake", ["reserve", "./src/**", "--ttl", "2h"]).success().result()["granted"][0].clone();
    assert_eq!(
        (&again["id"], &again["reason"], &again["renewed"]),
        (&first["id"], &first["reason"], &Value::Bool(true))
    );
    assert_ne!(again["expires_at"], first["expires_at"]);
    let shared = bus.relay("BlueLake", ["reserve", "src/**", "--shared"]).success().result()["granted"][0].clone();
    assert_eq!((&shared["id"], &shared["exclusive"]), (&first["id"], &Value::Bool(false)));
    bus.advance(hours(1));
    let expired = bus.relay("BlueLake", ["reserve", "src/**"]).success().result()["granted"][0].clone();
    assert_ne!(expired["id"], first["id"], "what has expired is claimed anew");
    assert_eq!(expired["renewed"], false);
}

#[test]
fn of_two_racing_claims_exactly_one_sees_the_other() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for round in 0..20 {
        let pattern = format!("src/{round}.rs");
        let racing = ["BlueLake", "RedForest"].map(|agent| bus.spawn(agent, &["reserve", &pattern]));
        let seen: usize = racing.into_iter().map(|racer| holders(&racer.finish().success()).len()).sum();
        assert_eq!(seen, 1, "round {round}");
    }
}

#[test]
fn at_most_fifty_conflicts_are_spelt_out_and_all_are_counted() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let patterns: Vec<String> = (0..60).map(|n| format!("src/{n}.rs")).collect();
    bus.relay("BlueLake", [&["reserve".to_owned()], patterns.as_slice()].concat()).success();
    let answer = bus.relay("RedForest", ["reserve", "src/*"]).success().result();
    assert_eq!((answer["conflicts"].as_array().unwrap().len(), answer["conflicts_total"].as_u64()), (50, Some(60)));
}

#[test]
fn the_limit_of_live_claims_counts_what_is_new() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::write(bus.home().join("config.toml"), "[limits]\nlive_claims = 3\n").unwrap();
    bus.relay("BlueLake", ["reserve", "a", "b"]).success();
    bus.relay("BlueLake", ["reserve", "a", "b", "c"]).success();
    bus.relay("BlueLake", ["reserve", "c", "b", "a"]).success();
    let error = bus.relay("BlueLake", ["reserve", "a", "d", "e"]).fails("INPUT_INVALID").error();
    assert_eq!(
        error["message"],
        "BlueLake holds 3 live claims and wants 2 more; at most 3 are allowed: release some first"
    );
    std::fs::write(bus.home().join("config.toml"), "[limits]\nlive_claims = 1\n").unwrap();
    bus.relay("BlueLake", ["reserve", "a", "c"]).success();
    bus.relay("BlueLake", ["reserve", "d"]).fails("INPUT_INVALID");
}
