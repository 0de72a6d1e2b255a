//! A disk that once failed to take the log: the sync of the next writer proves nothing about what came before, so the next
//! writer writes all of it again.

use std::path::Path;
use std::process::Command;

use super::oracle::{Archive, Done, assert_whole};
use crate::bus::{Bus, Run, run};

fn send<'a>(key: &'a str, body: &'a str) -> [&'a str; 11] {
    ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", body, "--idempotency-key", key]
}

/// A send that does to its log what strace is told, and the calls that it made on the log.
fn traced(bus: &Bus, key: &str, options: &[&str]) -> (Run, String) {
    let out = bus.path("trace");
    let command = bus.args("BlueLake", send(key, key));
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-o"]).arg(&out).args(["-e", "trace=pwrite64,fsync,fdatasync"]).args(options);
    bus.environment(strace.arg("--").arg(command.get_program()).args(command.get_args()));
    let run = run(strace);
    let calls = std::fs::read_to_string(out).unwrap();
    let of_the_log = calls.lines().filter(|line| line.contains("relay.db-wal>"));
    (run, of_the_log.map(|line| format!("{line}\n")).collect())
}

/// How many bytes from the beginning of the log on were written before the first sync.
fn written_again(calls: &str) -> u64 {
    let writes = calls.lines().take_while(|line| !line.contains("sync(")).filter(|line| line.contains("pwrite64("));
    let mut end = 0;
    for write in writes {
        let (before, result) = write.rsplit_once(" = ").unwrap();
        let offset: u64 = before.trim_end_matches(')').rsplit_once(", ").unwrap().1.parse().unwrap();
        if offset <= end {
            end = end.max(offset + result.trim().parse::<u64>().unwrap());
        }
    }
    end
}

fn log_bytes(store: &Path) -> u64 {
    std::fs::metadata(store.join("relay.db-wal")).unwrap().len()
}

#[test]
fn after_a_sync_that_failed_the_whole_log_is_written_again() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let first = bus.relay("BlueLake", send("first", "first")).success();
    let mut done = vec![Done::new("BlueLake", "first", "first", &first.json())];

    let (failed, _) = traced(&bus, "failed", &["-e", "inject=fsync,fdatasync:error=EIO:when=1"]);
    failed.fails("STORE_IO");
    let in_doubt = log_bytes(&bus.store());
    for (key, expected) in [("second", true), ("third", false)] {
        let (answered, calls) = traced(&bus, key, &[]);
        done.push(Done::new("BlueLake", key, key, &answered.success().json()));
        assert_eq!(written_again(&calls) >= in_doubt, expected, "{key}: of {in_doubt} bytes\n{calls}");
    }
    let settled = bus.relay("BlueLake", send("failed", "failed")).success();
    done.push(Done::new("BlueLake", "failed", "failed", &settled.json()));
    bus.relay("", ["drain", "--wait"]).success();
    assert_whole(&bus.store(), &done, Archive::Complete, "a sync that failed");
}

/// What is noted last is believed first: a sync is no proof while the log is in doubt.
#[test]
fn a_disk_that_goes_on_failing_acknowledges_nothing() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for round in 0..3 {
        let (failed, _) = traced(&bus, "the-same", &["-e", "inject=fsync,fdatasync:error=EIO"]);
        failed.fails("STORE_IO");
        assert!(bus.store().join("unsynced").exists(), "round {round}");
    }
    let (answered, _) = traced(&bus, "the-same", &[]);
    let done = [Done::new("BlueLake", "the-same", "the-same", &answered.success().json())];
    assert!(!bus.store().join("unsynced").exists());
    bus.relay("", ["drain", "--wait"]).success();
    assert_whole(&bus.store(), &done, Archive::Complete, "a disk that failed");
}
