//! Patterns, lifetimes and command lines that make no sense.

use std::process::Command;

use crate::bus::{Bus, run};
use crate::unchanged::{refused, snapshot};

/// Every way in which a pattern can come in.
#[track_caller]
fn check_pattern(bus: &Bus, pattern: &str, code: &str, shown: &[&str]) {
    for args in [
        &["reserve", pattern] as &[&str],
        &["reserve", "--if-free", "src/fine", pattern],
        &["start", "--path", pattern],
        &["prepare", "--thread", "bd-1", "--path", pattern],
        &["release", "src", "--keep", pattern],
        &["release", pattern],
        &["reservations", pattern],
        &["look", "reservations", pattern],
    ] {
        refused(bus, "BlueLake", args, code, shown);
    }
}

fn bus() -> Bus {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["reserve", "src"]).success();
    bus
}

#[test]
fn a_pattern_that_names_no_path_is_refused() {
    let bus = bus();
    check_pattern(&bus, "", "PATTERN_INVALID", &["\"\"", "empty", "`**`"]);
    check_pattern(&bus, ".", "PATTERN_INVALID", &["\".\"", "`**`"]);
    // Not the root of the machine, and the project's is written otherwise.
    check_pattern(&bus, "/", "PATTERN_INVALID", &["\"/\"", "`**`"]);
    check_pattern(&bus, "a/..", "PATTERN_INVALID", &["\"a/..\"", "`**`"]);
    check_pattern(&bus, &bus.key(), "PATTERN_INVALID", &[&bus.key(), "`**`"]);
    check_pattern(&bus, "line\nbreak", "PATTERN_INVALID", &["\"line\\nbreak\"", "control character"]);
    check_pattern(&bus, "res:", "PATTERN_INVALID", &["\"res:\"", "resource"]);
    check_pattern(&bus, "res:two words", "PATTERN_INVALID", &["\"res:two words\"", "resource"]);
}

#[test]
fn a_pattern_outside_the_project_is_refused() {
    let bus = bus();
    let sibling = format!("{}-sibling/file", bus.key());
    let above = format!("{}/../file", bus.key());
    for pattern in ["../x", "a/../../x", "..", "../**", "/etc/passwd", "/**", &sibling, &above] {
        check_pattern(&bus, pattern, "PATTERN_OUTSIDE_PROJECT", &[pattern, "outside"]);
    }
}

#[test]
fn a_pattern_has_at_most_512_bytes() {
    let bus = bus();
    let long = format!("src/{}", "x".repeat(509));
    check_pattern(&bus, &long, "PATTERN_INVALID", &["513 bytes", "512"]);
    // Bytes, not characters.
    check_pattern(&bus, &"é".repeat(257), "PATTERN_INVALID", &["514 bytes", "512"]);
    bus.relay("BlueLake", ["reserve", &long[..512]]).success();
}

#[test]
fn a_pattern_closes_what_it_opens() {
    let bus = bus();
    for (pattern, at) in [
        ("a[", "byte 1"),
        ("src/[a-z", "byte 4"),
        ("[!", "byte 0"),
        ("[]", "byte 0"),
        ("[[:alpha:]", "byte 0"),
        ("{a,b", "byte 0"),
        ("src/{a,{b,c}", "byte 4"),
        ("a\\", "byte 1"),
    ] {
        check_pattern(&bus, pattern, "PATTERN_INVALID", &[&format!("{pattern:?}"), at]);
    }
    let deep = format!("{}a,b{}", "{".repeat(17), "}".repeat(17));
    check_pattern(&bus, &deep, "PATTERN_INVALID", &["nests", "16"]);
    check_pattern(&bus, "src/*/../x", "PATTERN_INVALID", &["`..`", "wildcard"]);
}

/// Such patterns make a backtracking matcher run for ever, and a determinised one out of memory.
#[test]
fn a_hostile_pattern_is_an_ordinary_one() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let marks = "?".repeat(500);
    let hostile =
        [format!("*a{marks}"), format!("*b{marks}"), "*a".repeat(250), "{a,b}?*".repeat(70), "**/a/".repeat(100)];
    for pattern in &hostile {
        let taken = bus.relay("BlueLake", ["reserve", pattern]).success().result();
        assert_eq!(taken["granted"].as_array().unwrap().len(), 1, "{pattern}");
    }
    // Each meets itself, and the first two meet each other where both letters stand 500 bytes before the end: nowhere.
    for (index, pattern) in hostile.iter().enumerate() {
        let met = bus.relay("RedForest", ["reserve", pattern]).success().result();
        let conflicts: Vec<&str> =
            met["conflicts"].as_array().unwrap().iter().map(|met| met["pattern"].as_str().unwrap()).collect();
        assert!(conflicts.contains(&pattern.trim_end_matches('/')) || conflicts.contains(&pattern.as_str()), "{met}");
        if index < 2 {
            assert!(!conflicts.contains(&hostile[1 - index].as_str()), "{met}");
        }
        bus.relay("RedForest", ["release", "--all"]).success();
    }
}

#[test]
fn a_claim_lives_60_seconds_to_24_hours() {
    let bus = bus();
    for ttl in ["0", "0s", "59s", "59999ms", "25h", "1441m", "86401s", "2d", "-1s", "-5m", "-1h"] {
        let shown = if ttl == "0" { "0s" } else { ttl };
        for args in [
            &["reserve", "lib", "--ttl", ttl] as &[&str],
            &["reserve", "lib", "--if-free", "--ttl", ttl],
            &["release", "src", "--renew", ttl],
            &["renew", "--ttl", ttl],
        ] {
            refused(&bus, "BlueLake", args, "TTL_OUT_OF_RANGE", &[shown, "60s", "24h"]);
        }
    }
    for ttl in ["60s", "24h"] {
        bus.relay("BlueLake", ["reserve", "lib", "--ttl", ttl]).success();
    }
}

#[test]
fn a_duration_is_a_number_and_a_unit() {
    let bus = bus();
    for word in ["soon", "", "1", "90", "1.5h", "1h30m", "1 h", "h", "-", "١h", "9223372036854775807h", "1w", "1H"] {
        let shown = format!("`{word}`");
        for args in [
            &["reserve", "lib", "--ttl", word] as &[&str],
            &["reserve", "lib", "--if-free", "--wait", word],
            &["release", "src", "--renew", word],
            &["poll", "--wait", word],
            &["link", "--target", "RedForest", "--ttl", word],
            &["send", "--to", "RedForest", "--subject", "S", "--body", "b", "--ack-within", word],
        ] {
            refused(&bus, "BlueLake", args, "INPUT_INVALID", &[&shown, "90s, 10m or 2h"]);
        }
    }
}

/// Under `--json` a line that does not parse is answered like everything else.
#[test]
fn a_usage_error_is_one_line_of_json_too() {
    let bus = bus();
    let check = |args: &[&str], verb: &str, shown: &[&str]| {
        let before = snapshot(&bus.home());
        let mut command: Command = bus.command();
        command.args(args);
        let answer = run(command).fails("INPUT_INVALID");
        assert_eq!(answer.status, 2);
        assert_eq!(answer.stderr, "", "{args:?}");
        assert_eq!(answer.json()["verb"], verb, "{args:?}");
        let message = answer.error()["message"].as_str().unwrap().to_owned();
        for name in shown {
            assert!(message.contains(name), "{name} is not named in: {message}");
        }
        let help = if verb == "relay" { "relay --help" } else { &format!("relay {verb} --help") };
        let step = answer.error()["playbook"][0]["why"].as_str().unwrap().to_owned();
        assert!(step.contains(&format!("`{help}`")), "{step}");
        assert_eq!(snapshot(&bus.home()), before, "{args:?} changed something");
    };
    check(&["--json"], "relay", &["subcommand"]);
    check(&["--json", "frobnicate"], "relay", &["'frobnicate'"]);
    check(&["--json", "--agent", "BlueLake", "reserve"], "reserve", &["<PATTERN>"]);
    check(&["reserve", "src", "--frob", "--json"], "reserve", &["'--frob'"]);
    check(&["reserve", "--json", "src", "--ttl"], "reserve", &["--ttl"]);
    check(&["--project", "/poll", "--agent", "poll", "ack", "--json"], "ack", &["<N>"]);
    check(&["--json", "--agent=BlueLake", "send", "--to", "RedForest"], "send", &["--body"]);
    check(&["--json", "send", "--body", "b"], "send", &["--to"]);
    check(&["--json", "send", "--to", "A", "--body", "b", "--body-file", "f"], "send", &["--body", "--body-file"]);
    check(&["--json", "poll", "extra"], "poll", &["'extra'"]);
    check(&["--json", "ack", "-1"], "ack", &["'-1'"]);
    check(&["--json", "prepare"], "prepare", &["--thread"]);
    check(&["--json", "link"], "link", &["--target"]);
    check(&["--json", "--agent", "-dash", "start"], "start", &["-d"]);
    check(&["--json", "start", "--agent"], "start", &["--agent"]);
    check(&["--json", "project", "move", "/a"], "project", &["<NEW>"]);
    check(&["--json", "--json", "start"], "start", &["--json"]);
}

#[test]
fn a_request_names_at_most_1000_patterns() {
    let bus = bus();
    let files: Vec<String> = (0..1_001).map(|index| format!("src/{}/{index}.rs", index % 40)).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let each = |flag: &'static str, count: usize| files[..count].iter().flat_map(move |file| [flag, file]).collect();
    let (keep, path): (Vec<&str>, Vec<&str>) = (each("--keep", 1_001), each("--path", 1_001));
    for args in [
        [&["reserve"] as &[&str], &files].concat(),
        [&["start"] as &[&str], &path].concat(),
        [&["prepare", "--thread", "bd-1"] as &[&str], &path].concat(),
        [&["release"] as &[&str], &files].concat(),
        [&["release", "src"] as &[&str], &keep].concat(),
    ] {
        refused(&bus, "BlueLake", &args, "INPUT_INVALID", &["1001 patterns", "1000", "folder", "several"]);
    }
    // Who comes later meets every one of them, and only these.
    bus.relay("BlueLake", [&["reserve"] as &[&str], &files[..1_000]].concat()).success();
    bus.relay("RedForest", [&["start"] as &[&str], &path[..2_000]].concat()).success();
    bus.relay("BlueLake", ["release", "src"]).success();
    let met =
        bus.relay("RedForest", [&["reserve", "--shared"] as &[&str], &files[..1_000]].concat()).success().result();
    assert_eq!((&met["conflicts_total"], met["conflicts"].as_array().unwrap().len()), (&1_000.into(), 50));
}

#[test]
fn a_usage_error_in_words_names_the_way_on() {
    let bus = bus();
    for args in [&["reserve"] as &[&str], &["frobnicate"], &["poll", "--limitt", "3"], &["ack", "-1"]] {
        let before = snapshot(&bus.home());
        let words = bus.text("BlueLake", args);
        assert_eq!((words.status, words.stdout.as_str()), (2, ""), "{words:?}");
        assert!(words.stderr.starts_with("error: ") && words.stderr.contains("--help"), "{words:?}");
        assert_eq!(snapshot(&bus.home()), before);
    }
}

/// After `--` everything belongs to the command that runs.
#[test]
fn a_json_flag_of_the_wrapped_command_is_not_ours() {
    let bus = bus();
    let words = bus.text("BlueLake", ["reserve", "--frob", "src", "--", "tool", "--json"]);
    assert_eq!((words.status, words.stdout.as_str()), (2, ""), "{words:?}");
    assert!(words.stderr.contains("'--frob'"), "{words:?}");
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let bus = bus();
    for (args, shown) in [
        (&["reserve", "lib", "--wait", "1m"] as &[&str], "--if-free"),
        (&["recover", "NO_SUCH_CODE"], "NO_SUCH_CODE"),
        (&["policy", "sometimes"], "sometimes"),
        (&["send", "--to", "A", "--subject", "S", "--body", "b", "--importance", "huge"], "huge"),
        (&["look", "everything"], "everything"),
    ] {
        refused(&bus, "BlueLake", args, "INPUT_INVALID", &[shown]);
    }
}
