//! Being told that something has changed, without asking.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::listening::Server;
use crate::mcp::CURRENT;

const INBOX: &str = "relay://inbox/RedForest";

/// A stream that tells of changes, message by message.
pub fn listen(server: &Server<'_>, token: &str, uris: &Value) -> impl Iterator<Item = Value> + use<> {
    let meta =
        json!({"io.modelcontextprotocol/protocolVersion": CURRENT, "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"notifications": {"resourceSubscriptions": uris}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).to_string();
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: {CURRENT}\r\nmcp-method: subscriptions/listen\r\n\
         content-length: {}\r\n\r\n",
        token,
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    BufReader::new(stream)
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.strip_prefix("data:").and_then(|data| serde_json::from_str(data.trim()).ok()))
}

#[test]
fn new_mail_reaches_one_who_listens() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::of_the_project(&bus);
    let mut told = listen(&server, &server.token, &json!([INBOX]));
    let method = |message: Option<Value>| message.expect("the stream is open")["method"].clone();
    assert_eq!(method(told.next()), "notifications/subscriptions/acknowledged");
    let updated = "notifications/resources/updated";
    assert_eq!(method(told.next()), updated, "whatever came meanwhile is not missed");
    for number in 0..3 {
        // By another process, and through the server.
        if number % 2 == 0 {
            bus.send("BlueLake", "RedForest", "bd-1", "Login");
        } else {
            server.does(
                "BlueLake",
                "send",
                json!({"to": ["RedForest"], "subject": "Login", "body": "b", "thread": "bd-1"}),
            );
        }
        let change = told.next().expect("the stream is open");
        assert_eq!((&change["method"], &change["params"]["uri"]), (&json!(updated), &json!(INBOX)), "{change}");
    }
    // What changes nothing in the inbox is not told: the next change is that of the mail after it.
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    assert_eq!(method(told.next()), updated);
    assert_eq!(server.stop(), 0);
    let last: Vec<Value> = told.collect();
    assert!(last.iter().all(|message| message["method"].is_null()), "only the end is left to tell: {last:?}");
}

/// How many failed requests are kept for a retry.
fn kept(bus: &Bus) -> i64 {
    let store = rusqlite::Connection::open(bus.store().join("relay.db")).unwrap();
    store.query_row("SELECT count(*) FROM failed_requests", [], |row| row.get(0)).unwrap()
}

/// Whoever listens before it has started is told when it has. Until then it is looked in vain, and nothing is written over it.
#[test]
fn what_cannot_be_read_yet_can_be_listened_for() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::of_the_project(&bus);
    let mut told = listen(&server, &server.token, &json!([INBOX]));
    assert_eq!(told.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
    // Each of these makes it look. A look that were kept as a failure would ring the bell for the next.
    for number in 0..5 {
        server.does("BlueLake", "reserve", json!({"patterns": [format!("src/{number}")]}));
    }
    assert_eq!(kept(&bus), 0);
    bus.relay("RedForest", ["start"]).success();
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
}

/// The file that rings is gone, and another stands in its place.
#[test]
fn a_store_that_was_made_anew_is_heard() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::of_the_project(&bus);
    let mut told = listen(&server, &server.token, &json!(["relay://agents"]));
    assert_eq!(told.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
    let gate = bus.store().join("gate");
    std::fs::rename(&gate, gate.with_extension("before")).unwrap();
    std::fs::remove_file(gate.with_extension("before")).unwrap();
    bus.relay("GreenField", ["start"]).success();
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
    bus.relay("GoldPeak", ["start"]).success();
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
}

#[test]
fn an_address_that_is_none_is_not_acknowledged_and_ends_nothing() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::of_the_project(&bus);
    let mut told = listen(&server, &server.token, &json!(["relay://nothing", INBOX, "file:///x", "relay://inbox/"]));
    let accepted = told.next().expect("the stream is open");
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([INBOX]), "{accepted}");
    for _ in 0..2 {
        let change = told.next().expect("the stream is open");
        assert_eq!(change["params"]["uri"], INBOX, "{change}");
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
    }
}
