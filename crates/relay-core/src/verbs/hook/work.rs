//! What an agent does to files: what it meets, and what is claimed for it.

use super::identity::{self, Present};
use super::{Input, Outcome, news, own_step};
use crate::domain::agent::Agent;
use crate::domain::limits::{HOOK_TTL, TTL_MIN};
use crate::domain::name::Party;
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::domain::time::Span;
use crate::error::Code;
use crate::store::{Facts, Result};
use crate::verbs::writing::write;
use crate::verbs::{Ctx, Outcome as Any, Request, clash, release, reserve, run};
use crate::wire::v1::{ClaimShape, ConflictShape};

/// How many claims, and how many owed acks, a reminder spells out.
const REMINDED: usize = 5;
/// One call that changes more files than this has not edited them one by one: the agent says itself what it claims.
const CLAIMED: usize = 200;

pub fn before(ctx: &Ctx<'_>, input: &Input, present: &Present, outcome: &mut Outcome) -> Result<()> {
    if !input.edits.is_empty() {
        outcome.met = met(ctx, &*ctx.store.read()?, present, &input.edits)?;
    }
    match &input.checkout {
        Some(checkout) => take_checkout(ctx, input, checkout, present, outcome),
        None => Ok(()),
    }
}

/// The live claims of others on these paths. Who is not there any more is in nobody's way.
fn met(ctx: &Ctx<'_>, facts: &dyn Facts, present: &Present, paths: &[String]) -> Result<Vec<ConflictShape>> {
    let mut met = clash::on_paths(ctx, facts, Some(present.acts()), paths)?;
    met.retain(|conflict| !conflict.silent);
    Ok(met)
}

/// Takes the checkout for the time of a command where others have something to lose by it, or have taken it themselves.
fn take_checkout(ctx: &Ctx<'_>, input: &Input, checkout: &str, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    outcome.endangered =
        if input.blind { held_by_others(ctx, &*facts, present)? } else { met(ctx, &*facts, present, &input.dirty)? };
    let mut taken = facts.claims_near(&[checkout])?;
    taken.retain(|claim| claim.pattern == checkout && claim.is_live(ctx.now));
    let (own, others): (Vec<_>, Vec<_>) =
        taken.into_iter().partition(|claim| claim.holder.same_as(&present.acts().name));
    for claim in &others {
        outcome.conflicts.push(clash::found(ctx, &*facts, claim, checkout, checkout)?);
    }
    outcome.conflicts.retain(|conflict| !conflict.silent);
    drop(facts);
    let meets_nobody = outcome.endangered.is_empty() && outcome.conflicts.is_empty();
    // Whoever has taken it for longer keeps it as it is.
    if !meets_nobody && own.is_empty() && !input.denies {
        outcome.claimed = claim(ctx, present.acts(), vec![checkout.to_owned()], TTL_MIN)?.granted;
    }
    Ok(())
}

/// Where nobody could look in time, everything that others hold may lie open.
fn held_by_others(ctx: &Ctx<'_>, facts: &dyn Facts, present: &Present) -> Result<Vec<ConflictShape>> {
    let mut held = Vec::new();
    for claim in facts.claims()?.iter().filter(|claim| claim.is_live(ctx.now) && !claim.pattern.starts_with("res:")) {
        let shares = facts.agent(&claim.holder)?.is_some_and(|holder| present.acts().shares_claims_with(&holder));
        if !shares {
            held.push(clash::found(ctx, facts, claim, &claim.pattern, &claim.pattern)?);
        }
    }
    held.retain(|conflict| !conflict.silent);
    Ok(held)
}

/// Claims what the call changed, and gives back what was taken for its time.
pub fn after(ctx: &Ctx<'_>, input: &Input, present: &mut Present, outcome: &mut Outcome) -> Result<()> {
    outcome.outside = outside(ctx, &*ctx.store.read()?, &input.stray)?;
    give_back(ctx, present.acts(), &input.done_with, outcome)?;
    claim_changed(ctx, input, present, outcome)
}

pub fn turn_end(ctx: &Ctx<'_>, input: &Input, present: &mut Present, outcome: &mut Outcome) -> Result<()> {
    give_back(ctx, present.acts(), &input.done_with, outcome)?;
    claim_changed(ctx, input, present, outcome)?;
    let facts = ctx.store.read()?;
    let agent = present.acts();
    let made: Vec<_> = outcome.claimed.iter().map(|claim| claim.id).chain(input.made.iter().copied()).collect();
    let is_asked_for = |claim: &Reservation| claim.is_live(ctx.now) && !(made.contains(&claim.id) && is_made(claim));
    let held: Vec<_> = facts.claims_of(&agent.name)?.into_iter().filter(is_asked_for).collect();
    outcome.held_total = held.len();
    outcome.held = held.iter().take(REMINDED).map(ClaimShape::from).collect();
    outcome.owed = news::owed(&*facts, &Party::Agent(agent.name.clone()), REMINDED)?;
    Ok(())
}

/// Whether a claim is as hooks make them. One that the agent has asked for since is its own.
fn is_made(claim: &Reservation) -> bool {
    claim.ttl == HOOK_TTL || claim.ttl == TTL_MIN
}

/// Claims what was changed, as narrowly as can be. What the agent and its parent hold already is renewed when its time comes.
fn claim_changed(ctx: &Ctx<'_>, input: &Input, present: &mut Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let mut patterns = unclaimed(ctx, &*facts, present.acts(), &input.changed)?;
    if patterns.len() > CLAIMED {
        outcome.outside.extend(patterns.split_off(CLAIMED));
    }
    let mut due = Vec::new();
    for agent in [Some(&present.session), present.subagent.as_ref()].into_iter().flatten() {
        if !facts.claims_to_renew(&agent.name, ctx.now)?.is_empty() {
            due.push(agent.clone());
        }
    }
    drop(facts);
    if !patterns.is_empty() {
        identity::come_forward(ctx, input, present)?;
        let claimed = claim(ctx, present.acts(), patterns, HOOK_TTL)?;
        outcome.claimed = claimed.granted;
        outcome.conflicts = claimed.conflicts.into_iter().filter(|conflict| !conflict.silent).collect();
        // Any writing verb renews what its actor holds.
        due.retain(|agent| !agent.name.same_as(&present.acts().name));
    }
    for agent in &due {
        write(&own_step(ctx, agent), "hook", &"renew", |_| Ok(()))?;
    }
    Ok(())
}

/// The paths, as patterns, that no live claim of the agent's or its parent's covers.
fn unclaimed(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent, paths: &[String]) -> Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let (roots, case) = (ctx.repository.roots(), ctx.repository.case());
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let mut held = facts.claims_of(&agent.name)?;
    if let Some(parent) = &agent.parent {
        held.extend(facts.claims_of(parent)?);
    }
    held.retain(|claim| claim.is_live(ctx.now));
    let compiled = |claim: &Reservation| Some(Pattern::from_canonical(&claim.pattern).ok()?.compile(case));
    let held: Vec<_> = held.iter().filter_map(compiled).collect();
    let mut wanted: Vec<String> = Vec::new();
    for pattern in paths.iter().filter_map(|path| Pattern::to_claim(path, &roots)) {
        let compiled = pattern.compile(case);
        if !held.iter().any(|held| held.covers(&compiled)) && !wanted.iter().any(|known| known == pattern.as_str()) {
            wanted.push(pattern.as_str().to_owned());
        }
    }
    Ok(wanted)
}

/// The paths that nobody has claimed.
fn outside(ctx: &Ctx<'_>, facts: &dyn Facts, paths: &[String]) -> Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let claimed = clash::on_paths(ctx, facts, None, paths)?;
    let is_claimed = |path: &String| claimed.iter().any(|claim| claim.example == *path);
    let outside = paths.iter().filter(|path| !is_claimed(path));
    Ok(outside.filter_map(|path| Pattern::to_claim(path, &[])).map(|pattern| pattern.as_str().to_owned()).collect())
}

pub fn claim(ctx: &Ctx<'_>, agent: &Agent, patterns: Vec<String>, ttl: Span) -> Result<reserve::Outcome> {
    let input = reserve::Input { patterns, ttl: Some(ttl), reason: agent.thread.clone(), ..reserve::Input::default() };
    match run(&own_step(ctx, agent), &Request::Reserve(input))?.outcome {
        Any::Reserve(outcome) => Ok(outcome),
        _ => Err(Code::Internal.refuse("a claim was answered with something else")),
    }
}

/// Gives back those of these claims that are still as a hook made them.
fn give_back(ctx: &Ctx<'_>, agent: &Agent, ids: &[u64], outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let mut id = Vec::new();
    for wanted in ids {
        let claim = facts.claim(*wanted)?.filter(|claim| claim.is_live(ctx.now) && claim.holder.same_as(&agent.name));
        id.extend(claim.filter(is_made).map(|claim| claim.id));
    }
    drop(facts);
    if id.is_empty() {
        return Ok(());
    }
    match release::run(&own_step(ctx, agent), &release::Input { id, ..release::Input::default() }) {
        Ok(done) => {
            if let Any::Release(given) = done.outcome {
                outcome.released.extend(given.released.iter().map(|released| released.id));
            }
            Ok(())
        }
        // One of them was given back or taken meanwhile.
        Err(refusal) if refusal.code == Code::ReservationNotHeld => Ok(()),
        Err(refusal) => Err(refusal),
    }
}
