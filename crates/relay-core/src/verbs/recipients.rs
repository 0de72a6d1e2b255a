//! Who a message reaches: names and groups become agents, and each is asked whether it may be reached (I5, I6).

use serde_json::{Value, json};

use super::actor;
use super::writing::Writing;
use crate::domain::agent::{Agent, Standing};
use crate::domain::contact::{self, Asked, Door, LinkState};
use crate::domain::delivery::Line;
use crate::domain::limits::{ALL_SEEN_WITHIN, WROTE_WITHIN};
use crate::domain::message::Message;
use crate::domain::name::{Address, AgentName, Party, ThreadId};
use crate::domain::nearest::nearest;
use crate::domain::routing::{self, Barrier, Question, Shared, Verdict};
use crate::error::{Code, Refusal};
use crate::store::Result;

pub(super) const THREAD_GROUP: &str = "@thread";
pub(super) const ALL_GROUP: &str = "@all";

/// Somebody who was found, and what the rule says of reaching them.
pub(super) struct Found {
    pub party: Party,
    pub line: Line,
    pub verdict: Verdict,
    /// A request for contact would be accepted at once.
    pub consents_when_asked: bool,
    /// Came in with a group: left out rather than failing the send.
    pub in_group: bool,
    pub inbox_full: bool,
}

/// Somebody of a group whom the message does not reach.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    pub name: String,
    pub reason: String,
}

/// Where the message stands, as far as consent depends on it.
pub(super) struct Place<'a> {
    pub thread: Option<&'a ThreadId>,
    pub parent: Option<&'a Message>,
}

/// Everybody a message names, once each; the names nobody has; and who of a group is left out.
pub(super) struct Roll {
    pub found: Vec<Found>,
    pub unknown: Vec<Address>,
    pub left_out: Vec<LeftOut>,
}

pub(super) fn call(writing: &Writing<'_>, wanted: &[(Address, Line)], place: &Place<'_>) -> Result<Roll> {
    let mut roll = Roll { found: Vec::new(), unknown: Vec::new(), left_out: Vec::new() };
    let (groups, names): (Vec<_>, Vec<_>) = wanted.iter().partition(|(address, _)| is_group(address));
    for (address, line) in names {
        if address.is_human() {
            roll.found.push(human(*line));
            continue;
        }
        match AgentName::parse(&address.name).ok().map(|name| writing.tx.agent(&name)).transpose()?.flatten() {
            Some(agent) => roll.found.push(ask(writing, &agent, *line, false, place)?),
            None => roll.unknown.push(address.clone()),
        }
    }
    for (address, line) in groups {
        for agent in members(writing, address, place, &mut roll.left_out)? {
            let known = roll.found.iter().any(|found| found.party.is(&agent.name));
            if !known && !writing.actor.party().is(&agent.name) {
                roll.found.push(ask(writing, &agent, *line, true, place)?);
            }
        }
        let known = roll.found.iter().any(|found| found.party == Party::Human);
        if !known && human_takes_part(writing, address, place)? {
            roll.found.push(Found { in_group: true, ..human(*line) });
        }
    }
    Ok(roll)
}

pub(super) fn is_group(address: &Address) -> bool {
    address.project.is_none() && (address.name == THREAD_GROUP || address.name == ALL_GROUP)
}

/// The human is outside policies.
fn human(line: Line) -> Found {
    Found {
        party: Party::Human,
        line,
        verdict: Verdict::Deliver,
        consents_when_asked: true,
        in_group: false,
        inbox_full: false,
    }
}

/// Whether the group is a thread in which the human, who is no agent, stands beside the sender.
fn human_takes_part(writing: &Writing<'_>, group: &Address, place: &Place<'_>) -> Result<bool> {
    match place.thread {
        Some(thread) if group.name == THREAD_GROUP && writing.actor.party() != Party::Human => {
            writing.tx.is_member(thread, &Party::Human)
        }
        _ => Ok(false),
    }
}

/// The agents of a group.
fn members(
    writing: &Writing<'_>,
    group: &Address,
    place: &Place<'_>,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Agent>> {
    let ctx = writing.ctx;
    let mut agents = Vec::new();
    if group.name == ALL_GROUP {
        let others = writing.tx.agents()?.into_iter().filter(|agent| !writing.actor.party().is(&agent.name));
        for agent in others {
            if actor::state(ctx, &agent) == Standing::Active
                && ctx.now.since(actor::seen_at(ctx, &agent)) > ALL_SEEN_WITHIN
            {
                left_out.push(LeftOut { name: agent.name.to_string(), reason: "unseen for 24 hours".to_owned() });
            } else {
                agents.push(agent);
            }
        }
        return Ok(agents);
    }
    let Some(thread) = place.thread else {
        return Err(Code::InputInvalid
            .refuse("@thread needs a thread, or a message that is answered: a new thread has no members yet"));
    };
    for party in writing.tx.members(thread)? {
        match party.agent().map(|name| writing.tx.agent(name)).transpose()?.flatten() {
            Some(agent) => agents.push(agent),
            None if party == writing.actor.party() || party == Party::Human => {}
            None => {
                left_out.push(LeftOut { name: party.to_string(), reason: "not an agent of this project".to_owned() });
            }
        }
    }
    Ok(agents)
}

/// Puts the question about one agent to the rule.
fn ask(writing: &Writing<'_>, agent: &Agent, line: Line, in_group: bool, place: &Place<'_>) -> Result<Found> {
    let ctx = writing.ctx;
    let me = writing.actor.party();
    let them = Party::Agent(agent.name.clone());
    let link = writing.tx.link(&me, &them)?;
    let link_state = link.as_ref().map(|link| link.state(ctx.now));
    let same_project = !matches!(me, Party::Elsewhere(..));
    let standing = actor::state(ctx, agent);
    let verdict = routing::decide(Question {
        from_human: matches!(me, Party::Human | Party::Relay),
        same_project,
        recipient: standing,
        policy: agent.policy,
        link: link_state,
        asked: link.as_ref().is_some_and(|link| link.from == me) && link_state == Some(LinkState::Requested),
        shared: shared(writing, &me, agent, place)?,
    });
    let asked = contact::ask(link.as_ref(), &me, Door { standing, policy: agent.policy, same_project }, ctx.now);
    Ok(Found {
        inbox_full: writing.tx.unread(&them, ctx.limits.unread)? >= ctx.limits.unread,
        party: them,
        line,
        verdict,
        consents_when_asked: matches!(asked, Asked::AcceptedByPolicy | Asked::AcceptsTheirs | Asked::Standing),
        in_group,
    })
}

/// Looks for shared context, the cheapest first, and no further than the first that is found.
fn shared(writing: &Writing<'_>, me: &Party, them: &Agent, place: &Place<'_>) -> Result<Shared> {
    let them_party = Party::Agent(them.name.clone());
    let none = Shared::default();
    if place.parent.is_some_and(|parent| parent.from == them_party) {
        return Ok(Shared { reply_to_recipients_own: true, ..none });
    }
    if let Some(thread) = place.thread
        && writing.tx.is_member(thread, me)?
        && writing.tx.is_member(thread, &them_party)?
    {
        return Ok(Shared { both_in_thread: true, ..none });
    }
    let now = writing.ctx.now;
    if writing.tx.wrote_since(&them_party, me, now.minus(WROTE_WITHIN))? {
        return Ok(Shared { recipient_wrote_recently: true, ..none });
    }
    let Some(name) = me.agent() else {
        return Ok(none);
    };
    let live_overlapping_claims = writing.tx.share_a_path(name, &them.name, now)?;
    Ok(Shared { live_overlapping_claims, ..none })
}

/// The refusal of a send that cannot reach everybody it names; none when it can.
pub(super) fn refusal(writing: &Writing<'_>, roll: &Roll) -> Result<Option<Refusal>> {
    let named = || roll.found.iter().filter(|found| !found.in_group);
    if roll.unknown.is_empty() && named().all(|found| found.verdict == Verdict::Deliver) {
        let full = named().find(|found| found.inbox_full);
        return Ok(full.map(|found| inbox_full(writing, &found.party)));
    }
    let agents = writing.tx.agents()?;
    let mut rows: Vec<Value> = Vec::new();
    for address in &roll.unknown {
        let near = nearest(&address.name, agents.iter().map(|agent| agent.name.as_str()));
        let near: Vec<String> = near.into_iter().map(|name| qualified(writing, name)).collect();
        rows.push(json!({"name": qualified(writing, address.to_string()), "code": Code::RecipientNotFound.as_str(), "nearest": near}));
    }
    for found in named() {
        let (code, reason) = match found.verdict {
            Verdict::Deliver => continue,
            Verdict::Barred(barrier) => (Code::ContactBlocked, barrier.as_str()),
            Verdict::Pending => (Code::ContactPending, "asked, not answered"),
            Verdict::Required => (Code::ContactRequired, "not linked"),
        };
        rows.push(
            json!({"name": qualified(writing, found.party.to_string()), "code": code.as_str(), "reason": reason}),
        );
    }
    Ok(Some(compose(writing, roll, rows)))
}

fn compose(writing: &Writing<'_>, roll: &Roll, rows: Vec<Value>) -> Refusal {
    let names = |keep: &dyn Fn(&Found) -> bool| -> Vec<String> {
        roll.found
            .iter()
            .filter(|found| !found.in_group && keep(found))
            .map(|found| qualified(writing, found.party.to_string()))
            .collect()
    };
    let barred = names(&|found| matches!(found.verdict, Verdict::Barred(_)));
    let pending = names(&|found| found.verdict == Verdict::Pending);
    let required = names(&|found| found.verdict == Verdict::Required);
    let must_answer = names(&|found| found.verdict == Verdict::Required && !found.consents_when_asked);
    let own_blocks = names(&|found| {
        found.verdict == Verdict::Barred(Barrier::Blocked) && i_block(writing, &found.party).unwrap_or(false)
    });
    let refusal = if let Some(unknown) = roll.unknown.first() {
        let near = rows[0]["nearest"].clone();
        let hint = near.as_array().filter(|near| !near.is_empty()).map(|near| {
            format!("; did you mean {}?", near.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "))
        });
        let refusal = Code::RecipientNotFound
            .refuse(format!("there is no agent {:?} in this project{}", unknown.to_string(), hint.unwrap_or_default()))
            .with("nearest", near);
        // Only what could be a name stands in a question.
        let names = roll.unknown.iter().filter(|address| AgentName::parse(&address.name).is_ok());
        let names: Vec<String> = names.map(|address| qualified(writing, address.to_string())).collect();
        if names.len() == roll.unknown.len() { refusal.with("unknown", json!(names)) } else { refusal }
    } else if !barred.is_empty() {
        Code::ContactBlocked.refuse(format!("{} cannot be reached: {}", barred.join(", "), reasons(roll)))
    } else if !pending.is_empty() {
        Code::ContactPending.refuse(format!(
            "{} {} asked for contact and did not answer yet",
            pending.join(", "),
            was(&pending)
        ))
    } else {
        let takes = if must_answer.is_empty() {
            "is not linked with you"
        } else {
            "takes mail from accepted contacts only, and you are not linked"
        };
        Code::ContactRequired.refuse(format!("{} {takes}", required.join(", ")))
    };
    refusal
        .with("recipients", Value::Array(rows))
        .with("ask", json!(required))
        .with("must_answer", json!(must_answer))
        .with("pending", json!(pending))
        .with("blocked", json!(barred))
        .with("own_blocks", json!(own_blocks))
}

/// A name as the sender must write it: a guest from another project adds the project.
pub(super) fn qualified(writing: &Writing<'_>, name: String) -> String {
    match writing.actor.party() {
        Party::Elsewhere(..) => format!("{name}@{}", writing.ctx.project),
        _ => name,
    }
}

fn was(names: &[String]) -> &'static str {
    if names.len() == 1 { "was" } else { "were" }
}

fn reasons(roll: &Roll) -> String {
    let mut reasons: Vec<&str> = roll
        .found
        .iter()
        .filter_map(|found| match found.verdict {
            Verdict::Barred(barrier) if !found.in_group => Some(match barrier {
                Barrier::Retired => "retired",
                Barrier::Suspended => "suspended",
                Barrier::Blocked => "a block stands between you",
                Barrier::BlockAll => "takes no mail",
            }),
            _ => None,
        })
        .collect();
    reasons.dedup();
    reasons.join("; ")
}

fn i_block(writing: &Writing<'_>, them: &Party) -> Result<bool> {
    let me = writing.actor.party();
    Ok(writing.tx.link(&me, them)?.is_some_and(|link| link.is_blocked_by(&me)))
}

fn inbox_full(writing: &Writing<'_>, party: &Party) -> Refusal {
    let name = qualified(writing, party.to_string());
    Code::InboxFull.refuse(format!("the inbox of {name} is full")).with("name", name)
}
