//! One project that is served: its open stores, its writer, and the bell that rings when somebody has written.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::store::Result;
use relay_store::sqlite::{Bell, Sqlite};
use tokio::sync::watch;

use super::writer::{self, Errand};
use super::{Desk, READERS, broke};
use crate::descriptor;

/// A server that writes all the time leaves no more than one drainer behind in this time.
const BETWEEN_DRAINS: Span = Span::seconds(1);

/// Where nobody can listen, it is looked as often as this.
pub const DEAF: Duration = Duration::from_millis(250);

pub struct Room {
    desk: Arc<Desk>,
    project: ProjectKey,
    idle: Mutex<Vec<Sqlite>>,
    queue: Mutex<Option<mpsc::Sender<Errand>>>,
    bell: Mutex<Option<watch::Receiver<u64>>>,
    /// When it was last looked whether somebody drains.
    looked: Mutex<Option<Span>>,
    entered: Mutex<Span>,
    /// How long its writer waits for its turn.
    pub gate_wait: Span,
}

impl Room {
    pub fn new(desk: &Arc<Desk>, project: &ProjectKey) -> Arc<Self> {
        Arc::new(Room {
            desk: desk.clone(),
            project: project.clone(),
            idle: Mutex::new(Vec::new()),
            queue: Mutex::new(None),
            bell: Mutex::new(None),
            looked: Mutex::new(None),
            entered: Mutex::new(Span::seconds(0)),
            gate_wait: desk.limits.gate_wait,
        })
    }

    pub fn project(&self) -> &ProjectKey {
        &self.project
    }

    pub fn entered(&self, now: Span) {
        *self.entered.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    pub fn last_entered(&self) -> Span {
        *self.entered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody is in it: whoever is, or listens for its bell, holds it.
    pub fn is_empty(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) == 1
    }

    /// An open store for one who needs it for a while.
    pub fn store(&self) -> Result<Lent<'_>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let store = match idle.filter(|store| !store.was_replaced()) {
            Some(store) => store,
            None => self.open()?,
        };
        Ok(Lent { room: self, store })
    }

    pub fn open(&self) -> Result<Sqlite> {
        let home = self.desk.home();
        home.open_existing(&self.project)?.ok_or_else(|| home.nobody_in(&self.project, None))
    }

    fn put_back(&self, store: Sqlite) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < READERS {
            idle.push(store);
        }
    }

    /// Joins those who want to write. A writer that could not be started, or has died, is hired anew.
    pub fn enqueue(self: &Arc<Self>, errand: Errand) -> Result<()> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let errand = match queue.as_ref() {
            Some(queue) => match queue.send(errand) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0,
            },
            None => errand,
        };
        queue.insert(writer::hire(self)?).send(errand).map_err(|_| broke())
    }

    /// After something was committed: sees to it that somebody brings the archive up to date, now and then.
    pub fn written(&self, store: &Sqlite) {
        let now = self.desk.clock.monotonic();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.is_some_and(|looked| now.as_millis() - looked.as_millis() < BETWEEN_DRAINS.as_millis()) {
            return;
        }
        *looked = Some(now);
        // Whoever is in office looks once more after leaving it, and finds what we wrote.
        if store.archive().try_office().is_ok_and(|office| office.is_some()) {
            self.desk.front.drain(&self.project);
        }
    }

    pub fn has_written(&self) -> bool {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Changes with every commit from now on, also of another process.
    pub fn listen(self: &Arc<Self>) -> Result<Heard> {
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = match bell.as_ref().filter(|heard| heard.has_changed().is_ok()) {
            Some(heard) => heard.clone(),
            None => bell.insert(ring(self.store()?.bell()?)).clone(),
        };
        Ok(Heard { bell: heard, _room: self.clone() })
    }
}

/// One who listens for a room's bell.
pub struct Heard {
    bell: watch::Receiver<u64>,
    /// It stays open for as long as somebody listens.
    _room: Arc<Room>,
}

impl Heard {
    /// What rings from now on is news.
    pub fn so_far(&mut self) {
        self.bell.mark_unchanged();
    }

    /// Waits until it rings. False when it never will again: the store is gone, or another is in its place. That is said after
    /// a pause, so that whoever listens anew each time does not do so without end.
    pub async fn rings(&mut self) -> bool {
        if self.bell.changed().await.is_ok() {
            return true;
        }
        tokio::time::sleep(DEAF).await;
        false
    }
}

/// Passes on what the bell says, for as long as somebody could hear it.
fn ring(bell: Bell) -> watch::Receiver<u64> {
    let (tell, heard) = watch::channel(0);
    tokio::spawn(async move {
        let Ok(mut bell) = descriptor::watched(bell) else { return };
        loop {
            let ready = tokio::select! {
                ready = bell.readable_mut() => ready,
                () = tell.closed() => return,
            };
            let Ok(mut ready) = ready else { return };
            let is_there = ready.get_inner_mut().quieten();
            ready.clear_ready();
            if !is_there {
                return;
            }
            tell.send_modify(|count| *count += 1);
        }
    });
    heard
}

/// A store that goes back to its room.
pub struct Lent<'a> {
    room: &'a Room,
    store: Sqlite,
}

impl Lent<'_> {
    /// It is as good as new; one that broke on the way is not given back.
    pub fn keep(self) {
        if self.store.tidy_between(self.room.gate_wait) {
            self.room.written(&self.store);
        }
        self.room.put_back(self.store);
    }
}

impl Deref for Lent<'_> {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.store
    }
}
