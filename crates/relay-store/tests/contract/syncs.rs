//! How often a batch asks the disk for a sync, seen by strace from outside. Where strace cannot run, these tests fail.

use std::process::{Command, Stdio};

use relay_core::domain::time::Span;
use relay_core::error::Code;
use relay_core::store::{Errand, Result, Store};
use relay_store::sqlite;
use relay_store::verify::verify;

use super::batch::people;
use super::{Mail, Place, Sqlite, errand, party, send, write};

/// Where the other process of these tests finds its batch and its place.
const BATCH: &str = "RELAY_CONTRACT_BATCH";
const WAIT: Span = Span::seconds(60);

/// A batch by what its requests do, and how often it syncs the log.
const BATCHES: [(&str, usize); 9] = [
    ("", 0),
    ("look", 0),
    ("write", 1),
    ("write,write,write", 1),
    ("refuse,refuse", 0),
    ("refuse,write,note,settle", 1),
    ("note,note", 1),
    ("note,settle", 1),
    ("settle,settle", 1),
];

fn place() -> Sqlite {
    let place = Sqlite::new(false);
    write(&place.store(), people);
    place
}

fn sent(place: &Sqlite) -> usize {
    place.store().read().unwrap().outbox(&party("BlueLake"), 10).unwrap().len()
}

/// Runs a batch and commits it.
fn run(batch: &str, store: &sqlite::Sqlite) -> Result<()> {
    let together = store.batch(errand(WAIT))?;
    for request in batch.split(',').filter(|request| !request.is_empty()) {
        let write = |store: &dyn Store| -> Result<()> {
            let mut tx = store.begin(Errand { durable: request != "note", ..errand(WAIT) })?;
            send(&mut *tx, &Mail::default());
            tx.commit()
        };
        let act = |store: &dyn Store| match request {
            "look" => store.read().map(drop),
            "settle" => store.settle(WAIT),
            _ => write(store),
        };
        together.request(|store| (act(store), request != "refuse"))??;
    }
    together.commit()
}

/// Runs a batch in another process of this very test program, which finds that the disk does what strace is told. The
/// syncs of the log.
fn trace(batch: &str, place: &Sqlite, options: &[&str]) -> Vec<String> {
    let trace = place.folder.join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-y", "-e", "trace=fsync,fdatasync"]).args(options).arg("-o").arg(&trace);
    strace.arg(std::env::current_exe().unwrap()).args(["--exact", "syncs::a_process_runs_a_batch", "--nocapture"]);
    let status = strace.env(BATCH, format!("{batch} {}", place.address())).stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{batch}: {status}");
    let calls = std::fs::read_to_string(trace).unwrap();
    calls.lines().filter(|call| call.contains("relay.db-wal>")).map(str::to_owned).collect()
}

/// Without a batch it is a test of the batches themselves.
#[test]
fn a_process_runs_a_batch() {
    let Ok(given) = std::env::var(BATCH) else {
        for (batch, _) in BATCHES {
            let place = place();
            run(batch, &place.store()).unwrap();
            let expected = batch.split(',').filter(|request| ["write", "note"].contains(request)).count();
            assert_eq!(sent(&place), expected, "{batch}");
        }
        return;
    };
    let [batch, "sqlite", folder] = given.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{given}") };
    let place = Sqlite { folder: folder.into(), batches: false, _root: None };
    let store = place.store();
    let Some(failing) = batch.strip_prefix("failing,") else { return run(batch, &store).unwrap() };
    let (failing, next) = failing.split_once(",then,").unwrap_or((failing, ""));
    assert_eq!(run(failing, &store).unwrap_err().code, Code::StoreIo);
    if !next.is_empty() {
        run(next, &store).unwrap();
    }
}

#[test]
fn a_batch_is_synced_once_however_many_are_in_it_and_not_at_all_where_nobody_wrote() {
    for (batch, expected) in BATCHES {
        let calls = trace(batch, &place(), &[]);
        assert_eq!(calls.len(), expected, "{batch}: {calls:?}");
    }
}

#[test]
fn after_a_sync_that_failed_the_log_is_in_doubt_and_nothing_of_anyone_is_there() {
    for batch in ["write,write", "note,settle", "settle"] {
        let place = place();
        // As long as somebody has the store open, what was not synced is not taken for committed.
        let open = place.store();
        open.read().unwrap().tip().unwrap();
        let calls = trace(&format!("failing,{batch}"), &place, &["-e", "inject=fsync,fdatasync:error=EIO"]);
        assert!(calls.iter().all(|call| call.contains("EIO")), "{batch}: {calls:?}");
        assert!(place.doubt().exists(), "{batch}");
        assert_eq!(sent(&place), 0, "{batch}");
        drop(open.batch(errand(WAIT)).unwrap());
        assert!(!place.doubt().exists(), "{batch}");
        run("write", &open).unwrap();
        assert_eq!(sent(&place), 1, "{batch}");
        assert_eq!(verify(&place.project_folder(), |_, _, _| {}).unwrap().findings.total(), 0, "{batch}");
    }
}

#[test]
fn whoever_saw_a_sync_fail_can_go_on_with_the_same_store() {
    let place = place();
    let once = ["-e", "inject=fsync,fdatasync:error=EIO:when=1"];
    let calls = trace("failing,write,write,then,write,write,write", &place, &once);
    assert_eq!(calls.len(), 3, "the one that failed, that of the log written again, and the commit's: {calls:?}");
    assert_eq!(sent(&place), 3);
    assert_eq!(verify(&place.project_folder(), |_, _, _| {}).unwrap().findings.total(), 0);
}
