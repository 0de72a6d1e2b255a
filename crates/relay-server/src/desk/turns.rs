//! Turns: how many do the same kind of work at a time. A turn goes along to the thread that does the work, which goes on also where
//! nobody waits for its answer any more: given back before, it would let in more than there are threads for.

use std::sync::Arc;

use relay_core::store::Result;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::broke;

pub struct Turns(Arc<Semaphore>);

/// One's turn, until this is dropped.
pub type Turn = OwnedSemaphorePermit;

impl Turns {
    pub fn of(count: usize) -> Self {
        Turns(Arc::new(Semaphore::new(count)))
    }

    /// Waits for it.
    pub async fn take(&self) -> Result<Turn> {
        self.0.clone().acquire_owned().await.map_err(|_| broke())
    }
}
