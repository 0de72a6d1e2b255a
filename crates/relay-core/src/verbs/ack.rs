//! `ack`: the explicit receipt (I9); with `--read` only the reading.

use serde::{Deserialize, Serialize};

use super::crossing::{self, Task};
use super::post;
use super::writing::{Who, Writing, write, write_as};
use super::{Ctx, Done, Outcome as Any};
use crate::domain::event::{Happened, Number, Twin};
use crate::domain::name::{Party, ProjectKey};
use crate::domain::time::Timestamp;
use crate::error::Code;
use crate::store::Result;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub ids: Vec<Number>,
    /// Only mark as read.
    pub read: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub acks: Vec<Acked>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Acked {
    pub id: Number,
    pub read_at: Option<Timestamp>,
    pub acked_at: Option<Timestamp>,
    /// False when it was done before.
    pub first: bool,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    if input.ids.is_empty() {
        return Err(Code::InputInvalid.refuse("name at least one message by its number"));
    }
    let mut told_elsewhere = Vec::new();
    let told = write(ctx, "ack", input, |writing| story(writing, input, &mut told_elsewhere))?;
    for (key, project, ids) in told_elsewhere {
        if let Some(name) = ctx
            .store
            .read()
            .ok()
            .and_then(|facts| super::actor::acting(ctx, &*facts).ok())
            .and_then(|actor| actor.agent().map(|agent| agent.name.clone()))
        {
            // A failure costs nothing: the next command carries what was noted.
            let _ = crossing::tell_ack(ctx, &name, &project, &key, &ids);
        }
    }
    Ok(Done::new("ack", told, Any::Ack))
}

type Tidings = (String, ProjectKey, Vec<Number>);

fn story(writing: &mut Writing<'_>, input: &Input, elsewhere: &mut Vec<Tidings>) -> Result<Outcome> {
    let me = writing.actor.party();
    let now = writing.ctx.now;
    let mut acks: Vec<Acked> = Vec::new();
    let mut fresh = Vec::new();
    for id in &input.ids {
        if acks.iter().any(|ack| ack.id == *id) {
            continue;
        }
        let message = post::visible(writing, *id)?;
        let delivery = message
            .delivery_to(&me)
            .filter(|delivery| delivery.delivered_by.is_some())
            .ok_or_else(|| Code::NotARecipient.refuse(format!("#{id} was not sent to {me}")).with("id", *id))?;
        let done_before = if input.read { delivery.read_at.is_some() } else { delivery.acked_at.is_some() };
        let read_at = delivery.read_at.or(Some(now));
        let acked_at = if input.read { delivery.acked_at } else { delivery.acked_at.or(Some(now)) };
        acks.push(Acked { id: *id, read_at, acked_at, first: !done_before });
        if !done_before {
            fresh.push(*id);
            if let (Party::Elsewhere(_, project), false) = (&message.from, input.read) {
                note(writing, project, *id, elsewhere)?;
            }
        }
    }
    if !fresh.is_empty() {
        let what = if input.read {
            Happened::MailRead { agent: me, messages: fresh }
        } else {
            Happened::MailAcked { agent: me, messages: fresh }
        };
        writing.append(what, Vec::new())?;
    }
    Ok(Outcome { acks })
}

/// The sender's project learns of the receipt.
fn note(writing: &mut Writing<'_>, project: &ProjectKey, id: Number, elsewhere: &mut Vec<Tidings>) -> Result<()> {
    let ctx = writing.ctx;
    let key = format!("{} tells {id}", ctx.key.text);
    let noted = crossing::note(ctx, &key, project, &writing.actor.party(), &Task::TellAck { ids: vec![id] })?;
    writing.note_crossing(&noted)?;
    elsewhere.push((key, project.clone(), vec![id]));
    Ok(())
}

/// In the sender's project: a guest acknowledged messages that it knows under its own project's numbers.
pub(super) fn note_remote(guest: &Ctx<'_>, party: &Party, project: &ProjectKey, ids: &[Number]) -> Result<()> {
    write_as(guest, "ack", Who::Guest(party.clone()), &ids, |writing| {
        let mut messages = Vec::new();
        for number in ids {
            let twin = Twin { project: project.clone(), number: *number };
            if let Some(copy) = writing.tx.message_of_twin(&twin)?
                && copy.delivery_to(party).is_some_and(|delivery| delivery.acked_at.is_none())
            {
                messages.push(copy.id);
            }
        }
        if !messages.is_empty() {
            writing.append(Happened::MailAcked { agent: party.clone(), messages }, Vec::new())?;
        }
        Ok(())
    })?;
    Ok(())
}
