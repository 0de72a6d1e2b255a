//! A token that is revoked opens nothing any more, also not for those who are inside.

use serde_json::json;

use super::changes::listen;
use super::{until, waiting};
use crate::bus::Bus;
use crate::listening::{Server, token};

#[test]
fn whoever_waits_with_it_is_shown_nothing_that_came_after() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let lent = token(&bus, "lent", &[]);
    std::thread::scope(|scope| {
        let wanted = json!({"wait": "60s", "bodies": true});
        let waiter = scope.spawn(|| server.call_with(&lent, "RedForest", "poll", wanted));
        until(|| waiting(&bus) == 1);
        bus.relay("", ["token", "revoke", "lent"]).success();
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", "between us"];
        bus.relay("BlueLake", args).success();
        let answer = waiter.join().unwrap();
        assert_eq!(answer["error"]["code"], "UNAUTHORIZED", "{answer}");
        assert!(!answer.to_string().contains("between us"));
    });
    let inbox = server.does("RedForest", "poll", json!({}));
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1, "it was never shown: {inbox}");
}

#[test]
fn a_stream_that_it_opened_ends() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::of_the_project(&bus);
    let lent = token(&bus, "lent", &[]);
    let mut told = listen(&server, &lent, &json!(["relay://inbox/RedForest"]));
    assert_eq!(told.next().unwrap()["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(told.next().unwrap()["method"], "notifications/resources/updated");
    bus.relay("", ["token", "revoke", "lent"]).success();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let rest: Vec<_> = told.collect();
    assert!(rest.iter().all(|message| message["method"].is_null()), "only the end is left to tell: {rest:?}");
}
