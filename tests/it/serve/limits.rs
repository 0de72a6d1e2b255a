//! One who runs wild is slowed down, and the others do not notice.

use std::fs;

use serde_json::json;

use crate::bus::Bus;
use crate::listening::{Server, token};

fn limited(limits: &str) -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    fs::write(bus.home().join("config.toml"), format!("[serve]\n{limits}\n")).unwrap();
    bus
}

#[test]
fn one_who_asks_too_fast_is_told_so_and_another_is_served() {
    let bus = limited("requests_per_second = 5");
    let server = Server::start(&bus);
    let other = token(&bus, "other", &[]);
    let answers: Vec<_> = (0..12).map(|_| server.call("BlueLake", "poll", json!({}))).collect();
    let refused =
        answers.iter().find(|answer| answer["ok"] == false).expect("twelve at once are more than five a second");
    assert_eq!((&refused["error"]["code"], &refused["error"]["retryable"]), (&json!("RATE_LIMITED"), &json!(true)));
    assert_eq!(server.call_with(&other, "RedForest", "poll", json!({}))["ok"], true);
}

#[test]
fn one_who_does_not_listen_is_turned_away_at_the_door() {
    let bus = limited("requests_per_second = 2");
    let server = Server::start(&bus);
    let own = format!("Bearer {}", server.token);
    let headers = [("authorization", own.as_str()), ("content-type", "application/json")];
    let sent =
        json!({"command": "poll", "request": {"verb": "poll"}, "project": bus.key(), "agent": "BlueLake"}).to_string();
    let replies: Vec<_> = (0..12).map(|_| server.request("POST", "/v1/ask", &headers, &sent)).collect();
    let away = replies.last().unwrap();
    assert_eq!((away.status, away.header("retry-after")), (429, Some("1")), "{away:?}");
}

#[test]
fn only_so_many_wait_at_a_time() {
    let bus = limited("waits = 2");
    let server = Server::start(&bus);
    let wanted = json!({"wait": "60s", "after": bus.tip()});
    std::thread::scope(|scope| {
        let wait = || scope.spawn(|| server.call("RedForest", "poll", wanted.clone()));
        let waits = [wait(), wait()];
        let presence = bus.store().join("presence");
        let waiting = || {
            fs::read_dir(&presence)
                .unwrap()
                .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "live"))
                .count()
        };
        while waiting() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
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
