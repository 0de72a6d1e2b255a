//! The doors that tests use exist only under their feature: a release binary ignores them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bus::{Bus, RELAY, Run, run};
use crate::faults::steps::POINTS;

/// The release binary, built without features. Cargo does nothing where it is fresh.
fn release_binary() -> PathBuf {
    let target = Path::new(RELAY).parent().and_then(Path::parent).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--offline", "--locked", "--release", "-p", "relay", "--target-dir"]).arg(target);
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.join("release/relay")
}

/// A day in 2001, which no real clock says.
const LONG_AGO: i64 = 1_000_000_000_000;

fn with(bus: &Bus, binary: &Path, failpoint: &str, args: &[&str]) -> Run {
    let mut command = Command::new(binary);
    bus.environment(&mut command);
    command.env("FAILPOINTS", failpoint).args(["--json", "--agent", "BlueLake"]).args(args);
    run(command)
}

fn first_event_at(binary: &Path) -> String {
    let bus = Bus::new();
    bus.set_clock(LONG_AGO);
    with(&bus, binary, "", &["start"]).success();
    let events = with(&bus, binary, "", &["look", "events"]).success().result();
    events["events"][0]["at"].as_str().unwrap().to_owned()
}

fn reserve_with_failpoint(binary: &Path, failpoint: &str) -> Run {
    let bus = Bus::new();
    with(&bus, binary, "", &["start"]).success();
    with(&bus, binary, failpoint, &["reserve", "src"])
}

#[test]
fn a_release_binary_ignores_the_doors_that_tests_use() {
    let release = release_binary();
    assert!(first_event_at(Path::new(RELAY)).starts_with("2001-09-09"), "the door that is tested does not open");
    assert!(!first_event_at(&release).starts_with("2001-"));
    for failpoint in ["store-before-commit=panic", "store-after-commit=panic"] {
        assert_ne!(reserve_with_failpoint(Path::new(RELAY), failpoint).status, 0, "{failpoint} does nothing");
        reserve_with_failpoint(&release, failpoint).success();
    }
    let program = std::fs::read(&release).unwrap();
    let doors = ["RELAY_TEST_CLOCK", "RELAY_TEST_BREAK", "RELAY_TEST_FIXTURES", "RELAY_TEST_PATIENCE"];
    let words = doors.into_iter().chain(["test_simple_text", "FAILPOINTS"]);
    for word in words.chain(POINTS.map(|(point, _)| point)) {
        let found = program.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "the release binary knows {word}");
    }
}
