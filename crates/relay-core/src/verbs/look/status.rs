//! Where the project stands.

use serde::{Deserialize, Serialize};

use super::{Looking, Outcome};
use crate::domain::agent::Standing;
use crate::domain::event::Number;
use crate::domain::name::Party;
use crate::installation::Question;
use crate::store::{InboxQuery, Result};
use crate::verbs::actor::Actor;
use crate::verbs::check::{self, Counted};
use crate::verbs::debt::{DebtItem, Ledger};
use crate::verbs::lag::ArchiveShape;
use crate::verbs::link;
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
}

pub(super) fn status(looking: &Looking<'_>, actor: Option<&Actor>, trees: bool) -> Result<Outcome> {
    let (ctx, facts) = (looking.ctx, looking.facts);
    let agents = facts.agents()?;
    let escalations = InboxQuery::unread(&Party::Human, looking.limit);
    let mut waiting = 0;
    for agent in &agents {
        waiting += link::pending_for(facts, &Party::Agent(agent.name.clone()), ctx.now)?.len();
    }
    let for_the_human = facts
        .inbox(&escalations)?
        .iter()
        .filter(|message| {
            let copy = message.delivery_to(&Party::Human);
            copy.is_some_and(|copy| looking.viewer.sees_delivery(message, copy))
        })
        .map(|message| looking.shape(message, false))
        .collect();
    Ok(Outcome::Status(Box::new(Status {
        project: ctx.project.to_string(),
        tip: facts.tip()?.number,
        live_claims: facts.claims()?.iter().filter(|claim| claim.is_live(ctx.now)).count(),
        contested: ledger(looking).pairs(&agents)?.into_iter().map(|(pair, _, _)| pair).collect(),
        open_threads: facts.open_threads()?,
        unread: actor.map(|actor| facts.unread(&actor.party(), ctx.limits.unread)).transpose()?,
        for_the_human,
        questions: ctx.installation.questions(),
        contacts_waiting: waiting,
        debt: debt(looking)?.len(),
        work: if trees { check::counted(ctx, facts, actor.and_then(Actor::agent))? } else { None },
        archive: ArchiveShape::of(ctx.store, facts)?,
        agents: agents
            .iter()
            .map(|agent| super::agent_shape(looking.ctx, agent))
            .filter(|shape| shape.state != Standing::Retired.as_str())
            .collect(),
    })))
}

fn ledger<'a>(looking: &'a Looking<'_>) -> Ledger<'a> {
    Ledger { ctx: looking.ctx, facts: looking.facts, viewer: &looking.viewer, limit: looking.limit }
}

pub(super) fn debt(looking: &Looking<'_>) -> Result<Vec<DebtItem>> {
    ledger(looking).all()
}
