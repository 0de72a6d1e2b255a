//! Where relay remembers: the embedded SQLite store, presence, and what is read from the repository around a project.

/// A place between two steps where a test kills the process, or lets the first of them fail. A release build has none.
macro_rules! point {
    ($name:literal, $code:ident) => {
        fail::fail_point!($name, |how: Option<String>| {
            if how.as_deref() == Some("abort") {
                std::process::abort();
            }
            Err(relay_core::error::Code::$code.refuse("a test said so"))
        });
    };
}

pub mod archive;
mod blame;
pub mod filesystem;
pub mod fitness;
pub mod fresh;
pub mod harness;
pub mod home;
pub mod hooks;
pub mod notes;
pub mod openings;
pub mod presence;
pub mod random;
pub mod repository;
pub mod sockets;
pub mod sqlite;
pub mod tokens;
pub mod tries;
pub mod verify;

pub use home::Home;
pub use random::SystemRandom;
