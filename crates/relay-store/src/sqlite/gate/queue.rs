//! Those of one process who wait for the same gate, in the order in which they came.
//!
//! One thread, the runner, goes to the gate for all of them: a lock has no deadline, and a thread that waits for one cannot
//! be called back. Whoever gives up leaves the queue, and what the runner gets goes to the first who still waits. It
//! ends when nobody does.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::{Gate, line};

/// The file of a gate, by its device and its number there, and whether one stands in the line before it.
type Key = (u64, u64, bool);

/// Tells those who come apart.
static CAME: AtomicU64 = AtomicU64::new(0);

/// The queues of a process: one for every runner that is out.
pub(super) struct Queues(Mutex<BTreeMap<Key, Queue>>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiter>,
    /// What the runner has in the line for those who wait: the door, then a place. The last of them who gives up closes it,
    /// so that nobody stands behind one who has gone.
    held: Option<File>,
}

struct Waiter {
    number: u64,
    /// The file of the gate, opened once for each: any of them will do.
    gate: Arc<File>,
    line: Option<PathBuf>,
    turn: mpsc::Sender<io::Result<Gate>>,
}

/// Somebody in a queue.
pub(super) struct Waiting {
    queues: &'static Queues,
    key: Key,
    number: u64,
    granted: mpsc::Receiver<io::Result<Gate>>,
}

impl Queues {
    pub(super) const fn new() -> Self {
        Queues(Mutex::new(BTreeMap::new()))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait for a gate: in the line before it, or at the gate itself.
    pub(super) fn join(&'static self, gate: File, line: Option<PathBuf>) -> io::Result<Waiting> {
        let metadata = gate.metadata()?;
        let key = (metadata.dev(), metadata.ino(), line.is_some());
        let (turn, granted) = mpsc::channel();
        let number = CAME.fetch_add(1, Ordering::Relaxed);
        let waiter = Waiter { number, gate: Arc::new(gate), line, turn };
        let mut queues = self.lock();
        let is_first = !queues.contains_key(&key);
        queues.entry(key).or_default().waiting.push_back(waiter);
        if is_first && let Err(fault) = thread::Builder::new().spawn(move || self.run(key)) {
            queues.remove(&key);
            return Err(fault);
        }
        Ok(Waiting { queues: self, key, number, granted })
    }

    /// What the runner does: one turn after the other, for whoever is first then.
    fn run(&self, key: Key) {
        while let Some((gate, line)) = self.first(key) {
            match line.map_or(Ok(true), |line| self.stand(key, &line)) {
                Ok(true) => self.hand_over(key, gate.lock().map(|()| gate)),
                Ok(false) => {}
                Err(fault) => self.hand_over(key, Err(fault)),
            }
        }
    }

    fn first(&self, key: Key) -> Option<(Arc<File>, Option<PathBuf>)> {
        let mut queues = self.lock();
        let first = queues.get(&key)?.waiting.front().map(|first| (Arc::clone(&first.gate), first.line.clone()));
        if first.is_none() {
            queues.remove(&key);
        }
        first
    }

    /// Takes a place in the line and waits until its turn has come. False when nobody waited for that any more.
    fn stand(&self, key: Key, line: &Path) -> io::Result<bool> {
        let (door, number) = line::door(line)?;
        if !self.hold(key, door) {
            return Ok(false);
        }
        let place = line::take(line, number)?;
        // Closed by the last who gave up, the door is somebody else's, and the number too.
        let Some(door) = self.let_go(key) else { return Ok(false) };
        line::note(&door, number)?;
        if !self.hold(key, place) {
            return Ok(false);
        }
        drop(door);
        line::wait_behind(line, number)?;
        Ok(true)
    }

    /// Keeps this for those who wait; closes it when there are none.
    fn hold(&self, key: Key, file: File) -> bool {
        let mut queues = self.lock();
        let wanted = queues.get_mut(&key).filter(|queue| !queue.waiting.is_empty());
        wanted.map(|queue| queue.held = Some(file)).is_some()
    }

    fn let_go(&self, key: Key) -> Option<File> {
        self.lock().get_mut(&key)?.held.take()
    }

    /// Gives the gate to whoever is first, or back when nobody waits.
    fn hand_over(&self, key: Key, gate: io::Result<Arc<File>>) {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(&key) else { return };
        let place = queue.held.take();
        let gate = gate.map(|lock| Gate { lock, _place: place });
        if let Some(Waiter { gate: own, turn, .. }) = queue.waiting.pop_front() {
            // Often the same file: whoever has the turn is to be the only one who holds it open.
            drop(own);
            let _ = turn.send(gate);
        }
    }
}

impl Waiting {
    /// Waits for the gate. `None` at the deadline, and then nothing is left of it.
    pub(super) fn turn(self, wait: Duration) -> Option<io::Result<Gate>> {
        if let Ok(granted) = self.granted.recv_timeout(wait) {
            return Some(granted);
        }
        let mut queues = self.queues.lock();
        if let Some(queue) = queues.get_mut(&self.key) {
            queue.waiting.retain(|waiter| waiter.number != self.number);
            if queue.waiting.is_empty() {
                queue.held = None;
            }
        }
        // It may have come in the last moment.
        self.granted.try_recv().ok()
    }
}

#[cfg(test)]
impl Queues {
    /// How many of this process wait for a gate, of any kind.
    pub(super) fn waiting(&self) -> usize {
        self.lock().values().map(|queue| queue.waiting.len()).sum()
    }

    /// How many runners are out.
    pub(super) fn runners(&self) -> usize {
        self.lock().len()
    }
}
