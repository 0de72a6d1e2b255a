//! What was erased stays erased when an older copy takes the place of the store, as far as anything is left that says so.

use std::fs;
use std::path::PathBuf;

use crate::bus::Bus;
use crate::redact::{archived, holding};
use crate::terminal::text;

const SECRET: &str = "quagmirenought";

/// Who is left to say what was erased after the copy was made.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Witness {
    Store,
    Archive,
    Nobody,
}

fn send(bus: &Bus, subject: &str, body: &str) -> u64 {
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", subject, "--body", body];
    bus.relay("BlueLake", args).success().result()["message"]["id"].as_u64().unwrap()
}

fn is_erased(bus: &Bus, message: u64) -> bool {
    let shown = bus.relay("BlueLake", ["look", "message", &message.to_string()]).success().stdout;
    assert_ne!(shown.contains(SECRET), shown.contains("a token"), "{shown}");
    shown.contains("a token")
}

fn check(witness: Witness, from_backup: bool) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let (message, file, clone) = (send(&bus, SECRET, SECRET), bus.path("shop.db"), bus.path("clone.git"));
    let copy = bus.relay("BlueLake", ["send", "--reply-to", &message.to_string(), "--body", "and so"]).success();
    let copy = copy.result()["message"]["id"].as_u64().unwrap();
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("", ["backup", file.to_str().unwrap()]).success();
    let store = bus.store();
    let (archive, last) = (store.join("archive.git"), bus.tip());
    bus.git_in(&store, &["clone", "-q", "--bare", "archive.git", clone.to_str().unwrap()]);
    send(&bus, &format!("Re: {SECRET}"), "later");
    bus.relay("BlueLake", ["redact", &message.to_string(), "--why", "a token"]).success();
    let known = bus.tip();
    if witness != Witness::Store {
        for name in ["relay.db", "relay.db-wal", "relay.db-shm"] {
            fs::remove_file(store.join(name)).unwrap();
        }
    }
    if witness == Witness::Nobody || !from_backup {
        fs::remove_dir_all(&archive).unwrap();
    }
    let mut words = vec!["rebuild", "store"];
    if from_backup {
        words.extend(["--from-backup", file.to_str().unwrap()]);
    } else {
        fs::rename(&clone, &archive).unwrap();
        words.push("--from-archive");
    }
    let last_word = last.to_string();
    if witness != Witness::Nobody {
        bus.relay("", &words).fails(if from_backup { "INPUT_INVALID" } else { "ARCHIVE_BEHIND" });
    }
    words.extend(["--lose-after", &last_word]);
    let restored = bus.relay("", &words).success().result();
    if witness == Witness::Nobody {
        let missing = text(if from_backup { &restored["missing"] } else { &restored["missing"][0] });
        assert!(missing.contains(&format!("events after #{last};")), "{restored}");
        assert!(missing.ends_with("what they erased is readable again"), "{restored}");
        assert!(!is_erased(&bus, message));
        return;
    }
    assert_eq!(restored["erased_again"], serde_json::json!([message]), "{witness:?} {restored}");
    assert_eq!((&restored["events"], bus.tip()), (&(last + 1).into(), last + 1), "lost were #{last} to #{known}");
    assert!(is_erased(&bus, message));
    let reply = bus.relay("BlueLake", ["look", "message", &copy.to_string()]).success().stdout;
    assert!(!reply.contains(SECRET) && reply.contains("and so"), "{reply}");
    bus.relay("", ["drain", "--wait"]).success();
    assert_eq!(holding(&bus, SECRET), [""; 0].map(PathBuf::from), "{witness:?}");
    assert!(!archived(&bus).contains(SECRET), "{witness:?}");
    assert_eq!(bus.relay("", ["verify"]).success().signals(), [""; 0]);
    // Another message under a number that was erased along is nobody's copy.
    let next = send(&bus, "Other things", "new");
    let next = bus.relay("BlueLake", ["look", "message", &next.to_string()]).success().result();
    assert_eq!(next["message"]["subject"], "Other things");
}

#[test]
fn an_older_copy_does_not_bring_back_what_was_erased_since() {
    check(Witness::Store, true);
    check(Witness::Archive, true);
    check(Witness::Store, false);
}

#[test]
fn where_nobody_can_know_it_is_said() {
    check(Witness::Nobody, true);
    check(Witness::Nobody, false);
}

#[test]
fn what_a_killed_rebuild_left_goes_with_the_next_erasure() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let message = send(&bus, "Login", SECRET);
    let store = bus.store();
    fs::create_dir(store.join("restoring")).unwrap();
    for name in ["relay.anew.db", "relay.anew.db-journal", "relay.anew.db-wal", "restoring/relay.db"] {
        fs::write(store.join(name), SECRET).unwrap();
    }
    let redacted = bus.relay("BlueLake", ["redact", &message.to_string()]).success().result();
    assert_eq!(redacted["pending"], serde_json::json!([]), "{redacted}");
    for name in ["relay.anew.db", "relay.anew.db-journal", "relay.anew.db-wal", "restoring"] {
        assert!(!store.join(name).exists(), "{name}");
    }
}
