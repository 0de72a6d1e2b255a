//! A thread: one task's conversation.

use super::event::Number;
use super::name::ThreadId;
use super::time::Timestamp;

#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub id: ThreadId,
    /// The message that set the subject: the first one.
    pub first_message: Option<Number>,
    pub subject: Option<String>,
    pub done: bool,
    pub opened_at: Timestamp,
    pub last_at: Timestamp,
    /// The newest event in it.
    pub last_number: Number,
    pub messages: u64,
}
