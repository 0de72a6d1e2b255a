//! What was shown and is about to be noted as such. An answer goes out first and is noted afterwards; whoever then asks again in
//! the same name finds it noted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use relay_core::domain::name::ProjectKey;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A note is never waited for longer than this: without it mail is shown again, which harms nobody.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Pending {
    /// Until when each is waited for, by whom it was shown to.
    until: Mutex<HashMap<Name, Vec<Instant>>>,
    fewer: Notify,
}

/// A project, and who asks there; nobody is waited for who does not say.
pub type Name = (ProjectKey, Option<String>);

/// An answer that is on its way, until this is dropped.
pub struct Mark {
    pending: Arc<Pending>,
    name: Name,
    until: Instant,
}

impl Pending {
    pub fn mark(self: &Arc<Self>, name: Name) -> Mark {
        let until = Instant::now() + PATIENCE;
        let mut all = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(name.clone()).or_default().push(until);
        Mark { pending: self.clone(), name, until }
    }

    /// Whether everything that this caller was shown before is noted.
    pub fn is_settled(&self, name: &Name) -> bool {
        self.last(name).is_none()
    }

    /// Waits until it is.
    pub async fn settled(&self, name: &Name) {
        loop {
            let fewer = self.fewer.notified();
            let Some(until) = self.last(name) else { return };
            let _ = tokio::time::timeout_at(until, fewer).await;
        }
    }

    fn last(&self, name: &Name) -> Option<Instant> {
        name.1.as_ref()?;
        let (all, now) = (self.until.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        all.get(name)?.iter().copied().filter(|until| *until > now).max()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut all = self.pending.until.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_the_name) = all.get_mut(&self.name) {
            if let Some(at) = of_the_name.iter().position(|until| *until == self.until) {
                of_the_name.swap_remove(at);
            }
            if of_the_name.is_empty() {
                all.remove(&self.name);
            }
        }
        drop(all);
        self.pending.fewer.notify_waiters();
    }
}
