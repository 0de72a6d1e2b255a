//! I12: what a playbook prints is a command that relay takes, and the one that is meant.

use relay_core::verbs::Request;
use serde_json::{Value, json};

use crate::bus::{Bus, Run, letter, minutes, run};
use crate::terminal::{column, text};

fn steps(error: &Value) -> Vec<Value> {
    error["playbook"].as_array().unwrap().clone()
}

fn argv(step: &Value) -> Vec<String> {
    step["run"].as_array().unwrap()[1..].iter().map(text).collect()
}

fn last(error: &Value) -> Value {
    steps(error).pop().unwrap()
}

/// A second project beside the repository, with RedForest in it.
fn beside(bus: &Bus) -> String {
    std::fs::create_dir(bus.path("other")).unwrap();
    let other = std::fs::canonicalize(bus.path("other")).unwrap().to_str().unwrap().to_owned();
    let task = ["start", "--project", &other, "--program", "editor", "--task", "a secret plan"];
    bus.relay("RedForest", task).success();
    other
}

#[test]
fn a_request_in_nobodys_name_is_made_again_by_whoever_brings_its_key() {
    let bus = Bus::with(&["RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let error = bus.relay("", letter("RedForest")).fails("AGENT_NOT_REGISTERED").error();
    let name = text(&bus.relay("", ["start"]).success().result()["agent"]["name"]);
    let again = || {
        let mut command = bus.command();
        command.args(argv(&last(&error))).current_dir(bus.path("")).env("RELAY_AGENT", &name);
        run(command)
    };
    again().success();
    let mail = bus.relay("RedForest", ["poll"]).success().result();
    assert_eq!(column(&mail["messages"], "from"), [name.as_str()]);
    assert_ne!(again().status, 0, "what succeeded is forgotten");
    let newest = ["recover", "AGENT_NOT_REGISTERED", "--retry"];
    bus.relay("", letter("RedForest")).fails("AGENT_NOT_REGISTERED");
    bus.relay("GreenHill", newest).fails("INPUT_INVALID");
}

#[test]
fn an_agent_of_another_project_is_looked_at_as_a_guest_sees_it() {
    let bus = Bus::with(&["BlueLake"]);
    let other = beside(&bus);
    let full = format!("RedForest@{other}");
    let seen = json!([{"name": full, "program": "editor", "state": "active", "alive": true}]);
    for args in [["look", "agent", &full], ["look", "agent", "redforest@other"]] {
        assert_eq!(bus.relay("BlueLake", args).success().result()["agents"], seen);
    }
    assert_eq!(bus.relay("", ["whois", &full]).success().result()["agents"], seen);
    assert!(bus.text("BlueLake", ["whois", &full]).success().stdout.contains(&full));
    let own = format!("BlueLake@{}", bus.key());
    let whole = bus.relay("BlueLake", ["whois", &own]).success().result();
    assert_eq!((&whole["agents"][0]["name"], &whole["agents"][0]["policy"]), (&json!("BlueLake"), &json!("auto")));
    let error = bus.relay("BlueLake", ["whois", "RedFrest@other"]).fails("RECIPIENT_NOT_FOUND").error();
    assert_eq!(error["details"]["nearest"], json!([full]));
    bus.relay("BlueLake", ["whois", "RedForest@nowhere"]).fails("RECIPIENT_NOT_FOUND");
}

#[test]
fn steps_about_an_agent_of_another_project_name_that_project() {
    let bus = Bus::with(&["BlueLake"]);
    let other = beside(&bus);
    let full = format!("RedForest@{other}");
    let about = |error: &Value| {
        let commands: Vec<Value> =
            steps(error).into_iter().filter(|step| step["run"].is_array() && step["tool"] != "recover").collect();
        commands.iter().for_each(|step| drop(bus.step(step).success()));
        text(&commands.last().unwrap()["args"]["body"])
    };
    let wait = ["link", "--target", "RedForest@other", "--wait", "1s"];
    assert!(about(&bus.relay("BlueLake", wait).fails("WAIT_TIMEOUT").error()).contains(&full));
    let accept = ["link", "--target", "BlueLake@repo", "--accept", "--project", &other];
    bus.relay("RedForest", accept).success();
    std::fs::write(bus.home().join("config.toml"), "[limits]\nunread = 1\n").unwrap();
    bus.relay("BlueLake", letter("RedForest@other")).success();
    assert!(about(&bus.relay("BlueLake", letter("RedForest@other")).fails("INBOX_FULL").error()).contains(&full));
}

#[test]
fn lifting_ones_own_block_of_another_projects_agent_names_its_project() {
    let bus = Bus::with(&["BlueLake"]);
    beside(&bus);
    bus.relay("BlueLake", ["link", "--target", "RedForest@other", "--block"]).success();
    for args in [letter("RedForest@other").as_slice(), &["link", "--target", "RedForest@other"]] {
        let error = bus.relay("BlueLake", args).fails("CONTACT_BLOCKED").error();
        bus.step(&steps(&error)[0]).success();
        bus.relay("BlueLake", ["link", "--target", "RedForest@other", "--block"]).success();
    }
}

#[test]
fn waiting_for_a_claim_asks_for_what_was_asked_for() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    let waits = |error: &Value| {
        let step = steps(error).into_iter().find(|step| step["args"]["wait"].is_string()).unwrap();
        let mut args = step["args"].clone();
        let object = args.as_object_mut().unwrap();
        ["project", "agent", "wait", "if_free"].iter().for_each(|name| drop(object.remove(*name)));
        (args, argv(&step))
    };
    let wish = ["reserve", "src/a.rs", "--if-free"];
    let plain = bus.relay("BlueLake", wish).fails("FILE_RESERVATION_CONFLICT").error();
    assert_eq!(waits(&plain).0, json!({"patterns": ["src/a.rs"]}));
    let flags = ["--shared", "--reason", "bd-7", "--ttl", "2h"];
    let error = bus.relay("BlueLake", [wish.as_slice(), &flags].concat()).fails("FILE_RESERVATION_CONFLICT").error();
    let (args, words) = waits(&error);
    assert_eq!(args, json!({"patterns": ["src/a.rs"], "shared": true, "reason": "bd-7", "ttl": "2h"}));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let waiter = bus.waiting("", &words);
    // Somebody who comes later is told of its own wish, not of the one that waits before it.
    let behind = bus.relay("GreenHill", ["reserve", "src", "--if-free", "--wait", "1s"]).fails("WAIT_TIMEOUT").error();
    assert_eq!(behind["details"]["patterns"], json!(["src"]));
    bus.relay("RedForest", ["release", "--all"]).success();
    let granted = waiter.finish().success().result()["granted"][0].clone();
    assert_eq!((&granted["exclusive"], &granted["reason"]), (&json!(false), &json!("bd-7")));
    let held = bus.relay("", ["reservations"]).success().result()["reservations"][0].clone();
    assert_eq!(held["expires_at"], granted["expires_at"]);
    assert_eq!(bus.relay("BlueLake", ["release", "--all"]).success().result()["released"][0]["pattern"], "src/a.rs");
}

#[test]
fn a_retry_that_fails_again_leads_back_to_itself_whatever_it_failed_with() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    bus.relay("BlueLake", ["retire"]).success();
    let wish = ["reserve", "src", "--if-free", "--idempotency-key", "k1"];
    let first = bus.relay("BlueLake", wish).fails("AGENT_RETIRED").error();
    bus.relay("BlueLake", ["start"]).success();
    let again = |error: &Value| {
        let mut command = bus.command();
        command.arg("--json").args(argv(&last(error)));
        run(command)
    };
    let second = again(&first).fails("FILE_RESERVATION_CONFLICT").error();
    let third = again(&second).fails("FILE_RESERVATION_CONFLICT").error();
    for error in [&second, &third] {
        assert_eq!(error["idempotency_key"], "k1");
        let expected = ["recover", "FILE_RESERVATION_CONFLICT", "--idempotency-key", "k1", "--retry"];
        assert_eq!(argv(&last(error))[..5], expected, "{error}");
    }
    bus.relay("RedForest", ["release", "--all"]).success();
    assert_eq!(again(&third).success().result()["retried"]["result"]["granted"][0]["pattern"], "src");
    again(&third).fails("INPUT_INVALID");
}

#[test]
fn a_value_that_begins_with_a_dash_stays_a_value() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "./-x"]).success();
    let wish = ["reserve", "./-x", "--if-free", "--idempotency-key=-k9"];
    let error = bus.relay("BlueLake", wish).fails("FILE_RESERVATION_CONFLICT").error();
    let steps = steps(&error);
    assert_eq!(steps[0]["args"]["patterns"], json!(["-x"]));
    assert_eq!(steps[1]["args"]["idempotency_key"], "-k9");
    let words = argv(&steps[0]);
    let waiter = bus.waiting("", &words.iter().map(String::as_str).collect::<Vec<_>>());
    bus.relay("RedForest", ["release", "--all"]).success();
    waiter.finish().success();
    bus.step(&steps[1]).success();
    let session = ["start", "--session", "s1"];
    bus.relay("GreenHill", session).success();
    let taken = bus.relay("GreenHill", ["start", "--session=-s2"]).fails("AGENT_NAME_TAKEN").error();
    bus.step(&taken["playbook"][0]).success();
}

/// Takes a step as printed, only that nobody waits for ten minutes, and sees that it is a request.
#[track_caller]
fn parses(bus: &Bus, step: &Value) -> Run {
    if let (Some(tool), Some(args)) = (step["tool"].as_str(), step["args"].as_object()) {
        Request::from_tool(tool, args).unwrap_or_else(|refusal| panic!("{refusal}: {step}"));
    }
    let words = argv(step).into_iter().map(|word| if word == "10m" { "1s".to_owned() } else { word });
    let mut command = bus.command();
    command.args(words).current_dir(bus.path(""));
    let ran = run(command);
    assert_ne!(ran.status, 2, "{step}: {}", ran.stderr);
    ran
}

#[test]
fn every_step_of_every_class_that_agents_meet_is_a_command_that_relay_takes() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill", "GoldDune"]);
    beside(&bus);
    bus.relay("RedForest", ["policy", "open"]).success();
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    bus.relay("GreenHill", ["policy", "contacts_only"]).success();
    let mut seen = 0;
    let mut check = |agent: &str, args: &[&str], code: &str| {
        let key = format!("--idempotency-key=-{code}-{agent}-{}", args[0]);
        let error = bus.relay(agent, [args, &[&key]].concat()).fails(code).error();
        for step in steps(&error).iter().filter(|step| step["run"].is_array()) {
            parses(&bus, step);
            seen += 1;
        }
    };
    let hold = ["reserve", "src/a.rs", "--if-free", "--shared", "--reason", "bd-1", "--ttl", "2h"];
    check("Nobody", &letter("RedForest"), "AGENT_NOT_REGISTERED");
    check("", &letter("RedForest"), "AGENT_NOT_REGISTERED");
    check("", &["ack", "1"], "AGENT_NOT_REGISTERED");
    check("", &["look", "message", "999"], "MESSAGE_NOT_FOUND");
    check("", &["look", "thread", "bd-99"], "THREAD_NOT_FOUND");
    check("x y", &["poll"], "AGENT_NAME_INVALID");
    check("RedForest", &["send", "--reply-to", &id, "--thread", "bd-2", "--body", "b"], "THREAD_MISMATCH");
    check("BlueLake", &["ack", &id], "NOT_A_RECIPIENT");
    check("BlueLake", &["ack", "999"], "MESSAGE_NOT_FOUND");
    check("BlueLake", &["look", "thread", "bd-9"], "THREAD_NOT_FOUND");
    check("BlueLake", &letter("Stranger"), "RECIPIENT_NOT_FOUND");
    check("BlueLake", &letter("RedForest@other"), "CONTACT_REQUIRED");
    check("BlueLake", &letter("RedForest@other"), "CONTACT_PENDING");
    check("BlueLake", &letter("GreenHill"), "CONTACT_REQUIRED");
    check("BlueLake", &["link", "--target", "RedForest@other", "--wait", "1s"], "WAIT_TIMEOUT");
    check("BlueLake", &["link", "--target", "GoldDune", "--accept"], "LINK_NOT_FOUND");
    bus.relay("", ["token", "human"]).success();
    check("human", &["link", "--target", "GoldDune", "--accept"], "LINK_NOT_FOUND");
    check("BlueLake", &["release", "src/**"], "RESERVATION_NOT_HELD");
    check("BlueLake", &["release", "src/**", "--force", "--why", "w"], "HOLDER_ALIVE");
    check("BlueLake", &hold, "FILE_RESERVATION_CONFLICT");
    check("BlueLake", &[hold.as_slice(), &["--wait", "1s"]].concat(), "WAIT_TIMEOUT");
    bus.relay("GoldDune", ["link", "--target", "BlueLake", "--block"]).success();
    check("BlueLake", &letter("GoldDune"), "CONTACT_BLOCKED");
    check("GoldDune", &letter("BlueLake"), "CONTACT_BLOCKED");
    bus.advance(minutes(11));
    let taken = bus.relay("BlueLake", ["release", "src/**", "--force", "--why", "w"]).success().result();
    check("RedForest", &["release", "--id", &taken["taken"][0]["id"].to_string()], "RESERVATION_NOT_HELD");
    bus.relay("RedForest", ["retire"]).success();
    check("RedForest", &["poll"], "AGENT_RETIRED");
    bus.relay("BlueLake", ["suspend", "GoldDune"]).success();
    check("GoldDune", &["reserve", "docs"], "AGENT_SUSPENDED");
    bus.relay("GreenHill", ["start", "--session=-s1"]).success();
    check("GreenHill", &["start", "--session=-s2"], "AGENT_NAME_TAKEN");
    assert!(seen > 25, "only {seen} steps were printed");
}
