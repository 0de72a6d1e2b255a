//! What is read of a repository, against what git itself says of the same one.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on should say where")]

mod merge;
mod odd;
mod same;
mod trees;
