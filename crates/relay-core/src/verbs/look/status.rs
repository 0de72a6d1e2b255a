//! Where the project stands.

use std::cmp::Reverse;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::now::{self, Now};
use super::{Input, Looking, Outcome};
use crate::domain::ack::Ack;
use crate::domain::agent::Standing;
use crate::domain::event::Number;
use crate::domain::message::Message;
use crate::domain::name::Party;
use crate::installation::Question;
use crate::store::{InboxQuery, Result};
use crate::verbs::actor::Actor;
use crate::verbs::check::{self, Counted};
use crate::verbs::debt::{DebtItem, Ledger};
use crate::verbs::lag::ArchiveShape;
use crate::wire::v1::{AgentShape, ContestedShape, MessageShape};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub project: String,
    /// The newest event.
    pub tip: Number,
    pub agents: Vec<AgentShape>,
    pub live_claims: usize,
    pub contested: Vec<ContestedShape>,
    pub open_threads: usize,
    /// The caller's own unread mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// What waits for the human.
    pub for_the_human: Vec<MessageShape>,
    /// What waits for the human beside the store, since the store could not take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    pub contacts_waiting: usize,
    pub debt: usize,
    /// What is changed in the work trees, held against what is claimed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Counted>,
    pub archive: ArchiveShape,
    /// The rest of what a person wants to see at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Box<Now>>,
}

pub(super) fn status(looking: &Looking<'_>, actor: Option<&Actor>, input: &Input) -> Result<Outcome> {
    let (ctx, facts) = (looking.ctx, looking.facts);
    let everybody = ledger(looking).everybody()?;
    let debt = ledger(looking).all(&everybody)?;
    let here = everybody.agents.iter().filter(|known| known.state != Standing::Retired);
    let mut shown: Vec<AgentShape> =
        here.map(|known| AgentShape::of(&known.agent, known.state, known.alive, known.seen_at)).collect();
    let mut status = Status {
        project: ctx.project.to_string(),
        tip: facts.tip()?.number,
        agents: Vec::new(),
        live_claims: everybody.claims.len(),
        contested: everybody.pairs.iter().map(|(pair, _, _)| pair.clone()).collect(),
        open_threads: facts.open_threads()?,
        unread: actor.map(|actor| facts.unread(&actor.party(), ctx.limits.unread)).transpose()?,
        for_the_human: for_the_human(looking)?,
        questions: ctx.installation.questions(),
        contacts_waiting: everybody.requests.len(),
        debt: debt.len(),
        work: if input.trees { check::counted(ctx, facts, actor.and_then(Actor::agent))? } else { None },
        archive: ArchiveShape::of(ctx.store, facts)?,
        now: None,
    };
    if input.wide {
        now::sort(&mut shown);
        status.now = Some(Box::new(now::now(looking, &everybody, debt, &shown)?));
    }
    status.agents = shown;
    Ok(Outcome::Status(Box::new(status)))
}

/// What the human was written and has not read, or owes an acknowledgement for; the most pressing first.
fn for_the_human(looking: &Looking<'_>) -> Result<Vec<MessageShape>> {
    let mut unread = looking.facts.inbox(&InboxQuery::unread(&Party::Human, looking.limit))?;
    let known: HashSet<Number> = unread.iter().map(|message| message.id).collect();
    let owed = looking.facts.acks_owed(&Party::Human, looking.limit)?;
    unread.extend(owed.into_iter().filter(|message| !known.contains(&message.id)));
    let due = |message: &Message| match message.delivery_to(&Party::Human)?.ack(message.ack_within) {
        Ack::Waiting { due } => Some(due),
        _ => None,
    };
    unread.sort_by_key(|message| {
        let due = due(message);
        let is_overdue = due.is_some_and(|due| due < looking.ctx.now);
        (Reverse(is_overdue), Reverse(message.importance), due.is_none(), due, message.id)
    });
    let is_visible = |message: &&Message| {
        let copy = message.delivery_to(&Party::Human);
        copy.is_some_and(|copy| looking.viewer.sees_delivery(message, copy))
    };
    Ok(unread.iter().filter(is_visible).map(|message| looking.shape(message, false)).collect())
}

fn ledger<'a>(looking: &'a Looking<'_>) -> Ledger<'a> {
    Ledger { ctx: looking.ctx, facts: looking.facts, viewer: &looking.viewer, limit: looking.limit }
}

pub(super) fn debt(looking: &Looking<'_>) -> Result<Vec<DebtItem>> {
    let ledger = ledger(looking);
    ledger.all(&ledger.everybody()?)
}
