//! Coordination debt (I8): what the project owes itself, each item with the command that pays it.
//!
//! Computed when somebody asks, from the same rules that everything else goes by. Whose inbox is piling up is shown to those
//! whose inbox it is, and what a blind copy owes to those who may know of it.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::broad::{Breadth, Looked};
use super::{Ctx, contested, link};
use crate::domain::agent::{Agent, Standing};
use crate::domain::contact::{Link, LinkState};
use crate::domain::event::Number;
use crate::domain::limits::{OLD_AFTER, PILE, WROTE_WITHIN};
use crate::domain::message::Message;
use crate::domain::name::{AgentName, HUMAN, Party};
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::domain::time::Timestamp;
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

/// The kind of what the human was asked.
pub(super) const DECISION: &str = "decision";

impl DebtItem {
    /// Its kind, as people read it.
    pub fn words(&self) -> String {
        self.kind.replace('_', " ")
    }
}

/// More links than anybody has.
const LINKS: usize = 1_000_000;

/// Everybody whose debt is looked at, read once for all that is asked of them.
pub(super) struct Everybody {
    pub agents: Vec<Known>,
    /// Live ones.
    pub claims: Vec<Reservation>,
    pub contests: Contests,
    /// Requests for contact that they have not answered.
    pub requests: Vec<Link>,
    /// What they have yet to acknowledge, oldest first.
    owed: Vec<(Message, AgentName)>,
}

/// The claims that contest each other.
#[derive(Default)]
pub(super) struct Contests {
    /// No more of them than anybody is told of.
    pub told: Vec<Contest>,
    /// How many pairs there are, counted up to `contested::COUNTED`, and which claims are in one of them.
    pub pairs: HashSet<(Number, Number)>,
    pub claims: HashSet<Number>,
}

/// A contested pair of claims, as it is told.
pub(super) type Contest = (ContestedShape, Reservation, Reservation);

/// An agent, and how it stands.
pub(super) struct Known {
    pub agent: Agent,
    pub seen_at: Timestamp,
    pub state: Standing,
    pub alive: bool,
}

impl Known {
    fn of(ctx: &Ctx<'_>, agent: Agent) -> Self {
        let (seen_at, alive) = (actor::seen_at(ctx, &agent), actor::alive(ctx, &agent));
        Known { state: agent.state(seen_at, ctx.now), seen_at, alive, agent }
    }
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
    pub fn everybody(&self) -> Result<Everybody> {
        let now = self.ctx.now;
        let agents = self.facts.agents()?;
        let contests = self.contests(&agents)?;
        let mut owed = Vec::new();
        for (message, by) in self.facts.acks_waiting(self.limit)? {
            if let (Some(message), Party::Agent(by)) = (self.facts.envelope(message)?, by) {
                owed.push((message, by));
            }
        }
        let is_request = |link: &Link| matches!(link.to, Party::Agent(_)) && link.state(now) == LinkState::Requested;
        let mut requests: Vec<Link> = self.facts.links(NEWEST, LINKS)?.into_iter().filter(is_request).collect();
        requests.reverse();
        let claims = self.facts.claims()?.into_iter().filter(|claim| claim.is_live(now)).collect();
        let agents = agents.into_iter().map(|agent| Known::of(self.ctx, agent)).collect();
        Ok(Everybody { agents, claims, contests, requests, owed })
    }

    fn alone(&self, agent: &Agent) -> Result<Everybody> {
        let (now, party) = (self.ctx.now, Party::Agent(agent.name.clone()));
        let owed = self.facts.acks_owed(&party, self.limit)?;
        Ok(Everybody {
            agents: vec![Known::of(self.ctx, agent.clone())],
            claims: self.facts.claims_of(&agent.name)?.into_iter().filter(|claim| claim.is_live(now)).collect(),
            contests: self.contests(std::slice::from_ref(agent))?,
            requests: link::pending_for(self.facts, &party, now)?,
            owed: owed.into_iter().map(|message| (message, agent.name.clone())).collect(),
        })
    }

    /// Everything, the most pressing first.
    pub fn all(&self, everybody: &Everybody) -> Result<Vec<DebtItem>> {
        let mut debt = self.decisions()?;
        debt.extend(self.of(everybody)?);
        debt.extend(self.drifting(everybody)?);
        debt.extend(everybody.agents.iter().filter_map(|known| self.old(known, everybody)).take(self.limit));
        Ok(debt)
    }

    /// What they owe of it themselves.
    fn of(&self, everybody: &Everybody) -> Result<Vec<DebtItem>> {
        let mut debt = self.overdue(everybody);
        debt.extend(self.contested(everybody));
        debt.extend(self.kept_too_long(everybody)?);
        debt.extend(self.broad(&everybody.claims)?);
        debt.extend(self.unanswered(everybody));
        let mut piles = Vec::new();
        for known in everybody.agents.iter().filter(|known| known.state != Standing::Retired) {
            piles.extend(self.pile(&known.agent)?);
        }
        piles.truncate(self.limit);
        debt.append(&mut piles);
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
                debt.push(self.item(DECISION, "human", text, Some(message.id), &pay));
            }
        }
        for question in self.ctx.installation.questions() {
            let text = if question.text.is_empty() { question.case } else { question.text };
            debt.push(self.item(DECISION, "human", text, None, &["relay", "doctor", "--fix"]));
        }
        Ok(debt)
    }

    fn overdue(&self, everybody: &Everybody) -> Vec<DebtItem> {
        let mut debt = Vec::new();
        for (message, by) in &everybody.owed {
            let Some(delivery) = message.delivery_to(&Party::Agent(by.clone())) else { continue };
            let is_visible = self.viewer.sees(message) && self.viewer.sees_delivery(message, delivery);
            if is_visible && delivery.ack(message.ack_within).is_overdue(self.ctx.now) {
                let text = format!("{by} owes {} an ack for #{}", message.from, message.id);
                let (by, id) = (by.as_str(), message.id.to_string());
                // The human gives nobody's receipts, and asks for them.
                let asks = format!("Please acknowledge #{id}.");
                let ask = ["relay", "send", "--to", by, "--reply-to", &id, "--body", &asks, "--agent", HUMAN];
                let pay = ["relay", "ack", &id, "--agent", by];
                let pay = if self.is_human() { &ask[..] } else { &pay };
                debt.push(self.item("ack_overdue", by, text, Some(message.id), pay));
            }
        }
        debt
    }

    /// Whoever came later gives back, or talks to the other first.
    fn contested(&self, everybody: &Everybody) -> Vec<DebtItem> {
        let mut debt = Vec::new();
        for (pair, mine, theirs) in &everybody.contests.told {
            let (later, earlier) = if mine.id > theirs.id { (mine, theirs) } else { (theirs, mine) };
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
            let why = format!("#{} held it before", earlier.id);
            debt.push(self.item(
                "contested_claim",
                later.holder.as_str(),
                text,
                Some(later.id),
                &self.back(later, &why),
            ));
        }
        debt
    }

    /// Every contested pair of these agents, once.
    fn contests(&self, agents: &[Agent]) -> Result<Contests> {
        let mut contests = Contests::default();
        for agent in agents {
            let among = contested::COUNTED.saturating_sub(contests.pairs.len());
            for (mine, theirs) in contested::pairs(self.facts, agent, self.ctx.now, among)? {
                if !contests.pairs.insert((mine.id.min(theirs.id), mine.id.max(theirs.id))) {
                    continue;
                }
                contests.claims.extend([mine.id, theirs.id]);
                if contests.told.len() < self.limit {
                    contests.told.push((pair(self.ctx, &mine, &theirs), mine, theirs));
                }
            }
        }
        Ok(contests)
    }

    fn kept_too_long(&self, everybody: &Everybody) -> Result<Vec<DebtItem>> {
        let alive: HashMap<String, bool> =
            everybody.agents.iter().map(|known| (known.agent.name.key(), known.alive)).collect();
        let mut debt = Vec::new();
        for claim in &everybody.claims {
            if debt.len() == self.limit {
                break;
            }
            let (who, id) = (claim.holder.as_str(), claim.id.to_string());
            let is_done = match &claim.reason {
                Some(reason) => self.facts.thread(reason)?.is_some_and(|thread| thread.done),
                None => false,
            };
            if alive.get(&claim.holder.key()) == Some(&false) {
                let text = format!("{who} holds {} and was not seen for ten minutes", claim.pattern);
                let payer = self.payer(Some(who), everybody);
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
                let pay = self.back(claim, "it was held for long enough");
                debt.push(self.item("stale_claim", who, text, Some(claim.id), &pay));
            }
        }
        Ok(debt)
    }

    fn broad(&self, claims: &[Reservation]) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        let looked = Looked::at(self.ctx.repository);
        for claim in claims {
            let Some(breadth) = looked.breadth(&Pattern::from_canonical(&claim.pattern)?) else { continue };
            let takes = match breadth {
                Breadth::Everything => "the whole project".to_owned(),
                Breadth::Files { taken, of } => format!("{taken} of {of} files"),
            };
            let who = claim.holder.as_str();
            let text = format!("{who} holds {takes} with {}; a release can keep a part of it", claim.pattern);
            let pay = self.back(claim, "it takes too much; claim what you edit");
            debt.push(self.item("broad_claim", who, text, Some(claim.id), &pay));
            if debt.len() == self.limit {
                break;
            }
        }
        Ok(debt)
    }

    fn unanswered(&self, everybody: &Everybody) -> Vec<DebtItem> {
        let is_late = |link: &&Link| self.ctx.now.since(link.requested_at) > WROTE_WITHIN;
        let item = |link: &Link| {
            let (from, to) = (link.from.to_string(), link.to.to_string());
            let text = format!("{from} waits for {to}'s answer since {}", link.requested_at);
            let id = link.id.to_string();
            let answer = ["relay", "link", "--target", &to, "--id", &id, "--accept", "--agent", HUMAN];
            let pay = ["relay", "link", "--target", &from, "--accept", "--agent", &to];
            let pay = if self.is_human() { &answer[..] } else { &pay };
            self.item("contact_waiting", &to, text, Some(link.id), pay)
        };
        everybody.requests.iter().filter(is_late).take(self.limit).map(item).collect()
    }

    /// How much of an inbox is unread is known to those whose inbox it is.
    fn pile(&self, agent: &Agent) -> Result<Option<DebtItem>> {
        if *self.viewer != Viewer::Human && !self.ctx.owns(agent) {
            return Ok(None);
        }
        let unread = self.facts.unread(&Party::Agent(agent.name.clone()), self.ctx.limits.unread)?;
        let who = agent.name.as_str();
        let text = format!("{who} has {unread} unread messages");
        let body = format!("You have {unread} unread messages; please read them.");
        let ask = ["relay", "send", "--to", who, "--subject", "Unread mail", "--body", &body, "--agent", HUMAN];
        let pay = ["relay", "poll", "--read", "--bodies", "--agent", who];
        let pay = if self.is_human() { &ask[..] } else { &pay };
        Ok((unread > PILE).then(|| self.item("unread_pile", who, text, None, pay)))
    }

    /// Open threads whose newest message speaks of something else.
    fn drifting(&self, everybody: &Everybody) -> Result<Vec<DebtItem>> {
        let mut debt = Vec::new();
        for thread in self.facts.threads("", NEWEST, self.limit)?.into_iter().filter(|thread| !thread.done) {
            let newest = self.facts.thread_messages(&thread.id, NEWEST, 1)?.pop();
            // What relay itself says in a thread is about something that happened to somebody in it.
            let is_somebodys = |message: &Message| message.from != Party::Relay && self.viewer.sees(message);
            let Some(message) = newest.filter(is_somebodys) else { continue };
            let (Some(subject), Some(topic)) = (&message.subject, &thread.subject) else { continue };
            if topic::drifts(subject, topic) {
                let text = format!("#{} of {} has left the subject of {}", message.id, message.from, thread.id);
                let from = message.from.to_string();
                let back = "Back to the subject; the other topic goes on in a thread of its own.";
                let to = ["relay", "send", "--to", "@thread", "--thread", thread.id.as_str(), "--body", back];
                let payer = match &message.from {
                    Party::Agent(name) => name.to_string(),
                    _ => self.payer(None, everybody),
                };
                let pay = [&to[..], &["--agent", &payer]].concat();
                debt.push(self.item("drifting_thread", &from, text, Some(message.id), &pay));
            }
        }
        Ok(debt)
    }

    /// The human acts as nobody else: what somebody else should do is asked for, or done with the human's own right.
    fn is_human(&self) -> bool {
        *self.viewer == Viewer::Human
    }

    /// How a claim comes back: its holder gives it, or the human takes it and says why.
    fn back(&self, claim: &Reservation, why: &str) -> Vec<String> {
        let id = claim.id.to_string();
        let words: &[&str] = if self.is_human() {
            &["relay", "release", "--id", &id, "--force", "--why", why, "--agent", HUMAN]
        } else {
            &["relay", "release", "--id", &id, "--agent", claim.holder.as_str()]
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    /// Its command runs from any shell.
    fn item(&self, kind: &str, who: &str, text: String, about: Option<Number>, pay: &[impl AsRef<str>]) -> DebtItem {
        let words = pay.iter().map(AsRef::as_ref).chain(["--project", self.ctx.project.as_str()]);
        let pay = shell::line(&words.collect::<Vec<&str>>());
        DebtItem { kind: kind.to_owned(), who: who.to_owned(), text, about, pay }
    }

    /// Somebody who is on the bus by name alone.
    fn old(&self, known: &Known, everybody: &Everybody) -> Option<DebtItem> {
        let is_old = known.state == Standing::Active && self.ctx.now.since(known.seen_at) > OLD_AFTER;
        if !is_old || known.alive {
            return None;
        }
        let who = known.agent.name.as_str();
        let text = format!("{who} was last seen {}, and is still on the bus", known.seen_at);
        let pay = ["relay", "retire", who, "--agent", &self.payer(Some(who), everybody)];
        Some(self.item("old_identity", who, text, None, &pay))
    }

    /// Who pays what its debtor cannot: whoever looks, or else somebody of the caller's who is here, or the human.
    fn payer(&self, debtor: Option<&str>, everybody: &Everybody) -> String {
        if let Viewer::Agent(me) = self.viewer {
            return me.to_string();
        }
        let is_here = |known: &&Known| {
            *self.viewer != Viewer::Human
                && self.ctx.owns(&known.agent)
                && known.state == Standing::Active
                && debtor.is_none_or(|debtor| !known.agent.name.as_str().eq_ignore_ascii_case(debtor))
        };
        let payer = everybody.agents.iter().find(is_here);
        payer.map_or_else(|| HUMAN.to_owned(), |known| known.agent.name.to_string())
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
        example: contested::brief_example(ctx, &mine.pattern, &theirs.pattern),
        ended: false,
    }
}

/// The ledger of an agent that has just started, as it sees it itself.
pub(super) fn owed_by(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor) -> Result<Vec<DebtItem>> {
    let viewer = Viewer::Agent(actor.party());
    let ledger = Ledger { ctx, facts, viewer: &viewer, limit: ctx.limits.page };
    actor.agent().map_or_else(|| Ok(Vec::new()), |agent| ledger.of(&ledger.alone(agent)?))
}
