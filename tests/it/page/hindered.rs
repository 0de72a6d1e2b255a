//! The page while something is in its way: a disk that does not answer, a store that is being made anew.

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use super::{Person, unescaped};
use crate::bus::Bus;
use crate::listening::Server;

/// How many read at the same time, and how many threads a server has for what blocks.
const READERS: usize = 8;
const THREADS: usize = 24;

/// A file of the store is as if its disk did not answer: whoever reads it is stuck.
fn stick(bus: &Bus, file: &str) {
    let path = bus.store().join("presence").join(file);
    let _ = std::fs::remove_file(&path);
    let path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
}

/// How many threads of a process wait for the other end of a pipe.
fn stuck(pid: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let waits_for =
        |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("wchan")).unwrap_or_default();
    threads.map(waits_for).filter(|what| what == "wait_for_partner").count()
}

/// Looks that nobody waits for any more keep their threads, and let nobody else into these; and a server that is told to go does.
#[test]
fn who_goes_away_before_an_answer_takes_no_thread_from_anybody() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    stick(&bus, "bluelake.seen");
    let head = format!(
        "GET {}/agents HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\n\r\n",
        person.place(),
        server.address(),
        person.cookie
    );
    for round in 0..2 * THREADS / READERS {
        let looks: Vec<TcpStream> = (0..READERS)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address()).unwrap();
                stream.write_all(head.as_bytes()).unwrap();
                stream
            })
            .collect();
        while stuck(server.pid()) < READERS {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(person.get("/").status, 200, "round {round}");
        drop(looks);
        assert_eq!(person.get("/").status, 200, "round {round}");
        assert_eq!(stuck(server.pid()), READERS, "round {round}");
    }
    assert_eq!(server.stop(), 0, "it does not wait for what never ends");
}

/// Another command has moved the store away, and has not yet put the new one in its place; then it dies, and is run again.
#[test]
fn while_its_store_is_made_anew_the_page_says_so_and_goes_on_afterwards() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    std::fs::write(bus.home().join("config.toml"), "[limits]\ngate_wait = \"1s\"\n").unwrap();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let letter = [("to", "BlueLake"), ("subject", "Stop"), ("body", "Wait."), ("thread", "bd-1")];
    let now = || person.get(&format!("{}/", person.place()));
    assert_eq!(now().status, 200);
    let rebuild = ["rebuild", "store", "--from-archive"];
    let mut command = bus.args("", rebuild);
    command.env("FAILPOINTS", "store-amid-aside=pause").stdout(Stdio::null()).stderr(Stdio::null());
    let mut rebuilding = command.spawn().unwrap();
    while bus.store().join("relay.db").exists() {
        assert_eq!(rebuilding.try_wait().unwrap(), None, "it ended too early");
        std::thread::yield_now();
    }
    let meanwhile = [now(), person.post("send", &letter)];
    rebuilding.kill().unwrap();
    rebuilding.wait().unwrap();
    for reply in meanwhile {
        assert_eq!((reply.status, reply.text.contains("STORE_BUSY")), (503, true), "{reply:?}");
        assert!(reply.text.contains("verb rebuild"), "{reply:?}");
    }
    let lost = now();
    assert_eq!((lost.status, lost.text.contains("STORE_DAMAGED")), (500, true), "{lost:?}");
    assert!(unescaped(&lost.text).contains("relay rebuild store --from-archive"), "{lost:?}");
    bus.relay("", rebuild).success();
    assert_eq!(now().status, 200);
    assert!(person.does("send", &letter).contains("Sent #"));
}
