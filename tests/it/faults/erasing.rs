//! Erasing a text, with a fault at every call: the one way by which relay deletes what it has written. Whatever fails, the
//! message stays, its words go in the end, and nothing else does.

use super::calls::{KEY, Scene, Site, Whose, is_of_the_store};
use super::oracle::{Archive, Done, assert_nowhere, assert_whole};
use crate::bus::run;

/// The words that go.
const SUBJECT: &str = "Zebrafish";
const BODY: &str = "quagmirenought";

/// A message that says too much, in the store, in its search index and in the archive.
fn says_too_much(scene: &mut Scene) -> String {
    let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", SUBJECT, "--body", BODY];
    let sent = scene.bus.relay("BlueLake", args).success().result();
    scene.bus.relay("", ["drain", "--wait"]).success();
    scene.erased = &[SUBJECT, BODY];
    sent["message"]["id"].to_string()
}

/// The words are found where they are before they are erased, or the scene would prove nothing.
fn is_found(scene: &Scene) {
    let store = scene.bus.store();
    let found = |word: &str| std::panic::catch_unwind(|| assert_nowhere(&store, &[word], "nothing")).is_err();
    assert!(found(SUBJECT) && found(BODY));
}

#[test]
fn a_redaction_survives_a_fault_at_every_call() {
    let prepare = |scene: &mut Scene| {
        let id = says_too_much(scene);
        is_found(scene);
        scene.args.insert(1, id);
    };
    let args = ["redact", "--why", "it held a token", "--idempotency-key", KEY];
    let scene = Scene::new("BlueLake", "", prepare, &args);
    // The archive is made anew as in the drain below.
    let sites = scene.run("redact", |site| !is_of_the_store(site));
    assert!(sites.iter().any(|site| site.line.contains("archive.anew.git")), "the archive was not made anew");
}

#[test]
fn the_drain_after_a_redaction_survives_a_fault_at_every_call() {
    let prepare = |scene: &mut Scene| {
        let id = says_too_much(scene);
        // Without git the archive has to wait.
        let mut redact = scene.bus.args("BlueLake", ["redact", &id, "--idempotency-key", KEY]);
        redact.env("PATH", "/nonexistent");
        let redacted = run(redact).success();
        let pending = redacted.result()["pending"].to_string();
        assert!(pending.contains("archive: "), "{pending}");
        scene.acknowledged.push(Done::new("BlueLake", KEY, "", &redacted.json()));
        scene.bus.relay("", ["verify"]).success();
        is_found(scene);
    };
    // What git does is as in the first drain, and so is the store.
    let elsewhere = |site: &Site| site.whose != Whose::Relay || is_of_the_store(site);
    let sites = Scene::new("", "", prepare, &["drain", "--wait"]).run("the drain after a redaction", elsewhere);
    for done in ["RENAME_EXCHANGE", "AT_REMOVEDIR"] {
        assert!(sites.iter().any(|site| site.line.contains(done)), "no call with {done}");
    }
}

/// Where the file system cannot swap two names in one step, there are three, and two places to die between them.
#[test]
fn a_swap_in_three_steps_that_died_leaves_nothing_behind() {
    for renames in 1..=2 {
        let mut scene = Scene::new("", "", |_| {}, &["drain", "--wait"]);
        let id = says_too_much(&mut scene);
        let store = scene.bus.store();
        let [archive, anew, aside] = ["git", "anew.git", "anew.aside"].map(|end| store.join(format!("archive.{end}")));
        let old = scene.bus.path("old.git");
        std::fs::rename(&archive, &old).unwrap();
        let redacted = scene.bus.relay("BlueLake", ["redact", &id, "--idempotency-key", KEY]).success().json();
        scene.acknowledged.push(Done::new("BlueLake", KEY, "", &redacted));
        std::fs::rename(&old, &aside).unwrap();
        if renames == 1 {
            std::fs::rename(&archive, &anew).unwrap();
        }
        is_found(&scene);
        scene.bus.relay("", ["drain", "--wait"]).success();
        let after = format!("{renames} of three renames");
        assert_whole(&store, &scene.acknowledged, Archive::Complete, &after);
        assert_nowhere(&store, scene.erased, &after);
    }
}
