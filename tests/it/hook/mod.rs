//! `relay hook`: scripted agents that speak the dialects of Claude Code and Codex, against one repository.

pub mod agent;

mod edits;
mod identity;
mod mail;
mod served;
mod shared;
mod trouble;
mod waking;
