//! I5: with `--hold` a message waits for consent instead of failing, and its sender learns what became of it.

use crate::bus::{Bus, days, hours};
use crate::terminal::{column, ids, text};

const HOLD: [&str; 9] =
    ["send", "--to", "RedForest,GreenHill", "--thread", "bd-1", "--subject", "Login", "--body=text", "--hold"];

/// RedForest must be asked, GreenHill consents by policy; BlueLake has sent one message to both. Returns its number.
fn held() -> (Bus, u64) {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let message = bus.relay("BlueLake", HOLD).success().result()["message"].clone();
    let states: Vec<_> =
        message["recipients"].as_array().unwrap().iter().map(|row| (text(&row["name"]), text(&row["state"]))).collect();
    assert_eq!(states, [("RedForest".into(), "held".into()), ("GreenHill".into(), "stored".into())]);
    (bus, message["id"].as_u64().unwrap())
}

fn state_for(bus: &Bus, id: u64, name: &str) -> String {
    let message = bus.relay("BlueLake", ["message", &id.to_string()]).success().result()["message"].clone();
    let row = message["recipients"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    text(&row["state"])
}

#[test]
fn those_who_may_be_reached_get_it_now_and_the_others_are_asked() {
    let (bus, id) = held();
    assert_eq!(bus.inbox("GreenHill"), [id]);
    assert_eq!(bus.inbox("RedForest"), [0; 0]);
    let situation = bus.relay("RedForest", ["start"]).success().result();
    assert_eq!(
        (situation["inbox"]["unread"].as_u64(), text(&situation["contacts_waiting"][0]["from"])),
        (Some(0), "BlueLake".into())
    );
    bus.relay("RedForest", ["ack", &id.to_string()]).fails("NOT_A_RECIPIENT");
}

#[test]
fn acceptance_delivers_it_and_is_its_cursor() {
    let (bus, id) = held();
    // Mail that comes between the send and the acceptance stands before it in the inbox.
    bus.relay("GreenHill", ["link", "--target", "RedForest"]).success();
    bus.relay("RedForest", ["link", "--target", "GreenHill", "--accept"]).success();
    let between = bus.send("GreenHill", "RedForest", "bd-2", "Logout");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    let accepted = bus.events(between).into_iter().find(|event| event["kind"] == "link_accepted").unwrap();
    assert_eq!(accepted["data"]["delivers"], serde_json::json!([id]));
    let page = bus.relay("RedForest", ["poll"]).success().result();
    assert_eq!((ids(&page["messages"]), &page["cursor"]), (vec![between, id], &accepted["number"]));
    // A reader whose cursor stands behind the message's own number still sees it.
    let after = bus.relay("RedForest", ["poll", "--after", &between.to_string()]).success().result();
    assert_eq!(ids(&after["messages"]), [id]);
    let cursor = after["cursor"].to_string();
    let rest = bus.relay("RedForest", ["poll", "--after", &cursor]).success().result();
    assert_eq!((ids(&rest["messages"]), rest["cursor"].to_string()), (vec![], cursor));
}

#[test]
fn the_human_may_accept_and_so_deliver() {
    let (bus, id) = held();
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["link", "--target", "RedForest", "--accept"]).success();
    assert_eq!(bus.inbox("RedForest"), [id]);
    assert_eq!(state_for(&bus, id, "RedForest"), "surfaced");
}

#[test]
fn the_human_answers_one_request_at_a_time() {
    for (answer, state, inbox) in [("--accept", "accepted", 1), ("--block", "blocked", 0)] {
        let (bus, id) = held();
        bus.relay("", ["token", "human"]).success();
        bus.relay("GreenHill", ["link", "--target", "RedForest"]).success();
        let tip = bus.tip();
        let several = bus.relay("human", ["link", "--target", "RedForest", answer]).fails("INPUT_INVALID").error();
        assert_eq!(bus.tip(), tip);
        let waiting = &several["details"]["waiting"];
        assert_eq!(column(waiting, "from"), ["BlueLake", "GreenHill"]);
        let listed = bus.relay("human", ["link", "--list"]).success().result();
        assert_eq!(column(&listed["links"], "id"), column(waiting, "id"));
        let seen = bus.relay("human", ["look", "contacts"]).success().result();
        let all = seen["links"].as_array().unwrap().iter().rev();
        let asked: Vec<_> = all.filter(|link| link["state"] == "requested").cloned().collect();
        assert_eq!(Some(&asked), listed["links"].as_array(), "among all contacts of the project, newest first");
        for row in waiting.as_array().unwrap() {
            assert!(text(&several["message"]).contains(&text(&row["run"])), "{several}");
        }
        // The command of the first row, exactly as it is printed.
        bus.type_line("", &text(&waiting[0]["run"]), "").success();
        let states = || column(&bus.relay("RedForest", ["link", "--list"]).success().result()["links"], "state");
        assert_eq!(states(), [state, "requested"]);
        assert_eq!(bus.inbox("RedForest").len(), inbox);
        assert_eq!(state_for(&bus, id, "RedForest"), if inbox == 1 { "surfaced" } else { "lapsed" });
        // What is left is one, and needs no number; what was answered no longer waits.
        let answered = waiting[0]["id"].to_string();
        bus.relay("human", ["link", "--target", "RedForest", "--id", &answered, answer]).fails("LINK_NOT_FOUND");
        bus.relay("human", ["link", "--target", "RedForest", answer]).success();
        assert_eq!(states(), [state, state]);
    }
}

#[test]
fn a_block_by_the_human_is_the_agents_own_to_lift() {
    let (bus, _) = held();
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["link", "--target", "RedForest", "--block"]).success();
    let row = bus.relay("RedForest", ["link", "--list"]).success().result()["links"][0].clone();
    assert_eq!((text(&row["state"]), &row["blocked_by"]), ("blocked".into(), &serde_json::json!(["RedForest"])));
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--revoke"]).success();
    for refused in [
        ["link", "--target", "BlueLake", "--accept", "--id", "1"].as_slice(),
        &["link", "--target", "BlueLake", "--id", "1"],
    ] {
        bus.relay("RedForest", refused).fails("INPUT_INVALID");
    }
    bus.relay("human", ["link", "--target", "RedForest", "--revoke"]).fails("INPUT_INVALID");
}

#[test]
fn an_acceptance_opens_nobody_whom_no_link_opens() {
    for (who, closing, expected) in [
        ("RedForest", ["policy", "block_all"].as_slice(), "RedForest takes no mail."),
        ("RedForest", &["retire"], "RedForest has retired."),
        ("BlueLake", &["suspend", "RedForest"], "RedForest is suspended."),
    ] {
        let (bus, id) = held();
        bus.relay("", ["token", "human"]).success();
        bus.relay(who, closing).success();
        let answer = bus.relay("human", ["link", "--target", "RedForest", "--accept"]).success().result();
        assert_eq!(answer["link"]["state"], "accepted", "{closing:?}");
        let mail = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
        let notices: Vec<String> = column(&mail["messages"], "body").iter().map(text).collect();
        assert_eq!(notices, [format!("{expected} Message #{id} was not delivered to RedForest.")]);
        assert_eq!(state_for(&bus, id, "RedForest"), "lapsed");
        if closing == ["retire"] {
            bus.relay("RedForest", ["start"]).success();
            assert_eq!(bus.inbox("RedForest"), [0; 0]);
        }
    }
}

#[test]
fn an_acceptance_in_another_project_opens_nobody_either() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("", ["token", "human"]).success();
    std::fs::create_dir(bus.path("there")).unwrap();
    let there = bus.path("there").to_str().unwrap().to_owned();
    let (red, blue) = (format!("RedForest@{there}"), format!("BlueLake@{}", bus.key()));
    let other = |agent: &str, args: &[&str]| bus.relay(agent, [args, &["--project", &there]].concat()).success();
    // By its own hand, by asking back, and by the human's.
    for (index, (agent, answer)) in [
        ("RedForest", ["link", "--target", &blue, "--accept"].as_slice()),
        ("RedForest", &["link", "--target", &blue]),
        ("human", &["link", "--target", "RedForest", "--accept"]),
    ]
    .into_iter()
    .enumerate()
    {
        other("RedForest", &["start"]);
        let body = format!("--body={index}");
        let held = bus.relay("BlueLake", ["send", "--to", &red, "--subject", "Hi", &body, "--hold"]).success().result();
        assert_eq!(held["message"]["recipients"][0]["state"], "held", "{answer:?}");
        other("RedForest", &["policy", "block_all"]);
        other(agent, answer);
        assert_eq!(other("RedForest", &["poll"]).result()["messages"], serde_json::json!([]), "{answer:?}");
        let mail = bus.relay("BlueLake", ["poll", "--bodies", "--read"]).success().result();
        assert!(text(&mail["messages"][0]["body"]).contains("takes no mail"), "{answer:?} {mail}");
        let copy = bus.relay("BlueLake", ["message", &held["message"]["id"].to_string()]).success().result();
        assert_eq!(copy["message"]["recipients"][0]["state"], "lapsed", "{answer:?}");
        other("RedForest", &["policy", "auto"]);
        bus.relay("BlueLake", ["link", "--target", &red, "--revoke"]).success();
    }
}

#[test]
fn a_second_held_message_asks_no_second_time_and_both_arrive_together() {
    let (bus, first) = held();
    let second = bus.relay("BlueLake", HOLD).success().result()["message"]["id"].as_u64().unwrap();
    let requests = bus.kinds(0).iter().filter(|kind| *kind == "link_requested").count();
    assert_eq!(requests, 2, "one for each recipient");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    let page = bus.relay("RedForest", ["poll", "--limit", "1"]).success().result();
    assert_eq!(ids(&page["messages"]), [first, second], "what one event delivered stays together");
}

#[test]
fn a_block_tells_the_sender() {
    let (bus, id) = held();
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    let mail = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    assert_eq!(column(&mail["messages"], "from"), ["relay"]);
    let notice = &mail["messages"][0];
    assert!(text(&notice["body"]).contains(&format!("#{id}")) && text(&notice["body"]).contains("RedForest"));
    assert_eq!((text(&notice["thread"]), notice["reply_to"].as_u64()), ("bd-1".into(), Some(id)));
    assert_eq!(state_for(&bus, id, "RedForest"), "lapsed");
    assert_eq!(bus.inbox("RedForest"), [0; 0]);
}

#[test]
fn the_notice_says_what_happened() {
    for (who, decision, expected) in [
        ("RedForest", ["link", "--target", "BlueLake", "--block"], "RedForest refused contact."),
        ("RedForest", ["link", "--target", "BlueLake", "--revoke"], "RedForest revoked the contact."),
        ("BlueLake", ["link", "--target", "RedForest", "--block"], "You blocked RedForest."),
        ("BlueLake", ["link", "--target", "RedForest", "--revoke"], "You revoked the contact with RedForest."),
    ] {
        let (bus, id) = held();
        bus.relay(who, decision).success();
        let mail = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
        let notices: Vec<String> = column(&mail["messages"], "body").iter().map(text).collect();
        assert_eq!(notices, [format!("{expected} Message #{id} was not delivered to RedForest.")]);
        assert_eq!(state_for(&bus, id, "RedForest"), "lapsed");
    }
}

#[test]
fn a_lapse_tells_the_sender_once() {
    let (bus, id) = held();
    for _ in 0..7 {
        bus.advance(days(1) - hours(1));
        assert_eq!(bus.inbox("BlueLake"), [0; 0]);
    }
    bus.advance(hours(7));
    let mail = bus.relay("BlueLake", ["poll", "--bodies"]).success().result();
    assert_eq!(column(&mail["messages"], "from"), ["relay"]);
    let body =
        format!("RedForest never answered the request for contact. Message #{id} was not delivered to RedForest.");
    assert_eq!(mail["messages"][0]["body"], body);
    assert_eq!(state_for(&bus, id, "RedForest"), "lapsed");
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    assert_eq!(bus.inbox("BlueLake").len(), 1);
    // Consent that comes too late finds nothing to deliver.
    bus.relay("RedForest", ["start"]).success();
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).fails("LINK_NOT_FOUND");
    assert_eq!(bus.inbox("RedForest"), [0; 0]);
}

#[test]
fn every_verb_that_counts_the_mail_counts_the_notice() {
    for verb in [["start"].as_slice(), &["status"], &["prepare", "--thread", "bd-2"], &["poll"]] {
        let (bus, _) = held();
        bus.advance(days(7));
        // Seven days on it is just not retired.
        let answer = bus.relay("BlueLake", verb).success().result();
        let unread = |answer: &serde_json::Value| answer["unread"].as_u64().or(answer["inbox"]["unread"].as_u64());
        if verb[0] == "prepare" {
            assert!(bus.kinds(0).contains(&"held_lapsed".to_owned()));
        } else {
            assert_eq!(unread(&answer), Some(1), "{verb:?}");
        }
        assert_eq!(unread(&bus.relay("BlueLake", ["start"]).success().result()), Some(1), "{verb:?}");
        assert_eq!(bus.inbox("BlueLake").len(), 1, "{verb:?}");
    }
}

#[test]
fn hold_heals_no_block_and_no_unknown_name() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--block"]).success();
    let tip = bus.tip();
    bus.relay("BlueLake", HOLD).fails("CONTACT_BLOCKED");
    let unknown = ["send", "--to", "GreenHill,Nobody", "--subject", "Hi", "--body", "text", "--hold"];
    bus.relay("BlueLake", unknown).fails("RECIPIENT_NOT_FOUND");
    assert_eq!(bus.tip(), tip, "nobody was asked");
}
