//! Coordination debt (I8): what the project owes itself, each item with the command that pays it.
//!
//! Computed when somebody asks, from the same rules that everything else goes by. Whose inbox is piling up is shown to those
//! whose inbox it is, and what a blind copy owes to those who may know of it.

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::broad::{self, Breadth};
use super::{Ctx, contested, link};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::Number;
use crate::domain::limits::{OLD_AFTER, PILE, WROTE_WITHIN};
use crate::domain::name::{HUMAN, Party};
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::domain::view::Viewer;
use crate::domain::{shell, topic};
use crate::store::{Facts, NEWEST, Result};
use crate::wire::v1::ContestedShape;

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

/// A look at what is owed.
pub(super) struct Ledger<'a> {
    pub ctx: &'a Ctx<'a>,
    pub facts: &'a dyn Facts,
    pub viewer: &'a Viewer,
    /// No more than so many of a kind.
    pub limit: usize,
}

impl Ledger<'_> {
    /// Everything, the most pressing first.
    pub fn all(&self) -> Result<Vec<DebtItem>> {
        let agents = self.facts.agents()?;
        let claims: Vec<Reservation> =
            self.facts.claims()?.into_iter().filter(|claim| claim.is_live(self.ctx.now)).collect();
        let mut debt = self.decisions()?;
        for agent in &agents {
            debt.extend(self.overdue(agent)?);
        }
        debt.extend(self.contested(&agents)?);
        debt.extend(self.kept_too_long(&agents, &claims)?);
        debt.extend(self.broad(&claims)?);
        for agent in &agents {
            debt.extend(self.unanswered(agent)?);
            debt.extend(self.pile(agent)?);
        }
        debt.extend(self.drifting()?);
        for agent in &agents {
            debt.extend(self.old(agent)?);
        }
        Ok(debt)
    }

    /// What one agent owes of it.
    pub fn of(&self, agent: &Agent) -> Result<Vec<DebtItem>> {
        let claims: Vec<Reservation> =
            self.facts.claims_of(&agent.name)?.into_iter().filter(|claim| claim.is_live(self.ctx.now)).collect();
        let mut debt = self.overdue(agent)?;
        debt.extend(self.contested(std::slice::from_ref(agent))?);
        debt.extend(self.kept_too_long(std::slice::from_ref(agent), &claims)?);
        debt.extend(self.broad(&claims)?);
        debt.extend(self.unanswered(agent)?);
        debt.extend(self.pile(agent)?);
        Ok(debt)
    }

    /// What the human was asked and has not answered.
    fn decisions(&self) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for message in self.facts.acks_owed(&Party::Human, self.limit)? {
            let Some(copy) = message.delivery_to(&Party::Human) else { continue };
            if self.viewer.sees(&message) && self.viewer.sees_delivery(&message, copy) {
                let text = format!("{} asked the human in #{} and has no answer", message.from, message.id);
                let id = message.id.to_string();
                let pay = ["relay", "ack", &id, "--agent", "human"];
                debt.push(self.item("decision", "human", text, Some(message.id), &pay));
            }
        }
        for question in self.ctx.installation.questions() {
            let text = if question.text.is_empty() { question.case } else { question.text };
            debt.push(self.item("decision", "human", text, None, &["relay", "doctor", "--fix"]));
        }
        Ok(debt)
    }

    fn overdue(&self, agent: &Agent) -> Result<Vec<DebtItem>> {
        let party = Party::Agent(agent.name.clone());
        let mut debt = Vec::new();
        for message in self.facts.acks_owed(&party, self.limit)? {
            let Some(delivery) = message.delivery_to(&party) else { continue };
            let is_visible = self.viewer.sees(&message) && self.viewer.sees_delivery(&message, delivery);
            if is_visible && delivery.ack(message.ack_within).is_overdue(self.ctx.now) {
                let text = format!("{} owes {} an ack for #{}", agent.name, message.from, message.id);
                let id = message.id.to_string();
                let pay = ["relay", "ack", &id, "--agent", agent.name.as_str()];
                debt.push(self.item("ack_overdue", agent.name.as_str(), text, Some(message.id), &pay));
            }
        }
        Ok(debt)
    }

    /// Whoever came later gives back, or talks to the other first.
    fn contested(&self, agents: &[Agent]) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for (pair, mine, theirs) in self.pairs(agents)? {
            let (later, earlier) = if mine.id > theirs.id { (&mine, &theirs) } else { (&theirs, &mine) };
            let text = format!(
                "#{} {} ({}) and #{} {} ({}) share {}",
                earlier.id,
                earlier.pattern,
                earlier.holder,
                later.id,
                later.pattern,
                later.holder,
                pair.example.as_deref().unwrap_or("a path")
            );
            let id = later.id.to_string();
            let pay = ["relay", "release", "--id", &id, "--agent", later.holder.as_str()];
            debt.push(self.item("contested_claim", later.holder.as_str(), text, Some(later.id), &pay));
        }
        Ok(debt)
    }

    /// Every contested pair of these agents, once.
    pub fn pairs(&self, agents: &[Agent]) -> Result<Vec<(ContestedShape, Reservation, Reservation)>> {
        let mut all: Vec<(ContestedShape, Reservation, Reservation)> = Vec::new();
        for agent in agents {
            for (mine, theirs) in contested::pairs(self.facts, agent, self.ctx.now)? {
                let is_told = all.iter().any(|(_, one, other)| {
                    (one.id, other.id) == (mine.id, theirs.id) || (one.id, other.id) == (theirs.id, mine.id)
                });
                if !is_told && all.len() < self.limit {
                    all.push((pair(self.ctx, &mine, &theirs), mine, theirs));
                }
            }
        }
        Ok(all)
    }

    fn kept_too_long(&self, agents: &[Agent], claims: &[Reservation]) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for claim in claims {
            let (who, id) = (claim.holder.as_str(), claim.id.to_string());
            let holder = agents.iter().find(|agent| agent.name.same_as(&claim.holder));
            let is_done = match &claim.reason {
                Some(reason) => self.facts.thread(reason)?.is_some_and(|thread| thread.done),
                None => false,
            };
            if holder.is_some_and(|holder| !actor::alive(self.ctx, holder)) {
                let text = format!("{who} holds {} and was not seen for ten minutes", claim.pattern);
                let payer = self.payer(Some(who))?;
                let pay =
                    ["relay", "release", "--id", &id, "--force", "--why", "its holder is silent", "--agent", &payer];
                debt.push(self.item("silent_claim", who, text, Some(claim.id), &pay));
            } else if is_done || claim.is_stale(self.ctx.now) {
                let since = if is_done {
                    "though its thread is done".to_owned()
                } else {
                    format!("since {}", claim.first_granted_at)
                };
                let text = format!("{who} holds {} {since}", claim.pattern);
                let pay = ["relay", "release", "--id", &id, "--agent", who];
                debt.push(self.item("stale_claim", who, text, Some(claim.id), &pay));
            }
        }
        Ok(debt)
    }

    fn broad(&self, claims: &[Reservation]) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for claim in claims {
            let Some(breadth) = broad::breadth(self.ctx.repository, &Pattern::from_canonical(&claim.pattern)?) else {
                continue;
            };
            let takes = match breadth {
                Breadth::Everything => "the whole project".to_owned(),
                Breadth::Files { taken, of } => format!("{taken} of {of} files"),
            };
            let (who, id) = (claim.holder.as_str(), claim.id.to_string());
            let text = format!("{who} holds {takes} with {}; `--keep PATTERN` narrows it", claim.pattern);
            let pay = ["relay", "release", "--id", &id, "--agent", who];
            debt.push(self.item("broad_claim", who, text, Some(claim.id), &pay));
            if debt.len() == self.limit {
                break;
            }
        }
        Ok(debt)
    }

    fn unanswered(&self, agent: &Agent) -> Result<Vec<DebtItem>> {
        let party = Party::Agent(agent.name.clone());
        let mut debt = Vec::new();
        for link in link::pending_for(self.facts, &party, self.ctx.now)? {
            if self.ctx.now.since(link.requested_at) > WROTE_WITHIN {
                let text = format!("{} waits for {}'s answer since {}", link.from, agent.name, link.requested_at);
                let from = link.from.to_string();
                let pay = ["relay", "link", "--target", &from, "--accept", "--agent", agent.name.as_str()];
                debt.push(self.item("contact_waiting", agent.name.as_str(), text, Some(link.id), &pay));
            }
        }
        Ok(debt)
    }

    /// How much of an inbox is unread is known to those whose inbox it is.
    fn pile(&self, agent: &Agent) -> Result<Option<DebtItem>> {
        let is_own = *self.viewer == Viewer::Human || self.ctx.owns(agent);
        if !is_own || actor::state(self.ctx, agent) == Standing::Retired {
            return Ok(None);
        }
        let unread = self.facts.unread(&Party::Agent(agent.name.clone()), self.ctx.limits.unread)?;
        let who = agent.name.as_str();
        let pay = ["relay", "poll", "--read", "--bodies", "--agent", who];
        let text = format!("{who} has {unread} unread messages");
        Ok((unread > PILE).then(|| self.item("unread_pile", who, text, None, &pay)))
    }

    /// Open threads whose newest message speaks of something else.
    fn drifting(&self) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for thread in self.facts.threads("", NEWEST, self.limit)?.into_iter().filter(|thread| !thread.done) {
            let newest = self.facts.thread_messages(&thread.id, NEWEST, 1)?.pop();
            let Some(message) = newest.filter(|message| self.viewer.sees(message)) else { continue };
            let (Some(subject), Some(topic)) = (&message.subject, &thread.subject) else { continue };
            if topic::drifts(subject, topic) {
                let text = format!("#{} of {} has left the subject of {}", message.id, message.from, thread.id);
                let from = message.from.to_string();
                let back = "Back to the subject; the other topic goes on in a thread of its own.";
                let to = ["relay", "send", "--to", "@thread", "--thread", thread.id.as_str(), "--body", back];
                let payer = match &message.from {
                    Party::Agent(name) => name.to_string(),
                    _ => self.payer(None)?,
                };
                let pay = [&to[..], &["--agent", &payer]].concat();
                debt.push(self.item("drifting_thread", &from, text, Some(message.id), &pay));
            }
        }
        Ok(debt)
    }

    /// Its command runs from any shell.
    fn item(&self, kind: &str, who: &str, text: String, about: Option<Number>, pay: &[&str]) -> DebtItem {
        let pay = shell::line(&[pay, &["--project", self.ctx.project.as_str()]].concat());
        DebtItem { kind: kind.to_owned(), who: who.to_owned(), text, about, pay }
    }

    /// Somebody who is on the bus by name alone.
    fn old(&self, agent: &Agent) -> Result<Option<DebtItem>> {
        let seen_at = actor::seen_at(self.ctx, agent);
        let is_old = actor::state(self.ctx, agent) == Standing::Active && self.ctx.now.since(seen_at) > OLD_AFTER;
        if !is_old || actor::alive(self.ctx, agent) {
            return Ok(None);
        }
        let who = agent.name.as_str();
        let text = format!("{who} was last seen {seen_at}, and is still on the bus");
        let pay = ["relay", "retire", who, "--agent", &self.payer(Some(who))?];
        Ok(Some(self.item("old_identity", who, text, None, &pay)))
    }

    /// Who pays what its debtor cannot: whoever looks, or else somebody of the caller's who is here, or the human.
    fn payer(&self, debtor: Option<&str>) -> Result<String> {
        if let Viewer::Agent(me) = self.viewer {
            return Ok(me.to_string());
        }
        let is_here = |agent: &Agent| {
            self.ctx.owns(agent)
                && actor::state(self.ctx, agent) == Standing::Active
                && debtor.is_none_or(|debtor| !agent.name.as_str().eq_ignore_ascii_case(debtor))
        };
        let agents = if *self.viewer == Viewer::Human { Vec::new() } else { self.facts.agents()? };
        Ok(agents.iter().find(|agent| is_here(agent)).map_or_else(|| HUMAN.to_owned(), |agent| agent.name.to_string()))
    }
}

fn pair(ctx: &Ctx<'_>, mine: &Reservation, theirs: &Reservation) -> ContestedShape {
    ContestedShape {
        mine: mine.id,
        pattern: format!("{} ({})", mine.pattern, mine.holder),
        id: theirs.id,
        holder: theirs.holder.to_string(),
        overlaps: theirs.pattern.clone(),
        exclusive: theirs.exclusive,
        example: contested::example(ctx, &mine.pattern, &theirs.pattern),
        ended: false,
    }
}

/// The ledger of an agent that has just started, as it sees it itself.
pub(super) fn owed_by(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor) -> Result<Vec<DebtItem>> {
    let viewer = Viewer::Agent(actor.party());
    let ledger = Ledger { ctx, facts, viewer: &viewer, limit: ctx.limits.page };
    actor.agent().map_or_else(|| Ok(Vec::new()), |agent| ledger.of(agent))
}
