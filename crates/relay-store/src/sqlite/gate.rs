//! The write gate: a blocking lock in front of `BEGIN IMMEDIATE`.
//!
//! SQLite's own busy handler starves writers; the kernel's lock queue does not. The wait happens in a helper thread,
//! because the lock call itself has no deadline, and a loop of tries would lose the place in the queue.
//!
//! Closing the gate's file is also the bell that wakes waiters: it happens after the commit became visible, and the
//! kernel closes it even for a process that was killed in between.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};

use crate::filesystem::{io_refusal, private_file};

/// Room for the note about the holder; a fixed width, so that a shorter note overwrites a longer one.
const NOTE: usize = 160;

/// Whoever waits no longer than this takes a gate that is free without queueing.
const SHORT_PATIENCE: Span = Span::millis(100);

#[derive(Debug)]
pub(super) struct Gate {
    _lock: File,
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("gate")
}

impl Gate {
    pub(super) fn take(folder: &Path, errand: Errand<'_>) -> Result<Gate> {
        let path = path(folder);
        let file = private_file(&path).map_err(|fault| io_refusal(&path, &fault))?;
        // On a loaded machine a thread may start later than a short patience ends, and that is no contention.
        if errand.wait <= SHORT_PATIENCE && file.try_lock().is_ok() {
            return Ok(Gate::taken(file, errand));
        }
        let (done, granted) = mpsc::channel();
        #[expect(clippy::disallowed_methods, reason = "the lock call has no deadline of its own")]
        thread::spawn(move || {
            let locked = file.lock().map(|()| file);
            // When nobody waits any more, dropping the file gives the gate to the next in the queue.
            let _ = done.send(locked);
        });
        match granted.recv_timeout(errand.wait.to_std()) {
            Ok(Ok(lock)) => Ok(Gate::taken(lock, errand)),
            Ok(Err(fault)) => Err(io_refusal(&path, &fault)),
            Err(_) => Err(busy(&path, errand)),
        }
    }

    /// Leaves a note about the holder.
    fn taken(lock: File, errand: Errand<'_>) -> Gate {
        let note = format!("pid {} verb {} agent {}", std::process::id(), errand.verb, errand.agent);
        let note: String = note.chars().take(NOTE - 1).collect();
        // Only for people who wait; a disk too full for it does not stop anybody.
        let _ = lock.write_all_at(format!("{note:<width$}\n", width = NOTE - 1).as_bytes(), 0);
        Gate { _lock: lock }
    }
}

fn busy(path: &Path, errand: Errand<'_>) -> Refusal {
    let mut note = String::new();
    let _ = File::open(path).and_then(|mut file| file.read_to_string(&mut note));
    let holder = note.trim();
    Code::StoreBusy
        .refuse(format!("the write gate was not free within {}; last taken by {holder}", errand.wait))
        .with("holder", holder)
}

#[cfg(test)]
mod tests {
    use relay_core::domain::time::Span;

    use super::*;

    fn errand<'a>(verb: &'a str, agent: &'a str, millis: i64) -> Errand<'a> {
        Errand { verb, agent, wait: Span::millis(millis), durable: true }
    }

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn take(folder: &Path, errand: Errand<'_>) -> Gate {
        Gate::take(folder, errand).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    #[track_caller]
    fn refused(folder: &Path, errand: Errand<'_>) -> Refusal {
        Gate::take(folder, errand).err().unwrap_or_else(|| panic!("two hold the gate"))
    }

    #[test]
    fn a_deadline_that_passes_names_the_holder() {
        let folder = folder();
        let held = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        let refusal = refused(folder.path(), errand("send", "RedForest", 20));
        let holder = format!("pid {} verb reserve agent BlueLake", std::process::id());
        assert_eq!(refusal.code, Code::StoreBusy);
        assert_eq!(refusal.message, format!("the write gate was not free within 20ms; last taken by {holder}"));
        assert_eq!(refusal.details["holder"], holder);
        drop(held);
    }

    #[test]
    fn whoever_gave_up_does_not_keep_the_gate() {
        let folder = folder();
        let held = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        for _ in 0..3 {
            refused(folder.path(), errand("send", "RedForest", 1));
        }
        drop(held);
        // Behind the three who gave up, and still served.
        drop(take(folder.path(), errand("ack", "GreenHill", 10_000)));
    }

    #[test]
    fn a_shorter_note_leaves_nothing_of_a_longer_one() {
        let folder = folder();
        drop(take(folder.path(), errand("reserve", &"x".repeat(500), 10_000)));
        let held = take(folder.path(), errand("ack", "Al", 10_000));
        let refusal = refused(folder.path(), errand("send", "RedForest", 1));
        assert_eq!(refusal.details["holder"], format!("pid {} verb ack agent Al", std::process::id()));
        drop(held);
    }
}
