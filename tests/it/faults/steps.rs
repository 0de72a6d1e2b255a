//! Between relay's own steps, where no system call marks the place: the process dies there, the step fails, or it is late.

use std::process::Command;

use serde_json::Value;

use super::oracle::{Archive, Done, assert_nowhere, assert_whole, connect, events_of};
use crate::bus::{Bus, Run, run};
use crate::effort::summary;

/// Every place, and the class that the step before it fails with; none where nothing is left to fail.
pub const POINTS: [(&str, Option<&str>); 17] = [
    ("store-after-gate", Some("STORE_BUSY")),
    ("store-after-append", Some("STORE_FULL")),
    ("store-before-commit", Some("STORE_FULL")),
    ("store-after-commit", Some("STORE_IO")),
    ("app-before-answer", None),
    ("app-before-surfaced", None),
    ("archive-after-sync", Some("STORE_IO")),
    ("archive-before-naming", Some("STORE_IO")),
    ("archive-after-import", Some("STORE_IO")),
    ("archive-before-publish", Some("STORE_IO")),
    ("archive-after-publish", Some("STORE_IO")),
    // Rolling up is left to the next drain without a word.
    ("archive-before-removal", Some("")),
    ("archive-amid-removal", Some("")),
    ("archive-before-exchange", Some("STORE_IO")),
    ("archive-after-exchange", Some("STORE_IO")),
    ("store-after-vacuum", Some("STORE_IO")),
    ("store-amid-aside", Some("STORE_IO")),
];

const KEY: &str = "the-one-under-test";
const SIGABRT: i32 = -1;
const SECRET: &str = "quagmirenought";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Dies,
    Fails,
    IsLate,
}

/// A bus with mail in it, and what was acknowledged there.
struct Scene {
    bus: Bus,
    acknowledged: Vec<Done>,
    point: &'static str,
    how: How,
}

impl Scene {
    fn new(point: &'static str, how: How) -> Self {
        let mut scene = Scene { bus: Bus::with(&["BlueLake", "RedForest"]), acknowledged: Vec::new(), point, how };
        scene.sends("K1", "first");
        scene
    }

    fn sends(&mut self, key: &str, body: &str) {
        let answer = self.bus.relay("BlueLake", send(key, body)).success().json();
        self.acknowledged.push(Done::new("BlueLake", key, body, &answer));
    }

    /// One more drain, and there are too many packs. A copy of one serves as many.
    fn fills_packs(&mut self) {
        self.bus.relay("", ["drain", "--wait"]).success();
        let packs = self.bus.store().join("archive.git/objects/pack");
        let endings = ["pack", "idx", "rev"];
        let made = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path());
        let one = made.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "pack")).unwrap();
        for number in 0..50 {
            for ending in endings.iter().filter(|ending| one.with_extension(ending).exists()) {
                let copy = packs.join(format!("pack-{number:040x}.{ending}"));
                std::fs::copy(one.with_extension(ending), copy).unwrap();
            }
        }
        self.sends("last", "body");
    }

    /// A message that is in the archive.
    fn says_too_much(&self) -> String {
        let sent = self.bus.relay("BlueLake", send("KS", SECRET)).success().result();
        self.bus.relay("", ["drain", "--wait"]).success();
        sent["message"]["id"].to_string()
    }

    fn broken(&self, command: Command) -> Run {
        self.broken_after(0, command)
    }

    /// Goes past the place so many times before.
    fn broken_after(&self, times: usize, mut command: Command) -> Run {
        let action = match self.how {
            How::Dies => "return(abort)",
            How::Fails => "return",
            How::IsLate => "sleep(20)",
        };
        command.env("FAILPOINTS", format!("{}={times}*off->{action}", self.point));
        run(command)
    }

    /// What the command said, when the place was reached.
    fn said(&self, run: &Run, class: Option<&str>) -> Option<Value> {
        let place = format!("{} {:?}: {run:?}", self.point, self.how);
        match (self.how, class) {
            (How::IsLate, _) | (How::Fails, Some("")) => assert_eq!(run.status, 0, "{place}"),
            (How::Fails, Some(class)) => assert_eq!(run.error()["code"], class, "{place}"),
            (How::Dies, _) | (How::Fails, None) => assert_eq!(run.status, SIGABRT, "not reached: {place}"),
        }
        (!run.stdout.is_empty()).then(|| run.json())
    }

    /// One drain makes the archive whole.
    fn is_whole(&self) {
        self.bus.relay("", ["drain", "--wait"]).success();
        let after = format!("{} {:?}", self.point, self.how);
        assert_whole(&self.bus.store(), &self.acknowledged, Archive::Complete, &after);
    }
}

fn send<'a>(key: &'a str, body: &'a str) -> [&'a str; 11] {
    ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body, "--idempotency-key", key]
}

/// A send stops at a place of its own: the same key settles it, and an error that is not `STORE_IO` means that nothing
/// happened.
fn a_send_stops(point: &'static str, how: How, class: Option<&str>) {
    let mut scene = Scene::new(point, how);
    let run = scene.broken(scene.bus.args("BlueLake", send(KEY, "body")));
    match scene.said(&run, class) {
        Some(answer) if answer["ok"] == true => scene.acknowledged.push(Done::new("BlueLake", KEY, "body", &answer)),
        Some(answer) if answer["error"]["code"] != "STORE_IO" => {
            assert_eq!(events_of(&scene.bus.store(), KEY), 0, "{answer}");
        }
        _ => {}
    }
    scene.sends(KEY, "body");
    scene.is_whole();
}

/// Mail that was shown but not marked is shown again; mail that was not shown is not marked.
fn a_poll_stops(point: &'static str, how: How, class: Option<&str>) {
    let scene = Scene::new(point, how);
    let run = scene.broken(scene.bus.args("RedForest", ["poll"]));
    let shown = scene.said(&run, class).is_some();
    let surfaced: bool = connect(&scene.bus.store())
        .and_then(|store| store.query_row("SELECT count(surfaced_at) FROM deliveries", [], |row| row.get(0)))
        .unwrap();
    assert_eq!(surfaced, how == How::IsLate, "{point}");
    assert_eq!(shown, how == How::IsLate || point == "app-before-surfaced", "{point}");
    assert_eq!(scene.bus.inbox("RedForest"), [scene.acknowledged[0].id]);
    scene.is_whole();
}

/// A drain stops: the archive is behind or complete, and never ahead or in pieces.
fn a_drain_stops(point: &'static str, how: How, class: Option<&str>) {
    let mut scene = Scene::new(point, how);
    if point.ends_with("removal") {
        scene.fills_packs();
    }
    let run = scene.broken(scene.bus.args("", ["drain", "--wait"]));
    scene.said(&run, class);
    assert_whole(&scene.bus.store(), &scene.acknowledged, Archive::MayLag, &format!("{point} {how:?}"));
    scene.sends("later", "more");
    scene.is_whole();
}

/// The store is rewritten without what was erased, by the redaction itself or by a drain: the next drain finishes it.
fn an_erasure_stops(point: &'static str, how: How, class: Option<&str>) {
    let mut scene = Scene::new(point, how);
    let id = scene.says_too_much();
    let redact = || scene.bus.args("BlueLake", ["redact", &id, "--idempotency-key", KEY]);
    // It has happened; what is left to clean up is told and no failure.
    let run = scene.broken(redact());
    if let Some(answer) = scene.said(&run, class.map(|_| "")) {
        let pending = answer["result"]["pending"].to_string();
        assert_eq!(pending.contains("store: "), how == How::Fails, "{pending}");
    }
    if how != How::IsLate {
        let run = scene.broken(scene.bus.args("", ["drain", "--wait"]));
        scene.said(&run, class);
    }
    let again = run_again(redact());
    scene.acknowledged.push(Done::new("BlueLake", KEY, "", &again));
    scene.is_whole();
    assert_nowhere(&scene.bus.store(), &[SECRET], point);
}

fn run_again(command: Command) -> Value {
    run(command).success().json()
}

/// The old archive and the new one change places: one of them stands there, and what was erased goes in the end.
fn a_swap_stops(point: &'static str, how: How, class: Option<&str>) {
    let mut scene = Scene::new(point, how);
    let id = scene.says_too_much();
    let run = scene.broken(scene.bus.args("", ["rebuild", "archive"]));
    scene.said(&run, class);
    assert_whole(&scene.bus.store(), &scene.acknowledged, Archive::Complete, &format!("{point} {how:?}"));
    let mut redact = scene.bus.args("BlueLake", ["redact", &id, "--idempotency-key", KEY]);
    redact.env("PATH", "/nonexistent");
    scene.acknowledged.push(Done::new("BlueLake", KEY, "", &run_again(redact)));
    let run = scene.broken(scene.bus.args("", ["drain", "--wait"]));
    scene.said(&run, class);
    assert_whole(&scene.bus.store(), &scene.acknowledged, Archive::MayLag, &format!("{point} {how:?}"));
    scene.sends("later", "more");
    scene.is_whole();
    // What somebody asked to keep is theirs to delete.
    for kept in std::fs::read_dir(scene.bus.store()).unwrap().map(|entry| entry.unwrap().path()) {
        if kept.file_name().unwrap().to_string_lossy().starts_with("archive.before-") {
            std::fs::remove_dir_all(kept).unwrap();
        }
    }
    assert_nowhere(&scene.bus.store(), &[SECRET], point);
}

/// The old store is moved away file by file, with a message in its log that nobody else has: it is damaged until the
/// rebuild is done again, and the old one is kept whole.
fn a_rebuild_stops(point: &'static str, how: How, class: Option<&str>) {
    for moved in 0..3 {
        let mut scene = Scene::new(point, how);
        scene.bus.relay("", ["drain", "--wait"]).success();
        let archived = scene.acknowledged[0].id.to_string();
        let alone = scene.bus.relay("BlueLake", send("alone", "only here")).success().result()["message"]["id"].clone();
        let store = scene.bus.store();
        assert_ne!(std::fs::metadata(store.join("relay.db-wal")).unwrap().len(), 0, "it is in the log");
        let rebuild = ["rebuild", "store", "--from-archive", "--lose-after", &archived];
        let run = scene.broken_after(moved, scene.bus.args("", rebuild));
        scene.said(&run, class);
        if how != How::IsLate {
            let damaged = scene.bus.relay("BlueLake", ["poll"]).fails("STORE_DAMAGED").error();
            let advised = damaged["playbook"].to_string();
            assert!(advised.contains(r#""rebuild","store","--from-archive""#), "{advised}");
            scene.bus.relay("", &rebuild[..3]).success();
        }
        let kept = rusqlite::Connection::open(store.join("relay.before-1.db")).unwrap();
        let body = "SELECT text FROM texts WHERE event = ?1 AND field = 'body'";
        let body: String = kept.query_row(body, [alone.as_u64()], |row| row.get(0)).unwrap();
        assert_eq!(body, "only here", "{point} {how:?} after {moved}");
        scene.sends("later", "more");
        scene.is_whole();
    }
}

#[test]
fn nothing_is_lost_or_done_twice_between_two_steps() {
    for (point, class) in POINTS {
        for how in [How::Dies, How::Fails, How::IsLate] {
            if point.ends_with("exchange") {
                a_swap_stops(point, how, class);
            } else if point == "store-after-vacuum" {
                an_erasure_stops(point, how, class);
            } else if point == "store-amid-aside" {
                a_rebuild_stops(point, how, class);
            } else if point.starts_with("archive-") {
                a_drain_stops(point, how, class);
            } else if point == "app-before-surfaced" {
                a_poll_stops(point, how, class);
            } else {
                a_send_stops(point, how, class);
                if point == "app-before-answer" {
                    a_poll_stops(point, how, class);
                }
            }
        }
    }
    summary(&format!(
        "{} places between steps, each with a death, an error and a delay: 0 lost, 0 twice",
        POINTS.len()
    ));
}
