//! The disk fails under a server: everybody in the batch that it took is told the truth, and goes on once there is a disk.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::oracle::{Archive, Done, assert_whole};
use super::troubles::Small;
use crate::bus::Bus;
use crate::listening::{Server, terminate};

const SENDERS: usize = 16;

fn name(sender: usize) -> String {
    format!("Sender{sender}")
}

fn send(server: &Server<'_>, sender: usize, key: &str, body: &str) -> Value {
    let letter = json!({"to": ["Reader"], "subject": "Login", "body": body, "thread": "bd-1", "idempotency_key": key});
    server.call(&name(sender), "send", letter)
}

/// Who asks as often as it takes, always under the same key; says what it was refused with on the way.
fn insist(server: &Server<'_>, sender: usize, key: &str, body: &str) -> (Done, Vec<String>) {
    let mut refused = Vec::new();
    loop {
        let answer = send(server, sender, key, body);
        if answer["ok"] == true {
            return (Done::new(&name(sender), key, body, &answer), refused);
        }
        assert_eq!(answer["error"]["idempotency_key"], key, "{answer}");
        refused.push(answer["error"]["code"].as_str().unwrap().to_owned());
        assert!(refused.len() < 1_000, "{answer}");
    }
}

/// Everybody sends at the same time.
fn crowd<T: Send>(count: usize, sends: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let sends = &sends;
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| scope.spawn(move || (0..count).map(|number| sends(sender, number)).collect::<Vec<_>>()))
            .collect();
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect()
    })
}

fn start(server: &Server<'_>) {
    server.does("Reader", "start", json!({}));
    server.does("Reader", "prepare", json!({"thread": "bd-1"}));
    for sender in 0..SENDERS {
        server.does(&name(sender), "prepare", json!({"thread": "bd-1"}));
    }
}

/// However much room is left, a batch is refused or done, and what it was told is true. Small letters find out when they are
/// committed; large ones do not fit into SQLite's memory, and find out in the middle of the batch.
#[test]
fn a_full_disk_refuses_a_batch_and_loses_nothing_of_it() {
    let bus = Bus::new();
    let small = Small::new(&bus, 65_536);
    let server = Server::staged(&bus, &small.stage);
    start(&server);
    let (mut done, mut refused) = (Vec::new(), 0);
    for (pages, bytes) in [(0, 5_000), (3, 5_000), (40, 5_000), (0, 250_000), (100, 250_000)] {
        let key = |sender: usize, number: usize| format!("{pages}-{bytes}-{sender}-{number}");
        let body = "x".repeat(bytes);
        small.fill_but(pages);
        let answers = crowd(2, |sender, number| send(&server, sender, &key(sender, number), &body));
        for answer in answers.iter().filter(|answer| answer["ok"] == false) {
            let code = answer["error"]["code"].as_str().unwrap();
            assert!(["STORE_FULL", "STORE_IO"].contains(&code), "{pages} pages: {answer}");
            refused += 1;
        }
        std::fs::remove_file(small.ballast()).unwrap();
        // The same keys: those who were answered are answered so again, and the others get through.
        let settled = crowd(2, |sender, number| insist(&server, sender, &key(sender, number), &body));
        assert!(settled.iter().all(|(_, refused)| refused.is_empty()), "{pages} pages: {settled:?}");
        for (answer, (done, _)) in answers.iter().zip(&settled) {
            assert!(answer["ok"] == false || answer["result"]["message"]["id"].as_u64() == Some(done.id));
        }
        done.extend(settled.into_iter().map(|(done, _)| done));
    }
    assert!(refused > 0);
    assert_eq!(server.stop(), 0);
    small.relay(&bus, "", &["drain", "--wait"]).success();
    assert_whole(&small.store(&bus), &done, Archive::Complete, "a full disk under a server");
}

/// A sync of the server that now and then does not get through to the disk.
struct BadDisk(Child);

impl BadDisk {
    fn under(server: &Server<'_>) -> Self {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
        strace.args(["-e", "inject=fsync,fdatasync:error=EIO:when=2+5", "-p", &server.pid().to_string()]);
        BadDisk(strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// The server goes on without it.
    fn ends(mut self) {
        terminate(self.0.id());
        self.0.wait().unwrap();
    }
}

#[test]
fn a_sync_that_fails_leaves_a_whole_batch_open_and_the_same_keys_settle_it() {
    let bus = Bus::new();
    let server = Server::start(&bus);
    start(&server);
    let disk = BadDisk::under(&server);
    let was_told = AtomicBool::new(false);
    let mut done = Vec::new();
    for round in 0.. {
        let settled = crowd(4, |sender, number| {
            let key = format!("{round}-{sender}-{number}");
            let (done, refused) = insist(&server, sender, &key, &key);
            assert!(refused.iter().all(|code| code == "STORE_IO"), "{refused:?}");
            was_told.fetch_or(!refused.is_empty(), Ordering::Relaxed);
            done
        });
        done.extend(settled);
        if was_told.load(Ordering::Relaxed) {
            break;
        }
        assert!(round < 100, "no sync has ever failed");
    }
    disk.ends();
    let last = insist(&server, 0, "last", "last");
    assert_eq!(last.1, [""; 0], "there is a disk again");
    done.push(last.0);
    assert_eq!(server.stop(), 0);
    bus.relay("", ["drain", "--wait"]).success();
    assert_whole(&bus.store(), &done, Archive::Complete, "syncs that failed under a server");
}
