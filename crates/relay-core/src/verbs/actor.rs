//! Which agent a call means, and whether it may act (I2).

use serde_json::json;

use super::{Ctx, crossing};
use crate::domain::agent::{Agent, Standing, is_alive};
use crate::domain::name::{Address, AgentName, Party, RELAY};
use crate::domain::nearest::{did_you_mean, nearest};
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;
use crate::error::{Code, Refusal};
use crate::store::{Facts, Result};

/// Who acts.
#[derive(Clone, Debug)]
pub enum Actor {
    Agent(Box<Agent>),
    Human,
    /// An agent of another project, on an errand in this one.
    Guest(Party),
    /// An agent for whom relay completes what its own process could not.
    Absent(AgentName),
    /// Somebody who is about to register, under this scope of keys.
    Newcomer(String),
}

impl Actor {
    pub fn party(&self) -> Party {
        match self {
            Actor::Agent(agent) => Party::Agent(agent.name.clone()),
            Actor::Human => Party::Human,
            Actor::Guest(party) => party.clone(),
            Actor::Absent(name) => Party::Agent(name.clone()),
            Actor::Newcomer(_) => Party::Relay,
        }
    }

    pub fn agent(&self) -> Option<&Agent> {
        match self {
            Actor::Agent(agent) => Some(agent),
            _ => None,
        }
    }

    /// Under which name this actor's keys and failures are kept.
    pub fn scope(&self) -> String {
        match self {
            Actor::Agent(agent) => agent.name.key(),
            Actor::Human => "human".to_owned(),
            Actor::Guest(party) => party.to_string(),
            Actor::Absent(name) => name.key(),
            Actor::Newcomer(scope) => scope.clone(),
        }
    }

    /// The agent, for what the human does not do.
    pub fn must_be_agent(&self, what: &str) -> Result<&Agent> {
        self.agent()
            .ok_or_else(|| Code::InputInvalid.refuse(format!("the human does not {what}; name an agent with --agent")))
    }
}

/// The name a call means: `--agent` wins; otherwise the session's agent and `RELAY_AGENT` must agree.
///
/// A session from which its agent was taken over still names that agent, so that `start` can take it back; it binds
/// nobody who says another name.
pub(super) fn meant(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<Option<AgentName>> {
    if let Some(name) = &ctx.caller.named {
        return Ok(Some(name.clone()));
    }
    let (started, is_bound) = match &ctx.caller.session {
        Some(session) => match facts.agent_of_session(session)? {
            Some(agent) => (Some(agent.name.clone()), agent.is_bound_to(session)),
            None => (None, false),
        },
        None => (None, false),
    };
    match (started, &ctx.caller.variable) {
        (Some(bound), Some(variable)) if is_bound && !bound.same_as(variable) => Err(Code::IdentityMismatch
            .refuse(format!("the session is bound to {bound}, but RELAY_AGENT says {variable}"))
            .with("bound", bound.as_str())
            .with("variable", variable.as_str())),
        (started, variable) => Ok(variable.clone().or(started)),
    }
}

/// The registered, active agent (or the human) behind a call.
pub(super) fn acting(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<Actor> {
    if ctx.caller.human {
        return Ok(Actor::Human);
    }
    let Some(name) = meant(ctx, facts)? else {
        return Err(
            Code::AgentNotRegistered.refuse("no agent is named: neither --agent, RELAY_AGENT nor a bound session")
        );
    };
    let Some(agent) = facts.agent(&name)? else {
        return Err(not_registered(facts, &name)?);
    };
    owned(ctx, &agent)?;
    not_taken_over(ctx, facts, &agent)?;
    match state(ctx, &agent) {
        Standing::Active => Ok(Actor::Agent(Box::new(agent))),
        Standing::Retired => {
            Err(Code::AgentRetired.refuse(format!("{} has retired", agent.name)).with("name", agent.name.as_str()))
        }
        Standing::Suspended => {
            Err(Code::AgentSuspended.refuse(format!("{} is suspended", agent.name)).with("name", agent.name.as_str()))
        }
    }
}

/// Through whose eyes a call reads: without any agent, as anyone of the project, for those who are of it.
pub(super) fn viewer(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<(Viewer, Option<Actor>)> {
    if !ctx.caller.human && meant(ctx, facts)?.is_none() && is_of_the_project(ctx, facts)? {
        return Ok((Viewer::Anyone, None));
    }
    let actor = acting(ctx, facts)?;
    let viewer = match &actor {
        Actor::Human => Viewer::Human,
        other => Viewer::Agent(other.party()),
    };
    Ok((viewer, Some(actor)))
}

/// The owner of the stores, and whoever has an active agent here.
fn is_of_the_project(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<bool> {
    if !ctx.caller.separate {
        return Ok(true);
    }
    let is_own = |agent: &Agent| ctx.owns(agent) && state(ctx, agent) == Standing::Active;
    Ok(facts.agents()?.iter().any(is_own))
}

/// Only the credential that registered an agent may act as it.
pub(super) fn owned(ctx: &Ctx<'_>, agent: &Agent) -> Result<()> {
    if ctx.owns(agent) {
        return Ok(());
    }
    Err(Code::IdentityMismatch
        .refuse(format!(
            "{} belongs to {}, and this call comes from {}",
            agent.name, agent.credential, ctx.caller.credential
        ))
        .with("name", agent.name.as_str()))
}

/// A call that speaks for an agent only by its session does so no longer once another session has the agent.
fn not_taken_over(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent) -> Result<()> {
    let (None, Some(session)) = (&ctx.caller.named, &ctx.caller.session) else {
        return Ok(());
    };
    let started_it = facts.agent_of_session(session)?.is_some_and(|started| started.name.same_as(&agent.name));
    if !started_it || agent.is_bound_to(session) {
        return Ok(());
    }
    let name = &agent.name;
    let taker = agent.session.as_deref().unwrap_or_default();
    Err(Code::IdentityMismatch
        .refuse(format!(
            "session {taker:?} took over {name}, and this session acts as it no longer; take it back with `relay start \
             --agent {name} --take-over`, or start under another name"
        ))
        .with("taken", name.as_str())
        .with("session", session.as_str())
        .with("by_session", taker))
}

fn not_registered(facts: &dyn Facts, name: &AgentName) -> Result<Refusal> {
    unknown(facts, Code::AgentNotRegistered, name.as_str())
}

/// Nobody here has that name: as the one who acts or is dealt with it is not registered, as the one who is addressed it is
/// not found. Either way those are named whose name is near.
pub(super) fn unknown(facts: &dyn Facts, code: Code, text: &str) -> Result<Refusal> {
    let known = facts.agents()?;
    let near = nearest(text, known.iter().map(|agent| agent.name.as_str()));
    let refusal = match code {
        // It was parsed, so it may stand in a step.
        Code::AgentNotRegistered => code.refuse(format!("{text} is not registered in this project")).with("name", text),
        _ => code.refuse(format!("there is no agent {text:?} in this project{}", did_you_mean(&near))),
    };
    Ok(refusal.with("nearest", json!(near)))
}

/// The party that an address means whose mail or deeds are asked for.
pub(super) fn addressed(ctx: &Ctx<'_>, facts: &dyn Facts, address: &Address) -> Result<Party> {
    if address.is_human() {
        return Ok(Party::Human);
    }
    if address.project.is_none() && address.name == RELAY {
        return Ok(Party::Relay);
    }
    if let Some(project) = crossing::other_project(ctx, address)? {
        return Ok(Party::Elsewhere(AgentName::parse(&address.name)?, project));
    }
    let agent = AgentName::parse(&address.name).ok().map(|name| facts.agent(&name)).transpose()?.flatten();
    match agent {
        Some(agent) => Ok(Party::Agent(agent.name)),
        None => Err(unknown(facts, Code::RecipientNotFound, &address.name)?),
    }
}

pub(super) fn seen_at(ctx: &Ctx<'_>, agent: &Agent) -> Timestamp {
    agent.seen_at(ctx.store.presence().seen(&agent.name), ctx.now)
}

pub(super) fn state(ctx: &Ctx<'_>, agent: &Agent) -> Standing {
    agent.state(seen_at(ctx, agent), ctx.now)
}

/// Seen within ten minutes, or a process of it runs.
pub(super) fn alive(ctx: &Ctx<'_>, agent: &Agent) -> bool {
    is_alive(seen_at(ctx, agent), ctx.now) || ctx.store.presence().has_process(&agent.name)
}
