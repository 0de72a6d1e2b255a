//! One project that is served: its open stores, its writer, and the bell that rings when somebody has written.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use relay_core::domain::name::{AgentName, ProjectKey};
use relay_core::domain::time::Span;
use relay_core::store::Result;
use relay_store::sqlite::{Bell, Sqlite};
use tokio::sync::watch;

use super::writer::{self, Errand};
use super::{Desk, READERS};
use crate::descriptor;

/// A server that writes all the time leaves no more than one drainer behind in this time.
const BETWEEN_DRAINS: Span = Span::seconds(1);

pub struct Room {
    desk: Arc<Desk>,
    project: ProjectKey,
    idle: Mutex<Vec<Sqlite>>,
    queue: OnceLock<mpsc::Sender<Errand>>,
    bell: Mutex<Option<watch::Receiver<u64>>>,
    /// When it was last looked whether somebody drains.
    looked: Mutex<Option<Span>>,
    /// How long its writer waits for its turn.
    pub gate_wait: Span,
}

impl Room {
    pub fn new(desk: &Arc<Desk>, project: &ProjectKey) -> Arc<Self> {
        Arc::new(Room {
            desk: desk.clone(),
            project: project.clone(),
            idle: Mutex::new(Vec::new()),
            queue: OnceLock::new(),
            bell: Mutex::new(None),
            looked: Mutex::new(None),
            gate_wait: desk.limits.gate_wait,
        })
    }

    pub fn project(&self) -> &ProjectKey {
        &self.project
    }

    /// Whether somebody has started here; whoever may do so does.
    pub fn must_exist(&self, makes_it: bool, named: Option<&AgentName>) -> Result<()> {
        let home = self.desk.home();
        if home.known(&self.project)?.is_some() {
            return Ok(());
        }
        if !makes_it {
            return Err(home.nobody_in(&self.project, named.map(AgentName::as_str)));
        }
        self.put_back(home.open_or_create(&self.project)?);
        Ok(())
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

    /// Where those queue who want to write.
    pub fn queue(self: &Arc<Self>) -> &mpsc::Sender<Errand> {
        self.queue.get_or_init(|| writer::hire(self))
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
    pub fn listen(&self) -> Result<watch::Receiver<u64>> {
        let mut bell = self.bell.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heard) = bell.as_ref().filter(|heard| heard.has_changed().is_ok()) {
            return Ok(heard.clone());
        }
        let heard = ring(self.store()?.bell()?);
        *bell = Some(heard.clone());
        Ok(heard)
    }
}

/// Passes on what the bell says, for as long as somebody listens.
fn ring(bell: Bell) -> watch::Receiver<u64> {
    let (tell, heard) = watch::channel(0);
    tokio::spawn(async move {
        let Ok(mut bell) = descriptor::watched(bell) else { return };
        // The room itself keeps one listener.
        while let Ok(mut ready) = bell.readable_mut().await {
            ready.get_inner_mut().quieten();
            ready.clear_ready();
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
        if self.store.has_committed() {
            self.store.tidy_between(self.room.gate_wait);
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
