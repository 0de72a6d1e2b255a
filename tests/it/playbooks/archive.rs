//! The git archive.

use std::process::Command;

use serde_json::Value;

use super::Way;
use crate::bus::Bus;
use crate::terminal::text;

fn archived() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("", ["drain", "--wait"]).success();
    bus
}

/// Nothing that an operator's command was asked for is kept: its last step says to repeat it.
fn repeated<'a>(way: &'a Way<'_>, args: &'a [&str]) -> impl FnMut(&Value) + 'a {
    move |step| {
        if step["who"] == "you" {
            way.relay(args).success();
        }
    }
}

pub fn behind(code: &str) {
    let bus = archived();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let rebuild = ["rebuild", "store", "--from-archive"];
    let error = bus.relay("", rebuild).fails(code).error();
    let way = Way::new(&bus, "");
    way.follow(&error, repeated(&way, &rebuild));
    assert_eq!(bus.inbox("RedForest").len(), 1);
}

pub fn diverged(code: &str) {
    let bus = archived();
    let git = |args: &[&str]| {
        let output = bus.git_in(&bus.store().join("archive.git"), args);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let foreign = git(&["commit-tree", "main^{tree}", "-p", "main", "-m", "mine"]);
    git(&["update-ref", "refs/heads/main", &foreign]);
    let error = bus.relay("", ["verify"]).fails(code).error();
    let way = Way::new(&bus, "");
    way.follow(&error, repeated(&way, &["verify"]));
}

pub fn unavailable(code: &str) {
    let bus = archived();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let empty = bus.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let is_there = std::cell::Cell::new(false);
    let around = |mut command: Command| {
        if !is_there.get() {
            command.env("PATH", &empty);
        }
        command
    };
    let way = Way { bus: &bus, agent: "", around: &around };
    let error = way.relay(&["drain", "--wait"]).fails(code).error();
    way.follow(&error, |step| match step["who"].as_str() {
        Some("person") => is_there.set(true),
        Some(_) => drop(way.relay(&["drain", "--wait"]).success()),
        None => {}
    });
    let status = bus.relay("", ["status"]).success().result();
    assert_eq!(text(&status["archive"]["behind"].to_string().into()), "0");
}
