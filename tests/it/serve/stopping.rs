//! The end of a server: what has begun is answered, whoever waits is told, and the archive gets what it lacks.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{until, waiting};
use crate::bus::{Bus, RELAY};
use crate::listening::{Server, serve, terminate};
use crate::mcp::CURRENT;

/// How often one looks for a child that has ended before it stays for good.
const LOOKS: usize = 1_000;

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
    // A drainer of its own may be on its way; when the server has gone, nothing is lacking.
    let tip = bus.tip();
    assert_eq!(server.stop(), 0);
    assert_eq!(bus.relay("", ["health"]).success().result()["archive"]["number"], json!(tip));
}

/// What has begun to write is answered, however the end comes.
#[test]
fn what_was_asked_over_the_standard_streams_is_answered_before_it_is_terminated() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let gate = fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let mut child = bus.args("", ["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let letter = json!({"agent": "BlueLake", "to": ["RedForest"], "subject": "s", "body": "b", "thread": "bd-1"});
    writeln!(input, "{}", call(7, "send", &letter)).unwrap();
    let pid = child.id();
    let fds = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    until(|| fds().any(|path| path.ends_with("gate")));
    terminate(pid);
    std::thread::sleep(std::time::Duration::from_millis(50));
    drop(gate);
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["ok"], true, "{answer}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(bus.inbox("RedForest").len(), 1);
    drop(input);
}

/// A client that asks once and goes away has read what it was shown.
#[test]
fn what_was_shown_is_noted_though_the_client_is_gone() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for _ in 0..8 {
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let mut child = bus.args("", ["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{}", call(1, "poll", &json!({"agent": "RedForest", "read": true}))).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        drop(input);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(bus.relay("RedForest", ["poll"]).success().result()["unread"], 0, "{line}");
    }
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": CURRENT, "io.modelcontextprotocol/clientCapabilities": {}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta}})
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
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}", call(7, "poll", &json!({"agent": "BlueLake", "wait": "60s"}))).unwrap();
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

/// How its children are, by the one letter that the kernel has for it.
fn children(pid: u32) -> Vec<char> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("children")).ok());
    let pids = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let states = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    states.filter_map(|stat| stat.rsplit_once(") ")?.1.chars().next()).collect()
}

/// One that drains ends by itself, and leaves nothing in the table of processes.
#[test]
fn a_server_that_has_drained_has_no_dead_children() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let mut command = serve(&bus, &[]);
    command.env_remove("RELAY_DRAIN");
    let server = Server::run(&bus, command);
    server.does("BlueLake", "send", json!({"to": ["RedForest"], "subject": "s", "body": "b", "thread": "bd-1"}));
    let archive = bus.store().join("archive.git");
    until(|| archive.join("refs/heads/main").exists() || archive.join("packed-refs").exists());
    until(|| children(server.pid()).iter().all(|state| *state == 'Z'));
    // Whoever takes note of its end is told at the same moment as everybody.
    let is_gone = (0..LOOKS).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        children(server.pid()).is_empty()
    });
    assert!(is_gone, "it stays in the table of processes");
}
