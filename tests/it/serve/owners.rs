//! What one credential may not do to the agents of another: speak through what they left, see what only they see, or take what
//! is theirs.

use serde_json::{Value, json};

use crate::bus::Bus;
use crate::listening::{Server, token};
use crate::terminal::text;

fn letter(to: &str) -> Value {
    json!({"to": [to], "subject": "Login", "body": "b", "thread": "bd-1", "no_recover": true})
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or("ok")
}

/// The owner's BlueLake, Reader and Picky, who is asked first; a guest's Mallory.
fn stage() -> Bus {
    let bus = Bus::with(&["BlueLake", "Reader", "Picky"]);
    bus.relay("Reader", ["policy", "open"]).success();
    bus.relay("Picky", ["policy", "contacts_only"]).success();
    bus
}

#[test]
fn a_request_that_another_made_in_the_same_name_is_not_made_again() {
    let bus = stage();
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    // As an agent of the owner's, as one that is yet to come, and as nobody.
    for (agent, class) in
        [("BlueLake", "IDENTITY_MISMATCH"), ("Later", "AGENT_NOT_REGISTERED"), ("", "AGENT_NOT_REGISTERED")]
    {
        let refused = server.call_with(&guest, agent, "send", letter("Reader"));
        assert_eq!(code(&refused), class, "{refused}");
        let key = text(&refused["error"]["idempotency_key"]);
        let own = if agent.is_empty() { "BlueLake" } else { agent };
        bus.relay(own, ["start"]).success();
        bus.relay(own, ["recover", class, "--retry"]).fails("INPUT_INVALID");
        bus.relay(own, ["recover", class, "--retry", "--idempotency-key", &key]).fails("INPUT_INVALID");
        assert_eq!(code(&server.call(own, "recover", json!({"code": class, "retry": true}))), "INPUT_INVALID");
    }
    assert_eq!(bus.inbox("Reader").len(), 0, "nothing was said in the owner's name");
    // Whoever made it makes it again.
    server.call_with(&guest, "Mallory", "send", letter("Reader"));
    assert_eq!(server.call_with(&guest, "Mallory", "start", json!({}))["ok"], true);
    let retried =
        server.call_with(&guest, "Mallory", "recover", json!({"code": "AGENT_NOT_REGISTERED", "retry": true}));
    assert_eq!(retried["result"]["state"], "recovered", "{retried}");
}

#[test]
fn what_failed_for_another_is_not_seen_and_not_pushed_out() {
    let bus = stage();
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let mut secret = letter("Reader");
    secret["bcc"] = json!(["Picky"]);
    let key = text(&server.call("BlueLake", "send", secret)["error"]["idempotency_key"]);
    let dry = json!({"code": "CONTACT_REQUIRED", "dry_run": true});
    let seen = |token: &str| server.call_with(token, "BlueLake", "recover", dry.clone())["result"].to_string();
    assert!(seen(&server.token).contains("Picky") && seen(&server.token).contains(&key));
    assert!(!seen(&guest).contains("Picky") && !seen(&guest).contains(&key), "{}", seen(&guest));
    for _ in 0..25 {
        assert_eq!(code(&server.call_with(&guest, "BlueLake", "send", letter("Reader"))), "IDENTITY_MISMATCH");
    }
    assert!(seen(&server.token).contains(&key), "the owner's is kept");
}

#[test]
fn what_another_tried_is_no_try_of_the_owners() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    assert_eq!(code(&server.call("BlueLake", "send", letter("RedForest"))), "CONTACT_REQUIRED");
    let tries = json!({"code": "CONTACT_REQUIRED", "set": ["ask=RedForest"]});
    for _ in 0..4 {
        assert_eq!(code(&server.call_with(&guest, "BlueLake", "recover", tries.clone())), "RECOVERY_EXHAUSTED");
    }
    let recovered = server.does("BlueLake", "recover", json!({"code": "CONTACT_REQUIRED"}));
    assert_eq!(recovered["state"], "recovered", "{recovered}");
}
