//! What the server says to whoever looks after it, on the standard error.

use std::io::Read;
use std::process::Stdio;

use serde_json::json;

use crate::bus::Bus;
use crate::listening::{Server, serve};

#[test]
fn what_no_caller_can_mend_is_said_to_whoever_looks_after_it_and_nothing_else() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let (mut out, said) = std::io::pipe().unwrap();
    let mut command = serve(&bus, &[]);
    command.env("FAILPOINTS", "store-before-commit=return").stderr(Stdio::from(said));
    let server = Server::run(&bus, command);
    let letter = |to: &str| json!({"to": [to], "subject": "Login", "body": "between us", "thread": "bd-1"});
    server.does("BlueLake", "look", json!({"what": ["agents"]}));
    assert_eq!(server.call("BlueLake", "ack", json!({"ids": [4711]}))["error"]["code"], "MESSAGE_NOT_FOUND");
    assert_eq!(server.call("BlueLake", "send", letter("RedForest"))["error"]["code"], "STORE_FULL");
    let token = server.token.clone();
    assert_eq!(server.stop(), 0);
    let mut log = String::new();
    out.read_to_string(&mut log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains(&format!("Z send {} STORE_FULL: ", bus.key())), "{log}");
    for secret in ["between us", "Login", &token] {
        assert!(!log.contains(secret), "{log}");
    }
}

/// What is counted says how much was asked and how it ended, and nothing of what was said.
#[test]
fn what_is_measured_names_verbs_and_classes_alone() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    server.does("BlueLake", "poll", json!({}));
    server.call("BlueLake", "ack", json!({"ids": [4711]}));
    let own = format!("Bearer {}", server.token);
    let get = |path: &str| server.request("GET", path, &[("authorization", own.as_str())], "");
    let measured = get("/metrics").text;
    for line in [
        r#"relay_requests_total{verb="poll",outcome="ok"} 1"#,
        r#"relay_requests_total{verb="ack",outcome="MESSAGE_NOT_FOUND"} 1"#,
    ] {
        assert!(measured.contains(line), "{measured}");
    }
    assert!(!measured.contains("BlueLake") && !measured.contains(&bus.key()), "{measured}");
    let health = get("/health").json();
    assert_eq!((&health["ok"], &health["result"]["version"]), (&json!(true), &json!(env!("CARGO_PKG_VERSION"))));
}
