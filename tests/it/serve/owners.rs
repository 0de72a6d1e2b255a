//! What one credential may not do to the agents of another: speak through what they left, see what only they see, or take what
//! is theirs.

use std::fs;

use serde_json::{Value, json};

use crate::bus::{Bus, run};
use crate::listening::{Server, token};
use crate::terminal::text;

fn letter(to: &str) -> Value {
    json!({"to": [to], "subject": "Login", "body": "b", "thread": "bd-1", "no_recover": true})
}

/// A request as the command line makes it, with more in it than a tool takes; the reply's status and its answer.
fn ask(server: &Server<'_>, token: &str, mut sent: Value) -> (u16, Value) {
    let verb = sent["request"]["verb"].clone();
    let sent_fields = sent.as_object_mut().unwrap();
    sent_fields.entry("command").or_insert(verb);
    sent_fields.entry("project").or_insert(json!(server.bus.key()));
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let reply = server.request("POST", "/v1/ask", &headers, &sent.to_string());
    let said = reply.json();
    let line = said["line"].as_str().map(|line| serde_json::from_str(line).unwrap());
    (reply.status, line.unwrap_or(said))
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

#[test]
fn an_answer_is_given_again_to_the_credential_that_had_it() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let keyed = |key: &str| json!({"idempotency_key": key});
    // Without a name: the same key is another request.
    let start = |token: &str| text(&server.call_with(token, "", "start", keyed("first"))["result"]["agent"]["name"]);
    let (own, theirs) = (start(&server.token), start(&guest));
    assert_ne!(own, theirs);
    assert_eq!((start(&server.token), start(&guest)), (own.clone(), theirs.clone()), "each its own, again");
    // With a name: it is not theirs, whatever was answered.
    server.does("BlueLake", "start", keyed("second"));
    assert_eq!(code(&server.call_with(&guest, "BlueLake", "start", keyed("second"))), "AGENT_NAME_TAKEN");
    let joins = json!({"thread": "bd-1", "idempotency_key": "third"});
    server.does("BlueLake", "prepare", joins.clone());
    assert_eq!(code(&server.call_with(&guest, "BlueLake", "prepare", joins)), "IDENTITY_MISMATCH");
    // After a rebuild the keys are known to be used, whoever used them.
    assert_eq!(server.stop(), 0);
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    let server = Server::start(&bus);
    for token in [&server.token, &guest] {
        assert_eq!(code(&server.call_with(token, "", "start", keyed("first"))), "IDEMPOTENCY_REUSED");
    }
    assert_eq!(server.call_with(&guest, "", "start", keyed("fourth"))["ok"], true);
}

#[test]
fn a_session_of_another_is_not_taken() {
    let bus = Bus::new();
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let start = |token: &str, agent: Option<&str>| {
        let sent = json!({"request": {"verb": "start"}, "session": "s-1", "agent": agent, "key": "first"});
        ask(&server, token, sent).1
    };
    let own = text(&start(&server.token, None)["result"]["agent"]["name"]);
    assert_eq!(code(&start(&guest, None)), "AGENT_NAME_TAKEN");
    assert_eq!(start(&guest, Some("Mallory"))["ok"], true);
    let poll = json!({"request": {"verb": "poll"}, "session": "s-1"});
    assert_eq!(code(&ask(&server, &guest, poll.clone()).1), "IDENTITY_MISMATCH");
    assert_eq!(ask(&server, &server.token, poll).1["ok"], true, "it still speaks for {own}");
    assert_eq!(code(&start(&guest, None)), "AGENT_NAME_TAKEN", "and its answer is not given away");
}

#[test]
fn a_subagent_has_a_parent_of_its_own_credential() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let register = |token: &str, name: Option<&str>, parent: &str, variable: Option<&str>| {
        let request = json!({"verb": "start", "parent": parent});
        ask(&server, token, json!({"request": request, "agent": name, "variable": variable, "session": "s-1"})).1
    };
    let tip = bus.tip();
    for (name, variable) in [(Some("Helper"), None), (None, Some("BlueLake")), (None, None)] {
        assert_eq!(code(&register(&guest, name, "BlueLake", variable)), "IDENTITY_MISMATCH", "{name:?}");
    }
    assert_eq!(bus.tip(), tip);
    assert_eq!(server.call_with(&guest, "Mallory", "start", json!({}))["ok"], true);
    assert_eq!(register(&guest, Some("Helper"), "Mallory", None)["ok"], true);
    assert_eq!(code(&register(&guest, Some("Helper"), "BlueLake", None)), "IDENTITY_MISMATCH", "nor later");
    assert_eq!(register(&server.token, Some("Aide"), "BlueLake", None)["ok"], true);
}

#[test]
fn whoever_has_no_agent_in_a_project_reads_nothing_of_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let nouns: [&[&str]; 9] = [
        &["message", &id.to_string()],
        &["thread", "bd-1"],
        &["thread"],
        &["agents"],
        &["reservations"],
        &["events"],
        &["search", "Login"],
        &["status"],
        &["debt"],
    ];
    let look = |token: &str, agent: &str, noun: &[&str]| server.call_with(token, agent, "look", json!({"what": noun}));
    let read = |token: &str| {
        let uri = format!("relay://thread/bd-1?project={}", bus.key());
        server.rpc(token, "resources/read", json!({"uri": uri}))
    };
    for noun in nouns {
        let refused = look(&guest, "", noun);
        assert_eq!(code(&refused), "AGENT_NOT_REGISTERED", "{noun:?}: {refused}");
        assert_eq!(look(&server.token, "", noun)["ok"], true, "the owner may: {noun:?}");
    }
    assert!(read(&guest)["error"].is_object() && read(&server.token)["result"].is_object());
    assert_eq!(look(&guest, "", &["playbook", "STORE_BUSY"])["ok"], true, "that is a text of the program's");
    assert_eq!(server.call_with(&guest, "Mallory", "start", json!({}))["ok"], true);
    for noun in nouns {
        for agent in ["", "Mallory"] {
            assert_eq!(look(&guest, agent, noun)["ok"], true, "{agent} {noun:?}");
        }
    }
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["suspend", "Mallory"]).success();
    assert_eq!(
        code(&look(&guest, "", &["agents"])),
        "AGENT_NOT_REGISTERED",
        "it is kept from acting, and from that too"
    );
}

#[test]
fn what_somebody_has_read_is_known_to_its_own_credential_and_the_human() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("", ["token", "human"]).success();
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    assert_eq!(server.call_with(&guest, "Mallory", "start", json!({}))["ok"], true);
    for (from, to) in [("BlueLake", "Mallory"), ("Mallory", "BlueLake"), ("BlueLake", "human")] {
        let whose = |agent: &str| if agent == "Mallory" { guest.clone() } else { server.token.clone() };
        let said = json!({"to": [to], "subject": "Login", "body": "b", "thread": "bd-1", "ack_required": true});
        let id = server.call_with(&whose(from), from, "send", said)["result"]["message"]["id"].as_u64().unwrap();
        if to == "human" {
            bus.relay("human", ["poll", "--read"]).success();
            bus.relay("human", ["ack", &id.to_string()]).success();
        } else {
            server.call_with(&whose(to), to, "poll", json!({"read": true}));
            server.call_with(&whose(to), to, "ack", json!({"ids": [id]}));
        }
    }
    let of_kind = |answer: &Value, kind: &str| {
        let events = answer["result"]["events"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        events.iter().filter(|event| event["kind"] == kind).map(|event| text(&event["actor"])).collect::<Vec<_>>()
    };
    let events = json!({"what": ["events"]});
    let own = server.call("BlueLake", "look", events.clone());
    let anyone = server.call("", "look", events.clone());
    let theirs = server.call_with(&guest, "Mallory", "look", events);
    let all = bus.relay("human", ["look", "events"]).success().json();
    for kind in ["mail_surfaced", "mail_read"] {
        assert_eq!(of_kind(&own, kind), ["BlueLake"], "{kind}");
        assert_eq!(of_kind(&anyone, kind), ["BlueLake"], "{kind}");
        assert_eq!(of_kind(&theirs, kind), ["Mallory"], "{kind}");
        assert_eq!(of_kind(&all, kind), ["Mallory", "BlueLake", "human"], "{kind}");
    }
    for seen in [&own, &anyone, &theirs, &all] {
        assert_eq!(of_kind(seen, "mail_acked"), ["Mallory", "BlueLake", "human"], "an ack is for everybody");
    }
    let exported = bus.text("BlueLake", ["export", "--format", "jsonl"]).success().stdout;
    let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(of_kind(&json!({"result": {"events": lines}}), "mail_read"), ["BlueLake"]);
}

#[test]
fn a_yes_from_elsewhere_takes_no_step_that_is_a_persons() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let credential = bus.home().join("human");
    let recovered = run(server.args("", &["recover", "UNAUTHORIZED", "--yes"])).success().result();
    assert_eq!((&recovered["state"], credential.exists()), (&json!("waits"), false), "{recovered}");
    bus.relay("", ["recover", "UNAUTHORIZED", "--yes"]).success();
    assert!(credential.exists(), "where the stores are it does");
}

#[test]
fn the_human_is_asked_so_much_and_no_more() {
    const MOST: usize = 100;
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let guest = token(&bus, "guest", &["--separate"]);
    let escalate = |token: &str, number: usize| {
        let set = [format!("name=Agent{number}")];
        server.call_with(token, "", "recover", json!({"code": "AGENT_SUSPENDED", "escalate": true, "set": set}))
    };
    let questions = || {
        let names = fs::read_dir(bus.store()).unwrap().map(|entry| entry.unwrap());
        names.filter(|entry| entry.file_name().to_str().unwrap().starts_with("for-the-human.")).collect::<Vec<_>>()
    };
    for number in 0..MOST {
        assert_eq!(escalate(&guest, number)["result"]["state"], "escalated", "{number}");
    }
    for token in [&guest, &server.token] {
        let refused = escalate(token, MOST);
        assert_eq!(code(&refused), "RECOVERY_EXHAUSTED");
        assert!(text(&refused["error"]["message"]).contains("enough to answer"), "{refused}");
    }
    assert_eq!(questions().len(), MOST);
    assert_eq!(escalate(&server.token, 7)["result"]["state"], "escalated", "that was asked before");
    fs::remove_file(questions()[0].path()).unwrap();
    assert_eq!(escalate(&server.token, MOST)["result"]["state"], "escalated", "one was answered");
}

#[test]
fn a_session_and_a_command_are_words() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let tip = bus.tip();
    let long = "x".repeat(201);
    for session in ["", " ", "a\u{1b}[31m", "a\nb", long.as_str()] {
        for request in [json!({"verb": "start"}), json!({"verb": "poll"}), json!({"verb": "prepare", "thread": "bd-1"})]
        {
            let answer = ask(&server, &server.token, json!({"request": request, "session": session})).1;
            let message = text(&answer["error"]["message"]);
            assert!(code(&answer) == "INPUT_INVALID" && message.contains("session"), "{session:?} {answer}");
        }
        if !session.is_empty() {
            let mut here = bus.args("", ["start"]);
            here.env("RELAY_SESSION", session);
            run(here).fails("INPUT_INVALID");
        }
    }
    for command in ["", "poll; rm", "Poll", "--all", "a b c", "a  b", &"x".repeat(21), "po\nll", "poll\u{202e}"] {
        let sent = json!({"request": {"verb": "poll"}, "agent": "BlueLake", "command": command});
        let (status, answer) = ask(&server, &server.token, sent);
        assert_eq!((status, code(&answer)), (400, "INPUT_INVALID"), "{command:?}");
    }
    assert_eq!(bus.tip(), tip);
    for (command, session) in [("poll", "x".repeat(200)), ("project move", "é".repeat(100))] {
        let sent = json!({"request": {"verb": "poll"}, "agent": "BlueLake", "command": command, "session": session});
        assert_eq!(ask(&server, &server.token, sent).1["ok"], true);
    }
}
