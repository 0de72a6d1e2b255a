//! What else goes wrong around a bus: a full disk, a disk that turns read-only, a clock that jumps, a reader that never ends, many
//! who drain at once, a drainer that is killed over its git, a sandbox without processes. Sends go on where they can, each
//! trouble has its class, and all of it heals without a command but the next drain.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::oracle::{Archive, Done, assert_whole, connect, events_of};
use crate::bus::{Bus, EPOCH, Run, days, hours, minutes, run};
use crate::privilege::Stage;

const KEY: &str = "the-one-under-test";

/// A bus, and what was acknowledged on it.
struct Scene {
    bus: Bus,
    done: Vec<Done>,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Scene { bus: Bus::with(&["BlueLake", "RedForest"]), done: Vec::new() };
        scene.sends("K1", "first");
        scene
    }

    fn sends(&mut self, key: &str, body: &str) -> Run {
        let run = self.bus.relay("BlueLake", send(key, body)).success();
        self.done.push(Done::new("BlueLake", key, body, &run.json()));
        run
    }

    fn drains(&self) {
        self.bus.relay("", ["drain", "--wait"]).success();
    }

    fn is_whole(&self, after: &str) {
        self.drains();
        assert_whole(&self.bus.store(), &self.done, Archive::Complete, after);
    }
}

fn send<'a>(key: &'a str, body: &'a str) -> [&'a str; 11] {
    ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body, "--idempotency-key", key]
}

/// A home on a small disk, in a namespace of its own.
pub struct Small {
    pub stage: Stage,
    home: PathBuf,
}

impl Small {
    pub fn new(bus: &Bus, kilobytes: usize) -> Self {
        let (stage, home) = (Stage::new(), bus.path("home"));
        std::fs::create_dir(&home).unwrap();
        stage.mount(&["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "small"], &home);
        Small { stage, home }
    }

    pub fn relay(&self, bus: &Bus, agent: &str, args: &[&str]) -> Run {
        run(self.stage.enter(&bus.args(agent, args)))
    }

    pub fn ballast(&self) -> PathBuf {
        self.stage.look(&self.home).join("ballast")
    }

    /// Takes the disk but for so many pages.
    pub fn fill_but(&self, pages: usize) {
        let mut file = std::fs::File::create(self.ballast()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(pages as u64 * 4096)).unwrap();
    }

    /// The store, copied to where nobody else looks.
    pub fn store(&self, bus: &Bus) -> PathBuf {
        let mut folders = std::fs::read_dir(self.stage.look(&self.home)).unwrap().map(|entry| entry.unwrap().path());
        let store = folders.find(|folder| folder.join("relay.db").exists()).unwrap();
        let copy = bus.path("seen");
        let _ = std::fs::remove_dir_all(&copy);
        assert!(Command::new("cp").arg("-a").arg(store).arg(&copy).status().unwrap().success());
        copy
    }
}

/// The disk is full after one page, after two, and so on, until there is room for everything: so each write that needs a page
/// is the one that fails.
#[test]
fn a_disk_that_is_full_at_any_write_refuses_and_loses_nothing() {
    for args in [&send(KEY, "body")[..], &["drain", "--wait"]] {
        let bus = Bus::new();
        let small = Small::new(&bus, 4096);
        for agent in ["BlueLake", "RedForest"] {
            small.relay(&bus, agent, &["start"]).success();
        }
        let first = small.relay(&bus, "BlueLake", &send("K1", "first")).success().json();
        let mut done = vec![Done::new("BlueLake", "K1", "first", &first)];
        let mut refused = 0;
        for pages in 0.. {
            small.fill_but(pages);
            let agent = if args[0] == "send" { "BlueLake" } else { "" };
            let run = small.relay(&bus, agent, args);
            std::fs::remove_file(small.ballast()).unwrap();
            let after = format!("{} with {pages} pages left: {run:?}", args[0]);
            let store = small.store(&bus);
            if run.status == 0 {
                if args[0] == "send" {
                    done.push(Done::new("BlueLake", KEY, "body", &run.json()));
                }
                small.relay(&bus, "", &["drain", "--wait"]).success();
                assert_whole(&small.store(&bus), &done, Archive::Complete, &after);
                break;
            }
            refused += 1;
            let code = run.error()["code"].as_str().unwrap().to_owned();
            // git does not always say why it could not write.
            let expected =
                if args[0] == "send" { ["STORE_FULL", "STORE_IO"] } else { ["STORE_FULL", "ARCHIVE_UNAVAILABLE"] };
            assert!(expected.contains(&code.as_str()), "{after}");
            if code == "STORE_FULL" && args[0] == "send" {
                assert_eq!(events_of(&store, KEY), 0, "{after}");
            }
            assert_whole(&small.store(&bus), &done, Archive::MayLag, &after);
        }
        assert!(refused > 0, "{} was never refused", args[0]);
    }
}

/// When the last page goes into the log and then the sync fails, the commit may come back with the next reader of the log: the
/// disk is full, and yet nobody knows the outcome.
#[test]
fn a_sync_that_fails_on_a_full_disk_leaves_the_outcome_open() {
    let mut unknown_on_a_full_disk = 0;
    for pages in 10..50 {
        let bus = Bus::new();
        let small = Small::new(&bus, 2048);
        for agent in ["BlueLake", "RedForest"] {
            small.relay(&bus, agent, &["start"]).success();
        }
        small.relay(&bus, "BlueLake", &send("K1", "first")).success();
        small.fill_but(pages);
        let command = bus.args("BlueLake", send(KEY, "body"));
        let mut strace = Command::new("strace");
        let inject = "inject=fsync:error=ENOSPC:when=1";
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", inject, "--"]);
        bus.environment(strace.arg(command.get_program()).args(command.get_args()));
        let refused = run(small.stage.enter(&strace));
        let code = refused.error()["code"].as_str().unwrap().to_owned();
        let is_full = rustix::fs::statvfs(small.stage.look(&small.home)).unwrap().f_bavail == 0;
        let happened = events_of(&small.store(&bus), KEY) > 0;
        assert!(code == "STORE_IO" || code == "STORE_FULL" && !happened, "{pages} pages left: {refused:?}");
        unknown_on_a_full_disk += usize::from(is_full && happened);
        bus.forget();
    }
    assert!(unknown_on_a_full_disk > 0, "the disk was never full just then");
}

#[test]
fn a_disk_that_turns_read_only_and_back_again_loses_nothing() {
    let bus = Bus::new();
    let small = Small::new(&bus, 16_384);
    for agent in ["BlueLake", "RedForest"] {
        small.relay(&bus, agent, &["start"]).success();
    }
    let mut done = Vec::new();
    for round in 0..3 {
        let (key, body) = (format!("K{round}"), format!("body {round}"));
        small.stage.mount(&["-o", "remount,ro"], &small.home);
        small.relay(&bus, "BlueLake", &send(&key, &body)).fails("STORE_READONLY");
        small.relay(&bus, "", &["drain", "--wait"]).fails("STORE_READONLY");
        reads_on(&small, &bus, round);
        small.stage.mount(&["-o", "remount,rw"], &small.home);
        let answer = small.relay(&bus, "BlueLake", &send(&key, &body)).success().json();
        done.push(Done::new("BlueLake", &key, &body, &answer));
        small.relay(&bus, "", &["drain", "--wait"]).success();
        assert_whole(&small.store(&bus), &done, Archive::Complete, "a remount");
    }
}

/// Whatever only reads goes on, also into files that lie elsewhere. What was shown is shown again.
fn reads_on(small: &Small, bus: &Bus, round: usize) {
    let place = |name: &str| bus.path(&format!("{name}-{round}")).to_str().unwrap().to_owned();
    let (copy, markdown) = (place("copy.db"), place("export.md"));
    for args in [&["verify"] as &[&str], &["health"], &["status"], &["log"], &["look", "debt"]] {
        small.relay(bus, "RedForest", args).success();
    }
    for _ in 0..2 {
        let mail = small.relay(bus, "RedForest", &["poll"]).success().result()["messages"].as_array().unwrap().len();
        assert_eq!(mail, round);
    }
    small.relay(bus, "RedForest", &["export", "--output", &markdown]).success();
    small.relay(bus, "", &["backup", &copy]).success();
    let refused = small.relay(bus, "", &["backup", small.home.join("x.db").to_str().unwrap()]);
    assert!(refused.status != 0 && Path::new(&copy).exists() && Path::new(&markdown).exists());
}

#[test]
fn a_reader_that_never_ends_stops_neither_sends_nor_the_archive() {
    let mut scene = Scene::new();
    let reader = connect(&scene.bus.store()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count = || reader.query_row("SELECT count(*) FROM events", [], |row| row.get::<_, u64>(0)).unwrap();
    let seen = count();
    // Enough for a log that somebody would like to fold.
    for round in 0..20 {
        scene.sends(&format!("R{round}"), &format!("{round} {}", "x".repeat(100_000)));
    }
    scene.drains();
    assert_eq!(count(), seen, "the reader sees what it saw");
    let log = || scene.bus.store().join("relay.db-wal").metadata().unwrap().len();
    assert!(log() > 1 << 20, "nothing is folded under a reader");
    reader.execute_batch("ROLLBACK").unwrap();
    scene.drains();
    assert_eq!(log(), 0);
    drop(reader);
    scene.is_whole("a long read");
}

#[test]
fn a_clock_that_jumps_changes_no_order_and_loses_nothing() {
    let mut scene = Scene::new();
    let mut last = scene.done[0].id;
    for (step, jump) in
        [hours(1), -hours(1), days(3653), -days(3653), -hours(1), hours(1), -days(3653)].into_iter().enumerate()
    {
        let before = scene.bus.now();
        scene.bus.advance(jump);
        revive(&scene.bus);
        let run = scene.bus.relay("BlueLake", ["status"]).success();
        scene.sends(&format!("C{step}"), &format!("body {step}"));
        let id = scene.done.last().unwrap().id;
        assert!(id > last, "order comes from the number");
        last = id;
        // What was written by a clock far ahead is not believed; what lies behind is.
        let jumped = run.signals().contains(&"CLOCK_JUMPED".to_owned());
        assert_eq!(jumped, jump < -minutes(5), "{before} and then {jump}");
        scene.is_whole(&format!("a clock that jumped by {jump}"));
    }
    assert_eq!(scene.bus.inbox("RedForest"), scene.done.iter().map(|done| done.id).collect::<Vec<_>>());
    scene.bus.set_clock(EPOCH);
}

/// Whoever was not seen for years has retired, and comes back with `start`.
fn revive(bus: &Bus) {
    for agent in ["BlueLake", "RedForest"] {
        bus.relay(agent, ["start"]).success();
    }
}

#[test]
fn claims_end_by_the_clock_that_is_believed() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let conflicts = |agent: &str, pattern: &str| {
        bus.relay(agent, ["reserve", pattern]).success().result()["conflicts_total"].as_u64().unwrap()
    };
    assert_eq!(conflicts("BlueLake", "src/a.rs"), 0);
    bus.advance(hours(1));
    assert_eq!(conflicts("RedForest", "src/a.rs"), 0, "an hour later it has ended");
    bus.advance(days(3653));
    revive(&bus);
    assert_eq!(conflicts("BlueLake", "src/a.rs"), 0);
    bus.advance(-days(3653));
    revive(&bus);
    assert_eq!(conflicts("RedForest", "src/a.rs"), 0, "a claim from ten years ahead does not stand");
    assert_eq!(conflicts("BlueLake", "src/b.rs"), 0);
    assert_eq!(conflicts("RedForest", "src/b.rs"), 1, "one from now does");
}

#[test]
fn many_who_drain_at_once_write_one_history() {
    let mut scene = Scene::new();
    for round in 0..5 {
        scene.sends(&format!("D{round}"), &format!("body {round}"));
        std::thread::scope(|scope| {
            let drain = || scene.bus.relay("", ["drain", "--wait"]).success().result()["archive"]["number"].clone();
            let drained: Vec<_> = (0..4).map(|_| scope.spawn(drain)).collect();
            for number in drained {
                assert_eq!(number.join().unwrap(), scene.done.last().unwrap().id);
            }
        });
        assert_whole(&scene.bus.store(), &scene.done, Archive::Complete, "four drainers");
    }
}

/// A git that a killed drainer leaves behind may still write. Nobody drains beside it: the lease is its own too.
#[test]
fn nobody_drains_beside_the_git_of_a_drainer_that_was_killed() {
    let mut scene = Scene::new();
    scene.drains();
    scene.sends("K2", "second");
    let bus = &scene.bus;
    // A git that waits on its way to the ref until somebody writes a line to it.
    let (bin, line) = (bus.path("bin"), bus.path("line"));
    std::fs::create_dir(&bin).unwrap();
    assert!(Command::new("mkfifo").arg(&line).status().unwrap().success());
    let path = std::env::var("PATH").unwrap();
    let script = format!(
        "#!/bin/sh\nPATH='{path}'\ncase \" $* \" in *' update-ref '*) echo here >&4; read word < '{}';; esac\nexec git \"$@\"\n",
        line.display()
    );
    executable(&bin.join("git"), &script.replace(">&4", &format!("> '{}'", bus.path("arrived").display())));
    let mut command = bus.args("", ["drain", "--wait"]);
    command.env("PATH", format!("{}:{path}", bin.display())).stdout(Stdio::null());
    let mut drainer = command.spawn().unwrap();
    while !bus.path("arrived").exists() {
        std::thread::yield_now();
    }
    drainer.kill().unwrap();
    drainer.wait().unwrap();
    let answer = bus.relay("", ["drain"]).success().result();
    assert!(answer["archive"].is_null(), "somebody drains beside a git that still writes: {answer}");
    std::fs::OpenOptions::new().write(true).open(&line).unwrap().write_all(b"go\n").unwrap();
    scene.is_whole("a drainer that was killed over its git");
}

fn executable(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// An acknowledgement where the system starts nothing any more from so many threads and processes on.
fn ack_in_a_sandbox(scene: &Scene, from: usize) -> Run {
    let bus = &scene.bus;
    let command = bus.args("RedForest", ["ack", &scene.done[0].id.to_string(), "--idempotency-key", KEY]);
    let trace = bus.path("trace");
    let mut strace = Command::new("strace");
    let inject = format!("inject=clone,clone3,fork,vfork:error=EAGAIN:when={from}+");
    strace.args(["-f", "-qq", "-o"]).arg(&trace).args(["-e", "trace=clone,clone3,fork,vfork", "-e", &inject, "--"]);
    bus.environment(strace.arg(command.get_program()).args(command.get_args()));
    strace.env_remove("RELAY_DRAIN");
    let run = run(strace);
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(text.contains("INJECTED"), "nothing was forbidden: {text}");
    run
}

/// A sandbox that forbids processes: what is asked is done and answered, and a later command drains.
#[test]
fn where_no_process_can_be_started_sends_go_on() {
    let mut scene = Scene::new();
    // The thread that waits for the gate is the first; the drainer would be the second.
    let run = ack_in_a_sandbox(&scene, 2).success();
    scene.done.push(Done::new("RedForest", KEY, "", &run.json()));
    assert!(!scene.bus.store().join("archive.git").exists(), "somebody drained");
    scene.is_whole("a sandbox");
}

#[test]
fn where_no_thread_can_be_started_nothing_is_written_and_it_is_said() {
    let scene = Scene::new();
    ack_in_a_sandbox(&scene, 1).fails("STORE_BUSY");
    assert_eq!(events_of(&scene.bus.store(), KEY), 0);
    scene.is_whole("a sandbox");
}
