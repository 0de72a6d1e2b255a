//! The promises of relay, tested end to end through the real binary.
//!
//! A file per verb, per invariant and per kind of trouble. `bus.rs` is the environment that makes them read like a
//! terminal.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

#[cfg(not(feature = "test-doors"))]
compile_error!("these tests need the test doors: run `scripts/test`, or `cargo test --features test-doors`");

mod bus;

mod canary;
mod crossing;
mod doors;
mod interrupted;
mod quiet;
mod races;
mod smoke;
mod trace;
mod wakeups;
