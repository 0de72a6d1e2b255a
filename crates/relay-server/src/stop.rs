//! When somebody wants this process to end.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears the terminal's interrupt and a request to terminate, from when it was made on.
pub struct Stop([Signal; 2]);

impl Stop {
    pub fn new() -> io::Result<Self> {
        Ok(Stop([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]))
    }

    pub async fn wanted(&mut self) {
        let [interrupted, terminated] = &mut self.0;
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    }
}
