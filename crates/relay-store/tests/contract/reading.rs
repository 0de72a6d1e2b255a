//! A view: of the newest committed state, without waiting, and still.

use relay_core::store::{EventQuery, Store};

use super::{Mail, begin, each, name, register, send, write};

#[test]
fn a_reader_sees_the_newest_committed_state_and_nothing_that_is_not() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        write(&*one, |tx| register(tx, "BlueLake"));
        let mut tx = begin(&*one);
        register(&mut *tx, "RedForest");
        // The writer has not ended, and the reader does not wait for it.
        let facts = other.read().unwrap();
        assert!(facts.agent(&name("BlueLake")).unwrap().is_some());
        assert!(facts.agent(&name("RedForest")).unwrap().is_none());
        drop(facts);
        tx.commit().unwrap();
        assert!(other.read().unwrap().agent(&name("RedForest")).unwrap().is_some());
    });
}

#[test]
fn a_view_does_not_change_while_it_is_held() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        let facts = other.read().unwrap();
        // Taken at the first look or at the start: either way it stays what it was.
        let before = facts.tip().unwrap();
        write(&*one, |tx| register(tx, "BlueLake"));
        assert_eq!(facts.tip().unwrap(), before);
        assert!(facts.agents().unwrap().is_empty());
        assert!(facts.events(&EventQuery::between(before.number, u64::MAX)).unwrap().is_empty());
        drop(facts);
        assert_eq!(other.read().unwrap().tip().unwrap().number, before.number + 1);
    });
}

#[test]
fn a_reader_stands_in_no_writers_way() {
    each(|place| {
        let (one, other) = (place.open(), place.open());
        let facts = other.read().unwrap();
        facts.tip().unwrap();
        write(&*one, |tx| register(tx, "BlueLake"));
        write(&*one, |tx| register(tx, "RedForest"));
        drop(facts);
        assert_eq!(other.read().unwrap().agents().unwrap().len(), 2);
    });
}

#[test]
fn the_project_keeps_its_id_and_begins_with_its_opening() {
    each(|place| {
        let tip = place.open().read().unwrap().tip().unwrap();
        let again = place.open().read().unwrap().tip().unwrap();
        assert_eq!(tip, again, "opening it again appends nothing");
        assert_eq!(tip.number, 1);
        assert!(!tip.project.is_empty());
    });
}

#[test]
fn the_room_that_a_store_takes_grows_with_what_is_written() {
    each(|place| {
        let store = place.open();
        let whole = |store: &dyn Store| store.size().bytes + store.size().log_bytes;
        let before = whole(&*store);
        assert!(before > 0);
        let body = "text ".repeat(50_000);
        write(&*store, |tx| send(tx, &Mail { body: &body, ..Mail::default() }));
        assert!(whole(&*store) >= before + 250_000, "{before} and then {:?}", store.size());
        assert_eq!(place.open().size(), store.size(), "whoever looks");
    });
}
