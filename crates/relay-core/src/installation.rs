//! The machine around a store, as far as a recovery needs it: a contract in prose like those of `store.rs`. It also answers
//! where the store does not.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::time::Timestamp;
use crate::playbook::{Condition, Escalation, Step};
use crate::store::Result;

/// A question to the person in charge that lies beside a store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// What names it: the class, and what tells its questions apart.
    pub case: String,
    pub text: String,
    pub path: String,
}

pub trait Installation {
    /// The folder of the store, or that in which it would be.
    fn folder(&self) -> String;

    /// Runs a step's command as its words say, without a shell, and returns the result of its answer. A refusal is the
    /// step's own.
    fn run(&self, argv: &[String]) -> Result<Value>;

    /// Shows the steps to a person who looks on, before the first is taken.
    fn show(&self, steps: &[Step]);

    /// Whether a person who looks on wants this step. Without one: no.
    fn agrees(&self, step: &Step) -> bool;

    /// Looks at the store, the archive, the notes and the credentials as they are now. What is no condition of these is
    /// false.
    fn holds(&self, condition: &Condition) -> Result<bool>;

    /// Puts a question beside the store and on the standard error, once for each case. Returns where it lies; none where
    /// nothing can be written there either.
    fn note(&self, escalation: &Escalation, at: Timestamp) -> Option<String>;

    /// The questions that lie there and that nobody has taken away.
    fn questions(&self) -> Vec<Question>;

    /// Takes a question away that is settled.
    fn settle(&self, case: &str);

    /// How often this recovery was tried since then. Best effort: what cannot be counted is not refused.
    fn tries(&self, cause: &str, since: Timestamp) -> usize;
    fn note_try(&self, cause: &str, at: Timestamp);
    /// After a success.
    fn forget_tries(&self, cause: &str, at: Timestamp);
}
