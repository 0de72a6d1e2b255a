//! What relay does not do: wait noisily, write while reading, start more than it needs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::bus::Bus;
use crate::trace::{Trace, trace};

/// The calls from the moment at which a waiter first lies down to the end of its last sleep.
fn calls_while_waiting(trace: &Trace) -> &[String] {
    let sleeps = |call: &String| call.starts_with("poll(") || call.starts_with("ppoll(");
    let armed = trace.calls.iter().position(|call| call.starts_with("inotify_add_watch(")).expect("no watch was armed");
    let first = trace.calls[armed..].iter().position(sleeps).expect("the waiter never slept") + armed;
    let last = trace.calls.iter().rposition(sleeps).unwrap_or(first);
    &trace.calls[first..=last]
}

/// Waits for ten seconds in which nothing happens, on a bus of its own: whoever comes or goes there wakes the others.
fn check_idle(agent: &str, args: &[&str], code: Option<&str>) {
    let bus = Bus::with(&["BlueLake", "RedForest", "GoldPeak"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("BlueLake", ["policy", "contacts_only"]).success();
    bus.relay("GoldPeak", ["link", "--target", "BlueLake"]).success();
    bus.relay("RedForest", ["reserve", "src/b.rs"]).success();
    // The mail and the contest that there are have been shown.
    bus.relay(agent, ["poll"]).success();
    let traced = trace(&bus, &bus.args(agent, args), None);
    let calls = calls_while_waiting(&traced);
    assert!(calls.len() < 20, "{args:?} made {} calls, first {:#?}", calls.len(), &calls[..20]);
    match code {
        None => drop(traced.run.success()),
        Some(code) => drop(traced.run.fails(code)),
    }
}

#[test]
fn waiting_for_ten_seconds_takes_fewer_than_twenty_system_calls() {
    let waits: [(&str, &[&str], Option<&str>); 5] = [
        ("GoldPeak", &["poll", "--wait", "10s"], None),
        // Somebody whose claims are contested waits no less quietly.
        ("BlueLake", &["poll", "--wait", "10s"], None),
        ("RedForest", &["poll", "--wait", "10s", "--from", "BlueLake"], None),
        ("GoldPeak", &["reserve", "src/a.rs", "--if-free", "--wait", "10s"], Some("WAIT_TIMEOUT")),
        ("GoldPeak", &["link", "--target", "BlueLake", "--wait", "10s"], Some("WAIT_TIMEOUT")),
    ];
    std::thread::scope(|scope| {
        for (agent, args, code) in waits {
            scope.spawn(move || check_idle(agent, args, code));
        }
    });
}

type Snapshot = BTreeMap<PathBuf, (SystemTime, Vec<u8>)>;

/// Every file under a folder with its time and content, except presence and SQLite's shared memory, which readers use.
fn snapshot(folder: &Path) -> Snapshot {
    let mut files = Snapshot::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() && name != "presence" {
                folders.push(path);
            } else if path.is_file() && !name.ends_with("-shm") {
                let modified = path.metadata().unwrap().modified().unwrap();
                files.insert(path.clone(), (modified, std::fs::read(&path).unwrap()));
            }
        }
    }
    files
}

#[track_caller]
fn check_unchanged(bus: &Bus, agent: &str, args: &[&str]) {
    let store = bus.store();
    let (store_before, repo_before) = (snapshot(&store), snapshot(&bus.repo()));
    bus.relay(agent, args).success();
    let changed: Vec<_> =
        snapshot(&store).into_iter().filter(|(path, file)| store_before.get(path) != Some(file)).collect();
    let changed: Vec<_> = changed.into_iter().map(|(path, _)| path).collect();
    assert_eq!(changed, Vec::<PathBuf>::new(), "{args:?} wrote to the store");
    assert!(snapshot(&bus.repo()) == repo_before, "{args:?} wrote to the repository");
}

#[test]
fn a_read_writes_nothing_but_presence() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.track(&["src/a.rs"]);
    bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let id = bus.send("RedForest", "BlueLake", "bd-1", "Login").to_string();
    bus.relay("BlueLake", ["poll"]).success();
    let reads: [&[&str]; 22] = [
        &["poll"],
        &["poll", "--all", "--bodies"],
        &["poll", "--thread", "bd-1"],
        &["poll", "--wait", "1ms"],
        &["look", "message", &id],
        &["look", "thread", "bd-1"],
        &["look", "thread"],
        &["look", "agents"],
        &["look", "agent", "RedForest"],
        &["look", "reservations"],
        &["look", "reservations", "src/a.rs"],
        &["look", "contacts"],
        &["look", "outbox"],
        &["look", "events"],
        &["look", "search", "Login"],
        &["look", "status"],
        &["look", "debt"],
        &["look", "playbook", "STORE_BUSY"],
        &["link", "--list"],
        &["log"],
        &["health"],
        &["recover", "CONTACT_REQUIRED", "--dry-run"],
    ];
    for args in reads {
        check_unchanged(&bus, "BlueLake", args);
    }
    bus.relay("BlueLake", ["start"]).success();
    check_unchanged(&bus, "", &["project", "list"]);
}

#[test]
fn a_release_or_an_ack_that_changes_nothing_writes_no_event() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("RedForest", "BlueLake", "bd-1", "Login").to_string();
    bus.relay("BlueLake", ["ack", &id]).success();
    let tip = |bus: &Bus| bus.relay("", ["look", "events"]).success().result()["cursor"].clone();
    let before = tip(&bus);
    bus.relay("BlueLake", ["release", "--all"]).success();
    bus.relay("BlueLake", ["ack", &id]).success();
    bus.relay("BlueLake", ["ack", &id, "--read"]).success();
    bus.relay("BlueLake", ["poll", "--read"]).success();
    assert_eq!(tip(&bus), before);
}

#[test]
fn the_write_ahead_log_stays_small() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["policy", "open"]).success();
    let body = "x".repeat(100 * 1024);
    for round in 0..40 {
        let subject = format!("Part {round}");
        let send = ["send", "--to", "BlueLake", "--thread", "bd-1", "--subject", &subject, "--body", &body];
        bus.relay("RedForest", send).success();
    }
    let log = std::fs::metadata(bus.store().join("relay.db-wal")).unwrap().len();
    // 4 MB were written; a writer that leaves more than 1 MiB folds it into the store.
    assert!(log <= 1024 * 1024 + 512 * 1024, "{log}");
}

/// The threads that a command starts, and whether it ever waited for events as an async runtime does.
fn check_threads(bus: &Bus, agent: &str, args: &[&str], most: usize) {
    let traced = trace(
        bus,
        &bus.args(agent, args),
        Some("trace=execve,clone,clone3,fork,vfork,epoll_create1,epoll_create,io_uring_setup"),
    );
    let started: usize = ["clone", "clone3", "fork", "vfork"].iter().map(|call| traced.count(call)).sum();
    assert!(started <= most, "{args:?} started {started}: {:#?}", traced.calls);
    for call in ["epoll_create", "epoll_create1", "io_uring_setup"] {
        assert_eq!(traced.count(call), 0, "{args:?}");
    }
    traced.run.success();
}

#[test]
fn a_plain_command_starts_no_runtime_and_no_thread_but_for_what_may_never_end() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for args in [&["poll"][..], &["link", "--list"], &["look", "agents"]] {
        check_threads(&bus, "BlueLake", args, 0);
    }
    // A look at files may never come back.
    check_threads(&bus, "BlueLake", &["look", "status"], 1);
    check_threads(&bus, "BlueLake", &["reserve", "src/**"], 1);
    check_threads(&bus, "BlueLake", &["release", "--all"], 1);
}

/// Whoever asks once waits for nothing that async would help with; a server has a crate of its own for it.
#[test]
fn async_stays_where_somebody_listens() {
    for (package, depth) in [("relay-core", "999"), ("relay-store", "999"), ("relay", "1")] {
        let mut command = Command::new(env!("CARGO"));
        command.args([
            "tree",
            "--offline",
            "--locked",
            "-p",
            package,
            "-e",
            "normal,build",
            "--prefix",
            "none",
            "--depth",
            depth,
        ]);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        let packages: Vec<&str> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(packages.contains(&"serde_json"), "{tree}");
        for runtime in
            ["tokio", "async-std", "smol", "mio", "async-executor", "futures-executor", "hyper", "axum", "rmcp"]
        {
            assert!(!packages.contains(&runtime), "{package} depends on {runtime}");
        }
    }
}
