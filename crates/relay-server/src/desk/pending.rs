//! What was shown and is about to be noted as such. An answer goes out first and is noted afterwards; whoever then asks again in
//! the same name finds it noted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::ask::Ask;

/// A note is never waited for longer than this: without it mail is shown again, which harms nobody.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Pending {
    /// How many there are, by project and agent.
    count: Mutex<HashMap<Name, usize>>,
    fewer: Notify,
}

type Name = (String, String);

/// An answer that is on its way, until this is dropped.
pub struct Mark {
    pending: Arc<Pending>,
    name: Option<Name>,
}

impl Pending {
    pub fn mark(self: &Arc<Self>, ask: &Ask) -> Mark {
        let name = name(ask);
        if let Some(name) = &name {
            let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
            *count.entry(name.clone()).or_default() += 1;
        }
        Mark { pending: self.clone(), name }
    }

    /// Waits until everything that this caller was shown before is noted.
    pub async fn settled(&self, ask: &Ask) {
        let Some(name) = name(ask) else { return };
        let settled = async {
            loop {
                let fewer = self.fewer.notified();
                if !self.count.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&name) {
                    return;
                }
                fewer.await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, settled).await;
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let mut count = self.pending.count.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = count.get_mut(&name) {
            *left -= 1;
            if *left == 0 {
                count.remove(&name);
            }
        }
        drop(count);
        self.pending.fewer.notify_waiters();
    }
}

/// Who asks, as it says so itself.
fn name(ask: &Ask) -> Option<Name> {
    let agent = ask.caller.named.as_ref().or(ask.caller.variable.as_ref())?;
    Some((ask.said.project.clone()?, agent.key()))
}
