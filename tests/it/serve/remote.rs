//! The command line through a server: nobody who asks can tell who answered.

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};
use crate::listening::{Server, token};

/// A line without what differs from one call to the next: the keys that nobody chose, where the test runs, and how large its store
/// happens to be.
fn alike(line: &str, bus: &Bus) -> String {
    let root = bus.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    // A glance at files may be too short on a busy machine, here or there.
    let line = line.replace(&bus.key(), "REPO").replace(&root, "ROOT").replace("\"unseen\":1}", "\"unseen\":0}");
    let is_key = |word: &str| word.len() == 32 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mut words: Vec<&str> = line.split('"').map(|word| if is_key(word) { "KEY" } else { word }).collect();
    for at in 1..words.len() {
        if words[at - 1].ends_with("bytes") {
            words[at] = words[at].trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        }
    }
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
        ("RedForest", &["check"]),
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
    for url in [server.url.clone(), server.mcp(), format!("{}/", server.mcp())] {
        let mut command = server.args("", &["mcp"]);
        command.env("RELAY_URL", url);
        let beside = run(command).fails("INPUT_INVALID");
        let says = format!("connect the agent to {}, ", server.mcp());
        assert!(beside.stdout.contains(&says), "an agent is put on no other bus than everybody: {}", beside.stdout);
    }
}

/// What a file or a command gave ends in a new line; what no header can carry is not blamed on the server.
#[test]
fn a_token_is_taken_without_what_is_around_it_and_never_shown() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let with = |token: String| {
        let mut command = server.args("BlueLake", &["poll"]);
        command.env("RELAY_TOKEN", token);
        run(command)
    };
    with(format!(" {}\r\n", server.token)).success();
    let secret = &server.token;
    for (token, says) in [
        (format!("Bearer {secret}"), "`Bearer`"),
        (format!("bearer\t{secret}"), "`Bearer`"),
        (format!("{secret}\n{secret}"), "no token has"),
        (format!("{secret}\u{e9}"), "no token has"),
        ("  \n".to_owned(), "no token for it"),
    ] {
        let refused = with(token).fails("UNAUTHORIZED");
        assert!(refused.stdout.contains(says), "{}", refused.stdout);
        let shown = format!("{}{}", refused.stdout, refused.stderr);
        assert!(!shown.contains(secret.as_str()), "a secret is not shown: {shown}");
    }
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

#[test]
fn outside_of_any_repository_the_server_says_which_project_it_is() {
    let bus = Bus::with(&["BlueLake"]);
    let outside = |server: &Server<'_>, args: &[&str]| {
        let mut command = server.args("BlueLake", args);
        command.current_dir(bus.path(""));
        run(command)
    };
    let of_the_project = Server::of_the_project(&bus);
    outside(&of_the_project, &["poll"]).success();
    let started = outside(&of_the_project, &["start"]).success().result();
    assert_eq!(started["project"]["key"], bus.key());
    drop(of_the_project);
    outside(&Server::start(&bus), &["poll"]).fails("PROJECT_UNRESOLVED");
    outside(&Server::of_the_project(&bus), &["poll", "--project", "/nope"]).fails("PROJECT_KEY_INVALID");
}

/// Whoever is in a linked worktree, or names one, has its files before it, not those of the main one.
#[test]
fn a_line_is_that_of_the_worktree_from_which_one_asks() {
    let bus = Bus::with(&["BlueLake"]);
    bus.git(&["commit", "-q", "--allow-empty", "-m", "root"]);
    let linked = bus.path("linked");
    bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    std::fs::create_dir(linked.join("src")).unwrap();
    std::fs::write(linked.join("src/a.rs"), "fn a() {}\n").unwrap();
    bus.git_in(&linked, &["add", "."]);
    bus.git_in(&linked, &["commit", "-q", "-m", "only here"]);
    let server = Server::start(&bus);
    let line = ["log", "--line", "src/a.rs:1"];
    let named = [&line[..], &["--project", linked.to_str().unwrap()]].concat();
    let from = |folder: &std::path::Path, mut command: std::process::Command| {
        command.current_dir(folder);
        run(command)
    };
    let here = from(&linked, bus.args("BlueLake", line)).success().result();
    assert_eq!(from(&linked, server.args("BlueLake", &line)).success().result(), here);
    assert_eq!(from(&bus.path(""), server.args("BlueLake", &named)).success().result(), here);
    from(&bus.repo(), server.args("BlueLake", &line)).fails("INPUT_INVALID");
}

#[test]
fn who_acts_is_said_in_the_same_words() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    for variable in ["human", "x y", "relay"] {
        let refused = |mut command: std::process::Command| {
            command.env("RELAY_AGENT", variable);
            alike(&run(command).fails("AGENT_NAME_INVALID").stdout, &bus)
        };
        assert_eq!(refused(server.args("", &["poll"])), refused(bus.args("", ["poll"])));
    }
    let length = |command: std::process::Command| {
        let shown = run(command).success().stdout;
        shown.split("┌ ").nth(1).unwrap().split(' ').next().unwrap().len()
    };
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["send", "--to", "BlueLake", "--subject", "Stop", "--body", "now"]).success();
    let with = |mut command: std::process::Command| {
        command.args(["--agent", "BlueLake", "poll", "--bodies"]);
        command
    };
    let mut there = bus.command();
    there.env("RELAY_URL", &server.url).env("RELAY_TOKEN", &server.token);
    assert_eq!((length(with(bus.command())), length(with(there))), (16, 16), "no body can contain it");
}
