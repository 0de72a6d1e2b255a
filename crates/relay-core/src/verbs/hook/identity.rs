//! Whose hook this is. A session has one agent for as long as it lasts; a subagent is its child, and comes forward only when it
//! changes something.

use super::{Input, Moment, Subagent, own_step};
use crate::domain::agent::{Agent, Standing};
use crate::domain::limits::SESSION_BYTES;
use crate::domain::name::AgentName;
use crate::error::Code;
use crate::store::Result;
use crate::verbs::writing::random_key;
use crate::verbs::{Ctx, actor, start};

/// So many subagents of one kind have a name of their own before one is asked for in vain.
const NAMESAKES: u32 = 1_000;
/// The longest part of a subagent's name that says what kind it is.
const KIND_CHARS: usize = 20;

/// Who is there.
#[derive(Clone)]
pub struct Present {
    /// The session's agent.
    pub session: Agent,
    /// The subagent whose hook it is, where it has come forward.
    pub subagent: Option<Agent>,
    pub new: bool,
    /// It is a subagent's hook.
    of_subagent: bool,
}

impl Present {
    /// Who acts.
    pub fn acts(&self) -> &Agent {
        self.subagent.as_ref().unwrap_or(&self.session)
    }

    pub fn is_subagent(&self) -> bool {
        self.of_subagent
    }
}

/// Finds the agent behind a hook, or registers it. What ends makes nobody known.
pub fn present(ctx: &Ctx<'_>, input: &Input) -> Result<Option<Present>> {
    let ends = matches!(input.moment, Moment::TurnEnd | Moment::SubagentEnd | Moment::End);
    let facts = ctx.store.read()?;
    let known = match actor::meant(ctx, &*facts)? {
        Some(name) => facts.agent(&name)?.filter(|agent| actor::state(ctx, agent) != Standing::Retired),
        None => None,
    };
    let (session, new) = match known {
        Some(agent) => {
            // Whoever was suspended, or is another's by now, is told so by this.
            actor::acting(ctx, &*facts)?;
            (agent, false)
        }
        None if ends => return Ok(None),
        None => {
            drop(facts);
            begin(ctx, input)?
        }
    };
    let of_subagent = input.subagent.is_some();
    let facts = ctx.store.read()?;
    let subagent = match session_of_subagent(ctx, input) {
        Some(name) => facts.agent_of_session(&name)?.filter(|agent| actor::state(ctx, agent) == Standing::Active),
        None => None,
    };
    Ok(Some(Present { session, subagent, new, of_subagent }))
}

/// Registers the session's agent, or revives it.
fn begin(ctx: &Ctx<'_>, input: &Input) -> Result<(Agent, bool)> {
    let step = ctx.step(&random_key(ctx.random.bytes()));
    let (program, model) = (input.program.clone(), input.model.clone());
    started(&step, &start::Input { program, model, ..start::Input::default() })
}

fn started(ctx: &Ctx<'_>, wish: &start::Input) -> Result<(Agent, bool)> {
    let crate::verbs::Outcome::Start(outcome) = start::run(ctx, wish)?.outcome else {
        return Err(Code::Internal.refuse("a start was answered with something else"));
    };
    let name = AgentName::parse(&outcome.agent.name)?;
    let agent = ctx.store.read()?.agent(&name)?;
    agent.map(|agent| (agent, outcome.new)).ok_or_else(|| Code::Internal.refuse("the started agent is not there"))
}

/// Under which session a subagent is known: its harness names it within its parent's.
fn session_of_subagent(ctx: &Ctx<'_>, input: &Input) -> Option<String> {
    let (session, subagent) = (ctx.caller.session.as_ref()?, input.subagent.as_ref()?);
    let name = format!("{session}/{}", subagent.id);
    (name.len() <= SESSION_BYTES).then_some(name)
}

/// Registers the subagent whose hook it is, if it has no name yet: whoever holds claims has one.
pub fn come_forward(ctx: &Ctx<'_>, input: &Input, present: &mut Present) -> Result<()> {
    let (None, Some(subagent), Some(session)) = (&present.subagent, &input.subagent, session_of_subagent(ctx, input))
    else {
        return Ok(());
    };
    for namesake in 1..NAMESAKES {
        let Some(name) = name_of(&present.session.name, subagent, namesake) else { return Ok(()) };
        if ctx.store.read()?.agent(&name)?.is_some() {
            continue;
        }
        let mut step = own_step(ctx, &present.session);
        step.caller.named = Some(name);
        step.caller.session = None;
        let wish = start::Input {
            program: input.program.clone(),
            session: Some(session.clone()),
            parent: Some(present.session.name.clone()),
            ..start::Input::default()
        };
        match started(&step, &wish) {
            // Another one of its kind was quicker.
            Err(refusal) if refusal.code == Code::AgentNameTaken => {}
            started => {
                present.subagent = Some(started?.0);
                return Ok(());
            }
        }
    }
    Ok(())
}

/// A subagent's name says whose it is and of which kind.
fn name_of(parent: &AgentName, subagent: &Subagent, namesake: u32) -> Option<AgentName> {
    let kind = subagent.kind.as_deref().unwrap_or("sub");
    let kind: String =
        kind.chars().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-').take(KIND_CHARS).collect();
    let kind = if kind.is_empty() { "sub".to_owned() } else { kind };
    let number = if namesake > 1 { format!("-{namesake}") } else { String::new() };
    AgentName::parse(&format!("{parent}-{kind}{number}")).ok()
}
