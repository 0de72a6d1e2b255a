//! Requests that share a transaction: one turn at the gate, one `COMMIT` and one sync for all of them. Each is a savepoint,
//! so that one that is refused is undone alone. None may be answered before the commit.

use std::cell::{Cell, RefCell};

use relay_core::domain::event::Number;
use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{Errand, Facts, Presence, Result, Size, Store, Tx, Watch};

use super::savepoint::Savepoint;
use super::view::View;
use super::{Sqlite, doubt};

/// Dropping it undoes everything that was done in it.
pub struct Batch<'a> {
    store: &'a Sqlite,
    turn: View<'a>,
    /// Whether there is anything to commit.
    wrote: Cell<bool>,
    /// Whether an answer rests on what others have committed.
    settles: Cell<bool>,
}

impl Sqlite {
    /// Waits for the turn of all who will be in the batch, as `begin` does for one. It is synced whoever is in it: SQLite wants
    /// to know that before the first of them.
    pub fn batch(&self, errand: Errand<'_>) -> Result<Batch<'_>> {
        let turn = self.turn(Errand { durable: true, ..errand })?;
        let (wrote, settles) = (Cell::new(false), Cell::new(false));
        Ok(Batch { store: self, turn, wrote, settles })
    }
}

impl Batch<'_> {
    /// Runs one request, which sees what those before it did. It comes with whether what it has committed is kept; what it
    /// has not committed never is, nor anything of one that panics. A refusal means that nothing of it happened.
    pub fn request<T>(&self, run: impl FnOnce(&dyn Store) -> (T, bool)) -> Result<T> {
        self.turn.must_stand()?;
        let refuse = |fault: rusqlite::Error| self.store.refuse(&fault);
        let mut savepoint = Savepoint::set(self.turn.connection, "request").map_err(refuse)?;
        let part = Part { batch: self, wrote: RefCell::new(false) };
        let (outcome, is_kept) = run(&part);
        let wrote = is_kept && part.wrote.into_inner();
        if wrote {
            savepoint.release().map_err(refuse)?;
        }
        drop(savepoint);
        self.turn.must_stand()?;
        self.wrote.set(self.wrote.get() || wrote);
        Ok(outcome)
    }

    /// Makes what was kept visible to everybody, and durable; then gives up the gate. A refusal is
    /// everybody's, and nothing of anyone happened, unless it is `STORE_IO`: that leaves it open for all of them.
    pub fn commit(mut self) -> Result<()> {
        self.turn.must_stand()?;
        if self.settles.get() {
            doubt::settle(&self.store.folder)?;
        }
        // Nothing kept is nothing to commit: the end of the turn undoes the rest.
        if self.wrote.get() {
            self.turn.close()?;
        }
        if self.settles.get() && !self.wrote.get() {
            self.store.sync()?;
        }
        Ok(())
    }
}

/// One request's part of a batch: a store whose transactions are savepoints.
struct Part<'b> {
    batch: &'b Batch<'b>,
    /// Whether the request has committed anything. Its transaction holds it, so that there is one at a time.
    wrote: RefCell<bool>,
}

impl Store for Part<'_> {
    fn begin(&self, errand: Errand<'_>) -> Result<Box<dyn Tx + '_>> {
        self.batch.turn.must_stand()?;
        let Ok(wrote) = self.wrote.try_borrow_mut() else {
            let text = format!("`{}` began twice, and what it began first has not ended", errand.verb);
            return Err(Code::StoreBusy.refuse(text));
        };
        Ok(Box::new(self.batch.turn.share(wrote)?))
    }

    fn read(&self) -> Result<Box<dyn Facts + '_>> {
        let View { connection, folder, project, .. } = self.batch.turn;
        self.batch.turn.must_stand()?;
        Ok(Box::new(View::read(connection, folder, project)?))
    }

    fn sync(&self) -> Result<()> {
        self.batch.settles.set(true);
        Ok(())
    }

    fn settle(&self, _wait: Span) -> Result<()> {
        self.sync()
    }

    fn presence(&self) -> &dyn Presence {
        self.batch.store.presence()
    }

    fn watch(&self) -> Result<Box<dyn Watch>> {
        self.batch.store.watch()
    }

    fn archived(&self) -> Result<Number> {
        self.batch.store.archived()
    }

    fn size(&self) -> Size {
        self.batch.store.size()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]
mod tests {
    use relay_core::domain::name::ProjectKey;
    use relay_core::store::Remembered;
    use tempfile::TempDir;

    use super::*;

    const WAIT: Span = Span::seconds(10);
    const ERRAND: Errand<'_> = Errand { verb: "test", agent: "", wait: WAIT, durable: true };

    fn open(folder: &TempDir) -> Sqlite {
        Sqlite::open(folder.path(), &ProjectKey::resolved("/srv/app"), WAIT, 0).unwrap()
    }

    fn remember(tx: &mut dyn Tx, key: &str, answer: &str) -> Result<()> {
        let (verb, request, answer) = ("send".to_owned(), "digest".to_owned(), answer.to_owned());
        tx.remember("bluelake", key, &Remembered { verb, salt: [3; 16], request, answer, number: 1 })
    }

    /// A request that is refused as it is where it fails.
    fn run(store: &dyn Store, key: &str, answer: &str) -> (Result<()>, bool) {
        let done = store.begin(ERRAND).and_then(|mut tx| remember(&mut *tx, key, answer).and_then(|()| tx.commit()));
        let is_kept = done.is_ok();
        (done, is_kept)
    }

    #[track_caller]
    fn remembers(store: &Sqlite, keys: &[&str]) {
        let facts = store.read().unwrap();
        let is_there = |key: &&&str| facts.remembered("bluelake", key).unwrap().is_some();
        assert_eq!(
            ["one", "two", "three"].iter().filter(is_there).collect::<Vec<_>>(),
            keys.iter().collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_store_without_room_gives_up_all_of_a_batch_and_each_request_can_run_again_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let batch = store.batch(ERRAND).unwrap();
        batch.request(|store| run(store, "one", "short")).unwrap().unwrap();
        let pages: i64 = store.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
        let limit =
            |pages: i64| store.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()));
        limit(pages).unwrap();
        let long = "x".repeat(100_000);
        let request = |store: &dyn Store| {
            let mut tx = store.begin(ERRAND).unwrap();
            assert_eq!(remember(&mut *tx, "two", &long).unwrap_err().code, Code::StoreFull);
            // It would stand alone, outside of any transaction.
            remember(&mut *tx, "two", "short").unwrap_err();
            tx.commit().unwrap_err();
            for refusal in [store.begin(ERRAND).err(), store.read().err()] {
                assert_eq!(refusal.unwrap().code, Code::StoreBusy);
            }
            ((), true)
        };
        assert_eq!(batch.request(request).unwrap_err().code, Code::StoreBusy);
        assert_eq!(batch.request(|store| run(store, "three", "short")).unwrap_err().code, Code::StoreBusy);
        assert_eq!(batch.commit().unwrap_err().code, Code::StoreBusy);
        remembers(&store, &[]);

        run(&store, "one", "short").0.unwrap();
        assert_eq!(run(&store, "two", &long).0.unwrap_err().code, Code::StoreFull);
        run(&store, "three", "short").0.unwrap();
        remembers(&store, &["one", "three"]);
    }

    #[test]
    fn a_request_whose_undoing_fails_takes_the_batch_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let batch = store.batch(ERRAND).unwrap();
        batch.request(|store| run(store, "one", "short")).unwrap().unwrap();
        let request = |part: &dyn Store| {
            let done = run(part, "two", "short");
            store.connection.execute_batch("RELEASE request").unwrap();
            (done, false)
        };
        batch.request(request).unwrap_err();
        batch.commit().unwrap_err();
        remembers(&store, &[]);
    }

    #[test]
    fn a_statement_that_fails_is_the_end_of_its_request_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let batch = store.batch(ERRAND).unwrap();
        batch.request(|store| run(store, "one", "short")).unwrap().unwrap();
        let request = |part: &dyn Store| {
            let mut tx = part.begin(ERRAND).unwrap();
            remember(&mut *tx, "two", "short").unwrap();
            let foreign = "INSERT INTO texts (event, field, salt, text) VALUES (99, 'body', x'', '')";
            (store.connection.execute_batch(foreign).unwrap_err(), true)
        };
        batch.request(request).unwrap();
        batch.request(|store| run(store, "three", "short")).unwrap().unwrap();
        batch.commit().unwrap();
        remembers(&store, &["one", "three"]);
    }

    #[test]
    fn a_commit_that_is_refused_leaves_nothing_of_anyone() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder);
        let batch = store.batch(ERRAND).unwrap();
        for key in ["one", "two"] {
            batch.request(|store| run(store, key, "short")).unwrap().unwrap();
        }
        let foreign = "INSERT INTO texts (event, field, salt, text) VALUES (99, 'body', x'', '')";
        store.connection.execute_batch(&format!("PRAGMA defer_foreign_keys = ON; {foreign}")).unwrap();
        batch.commit().unwrap_err();
        remembers(&store, &[]);
        // The turn is over all the same.
        run(&store, "three", "short").0.unwrap();
        remembers(&open(&folder), &["three"]);
    }
}
