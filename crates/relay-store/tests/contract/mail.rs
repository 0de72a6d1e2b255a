//! Messages and their copies as they are read back.

use relay_core::domain::delivery::State;
use relay_core::domain::event::{Happened, Number, Twin};
use relay_core::domain::limits::DUPLICATE_AMONG;
use relay_core::domain::message::{Importance, Message};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::store::{EventQuery, InboxQuery, NEWEST, Store, Traffic, Tx};

use super::{Mail, NOW, Opened, Place, append, each, ids, later, party, register, send, thread, write};

/// A store in which BlueLake, RedForest and GreenHill are registered.
fn people(place: &dyn Place) -> Box<dyn Opened> {
    let store = place.open();
    write(&*store, |tx| ["BlueLake", "RedForest", "GreenHill"].map(|agent| register(tx, agent)));
    store
}

fn inbox(store: &dyn Store, change: impl FnOnce(&mut InboxQuery<'_>)) -> Vec<Number> {
    let red = party("RedForest");
    let mut query = InboxQuery::unread(&red, 100);
    change(&mut query);
    ids(&store.read().unwrap().inbox(&query).unwrap(), |message| message.id)
}

/// Accepts a request by BlueLake to RedForest that delivers these held messages.
fn accept(tx: &mut dyn Tx, delivers: &[Number]) -> Number {
    let (from, to, expires_at) = (party("BlueLake"), party("RedForest"), NOW.plus(Span::days(7)));
    let asked = Happened::LinkRequested { from, to: to.clone(), why: None, ttl_ms: 1, expires_at };
    let link = append(tx, "BlueLake", NOW, asked);
    let what = Happened::LinkAccepted { link, by: to, by_policy: false, expires_at, delivers: delivers.to_vec() };
    append(tx, "RedForest", later(60), what)
}

#[test]
fn the_inbox_is_in_the_order_of_delivery_and_takes_filters() {
    each(|place| {
        let store = people(place);
        let held = Mail { recipients: &["held to RedForest"], ..Mail::default() };
        let (waits, plain, urgent, green, accepted) = write(&*store, |tx| {
            let waits = send(tx, &held);
            let plain = send(tx, &Mail::default());
            let urgent = send(tx, &Mail { importance: Importance::Urgent, thread: "bd-2", ..Mail::default() });
            let green = send(tx, &Mail { from: "GreenHill", ..Mail::default() });
            send(tx, &Mail { recipients: &["to GreenHill"], ..Mail::default() });
            (waits, plain, urgent, green, accept(tx, &[waits]))
        });
        assert_eq!(inbox(&*store, |_| {}), [plain, urgent, green, waits]);
        assert_eq!(inbox(&*store, |query| query.after = plain), [urgent, green, waits]);
        assert_eq!(inbox(&*store, |query| query.after = accepted), [0; 0]);
        let (two, from) = (thread("BD-2"), party("GreenHill"));
        let red = party("RedForest");
        let facts = store.read().unwrap();
        let found = |query: &InboxQuery<'_>| ids(&facts.inbox(query).unwrap(), |message| message.id);
        assert_eq!(found(&InboxQuery { thread: Some(&two), ..InboxQuery::unread(&red, 9) }), [urgent]);
        assert_eq!(found(&InboxQuery { from: Some(&from), ..InboxQuery::unread(&red, 9) }), [green]);
        assert_eq!(found(&InboxQuery { urgent: true, ..InboxQuery::unread(&red, 9) }), [urgent]);
        let bodies = facts.inbox(&InboxQuery { bodies: true, ..InboxQuery::unread(&red, 1) }).unwrap();
        assert_eq!((bodies[0].body.as_deref(), bodies[0].subject.as_deref()), (Some("text"), Some("Login")));
        let bare = facts.inbox(&InboxQuery::unread(&red, 1)).unwrap();
        assert_eq!(bare[0].body, None);
    });
}

#[test]
fn mail_that_one_event_delivered_is_never_split_over_two_pages() {
    each(|place| {
        let store = people(place);
        let held = Mail { recipients: &["held to RedForest"], ..Mail::default() };
        let (group, single, last) = write(&*store, |tx| {
            let group = [send(tx, &held), send(tx, &held), send(tx, &held)];
            let single = send(tx, &Mail::default());
            accept(tx, &group);
            (group, single, send(tx, &Mail::default()))
        });
        let whole = [single, group[0], group[1], group[2], last];
        for (limit, count) in [(1, 1), (2, 1), (3, 1), (4, 4), (5, 5), (100, 5)] {
            assert_eq!(inbox(&*store, |query| query.limit = limit), whole[..count], "a page of {limit}");
        }
        for (limit, count) in [(1, 3), (2, 3), (3, 3), (4, 4)] {
            let page = inbox(&*store, |query| (query.after, query.limit) = (single, limit));
            assert_eq!(page, whole[1..=count], "a page of {limit} after the first");
        }
    });
}

#[test]
fn what_was_surfaced_or_read_is_known_and_counted() {
    each(|place| {
        let store = people(place);
        let messages = write(&*store, |tx| [(); 3].map(|()| send(tx, &Mail::default())));
        let red = party("RedForest");
        let unread = |most| store.read().unwrap().unread(&red, most).unwrap();
        assert_eq!((unread(100), unread(2), unread(0)), (3, 2, 0));
        write(&*store, |tx| {
            let surfaced = vec![messages[0], messages[1]];
            let what = Happened::MailSurfaced { agent: red.clone(), messages: surfaced, contested: vec![] };
            append(tx, "RedForest", later(1), what);
            let read = Happened::MailRead { agent: red.clone(), messages: vec![messages[1]] };
            append(tx, "RedForest", later(2), read);
        });
        assert_eq!(unread(100), 2);
        assert_eq!(inbox(&*store, |_| {}), [messages[0], messages[2]]);
        assert_eq!(inbox(&*store, |query| query.with_read = true), messages);
        assert_eq!(inbox(&*store, |query| query.never_surfaced = true), [messages[2]]);
        let state = |id| store.read().unwrap().message(id).unwrap().unwrap().deliveries[0].state();
        assert_eq!(messages.map(state), [State::Surfaced, State::Read, State::Stored]);
        // The first time counts.
        write(&*store, |tx| {
            let again = Happened::MailAcked { agent: red.clone(), messages: vec![messages[1]] };
            append(tx, "RedForest", later(3), again);
        });
        let copy = store.read().unwrap().message(messages[1]).unwrap().unwrap().deliveries.remove(0);
        let times = (copy.surfaced_at, copy.read_at, copy.acked_at);
        assert_eq!(times, (Some(later(1)), Some(later(2)), Some(later(3))));
    });
}

#[test]
fn acks_are_owed_and_awaited_oldest_first_from_the_delivery_on() {
    each(|place| {
        let store = people(place);
        let asked = Mail { ack_within: Some(Span::hours(1)), ..Mail::default() };
        let (first, held, second) = write(&*store, |tx| {
            let first = send(tx, &Mail { recipients: &["to RedForest", "to GreenHill"], ..asked });
            let held = send(tx, &Mail { recipients: &["held to RedForest"], ..asked });
            send(tx, &Mail::default());
            (first, held, send(tx, &asked))
        });
        let owed = |limit| ids(&store.read().unwrap().acks_owed(&party("RedForest"), limit).unwrap(), |m| m.id);
        let awaited = |limit| ids(&store.read().unwrap().acks_awaited(&party("BlueLake"), limit).unwrap(), |m| m.id);
        assert_eq!((owed(9), owed(1)), (vec![first, second], vec![first]));
        assert_eq!(awaited(9), [first, second]);
        write(&*store, |tx| accept(tx, &[held]));
        assert_eq!(owed(9), [first, held, second]);
        let copy = store.read().unwrap().message(held).unwrap().unwrap().deliveries.remove(0);
        assert_eq!((copy.delivered_at, copy.state()), (Some(later(60)), State::Stored));
        let ack = Happened::MailAcked { agent: party("RedForest"), messages: vec![first, held] };
        write(&*store, |tx| append(tx, "RedForest", later(61), ack));
        assert_eq!((owed(9), awaited(9)), (vec![second], vec![first, second]), "GreenHill owes the first one still");
    });
}

#[test]
fn everything_that_waits_for_an_ack_is_told_oldest_first_and_counted_for_each() {
    each(|place| {
        let store = people(place);
        let asked = Mail { ack_within: Some(Span::hours(1)), ..Mail::default() };
        let waiting = |limit| store.read().unwrap().acks_waiting(limit).unwrap();
        let counted = || {
            let mut counted = store.read().unwrap().acks_counted().unwrap();
            counted.sort_by_key(|(by, _)| by.to_string());
            counted
        };
        assert_eq!((waiting(9), counted()), (vec![], vec![]));
        let (first, held, second) = write(&*store, |tx| {
            let first = send(tx, &Mail { recipients: &["to RedForest", "bcc GreenHill"], ..asked });
            let held = send(tx, &Mail { recipients: &["held to RedForest"], ..asked });
            send(tx, &Mail::default());
            (first, held, send(tx, &asked))
        });
        let (red, green) = (party("RedForest"), party("GreenHill"));
        let pairs = |found: &[(Number, _)]| ids(found, |(message, _)| *message);
        assert_eq!(pairs(&waiting(9)), [first, first, second], "held mail waits for consent, not for an ack");
        assert_eq!((pairs(&waiting(1)), pairs(&waiting(2)).len()), (vec![first], 2));
        assert!(waiting(9).contains(&(first, red.clone())) && waiting(9).contains(&(first, green.clone())));
        assert_eq!(counted(), [(green.clone(), 1), (red.clone(), 2)]);
        write(&*store, |tx| accept(tx, &[held]));
        assert_eq!(pairs(&waiting(9)), [first, first, held, second]);
        let ack = Happened::MailAcked { agent: red.clone(), messages: vec![first, second] };
        write(&*store, |tx| append(tx, "RedForest", later(61), ack));
        assert_eq!(
            (waiting(9), counted()),
            (vec![(first, green.clone()), (held, red.clone())], vec![(green, 1), (red, 1)])
        );
    });
}

#[test]
fn who_wrote_to_whom_is_counted_after_an_event_and_blind_copies_apart() {
    each(|place| {
        let store = people(place);
        let (first, blind, back) = write(&*store, |tx| {
            let first = send(tx, &Mail { recipients: &["to RedForest", "cc GreenHill"], ..Mail::default() });
            let blind = send(tx, &Mail { recipients: &["to RedForest", "bcc GreenHill"], ..Mail::default() });
            (first, blind, send(tx, &Mail { from: "RedForest", recipients: &["to human"], ..Mail::default() }))
        });
        let traffic = |after| {
            let mut found = store.read().unwrap().traffic(after).unwrap();
            found.sort_by_key(|mail| (mail.from.to_string(), mail.to.to_string(), mail.blind));
            found
        };
        let mail = |from: &str, to: &str, blind, messages, newest| Traffic {
            from: party(from),
            to: party(to),
            blind,
            messages,
            newest,
        };
        let to_human = mail("RedForest", "human", false, 1, back);
        let expected = [
            mail("BlueLake", "GreenHill", false, 1, first),
            mail("BlueLake", "GreenHill", true, 1, blind),
            mail("BlueLake", "RedForest", false, 2, blind),
            to_human.clone(),
        ];
        assert_eq!(traffic(0), expected);
        assert_eq!(traffic(first)[1], mail("BlueLake", "RedForest", false, 1, blind));
        assert_eq!((traffic(blind), traffic(back), traffic(u64::MAX)), (vec![to_human], vec![], vec![]));
    });
}

#[test]
fn held_mail_is_found_by_its_sender_until_it_is_delivered_or_lapses() {
    each(|place| {
        let store = people(place);
        let held = Mail { recipients: &["held to RedForest", "held bcc GreenHill"], ..Mail::default() };
        let (one, two) = write(&*store, |tx| (send(tx, &held), send(tx, &held)));
        let waits = |to: &str| store.read().unwrap().held(&party("BlueLake"), &party(to)).unwrap();
        assert_eq!((waits("RedForest"), waits("GreenHill")), (vec![one, two], vec![one, two]));
        write(&*store, |tx| {
            let lapsed = Happened::HeldLapsed { message: one, recipient: party("RedForest"), blocked: false };
            append(tx, "BlueLake", NOW, lapsed);
            accept(tx, &[two]);
        });
        assert_eq!((waits("RedForest"), waits("GreenHill")), (vec![], vec![one, two]));
        let all = store.read().unwrap().held_of(&party("BlueLake")).unwrap();
        assert_eq!(all, [(one, party("GreenHill")), (two, party("GreenHill"))]);
        let message = store.read().unwrap().message(one).unwrap().unwrap();
        assert_eq!(message.delivery_to(&party("RedForest")).unwrap().state(), State::Lapsed);
    });
}

#[test]
fn sent_mail_is_found_by_sender_and_time() {
    each(|place| {
        let store = people(place);
        let sent =
            write(&*store, |tx| [0, 10, 20].map(|minutes| send(tx, &Mail { at: later(minutes), ..Mail::default() })));
        let facts = store.read().unwrap();
        let (blue, red) = (party("BlueLake"), party("RedForest"));
        assert_eq!(ids(&facts.outbox(&blue, 2).unwrap(), |message| message.id), [sent[2], sent[1]], "newest first");
        assert_eq!(facts.newest_from(&blue, &red, 2).unwrap(), [sent[2], sent[1]], "newest first");
        assert!(facts.newest_from(&red, &blue, 2).unwrap().is_empty());
        assert!(facts.wrote_since(&blue, &red, later(20)).unwrap());
        assert!(!facts.wrote_since(&blue, &red, later(21)).unwrap());
        assert!(!facts.wrote_since(&red, &blue, NOW).unwrap());
        let last = facts.thread_messages(&thread("bd-1"), NEWEST, 2).unwrap();
        assert_eq!(ids(&last, |message| message.id), [sent[1], sent[2]], "the last two, oldest first");
        assert!(last.iter().all(|message| message.body.is_none() && !message.deliveries.is_empty()), "envelopes");
        for (before, limit, expected) in [
            (sent[2] + 1, 9, &sent[..]),
            (sent[2], 9, &sent[..2]),
            (sent[2], 1, &sent[1..2]),
            (sent[0], 9, &[]),
            (0, 9, &[]),
        ] {
            let found = facts.thread_messages(&thread("BD-1"), before, limit).unwrap();
            assert_eq!(ids(&found, |message| message.id), expected, "{before} {limit}");
        }
        for (after, limit, expected) in [
            (0, 9, &sent[..]),
            (0, 2, &sent[..2]),
            (sent[0], 9, &sent[1..]),
            (sent[1], 1, &sent[2..]),
            (sent[2], 9, &[]),
        ] {
            let found = facts.thread_messages_after(&thread("BD-1"), after, limit).unwrap();
            assert_eq!(ids(&found, |message| message.id), expected, "{after} {limit}");
            assert!(found.iter().all(|message| message.body.is_some() && !message.deliveries.is_empty()), "whole");
        }
        for (until, limit, expected) in
            [(20, 9, &sent[..]), (20, 1, &sent[2..]), (19, 9, &sent[..2]), (0, 9, &sent[..1]), (-1, 9, &[])]
        {
            let found = facts.thread_messages_until(&thread("BD-1"), later(until), limit).unwrap();
            assert_eq!(ids(&found, |message| message.id), expected, "{until} {limit}");
            assert!(found.iter().all(|message| message.body.is_none() && !message.deliveries.is_empty()), "envelopes");
        }
        drop(facts);
        let elsewhere = write(&*store, |tx| send(tx, &Mail { thread: "bd-2", ..Mail::default() }));
        let read = write(&*store, |tx| {
            [vec![sent[0]], vec![elsewhere], vec![elsewhere, sent[1]]].map(|messages| {
                append(tx, "RedForest", NOW, Happened::MailRead { agent: party("RedForest"), messages })
            })
        });
        let facts = store.read().unwrap();
        for (id, expected) in [
            ("BD-1", vec![sent[0], sent[1], sent[2], read[0], read[2]]),
            ("bd-2", vec![elsewhere, read[1], read[2]]),
            ("bd-3", vec![]),
        ] {
            let (id, kinds) = (thread(id), ["message_sent", "mail_read"]);
            let query = EventQuery { thread: Some(&id), kinds: &kinds, ..EventQuery::between(0, u64::MAX) };
            assert_eq!(ids(&facts.events(&query).unwrap(), |event| event.number), expected, "{id}");
        }
        let whole = facts.message(sent[1]).unwrap().unwrap();
        assert_eq!(whole.body.as_deref(), Some("text"));
        assert_eq!(facts.envelope(sent[1]).unwrap(), Some(Message { body: None, ..whole }));
        assert_eq!((facts.envelope(999).unwrap(), facts.envelope(u64::MAX).unwrap()), (None, None));
        assert_eq!(facts.message(999).unwrap(), None);
        assert_eq!(facts.message(u64::MAX).unwrap(), None);
    });
}

#[test]
fn the_same_text_is_found_again_as_far_back_as_is_asked_for() {
    each(|place| {
        let store = people(place);
        let mail = |minutes, body| Mail { at: later(minutes), body, ..Mail::default() };
        let sent = write(&*store, |tx| {
            let first = [mail(0, "one"), mail(10, "two")].map(|mail| send(tx, &mail));
            for _ in 0..50 {
                send(tx, &mail(11, "six"));
            }
            send(tx, &Mail { from: "GreenHill", ..mail(11, "one") });
            first
        });
        let facts = store.read().unwrap();
        let blue = party("BlueLake");
        let found = |subject: &str, body: &str, since, now| {
            facts.same_text(&blue, subject, body, later(since), later(now)).unwrap()
        };
        assert_eq!(found("Login", "two", 10, 11), Some(sent[1]), "behind fifty others");
        assert_eq!(found("Login", "one", 0, 11), Some(sent[0]));
        assert_eq!(found("Login", "one", 1, 11), None, "too old");
        assert_eq!(found("Logout", "two", 10, 11), None);
        assert_eq!(found("Login", "tw", 10, 11), None);
        assert_eq!(found("Login", "six", 0, 11).map(|id| id > sent[1] + 49), Some(true), "the newest");
        assert_eq!(found("Login", "two", 0, 5), None, "from a clock that was ahead");
        drop(facts);
        write(&*store, |tx| {
            for _ in 0..DUPLICATE_AMONG {
                send(tx, &mail(11, "six"));
            }
        });
        let facts = store.read().unwrap();
        assert_eq!(facts.same_text(&blue, "Login", "two", later(10), later(11)).unwrap(), None, "behind too many");
    });
}

#[test]
fn mail_that_only_waits_was_not_written_to_its_recipient_yet() {
    each(|place| {
        let store = people(place);
        let held = write(&*store, |tx| send(tx, &Mail { recipients: &["held to RedForest"], ..Mail::default() }));
        let wrote = || store.read().unwrap().wrote_since(&party("BlueLake"), &party("RedForest"), NOW).unwrap();
        assert!(!wrote());
        write(&*store, |tx| accept(tx, &[held]));
        assert!(wrote());
    });
}

#[test]
fn a_copy_is_found_by_the_number_that_the_other_project_gave_it() {
    each(|place| {
        let store = people(place);
        let twin = Twin { project: ProjectKey::resolved("/srv/other"), number: 42 };
        let texts = relay_core::domain::event::text_hash(&[0; 16], "text");
        let what = Happened::MessageSent {
            thread: thread("bd-1"),
            from: party("BlueLake"),
            recipients: vec![],
            subject: texts.clone(),
            body: texts,
            importance: Importance::Normal,
            ack_within_ms: None,
            reply_to: None,
            twin: Some(twin.clone()),
        };
        let id = write(&*store, |tx| append(tx, "BlueLake", NOW, what));
        let facts = store.read().unwrap();
        assert_eq!(facts.message_of_twin(&twin).unwrap().unwrap().id, id);
        assert_eq!(facts.message_of_twin(&Twin { number: 43, ..twin }).unwrap(), None);
    });
}

#[test]
fn search_finds_all_words_in_subject_and_body_and_reads_no_query_language() {
    each(|place| {
        let store = people(place);
        let (one, two) = write(&*store, |tx| {
            let one = send(tx, &Mail { body: "the token of the \"cache\" expires", ..Mail::default() });
            (one, send(tx, &Mail { body: "another token", ..Mail::default() }))
        });
        let facts = store.read().unwrap();
        for (words, found) in [
            ("token", vec![two, one]),
            ("TOKEN expires", vec![one]),
            ("login token", vec![two, one]),
            ("token OR nothing", vec![]),
            ("\"cache\"", vec![one]),
            ("tok*", vec![]),
            ("nothing", vec![]),
        ] {
            assert_eq!(facts.search(words, NEWEST, 10).unwrap(), found, "{words}");
        }
        assert_eq!(facts.search("token", NEWEST, 1).unwrap(), [two]);
    });
}

#[test]
fn a_search_goes_on_before_a_number_whether_the_index_knows_the_messages_or_not() {
    each(|place| {
        let store = people(place);
        let mut sent: Vec<Number> =
            (0..75).map(|_| write(&*store, |tx| send(tx, &Mail { body: "a token", ..Mail::default() }))).collect();
        sent.reverse();
        let facts = store.read().unwrap();
        for size in [1, 7, 32, 74, 75, 100] {
            let (mut found, mut before) = (Vec::new(), NEWEST);
            loop {
                let page = facts.search("token", before, size).unwrap();
                let Some(last) = page.last() else { break };
                assert!(page.len() <= size);
                before = *last;
                found.extend(page);
            }
            assert_eq!(found, sent, "in pages of {size}");
        }
        assert_eq!(facts.search("token", 0, 9).unwrap(), [0; 0]);
    });
}
