//! I6: recipients resolve inside the project or through approved links to another; an unknown one is an answer, never a
//! silent drop.

use serde_json::Value;

use crate::bus::Bus;
use crate::terminal::{column, ids, text};

#[test]
fn an_unknown_recipient_is_answered_with_the_nearest_names() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let before = bus.events(0);
    for (wanted, nearest) in [("RedForst", "RedForest"), ("redforrest", "RedForest"), ("GreenHil", "GreenHill")] {
        let args = ["send", "--to", wanted, "--subject", "Hello", "--body", "text"];
        let error = bus.relay("BlueLake", args).fails("RECIPIENT_NOT_FOUND").error();
        assert_eq!(error["details"]["nearest"][0], nearest);
        assert!(text(&error["message"]).contains(wanted) && text(&error["message"]).contains(nearest), "{error}");
        assert_eq!(error["details"]["recipients"][0]["nearest"][0], nearest);
        for args in [["link", "--target", wanted], ["poll", "--from", wanted], ["look", "agent", wanted]] {
            let error = bus.relay("BlueLake", args).fails("RECIPIENT_NOT_FOUND").error();
            assert_eq!(error["details"]["nearest"][0], nearest, "{args:?}");
        }
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn a_name_that_no_agent_can_have_is_unknown_like_any_other() {
    let bus = Bus::with(&["BlueLake"]);
    for wanted in ["R", "Red Forest", "../x", "relay", "@everyone", "9"] {
        let args = ["send", "--to", wanted, "--subject", "Hello", "--body", "text"];
        bus.relay("BlueLake", args).fails("RECIPIENT_NOT_FOUND");
    }
}

/// RedForest blocks, GreenHill was asked, GreyRock would have to be asked, OpenDoor takes anything.
fn crowd() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill", "GreyRock", "OpenDoor"]);
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    for agent in ["GreenHill", "GreyRock"] {
        bus.relay(agent, ["policy", "contacts_only"]).success();
    }
    bus.relay("BlueLake", ["link", "--target", "GreenHill"]).success();
    bus.relay("OpenDoor", ["policy", "open"]).success();
    bus
}

#[test]
fn with_several_failing_recipients_the_code_is_the_first_class_and_the_details_have_all() {
    let bus = crowd();
    let before = bus.events(0);
    let check = |to: &str, expected: &str, rows: &[(&str, &str)]| {
        for flags in [["--to", to].as_slice(), &["--to", "OpenDoor", "--cc", to], &["--bcc", to]] {
            let args = [&["send", "--subject", "Hello", "--body", "text", "--no-recover"], flags].concat();
            let error = bus.relay("BlueLake", args).fails(expected).error();
            let recipients: &Value = &error["details"]["recipients"];
            let mut found: Vec<(String, String)> =
                recipients.as_array().unwrap().iter().map(|row| (text(&row["name"]), text(&row["code"]))).collect();
            found.sort();
            let rows: Vec<_> = rows.iter().map(|(name, code)| ((*name).to_owned(), (*code).to_owned())).collect();
            assert_eq!(found, rows, "{to}");
        }
    };
    let (required, pending) = (("GreyRock", "CONTACT_REQUIRED"), ("GreenHill", "CONTACT_PENDING"));
    let (blocked, unknown) = (("RedForest", "CONTACT_BLOCKED"), ("Nobody", "RECIPIENT_NOT_FOUND"));
    check("GreyRock", "CONTACT_REQUIRED", &[required]);
    check("GreyRock,GreenHill", "CONTACT_PENDING", &[pending, required]);
    check("GreyRock,GreenHill,RedForest", "CONTACT_BLOCKED", &[pending, required, blocked]);
    check("GreyRock,RedForest", "CONTACT_BLOCKED", &[required, blocked]);
    check("GreyRock,GreenHill,RedForest,Nobody", "RECIPIENT_NOT_FOUND", &[pending, required, unknown, blocked]);
    check("Nobody", "RECIPIENT_NOT_FOUND", &[unknown]);
    assert_eq!(bus.events(0), before, "a failed send delivered nothing to anyone");
    assert_eq!(bus.inbox("OpenDoor"), [0; 0]);
}

/// Two projects on one bus: BlueLake here, RedForest in the other one. Returns the other one's path.
fn two_projects() -> (Bus, String) {
    let bus = Bus::with(&["BlueLake", "GreenHill"]);
    std::fs::create_dir(bus.path("other")).unwrap();
    let other = std::fs::canonicalize(bus.path("other")).unwrap().to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &other]).success();
    (bus, other)
}

fn letter<'a>(to: &'a str, thread: &'a str) -> [&'a str; 9] {
    ["send", "--to", to, "--thread", thread, "--subject", "Interface", "--body", "text"]
}

#[test]
fn across_projects_only_an_accepted_link_counts() {
    for policy in ["open", "auto", "contacts_only"] {
        let (bus, other) = two_projects();
        let there = ["--project", &other];
        bus.relay("RedForest", [&["policy", policy], there.as_slice()].concat()).success();
        let target = format!("RedForest@{other}");
        bus.relay("BlueLake", letter(&target, "bd-1")).fails("CONTACT_REQUIRED");
        let link = bus.relay("BlueLake", ["link", "--target", &target]).success().result();
        assert_eq!(link["link"]["state"], "requested", "{policy}");
        bus.relay("BlueLake", letter(&target, "bd-1")).fails("CONTACT_PENDING");
        let asker = format!("BlueLake@{}", bus.key());
        bus.relay("RedForest", [&["link", "--target", &asker, "--accept"], there.as_slice()].concat()).success();
        bus.relay("BlueLake", letter(&target, "bd-1")).success();
        // GreenHill shares the project with BlueLake, and no link with RedForest.
        bus.relay("GreenHill", letter(&target, "bd-1")).fails("CONTACT_REQUIRED");
    }
    let (bus, other) = two_projects();
    bus.relay("RedForest", ["policy", "block_all", "--project", &other]).success();
    bus.relay("BlueLake", letter(&format!("RedForest@{other}"), "bd-1")).fails("CONTACT_BLOCKED");
}

#[test]
fn a_message_into_another_project_has_a_number_and_a_thread_in_each() {
    let (bus, other) = two_projects();
    let asker = format!("BlueLake@{}", bus.key());
    let there = |args: &[&str]| bus.relay("RedForest", [args, &["--project", &other]].concat()).success().result();
    bus.relay("BlueLake", ["link", "--target", "RedForest@other"]).success();
    there(&["link", "--target", &asker, "--accept"]);
    let mut args: Vec<&str> = letter("RedForest@other", "bd-1").to_vec();
    args.push("--ack-required");
    let sent = bus.relay("BlueLake", args).success().result()["message"].clone();
    assert_eq!(
        (text(&sent["thread"]), text(&sent["recipients"][0]["name"])),
        ("bd-1".into(), format!("RedForest@{other}"))
    );

    let mail = there(&["poll", "--bodies"]);
    let received = &mail["messages"][0];
    assert_eq!(
        (text(&received["thread"]), text(&received["from"]), text(&received["body"])),
        ("repo.bd-1".into(), asker.clone(), "text".into())
    );
    let number = received["id"].to_string();

    // The answer finds its way back into the thread that it came from, and so does the ack.
    there(&["send", "--reply-to", &number, "--body", "answer"]);
    let back = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    assert_eq!(
        (text(&back["messages"][0]["thread"]), text(&back["messages"][0]["body"])),
        ("bd-1".into(), "answer".into())
    );
    assert_eq!(back["messages"][0]["from"], format!("RedForest@{other}"));
    there(&["ack", &number]);
    let own = bus.relay("BlueLake", ["message", &sent["id"].to_string()]).success().result();
    assert_eq!(own["message"]["recipients"][0]["state"], "acked");
}

#[test]
fn one_send_names_recipients_of_one_project() {
    let (bus, other) = two_projects();
    let to = format!("GreenHill,RedForest@{other}");
    bus.relay("BlueLake", letter(&to, "bd-1")).fails("INPUT_INVALID");
    // Naming one's own project is no other project.
    let own = format!("GreenHill@{},GreenHill", bus.key());
    bus.relay("BlueLake", letter(own.split_once(',').unwrap().0, "bd-1")).success();
    assert_eq!(bus.inbox("GreenHill").len(), 1);
}

#[test]
fn a_projects_basename_stands_for_it_where_that_is_unambiguous() {
    let (bus, other) = two_projects();
    let state = |target: &str| {
        let answer = bus.relay("BlueLake", ["link", "--target", target]).success().result();
        (text(&answer["link"]["state"]), text(&answer["link"]["to"]))
    };
    assert_eq!(state("RedForest@other"), ("requested".into(), format!("RedForest@{other}")));
    std::fs::create_dir_all(bus.path("deeper/other")).unwrap();
    let second = std::fs::canonicalize(bus.path("deeper/other")).unwrap().to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &second]).success();
    let error = bus.relay("BlueLake", letter("RedForest@other", "bd-1")).fails("RECIPIENT_NOT_FOUND").error();
    let mut nearest: Vec<Value> = error["details"]["nearest"].as_array().unwrap().clone();
    nearest.sort_by_key(Value::to_string);
    assert_eq!(nearest, [format!("RedForest@{second}"), format!("RedForest@{other}")]);
    for unknown in ["RedForest@nowhere", "RedForest@/no/such/path"] {
        bus.relay("BlueLake", letter(unknown, "bd-1")).fails("RECIPIENT_NOT_FOUND");
    }
    let error = bus.relay("BlueLake", ["link", "--target", &format!("RedForst@{other}")]).fails("RECIPIENT_NOT_FOUND");
    assert_eq!(error.error()["details"]["nearest"][0], format!("RedForest@{other}"));
}

#[test]
fn held_mail_crosses_projects_at_acceptance() {
    let (bus, other) = two_projects();
    let target = format!("RedForest@{other}");
    let mut args: Vec<&str> = letter(&target, "bd-1").to_vec();
    args.push("--hold");
    let sent = bus.relay("BlueLake", args).success().result()["message"].clone();
    assert_eq!(column(&sent["recipients"], "state"), ["held"]);
    let there = |args: &[&str]| bus.relay("RedForest", [args, &["--project", &other]].concat()).success().result();
    assert_eq!(ids(&there(&["poll"])["messages"]), [0; 0]);
    there(&["link", "--target", &format!("BlueLake@{}", bus.key()), "--accept"]);
    assert_eq!(ids(&there(&["poll"])["messages"]).len(), 1);
}
