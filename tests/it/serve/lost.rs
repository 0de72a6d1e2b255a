//! The way to a server breaks: what was not sent did not happen, and what was sent is settled by its key.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use serde_json::Value;

use crate::bus::{Bus, Run, letter, run};
use crate::listening::Server;
use crate::terminal::text;

/// What becomes of an answer on its way back.
#[derive(Clone, Copy)]
enum Back {
    Nothing,
    /// Its head and one byte of what it says.
    Half,
    /// Something in front of the server answers in its place.
    Instead(&'static str),
}

/// Something between a command and the server: it passes one request on whole, and the answer as `back` says.
fn through(server: &Server<'_>, back: Back, args: &[&str]) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = server.args("BlueLake", args);
    command.env("RELAY_URL", format!("http://{}", listener.local_addr().unwrap()));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut near, _) = listener.accept().unwrap();
            let request = message(&mut near);
            let mut far = TcpStream::connect(server.address()).unwrap();
            far.write_all(&request).unwrap();
            let answer = message(&mut far);
            let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let passed = match back {
                Back::Nothing => &[],
                Back::Half => &answer[..head + 5],
                Back::Instead(answer) => answer.as_bytes(),
            };
            near.write_all(passed).unwrap();
            near.shutdown(Shutdown::Both).unwrap();
        });
        run(command)
    })
}

/// One message of HTTP, its head and as much as that announces.
fn message(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "it ends in its head");
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap();
    let mut rest = vec![0; length.trim().parse().unwrap()];
    stream.read_exact(&mut rest).unwrap();
    bytes.extend(rest);
    bytes
}

/// The words that the step adds which makes the request again.
#[track_caller]
fn again(error: &Value) -> Vec<String> {
    let steps = error["playbook"].as_array().unwrap();
    let why = text(&steps.last().unwrap()["why"]);
    let words = why.split_once(" with ").unwrap_or_else(|| panic!("no words are to be added: {error}")).1;
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    assert_eq!(words, ["--idempotency-key", &text(&error["idempotency_key"])]);
    words
}

#[track_caller]
fn is_unknown(run: &Run) -> Value {
    let error = run.json()["error"].clone();
    assert_eq!((run.status, &error["code"]), (6, &Value::from("STORE_IO")), "{}", run.stdout);
    assert!(text(&error["message"]).contains("unknown"), "{error}");
    error
}

#[test]
fn a_message_whose_answer_was_lost_is_delivered_once() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let gateway = "HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 4\r\nconnection: close\r\n\r\nlate";
    for (count, back) in [Back::Nothing, Back::Half, Back::Instead(gateway)].into_iter().enumerate() {
        let error = is_unknown(&through(&server, back, &letter("RedForest")));
        assert_eq!(bus.inbox("RedForest").len(), count + 1, "it took effect");
        let added = again(&error);
        let added: Vec<&str> = added.iter().map(String::as_str).collect();
        let repeated = run(server.args("BlueLake", &[&letter("RedForest")[..], &added].concat())).success().result();
        assert_eq!(repeated["message"]["id"], *bus.inbox("RedForest").last().unwrap(), "the first answer");
        assert_eq!(bus.inbox("RedForest").len(), count + 1, "and not a second time");
    }
}

#[test]
fn what_was_never_sent_did_not_happen_and_has_its_key_too() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "open"]).success();
    let server = Server::start(&bus);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let moved = "HTTP/1.1 301 Moved Permanently\r\nlocation: https://bus.invalid/v1/ask\r\ncontent-length: 0\r\n\r\n";
    let mut towards_nobody = server.args("BlueLake", &letter("RedForest"));
    towards_nobody.env("RELAY_URL", format!("http://{nobody}"));
    let elsewhere = through(&server, Back::Instead(moved), &["poll"]);
    for failed in [run(towards_nobody), elsewhere] {
        let error = failed.json()["error"].clone();
        assert_eq!(error["code"], "STORE_UNREACHABLE", "{error}");
        again(&error);
    }
    assert_eq!(bus.inbox("RedForest").len(), 0);
    // One that the caller chose is the one that is shown.
    let mut chosen = server.args("BlueLake", &["poll", "--idempotency-key", "mine"]);
    chosen.env("RELAY_URL", format!("http://{nobody}"));
    assert_eq!(run(chosen).json()["error"]["idempotency_key"], "mine");
}

/// A key that nobody chose says nothing about which failure is meant.
#[test]
fn a_recovery_through_a_server_finds_the_newest_failure() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "auto"]).success();
    let server = Server::start(&bus);
    let send = [&letter("RedForest")[..], &["--no-recover"]].concat();
    run(server.args("BlueLake", &send)).fails("CONTACT_REQUIRED");
    let lost = is_unknown(&through(&server, Back::Nothing, &["recover", "CONTACT_REQUIRED", "--dry-run"]));
    assert_eq!(lost["idempotency_key"], Value::Null, "the key of a recovery is that of the request: {lost}");
    let recovered = run(server.args("BlueLake", &["recover", "CONTACT_REQUIRED"])).success().result();
    assert_eq!((&recovered["state"], bus.inbox("RedForest").len()), (&Value::from("recovered"), 1), "{recovered}");
}

#[test]
fn a_cycle_whose_claim_was_lost_on_the_way_is_made_again_and_leaves_no_claim() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let cycle = ["reserve", "src/**", "--", "true"];
    let claims = || bus.relay("RedForest", ["reservations"]).success().result()["reservations"].clone();
    is_unknown(&through(&server, Back::Nothing, &cycle));
    assert_eq!(claims().as_array().unwrap().len(), 1, "it took effect");
    let repeated = run(server.args("BlueLake", &cycle)).success().result();
    assert_eq!(repeated["granted"][0]["renewed"], true, "{repeated}");
    assert_eq!(claims(), Value::from(Vec::<Value>::new()));
}
