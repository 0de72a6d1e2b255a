//! `start`: opens the project, registers or resumes the agent, and returns the situation.

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::contested;
use super::debt;
use super::poll::Afterwards;
use super::reserve;
use super::wanted::{self, Wanted};
use super::writing::{Told, Who, Writing, write_as};
use super::{Caller, Ctx, Done, Outcome as Any, check_session, link, post};
use crate::domain::agent::{Agent, Policy, Standing};
use crate::domain::event::Happened;
use crate::domain::limits::Limits;
use crate::domain::moniker;
use crate::domain::name::{AgentName, Party, ThreadId};
use crate::domain::shell;
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;
use crate::error::{Code, Refusal};
use crate::store::{Facts, InboxQuery, Repository, Result};
use crate::wire::v1::{
    AgentShape, ClaimShape, ConflictShape, ContestedShape, GrantedShape, LinkShape, MessageShape, ProjectShape, Signal,
    SignalCode,
};

/// How many newest messages and owed acks the situation spells out.
const SPELT_OUT: usize = 5;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub program: Option<String>,
    pub model: Option<String>,
    pub task: Option<String>,
    pub session: Option<String>,
    pub take_over: bool,
    pub path: Vec<String>,
    /// For `register` only: the agent whose subagent this is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentName>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub agent: AgentShape,
    pub project: ProjectShape,
    /// Registered just now, rather than resumed.
    pub new: bool,
    pub inbox: Inbox,
    pub acks_owed: Vec<MessageShape>,
    pub contacts_waiting: Vec<LinkShape>,
    pub claims: Vec<ClaimShape>,
    pub contested: Vec<ContestedShape>,
    pub debt: Debt,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<GrantedShape>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<ConflictShape>,
    /// All of them, where not every one is spelt out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conflicts_total: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inbox {
    pub unread: usize,
    /// Acks that this agent owes past their time.
    pub overdue: usize,
    pub newest: Vec<MessageShape>,
}

/// Without `--path` nothing was claimed, and an answer does not speak of it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Coordination debt (I8), counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Debt {
    pub stale_claims: usize,
    pub contested: usize,
    pub acks_overdue: usize,
    /// Everything that this agent owes: `relay look debt`.
    pub items: usize,
}

/// What `start` decided; the situation around it is read anew each time it is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Started {
    pub name: AgentName,
    pub new: bool,
    pub reserved: Option<reserve::Outcome>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    check(&ctx.caller, ctx.limits, ctx.repository, input)?;
    let wanted = Wanted::new(ctx, &input.path)?;
    let told = write_as(ctx, "start", Who::Newcomer(input), input, |writing| story(writing, input, &wanted, None))?;
    situation(ctx, told)
}

/// What can be said without looking at the store.
pub(super) fn check(caller: &Caller, limits: &Limits, repository: &dyn Repository, input: &Input) -> Result<()> {
    if caller.human {
        return Err(Code::AgentNameInvalid.refuse("`human` is reserved: the human is on the bus without start"));
    }
    for (flag, value, most) in
        [("--program", &input.program, 200), ("--model", &input.model, 200), ("--task", &input.task, 2_000)]
    {
        let Some(value) = value else { continue };
        if value.trim().is_empty() || value.len() > most || value.chars().any(|c| c.is_control() && flag != "--task") {
            return Err(
                Code::InputInvalid.refuse(format!("{flag} is 1 to {most} bytes of text without control characters"))
            );
        }
    }
    check_session(input.session.as_deref().or(caller.session.as_deref()))?;
    wanted::parse_all(limits, &input.path, &repository.roots()).map(drop)
}

/// Under which name a starting agent's keys are kept: it may not have one yet. Nobody is answered what was answered to another
/// credential, so one that says another's name, or that has none and is not the owner's, looks under its own.
pub(super) fn scope(ctx: &Ctx<'_>, facts: &dyn Facts, input: &Input) -> Result<String> {
    let caller = &ctx.caller;
    let (scope, is_own) = match caller.named.as_ref().or(caller.variable.as_ref()) {
        Some(name) => (name.key(), facts.agent(name)?.is_none_or(|agent| ctx.owns(&agent))),
        None => {
            let session = input.session.as_ref().or(caller.session.as_ref());
            (format!("session {}", session.map(String::as_str).unwrap_or_default()), !caller.separate)
        }
    };
    Ok(if is_own { scope } else { format!("{} {scope}", caller.credential) })
}

/// Registers or resumes, and claims what was asked for. The writing goes on as the agent.
pub(super) fn story(
    writing: &mut Writing<'_>,
    input: &Input,
    wanted: &Wanted,
    reason: Option<ThreadId>,
) -> Result<Started> {
    let parent = input.parent.as_ref().map(|parent| parent_of(writing, parent)).transpose()?;
    let (name, new) = match wished(writing, input)? {
        Some(name) => match writing.tx.agent(&name)? {
            Some(agent) => (resume(writing, agent, &name, input)?, false),
            None => (register(writing, name, parent, input)?, true),
        },
        None => {
            let name = fresh_name(writing)?;
            (register(writing, name, parent, input)?, true)
        }
    };
    let agent = writing
        .tx
        .agent(&name)?
        .ok_or_else(|| Code::Internal.refuse("the agent that was just registered is not there"))?;
    writing.actor = Actor::Agent(Box::new(agent));
    // From here on the agent is seen, also by the rules of this transaction.
    writing.ctx.store.presence().touch(&name, writing.ctx.now);
    // Nobody acted yet when every other verb tells its actor of lapsed mail.
    post::settle_held(writing)?;
    let claim = reserve::Input { reason, ..reserve::Input::default() };
    let reserved = if wanted.is_empty() { None } else { Some(reserve::story(writing, &claim, wanted, None)?) };
    Ok(Started { name, new, reserved })
}

/// The name that is wished for: `--agent`, or the session's agent, or `RELAY_AGENT`. A subagent is registered from within
/// its parent, so that nothing there that says who the parent is says who the subagent is.
fn wished(writing: &Writing<'_>, input: &Input) -> Result<Option<AgentName>> {
    let mut caller = writing.ctx.caller.clone();
    caller.session =
        Agent::session_to_bind(input.parent.is_some(), input.session.as_ref(), caller.session.as_ref()).cloned();
    if let Some(parent) = &input.parent {
        caller.variable = caller.variable.filter(|variable| !variable.same_as(parent));
    }
    let ctx = Ctx { caller, ..writing.ctx.step(&writing.ctx.key.text) };
    actor::meant(&ctx, &*writing.tx)
}

/// The session that the agent is bound to from now on, if this start brings one. A subagent takes nobody's, and no credential
/// takes another's: whoever is in there acts by it.
fn session(writing: &Writing<'_>, name: &AgentName, is_subagent: bool, input: &Input) -> Result<Option<String>> {
    let harness = writing.ctx.caller.session.as_ref();
    let Some(session) = Agent::session_to_bind(is_subagent, input.session.as_ref(), harness) else {
        return Ok(None);
    };
    let is_anothers = writing
        .tx
        .agent_of_session(session)?
        .is_some_and(|owner| !owner.name.same_as(name) && (is_subagent || !writing.ctx.owns(&owner)));
    Ok(Some(session.clone()).filter(|_| !is_anothers))
}

/// The agent that this session means when nobody is named.
fn speaks_for(writing: &Writing<'_>, session: &str) -> Result<Option<AgentName>> {
    Ok(writing.tx.agent_of_session(session)?.map(|agent| agent.name))
}

fn resume(writing: &mut Writing<'_>, agent: Agent, wished: &AgentName, input: &Input) -> Result<AgentName> {
    let ctx = writing.ctx;
    let session = session(writing, &agent.name, agent.parent.is_some(), input)?;
    if agent.name != *wished {
        return Err(taken(
            &agent,
            format!("`{wished}` differs from {} only in case, and names are unique without regard to case", agent.name),
        ));
    }
    if !ctx.owns(&agent) {
        return Err(taken(&agent, format!("{} belongs to {}", agent.name, agent.credential)));
    }
    not_anothers(writing, &agent, input)?;
    let state = actor::state(ctx, &agent);
    if state == Standing::Suspended {
        return Err(Code::AgentSuspended
            .refuse(format!("{} is suspended", agent.name))
            .with("name", agent.name.as_str()));
    }
    let revived = state == Standing::Retired;
    let changed = |new: Option<&String>, old: &Option<String>| new.filter(|new| Some(*new) != old.as_ref()).cloned();
    let (program, model) =
        (changed(input.program.as_ref(), &agent.program), changed(input.model.as_ref(), &agent.model));
    let task = changed(input.task.as_ref(), &agent.task);
    // A session that meanwhile spoke for another agent speaks for this one again.
    let speaks_for = session.as_ref().map(|session| speaks_for(writing, session)).transpose()?.flatten();
    let session = session.filter(|session| {
        !agent.is_bound_to(session) || !speaks_for.is_some_and(|spoken_for| spoken_for.same_as(&agent.name))
    });
    if revived || program.is_some() || model.is_some() || task.is_some() || session.is_some() {
        let texts: Vec<_> = task.map(|task| writing.text("task", &task)).into_iter().collect();
        let task = texts.first().map(crate::domain::event::Text::hash);
        let party = Party::Agent(agent.name.clone());
        writing.append_as(
            &party,
            Happened::AgentResumed { agent: agent.name.clone(), program, model, task, session, revived },
            texts,
        )?;
    }
    Ok(agent.name)
}

/// An agent that is bound to another session than the one that asks, and is alive there, is that one's until it is taken over.
pub(super) fn not_anothers(writing: &Writing<'_>, agent: &Agent, input: &Input) -> Result<()> {
    let session = session(writing, &agent.name, agent.parent.is_some(), input)?;
    let (Some(bound), Some(session)) = (&agent.session, session) else { return Ok(()) };
    if *bound == session || input.take_over || !actor::alive(writing.ctx, agent) {
        return Ok(());
    }
    Err(taken(agent, format!("{} is bound to another session that is alive", agent.name)).with("session", session))
}

fn taken(agent: &Agent, why: String) -> Refusal {
    Code::AgentNameTaken.refuse(why).with("name", agent.name.as_str())
}

/// The agent whose subagent this is. It shares its claims, so it must be one's own.
fn parent_of(writing: &Writing<'_>, name: &AgentName) -> Result<AgentName> {
    let parent = writing.tx.agent(name)?.ok_or_else(|| {
        Code::AgentNotRegistered.refuse(format!("the parent {name} is not registered")).with("name", name.as_str())
    })?;
    actor::owned(writing.ctx, &parent)?;
    Ok(parent.name)
}

fn register(writing: &mut Writing<'_>, name: AgentName, parent: Option<AgentName>, input: &Input) -> Result<AgentName> {
    let session = session(writing, &name, parent.is_some(), input)?;
    let texts: Vec<_> = input.task.as_ref().map(|task| writing.text("task", task)).into_iter().collect();
    let what = Happened::AgentRegistered {
        agent: name.clone(),
        credential: writing.ctx.caller.credential.clone(),
        program: input.program.clone(),
        model: input.model.clone(),
        task: texts.first().map(crate::domain::event::Text::hash),
        session,
        parent,
        policy: Policy::default(),
    };
    writing.append_as(&Party::Agent(name.clone()), what, texts)?;
    Ok(name)
}

/// A memorable name that nobody has.
fn fresh_name(writing: &Writing<'_>) -> Result<AgentName> {
    for attempt in 0..1_000_u32 {
        let bytes = writing.ctx.random.bytes();
        let random =
            u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]);
        let mut text = moniker::moniker(random);
        if attempt > 100 {
            text = format!("{text}{attempt}");
        }
        let name = AgentName::parse(&text)?;
        if writing.tx.agent(&name)?.is_none() {
            return Ok(name);
        }
    }
    Err(Code::Internal.refuse("no free name was found"))
}

/// Reads the situation of the agent that was just started.
fn situation(ctx: &Ctx<'_>, told: Told<Started>) -> Result<Done> {
    let started = told.outcome;
    let facts = ctx.store.read()?;
    let agent = facts.agent(&started.name)?.ok_or_else(|| Code::Internal.refuse("the started agent is not there"))?;
    let actor = Actor::Agent(Box::new(agent.clone()));
    let me = actor.party();
    let news = contested::news(ctx, &*facts, &agent, ctx.now)?;
    let viewer = Viewer::Agent(me.clone());
    let mut signals = told.signals;
    signals.extend(owed(ctx, &*facts, &actor)?);
    let (claims, stale) = claims(ctx, &*facts, &agent)?;
    signals.extend(stale.iter().cloned());
    let owed_acks = facts.acks_owed(&me, SPELT_OUT)?;
    let overdue =
        facts.acks_owed(&me, ctx.limits.page)?.iter().filter(|message| is_overdue(message, &me, ctx.now)).count();
    let reserved =
        started.reserved.unwrap_or(reserve::Outcome { granted: Vec::new(), conflicts: Vec::new(), conflicts_total: 0 });
    let outcome = Outcome {
        agent: AgentShape::of(&agent, Standing::Active, true, ctx.now),
        project: ProjectShape { key: ctx.project.to_string() },
        new: started.new,
        inbox: Inbox { unread: facts.unread(&me, ctx.limits.unread)?, overdue, newest: newest(ctx, &*facts, &me)? },
        acks_owed: owed_acks.iter().map(|message| MessageShape::of(message, &viewer, false)).collect(),
        contacts_waiting: link::pending_for(&*facts, &me, ctx.now)?
            .iter()
            .map(|link| LinkShape::of(link, ctx.now))
            .collect(),
        debt: Debt {
            stale_claims: stale.len(),
            contested: contested::pairs(&*facts, &agent, ctx.now, contested::ALL)?.len(),
            acks_overdue: overdue,
            items: debt::owed_by(ctx, &*facts, &actor)?.len(),
        },
        claims,
        contested: news.contested,
        granted: reserved.granted,
        conflicts: reserved.conflicts,
        conflicts_total: reserved.conflicts_total,
    };
    let mut next: Vec<String> = introduction(ctx, &*facts, &agent.name).into_iter().collect();
    next.extend(told.next);
    propose(&outcome, &mut next);
    let mut done = Done::new("start", Told { outcome: Box::new(outcome), signals, next }, Any::Start);
    done.afterwards =
        Some(Afterwards { party: me, at: ctx.now, surfaced: Vec::new(), read: Vec::new(), told: news.told })
            .filter(|afterwards| !afterwards.is_empty());
    Ok(done)
}

fn newest(ctx: &Ctx<'_>, facts: &dyn Facts, me: &Party) -> Result<Vec<MessageShape>> {
    let query = InboxQuery::unread(me, ctx.limits.page);
    let viewer = Viewer::Agent(me.clone());
    let unread = facts.inbox(&query)?;
    Ok(unread.iter().rev().take(SPELT_OUT).map(|message| MessageShape::of(message, &viewer, false)).collect())
}

fn claims(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent) -> Result<(Vec<ClaimShape>, Vec<Signal>)> {
    let live: Vec<_> = facts.claims_of(&agent.name)?.into_iter().filter(|claim| claim.is_live(ctx.now)).collect();
    let mut stale = Vec::new();
    for claim in &live {
        let done = claim
            .reason
            .as_ref()
            .map(|reason| facts.thread(reason))
            .transpose()?
            .flatten()
            .is_some_and(|thread| thread.done);
        if done || claim.is_stale(ctx.now) {
            let why = if done { "its thread is done" } else { "you hold it for more than 12 hours" };
            stale.push(
                Signal::new(SignalCode::StaleClaim, format!("#{} {}: {why}", claim.id, claim.pattern)).about(claim.id),
            );
        }
    }
    Ok((live.iter().take(ctx.limits.page).map(ClaimShape::from).collect(), stale))
}

/// The line before all others in a shell that does not say yet who acts there.
pub(super) fn introduction(ctx: &Ctx<'_>, facts: &dyn Facts, name: &AgentName) -> Option<String> {
    let is_known = matches!(actor::meant(ctx, facts), Ok(Some(meant)) if meant.same_as(name));
    (!is_known).then(|| format!("export RELAY_AGENT={name}"))
}

fn propose(outcome: &Outcome, next: &mut Vec<String>) {
    if outcome.inbox.unread > 0 {
        next.push("relay poll --bodies".to_owned());
    }
    for message in outcome.acks_owed.iter().take(3) {
        next.push(format!("relay ack {}", message.id));
    }
    if outcome.debt.items > 0 {
        next.push("relay look debt".to_owned());
    }
    for link in outcome.contacts_waiting.iter().take(3) {
        next.push(shell::line(&["relay", "link", "--target", &link.from, "--accept"]));
    }
    if outcome.inbox.unread == 0 && outcome.acks_owed.is_empty() && outcome.contacts_waiting.is_empty() {
        next.push("relay prepare --thread THREAD".to_owned());
    }
}

fn is_overdue(message: &crate::domain::message::Message, party: &Party, now: Timestamp) -> bool {
    message.delivery_to(party).is_some_and(|delivery| delivery.ack(message.ack_within).is_overdue(now))
}

/// What is owed to this actor and by it, past its time.
pub(super) fn owed(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor) -> Result<Vec<Signal>> {
    let me = actor.party();
    let mut signals = Vec::new();
    for message in facts.acks_owed(&me, ctx.limits.page)? {
        if is_overdue(&message, &me, ctx.now) {
            signals.push(
                Signal::new(SignalCode::AckOverdue, format!("you owe {} an ack for #{}", message.from, message.id))
                    .about(message.id),
            );
        }
    }
    for message in facts.acks_awaited(&me, ctx.limits.page)? {
        let late: Vec<String> = message
            .deliveries
            .iter()
            .filter(|delivery| delivery.ack(message.ack_within).is_overdue(ctx.now))
            .map(|delivery| delivery.recipient.to_string())
            .collect();
        if !late.is_empty() {
            signals.push(
                Signal::new(SignalCode::AckOverdue, format!("{} did not ack #{} in time", late.join(", "), message.id))
                    .about(message.id),
            );
        }
    }
    for link in link::pending_for(facts, &me, ctx.now)? {
        signals.push(Signal::new(SignalCode::ContactWaiting, format!("{} asks for contact", link.from)).about(link.id));
    }
    Ok(signals)
}
