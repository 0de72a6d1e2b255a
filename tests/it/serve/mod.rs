//! `relay serve`: the same verbs over HTTP, for those who bring a token.

mod bodies;
mod changes;
mod completion;
mod crowd;
mod door;
mod elsewhere;
mod erasing;
mod forged;
mod limits;
mod log;
mod lost;
mod owners;
mod prompts;
mod remote;
mod resources;
mod revoked;
mod rooms;
mod stopping;
mod tls;
mod waits;

use crate::bus::Bus;

/// How many announce themselves to wait.
fn waiting(bus: &Bus) -> usize {
    let entries = std::fs::read_dir(bus.store().join("presence")).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "live")).count()
}

fn until(ready: impl Fn() -> bool) {
    while !ready() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
