//! `redact`: erases the texts of a message. The event stays, and a tombstone says who erased them and why.

use serde::{Deserialize, Serialize};

use super::writing::write;
use super::{Ctx, Done, Outcome as Any, check_why, post};
use crate::domain::event::{Happened, Number, Twin};
use crate::domain::name::Party;
use crate::domain::{redaction, shell};
use crate::error::Code;
use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub message: Number,
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub message: Number,
    /// The event that erased the texts.
    pub redaction: Number,
    pub by: String,
    /// Messages that had taken its subject over, and have none now.
    pub copies: Vec<Number>,
    /// The same message in another project, which keeps its texts until it is erased there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// Where bytes of the texts may still stand, and what keeps them there. The front fills this in when it has cleaned up.
    pub pending: Vec<String>,
    /// Old stores and archives that a rebuild has kept; they are the user's to delete. Filled in by the front.
    pub kept: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Elsewhere {
    pub project: String,
    /// Its number there; none when that project has yet to write it down, or cannot be asked.
    pub message: Option<Number>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    check_why(input.why.as_deref())?;
    let mut told = write(ctx, "redact", input, |writing| {
        let message = post::visible(writing, input.message)?;
        let me = writing.actor.party();
        if !redaction::may_erase(&me, &message) {
            let text = format!("#{} is by {}: who wrote a message erases it, or the human", message.id, message.from);
            let refusal = Code::IdentityMismatch.refuse(text).with("erases", message.id);
            // What relay says answers to nobody, and the human is asked as the human.
            let is_anybody = !matches!(message.from, Party::Relay | Party::Human);
            return Err(if is_anybody { refusal.with("writer", message.from.to_string()) } else { refusal });
        }
        let outcome = |redaction, by: &Party, copies| Outcome {
            message: message.id,
            redaction,
            by: by.to_string(),
            copies,
            elsewhere: None,
            pending: Vec::new(),
            kept: Vec::new(),
        };
        if let Some(first) = &message.redacted {
            return Ok(outcome(first.number, &first.by, Vec::new()));
        }
        let copies = match &message.subject {
            Some(subject) => redaction::copies(message.id, subject, &writing.tx.subjects(&message.thread)?),
            None => Vec::new(),
        };
        let why = input.why.as_deref().map(|why| writing.text("why", why));
        let hash = why.as_ref().map(crate::domain::event::Text::hash);
        let what = Happened::MessageRedacted { message: message.id, copies: copies.clone(), why: hash };
        let number = writing.append(what, why.into_iter().collect())?;
        Ok(outcome(number, &me, copies))
    })?;
    told.outcome.elsewhere = elsewhere(ctx, input.message)?;
    if let Some(Elsewhere { project, message: Some(message) }) = &told.outcome.elsewhere {
        let message = message.to_string();
        let step = ["relay", "redact", &message, "--project", project, "--agent", "human"];
        told.next.push(shell::line(&step));
    }
    Ok(Done::new("redact", told, Any::Redact))
}

/// The copy that crossed a border: where it went, or where it came from.
fn elsewhere(ctx: &Ctx<'_>, message: Number) -> Result<Option<Elsewhere>> {
    let Some(message) = ctx.store.read()?.envelope(message)? else { return Ok(None) };
    if let Some(twin) = &message.twin {
        return Ok(Some(Elsewhere { project: twin.project.to_string(), message: Some(twin.number) }));
    }
    let Party::Elsewhere(_, project) = &message.from else { return Ok(None) };
    let here = Twin { project: ctx.project.clone(), number: message.id };
    // A project that cannot be asked is named all the same.
    let found = ctx.bus.open(project).ok().flatten().and_then(|(_, store)| {
        let facts = store.read().ok()?;
        facts.message_of_twin(&here).ok()?
    });
    Ok(Some(Elsewhere { project: project.to_string(), message: found.map(|copy| copy.id) }))
}
