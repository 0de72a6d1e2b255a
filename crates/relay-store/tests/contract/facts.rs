//! Agents, threads, links and events as they are read back.

use relay_core::domain::agent::{Policy, Standing};
use relay_core::domain::contact::{Decided, LinkState};
use relay_core::domain::event::{Happened, Number};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::store::{EventQuery, Facts, NEWEST, Tx};

use super::{Mail, NOW, Opened, append, each, ids, later, name, party, register, send, thread, write};

/// A link asked for; it lives a day.
fn ask(tx: &mut dyn Tx, from: &str, to: &str) -> Number {
    let day = Span::days(1);
    let (ttl_ms, expires_at) = (day.as_millis(), NOW.plus(day));
    let what = Happened::LinkRequested { from: party(from), to: party(to), why: None, ttl_ms, expires_at };
    append(tx, "BlueLake", NOW, what)
}

fn people(store: &dyn Opened) {
    write(store, |tx| ["BlueLake", "RedForest", "GreenHill"].map(|agent| register(tx, agent)));
}

#[test]
fn names_and_ids_are_found_without_regard_to_case_and_shown_as_first_written() {
    each(|place| {
        let store = place.open();
        people(&*store);
        write(&*store, |tx| send(tx, &Mail { thread: "BD-1", ..Mail::default() }));
        write(&*store, |tx| send(tx, &Mail { thread: "bd-1", ..Mail::default() }));
        let facts = store.read().unwrap();
        assert_eq!(facts.agent(&name("BLUELAKE")).unwrap().unwrap().name, name("BlueLake"));
        let found = facts.thread(&thread("bd-1")).unwrap().unwrap();
        assert_eq!((found.id, found.messages), (thread("BD-1"), 2));
        assert_eq!(facts.thread_messages(&thread("Bd-1"), NEWEST, 10).unwrap().len(), 2);
        assert!(facts.is_member(&thread("bD-1"), &party("RedForest")).unwrap());
        assert_eq!(facts.threads("", NEWEST, 10).unwrap().len(), 1);
        let beginning = |word: &str| facts.threads(word, NEWEST, 10).unwrap().len();
        assert_eq!(
            [beginning("bD-"), beginning("BD-1"), beginning("d-1"), beginning("bd-11"), beginning("_d")],
            [1, 1, 0, 0, 0]
        );
    });
}

#[test]
fn agents_come_in_the_order_of_registration_and_by_their_session() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let facts = store.read().unwrap();
        let names: Vec<String> = facts.agents().unwrap().iter().map(|agent| agent.name.to_string()).collect();
        assert_eq!(names, ["BlueLake", "RedForest", "GreenHill"]);
        let found = facts.agent_of_session("session of RedForest").unwrap().unwrap();
        assert_eq!((found.name, found.registered_at, found.policy), (name("RedForest"), NOW, Policy::Auto));
        assert!(facts.agent_of_session("session of nobody").unwrap().is_none());
    });
}

#[test]
fn a_session_is_the_agents_that_was_bound_to_it_last() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let resume = |agent: &str| Happened::AgentResumed {
            agent: name(agent),
            program: None,
            model: None,
            task: None,
            session: Some("shared".into()),
            revived: false,
        };
        for agent in ["BlueLake", "RedForest"] {
            write(&*store, |tx| append(tx, agent, NOW, resume(agent)));
            let found = store.read().unwrap().agent_of_session("shared").unwrap().unwrap();
            assert_eq!((found.name, found.session.as_deref()), (name(agent), Some("shared")));
        }
    });
}

#[test]
fn an_agent_is_what_its_events_made_of_it() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let agent = || store.read().unwrap().agent(&name("BlueLake")).unwrap().unwrap();
        for (actor, what, standing) in [
            ("RedForest", Happened::AgentSuspended { agent: name("BlueLake") }, Standing::Suspended),
            ("RedForest", Happened::AgentReinstated { agent: name("BlueLake") }, Standing::Active),
            ("BlueLake", Happened::AgentRetired { agent: name("BlueLake") }, Standing::Retired),
        ] {
            write(&*store, |tx| append(tx, actor, later(1), what));
            assert_eq!(agent().standing, standing);
        }
        assert_eq!(agent().acted_at, later(1), "only its own event is its act");
        write(&*store, |tx| {
            append(tx, "BlueLake", later(2), Happened::PolicySet { agent: name("BlueLake"), policy: Policy::Open });
            let prepared = Happened::ThreadPrepared { thread: thread("bd-9"), agent: name("BlueLake") };
            append(tx, "BlueLake", later(3), prepared);
        });
        let found = agent();
        assert_eq!((found.policy, found.thread, found.acted_at), (Policy::Open, Some(thread("bd-9")), later(3)));
    });
}

#[test]
fn the_most_recently_active_thread_comes_first_and_done_ones_are_not_open() {
    each(|place| {
        let store = place.open();
        people(&*store);
        for id in ["bd-1", "bd-2", "bd-3", "bd-1"] {
            write(&*store, |tx| send(tx, &Mail { thread: id, ..Mail::default() }));
        }
        let order = |facts: &dyn Facts, limit: usize| -> Vec<String> {
            facts.threads("", NEWEST, limit).unwrap().iter().map(|thread| thread.id.to_string()).collect()
        };
        assert_eq!(order(&*store.read().unwrap(), 10), ["bd-1", "bd-3", "bd-2"]);
        assert_eq!(order(&*store.read().unwrap(), 2), ["bd-1", "bd-3"]);
        assert_eq!(store.read().unwrap().open_threads().unwrap(), 3);
        let closed = Happened::ThreadClosed { thread: thread("bd-2"), agent: party("BlueLake") };
        write(&*store, |tx| append(tx, "BlueLake", NOW, closed));
        let facts = store.read().unwrap();
        assert_eq!((facts.open_threads().unwrap(), order(&*facts, 1)), (2, vec!["bd-2".to_owned()]));
        assert!(facts.thread(&thread("bd-2")).unwrap().unwrap().done);
        drop(facts);
        write(&*store, |tx| send(tx, &Mail { thread: "bd-2", ..Mail::default() }));
        assert_eq!(store.read().unwrap().open_threads().unwrap(), 3, "a message opens it again");
    });
}

#[test]
fn threads_are_listed_before_the_newest_event_of_the_last_one_without_gap_or_repetition() {
    each(|place| {
        let store = place.open();
        people(&*store);
        for id in ["bd-1", "bd-2", "other", "bd-3", "bd-1", "bd-4"] {
            write(&*store, |tx| send(tx, &Mail { thread: id, ..Mail::default() }));
        }
        let facts = store.read().unwrap();
        for (beginning, size, expected) in [
            ("", 2, &["bd-4", "bd-1", "bd-3", "other", "bd-2"] as &[&str]),
            ("BD-", 1, &["bd-4", "bd-1", "bd-3", "bd-2"]),
            ("bd-", 9, &["bd-4", "bd-1", "bd-3", "bd-2"]),
        ] {
            let (mut found, mut before) = (Vec::new(), NEWEST);
            loop {
                let page = facts.threads(beginning, before, size).unwrap();
                let Some(last) = page.last() else { break };
                before = last.last_number;
                found.extend(page.iter().map(|thread| thread.id.to_string()));
            }
            assert_eq!(found, expected, "{beginning:?} in pages of {size}");
        }
        let newest = facts.threads("", NEWEST, 1).unwrap().remove(0);
        assert_eq!(newest.last_number, facts.tip().unwrap().number);
        assert!(facts.threads("", 0, 9).unwrap().is_empty());
    });
}

#[test]
fn members_come_by_writing_receiving_and_preparing_and_go_by_leaving() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let members = || {
            let found = store.read().unwrap().members(&thread("bd-1")).unwrap();
            let mut names: Vec<String> = found.iter().map(ToString::to_string).collect();
            names.sort();
            names
        };
        write(&*store, |tx| send(tx, &Mail { recipients: &["to RedForest", "bcc GreenHill"], ..Mail::default() }));
        assert_eq!(members(), ["BlueLake", "RedForest"], "a blind recipient is none");
        let prepared = Happened::ThreadPrepared { thread: thread("bd-1"), agent: name("GreenHill") };
        write(&*store, |tx| append(tx, "GreenHill", NOW, prepared));
        assert_eq!(members(), ["BlueLake", "GreenHill", "RedForest"]);
        let left = Happened::ThreadLeft { thread: thread("bd-1"), agent: name("BlueLake") };
        write(&*store, |tx| append(tx, "BlueLake", NOW, left));
        assert_eq!(members(), ["GreenHill", "RedForest"]);
        assert!(!store.read().unwrap().is_member(&thread("bd-1"), &party("BlueLake")).unwrap());
    });
}

#[test]
fn the_newest_link_between_two_counts_whoever_asked() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let (blue, red, green) = (party("BlueLake"), party("RedForest"), party("GreenHill"));
        let first = write(&*store, |tx| ask(tx, "BlueLake", "RedForest"));
        let other = write(&*store, |tx| ask(tx, "GreenHill", "BlueLake"));
        let second = write(&*store, |tx| ask(tx, "RedForest", "BlueLake"));
        let facts = store.read().unwrap();
        for (one, two) in [(&blue, &red), (&red, &blue)] {
            let link = facts.link(one, two).unwrap().unwrap();
            assert_eq!((link.id, &link.from, &link.to), (second, &red, &blue));
        }
        assert!(facts.link(&red, &green).unwrap().is_none());
        assert_eq!(
            ids(&facts.links_of(&blue).unwrap(), |link| link.id),
            [other, second],
            "the first is history: {first}"
        );
        assert_eq!(ids(&facts.links_of(&red).unwrap(), |link| link.id), [second]);
    });
}

#[test]
fn all_links_are_listed_newest_first_each_pair_once_and_before_a_number() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let asked = |from: &str, to: &str| write(&*store, |tx| ask(tx, from, to));
        let old = asked("BlueLake", "RedForest");
        let green = asked("GreenHill", "BlueLake");
        let far = asked("BlueLake@/srv/other", "RedForest");
        let new = asked("RedForest", "BlueLake");
        let facts = store.read().unwrap();
        let links = |before, limit| ids(&facts.links(before, limit).unwrap(), |link| link.id);
        assert_eq!(links(NEWEST, 9), [new, far, green], "the first is history: {old}");
        assert_eq!((links(NEWEST, 2), links(far, 2), links(green, 2)), (vec![new, far], vec![green], vec![]));
        assert_eq!(links(new, 9), [far, green], "the older one between the two does not come back");
    });
}

#[test]
fn a_link_is_what_was_decided_about_it_and_each_side_blocks_for_itself() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let (blue, red) = (party("BlueLake"), party("RedForest"));
        let id = write(&*store, |tx| ask(tx, "BlueLake", "RedForest"));
        let check = |what: Happened, decided: Decided, state: LinkState, blocks: (bool, bool)| {
            write(&*store, |tx| append(tx, "RedForest", NOW, what));
            let link = store.read().unwrap().link(&blue, &red).unwrap().unwrap();
            assert_eq!((link.id, link.decided, link.state(NOW)), (id, decided, state));
            assert_eq!((link.from_blocks, link.to_blocks), blocks);
        };
        let week = NOW.plus(Span::days(7));
        let accepted =
            Happened::LinkAccepted { link: id, by: red.clone(), by_policy: true, expires_at: week, delivers: vec![] };
        let block =
            |by: &str, other: &str| Happened::LinkBlocked { link: Some(id), by: party(by), other: party(other) };
        let revoke = |by: &str| Happened::LinkRevoked { link: id, by: party(by) };
        check(accepted, Decided::Accepted, LinkState::Accepted, (false, false));
        let link = store.read().unwrap().link(&blue, &red).unwrap().unwrap();
        assert_eq!((link.by_policy, link.expires_at), (true, week));
        check(block("RedForest", "BlueLake"), Decided::Accepted, LinkState::Blocked, (false, true));
        check(block("BlueLake", "RedForest"), Decided::Accepted, LinkState::Blocked, (true, true));
        check(revoke("RedForest"), Decided::Revoked, LinkState::Blocked, (true, false));
        check(revoke("BlueLake"), Decided::Revoked, LinkState::Revoked, (false, false));

        // A block between two who have no link makes one.
        let number = write(&*store, |tx| {
            let what = Happened::LinkBlocked { link: None, by: party("GreenHill"), other: blue.clone() };
            append(tx, "GreenHill", NOW, what)
        });
        let link = store.read().unwrap().link(&blue, &party("GreenHill")).unwrap().unwrap();
        assert_eq!(
            (link.id, link.state(NOW), link.is_blocked_by(&party("GreenHill"))),
            (number, LinkState::Blocked, true)
        );
    });
}

#[test]
fn events_are_read_between_two_numbers_and_of_one_kind_or_actor() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let facts = store.read().unwrap();
        let check = |query: EventQuery<'_>, expected: &[u64]| {
            let events = facts.events(&query).unwrap();
            assert_eq!(ids(&events, |event| event.number), expected, "{query:?}");
        };
        let all = EventQuery::between(0, u64::MAX);
        check(all, &[1, 2, 3, 4]);
        check(EventQuery::between(1, 3), &[2, 3]);
        check(EventQuery::between(4, u64::MAX), &[]);
        check(EventQuery::between(u64::MAX, u64::MAX), &[]);
        check(EventQuery { kinds: &["agent_registered"], ..all }, &[2, 3, 4]);
        check(EventQuery { kinds: &["agent_registered"], after: 2, ..all }, &[3, 4]);
        check(EventQuery { kinds: &["project_opened", "agent_registered"], up_to: 2, ..all }, &[1, 2]);
        check(EventQuery { kinds: &["agent"], ..all }, &[]);
        check(EventQuery { kinds: &["registered", "project"], ..all }, &[]);
        check(EventQuery { actor: Some("redforest"), ..all }, &[3]);
        check(EventQuery { actor: Some("relay"), ..all }, &[1]);
        check(EventQuery { actor: Some("RedForest"), kinds: &["project_opened"], ..all }, &[]);
        let opened = facts.events(&EventQuery::between(0, 1)).unwrap().remove(0).payload.at;
        let (before, after) = (opened.minus(Span::millis(1)), opened.plus(Span::days(36_500)));
        check(EventQuery { until: Some(before), ..all }, &[]);
        check(EventQuery { until: Some(opened), up_to: 1, ..all }, &[1]);
        check(EventQuery { since: Some(opened), up_to: 1, ..all }, &[1]);
        check(EventQuery { since: Some(after), ..all }, &[]);
    });
}

#[test]
fn a_project_that_moved_is_known_by_its_new_path() {
    each(|place| {
        let store = place.open();
        people(&*store);
        let (old, new, other) = ("/srv/old", "/srv/new", "/srv/older");
        let key = |path: &str| ProjectKey::resolved(path);
        let (guest, stays) = (format!("BlueLake@{old}"), format!("BlueLake@{other}"));
        let link = write(&*store, |tx| {
            ask(tx, &stays, "RedForest");
            ask(tx, &guest, "RedForest")
        });
        let known = |facts: &dyn Facts, name: &str| facts.link(&party(name), &party("RedForest")).unwrap();
        assert_eq!(store.read().unwrap().neighbours().unwrap(), [key(old), key(other)]);
        assert_eq!(store.read().unwrap().moves().unwrap(), []);
        let what = Happened::OtherProjectMoved { from: key(old), to: key(new) };
        let number = write(&*store, |tx| append(tx, "relay", NOW, what));
        let facts = store.read().unwrap();
        assert_eq!(facts.neighbours().unwrap(), [key(new), key(other)]);
        assert_eq!(facts.moves().unwrap(), [(number, key(old), key(new))]);
        assert_eq!(known(&*facts, &guest), None);
        assert_eq!(known(&*facts, &format!("BlueLake@{new}")).map(|link| link.id), Some(link));
        assert!(known(&*facts, &stays).is_some());
    });
}
