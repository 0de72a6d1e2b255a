//! I11: the default path is the macros: `start`, `prepare`, `reserve` and `link` carry an agent through a task.

use serde_json::{Value, json};

use crate::bus::{Bus, hours};
use crate::terminal::{column, ids, text};

#[test]
fn four_macros_carry_a_task_from_start_to_end() {
    let bus = Bus::new();
    bus.relay("RedForest", ["prepare", "--thread", "bd-1", "--path", "src/auth/**"]).success();
    let start = bus.relay("BlueLake", ["start", "--task", "Fix the login"]).success().result();
    assert_eq!((text(&start["agent"]["name"]), text(&start["project"]["key"])), ("BlueLake".into(), bus.key()));
    let digest = bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success().result();
    assert_eq!(digest["participants"], json!(["BlueLake", "RedForest"]));
    let claim = bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success().result();
    assert_eq!(column(&claim["conflicts"], "holder"), ["RedForest"]);
    let link = bus.relay("BlueLake", ["link", "--target", "RedForest"]).success().result();
    assert_eq!(link["link"]["state"], "accepted");
    bus.relay("BlueLake", ["send", "--to", "@thread", "--thread", "bd-1", "--subject", "Login", "--body", "b"])
        .success();
    let done = bus.relay("BlueLake", ["release", "--reason", "bd-1", "--done"]).success().result();
    assert_eq!(done["thread_done"], "bd-1");
}

#[test]
fn the_paths_that_scripts_rely_on_are_where_they_were_promised() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let check = |agent: &str, args: &[&str], paths: &[&str]| -> Value {
        let json = bus.relay(agent, args).success().json();
        assert_eq!((&json["relay"], &json["ok"], &json["verb"]), (&json!(1), &json!(true), &json!(args[0])));
        assert!(json["signals"].is_array() && json["next"].is_array());
        for path in paths {
            assert!(json.pointer(path).is_some(), "{args:?} has no {path}: {json}");
        }
        json["result"].clone()
    };
    check(
        "RedForest",
        &["reserve", "src/**"],
        &[
            "/result/granted/0/id",
            "/result/granted/0/pattern",
            "/result/granted/0/exclusive",
            "/result/granted/0/expires_at",
            "/result/conflicts",
            "/result/conflicts_total",
        ],
    );
    check("BlueLake", &["start"], &["/result/agent/name", "/result/project/key", "/result/inbox/unread"]);
    check(
        "BlueLake",
        &["reserve", "src/a.rs"],
        &[
            "/result/conflicts/0/id",
            "/result/conflicts/0/pattern",
            "/result/conflicts/0/holder",
            "/result/conflicts/0/exclusive",
            "/result/conflicts/0/expires_at",
            "/result/conflicts/0/overlaps",
            "/result/conflicts/0/example",
        ],
    );
    check("BlueLake", &["link", "--target", "RedForest"], &["/result/link/id", "/result/link/state"]);
    let sent = check(
        "BlueLake",
        &["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "b"],
        &[
            "/result/message/id",
            "/result/message/thread",
            "/result/message/recipients/0/name",
            "/result/message/recipients/0/kind",
            "/result/message/recipients/0/state",
        ],
    );
    check(
        "BlueLake",
        &["prepare", "--thread", "bd-1"],
        &["/result/thread/id", "/result/thread/subject", "/result/messages/0/id"],
    );
    let fields =
        ["id", "thread", "from", "subject", "importance", "ack_required", "sent_at", "read_at", "acked_at", "body"];
    let paths: Vec<String> = fields.iter().map(|field| format!("/result/messages/0/{field}")).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).chain(["/result/contested/0", "/result/cursor"]).collect();
    check("RedForest", &["poll", "--bodies"], &paths);
    let id = sent["message"]["id"].to_string();
    check(
        "RedForest",
        &["ack", &id],
        &["/result/acks/0/id", "/result/acks/0/read_at", "/result/acks/0/acked_at", "/result/acks/0/first"],
    );
    check("BlueLake", &["release", "--all"], &["/result/released/0/id", "/result/released/0/pattern"]);
}

#[test]
fn start_returns_the_situation() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    bus.relay("BlueLake", ["reserve", "src/**", "--ttl", "24h"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs", "--ttl", "24h"]).success();
    let args = ["send", "--to", "BlueLake", "--thread", "bd-1", "--subject", "Login", "--body", "b", "--ack-required"];
    let owed = bus.relay("RedForest", args).success().result()["message"]["id"].as_u64().unwrap();
    let plain = bus.send("RedForest", "BlueLake", "bd-1", "Login again");
    bus.relay("BlueLake", ["policy", "contacts_only"]).success();
    bus.relay("GreenHill", ["link", "--target", "BlueLake"]).success();
    bus.advance(hours(13));
    let run = bus.relay("BlueLake", ["start"]).success();
    let result = run.result();
    assert_eq!((result["inbox"]["unread"].as_u64(), result["inbox"]["overdue"].as_u64()), (Some(2), Some(1)));
    assert_eq!(ids(&result["inbox"]["newest"]), [plain, owed], "newest first");
    assert_eq!(ids(&result["acks_owed"]), [owed]);
    assert_eq!(column(&result["contacts_waiting"], "from"), ["GreenHill"]);
    assert_eq!(column(&result["claims"], "pattern"), ["src/**"]);
    assert_eq!(column(&result["contested"], "holder"), ["RedForest"]);
    assert_eq!(result["debt"], json!({"stale_claims": 1, "contested": 1, "acks_overdue": 1, "items": 3}));
    for signal in ["ACK_OVERDUE", "CONTACT_WAITING", "STALE_CLAIM"] {
        assert!(run.signals().contains(&signal.to_owned()), "{signal}");
    }
    // What to do next runs as it stands.
    let next = run.json()["next"].as_array().unwrap().clone();
    assert!(!next.is_empty());
    for line in &next {
        bus.type_line("BlueLake", &text(line), "").success();
    }
    let after = bus.relay("BlueLake", ["start"]).success().result();
    assert_eq!((after["acks_owed"].clone(), after["contacts_waiting"].clone()), (json!([]), json!([])));
}

#[test]
fn start_reserves_paths_on_the_way() {
    let bus = Bus::with(&["RedForest"]);
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let tip = bus.tip();
    bus.relay("BlueLake", ["start", "--path", "src/**", "--path", "../x"]).fails("PATTERN_OUTSIDE_PROJECT");
    assert_eq!(bus.tip(), tip, "all of it happens, or nothing");
    let run = bus.relay("BlueLake", ["start", "--path", "src/**", "--path", "docs"]).success();
    assert_eq!(column(&run.result()["granted"], "pattern"), ["src/**", "docs"]);
    assert_eq!(column(&run.result()["conflicts"], "holder"), ["RedForest"]);
    assert!(run.signals().contains(&"CONTESTED".to_owned()));
    assert_eq!(column(&run.result()["claims"], "pattern"), ["src/**", "docs"]);
}

#[test]
fn prepare_starts_the_agent_where_it_is_not_registered_yet() {
    let bus = Bus::new();
    let run = bus.relay("BlueLake", ["prepare", "--thread", "bd-1", "--program", "editor", "--path", "src"]).success();
    let result = run.result();
    assert_eq!(
        (text(&result["agent"]["name"]), text(&result["agent"]["program"]), text(&result["thread"]["id"])),
        ("BlueLake".into(), "editor".into(), "bd-1".into())
    );
    assert_eq!((result["new"].as_bool(), &result["granted"][0]["reason"]), (Some(true), &json!("bd-1")));
    assert_eq!(bus.kinds(0), ["project_opened", "agent_registered", "reservation_granted", "thread_prepared"]);
    let unnamed = bus.relay("", ["prepare", "--thread", "bd-1"]).success();
    let name = text(&unnamed.result()["agent"]["name"]);
    assert!(unnamed.json()["next"].as_array().unwrap().contains(&json!(format!("export RELAY_AGENT={name}"))));
    assert_eq!(unnamed.result()["new"], false, "the thread is not new");
}

#[test]
fn preparing_again_changes_nothing_and_makes_it_the_current_thread() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
    let tip = bus.tip();
    bus.relay("BlueLake", ["prepare", "--thread", "BD-1"]).success();
    assert_eq!(bus.tip(), tip);
    let current = || text(&bus.relay("", ["whois", "BlueLake"]).success().result()["agents"][0]["thread"]);
    bus.relay("BlueLake", ["prepare", "--thread", "bd-2"]).success();
    assert_eq!(current(), "bd-2");
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success();
    assert_eq!(current(), "bd-1");
}

#[test]
fn a_digest_has_the_last_messages_who_owes_what_and_the_claims() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let mut sent: Vec<u64> =
        (0..12).map(|n| bus.send("BlueLake", "RedForest", "bd-1", &format!("Login {n}"))).collect();
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--body", "b", "--ack-required"];
    sent.push(bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap());
    bus.relay("RedForest", ["reserve", "src", "--reason", "bd-1"]).success();
    bus.relay("RedForest", ["reserve", "docs", "--reason", "bd-2"]).success();
    let digest = bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success().result();
    assert_eq!(
        (text(&digest["thread"]["subject"]), digest["thread"]["messages"].as_u64()),
        ("Login 0".into(), Some(13))
    );
    assert_eq!(ids(&digest["messages"]), sent[3..], "the last ten, oldest first");
    let owed = &digest["acks_owed"][0];
    assert_eq!(
        [&owed["message"], &owed["by"], &owed["to"], &owed["overdue"]],
        [&json!(sent[12]), &json!("RedForest"), &json!("BlueLake"), &json!(false)]
    );
    assert_eq!(column(&digest["reservations"], "pattern"), ["src"]);
    let short = bus.relay("RedForest", ["prepare", "--thread", "bd-1", "--limit", "2"]).success().result();
    assert_eq!(ids(&short["messages"]), sent[11..]);
    bus.relay("RedForest", ["prepare", "--thread", "bd-1", "--limit", "0"]).fails("INPUT_INVALID");
    assert_eq!(bus.inbox("RedForest"), sent, "a digest consumes nothing");
}

#[test]
fn a_digest_spends_its_budget_on_the_newest_bodies() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    for size in [10, 9_000, 9_000] {
        let body = "x".repeat(size);
        bus.relay("BlueLake", ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", &body])
            .success();
    }
    let digest = bus.relay("RedForest", ["prepare", "--thread", "bd-1"]).success().result();
    let shown: Vec<bool> =
        digest["messages"].as_array().unwrap().iter().map(|message| message.get("body").is_some()).collect();
    assert_eq!(shown, [false, false, true], "what is older is named without its body");
}

#[test]
fn the_atoms_do_what_the_macros_do_in_single_steps() {
    let bus = Bus::new();
    bus.relay("BlueLake", ["register"]).success();
    bus.relay("RedForest", ["register"]).success();
    bus.relay("RedForest", ["policy", "open"]).success();
    let shown = bus.relay("", ["whois", "redforest"]).success().result()["agents"][0].clone();
    assert_eq!((text(&shown["name"]), text(&shown["policy"])), ("RedForest".into(), "open".into()));
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login").to_string();
    assert_eq!(bus.relay("RedForest", ["read", &id]).success().result()["acks"][0]["first"], true);
    bus.relay("BlueLake", ["reserve", "src"]).success();
    assert_eq!(column(&bus.relay("BlueLake", ["renew", "--ttl", "2h"]).success().result()["kept"], "pattern"), ["src"]);
    assert_eq!(bus.relay("BlueLake", ["leave", "bd-1"]).success().result()["left"], true);
    assert_eq!(bus.relay("BlueLake", ["leave", "bd-1"]).success().result()["left"], false);
    bus.relay("BlueLake", ["leave", "bd-9"]).fails("THREAD_NOT_FOUND");
    assert_eq!(bus.relay("BlueLake", ["retire"]).success().result()["state"], "retired");
}
