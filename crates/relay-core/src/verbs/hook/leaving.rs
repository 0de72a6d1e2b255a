//! The end of a session, or of one of its subagents.

use super::identity::Present;
use super::{Outcome, own_step, work};
use crate::domain::agent::{Agent, Standing};
use crate::domain::limits::HOOK_TTL;
use crate::store::Result;
use crate::verbs::{Ctx, Outcome as Any, release, standing};

/// A subagent that came forward goes, and what it changed and nobody has committed is its parent's from then on.
pub fn subagent(ctx: &Ctx<'_>, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let Some(child) = &present.subagent else { return Ok(()) };
    let held = ctx.store.read()?.claims_of(&child.name)?;
    let live = held.into_iter().filter(|claim| claim.is_live(ctx.now) && !claim.pattern.starts_with("res:"));
    let patterns: Vec<String> = live.map(|claim| claim.pattern).collect();
    if !patterns.is_empty() {
        outcome.claimed = work::claim(ctx, &present.session, patterns, HOOK_TTL)?.granted;
    }
    retire(ctx, child, outcome)
}

/// The session is over: what it held is free. The agent stays, so that the session can go on another day.
pub fn session(ctx: &Ctx<'_>, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let is_child = |agent: &Agent| {
        agent.standing == Standing::Active
            && agent.parent.as_ref().is_some_and(|parent| parent.same_as(&present.session.name))
    };
    let children: Vec<Agent> = facts.agents()?.into_iter().filter(is_child).collect();
    let holds = facts.claims_of(&present.session.name)?.iter().any(|claim| claim.is_live(ctx.now));
    drop(facts);
    for child in &children {
        retire(ctx, child, outcome)?;
    }
    if holds {
        let all = release::Input { all: true, ..release::Input::default() };
        if let Any::Release(given) = release::run(&own_step(ctx, &present.session), &all)?.outcome {
            outcome.released.extend(given.released.iter().map(|released| released.id));
        }
    }
    ctx.store.presence().forget(&present.session.name);
    Ok(())
}

fn retire(ctx: &Ctx<'_>, agent: &Agent, outcome: &mut Outcome) -> Result<()> {
    let input = standing::Input { action: standing::Action::Retire, name: None };
    if let Any::Standing(gone) = standing::run(&own_step(ctx, agent), &input)?.outcome {
        outcome.released.extend(gone.released);
    }
    ctx.store.presence().forget(&agent.name);
    Ok(())
}
