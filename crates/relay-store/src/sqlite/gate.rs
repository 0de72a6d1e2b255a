//! The write gate: a blocking lock in front of `BEGIN IMMEDIATE`.
//!
//! SQLite's own busy handler starves writers, and so does one lock for all: on a busy machine whoever comes at the right
//! moment passes those who are still waking up. So writers stand in a line, and each waits for the one before it alone.
//! The wait happens in a helper thread, because the lock call itself has no deadline, and a loop of tries would lose the
//! place in the line.
//!
//! Closing the gate's file is also the bell that wakes waiters: it happens after the commit became visible, and the
//! kernel closes it even for a process that was killed in between.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};

use crate::filesystem::{io_refusal, private_file, private_folder};

/// Room for the note about the holder; a fixed width, so that a shorter note overwrites a longer one.
const NOTE: usize = 160;

/// Whoever waits no longer than this takes no place in the line: one that is given up lets those behind it pass those
/// before it.
const SHORT_PATIENCE: Span = Span::millis(100);

/// Places in the line are files that are used in turn.
const PLACES: u64 = 256;

/// Fields are dropped in this order: the next in line finds the gate open.
#[derive(Debug)]
pub(super) struct Gate {
    _lock: File,
    _place: Option<File>,
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
            return Ok(Gate::taken(file, None, errand));
        }
        let line = (errand.wait > SHORT_PATIENCE).then(|| folder.join("line"));
        if let Some(line) = line.as_ref().filter(|line| !line.is_dir()) {
            private_folder(line)?;
        }
        let (done, granted) = mpsc::channel();
        let waiter = thread::Builder::new().spawn(move || {
            let place = line.map(|line| stand_in_line(&line)).transpose();
            // When nobody waits any more, dropping the files gives the gate to the next in the line.
            let _ = done.send(place.and_then(|place| file.lock().map(|()| (file, place))));
        });
        waiter.map_err(|fault| Code::StoreBusy.refuse(format!("nobody can be sent to wait at the gate: {fault}")))?;
        match granted.recv_timeout(errand.wait.to_std()) {
            Ok(Ok((lock, place))) => Ok(Gate::taken(lock, place, errand)),
            Ok(Err(fault)) => Err(io_refusal(&path, &fault)),
            Err(_) => Err(busy(&path, errand)),
        }
    }

    /// Leaves a note about the holder.
    fn taken(lock: File, place: Option<File>, errand: Errand<'_>) -> Gate {
        let note = format!("pid {} verb {} agent {}", std::process::id(), errand.verb, errand.agent);
        let note: String = note.chars().take(NOTE - 1).collect();
        // Only for people who wait; a disk too full for it does not stop anybody.
        let _ = lock.write_all_at(format!("{note:<width$}\n", width = NOTE - 1).as_bytes(), 0);
        Gate { _lock: lock, _place: place }
    }
}

/// Takes the next place and waits until the one before it is done with the gate, or dead.
fn stand_in_line(line: &Path) -> io::Result<File> {
    let counter = private_file(&line.join("last"))?;
    counter.lock()?;
    let mut text = [0; 20];
    let length = counter.read_at(&mut text, 0)?;
    let last: u64 = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let place = |number: u64| private_file(&line.join((number % PLACES).to_string()));
    let (before, own) = (place(last)?, place(last.wrapping_add(1))?);
    own.lock()?;
    counter.write_all_at(format!("{:<20}", last.wrapping_add(1)).as_bytes(), 0)?;
    drop(counter);
    before.lock_shared()?;
    Ok(own)
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
        for millis in [1, 101, 1, 101] {
            refused(folder.path(), errand("send", "RedForest", millis));
        }
        drop(held);
        // Behind the four who gave up, and still served.
        drop(take(folder.path(), errand("ack", "GreenHill", 10_000)));
    }

    #[test]
    fn whoever_gives_up_soon_takes_no_place_in_the_line() {
        let folder = folder();
        let held = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        let places = || std::fs::read(folder.path().join("line/last")).unwrap_or_else(|fault| panic!("{fault}"));
        let before = places();
        refused(folder.path(), errand("poll", "RedForest", 50));
        refused(folder.path(), errand("poll", "RedForest", 100));
        assert_eq!(places(), before);
        refused(folder.path(), errand("send", "RedForest", 101));
        assert_ne!(places(), before);
        drop(held);
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
