//! One who runs wild is slowed down, and the others do not notice.

use std::fs;

use serde_json::json;

use super::changes::listen;
use super::{until, waiting};
use crate::bus::Bus;
use crate::listening::{Server, token};

fn limited(limits: &str) -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    fs::write(bus.home().join("config.toml"), format!("[serve]\n{limits}\n")).unwrap();
    bus
}

/// So many at the same time.
const CROWD: usize = 12;

fn crowd<T: Send>(ask: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..CROWD).map(|_| scope.spawn(&ask)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    })
}

#[test]
fn one_who_asks_too_fast_is_told_so_and_another_is_served() {
    let bus = limited("requests_per_second = 2");
    let server = Server::start(&bus);
    let other = token(&bus, "other", &[]);
    let own = format!("Bearer {}", server.token);
    let headers = [("authorization", own.as_str()), ("content-type", "application/json")];
    let sent =
        json!({"command": "poll", "request": {"verb": "poll"}, "project": bus.key(), "agent": "BlueLake"}).to_string();
    let replies = crowd(|| server.request("POST", "/v1/ask", &headers, &sent));
    let told = replies.iter().filter(|reply| reply.status == 429 && reply.json()["line"].is_string());
    let told: Vec<serde_json::Value> =
        told.map(|reply| serde_json::from_str(reply.json()["line"].as_str().unwrap()).unwrap()).collect();
    let refused = told.first().expect("twelve at once are more than two a second");
    assert_eq!((&refused["error"]["code"], &refused["error"]["retryable"]), (&json!("RATE_LIMITED"), &json!(true)));
    let away = replies.iter().find(|reply| reply.status == 429 && reply.json()["error"].is_object());
    let away = away.expect("whoever does not listen is turned away at the door");
    assert_eq!((away.header("retry-after"), away.header("connection")), (Some("1"), Some("close")), "{away:?}");
    assert_eq!(server.call_with(&other, "RedForest", "poll", json!({}))["ok"], true);
}

/// Whatever is asked for, also what no verb answers.
#[test]
fn every_request_counts() {
    let bus = limited("requests_per_second = 1");
    let server = Server::start(&bus);
    let own = format!("Bearer {}", server.token);
    for (method, path) in [("GET", "/health"), ("GET", "/metrics"), ("GET", "/nothing")] {
        let replies = crowd(|| server.request(method, path, &[("authorization", own.as_str())], "").status);
        assert!(replies.contains(&429), "{path}: {replies:?}");
    }
    let listed = crowd(|| server.rpc(&server.token, "tools/list", json!({})));
    assert!(listed.iter().any(|listed| listed["result"].is_null()), "{listed:?}");
}

/// One who is told of changes waits for them.
#[test]
fn subscriptions_are_counted_with_those_who_wait() {
    let bus = limited("waits = 2");
    let server = Server::of_the_project(&bus);
    let uris: Vec<String> = (0..3).map(|number| format!("relay://thread/bd-{number}")).collect();
    let told = listen(&server, &server.token, &json!(uris));
    let last = told.last().expect("it is answered");
    assert!(last["error"]["message"].as_str().unwrap().contains("`waits`"), "{last}");
    // The same one again and again is one.
    let mut told = listen(&server, &server.token, &json!(["relay://agents", "relay://agents", "relay://agents"]));
    assert_eq!(told.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
}

#[test]
fn only_so_many_wait_at_a_time() {
    let bus = limited("waits = 2");
    let server = Server::start(&bus);
    let wanted = json!({"wait": "60s", "after": bus.tip()});
    std::thread::scope(|scope| {
        let wait = || scope.spawn(|| server.call("RedForest", "poll", wanted.clone()));
        let waits = [wait(), wait()];
        until(|| waiting(&bus) == 2);
        let recovery = json!({"code": "WAIT_TIMEOUT", "retry": true});
        let recovers = server.call("RedForest", "recover", recovery);
        assert_eq!(recovers["error"]["code"], "RATE_LIMITED", "it may make a request again that waits: {recovers}");
        let refused = server.call("RedForest", "poll", json!({"wait": "60s"}));
        assert_eq!(refused["error"]["code"], "RATE_LIMITED", "{refused}");
        assert_eq!(server.call("RedForest", "poll", json!({}))["ok"], true, "one who does not wait is answered");
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        for wait in waits {
            assert_eq!(wait.join().unwrap()["ok"], true);
        }
        assert_eq!(server.call("RedForest", "poll", json!({"wait": "1s"}))["ok"], true, "there is room again");
    });
}
