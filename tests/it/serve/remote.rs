//! The command line through a server: nobody who asks can tell who answered.

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};
use crate::listening::{Server, token};

/// A line without what differs from one call to the next: the keys that nobody chose, and where the test runs.
fn alike(line: &str, bus: &Bus) -> String {
    let root = bus.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let line = line.replace(&bus.key(), "REPO").replace(&root, "ROOT");
    let is_key = |word: &str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words: Vec<&str> = line.split('"').map(|word| if is_key(word) { "KEY" } else { word }).collect();
    words.join("\"")
}

/// The same story here and there, told by the same words.
#[test]
fn every_command_has_the_same_answer() {
    let here = Bus::new();
    let there = Bus::new();
    let server = Server::start(&there);
    let story: &[(&str, &[&str])] = &[
        ("BlueLake", &["poll"]),
        ("BlueLake", &["start", "--program", "p", "--task", "t"]),
        ("RedForest", &["prepare", "--thread", "bd-1"]),
        ("BlueLake", &["reserve", "src/**", "--reason", "bd-1"]),
        ("RedForest", &["reserve", "src/a.rs", "--if-free"]),
        ("RedForest", &["reserve", "src/a.rs"]),
        (
            "BlueLake",
            &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "b", "--ack-required"],
        ),
        ("BlueLake", &["send", "--to", "Nobody", "--thread", "bd-1", "--subject", "Login", "--body", "b"]),
        ("RedForest", &["poll", "--bodies"]),
        ("RedForest", &["ack", "9"]),
        ("RedForest", &["ack", "999"]),
        ("RedForest", &["look", "thread", "bd-1"]),
        ("RedForest", &["look", "playbook", "STORE_BUSY"]),
        ("RedForest", &["status"]),
        ("RedForest", &["agents"]),
        ("RedForest", &["log", "-n", "5"]),
        ("RedForest", &["search", "b"]),
        ("RedForest", &["policy", "contacts_only"]),
        ("RedForest", &["whois", "BlueLake"]),
        ("BlueLake", &["link", "--target", "RedForest", "--why", "w"]),
        ("RedForest", &["link", "--list"]),
        ("RedForest", &["link", "--target", "BlueLake", "--accept"]),
        ("BlueLake", &["recover", "RECIPIENT_NOT_FOUND", "--dry-run"]),
        ("BlueLake", &["release", "--all"]),
        ("BlueLake", &["release", "src/none"]),
        ("BlueLake", &["retire"]),
        ("BlueLake", &["poll"]),
        ("x y", &["poll"]),
        ("BlueLake", &["start", "--idempotency-key", ""]),
    ];
    for (agent, args) in story {
        let one = run(here.args(agent, *args));
        let other = run(server.args(agent, args));
        let same = |run: &Run, bus: &Bus| (alike(&run.stdout, bus), run.status);
        assert_eq!(same(&other, &there), same(&one, &here), "{agent} {args:?}");
    }
    let shown = |mut command: std::process::Command| {
        command.args(["--agent", "RedForest", "agents"]);
        run(command).success().stdout
    };
    let mut remote = there.command();
    remote.env("RELAY_URL", format!("{}/mcp", server.url)).env("RELAY_TOKEN", &server.token);
    assert_eq!(shown(remote), shown(here.command()), "and the same sentences");
    assert_eq!(there.events(0).len(), here.events(0).len());
}

#[test]
fn without_a_token_or_with_a_wrong_one_nobody_is_let_in() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let mut command = server.args("BlueLake", &["poll"]);
    command.env_remove("RELAY_TOKEN");
    run(command).fails("UNAUTHORIZED");
    let mut command = server.args("BlueLake", &["poll"]);
    command.env("RELAY_TOKEN", "relay_no");
    run(command).fails("UNAUTHORIZED");
    let mut command = server.args("BlueLake", &["poll"]);
    command.env("RELAY_URL", "ftp://somewhere");
    run(command).fails("INPUT_INVALID");
    let beside = run(server.args("", &["mcp"])).fails("INPUT_INVALID");
    assert!(
        beside.stdout.contains("/mcp"),
        "an agent is not put on another bus than everybody else: {}",
        beside.stdout
    );
}

#[test]
fn a_credential_of_its_own_is_nobody_elses_agent_on_the_command_line_either() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let as_guest = |agent: &str, args: &[&str]| {
        let mut command = server.args(agent, args);
        command.env("RELAY_TOKEN", &guest);
        run(command)
    };
    as_guest("BlueLake", &["poll"]).fails("IDENTITY_MISMATCH");
    as_guest("GreenField", &["start"]).success();
    run(server.args("GreenField", &["poll"])).fails("IDENTITY_MISMATCH");
    // Its playbook's steps are taken in its own name.
    bus.relay("BlueLake", ["policy", "auto"]).success();
    let send = ["send", "--to", "BlueLake", "--thread", "bd-1", "--subject", "s", "--body", "b", "--no-recover"];
    as_guest("GreenField", &send).fails("CONTACT_REQUIRED");
    let recovered = as_guest("GreenField", &["recover", "CONTACT_REQUIRED"]).success().result();
    assert_eq!(recovered["state"], "recovered", "{recovered}");
}

/// Claim, run, release, and the command's own status: as it is where the stores are.
#[test]
fn a_command_runs_while_its_claim_is_held_through_a_server_too() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let held = bus.path("held");
    let script = format!("{RELAY} --json reservations > {}; exit 7", held.display());
    let ran = run(server.args("BlueLake", &["reserve", "src/**", "--", "sh", "-c", &script]));
    assert_eq!((ran.status, &ran.json()["result"]["granted"][0]["pattern"]), (7, &json!("src/**")), "{}", ran.stdout);
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(&held).unwrap()).unwrap();
    assert_eq!(seen["result"]["reservations"][0]["holder"], "BlueLake", "{seen}");
    let claims =
        || bus.relay("RedForest", ["reservations"]).success().result()["reservations"].as_array().unwrap().len();
    assert_eq!(claims(), 0, "and is given back");
    let nothing = run(server.args("BlueLake", &["reserve", "src/**", "--", "/no/such/program"]));
    assert_eq!((nothing.status, claims()), (2, 0));
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let busy = run(server.args("BlueLake", &["reserve", "src/**", "--if-free", "--", "touch", held.to_str().unwrap()]));
    busy.fails("FILE_RESERVATION_CONFLICT");
    assert_eq!(claims(), 1, "what was not free was not claimed");
}

#[test]
fn the_human_is_who_holds_the_credential_of_where_the_stores_are() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let send = ["send", "--to", "BlueLake", "--subject", "Stop", "--body", "now"];
    run(server.args("human", &send)).fails("UNAUTHORIZED");
    // Somebody else's is none here.
    let elsewhere = Bus::new();
    elsewhere.relay("", ["token", "human"]).success();
    let from_elsewhere = || {
        let mut command = server.args("human", &send);
        command.env("RELAY_HOME", elsewhere.home());
        run(command)
    };
    from_elsewhere().fails("UNAUTHORIZED");
    bus.relay("", ["token", "human"]).success();
    from_elsewhere().fails("UNAUTHORIZED");
    assert_eq!(bus.inbox("BlueLake").len(), 0);
    run(server.args("human", &send)).success();
    let mail = run(server.args("BlueLake", &["poll"])).success().result();
    assert_eq!(mail["messages"][0]["from"], "human", "{mail}");
}
