//! I9: `ack_required` makes delivery a receipt contract, and an ack is given once.

use serde_json::Value;

use crate::bus::{Bus, Run, hours, minutes};
use crate::terminal::{column, text};

fn pair() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["policy", "open"]).success();
    }
    bus
}

fn send(bus: &Bus, flags: &[&str]) -> u64 {
    let args =
        [&["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "text"], flags].concat();
    bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap()
}

fn overdue(run: &Run) -> Vec<Value> {
    let json = run.json();
    let late = json["signals"].as_array().unwrap().iter().filter(|signal| signal["code"] == "ACK_OVERDUE");
    late.map(|signal| signal["about"].clone()).collect()
}

#[test]
fn an_ack_sets_read_and_ack_times_once_and_again_returns_the_same() {
    let bus = pair();
    let id = send(&bus, &["--ack-required"]).to_string();
    let first = bus.relay("RedForest", ["ack", &id]).success().result()["acks"][0].clone();
    assert_eq!((&first["first"], &first["read_at"]), (&Value::Bool(true), &first["acked_at"]));
    assert!(first["acked_at"].is_string());
    let tip = bus.tip();
    bus.advance(minutes(5));
    let again = bus.relay("RedForest", ["ack", &id]).success().result()["acks"][0].clone();
    assert_eq!(
        [&again["read_at"], &again["acked_at"], &again["first"]],
        [&first["read_at"], &first["acked_at"], &Value::Bool(false)]
    );
    let read = bus.relay("RedForest", ["ack", &id, "--read"]).success().result()["acks"][0].clone();
    assert_eq!([&read["read_at"], &read["acked_at"]], [&first["read_at"], &first["acked_at"]]);
    assert_eq!(bus.tip(), tip, "repeating writes nothing");
}

#[test]
fn reading_first_keeps_its_own_time() {
    let bus = pair();
    let id = send(&bus, &["--ack-required"]).to_string();
    let read = bus.relay("RedForest", ["ack", &id, "--read"]).success().result()["acks"][0].clone();
    assert_eq!((&read["acked_at"], &read["first"]), (&Value::Null, &Value::Bool(true)));
    bus.advance(minutes(5));
    let acked = bus.relay("RedForest", ["ack", &id]).success().result()["acks"][0].clone();
    assert_eq!((&acked["read_at"], &acked["first"]), (&read["read_at"], &Value::Bool(true)));
    assert_ne!(acked["acked_at"], acked["read_at"]);
}

#[test]
fn several_messages_are_acked_at_once_or_not_at_all() {
    let bus = pair();
    let (one, two) = (send(&bus, &[]).to_string(), send(&bus, &["--ack-required"]).to_string());
    let tip = bus.tip();
    bus.relay("RedForest", ["ack", &one, "999"]).fails("MESSAGE_NOT_FOUND");
    assert_eq!(bus.tip(), tip);
    let hash = format!("#{two}");
    let acks = bus.relay("RedForest", ["ack", &one, &hash, &one]).success().result()["acks"].clone();
    assert_eq!(column(&acks, "first"), [true, true], "a message that asked for none may be acked too");
    assert_eq!(bus.kinds(tip), ["mail_acked"]);
}

#[test]
fn only_a_recipient_acks() {
    let bus = pair();
    bus.relay("GreenHill", ["start"]).success();
    let id = send(&bus, &["--ack-required"]).to_string();
    let before = bus.events(0);
    for agent in ["BlueLake", "GreenHill"] {
        for flags in [["ack", &id].as_slice(), &["ack", &id, "--read"], &["read", &id]] {
            bus.relay(agent, flags).fails("NOT_A_RECIPIENT");
        }
    }
    assert_eq!(bus.events(0), before);
}

#[test]
fn the_sender_sees_how_far_each_copy_has_come() {
    let bus = pair();
    let id = send(&bus, &["--ack-required"]);
    let outbox = || bus.relay("BlueLake", ["look", "outbox"]).success().result()["outbox"][0].clone();
    let state = || text(&outbox()["recipients"][0]["state"]);
    assert_eq!(state(), "stored");
    bus.relay("RedForest", ["poll"]).success();
    assert_eq!(state(), "surfaced");
    bus.relay("RedForest", ["read", &id.to_string()]).success();
    assert_eq!(state(), "read");
    let owed = || bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).success().result()["acks_owed"].clone();
    assert_eq!((column(&owed(), "by"), column(&owed(), "to")), (vec!["RedForest".into()], vec!["BlueLake".into()]));
    bus.relay("RedForest", ["ack", &id.to_string()]).success();
    assert_eq!(state(), "acked");
    let row = &outbox()["recipients"][0];
    assert!(row["read_at"].is_string() && row["acked_at"].is_string(), "each with its time: {row}");
    assert_eq!(owed(), serde_json::json!([]));
}

#[test]
fn an_ack_is_overdue_after_its_time_on_both_sides_until_it_is_given() {
    for (flags, within) in [
        (["--ack-required"].as_slice(), hours(1)),
        (&["--ack-within", "10m"], minutes(10)),
        (&["--ack-required", "--ack-within", "2h"], hours(2)),
    ] {
        let bus = pair();
        let id = send(&bus, flags);
        let mail = bus.relay("RedForest", ["poll"]).success().result()["messages"][0].clone();
        assert_eq!(mail["ack_required"], true, "{flags:?}");
        bus.advance(within);
        for agent in ["BlueLake", "RedForest"] {
            assert_eq!(overdue(&bus.relay(agent, ["poll"]).success()), [0; 0], "{flags:?}");
        }
        bus.advance(1);
        for agent in ["BlueLake", "RedForest"] {
            for verb in ["poll", "start"] {
                assert_eq!(overdue(&bus.relay(agent, [verb]).success()), [id], "{agent} {verb}");
            }
        }
        let situation = bus.relay("RedForest", ["start"]).success().result();
        assert_eq!(
            (situation["inbox"]["overdue"].as_u64(), situation["debt"]["acks_overdue"].as_u64()),
            (Some(1), Some(1))
        );
        let debt = bus.relay("", ["look", "debt"]).success().result()["debt"].clone();
        let item = debt.as_array().unwrap().iter().find(|item| item["kind"] == "ack_overdue").unwrap().clone();
        bus.type_line("RedForest", &text(&item["pay"]), "").success();
        for agent in ["BlueLake", "RedForest"] {
            assert_eq!(overdue(&bus.relay(agent, ["poll"]).success()), [0; 0]);
        }
    }
}

#[test]
fn a_message_that_asked_for_no_ack_is_never_overdue() {
    let bus = pair();
    send(&bus, &[]);
    let mail = bus.relay("RedForest", ["poll"]).success().result()["messages"][0].clone();
    assert_eq!((&mail["ack_required"], mail.get("ack_due")), (&Value::Bool(false), None));
    bus.advance(hours(48));
    assert_eq!(overdue(&bus.relay("BlueLake", ["poll"]).success()), [0; 0]);
}

#[test]
fn reading_gives_no_receipt() {
    let bus = pair();
    let id = send(&bus, &["--ack-required"]);
    bus.relay("RedForest", ["poll", "--read"]).success();
    bus.advance(hours(2));
    assert_eq!(overdue(&bus.relay("RedForest", ["poll"]).success()), [id]);
    assert_eq!(column(&bus.relay("RedForest", ["start"]).success().result()["acks_owed"], "id"), [id]);
}

#[test]
fn what_was_held_is_due_from_its_delivery() {
    let bus = pair();
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let id = send(&bus, &["--hold", "--ack-within", "1h"]);
    bus.advance(hours(5));
    assert_eq!(overdue(&bus.relay("BlueLake", ["poll"]).success()), [0; 0], "nothing is due before it arrived");
    bus.relay("RedForest", ["link", "--target", "BlueLake", "--accept"]).success();
    bus.advance(hours(1));
    assert_eq!(overdue(&bus.relay("RedForest", ["poll"]).success()), [0; 0]);
    bus.advance(1);
    for agent in ["BlueLake", "RedForest"] {
        assert_eq!(overdue(&bus.relay(agent, ["poll"]).success()), [id]);
    }
}

#[test]
fn the_time_to_ack_is_longer_than_nothing() {
    let bus = pair();
    let tip = bus.tip();
    for within in ["0s", "-1h", "soon"] {
        let args = ["send", "--to", "RedForest", "--subject", "S", "--body", "b", "--ack-within", within];
        bus.relay("BlueLake", args).fails("INPUT_INVALID");
    }
    assert_eq!(bus.tip(), tip);
}
