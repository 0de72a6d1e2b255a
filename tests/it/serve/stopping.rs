//! The end of a server: what has begun is answered, whoever waits is told, and the archive gets what it lacks.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY};
use crate::listening::{Server, terminate};
use crate::mcp::CURRENT;

fn until(ready: impl Fn() -> bool) {
    while !ready() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn waiting(bus: &Bus) -> usize {
    let entries = fs::read_dir(bus.store().join("presence")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "live")).count()
}

#[test]
fn whoever_waits_is_answered_when_the_server_goes_away() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    std::thread::scope(|scope| {
        let poll = scope.spawn(|| server.does("BlueLake", "poll", json!({"wait": "60s"})));
        until(|| waiting(&bus) == 1);
        terminate(server.pid());
        assert_eq!(poll.join().unwrap()["messages"], json!([]));
    });
    assert_eq!(server.stop_waited(), 0);
}

#[test]
fn the_archive_gets_what_it_lacks() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let mut command = bus.args("", ["serve", "--listen", "127.0.0.1:0"]);
    command.env_remove("RELAY_DRAIN");
    let server = Server::run(&bus, command);
    server.does("BlueLake", "send", json!({"to": ["RedForest"], "subject": "s", "body": "b", "thread": "bd-1"}));
    assert_eq!(server.stop(), 0);
    let archive = bus.store().join("archive.git");
    until(|| archive.join("refs/heads/main").exists() || archive.join("packed-refs").exists());
    bus.relay("", ["drain", "--wait"]).success();
}

/// A client that closes its end is gone, and so is the process that served it.
#[test]
fn over_the_standard_streams_it_ends_with_its_input() {
    let bus = Bus::with(&["BlueLake"]);
    let mut child = bus.args("", ["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Its last request waits for mail that nobody sends.
#[test]
fn what_was_asked_over_the_standard_streams_is_answered_before_the_end() {
    let bus = Bus::with(&["BlueLake"]);
    let mut child = bus.args("", ["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": CURRENT, "io.modelcontextprotocol/clientCapabilities": {}});
    let arguments = json!({"agent": "BlueLake", "wait": "60s"});
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "poll", "arguments": arguments, "_meta": meta}});
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{request}").unwrap();
    until(|| waiting(&bus) == 1);
    drop(input);
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["ok"]), (&json!(7), &json!(true)), "{answer}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn over_the_standard_streams_it_ends_with_its_parent() {
    let bus = Bus::with(&["BlueLake"]);
    let pid = bus.path("pid");
    // The parent goes away; its child's input stays open, since this test holds the other end.
    let script = format!(
        "{RELAY} mcp & echo $! > {}.new; mv {0}.new {0}; read _ < {1}",
        pid.display(),
        bus.path("go").display()
    );
    let mut command = Command::new("sh");
    bus.environment(&mut command);
    rustix::fs::mknodat(rustix::fs::CWD, bus.path("go"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let mut parent = command
        .args(["-c", &script.replace("mcp &", "mcp <&0 &")])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let held = parent.stdin.take();
    until(|| pid.exists());
    let child: u32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    assert!(fs::exists(format!("/proc/{child}")).unwrap());
    fs::File::options().write(true).open(bus.path("go")).unwrap().write_all(b"\n").unwrap();
    parent.wait().unwrap();
    until(|| !fs::exists(format!("/proc/{child}")).unwrap());
    drop(held);
}
