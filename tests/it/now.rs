//! `relay status` as a person asks for it: everything at once, and to each viewer no more than it may know.

use serde_json::{Value, json};

use crate::bus::{Bus, hours, minutes, run};
use crate::listening::{Server, token};
use crate::terminal::column;

/// A sender, two others, a blind recipient and the human; everybody takes everybody's mail.
fn project() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldRiver", "GreyStone"]);
    for agent in ["BlueLake", "RedForest", "GoldRiver", "GreyStone"] {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus.relay("", ["token", "human"]).success();
    bus
}

fn now(bus: &Bus, viewer: &str) -> Value {
    bus.relay(viewer, ["status"]).success().result()["now"].clone()
}

/// What an agent is at.
fn busy(now: &Value, agent: &str) -> Value {
    now["busy"].as_array().unwrap().iter().find(|busy| busy["agent"] == agent).unwrap().clone()
}

#[test]
fn it_tells_what_each_agent_is_at() {
    let bus = project();
    bus.relay("BlueLake", ["reserve", "src/**", "docs/a.md"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs", "--ttl", "2h"]).success();
    let ask =
        ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "b", "--ack-within", "1h"];
    bus.relay("BlueLake", ask).success();
    bus.relay("GreyStone", ["retire"]).success();
    let seen = now(&bus, "");
    let blue = json!({"agent": "BlueLake", "claims": 2, "contested": 1, "owes": 0, "unread": 0});
    let red = json!({"agent": "RedForest", "claims": 1, "contested": 1, "owes": 1, "unread": 1});
    assert_eq!((busy(&seen, "BlueLake"), busy(&seen, "RedForest")), (blue, red));
    assert_eq!((&seen["retired"], seen["busy"].as_array().unwrap().len()), (&json!(1), 3));
    assert!(seen["store"]["bytes"].as_u64() > Some(0));
    // What is over is not counted.
    bus.advance(minutes(61));
    bus.relay("RedForest", ["poll", "--read"]).success();
    let seen = now(&bus, "");
    let red = json!({"agent": "RedForest", "claims": 1, "contested": 0, "owes": 1, "unread": 0});
    assert_eq!((busy(&seen, "BlueLake")["claims"].clone(), busy(&seen, "RedForest")), (json!(0), red));
}

#[test]
fn whoever_was_seen_last_comes_first_and_the_silent_and_suspended_after() {
    let bus = project();
    bus.relay("human", ["suspend", "GoldRiver"]).success();
    bus.advance(minutes(11));
    for agent in ["GreyStone", "RedForest"] {
        bus.advance(1_000);
        bus.relay(agent, ["agents"]).success();
    }
    let status = bus.relay("", ["status"]).success().result();
    let expected = ["RedForest", "GreyStone", "BlueLake", "GoldRiver"];
    assert_eq!(column(&status["agents"], "name"), expected);
    assert_eq!(column(&status["now"]["busy"], "agent"), expected, "in the order of the agents");
    assert_eq!(column(&status["agents"], "alive"), [true, true, false, false]);
}

#[test]
fn claims_are_drawn_on_the_tree_and_what_is_contested_stands_out() {
    let bus = project();
    bus.relay("BlueLake", ["reserve", "src/auth/**", "README.md", "res:port-80"]).success();
    bus.relay("RedForest", ["reserve", "src/auth/login.rs", "--ttl", "2h"]).success();
    let tree = now(&bus, "")["tree"].clone();
    assert_eq!((&tree["claims"], &tree["contested"], &tree["name"]), (&json!(4), &json!(2), &json!("")));
    assert_eq!(column(&tree["leaves"], "name"), ["README.md"]);
    assert_eq!(column(&tree["branches"], "path"), ["res:", "src/auth"]);
    let auth = &tree["branches"][1];
    let leaves =
        [column(&auth["leaves"], "name"), column(&auth["leaves"], "holder"), column(&auth["leaves"], "contested")];
    assert_eq!(
        leaves,
        [[json!("**"), json!("login.rs")], [json!("BlueLake"), json!("RedForest")], [json!(true), json!(true)]]
    );
    assert_eq!(auth["leaves"][0]["silent"], false);
    bus.advance(minutes(11));
    bus.relay("RedForest", ["agents"]).success();
    let tree = now(&bus, "")["tree"].clone();
    assert_eq!(column(&tree["branches"][1]["leaves"], "silent"), [true, false], "whoever was not seen for a while");
}

#[test]
fn who_waits_for_whom_is_told_while_they_wait() {
    let bus = project();
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    assert_eq!(now(&bus, "")["waits"], json!([]));
    let mail = bus.waiting("RedForest", &["poll", "--wait", "10m", "--from", "GoldRiver"]);
    let claim = bus.waiting("GreyStone", &["reserve", "src/a.rs", "--if-free", "--wait", "10m"]);
    // Somebody who waits for anything at all waits for nobody.
    let anything = bus.waiting("BlueLake", &["poll", "--wait", "10m"]);
    let expected = json!([
        {"who": "RedForest", "verb": "poll", "for_whom": ["GoldRiver"]},
        {"who": "GreyStone", "verb": "reserve", "for_whom": ["BlueLake"], "patterns": ["src/a.rs"]},
    ]);
    assert_eq!(now(&bus, "")["waits"], expected);
    for waiter in [mail, claim, anything] {
        waiter.kill();
    }
    assert_eq!(now(&bus, "")["waits"], json!([]));
}

#[test]
fn acks_are_owed_oldest_first_and_late_once_their_time_is_over() {
    let bus = project();
    let ask = |to: &str, within: &str| {
        let args =
            ["send", "--to", to, "--thread", "bd-1", "--subject", "Login", "--body", "b", "--ack-within", within];
        let id = bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap();
        bus.advance(minutes(1));
        id
    };
    let (long, short) = (ask("RedForest", "3h"), ask("GoldRiver,human", "30m"));
    let seen = now(&bus, "");
    assert_eq!(column(&seen["acks"], "message"), [long, short, short]);
    assert_eq!(column(&seen["acks"], "overdue"), [false, false, false]);
    bus.advance(hours(1));
    let seen = now(&bus, "human");
    assert_eq!(
        (column(&seen["acks"], "overdue"), &seen["acks_total"]),
        (vec![json!(false), json!(true), json!(true)], &json!(3))
    );
    let first = json!({"message": long, "thread": "bd-1", "subject": "Login", "from": "BlueLake", "by": "RedForest",
        "since": "2026-11-15T00:00:00.000Z", "due": "2026-11-15T03:00:00.000Z", "overdue": false});
    assert_eq!(seen["acks"][0], first);
    bus.relay("RedForest", ["ack", &long.to_string()]).success();
    assert_eq!(column(&now(&bus, "")["acks"], "message"), [short, short]);
}

#[test]
fn requests_for_contact_wait_until_they_are_answered() {
    let bus = project();
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest", "--why", "the login"]).success();
    let seen = now(&bus, "human");
    let request = &seen["requests"][0];
    assert_eq!(
        (&request["from"], &request["to"], &request["why"]),
        (&json!("BlueLake"), &json!("RedForest"), &json!("the login"))
    );
    bus.relay("human", ["link", "--target", "RedForest", "--accept"]).success();
    assert_eq!(now(&bus, "human")["requests"], json!([]));
}

#[test]
fn what_a_blind_copy_owes_and_who_got_it_is_told_to_its_parties_and_the_human() {
    let bus = project();
    let send = |lines: &[&str]| {
        let args =
            ["send", "--thread", "bd-1", "--subject", "Login", "--body", "b", "--ack-required"].iter().chain(lines);
        bus.relay("BlueLake", args).success();
    };
    send(&["--to", "RedForest", "--bcc", "GoldRiver"]);
    send(&["--bcc", "GoldRiver"]);
    for (viewer, owed) in [("", 0), ("GreyStone", 0), ("RedForest", 0), ("BlueLake", 2), ("GoldRiver", 2), ("human", 2)]
    {
        let seen = now(&bus, viewer);
        assert_eq!(busy(&seen, "GoldRiver")["owes"], owed, "{viewer:?}");
        let by_gold = column(&seen["acks"], "by").iter().filter(|by| **by == "GoldRiver").count();
        assert_eq!((by_gold, &seen["acks_total"]), (owed, &json!(owed + 1)), "{viewer:?}");
    }
    let traffic = |viewer: &str| {
        let told = bus.relay(viewer, ["look", "traffic"]).success().result()["traffic"].clone();
        told.as_array()
            .unwrap()
            .iter()
            .map(|pair| json!([pair["from"], pair["to"], pair["messages"]]))
            .collect::<Vec<_>>()
    };
    for viewer in ["", "GreyStone", "RedForest"] {
        assert_eq!(traffic(viewer), [json!(["BlueLake", "RedForest", 1])], "{viewer:?}");
    }
    assert_eq!(traffic("human"), [json!(["BlueLake", "GoldRiver", 2]), json!(["BlueLake", "RedForest", 1])]);
}

#[test]
fn equally_busy_pairs_are_told_in_the_order_of_their_names() {
    let names = ["GoldOwl", "GreenHill", "RedForest", "SilverFox", "WhitePine"];
    let bus = Bus::with(&[&["BlueLake"], &names[..]].concat());
    let to: Vec<&str> = names.iter().rev().flat_map(|name| ["--to", name]).collect();
    bus.relay("BlueLake", [&["send"], &to[..], &["--subject", "Hello", "--body", "b"]].concat()).success();
    for _ in 0..3 {
        let told = bus.relay("", ["look", "traffic"]).success().result()["traffic"].clone();
        assert_eq!(column(&told, "to"), names);
    }
}

#[test]
fn how_much_mail_others_have_not_read_is_told_to_those_whose_agents_they_are() {
    let bus = project();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let there = |token: &str, agent: &str, word: &str| {
        let mut command = bus.args(agent, [word]);
        command.env("RELAY_URL", &server.url).env("RELAY_TOKEN", token);
        run(command).success().result()
    };
    let unread = |token: &str, agent: &str| busy(&there(token, agent, "status")["now"], "RedForest")["unread"].clone();
    there(&guest, "Mallory", "start");
    assert_eq!(unread(&guest, "Mallory"), Value::Null);
    assert_eq!((unread(&server.token, "BlueLake"), unread(&server.token, "human")), (json!(1), json!(1)));
}

#[test]
fn a_model_is_told_where_things_stand_without_all_of_it() {
    let bus = project();
    let server = Server::start(&bus);
    let told = server.call("BlueLake", "look", json!({"what": ["status"]}));
    assert_eq!((&told["ok"], &told["result"]["now"]), (&json!(true), &Value::Null));
}

#[test]
fn the_printed_page_begins_with_what_needs_a_decision_and_says_how_to_decide_it() {
    let bus = project();
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("GoldRiver", ["link", "--target", "RedForest", "--why", "the parser"]).success();
    let ask =
        ["send", "--to", "human", "--thread", "bd-1", "--subject", "Which API?", "--body", "b", "--ack-within", "30m"];
    bus.relay("BlueLake", ask).success();
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("GreyStone", ["reserve", "src/a.rs"]).success();
    let _waits = bus.waiting("GreyStone", &["poll", "--wait", "10m", "--from", "BlueLake"]);
    bus.advance(minutes(31));
    let page = bus.text("human", ["status"]).success().stdout;
    let parts = [
        "For a person to decide:",
        "Which API? [ack due 1m ago]",
        "GoldRiver asks RedForest for contact: the parser",
        "Agents (4):",
        "Claims (2, 1 contested pair):",
        "└─ src/",
        "   ├─ ** contested  BlueLake",
        "   └─ a.rs contested  GreyStone",
        "Acks that are owed (1):",
        "overdue 1m",
        "Waiting:",
        "GreyStone waits for BlueLake to write",
        "Coordination debt (",
        "`relay look debt` has what pays each.",
        "Health:",
    ];
    let places: Vec<usize> =
        parts.iter().map(|part| page.find(part).unwrap_or_else(|| panic!("no {part:?}:\n{page}"))).collect();
    assert!(places.is_sorted(), "{places:?}\n{page}");
    // What it says to type is typed.
    let typed = |word: &str| page.lines().find(|line| line.contains(word)).unwrap().trim().to_owned();
    let line = typed("relay message");
    assert!(bus.type_line("", &line, "").success().stdout.contains("Which API?"));
    bus.type_line("", &typed("relay send").replace("TEXT", "'The second one.'"), "").success();
    let answer = bus.relay("BlueLake", ["poll", "--from", "human", "--bodies"]).success().result();
    assert_eq!(answer["messages"][0]["body"], "The second one.");
    bus.type_line("", &typed("relay link"), "").success();
    assert_eq!(now(&bus, "human")["requests"], json!([]));
}

#[test]
fn every_contested_claim_stands_out_though_not_every_pair_is_told() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let files: Vec<String> = (0..12).map(|n| format!("src/f{n}*")).collect();
    for agent in ["BlueLake", "RedForest"] {
        let patterns: Vec<&str> = files.iter().map(String::as_str).collect();
        bus.relay(agent, [&["reserve"], &patterns[..]].concat()).success();
    }
    let seen = bus.relay("", ["look", "status", "--limit", "2"]).success().result();
    assert_eq!((seen["contested"].as_array().map(Vec::len), &seen["contested_total"]), (Some(2), &json!(16)));
    assert_eq!(
        (&seen["now"]["tree"]["contested"], &busy(&seen["now"], "RedForest")["contested"]),
        (&json!(24), &json!(12))
    );
}

#[test]
fn what_two_long_patterns_share_is_not_searched_for_at_every_look() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let long = format!("src/{}/**", "deep".repeat(40));
    bus.relay("BlueLake", ["reserve", &long, "docs/*"]).success();
    bus.relay("RedForest", ["reserve", &format!("src/{}/*.rs", "deep".repeat(40)), "docs/a.md"]).success();
    let seen = bus.relay("", ["status"]).success().result();
    assert_eq!(column(&seen["contested"], "example"), [Value::Null, json!("docs/a.md")]);
}
