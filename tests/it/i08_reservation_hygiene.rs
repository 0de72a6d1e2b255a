//! I8: claims are narrow, bounded in time and given back; what is broad or stale is named as debt.

use serde_json::Value;

use crate::bus::{Bus, hours, minutes};
use crate::terminal::{column, ids, text};

fn reserve(bus: &Bus, args: &[&str]) -> Value {
    bus.relay("BlueLake", [&["reserve"], args].concat()).success().result()["granted"][0].clone()
}

fn live(bus: &Bus) -> Vec<Value> {
    column(&bus.relay("", ["reservations"]).success().result()["reservations"], "pattern")
}

#[test]
fn a_claim_lives_an_hour_unless_told_and_at_least_a_minute_and_at_most_a_day() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for (index, (flags, life)) in
        [(vec![], hours(1)), (vec!["--ttl", "60s"], 60_000), (vec!["--ttl", "24h"], hours(24))].into_iter().enumerate()
    {
        let pattern = format!("src/{index}.rs");
        reserve(&bus, &[&[pattern.as_str()], flags.as_slice()].concat());
        bus.advance(life - 1);
        assert_eq!(live(&bus), [pattern]);
        bus.advance(1);
        assert_eq!(live(&bus), [""; 0], "expiry needs no job");
    }
    let before = bus.events(0);
    for ttl in ["0s", "59s", "86401s", "25h", "-1h"] {
        bus.relay("BlueLake", ["reserve", "src", "--ttl", ttl]).fails("TTL_OUT_OF_RANGE");
    }
    for ttl in ["", "soon", "1", "h", "1.5h", "1y"] {
        bus.relay("BlueLake", ["reserve", "src", "--ttl", ttl]).fails("INPUT_INVALID");
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn the_holders_writing_renews_in_the_second_half_of_the_time_and_is_an_event() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let claim = reserve(&bus, &["src/**"]);
    bus.advance(minutes(30));
    bus.relay("BlueLake", ["policy", "open"]).success();
    let tip = bus.tip();
    bus.advance(1);
    for verb in [["status"].as_slice(), &["poll"], &["look", "agents"]] {
        bus.relay("BlueLake", verb).success();
    }
    bus.relay("RedForest", ["policy", "open"]).success();
    assert!(!bus.kinds(tip).contains(&"reservation_renewed".to_owned()), "neither reading nor somebody else renews");
    bus.relay("BlueLake", ["policy", "auto"]).success();
    let renewed = bus.events(tip).into_iter().find(|event| event["kind"] == "reservation_renewed").unwrap();
    assert_eq!(renewed["data"]["claims"][0]["id"], claim["id"]);
    bus.advance(hours(1) - 1);
    assert_eq!(live(&bus), ["src/**"]);
    bus.advance(1);
    assert_eq!(live(&bus), [""; 0]);
}

#[test]
fn activity_renews_for_at_most_a_day_after_the_first_grant() {
    let bus = Bus::with(&["BlueLake"]);
    reserve(&bus, &["src/**"]);
    for _ in 0..31 {
        bus.advance(minutes(45));
        bus.relay("BlueLake", ["policy", "open"]).success();
        bus.relay("BlueLake", ["policy", "auto"]).success();
    }
    assert_eq!(live(&bus), ["src/**"], "23 hours and 15 minutes");
    bus.advance(minutes(44));
    bus.relay("BlueLake", ["policy", "open"]).success();
    assert_eq!(live(&bus), ["src/**"]);
    bus.advance(minutes(1));
    assert_eq!(live(&bus), [""; 0], "the day is over");
}

#[test]
fn claims_are_given_back_by_pattern_id_reason_or_all_at_once() {
    let check = |args: &[&str], released: &[&str], kept: &[&str]| {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
        bus.relay("BlueLake", ["reserve", "src/a.rs", "src/b.rs", "--reason", "bd-1"]).success();
        let third = reserve(&bus, &["docs/**", "--reason", "bd-2"])["id"].to_string();
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "THIRD" { third.as_str() } else { arg }).collect();
        let answer = bus.relay("BlueLake", args).success().result();
        assert_eq!(column(&answer["released"], "pattern"), released);
        let mut expected: Vec<&str> = [&["src/a.rs"], kept].concat();
        expected.sort_unstable();
        let mut held = live(&bus);
        held.sort_by_key(Value::to_string);
        assert_eq!(held, expected, "RedForest keeps its own");
    };
    check(&["release", "src/a.rs"], &["src/a.rs"], &["src/b.rs", "docs/**"]);
    check(&["release", "./src/a.rs", "docs/**"], &["src/a.rs", "docs/**"], &["src/b.rs"]);
    check(&["release", "--id", "THIRD"], &["docs/**"], &["src/a.rs", "src/b.rs"]);
    check(&["release", "--reason", "BD-1"], &["src/a.rs", "src/b.rs"], &["docs/**"]);
    check(&["release", "--all"], &["src/a.rs", "src/b.rs", "docs/**"], &[]);
    check(&["release", "--all", "--keep", "src/b.rs"], &["src/a.rs", "docs/**"], &["src/b.rs"]);
    check(
        &["release", "docs/**", "--keep", "docs/**", "--keep", "docs/x.md"],
        &[],
        &["src/a.rs", "src/b.rs", "docs/**", "docs/x.md"],
    );
    check(&["release", "docs/**", "--keep", "docs/x.md"], &["docs/**"], &["src/a.rs", "src/b.rs", "docs/x.md"]);
}

#[test]
fn releasing_everything_with_nothing_held_is_fine_and_a_named_claim_must_be_held() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let theirs = bus.relay("RedForest", ["reserve", "src/**"]).success().result()["granted"][0]["id"].to_string();
    let tip = bus.tip();
    for args in [["release", "--all"].as_slice(), &["release", "--reason", "bd-1"]] {
        let answer = bus.relay("BlueLake", args).success().result();
        assert_eq!(answer["released"], serde_json::json!([]), "{args:?}");
    }
    for args in [["release", "src/**"], ["release", "docs"]] {
        bus.relay("BlueLake", args).fails("RESERVATION_NOT_HELD");
    }
    for id in [theirs.as_str(), "999", "1"] {
        bus.relay("BlueLake", ["release", "--id", id]).fails("RESERVATION_NOT_HELD");
    }
    bus.relay("BlueLake", ["release"]).fails("INPUT_INVALID");
    assert_eq!(bus.tip(), tip);
    reserve(&bus, &["docs"]);
    // One claim that is not held keeps the others where they are.
    bus.relay("BlueLake", ["release", "docs", "lib"]).fails("RESERVATION_NOT_HELD");
    bus.advance(hours(1));
    bus.relay("BlueLake", ["release", "docs"]).fails("RESERVATION_NOT_HELD");
}

#[test]
fn narrowing_keeps_the_time_and_the_reason_and_cannot_widen() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let wide = reserve(&bus, &["src/**", "--reason", "bd-1", "--ttl", "2h"]);
    bus.relay("RedForest", ["reserve", "src/auth/a.rs"]).success();
    bus.advance(minutes(10));
    for outside in ["docs/**", "**", "src*/x"] {
        bus.relay("BlueLake", ["release", "src/**", "--keep", outside]).fails("INPUT_INVALID");
    }
    let answer = bus.relay("BlueLake", ["release", "src/**", "--keep", "src/auth/**"]).success().result();
    let kept = &answer["kept"][0];
    assert_eq!((&kept["expires_at"], &kept["reason"]), (&wide["expires_at"], &wide["reason"]));
    assert_eq!(ids(&answer["released"]), [wide["id"].as_u64().unwrap()]);
    let contested = bus.relay("BlueLake", ["start"]).success().result()["debt"]["contested"].clone();
    assert_eq!(contested, 1, "what is kept still meets RedForest");
}

#[test]
fn renewing_keeps_ids_and_counts_from_now() {
    let bus = Bus::with(&["BlueLake"]);
    let first = reserve(&bus, &["src/**"]);
    reserve(&bus, &["docs/**"]);
    bus.advance(minutes(20));
    let answer = bus.relay("BlueLake", ["release", "src/**", "--renew", "2h"]).success().result();
    assert_eq!(
        (ids(&answer["kept"]), answer["released"].clone()),
        (vec![first["id"].as_u64().unwrap()], serde_json::json!([]))
    );
    bus.advance(minutes(41));
    assert_eq!(live(&bus), ["src/**"]);
    let all = bus.relay("BlueLake", ["renew", "--ttl", "3h"]).success().result();
    assert_eq!(column(&all["kept"], "pattern"), ["src/**"]);
    bus.advance(hours(3) - 1);
    assert_eq!(live(&bus), ["src/**"]);
    bus.relay("BlueLake", ["release", "--renew", "25h"]).fails("TTL_OUT_OF_RANGE");
    bus.relay("BlueLake", ["release", "lib", "--renew", "1h"]).fails("RESERVATION_NOT_HELD");
}

#[test]
fn a_broad_claim_is_granted_with_a_signal() {
    let bus = Bus::with(&["BlueLake"]);
    let files: Vec<String> =
        (0..20).map(|n| format!("src/{n:02}.rs")).chain((0..60).map(|n| format!("docs/{n:02}.md"))).collect();
    bus.track(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let check = |pattern: &str, expected: bool| {
        let answer = bus.relay("BlueLake", ["reserve", pattern]).success();
        assert_eq!(answer.signals().contains(&"BROAD_CLAIM".to_owned()), expected, "{pattern}");
    };
    check("**", true);
    check("src", true);
    check("src/*", true);
    check("*/*.rs", true);
    check("docs/**", true);
    check("src/0*", false);
    check("src/00.rs", false);
    check("docs/1?.md", false);
    check("res:database", false);
    bus.track(&["lib/one-more.rs"]);
    check("src", false);
}

#[test]
fn a_long_claim_is_granted_with_a_signal() {
    let bus = Bus::with(&["BlueLake"]);
    for (ttl, expected) in [("1h", false), ("4h", false), ("5h", true), ("24h", true)] {
        let signals = bus.relay("BlueLake", ["reserve", "src", "--ttl", ttl]).success().signals();
        assert_eq!(signals.contains(&"LONG_TTL".to_owned()), expected, "{ttl}");
    }
}

#[test]
fn a_stale_claim_is_signalled_to_its_holder_and_shown_as_debt() {
    let bus = Bus::with(&["BlueLake"]);
    reserve(&bus, &["src/**", "--ttl", "24h"]);
    let stale = || bus.relay("BlueLake", ["start"]).success().signals().contains(&"STALE_CLAIM".to_owned());
    bus.advance(hours(12));
    assert!(!stale());
    bus.advance(1);
    assert!(stale());
    let debt = bus.relay("BlueLake", ["look", "debt"]).success().result()["debt"].clone();
    assert_eq!(column(&debt, "kind"), ["stale_claim"]);
    bus.type_line("BlueLake", &text(&debt[0]["pay"]), "").success();
    assert_eq!(live(&bus), [""; 0]);
}

#[test]
fn a_claim_whose_thread_is_done_is_stale_at_once() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success();
    reserve(&bus, &["src/**", "--reason", "bd-1"]);
    bus.relay("RedForest", ["release", "--reason", "bd-1", "--done"]).success();
    assert!(bus.relay("BlueLake", ["start"]).success().signals().contains(&"STALE_CLAIM".to_owned()));
}

#[test]
fn a_named_resource_is_claimed_like_a_path() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    reserve(&bus, &["res:dev-database"]);
    let other = bus.relay("RedForest", ["reserve", "res:dev-database", "res:port"]).success().result();
    assert_eq!(column(&other["conflicts"], "pattern"), ["res:dev-database"]);
    let held = bus.relay("", ["reservations", "res:dev-database"]).success().result();
    assert_eq!(column(&held["reservations"], "holder"), ["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["release", "res:dev-database"]).success();
}
