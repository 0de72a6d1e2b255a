//! Taking the turn, appending, and what is kept beside the history.

use std::sync::mpsc;

use relay_core::domain::event::{Happened, Text, chain_hash, text_hash};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{Crossing, Errand, EventQuery, KeptFailure, Remembered};

use super::{NOW, append, begin, each, errand, later, name, party, register, write};

fn failure(code: &str) -> KeptFailure {
    KeptFailure { code: code.into(), at: NOW, request: "{}".into(), details: "{}".into() }
}

fn remembered(answer: &str) -> Remembered {
    Remembered { verb: "send".into(), salt: [3; 16], request: "digest".into(), answer: answer.into(), number: 1 }
}

fn crossing(key: &str, pid: u32) -> Crossing {
    let project = ProjectKey::resolved("/srv/other");
    Crossing { key: key.into(), project, actor: party("BlueLake"), pid, errand: "{}".into() }
}

#[test]
fn a_writer_sees_the_newest_committed_state_and_what_it_wrote_itself() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        write(&*one, |tx| register(tx, "BlueLake"));
        let mut tx = begin(&*other);
        assert!(tx.agent(&name("BlueLake")).unwrap().is_some());
        register(&mut *tx, "RedForest");
        assert!(tx.agent(&name("RedForest")).unwrap().is_some());
    });
}

#[test]
fn a_deadline_that_passes_is_busy_and_names_the_holder() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        let held = one.begin(Errand { verb: "reserve", agent: "BlueLake", wait: Span::seconds(60), durable: true });
        for wait in [Span::millis(0), Span::millis(20)] {
            let refusal = other.begin(errand(wait)).err().unwrap();
            assert_eq!(refusal.code, Code::StoreBusy);
            let holder = refusal.details["holder"].as_str().unwrap().to_owned();
            for part in [std::process::id().to_string().as_str(), "reserve", "BlueLake"] {
                assert!(holder.contains(part), "{holder}");
                assert!(refusal.message.contains(part), "{refusal}");
            }
        }
        drop(held);
        drop(other.begin(errand(Span::seconds(60))).unwrap());
    });
}

#[test]
fn nobody_else_writes_until_the_transaction_ends_and_whoever_waits_comes_next() {
    each(|place| {
        let one = place.open();
        let mut tx = begin(&*one);
        register(&mut *tx, "BlueLake");
        let (done, told) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let other = place.open();
                let number = write(&*other, |tx| register(tx, "RedForest"));
                done.send(number).unwrap();
            });
            assert!(told.try_recv().is_err(), "somebody else wrote meanwhile");
            let number = register(&mut *tx, "GreenHill");
            tx.commit().unwrap();
            assert_eq!(told.recv().unwrap(), number + 1);
        });
    });
}

#[test]
fn settling_waits_for_its_turn_like_a_writer() {
    each(|place| {
        let (store, other) = (place.open(), place.open());
        let mut tx = begin(&*store);
        register(&mut *tx, "BlueLake");
        let refusal = other.settle(Span::millis(20)).unwrap_err();
        assert_eq!(refusal.code, Code::StoreBusy);
        tx.commit().unwrap();
        other.sync().unwrap();
        other.settle(Span::seconds(10)).unwrap();
        assert_eq!(other.read().unwrap().agents().unwrap().len(), 1);
    });
}

#[test]
fn dropping_a_transaction_undoes_everything() {
    each(|place| {
        let store = place.open();
        let tip = store.read().unwrap().tip().unwrap();
        let mut tx = begin(&*store);
        register(&mut *tx, "BlueLake");
        tx.remember("bluelake", "key", &remembered("first")).unwrap();
        tx.keep_failure("bluelake", "key", &failure("INPUT_INVALID")).unwrap();
        tx.note_crossing(&crossing("key", 7)).unwrap();
        drop(tx);
        for store in [store, place.open()] {
            let facts = store.read().unwrap();
            assert_eq!(facts.tip().unwrap(), tip);
            assert_eq!(facts.agents().unwrap(), []);
            assert_eq!(facts.remembered("bluelake", "key").unwrap(), None);
            assert_eq!(facts.kept_failures("bluelake").unwrap(), []);
            assert_eq!(facts.crossings().unwrap(), []);
        }
    });
}

#[test]
fn what_was_committed_is_there_for_whoever_opens_the_store_next() {
    each(|place| {
        for (agent, durable) in [("BlueLake", true), ("RedForest", false)] {
            let store = place.open();
            let mut tx = store.begin(Errand { durable, ..errand(Span::seconds(60)) }).unwrap();
            register(&mut *tx, agent);
            tx.commit().unwrap();
            drop(store);
            assert!(place.open().read().unwrap().agent(&name(agent)).unwrap().is_some(), "{agent}");
        }
    });
}

#[test]
fn events_get_the_next_numbers_and_chain() {
    each(|place| {
        let store = place.open();
        let first = store.read().unwrap().tip().unwrap();
        let numbers: Vec<u64> =
            write(&*store, |tx| ["BlueLake", "RedForest"].map(|agent| register(tx, agent)).to_vec());
        assert_eq!(numbers, [first.number + 1, first.number + 2]);
        write(&*place.open(), |tx| {
            append(tx, "BlueLake", later(1), Happened::AgentRetired { agent: name("RedForest") })
        });
        let facts = store.read().unwrap();
        let events = facts.events(&EventQuery::between(0, u64::MAX)).unwrap();
        assert_eq!(
            events.iter().map(|event| event.number).collect::<Vec<_>>(),
            (1..=first.number + 3).collect::<Vec<_>>()
        );
        let mut previous = String::new();
        for event in &events {
            let payload = serde_json::to_string(&event.payload).unwrap();
            assert_eq!(event.hash, chain_hash(&first.project, event.number, &previous, &payload), "#{}", event.number);
            previous.clone_from(&event.hash);
        }
        let tip = facts.tip().unwrap();
        assert_eq!((tip.hash, tip.at, tip.project), (previous, Some(later(1)), first.project));
    });
}

#[test]
fn an_event_keeps_who_did_it_when_and_under_which_key() {
    each(|place| {
        let store = place.open();
        write(&*store, |tx| register(tx, "BlueLake"));
        let what = Happened::AgentSuspended { agent: name("BlueLake") };
        let number = write(&*store, |tx| tx.append(later(5), &party("human"), None, what.clone(), Vec::new()).unwrap());
        let event = store.read().unwrap().events(&EventQuery::between(number - 1, number)).unwrap().remove(0);
        assert_eq!((event.payload.at, event.payload.actor, event.payload.key), (later(5), party("human"), None));
        assert_eq!(event.payload.what, what);
        let key =
            store.read().unwrap().events(&EventQuery::between(number - 2, number - 1)).unwrap().remove(0).payload.key;
        assert_eq!(key.as_deref(), Some("key"));
    });
}

#[test]
fn texts_stand_beside_their_event_by_field() {
    each(|place| {
        let store = place.open();
        write(&*store, |tx| register(tx, "BlueLake"));
        let task = Text { field: "task", salt: [9; 16], text: "Fix the login\nwith care".into() };
        assert_eq!(task.hash(), text_hash(&[9; 16], "Fix the login\nwith care"));
        let what = Happened::AgentResumed {
            agent: name("BlueLake"),
            program: None,
            model: None,
            task: Some(task.hash()),
            session: None,
            revived: false,
        };
        let number = write(&*store, |tx| tx.append(NOW, &party("BlueLake"), None, what, vec![task.clone()]).unwrap());
        let facts = store.read().unwrap();
        assert_eq!(facts.texts(number).unwrap(), [("task".to_owned(), task.text.clone())]);
        assert_eq!(facts.texts(number - 1).unwrap(), []);
        assert_eq!(facts.agent(&name("BlueLake")).unwrap().unwrap().task, Some(task.text));
    });
}

#[test]
fn an_answer_is_remembered_for_its_actor_and_key() {
    each(|place| {
        let store = place.open();
        let tip = store.read().unwrap().tip().unwrap().number;
        write(&*store, |tx| tx.remember("bluelake", "key", &remembered("first")).unwrap());
        let facts = store.read().unwrap();
        assert_eq!(facts.remembered("bluelake", "key").unwrap(), Some(remembered("first")));
        assert_eq!(facts.remembered("redforest", "key").unwrap(), None);
        assert_eq!(facts.remembered("bluelake", "other").unwrap(), None);
        assert_eq!(facts.tip().unwrap().number, tip, "it is no event");
    });
}

#[test]
fn the_newest_twenty_failures_of_an_agent_are_kept_newest_first() {
    each(|place| {
        let store = place.open();
        let tip = store.read().unwrap().tip().unwrap().number;
        write(&*store, |tx| tx.keep_failure("redforest", "theirs", &failure("CODE")).unwrap());
        for index in 0..25 {
            let code = format!("CODE_{index}");
            write(&*store, |tx| tx.keep_failure("bluelake", &format!("k{index}"), &failure(&code)).unwrap());
        }
        let kept = || store.read().unwrap().kept_failures("bluelake").unwrap();
        let keys = || kept().into_iter().map(|(key, _)| key).collect::<Vec<_>>();
        assert_eq!(keys(), (5..25).rev().map(|index| format!("k{index}")).collect::<Vec<_>>());
        assert_eq!(kept()[0].1, failure("CODE_24"));

        // The same key again is the newest, and only once.
        write(&*store, |tx| tx.keep_failure("bluelake", "k7", &failure("AGAIN")).unwrap());
        assert_eq!((keys().len(), keys()[0].as_str()), (20, "k7"));
        let facts = store.read().unwrap();
        assert_eq!(facts.kept_failure("bluelake", "k7").unwrap(), Some(failure("AGAIN")));
        assert_eq!(facts.kept_failure("bluelake", "k1").unwrap(), None);
        assert_eq!(facts.kept_failures("redforest").unwrap(), [("theirs".to_owned(), failure("CODE"))]);
        assert_eq!(facts.tip().unwrap().number, tip, "it is outside the history");
        drop(facts);

        write(&*store, |tx| tx.forget_failure("bluelake", "k7").unwrap());
        assert_eq!(keys().len(), 19);
        assert!(!keys().contains(&"k7".to_owned()));

        let day = Span::hours(24).as_millis();
        let after = |millis: i64| KeptFailure { at: NOW.plus(Span::millis(millis)), ..failure("LATER") };
        write(&*store, |tx| tx.keep_failure("greenhill", "a day", &after(day)).unwrap());
        assert_eq!(keys().len(), 19, "they are kept for a day");
        write(&*store, |tx| tx.keep_failure("greenhill", "more", &after(day + 1)).unwrap());
        assert_eq!(keys(), [""; 0], "and then they are gone, whoever's they were");
    });
}

#[test]
fn a_crossing_is_noted_once_per_actor_and_key_until_it_is_dropped() {
    each(|place| {
        let store = place.open();
        let of_red = Crossing { actor: party("RedForest"), ..crossing("one", 7) };
        write(&*store, |tx| {
            tx.note_crossing(&crossing("one", 7)).unwrap();
            tx.note_crossing(&crossing("two", 7)).unwrap();
            tx.note_crossing(&crossing("one", 8)).unwrap();
            tx.note_crossing(&of_red).unwrap();
        });
        let noted = || {
            let mut noted = store.read().unwrap().crossings().unwrap();
            noted.sort_by_key(|crossing| (crossing.key.clone(), crossing.actor.to_string()));
            noted
        };
        assert_eq!(noted(), [crossing("one", 8), of_red.clone(), crossing("two", 7)]);
        write(&*store, |tx| tx.drop_crossing(&party("BlueLake"), "one").unwrap());
        assert_eq!(noted(), [of_red, crossing("two", 7)]);
    });
}
