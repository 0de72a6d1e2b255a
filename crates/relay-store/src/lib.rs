//! Where relay remembers: the embedded SQLite store, presence, and what is read from the repository around a project.

pub mod archive;
mod blame;
pub mod filesystem;
pub mod fresh;
pub mod home;
pub mod presence;
pub mod random;
pub mod repository;
pub mod sqlite;
pub mod verify;

pub use home::Home;
pub use random::SystemRandom;
