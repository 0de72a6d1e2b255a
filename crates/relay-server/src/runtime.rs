//! What runs the tasks of a server.

use std::io;

use tokio::runtime::{Builder, Runtime};

use crate::desk::READERS;

/// Two threads for those who ask, a few for what blocks: the work is done by the writers.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(READERS).enable_all().build()
}
