//! All that the person in charge wants to see at once: what each agent is at, who waits for whom, who holds what, and what nobody
//! has answered.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::Looking;
use super::tree::{self, Branch, Drawn};
use crate::domain::ack::Ack;
use crate::domain::agent::{Agent, Standing};
use crate::domain::contact::Link;
use crate::domain::event::Number;
use crate::domain::message::Message;
use crate::domain::name::Party;
use crate::domain::reservation::Reservation;
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;
use crate::store::{Result, Size};
use crate::verbs::debt::{DECISION, DebtItem, Everybody};
use crate::wire::v1::{AgentShape, ClaimShape, LinkShape};

/// As many claims and folders as a screen has room for.
const TREE: usize = 120;
/// As many acknowledgements are looked at as anybody reads.
const ACKS: usize = 50;
/// Of what is owed, the most pressing; `look debt` has it all.
const DEBT: usize = 50;
/// Unread mail is counted no further than this.
const UNREAD: usize = 100;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Now {
    /// What each agent is at, in the order of the agents.
    pub busy: Vec<Busy>,
    /// Who waits for whom, the first who began to first.
    pub waits: Vec<WaitShape>,
    /// The live claims, drawn on the tree of files.
    pub tree: Branch,
    /// Acknowledgements that are owed, the oldest first.
    pub acks: Vec<AckShape>,
    pub acks_total: usize,
    /// Requests for contact that wait for an answer.
    pub requests: Vec<LinkShape>,
    /// What the project owes itself beside decisions, which `for_the_human` has.
    pub debt: Vec<DebtItem>,
    /// How much that is, told here or not.
    #[serde(default)]
    pub debt_total: usize,
    /// How many agents have retired.
    pub retired: usize,
    pub store: Size,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Busy {
    pub agent: String,
    pub claims: usize,
    pub contested: usize,
    /// Acknowledgements that it owes.
    pub owes: usize,
    /// Unread mail, counted up to a hundred; known to those whose inbox it is, and to the human.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<usize>,
}

impl Busy {
    /// How much mail it has not read, as far as that is counted; none where it is not known.
    pub fn unread_told(&self) -> Option<String> {
        let more = |unread| if unread >= UNREAD { "+" } else { "" };
        self.unread.map(|unread| format!("{unread}{}", more(unread)))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShape {
    pub who: String,
    pub verb: String,
    pub for_whom: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
}

/// An acknowledgement that somebody owes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AckShape {
    pub message: Number,
    pub thread: String,
    pub subject: Option<String>,
    pub from: String,
    pub by: String,
    /// Since when it can be given.
    pub since: Timestamp,
    pub due: Timestamp,
    pub overdue: bool,
}

pub(super) fn now(
    looking: &Looking<'_>,
    everybody: &Everybody,
    mut debt: Vec<DebtItem>,
    shown: &[AgentShape],
) -> Result<Now> {
    let contested = &everybody.contests.claims;
    let (acks, owed) = acks(looking)?;
    debt.retain(|item| item.kind != DECISION);
    let debt_total = debt.len();
    debt.truncate(DEBT);
    let shape = |link: &Link| LinkShape::of(link, looking.ctx.now);
    Ok(Now {
        busy: busy(looking, everybody, shown, contested, &owed)?,
        waits: waits(looking),
        tree: draw(&everybody.claims, shown, contested),
        acks,
        acks_total: owed.values().sum(),
        requests: everybody.requests.iter().take(looking.limit).map(shape).collect(),
        debt,
        debt_total,
        retired: everybody.agents.iter().filter(|known| known.state == Standing::Retired).count(),
        store: looking.ctx.store.size(),
    })
}

/// Everybody who may act first, and of those whoever was seen last.
pub(super) fn sort(agents: &mut [AgentShape]) {
    let active = Standing::Active.as_str();
    agents.sort_by_key(|agent| (agent.state != active, !agent.alive, std::cmp::Reverse(agent.seen_at)));
}

fn busy(
    looking: &Looking<'_>,
    everybody: &Everybody,
    shown: &[AgentShape],
    contested: &HashSet<Number>,
    owed: &HashMap<String, usize>,
) -> Result<Vec<Busy>> {
    let mut held: HashMap<&str, (usize, usize)> = HashMap::new();
    for claim in &everybody.claims {
        let count = held.entry(claim.holder.as_str()).or_default();
        count.0 += 1;
        count.1 += usize::from(contested.contains(&claim.id));
    }
    let by_name: HashMap<&str, &Agent> =
        everybody.agents.iter().map(|known| (known.agent.name.as_str(), &known.agent)).collect();
    let mut busy = Vec::new();
    for shape in shown {
        let (claims, contested) = held.get(shape.name.as_str()).copied().unwrap_or_default();
        let agent = by_name.get(shape.name.as_str());
        let unread = match agent.filter(|agent| looking.viewer == Viewer::Human || looking.ctx.owns(agent)) {
            Some(agent) => Some(looking.facts.unread(&Party::Agent(agent.name.clone()), UNREAD)?),
            None => None,
        };
        let owes = owed.get(&shape.name).copied().unwrap_or_default();
        busy.push(Busy { agent: shape.name.clone(), claims, contested, owes, unread });
    }
    Ok(busy)
}

fn waits(looking: &Looking<'_>) -> Vec<WaitShape> {
    let mut waits = looking.ctx.store.presence().waits();
    waits.retain(|wait| !wait.for_whom.is_empty());
    waits.sort_by_key(|wait| wait.ticket);
    let names = |parties: &[Party]| parties.iter().map(ToString::to_string).collect();
    let shape = |wait: &crate::store::Wait| WaitShape {
        who: wait.agent.to_string(),
        verb: wait.verb.clone(),
        for_whom: names(&wait.for_whom),
        patterns: wait.patterns.clone(),
    };
    waits.iter().map(shape).collect()
}

fn draw(claims: &[Reservation], shown: &[AgentShape], contested: &HashSet<Number>) -> Branch {
    let alive: HashSet<&str> = shown.iter().filter(|agent| agent.alive).map(|agent| agent.name.as_str()).collect();
    let claims: Vec<ClaimShape> = claims.iter().map(ClaimShape::from).collect();
    let drawn: Vec<Drawn<'_>> = claims
        .iter()
        .map(|claim| Drawn {
            claim,
            contested: contested.contains(&claim.id),
            silent: !alive.contains(claim.holder.as_str()),
        })
        .collect();
    tree::draw(&drawn, TREE)
}

/// The oldest acknowledgements that are owed, and how many each owes. The human counts them all; others those that they may
/// know of among the oldest.
fn acks(looking: &Looking<'_>) -> Result<(Vec<AckShape>, HashMap<String, usize>)> {
    let mut acks = Vec::new();
    let mut owed: HashMap<String, usize> = HashMap::new();
    for (message, by) in looking.facts.acks_waiting(ACKS)? {
        let Some(message) = looking.facts.envelope(message)? else { continue };
        if let Some(ack) = ack(looking, &message, &by) {
            *owed.entry(ack.by.clone()).or_default() += 1;
            acks.push(ack);
        }
    }
    if looking.viewer == Viewer::Human {
        owed = looking.facts.acks_counted()?.into_iter().map(|(by, count)| (by.to_string(), count)).collect();
    }
    Ok((acks, owed))
}

fn ack(looking: &Looking<'_>, message: &Message, by: &Party) -> Option<AckShape> {
    let copy = message.delivery_to(by)?;
    let is_visible = looking.viewer.sees(message) && looking.viewer.sees_delivery(message, copy);
    let ack = copy.ack(message.ack_within);
    let (true, Ack::Waiting { due }, Some(since)) = (is_visible, &ack, copy.delivered_at) else { return None };
    Some(AckShape {
        message: message.id,
        thread: message.thread.to_string(),
        subject: message.subject.clone(),
        from: message.from.to_string(),
        by: by.to_string(),
        since,
        due: *due,
        overdue: ack.is_overdue(looking.ctx.now),
    })
}
