//! What runs the tasks of a server.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// How many may be held up by a file system that does not answer before everybody is.
const HELD_UP: usize = 24;

/// Two threads for those who ask, some for what blocks: the work is done by the writers.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(2).max_blocking_threads(HELD_UP).enable_all().build()
}
