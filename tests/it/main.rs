//! The promises of relay, tested end to end through the real binary.
//!
//! A file per verb, per invariant and per kind of trouble. `bus.rs` is the environment that makes them read like a
//! terminal.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test that cannot go on should say where"
)]

#[cfg(not(feature = "test-doors"))]
compile_error!("these tests need the test doors: run `scripts/test`, or `cargo test --features test-doors`");

mod bus;
mod effort;

mod archive;
mod backup;
mod bad_messages;
mod bad_names;
mod bad_patterns;
mod bad_store;
mod blind;
mod canary;
mod check;
mod config;
mod crossing;
mod crowd;
mod demo;
mod doctor;
mod doctor_agents;
mod doors;
mod erased_again;
mod export;
mod faults;
mod flips;
mod fuse;
mod golden;
mod guard;
mod halves;
mod hook;
mod i01_project_identity;
mod i02_agent_identity;
mod i03_thread_continuity;
mod i04_topic_coherence;
mod i05_consent;
mod i05_groups;
mod i05_held_mail;
mod i06_across_projects;
mod i06_resolvability;
mod i07_contested;
mod i07_reservation_semantics;
mod i07_waiting;
mod i08_cycle;
mod i08_debt;
mod i08_reservation_hygiene;
mod i08_takeover;
mod i09_ack_semantics;
mod i09_delivery;
mod i10_durability_audit;
mod i11_macro_first;
mod i12_busy_store;
mod i12_idempotency;
mod i12_recovery;
mod i12_steps;
mod init;
mod init_real;
mod init_remove;
mod init_safe;
mod interrupted;
mod line;
mod listening;
mod log;
mod lost;
mod manners;
mod mcp;
mod mcp_clients;
mod mcp_conformance;
mod mcp_place;
mod mcp_story;
mod mcp_text;
mod mcp_tools;
mod model;
mod model_finds;
mod moved;
mod names;
mod next_lines;
mod now;
mod outside;
mod page;
mod pages;
mod past;
mod playbooks;
mod private_modes;
mod privilege;
mod quiet;
mod races;
mod reading;
mod readme;
mod real;
mod rebuild;
mod redact;
mod search;
mod serve;
mod smoke;
mod terminal;
mod trace;
mod unchanged;
mod verify;
mod wakeups;
mod watch;
