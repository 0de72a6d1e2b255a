//! Where the project stands.

use serde::{Deserialize, Serialize};

use super::now::{self, Now};
use super::{Input, Looking, Outcome, asked};
use crate::domain::agent::Standing;
use crate::domain::event::Number;
use crate::installation::Question;
use crate::store::Result;
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
    /// How many pairs contest each other, counted up to five thousand.
    #[serde(default)]
    pub contested_total: usize,
    pub open_threads: usize,
    /// The caller's own unread mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
    /// What waits for the human.
    pub for_the_human: Vec<MessageShape>,
    /// How many messages do, on this page or not.
    #[serde(default)]
    pub for_the_human_total: usize,
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

impl Status {
    /// How many things only the human can settle.
    pub fn decisions(&self) -> usize {
        self.for_the_human_total + self.contacts_waiting + self.questions.len()
    }
}

pub(super) fn status(looking: &Looking<'_>, actor: Option<&Actor>, input: &Input) -> Result<Outcome> {
    let (ctx, facts) = (looking.ctx, looking.facts);
    let everybody = ledger(looking).everybody()?;
    let debt = ledger(looking).all(&everybody)?;
    let here = everybody.agents.iter().filter(|known| known.state != Standing::Retired);
    let mut shown: Vec<AgentShape> =
        here.map(|known| AgentShape::of(&known.agent, known.state, known.alive, known.seen_at)).collect();
    let (for_the_human, for_the_human_total) = asked::look(looking)?;
    let mut status = Status {
        project: ctx.project.to_string(),
        tip: facts.tip()?.number,
        agents: Vec::new(),
        live_claims: everybody.claims.len(),
        contested: everybody.contests.told.iter().map(|(pair, _, _)| pair.clone()).collect(),
        contested_total: everybody.contests.pairs.len(),
        open_threads: facts.open_threads()?,
        unread: actor.map(|actor| facts.unread(&actor.party(), ctx.limits.unread)).transpose()?,
        for_the_human,
        for_the_human_total,
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

fn ledger<'a>(looking: &'a Looking<'_>) -> Ledger<'a> {
    Ledger { ctx: looking.ctx, facts: looking.facts, viewer: &looking.viewer, limit: looking.limit }
}

pub(super) fn debt(looking: &Looking<'_>) -> Result<Vec<DebtItem>> {
    let ledger = ledger(looking);
    ledger.all(&ledger.everybody()?)
}
