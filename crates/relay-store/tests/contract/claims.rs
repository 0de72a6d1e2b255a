//! Claims as they are read back; and that no overlap is missed by looking only near.

use std::collections::BTreeSet;

use proptest::prelude::*;
use relay_core::domain::event::{Happened, Number, Renewal, Told};
use relay_core::domain::pattern::{Case, Pattern};
use relay_core::domain::time::Span;
use relay_core::store::{Facts, Tx};

use super::{NOW, Opened, Place, append, each, grant, ids, later, name, party, register, thread, write};

fn people(place: &dyn Place) -> Box<dyn Opened> {
    let store = place.open();
    write(&*store, |tx| ["BlueLake", "RedForest"].map(|agent| register(tx, agent)));
    store
}

fn held(facts: &dyn Facts, agent: &str) -> Vec<u64> {
    ids(&facts.claims_of(&name(agent)).unwrap(), |claim| claim.id)
}

#[test]
fn claims_are_found_by_holder_pattern_reason_and_id() {
    each(|place| {
        let store = people(place);
        let (one, two, theirs) = write(&*store, |tx| {
            let one = grant(tx, "BlueLake", "src/**", NOW, &[]);
            let two = grant(tx, "BlueLake", "doc", NOW, &[]);
            (one, two, grant(tx, "RedForest", "src/**", NOW, &[one]))
        });
        let facts = store.read().unwrap();
        assert_eq!(ids(&facts.claims().unwrap(), |claim| claim.id), [one, two, theirs]);
        assert_eq!((held(&*facts, "bluelake"), held(&*facts, "RedForest")), (vec![one, two], vec![theirs]));
        assert_eq!(ids(&facts.claims_on(&name("BlueLake"), "src/**").unwrap(), |claim| claim.id), [one]);
        assert_eq!(facts.claims_on(&name("BlueLake"), "src").unwrap(), []);
        assert_eq!(ids(&facts.claims_for(&thread("BD-1")).unwrap(), |claim| claim.id), [one, two, theirs]);
        assert_eq!(facts.claims_for(&thread("bd-2")).unwrap(), []);
        let claim = facts.claim(two).unwrap().unwrap();
        assert_eq!((claim.pattern.as_str(), claim.expires_at, claim.generation), ("doc", later(60), 0));
        assert_eq!((facts.claim(999).unwrap(), facts.claim(u64::MAX).unwrap()), (None, None));
    });
}

#[test]
fn a_released_claim_is_gone_from_every_list_and_keeps_its_id() {
    each(|place| {
        let store = people(place);
        let (one, theirs) = write(&*store, |tx| {
            let one = grant(tx, "BlueLake", "src/**", NOW, &[]);
            (one, grant(tx, "RedForest", "src/a", NOW, &[one]))
        });
        assert_eq!(store.read().unwrap().pairs(&name("RedForest"), NOW, 9).unwrap().len(), 1);
        let released = Happened::ReservationReleased { agent: name("BlueLake"), claims: vec![one] };
        write(&*store, |tx| append(tx, "BlueLake", NOW, released));
        let facts = store.read().unwrap();
        assert_eq!(ids(&facts.claims().unwrap(), |claim| claim.id), [theirs]);
        assert_eq!(ids(&facts.claims_near(&["src"]).unwrap(), |claim| claim.id), [theirs]);
        assert_eq!(
            (facts.pairs(&name("RedForest"), NOW, 9).unwrap(), facts.pairs(&name("BlueLake"), NOW, 9).unwrap()),
            (vec![], vec![])
        );
        assert!(facts.claim(one).unwrap().unwrap().ended);
    });
}

#[test]
fn an_expired_claim_is_not_counted_and_leaves_after_a_day() {
    each(|place| {
        let store = people(place);
        let old = write(&*store, |tx| grant(tx, "BlueLake", "src/**", NOW, &[]));
        let count = |minutes| store.read().unwrap().count_claims(&name("BlueLake"), later(minutes)).unwrap();
        assert_eq!((count(0), count(59), count(60)), (1, 1, 0));
        let soon = write(&*store, |tx| grant(tx, "RedForest", "doc", later(120), &[]));
        assert_eq!(ids(&store.read().unwrap().claims().unwrap(), |claim| claim.id), [old, soon]);
        let next = write(&*store, |tx| grant(tx, "RedForest", "lib", later(60 + 24 * 60 + 1), &[]));
        assert_eq!(ids(&store.read().unwrap().claims().unwrap(), |claim| claim.id), [soon, next]);
    });
}

#[test]
fn claims_in_the_second_half_of_their_time_are_to_be_renewed() {
    each(|place| {
        let store = people(place);
        let one = write(&*store, |tx| grant(tx, "BlueLake", "src/**", NOW, &[]));
        let due = |minutes| {
            let facts = store.read().unwrap();
            ids(&facts.claims_to_renew(&name("BlueLake"), later(minutes)).unwrap(), |claim| claim.id)
        };
        assert_eq!((due(30), due(31)), (vec![], vec![one]));
        let renewal = Renewal {
            id: one,
            ttl_ms: Span::hours(2).as_millis(),
            expires_at: later(40 + 120),
            exclusive: false,
            reason: Some(thread("bd-2")),
            conflicts: Vec::new(),
        };
        let what = Happened::ReservationRenewed { agent: name("BlueLake"), claims: vec![renewal] };
        write(&*store, |tx| append(tx, "BlueLake", later(40), what));
        assert_eq!((due(100), due(101)), (vec![], vec![one]));
        let claim = store.read().unwrap().claim(one).unwrap().unwrap();
        assert_eq!((claim.ttl, claim.granted_at, claim.first_granted_at), (Span::hours(2), later(40), NOW));
        assert_eq!((claim.exclusive, claim.reason), (false, Some(thread("bd-2"))));
    });
}

#[test]
fn a_claim_taken_over_has_a_new_holder_and_the_old_one_learns_who() {
    each(|place| {
        let store = people(place);
        write(&*store, |tx| register(tx, "GreenHill"));
        let (one, own) = write(&*store, |tx| {
            (grant(tx, "BlueLake", "src/**", NOW, &[]), grant(tx, "RedForest", "src/**", later(1), &[]))
        });
        let take = |from: &str, by: &str, generation, minutes: i64| Happened::ReservationTaken {
            id: one,
            from: name(from),
            by: party(by),
            generation,
            expires_at: later(minutes + 60),
            why: relay_core::domain::event::text_hash(&[0; 16], "gone"),
        };
        write(&*store, |tx| append(tx, "RedForest", later(30), take("BlueLake", "RedForest", 1, 30)));
        let facts = store.read().unwrap();
        let claim = facts.claim(one).unwrap().unwrap();
        assert_eq!((claim.holder, claim.generation, claim.expires_at), (name("RedForest"), 1, later(90)));
        assert_eq!(held(&*facts, "BlueLake"), [0; 0]);
        // Two on one pattern: the one that lives longest comes last.
        assert_eq!(ids(&facts.claims_on(&name("RedForest"), "src/**").unwrap(), |claim| claim.id), [own, one]);
        assert_eq!(facts.taker(one, &name("BlueLake")).unwrap(), Some(party("RedForest")));
        assert_eq!(facts.taken_on(&name("BlueLake"), "src/**").unwrap(), Some((one, party("RedForest"))));
        assert_eq!(facts.taken_on(&name("BlueLake"), "src").unwrap(), None);
        assert_eq!(facts.taker(own, &name("BlueLake")).unwrap(), None);
        drop(facts);
        write(&*store, |tx| append(tx, "GreenHill", later(60), take("RedForest", "GreenHill", 2, 60)));
        let facts = store.read().unwrap();
        assert_eq!(facts.taker(one, &name("BlueLake")).unwrap(), Some(party("RedForest")), "who took it from that one");
        assert_eq!(facts.taker(one, &name("RedForest")).unwrap(), Some(party("GreenHill")));
        drop(facts);
        // What the human takes is nobody's any more.
        write(&*store, |tx| append(tx, "human", later(61), take("GreenHill", "human", 3, 61)));
        let facts = store.read().unwrap();
        assert_eq!(held(&*facts, "GreenHill"), [0; 0]);
        assert_eq!(facts.taken_on(&name("GreenHill"), "src/**").unwrap(), Some((one, party("human"))));
    });
}

/// A claim that others may hold as well.
fn share(tx: &mut dyn Tx, holder: &str, pattern: &str, overlaps: &[Number]) -> Number {
    let what = Happened::ReservationGranted {
        agent: name(holder),
        pattern: pattern.to_owned(),
        prefix: pattern.to_owned(),
        exclusive: false,
        reason: None,
        ttl_ms: 3_600_000,
        first_granted_at: NOW,
        expires_at: later(60),
        overlaps: overlaps.to_vec(),
        conflicts: Vec::new(),
    };
    append(tx, holder, NOW, what)
}

#[test]
fn pairs_and_what_was_told_of_them_belong_to_each_side() {
    each(|place| {
        let store = people(place);
        let (mine, theirs) = write(&*store, |tx| {
            let mine = grant(tx, "BlueLake", "src/**", NOW, &[]);
            // What one holds twice is no pair of two, and what all share nobody contests.
            grant(tx, "BlueLake", "src/b/**", NOW, &[mine]);
            let ours = share(tx, "BlueLake", "doc", &[]);
            share(tx, "RedForest", "doc", &[ours]);
            (mine, grant(tx, "RedForest", "src/a", NOW, &[mine]))
        });
        let pairs = |agent: &str| {
            let pairs = store.read().unwrap().pairs(&name(agent), NOW, 1).unwrap();
            pairs.into_iter().map(|(mine, theirs)| (mine.id, theirs.id)).collect::<Vec<_>>()
        };
        assert_eq!((pairs("BlueLake"), pairs("RedForest")), (vec![(mine, theirs)], vec![(theirs, mine)]));
        let facts = store.read().unwrap();
        let share = |other: &str, now| facts.share_a_path(&name("BlueLake"), &name(other), now).unwrap();
        assert_eq!((share("RedForest", NOW), share("GreenHill", NOW)), (true, false));
        // What has expired shares nothing, and is no pair.
        assert_eq!(
            (share("RedForest", later(60)), facts.pairs(&name("BlueLake"), later(60), 9).unwrap()),
            (false, vec![])
        );
        drop(facts);
        let told = |mark: &str| Told { mine, theirs, mark: mark.into() };
        let surface = |mark: &str| Happened::MailSurfaced {
            agent: super::party("BlueLake"),
            messages: vec![],
            contested: vec![told(mark)],
        };
        let known = |agent: &str| store.read().unwrap().told(&name(agent)).unwrap();
        for (mark, expected) in [("xx0", vec![told("xx0")]), ("xs0", vec![told("xs0")]), ("ended", vec![])] {
            write(&*store, |tx| append(tx, "BlueLake", NOW, surface(mark)));
            assert_eq!(known("BlueLake"), expected, "{mark}");
            assert_eq!(known("RedForest"), []);
        }
    });
}

/// Patterns of a few letters, with every kind of wildcard.
fn pattern() -> impl Strategy<Value = String> {
    let segment = prop_oneof![
        6 => "[ab]{1,2}",
        1 => Just("*".to_owned()),
        1 => Just("**".to_owned()),
        1 => Just("a*".to_owned()),
        1 => Just("?".to_owned()),
        1 => Just("[ab]".to_owned()),
        1 => Just("{a,b/a}".to_owned()),
        1 => Just("\\\\*".to_owned()),
        1 => Just("a0".to_owned()),
        1 => Just("a-".to_owned()),
    ];
    let path = (proptest::collection::vec(segment, 1..4), any::<bool>())
        .prop_map(|(segments, below)| segments.join("/") + if below { "/" } else { "" });
    prop_oneof![20 => path, 1 => Just("res:a".to_owned()), 1 => Just("res:b".to_owned())]
}

#[test]
fn no_claim_that_shares_a_path_is_missed_by_looking_near() {
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    let claims = proptest::collection::vec(pattern(), 1..40);
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&(claims, proptest::collection::vec(pattern(), 1..20)), |(claimed, wanted)| {
        let parse = |texts: &[String]| -> Vec<Pattern> {
            texts.iter().filter_map(|text| Pattern::parse(text, &["/srv/app"]).ok()).collect()
        };
        let (claimed, wanted) = (parse(&claimed), parse(&wanted));
        each(|place| {
            let store = people(place);
            let ids: Vec<u64> = write(&*store, |tx| {
                claimed.iter().map(|pattern| grant(tx, "BlueLake", pattern.as_str(), NOW, &[])).collect()
            });
            let facts = store.read().unwrap();
            let near = |prefixes: &[&str]| super::ids(&facts.claims_near(prefixes).unwrap(), |claim| claim.id);
            let prefixes: Vec<String> = wanted.iter().map(|wanted| wanted.prefix(Case::Sensitive)).collect();
            let together: BTreeSet<u64> = prefixes.iter().flat_map(|prefix| near(&[prefix])).collect();
            let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
            assert_eq!(near(&prefixes), together.into_iter().collect::<Vec<_>>(), "many are asked for as one is");
            for (wanted, prefix) in wanted.iter().zip(prefixes) {
                let near = near(&[prefix]);
                assert!(near.is_sorted_by(|one, other| one < other), "each once, in order: {near:?}");
                let compiled = wanted.compile(Case::Sensitive);
                for (id, claim) in ids.iter().zip(&claimed) {
                    let meets = claim.compile(Case::Sensitive).overlap(&compiled);
                    assert!(meets.is_none() || near.contains(id), "{claim} meets {wanted} at {meets:?}");
                }
            }
        });
        Ok(())
    });
    outcome.unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn claims_far_away_are_not_looked_at() {
    each(|place| {
        let store = people(place);
        let (near, below, above) = write(&*store, |tx| {
            grant(tx, "BlueLake", "doc/a", NOW, &[]);
            grant(tx, "BlueLake", "src0", NOW, &[]);
            grant(tx, "BlueLake", "sr", NOW, &[]);
            let near = grant(tx, "BlueLake", "src/a", NOW, &[]);
            (near, grant(tx, "BlueLake", "src/a/b", NOW, &[]), grant(tx, "BlueLake", "*/a", NOW, &[]))
        });
        let found = ids(&store.read().unwrap().claims_near(&["src/a"]).unwrap(), |claim| claim.id);
        assert_eq!(found, [near, below, above]);
    });
}
