//! `relay hook`: brings the bus to the moment of the edit, in every coding agent that calls it.

#![allow(dead_code)]

pub mod dialect;
pub mod event;
pub mod patch;
