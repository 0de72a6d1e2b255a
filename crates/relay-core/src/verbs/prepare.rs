//! `prepare`: starts the agent where it is not registered yet, joins a thread and returns its digest (I3).

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::reserve;
use super::start;
use super::wanted::Wanted;
use super::writing::{Told, Who, Writing, write_as};
use super::{Caller, Ctx, Done, Outcome as Any, contested, post};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::{Happened, Number};
use crate::domain::limits::Limits;
use crate::domain::message::Message;
use crate::domain::name::{AgentName, Party, ThreadId};
use crate::domain::shell;
use crate::domain::thread::Thread;
use crate::domain::view::Viewer;
use crate::error::Code;
use crate::store::{Facts, NEWEST, Repository, Result};
use crate::wire::v1::{AgentShape, ClaimShape, ConflictShape, GrantedShape, MessageShape, ThreadShape};

/// Messages in a digest, unless the caller says otherwise.
const DIGEST: usize = 10;
/// Bytes of bodies in a digest: what is older than this is named without its body.
const BODY_BUDGET: usize = 16 * 1024;
/// The same for the human, who pays no tokens.
const HUMAN_BUDGET: usize = 96 * 1024;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub thread: ThreadId,
    #[serde(default)]
    pub limit: Option<usize>,
    #[serde(flatten)]
    pub start: start::Input,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub agent: AgentShape,
    pub thread: ThreadShape,
    /// The thread did not exist before.
    pub new: bool,
    pub participants: Vec<String>,
    /// The last messages, oldest first.
    pub messages: Vec<MessageShape>,
    pub acks_owed: Vec<OwedAck>,
    pub reservations: Vec<ClaimShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<GrantedShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictShape>,
    /// All of them, where not every one is spelt out.
    #[serde(default, skip_serializing_if = "start::is_zero")]
    pub conflicts_total: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwedAck {
    pub message: u64,
    pub by: String,
    pub to: String,
    pub overdue: bool,
}

/// What `prepare` decided.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Prepared {
    name: AgentName,
    thread: ThreadId,
    new: bool,
    reserved: Option<reserve::Outcome>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    check(&ctx.caller, ctx.limits, ctx.repository, input)?;
    let wanted = Wanted::new(ctx, &input.start.path)?;
    let told = write_as(ctx, "prepare", Who::Newcomer(&input.start), input, |writing| story(writing, input, &wanted))?;
    digest(ctx, input, told)
}

/// What can be said without looking at the store.
pub(super) fn check(caller: &Caller, limits: &Limits, repository: &dyn Repository, input: &Input) -> Result<()> {
    start::check(caller, limits, repository, &input.start)?;
    match input.limit {
        Some(limit) if !(1..=limits.page).contains(&limit) => {
            Err(Code::InputInvalid.refuse(format!("--limit is 1 to {}, not {limit}", limits.page)))
        }
        _ => Ok(()),
    }
}

fn story(writing: &mut Writing<'_>, input: &Input, wanted: &Wanted) -> Result<Prepared> {
    let registered = registered(writing, &input.start)?;
    let reserved = match registered {
        Some(agent) => {
            writing.actor = Actor::Agent(Box::new(agent));
            post::settle_held(writing)?;
            let claim = reserve::Input { reason: Some(input.thread.clone()), ..reserve::Input::default() };
            if wanted.is_empty() { None } else { Some(reserve::story(writing, &claim, wanted, None)?) }
        }
        None => start::story(writing, &input.start, wanted, Some(input.thread.clone()))?.reserved,
    };
    let agent = writing.actor.must_be_agent("prepare threads")?.clone();
    let thread = writing.tx.thread(&input.thread)?;
    let new = thread.is_none();
    let id = thread.map_or_else(|| input.thread.clone(), |thread| thread.id);
    let party = Party::Agent(agent.name.clone());
    let is_current = agent.thread.as_ref().is_some_and(|current| current.same_as(&id));
    if !is_current || !writing.tx.is_member(&id, &party)? {
        writing.append(Happened::ThreadPrepared { thread: id.clone(), agent: agent.name.clone() }, Vec::new())?;
    }
    Ok(Prepared { name: agent.name, thread: id, new, reserved })
}

/// The agent of this call, when it is registered and nothing about it is to be changed.
fn registered(writing: &Writing<'_>, input: &start::Input) -> Result<Option<Agent>> {
    let changes = input.program.is_some() || input.model.is_some() || input.task.is_some() || input.session.is_some();
    let Some(name) = actor::meant(writing.ctx, &*writing.tx)? else {
        return Ok(None);
    };
    match writing.tx.agent(&name)? {
        Some(_) if changes || input.take_over => Ok(None),
        Some(_) => {
            let agent = actor::acting(writing.ctx, &*writing.tx)?.agent().cloned();
            // It is often the first call of a session: two of them do not become one agent unseen.
            agent.iter().try_for_each(|agent| start::not_anothers(writing, agent, input))?;
            Ok(agent)
        }
        None => Ok(None),
    }
}

fn digest(ctx: &Ctx<'_>, input: &Input, told: Told<Prepared>) -> Result<Done> {
    let prepared = told.outcome;
    let facts = ctx.store.read()?;
    let gone = || Code::Internal.refuse("what was just prepared is not there");
    let agent = facts.agent(&prepared.name)?.ok_or_else(gone)?;
    let viewer = Viewer::Agent(Party::Agent(agent.name.clone()));
    let reserved = prepared.reserved.unwrap_or(reserve::Outcome {
        granted: Vec::new(),
        conflicts: Vec::new(),
        conflicts_total: 0,
    });
    let view =
        thread_view(ctx, &*facts, &prepared.thread, &viewer, None, input.limit.unwrap_or(DIGEST))?.ok_or_else(gone)?;
    let outcome = Outcome {
        agent: AgentShape::of(&agent, Standing::Active, true, ctx.now),
        thread: view.thread,
        new: prepared.new,
        participants: view.participants,
        messages: view.messages,
        acks_owed: view.acks_owed,
        reservations: view.reservations,
        granted: reserved.granted,
        conflicts: reserved.conflicts,
        conflicts_total: reserved.conflicts_total,
    };
    let mut next: Vec<String> = start::introduction(ctx, &*facts, &agent.name).into_iter().collect();
    next.extend(told.next);
    next.push(format!("relay reserve PATTERN --reason {}", shell::quote(prepared.thread.as_str())));
    Ok(Done::new("prepare", Told { outcome: Box::new(outcome), signals: told.signals, next }, Any::Prepare))
}

/// A thread as a viewer sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadView {
    pub thread: ThreadShape,
    pub participants: Vec<String>,
    pub messages: Vec<MessageShape>,
    /// Older ones are found before this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Number>,
    pub acks_owed: Vec<OwedAck>,
    pub reservations: Vec<ClaimShape>,
    /// Those of them that share a path with somebody else's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<Number>,
}

/// What a viewer sees of a thread without opening a message.
struct Head {
    thread: ThreadShape,
    participants: Vec<String>,
    /// The last envelopes that the viewer sees, oldest first.
    visible: Vec<Message>,
}

fn head(ctx: &Ctx<'_>, facts: &dyn Facts, thread: Thread, viewer: &Viewer) -> Result<Option<Head>> {
    let last = facts.thread_messages(&thread.id, NEWEST, ctx.limits.page)?;
    let (visible, hidden): (Vec<_>, Vec<_>) = last.into_iter().partition(|message| viewer.sees(message));
    let participants: Vec<String> = facts.members(&thread.id)?.iter().map(ToString::to_string).collect();
    // A thread all of whose messages are hidden from the viewer, and that nobody joined, does not exist for it.
    if thread.messages > 0 && visible.is_empty() && participants.is_empty() {
        return Ok(None);
    }
    let subject_is_visible = match thread.first_message.map(|first| facts.envelope(first)).transpose()?.flatten() {
        Some(first) => viewer.sees(&first),
        None => true,
    };
    let shape = whole(thread);
    let thread = ThreadShape {
        messages: shape.messages.saturating_sub(hidden.len() as u64),
        subject: shape.subject.filter(|_| subject_is_visible),
        ..shape
    };
    Ok(Some(Head { thread, participants, visible }))
}

fn whole(thread: Thread) -> ThreadShape {
    let Thread { id, subject, done, messages, last_at, .. } = thread;
    ThreadShape { id: id.to_string(), subject, done, messages, last_at }
}

/// A thread as a row of a list.
pub(super) fn thread_shape(
    ctx: &Ctx<'_>,
    facts: &dyn Facts,
    thread: Thread,
    viewer: &Viewer,
) -> Result<Option<ThreadShape>> {
    // From the human nothing is hidden: there is no message to look at for that.
    if *viewer == Viewer::Human {
        return Ok(Some(whole(thread)));
    }
    Ok(head(ctx, facts, thread, viewer)?.map(|head| head.thread))
}

pub(super) fn thread_view(
    ctx: &Ctx<'_>,
    facts: &dyn Facts,
    id: &ThreadId,
    viewer: &Viewer,
    before: Option<Number>,
    limit: usize,
) -> Result<Option<ThreadView>> {
    let Some(thread) = facts.thread(id)? else {
        return Ok(None);
    };
    let id = thread.id.clone();
    let Some(Head { thread, participants, visible }) = head(ctx, facts, thread, viewer)? else {
        return Ok(None);
    };
    let (page, has_older) = page(facts, &id, viewer, before.unwrap_or(NEWEST), limit)?;
    // Of an older page those that are shown; of the newest also what was asked a little before.
    let asked = if before.is_some() { &page } else { &visible };
    let mut acks_owed = Vec::new();
    for message in asked {
        for delivery in message.deliveries.iter().filter(|delivery| viewer.sees_delivery(message, delivery)) {
            let ack = delivery.ack(message.ack_within);
            if ack.is_owed() {
                acks_owed.push(OwedAck {
                    message: message.id,
                    by: delivery.recipient.to_string(),
                    to: message.from.to_string(),
                    overdue: ack.is_overdue(ctx.now),
                });
            }
        }
    }
    let messages = within_budget(facts, &page, viewer)?;
    let reservations: Vec<ClaimShape> =
        facts.claims_for(&id)?.iter().filter(|claim| claim.is_live(ctx.now)).map(ClaimShape::from).collect();
    let contested = contested::of(facts, &reservations, ctx.now)?;
    let before = messages.first().map(|oldest| oldest.id).filter(|_| has_older);
    Ok(Some(ThreadView { thread, participants, messages, before, acks_owed, reservations, contested }))
}

/// The last envelopes before a number that the viewer sees, oldest first, and whether it sees older ones. What it does not see is
/// not counted, nor told by an empty page.
fn page(
    facts: &dyn Facts,
    thread: &ThreadId,
    viewer: &Viewer,
    mut before: Number,
    limit: usize,
) -> Result<(Vec<Message>, bool)> {
    let mut seen = Vec::new();
    while seen.len() <= limit {
        let last = facts.thread_messages(thread, before, limit + 1)?;
        let Some(first) = last.first() else { break };
        before = first.id;
        seen.extend(last.into_iter().rev().filter(|message| viewer.sees(message)));
    }
    let has_older = seen.len() > limit;
    seen.truncate(limit);
    seen.reverse();
    Ok((seen, has_older))
}

/// The newest bodies first, until the budget is spent; the older ones are not even read.
fn within_budget(facts: &dyn Facts, envelopes: &[Message], viewer: &Viewer) -> Result<Vec<MessageShape>> {
    let mut left = if *viewer == Viewer::Human { HUMAN_BUDGET } else { BODY_BUDGET };
    let mut shapes = Vec::new();
    for envelope in envelopes.iter().rev() {
        let whole = if left > 0 { facts.message(envelope.id)? } else { None };
        let size = whole.as_ref().and_then(|message| message.body.as_ref()).map_or(0, String::len);
        let fits = size <= left;
        left = if fits { left - size } else { 0 };
        shapes.push(match whole.filter(|_| fits) {
            Some(whole) => MessageShape::of(&whole, viewer, true),
            None => MessageShape::of(envelope, viewer, false),
        });
    }
    shapes.reverse();
    Ok(shapes)
}
