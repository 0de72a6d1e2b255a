//! Requests that are wrong in themselves: whoever made them makes another, and nobody else is bothered.

use serde_json::Value;

use super::Way;
use crate::bus::{Bus, Run, letter, run};

/// The request fails with the class, its only step says what is wrong with it, and made right it succeeds.
#[track_caller]
fn mended(code: &str, wrong: &dyn Fn(&Bus) -> Run, right: &dyn Fn(&Bus) -> Run) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let error = wrong(&bus).fails(code).error();
    let steps = error["playbook"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["who"] == "you" && step["run"] == Value::Null), "{error}");
    Way::new(&bus, "BlueLake").follow(&error, |_| drop(right(&bus).success()));
}

fn blue(args: &'static [&'static str]) -> impl Fn(&Bus) -> Run {
    move |bus: &Bus| bus.relay("BlueLake", args)
}

pub fn project_unresolved(code: &str) {
    let outside = |bus: &Bus| {
        let mut command = bus.args("BlueLake", ["poll"]);
        command.current_dir(bus.path(""));
        run(command)
    };
    mended(code, &outside, &blue(&["poll"]));
}

pub fn project_key_invalid(code: &str) {
    mended(code, &blue(&["poll", "--project", "relative/path"]), &blue(&["poll"]));
}

pub fn thread_id_invalid(code: &str) {
    mended(code, &blue(&["prepare", "--thread", "bd 1"]), &blue(&["prepare", "--thread", "bd-1"]));
}

pub fn pattern_invalid(code: &str) {
    mended(code, &blue(&["reserve", "src/["]), &blue(&["reserve", "src/[ab]"]));
}

pub fn pattern_outside(code: &str) {
    mended(code, &blue(&["reserve", "../other"]), &blue(&["reserve", "other"]));
}

pub fn ttl(code: &str) {
    mended(code, &blue(&["reserve", "src", "--ttl", "1s"]), &blue(&["reserve", "src", "--ttl", "60s"]));
}

pub fn invalid(code: &str) {
    mended(code, &blue(&["send", "--to", "RedForest"]), &|bus| bus.relay("BlueLake", letter("RedForest")));
}

pub fn body_too_large(code: &str) {
    let large = |bus: &Bus| {
        std::fs::write(bus.path("large"), "x".repeat(300_000)).unwrap();
        let file = bus.path("large").to_str().unwrap().to_owned();
        bus.relay("BlueLake", ["send", "--to", "RedForest", "--subject", "Login", "--body-file", &file])
    };
    mended(code, &large, &|bus| bus.relay("BlueLake", letter("RedForest")));
}

pub fn key_reused(code: &str) {
    let again = |bus: &Bus| {
        bus.relay("BlueLake", ["reserve", "one", "--idempotency-key", "k"]).success();
        bus.relay("BlueLake", ["reserve", "two", "--idempotency-key", "k"])
    };
    mended(code, &again, &blue(&["reserve", "two"]));
}
