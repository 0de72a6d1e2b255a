//! A morning on a bus, with something of everything that the page shows.

use crate::bus::{Bus, days, minutes};
use crate::terminal::text;

/// Who is at work, in which program, with which model, and on what.
const AGENTS: [(&str, &str, &str, &str); 4] = [
    ("QuietOwl", "gemini-cli", "gemini-3-pro", "Speed up the search"),
    ("BlueLake", "claude-code", "claude-opus-5", "Sessions that expire too early"),
    ("RedForest", "codex", "gpt-6-codex", "Rotate the signing keys"),
    ("GreenHill", "opencode", "qwen-4-coder", "The guide for new users"),
];

const FILES: [&str; 9] = [
    "Cargo.toml",
    "src/main.rs",
    "src/api/routes.rs",
    "src/api/limits.rs",
    "src/auth/session.rs",
    "src/auth/token.rs",
    "src/search/index.rs",
    "docs/guide.md",
    "docs/faq.md",
];

const PLAN: &str = "The session **ends after ten minutes** although `SESSION_TTL` says an hour.\n\n\
1. `Session::touch` reads the clock twice\n2. the second read loses the zone\n\n\
> A test that fails is on my branch.\n\n```rust\nlet left = ttl - now.since(self.seen);\n```\n\nSee https://example.org/issues/101.";

/// Two projects; in the first, agents that are alive, silent, suspended and retired, claims of which two meet, acks that are late, contact
/// requests, and a question to the human.
pub fn told() -> Bus {
    let bus = Bus::new();
    bus.track(&FILES);
    bus.relay("", ["token", "human"]).success();
    bus.relay("OldPine", ["start", "--program", "cursor", "--task", "The first draft"]).success();
    bus.relay("OldPine", ["retire"]).success();
    bus.relay("GreyWolf", ["start", "--program", "copilot", "--task", "Renames everything"]).success();
    bus.relay("human", ["suspend", "GreyWolf"]).success();
    bus.advance(days(1));
    for (name, program, model, task) in AGENTS {
        bus.relay(name, ["start", "--program", program, "--model", model, "--task", task]).success();
    }
    bus.relay("QuietOwl", ["reserve", "src/search/**", "--ttl", "4h"]).success();
    bus.advance(minutes(14));
    sessions(&bus);
    keys(&bus);
    guide(&bus);
    bus.advance(minutes(7));
    for (name, ..) in &AGENTS[1..] {
        bus.relay(name, ["poll"]).success();
    }
    beside(&bus);
    bus.relay("", ["drain", "--wait"]).success();
    bus
}

/// A conversation with claims for it, in which one has acked and another is late.
fn sessions(bus: &Bus) {
    for name in ["BlueLake", "RedForest", "GreenHill"] {
        bus.relay(name, ["prepare", "--thread", "bd-101"]).success();
    }
    bus.relay("BlueLake", ["reserve", "src/auth/**", "--reason", "bd-101"]).success();
    let subject = "Sessions expire too early";
    let plan = ["send", "--to", "RedForest,GreenHill", "--thread", "bd-101", "--subject", subject, "--body", PLAN];
    let plan = id(bus, "BlueLake", &[plan.as_slice(), &["--ack-within", "5m"]].concat());
    bus.relay("RedForest", ["ack", &plan]).success();
    let answer = ["send", "--to", "BlueLake", "--reply-to", &plan, "--body", "Seen. I keep out of `session.rs`."];
    id(bus, "RedForest", &answer);
    bus.relay("BlueLake", ["poll", "--read"]).success();
}

/// A claim that meets another, and a question that only the human can answer.
fn keys(bus: &Bus) {
    bus.relay("RedForest", ["prepare", "--thread", "bd-102"]).success();
    bus.relay("RedForest", ["reserve", "src/auth/token.rs", "res:dev-database", "--reason", "bd-102"]).success();
    let body = "Old tokens stop working when the keys rotate. Rotate **today**, or wait for the release?";
    let ask = ["send", "--to", "human", "--thread", "bd-102", "--subject", "Rotate the keys today?", "--body", body];
    id(bus, "RedForest", &[ask.as_slice(), &["--importance", "high", "--ack-within", "2h"]].concat());
}

/// Two that wait to be let in.
fn guide(bus: &Bus) {
    bus.relay("GreenHill", ["policy", "contacts_only"]).success();
    bus.relay("GreenHill", ["reserve", "docs/**", "--shared"]).success();
    bus.relay("BlueLake", ["link", "--target", "GreenHill", "--why", "The guide names the session"]).success();
    bus.relay("RedForest", ["link", "--target", "GreenHill", "--why", "The guide names the keys"]).success();
}

/// Another project of the same machine.
fn beside(bus: &Bus) {
    let folder = bus.path("website");
    std::fs::create_dir(&folder).unwrap();
    bus.git_in(&folder, &["init", "-q", "-b", "main"]);
    let folder = folder.to_str().unwrap();
    bus.relay("WhiteGull", ["start", "--project", folder, "--task", "The landing page"]).success();
}

fn id(bus: &Bus, from: &str, args: &[&str]) -> String {
    text(&bus.relay(from, args).success().result()["message"]["id"].as_u64().unwrap().to_string().into())
}
