//! Where the project stands, and what it owes (I8).

use serde::{Deserialize, Serialize};

use super::{Looking, Outcome};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::Number;
use crate::domain::limits::WROTE_WITHIN;
use crate::domain::name::Party;
use crate::domain::reservation::Reservation;
use crate::domain::shell;
use crate::store::{InboxQuery, Result};
use crate::verbs::actor::{self, Actor};
use crate::verbs::lag::ArchiveShape;
use crate::verbs::{contested, link};
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
    pub contacts_waiting: usize,
    pub debt: usize,
    pub archive: ArchiveShape,
}

/// One thing owed, and the command that pays it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DebtItem {
    pub kind: String,
    pub who: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Number>,
    pub pay: String,
}

pub(super) fn status(looking: &Looking<'_>, actor: Option<&Actor>) -> Result<Outcome> {
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
        contested: all_contested(looking, &agents)?,
        open_threads: facts.open_threads()?,
        unread: actor.map(|actor| facts.unread(&actor.party(), ctx.limits.unread)).transpose()?,
        for_the_human,
        contacts_waiting: waiting,
        debt: debt(looking)?.len(),
        archive: ArchiveShape::of(ctx.store, facts)?,
        agents: agents
            .iter()
            .map(|agent| super::agent_shape(looking.ctx, agent))
            .filter(|shape| shape.state != Standing::Retired.as_str())
            .collect(),
    })))
}

/// Every contested pair of the project, once.
fn all_contested(looking: &Looking<'_>, agents: &[Agent]) -> Result<Vec<ContestedShape>> {
    let mut all = Vec::new();
    for agent in agents {
        for (mine, theirs) in contested::pairs(looking.facts, agent, looking.ctx.now)? {
            if mine.id < theirs.id && all.len() < looking.limit {
                all.push(pair(looking, &mine, &theirs));
            }
        }
    }
    Ok(all)
}

fn pair(looking: &Looking<'_>, mine: &Reservation, theirs: &Reservation) -> ContestedShape {
    ContestedShape {
        mine: mine.id,
        pattern: format!("{} ({})", mine.pattern, mine.holder),
        id: theirs.id,
        holder: theirs.holder.to_string(),
        overlaps: theirs.pattern.clone(),
        exclusive: theirs.exclusive,
        example: contested::example(looking.ctx, &mine.pattern, &theirs.pattern),
        ended: false,
    }
}

/// Stale, silent and contested claims, overdue acks, requests that wait: each with what pays it.
pub(super) fn debt(looking: &Looking<'_>) -> Result<Vec<DebtItem>> {
    let (ctx, facts) = (looking.ctx, looking.facts);
    let mut debt = Vec::new();
    let agents = facts.agents()?;
    for claim in facts.claims()?.iter().filter(|claim| claim.is_live(ctx.now)) {
        let holder = agents.iter().find(|agent| agent.name.same_as(&claim.holder));
        let id = claim.id.to_string();
        if holder.is_some_and(|holder| !actor::alive(ctx, holder)) {
            let text = format!("{} holds {} and was not seen for ten minutes", claim.holder, claim.pattern);
            debt.push(item(
                "silent_claim",
                &claim.holder,
                text,
                Some(claim.id),
                &["relay", "release", "--id", &id, "--force", "--why", "WHY"],
            ));
        } else if claim.is_stale(ctx.now) {
            let text = format!("{} holds {} since {}", claim.holder, claim.pattern, claim.first_granted_at);
            debt.push(item(
                "stale_claim",
                &claim.holder,
                text,
                Some(claim.id),
                &["relay", "release", "--id", &id, "--agent", claim.holder.as_str()],
            ));
        }
    }
    for contest in all_contested(looking, &agents)? {
        let text = format!(
            "{} and #{} {} ({}) share {}",
            contest.pattern,
            contest.id,
            contest.overlaps,
            contest.holder,
            contest.example.as_deref().unwrap_or("a path")
        );
        debt.push(item(
            "contested_claim",
            &contest.holder,
            text,
            Some(contest.mine),
            &["relay", "look", "reservations"],
        ));
    }
    for agent in &agents {
        owed_by(looking, agent, &mut debt)?;
    }
    Ok(debt)
}

fn owed_by(looking: &Looking<'_>, agent: &Agent, debt: &mut Vec<DebtItem>) -> Result<()> {
    let (ctx, facts) = (looking.ctx, looking.facts);
    let party = Party::Agent(agent.name.clone());
    for message in facts.acks_owed(&party, looking.limit)? {
        let Some(delivery) = message.delivery_to(&party) else { continue };
        let visible = looking.viewer.sees(&message) && looking.viewer.sees_delivery(&message, delivery);
        if visible && delivery.ack(message.ack_within).is_overdue(ctx.now) {
            let text = format!("{} owes {} an ack for #{}", agent.name, message.from, message.id);
            debt.push(item(
                "ack_overdue",
                &agent.name,
                text,
                Some(message.id),
                &["relay", "ack", &message.id.to_string(), "--agent", agent.name.as_str()],
            ));
        }
    }
    for link in link::pending_for(facts, &party, ctx.now)? {
        if ctx.now.since(link.requested_at) > WROTE_WITHIN {
            let text = format!("{} waits for {}'s answer since {}", link.from, agent.name, link.requested_at);
            debt.push(item(
                "contact_waiting",
                &agent.name,
                text,
                Some(link.id),
                &["relay", "link", "--target", &link.from.to_string(), "--accept", "--agent", agent.name.as_str()],
            ));
        }
    }
    Ok(())
}

fn item(kind: &str, who: &impl ToString, text: String, about: Option<Number>, pay: &[&str]) -> DebtItem {
    DebtItem { kind: kind.to_owned(), who: who.to_string(), text, about, pay: shell::line(pay) }
}
