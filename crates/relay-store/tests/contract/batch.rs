//! Requests that share a transaction, and what becomes of each.

use std::panic::{AssertUnwindSafe, catch_unwind};

use relay_core::domain::event::chain_hash;
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{EventQuery, NEWEST, Remembered, Store, Tx};
use relay_store::sqlite::batch::Batch;
use relay_store::verify::{Finding, verify};

use super::{Mail, NOW, Sqlite, begin, errand, grant, register, send, write};

const WAIT: Span = Span::seconds(60);

fn batch(store: &relay_store::sqlite::Sqlite) -> Batch<'_> {
    store.batch(errand(WAIT)).unwrap()
}

/// A request that commits one transaction and is kept.
fn keep<T>(batch: &Batch<'_>, story: impl FnOnce(&mut dyn Tx) -> T) -> T {
    batch.request(|store| (commit(store, story), true)).unwrap()
}

fn commit<T>(store: &dyn Store, story: impl FnOnce(&mut dyn Tx) -> T) -> T {
    let mut tx = begin(store);
    let told = story(&mut *tx);
    tx.commit().unwrap();
    told
}

pub fn people(tx: &mut dyn Tx) {
    for agent in ["BlueLake", "RedForest"] {
        register(tx, agent);
        let (verb, answer) = ("start".to_owned(), agent.to_owned());
        let answer = Remembered { verb, salt: [3; 16], request: "digest".into(), answer, number: 1 };
        tx.remember(&agent.to_lowercase(), "key", &answer).unwrap();
    }
}

/// Touches as much as it can: a thread, mail and its index, a claim.
fn much(tx: &mut dyn Tx, word: &str) {
    send(tx, &Mail { body: word, thread: word, ..Mail::default() });
    grant(tx, "BlueLake", word, NOW, &[]);
}

fn log(place: &Sqlite) -> Vec<u8> {
    std::fs::read(place.project_folder().join("relay.db-wal")).unwrap()
}

/// The ways in which nothing comes of a request.
const REFUSED: [fn(&Batch<'_>); 4] = [
    |batch| {
        let refused = |store: &dyn Store| (commit(store, |tx| much(tx, "committed")), false);
        batch.request(refused).unwrap();
    },
    |batch| {
        let dropped = |store: &dyn Store| (much(&mut *begin(store), "dropped"), true);
        batch.request(dropped).unwrap();
    },
    |batch| {
        // What it had committed before goes with it.
        let panics = |store: &dyn Store| -> ((), bool) {
            commit(store, |tx| much(tx, "panicked"));
            let mut tx = begin(store);
            much(&mut *tx, "unwound");
            std::panic::resume_unwind(Box::new("a request"))
        };
        catch_unwind(AssertUnwindSafe(|| batch.request(panics))).unwrap_err();
    },
    |batch| {
        let both = |store: &dyn Store| {
            commit(store, |tx| much(tx, "first"));
            (much(&mut *begin(store), "second"), false)
        };
        batch.request(both).unwrap();
    },
];

#[test]
fn a_refused_request_leaves_no_trace_and_its_neighbours_stay() {
    let place = Sqlite::new(false);
    let store = place.store();
    let first = store.read().unwrap().tip().unwrap();
    let together = batch(&store);
    keep(&together, people);
    let mut kept = Vec::new();
    for (index, refuse) in REFUSED.iter().enumerate() {
        refuse(&together);
        let word = format!("kept{index}");
        keep(&together, |tx| much(tx, &word));
        kept.push(word);
    }
    together.commit().unwrap();

    let facts = store.read().unwrap();
    let events = facts.events(&EventQuery::between(first.number, u64::MAX)).unwrap();
    let numbers: Vec<u64> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (first.number + 1..=first.number + 2 + 2 * kept.len() as u64).collect::<Vec<_>>());
    let mut previous = first.hash;
    for event in &events {
        let payload = serde_json::to_string(&event.payload).unwrap();
        assert_eq!(event.hash, chain_hash(&first.project, event.number, &previous, &payload), "#{}", event.number);
        previous.clone_from(&event.hash);
    }
    let claimed: Vec<String> = facts.claims().unwrap().into_iter().map(|claim| claim.pattern).collect();
    assert_eq!(claimed, kept);
    for word in &kept {
        assert_eq!(facts.search(word, NEWEST, 10).unwrap().len(), 1, "{word}");
    }
    for word in ["committed", "dropped", "panicked", "unwound", "first", "second"] {
        assert!(facts.search(word, NEWEST, 10).unwrap().is_empty(), "{word}");
    }
    let report = verify(&place.project_folder(), |_, _, _| {}).unwrap();
    assert_eq!(report.findings.told().collect::<Vec<_>>(), Vec::<&Finding>::new());
}

#[test]
fn a_request_sees_what_those_before_it_did_and_nobody_else_does_before_the_commit() {
    let place = Sqlite::new(false);
    let (store, other) = (place.store(), place.store());
    let together = batch(&store);
    keep(&together, |tx| register(tx, "BlueLake"));
    let see = |store: &dyn Store| store.read().unwrap().agents().unwrap().len();
    let request = |store: &dyn Store| {
        assert_eq!((see(store), begin(store).agents().unwrap().len()), (1, 1));
        commit(store, |tx| register(tx, "RedForest"));
        (see(store), true)
    };
    assert_eq!(together.request(request).unwrap(), 2);
    assert_eq!(see(&other), 0);
    together.commit().unwrap();
    assert_eq!((see(&other), see(&store)), (2, 2));
}

#[test]
fn a_batch_has_the_turn_until_its_end_and_gives_it_up_when_it_can_be_read() {
    let place = Sqlite::new(false);
    let (store, other) = (place.store(), place.store());
    let mut watch = other.watch().unwrap();
    let together = batch(&store);
    keep(&together, |tx| register(tx, "BlueLake"));
    let refusal = other.begin(errand(Span::millis(20))).err().unwrap();
    assert_eq!(refusal.code, Code::StoreBusy);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| write(&place.store(), |tx| (tx.agents().unwrap().len(), register(tx, "RedForest"))));
        together.commit().unwrap();
        assert_eq!(next.join().unwrap().0, 1, "whoever comes next sees it");
    });
    watch.wait(WAIT).unwrap();
    assert_eq!(other.read().unwrap().agents().unwrap().len(), 2);
}

#[test]
fn a_batch_that_is_dropped_or_of_which_nothing_is_kept_writes_nothing() {
    let place = Sqlite::new(false);
    let author = place.store();
    write(&author, people);
    let store = place.store();
    let (tip, before) = (store.read().unwrap().tip().unwrap(), log(&place));
    batch(&store).commit().unwrap();
    let dropped = batch(&store);
    keep(&dropped, |tx| much(tx, "dropped"));
    drop(dropped);
    let refused = batch(&store);
    REFUSED.iter().for_each(|refuse| refuse(&refused));
    refused.request(|store| (commit(store, |_| ()), true)).unwrap();
    refused.commit().unwrap();
    assert_eq!(store.read().unwrap().tip().unwrap(), tip);
    assert!(log(&place) == before, "the log was written to");
    assert!(!store.has_committed(), "so that it has nothing to tidy");
    let kept = batch(&store);
    keep(&kept, |tx| much(tx, "kept"));
    kept.commit().unwrap();
    assert!(store.has_committed());
    assert!(log(&place) != before);
}

#[test]
fn a_request_has_one_transaction_at_a_time() {
    let place = Sqlite::new(false);
    let store = place.store();
    let together = batch(&store);
    let twice = |store: &dyn Store| {
        let mut tx = begin(store);
        let refusal = store.begin(errand(WAIT)).err().unwrap();
        assert_eq!(refusal.code, Code::StoreBusy);
        register(&mut *tx, "BlueLake");
        tx.commit().unwrap();
        (commit(store, |tx| register(tx, "RedForest")), true)
    };
    together.request(twice).unwrap();
    together.commit().unwrap();
    assert_eq!(store.read().unwrap().agents().unwrap().len(), 2);
}

#[test]
fn a_store_that_was_replaced_takes_no_batch() {
    let place = Sqlite::new(false);
    let store = place.store();
    batch(&store).commit().unwrap();
    let (file, aside) = (place.project_folder().join("relay.db"), place.project_folder().join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    std::fs::copy(&aside, &file).unwrap();
    let refusal = store.batch(errand(WAIT)).err().unwrap();
    assert_eq!(refusal.code, Code::StoreBusy);
    assert!(refusal.message.contains("rebuilt"), "{refusal}");
}

#[test]
fn a_log_in_doubt_is_written_again_before_a_batch_and_before_whoever_settles_is_answered() {
    let place = Sqlite::new(false);
    let store = place.store();
    let doubt = || std::fs::write(place.doubt(), "").unwrap();
    doubt();
    let together = batch(&store);
    assert!(!place.doubt().exists());
    // Somebody's sync fails meanwhile.
    doubt();
    together.request(|_| ((), true)).unwrap();
    together.commit().unwrap();
    assert!(place.doubt().exists(), "nobody asked");
    let together = batch(&store);
    doubt();
    together.request(|store| (store.settle(WAIT).unwrap(), true)).unwrap();
    assert!(place.doubt().exists(), "not before the commit");
    together.commit().unwrap();
    assert!(!place.doubt().exists());
}
