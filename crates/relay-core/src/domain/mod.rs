//! Values and the rules over them. A rule is a pure function of values and `now`.

pub mod ack;
pub mod agent;
pub mod contact;
pub mod covering;
pub mod delivery;
pub mod event;
pub mod holding;
pub mod limits;
pub mod message;
pub mod moniker;
pub mod name;
pub mod nearest;
pub mod pattern;
pub mod plain;
pub mod redaction;
pub mod reservation;
pub mod routing;
pub mod secret;
pub mod shell;
pub mod telling;
pub mod thread;
pub mod time;
pub mod topic;
pub mod view;
pub mod words;
pub mod worktree;
