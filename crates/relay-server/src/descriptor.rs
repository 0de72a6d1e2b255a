//! A descriptor that wakes a task. One door, since the runtime wants to be sure of one thing.

use std::io;
use std::os::fd::AsRawFd;

use tokio::io::unix::AsyncFd;

/// `what` owns its descriptor, and keeps it open for as long as it lives: nobody else is woken in its place.
#[expect(deprecated, reason = "what is asked of the caller is said above, and both callers hold to it")]
pub fn watched<T: AsRawFd>(what: T) -> io::Result<AsyncFd<T>> {
    AsyncFd::new(what)
}
