//! `leave`: out of a thread; `@thread` no longer reaches the one who left.

use serde::{Deserialize, Serialize};

use super::writing::write;
use super::{Ctx, Done, Outcome as Any};
use crate::domain::event::Happened;
use crate::domain::name::{Party, ThreadId};
use crate::error::Code;
use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub thread: ThreadId,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub thread: String,
    /// False when the agent was no member.
    pub left: bool,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let told = write(ctx, "leave", input, |writing| {
        let agent = writing.actor.must_be_agent("join or leave threads")?.clone();
        let Some(thread) = writing.tx.thread(&input.thread)? else {
            return Err(Code::ThreadNotFound
                .refuse(format!("there is no thread `{}`", input.thread))
                .with("thread", input.thread.as_str()));
        };
        let left = writing.tx.is_member(&thread.id, &Party::Agent(agent.name.clone()))?;
        if left {
            writing.append(Happened::ThreadLeft { thread: thread.id.clone(), agent: agent.name }, Vec::new())?;
        }
        Ok(Outcome { thread: thread.id.to_string(), left })
    })?;
    Ok(Done::new("leave", told, Any::Leave))
}
