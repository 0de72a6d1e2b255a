//! What relay's own program lends to its server.

use std::time::Duration;

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::installation::Installation;
use relay_core::store::{Clock, Result};
use relay_core::verbs::{Caller, Outcome, Request};
use relay_store::Home;
use relay_store::repository::User;
use relay_store::sqlite::Sqlite;
use serde_json::{Map, Value};

use crate::ask::Answer;

/// A verb as a model sees it.
#[derive(Debug, Clone)]
pub struct Tool {
    pub name: &'static str,
    pub about: &'static str,
    pub effect: Effect,
    pub schema: Map<String, Value>,
}

/// What a call may do, for clients that ask before they let a model do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Reads,
    /// It only adds.
    Adds,
    /// It only adds, and once.
    AddsOnce,
    /// It may end or take away what others rely on.
    Ends,
}

/// In whose words a text says what can be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// For whoever has a shell.
    Commands,
    /// For whoever has tools and nothing else.
    Tools,
}

/// The words of the command line, its sentences, and the processes that only it can start.
pub trait Front: Send + Sync + 'static {
    /// The ten, in the order in which they are needed; always the same.
    fn tools(&self) -> &[Tool];

    /// The request that a call of a tool means.
    fn request(&self, tool: &str, arguments: Map<String, Value>) -> Result<Request>;

    /// An answer in sentences, coloured for a terminal. What others wrote stands between two lines with `boundary` in them.
    fn text(&self, answer: &Answer, speech: Speech, boundary: &str) -> String;

    fn clock(&self) -> Box<dyn Clock + Send + Sync>;

    /// What is around a project's store, for a recovery on behalf of this caller.
    fn installation(&self, home: &Home, project: &ProjectKey, caller: &Caller) -> Box<dyn Installation>;

    /// For whom repositories are looked at.
    fn user(&self) -> User;

    /// Whether this is the credential of the human where the stores are; refused where it is not.
    fn is_human(&self, shown: &str) -> Result<()>;

    /// The session that a call through a pipe is made in, by the name that it has on the bus: the one that the call itself names, or that
    /// of the program which started this one.
    fn session(&self, said: Option<&str>) -> Option<String>;

    /// Leaves a process behind that brings the archive of a project up to date.
    fn drain(&self, project: &ProjectKey);

    /// Brings these archives up to date. What is not done in time is left behind.
    fn drain_at_once(&self, projects: &[ProjectKey], time: Duration);

    /// After texts were erased: takes away what is left of their bytes, and tells in the outcome what it could not.
    fn clean_up(&self, store: &Sqlite, gate_wait: Span, outcome: &mut Outcome);

    /// A line for whoever looks after the server.
    fn log(&self, line: &str);

    /// Whether what an outside suite calls by its name is there beside what relay has.
    #[cfg(feature = "test-doors")]
    fn has_fixtures(&self) -> bool {
        false
    }
}
