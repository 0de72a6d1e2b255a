//! A request that waits is put down and taken up again: by another look, with another context, in another thread.

use std::sync::atomic::Ordering;

use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::verbs::{Begun, recover};
use serde_json::{Value, json};

use super::alone::{Alone, request, result};
use super::{Mail, each, party, send, write};

fn for_mail(time: &str) -> Value {
    json!({"from": "RedForest", "after": 3, "wait": time})
}

fn if_free(time: &str) -> Value {
    json!({"patterns": ["src/a.rs"], "if_free": true, "wait": time})
}

fn for_contact(time: &str) -> Value {
    json!({"target": "RedForest", "wait": time})
}

/// Runs a test with each of the requests that wait for RedForest.
fn each_wait(time: &str, test: impl Fn(&Alone<'_>, &str, &Value)) {
    for (verb, args) in [("poll", for_mail(time)), ("reserve", if_free(time)), ("link", for_contact(time))] {
        each(|place| test(&Alone::new(place), verb, &args));
    }
}

/// What RedForest does about it.
fn answer(alone: &Alone<'_>, verb: &str) {
    match verb {
        "poll" => {
            let mail = Mail { from: "RedForest", recipients: &["to BlueLake"], ..Mail::default() };
            write(&*alone.place.open(), |tx| send(tx, &mail));
        }
        "reserve" => drop(alone.run("RedForest", "release", &json!({"all": true}))),
        _ => drop(alone.run("RedForest", "link", &json!({"target": "BlueLake", "accept": true}))),
    }
}

/// What BlueLake is told then.
fn check_answer(verb: &str, result: &Value) {
    let (told, expected) = match verb {
        "poll" => (&result["messages"][0]["from"], "RedForest"),
        "reserve" => (&result["granted"][0]["pattern"], "src/a.rs"),
        _ => (&result["link"]["state"], "accepted"),
    };
    assert_eq!(told, expected, "{verb}: {result}");
}

#[test]
fn a_wait_is_taken_up_with_another_context_in_another_thread() {
    each_wait("1h", |alone, verb, args| {
        let mut waiting = alone.wait("BlueLake", verb, args);
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none(), "{verb}");
        answer(alone, verb);
        let done = std::thread::scope(|scope| {
            let look = scope.spawn(|| alone.look("BlueLake", &mut waiting).unwrap());
            look.join().unwrap().unwrap()
        });
        assert_eq!(done.verb, verb);
        check_answer(verb, &result(&done));
    });
}

#[test]
fn a_wait_that_is_dropped_leaves_no_announcement() {
    each_wait("1h", |alone, verb, args| {
        let waiting = alone.wait("BlueLake", verb, args);
        let waits = alone.waits();
        assert_eq!(waits.iter().map(|wait| wait.verb.as_str()).collect::<Vec<_>>(), [verb]);
        assert_eq!((&waits[0].agent, &*waits[0].for_whom), (&party("BlueLake"), &[party("RedForest")][..]));
        drop(waiting);
        assert_eq!(alone.waits(), []);
    });
}

#[test]
fn at_the_deadline_a_poll_is_empty_and_the_others_have_waited_in_vain() {
    each_wait("90s", |alone, verb, args| {
        let mut waiting = alone.wait("BlueLake", verb, args);
        alone.pass(Span::millis(89_999));
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none(), "{verb}");
        assert_eq!(alone.patience(&waiting), Span::millis(1), "{verb}");
        alone.pass(Span::millis(1));
        let ended = alone.look("BlueLake", &mut waiting);
        if verb == "poll" {
            let result = result(&ended.unwrap().unwrap());
            assert_eq!(result, json!({"messages": [], "contested": [], "cursor": 3, "unread": 0}));
            return;
        }
        let refusal = ended.unwrap_err();
        assert_eq!(refusal.code, Code::WaitTimeout);
        assert!(refusal.message.contains("RedForest") && refusal.message.contains("90s"), "{refusal}");
        let expected = if verb == "link" { json!("RedForest") } else { json!(["RedForest"]) };
        assert_eq!(refusal.details[if verb == "link" { "name" } else { "holders" }], expected);
        assert_eq!(refusal.details.get("patterns"), (verb == "reserve").then(|| json!(["src/a.rs"])).as_ref());
    });
}

#[test]
fn what_came_before_the_last_look_is_the_answer() {
    each_wait("0s", |alone, verb, args| {
        let mut waiting = alone.wait("BlueLake", verb, args);
        answer(alone, verb);
        check_answer(verb, &result(&alone.look("BlueLake", &mut waiting).unwrap().unwrap()));
    });
}

#[test]
fn a_deadline_comes_by_the_time_that_only_goes_forward() {
    each(|place| {
        let alone = Alone::new(place);
        let mut waiting = alone.wait("BlueLake", "poll", &for_mail("10m"));
        for day in [Span::days(1), Span::days(-2)] {
            alone.now.fetch_add(day.as_millis(), Ordering::Relaxed);
            assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none());
        }
        alone.ran.store(Span::minutes(10).as_millis(), Ordering::Relaxed);
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_some());
    });
}

#[test]
fn a_wait_is_looked_at_again_when_time_alone_may_end_it() {
    each(|place| {
        let alone = Alone::new(place);
        let mut waiting = alone.wait("BlueLake", "reserve", &if_free("2h"));
        assert_eq!(alone.patience(&waiting), Span::millis(1), "the first look is due at once");
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none());
        assert_eq!(alone.patience(&waiting), Span::seconds(30));
        // RedForest holds it for an hour.
        alone.pass(Span::millis(3_599_993));
        assert_eq!(alone.patience(&waiting), Span::millis(7));
        alone.pass(Span::millis(7));
        check_answer("reserve", &result(&alone.look("BlueLake", &mut waiting).unwrap().unwrap()));
    });
}

#[test]
fn whoever_looks_first_the_one_who_came_first_is_served() {
    each(|place| {
        let alone = Alone::new(place);
        let mut first = alone.wait("BlueLake", "reserve", &if_free("1h"));
        let mut second = alone.wait("GreenHill", "reserve", &if_free("1h"));
        answer(&alone, "reserve");
        assert!(alone.look("GreenHill", &mut second).unwrap().is_none());
        assert_eq!(alone.waits()[1].for_whom, [party("BlueLake")]);
        assert_eq!(alone.patience(&second), Span::seconds(2), "nobody is woken when BlueLake gives up");
        assert!(alone.look("BlueLake", &mut first).unwrap().is_some());
    });
}

#[test]
fn a_claim_that_was_waited_for_is_remembered_under_the_key_that_it_began_with() {
    each(|place| {
        let alone = Alone::new(place);
        let mut waiting = alone.wait("BlueLake", "reserve", &if_free("1h"));
        answer(&alone, "reserve");
        let done = alone.look("BlueLake", &mut waiting).unwrap().unwrap();
        drop(waiting);
        let again = alone.run_as("BlueLake", "BlueLake waits", &request("reserve", &if_free("1m")));
        assert_eq!(result(&again), result(&done));
    });
}

#[test]
fn a_request_for_contact_that_was_remembered_is_waited_for_again() {
    each(|place| {
        let alone = Alone::new(place);
        drop(alone.wait("BlueLake", "link", &for_contact("1h")));
        let mut waiting = alone.wait("BlueLake", "link", &for_contact("1h"));
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none());
        answer(&alone, "link");
        check_answer("link", &result(&alone.look("BlueLake", &mut waiting).unwrap().unwrap()));
    });
}

#[test]
fn whoever_has_something_to_read_waits_for_nobody() {
    each(|place| {
        let alone = Alone::new(place);
        answer(&alone, "poll");
        let begun = alone.begin("BlueLake", "key", &request("poll", &for_mail("1h"))).unwrap();
        assert!(matches!(begun, Begun::Done(_)));
    });
}

#[test]
fn waits_of_one_process_close_no_ring_either() {
    each(|place| {
        let alone = Alone::new(place);
        let _waiting = alone.wait("BlueLake", "poll", &for_mail("1h"));
        alone.pace.store(500, Ordering::Relaxed);
        let asked = request("poll", &json!({"from": "BlueLake", "wait": "1h"}));
        let refusal = alone.begin("RedForest", "key", &asked).err().unwrap();
        assert_eq!(refusal.code, Code::WaitCycle);
        assert_eq!(refusal.details["ring"], json!(["RedForest", "BlueLake", "RedForest"]));
        assert_eq!(alone.waits().len(), 1, "whoever was refused does not wait");
    });
}

#[test]
fn a_request_that_is_made_again_waits_like_the_first_time() {
    each(|place| {
        let alone = Alone::new(place);
        let refusal = Code::WaitTimeout.refuse("not free in time").with("patterns", json!(["src/a.rs"]));
        alone.with("BlueLake", "the first key", |ctx| {
            recover::failure(ctx, &request("reserve", &if_free("1h")), &refusal);
        });
        let kept = || place.open().read().unwrap().kept_failure("uid:1 bluelake", "the first key").unwrap();
        assert!(kept().is_some());
        let retry = json!({"code": "WAIT_TIMEOUT", "retry": true});
        let mut waiting = alone.wait("BlueLake", "recover", &retry);
        assert!(alone.look("BlueLake", &mut waiting).unwrap().is_none());
        assert_eq!(alone.waits()[0].verb, "reserve");
        answer(&alone, "reserve");
        let done = alone.look("BlueLake", &mut waiting).unwrap().unwrap();
        assert_eq!((done.verb, &result(&done)["state"]), ("recover", &json!("recovered")));
        check_answer("reserve", &result(&done)["retried"]["result"]);
        let store = place.open();
        let facts = store.read().unwrap();
        assert!(facts.remembered("bluelake", "the first key").unwrap().is_some());
        assert!(kept().is_none(), "it has succeeded");
    });
}
