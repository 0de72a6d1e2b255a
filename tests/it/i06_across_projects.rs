//! I6: an agent of another project is reached through an approved link, and nothing else leads there.

use serde_json::Value;

use crate::bus::{Bus, days};
use crate::terminal::{column, ids, text};

/// BlueLake works in the repository, RedForest in another project.
struct Pair {
    bus: Bus,
    other: String,
}

impl Pair {
    fn new() -> Self {
        let bus = Bus::with(&["BlueLake"]);
        std::fs::create_dir(bus.path("other")).unwrap();
        let other = std::fs::canonicalize(bus.path("other")).unwrap().to_str().unwrap().to_owned();
        bus.relay("RedForest", ["start", "--project", &other]).success();
        Pair { bus, other }
    }

    fn linked() -> Self {
        let pair = Pair::new();
        pair.here(&["link", "--target", "RedForest@other"]);
        pair.there(&["link", "--target", "BlueLake@repo", "--accept"]);
        pair
    }

    #[track_caller]
    fn here(&self, args: &[&str]) -> Value {
        self.bus.relay("BlueLake", args).success().result()
    }

    #[track_caller]
    fn there(&self, args: &[&str]) -> Value {
        self.bus.relay("RedForest", [args, &["--project", &self.other]].concat()).success().result()
    }
}

const SEND: [&str; 9] =
    ["send", "--to", "RedForest@other", "--thread", "bd-1", "--subject", "Interface", "--body", "b"];

#[test]
fn a_link_is_the_same_on_both_sides() {
    let pair = Pair::linked();
    let of = |links: Value| {
        let link = links["links"][0].clone();
        (text(&link["from"]), text(&link["to"]), text(&link["state"]))
    };
    let red = format!("RedForest@{}", pair.other);
    let blue = format!("BlueLake@{}", pair.bus.key());
    assert_eq!(of(pair.here(&["link", "--list"])), ("BlueLake".into(), red, "accepted".into()));
    assert_eq!(of(pair.there(&["link", "--list"])), (blue, "RedForest".into(), "accepted".into()));
    pair.here(&SEND);
    pair.there(&["send", "--to", "BlueLake@repo", "--subject", "Back", "--thread", "x-1", "--body", "b"]);
    assert_eq!(pair.here(&["poll"])["messages"][0]["thread"], "other.x-1");
}

#[test]
fn a_block_or_a_revoke_on_one_side_counts_on_the_other() {
    for (action, code) in [("--block", "CONTACT_BLOCKED"), ("--revoke", "CONTACT_REQUIRED")] {
        let pair = Pair::linked();
        pair.there(&["link", "--target", "BlueLake@repo", action]);
        pair.bus.relay("BlueLake", SEND).fails(code);
        let pair = Pair::linked();
        pair.here(&["link", "--target", "RedForest@other", action]);
        pair.bus.relay("BlueLake", SEND).fails(code);
        let back = ["send", "--to", "BlueLake@repo", "--subject", "S", "--body", "b", "--project", &pair.other];
        pair.bus.relay("RedForest", back).fails(code);
    }
}

#[test]
fn a_failed_send_left_nothing_in_either_project() {
    let pair = Pair::new();
    let count = |project: &str| pair.bus.relay("", ["status", "--project", project]).success().result()["tip"].clone();
    let before = (count(&pair.bus.key()), count(&pair.other));
    pair.bus.relay("BlueLake", SEND).fails("CONTACT_REQUIRED");
    let mut unknown = SEND;
    unknown[2] = "Nobody@other";
    pair.bus.relay("BlueLake", unknown).fails("RECIPIENT_NOT_FOUND");
    assert_eq!((count(&pair.bus.key()), count(&pair.other)), before);
}

#[test]
fn the_same_key_sends_once_across_projects() {
    let pair = Pair::linked();
    let args = [SEND.as_slice(), &["--idempotency-key", "k1"]].concat();
    let first = pair.here(&args);
    assert_eq!(pair.here(&args), first);
    assert_eq!(ids(&pair.there(&["poll"])["messages"]).len(), 1);
}

#[test]
fn mail_from_another_project_is_chosen_and_waited_for_by_its_full_name() {
    let pair = Pair::linked();
    pair.here(&SEND);
    let from = format!("BlueLake@{}", pair.bus.key());
    assert_eq!(column(&pair.there(&["poll", "--from", &from])["messages"], "from"), [from.as_str()]);
    assert_eq!(column(&pair.there(&["poll", "--from", "BlueLake@repo"])["messages"], "from"), [from]);
    assert_eq!(pair.here(&["look", "outbox"])["outbox"][0]["recipients"][0]["state"], "stored");
}

#[test]
fn a_refusal_or_a_lapse_in_the_other_project_tells_the_sender_of_held_mail() {
    for blocks in [true, false] {
        let pair = Pair::new();
        let held = pair.here(&[SEND.as_slice(), &["--hold"]].concat())["message"]["id"].as_u64().unwrap();
        if blocks {
            pair.there(&["link", "--target", "BlueLake@repo", "--block"]);
        } else {
            for _ in 0..2 {
                pair.bus.advance(days(4));
                pair.here(&["status"]);
            }
        }
        let mail = pair.here(&["poll", "--bodies"]);
        assert_eq!(column(&mail["messages"], "from"), ["relay"], "blocks: {blocks}");
        assert!(text(&mail["messages"][0]["body"]).contains(&format!("#{held}")), "{mail}");
        let copy = pair.here(&["message", &held.to_string()]);
        assert_eq!(copy["message"]["recipients"][0]["state"], "lapsed");
        assert_eq!(pair.here(&["poll"])["messages"].as_array().unwrap().len(), 1, "once");
    }
}

#[test]
fn held_mail_counts_as_delivered_in_both_projects_after_acceptance() {
    let pair = Pair::new();
    let held = pair.here(&[SEND.as_slice(), &["--hold", "--ack-required"]].concat())["message"]["id"].to_string();
    pair.there(&["link", "--target", "BlueLake@repo", "--accept"]);
    let state = || text(&pair.here(&["message", &held])["message"]["recipients"][0]["state"]);
    assert_eq!(state(), "stored");
    let received = ids(&pair.there(&["poll"])["messages"])[0].to_string();
    pair.there(&["ack", &received]);
    assert_eq!(state(), "acked");
}

#[test]
fn a_guest_sees_only_its_own_deliveries() {
    let pair = Pair::linked();
    pair.bus.relay("GreenHill", ["start", "--project", &pair.other]).success();
    let private = pair.there(&["send", "--to", "GreenHill", "--thread", "inner", "--subject", "Inner", "--body", "b"]);
    let id = private["message"]["id"].to_string();
    // A reply into the other project names a message of one's own project, so a number from there leads nowhere.
    let args = ["send", "--to", "RedForest@other", "--reply-to", &id, "--body", "b"];
    let refused = pair.bus.relay("BlueLake", args);
    assert_ne!(refused.status, 0);
    assert_eq!(column(&pair.there(&["thread", "inner"])["messages"], "from"), ["RedForest"]);
}
