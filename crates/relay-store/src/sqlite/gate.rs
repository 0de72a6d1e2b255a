//! The write gate: a blocking lock in front of `BEGIN IMMEDIATE`.
//!
//! SQLite's own busy handler starves writers, and so does one lock for all: on a busy machine whoever comes at the right
//! moment passes those who are still waking up. So processes stand in a line (`line.rs`), and each waits for the one before it
//! alone. The threads of one process queue before that (`queue.rs`), and one of them goes for all, because the lock call
//! itself has no deadline, and a loop of tries would lose the place in the line.
//!
//! Closing the gate's file is also the bell that wakes waiters: it happens after the commit became visible, and the
//! kernel closes it even for a process that was killed in between.

mod line;
mod queue;

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Errand, Result};

use crate::filesystem::{io_refusal, private_file, private_folder};
use queue::Queues;

/// Room for the note about the holder; a fixed width, so that a shorter note overwrites a longer one.
const NOTE: usize = 160;

/// Whoever waits no longer than this takes no place in the line: one that is given up lets those behind it pass those
/// before it.
const SHORT_PATIENCE: Span = Span::millis(100);

/// Everybody in this process who waits for a gate.
static HERE: Queues = Queues::new();

/// Fields are dropped in this order: the next in line finds the gate open.
#[derive(Debug)]
pub(super) struct Gate {
    lock: Arc<File>,
    _place: Option<File>,
}

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("gate")
}

impl Gate {
    pub(super) fn take(folder: &Path, errand: Errand<'_>) -> Result<Gate> {
        Gate::take_among(&HERE, folder, errand)
    }

    fn take_among(queues: &'static Queues, folder: &Path, errand: Errand<'_>) -> Result<Gate> {
        let path = path(folder);
        let file = private_file(&path).map_err(|fault| io_refusal(&path, &fault))?;
        // On a loaded machine a thread may start later than a short patience ends, and that is no contention.
        if errand.wait <= SHORT_PATIENCE && file.try_lock().is_ok() {
            return Ok(Gate { lock: Arc::new(file), _place: None }.noted(errand));
        }
        let line = (errand.wait > SHORT_PATIENCE).then(|| folder.join("line"));
        if let Some(line) = line.as_ref().filter(|line| !line.is_dir()) {
            private_folder(line)?;
        }
        let waiting = queues
            .join(file, line)
            .map_err(|fault| Code::StoreBusy.refuse(format!("nobody can be sent to wait at the gate: {fault}")))?;
        match waiting.turn(errand.wait.to_std()) {
            Some(Ok(gate)) => Ok(gate.noted(errand)),
            Some(Err(fault)) => Err(io_refusal(&path, &fault)),
            None => Err(busy(&path, errand)),
        }
    }

    /// Leaves a note about the holder.
    fn noted(self, errand: Errand<'_>) -> Gate {
        let note = format!("pid {} verb {} agent {}", std::process::id(), errand.verb, errand.agent);
        let note: String = note.chars().take(NOTE - 1).collect();
        // Only for people who wait; a disk too full for it does not stop anybody.
        let _ = self.lock.write_all_at(format!("{note:<width$}\n", width = NOTE - 1).as_bytes(), 0);
        self
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
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

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

    /// As another process: its threads do not queue with ours.
    fn process() -> &'static Queues {
        Box::leak(Box::new(Queues::new()))
    }

    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            std::thread::yield_now();
        }
    }

    /// Everybody takes a turn at the same gate, and then another; returns how often somebody was refused.
    fn refusals<'a>(folder: &Path, everybody: impl Iterator<Item = (&'static Queues, Errand<'a>)>) -> usize {
        let (inside, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let turn = |queues, errand| match Gate::take_among(queues, folder, errand) {
            Err(_) => drop(refused.fetch_add(1, Ordering::Relaxed)),
            Ok(gate) => {
                assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0, "two hold the gate");
                inside.fetch_sub(1, Ordering::Relaxed);
                drop(gate);
            }
        };
        std::thread::scope(|scope| {
            for (queues, errand) in everybody {
                let turn = &turn;
                scope.spawn(move || (0..2).for_each(|_| turn(queues, errand)));
            }
        });
        refused.into_inner()
    }

    /// Whether somebody holds a lock on a file of the line, by its name.
    fn held(folder: &Path) -> Vec<String> {
        let files = std::fs::read_dir(folder.join("line")).into_iter().flatten().flatten();
        let is_held = |path: &PathBuf| File::open(path).is_ok_and(|file| file.try_lock().is_err());
        let names = files.map(|file| file.path()).filter(is_held);
        let mut names: Vec<String> =
            names.map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn any_number_of_threads_is_served() {
        let folder = folder();
        let everybody = (0..600).map(|_| (&HERE, errand("send", "BlueLake", 20_000)));
        assert_eq!(refusals(folder.path(), everybody), 0);
    }

    #[test]
    fn more_processes_than_there_are_places_are_served() {
        let folder = folder();
        let everybody = (0..300).map(|_| (process(), errand("send", "BlueLake", 20_000)));
        assert_eq!(refusals(folder.path(), everybody), 0);
        assert_eq!(held(folder.path()), [""; 0]);
    }

    #[test]
    fn of_a_crowd_those_who_give_up_hold_up_nobody() {
        let folder = folder();
        let first = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        let processes: Vec<_> = (0..300).map(|_| process()).collect();
        let everybody = |millis| processes.iter().map(move |queues| (*queues, errand("send", "RedForest", millis)));
        assert_eq!(refusals(folder.path(), everybody(150)), 2 * processes.len());
        drop(first);
        assert_eq!(refusals(folder.path(), everybody(20_000)), 0);
        until(|| processes.iter().all(|queues| queues.runners() == 0));
        assert_eq!(held(folder.path()), [""; 0]);
    }

    #[test]
    fn whoever_gave_up_is_gone_from_the_line_before_the_gate_is_free() {
        let folder = folder();
        let first = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        let before = held(folder.path());
        assert_eq!(before.len(), 1, "the holder's place: {before:?}");
        let other = process();
        for _ in 0..3 {
            let refusal = Gate::take_among(other, folder.path(), errand("send", "RedForest", 101));
            assert_eq!(refusal.err().map(|refusal| refusal.code), Some(Code::StoreBusy));
            assert_eq!(held(folder.path()), before);
        }
        // One thread is still out for it, however often it came.
        assert_eq!((other.waiting(), other.runners()), (0, 1));
        // As a process that comes later and has nobody before it who waits.
        let last = process();
        std::thread::scope(|scope| {
            let served =
                scope.spawn(|| Gate::take_among(last, folder.path(), errand("ack", "GreenHill", 20_000)).is_ok());
            until(|| held(folder.path()).len() == 2);
            drop(first);
            assert!(served.join().is_ok_and(|is_served| is_served));
        });
        until(|| other.runners() + last.runners() == 0);
        assert_eq!(held(folder.path()), [""; 0]);
    }

    #[test]
    fn threads_of_a_process_are_served_in_the_order_in_which_they_came() {
        let folder = folder();
        let first = take(folder.path(), errand("reserve", "BlueLake", 10_000));
        let here = process();
        let join =
            |_| private_file(&path(folder.path())).and_then(|gate| here.join(gate, Some(folder.path().join("line"))));
        let mut waiting: Vec<_> = (0..6).filter_map(|number| join(number).ok()).collect();
        for leaves in [3, 0] {
            assert!(waiting.remove(leaves).turn(Duration::ZERO).is_none());
        }
        assert_eq!((waiting.len(), here.waiting(), here.runners()), (4, 4, 1));
        drop(first);
        // Were one of them served too early, those before it would wait in vain.
        for one in waiting {
            assert!(matches!(one.turn(Duration::from_secs(20)), Some(Ok(_))));
        }
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
