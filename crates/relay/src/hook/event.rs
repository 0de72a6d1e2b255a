//! What a harness tells, and what it is told, whatever its dialect.

use std::path::PathBuf;

use relay_core::verbs::hook::{Moment, Subagent};

/// One call of a hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// As its harness calls it.
    pub name: String,
    pub moment: Moment,
    /// As the harness calls the session; subagents share it.
    pub session: String,
    pub subagent: Option<Subagent>,
    /// Where the session works.
    pub cwd: PathBuf,
    /// Where the harness writes down what is said.
    pub transcript: Option<String>,
    pub model: Option<String>,
    pub call: Option<Call>,
    /// The session goes on under another name: it was cleared. One that ends for that reason does not end.
    pub carries_on: bool,
    /// At the end of a turn: the turn was prolonged before.
    pub again: bool,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What tells it from the other calls of the session, where the harness says so.
    pub id: Option<String>,
    pub deed: Deed,
    /// It has run, and the harness says that it failed. It may have changed files all the same.
    pub failed: bool,
}

/// What a call does to the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It edits these, as the harness names them: absolute, or from where the session works.
    Edit(Vec<String>),
    /// It runs a command.
    Shell(String),
    /// Nothing, or nothing that can be known.
    Other,
}

/// What the harness is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// For the model to read.
    pub context: Option<String>,
    /// Before a tool: what becomes of the call. None lets it run.
    pub verdict: Option<Verdict>,
    /// At the end of a turn: what the model should see to before it stops.
    pub go_on: Option<String>,
}

/// Against a call, with the reason, which is never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The user decides. Where the harness cannot ask, it is a denial.
    Ask(String),
    Deny(String),
}

/// What leaves the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub stdout: String,
    pub stderr: String,
    pub status: u8,
}
