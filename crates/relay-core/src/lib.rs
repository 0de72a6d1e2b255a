//! The relay protocol: values, rules, verbs and error classes.
//!
//! Synchronous, without I/O, clock, randomness or processes of its own: those come in through the contracts in
//! [`store`], which the other crates implement.

pub mod archive;
pub mod domain;
pub mod error;
pub mod installation;
pub mod playbook;
pub mod store;
pub mod verbs;
pub mod wire;
