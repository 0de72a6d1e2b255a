//! `hook`: what a coding agent's harness tells of its session, and what the agent should know at that moment.
//!
//! A hook is no eleventh thing that an agent can do. It says who is there, and asks the other verbs on the agent's behalf:
//! what it edits is reserved, what it held is released when it ends, and its mail comes to it.

mod identity;
mod news;

use serde::{Deserialize, Serialize};

use self::identity::Present;
use super::writing::{Told, random_key, signals_for, write};
use super::{Ctx, Done, Outcome as Any, actor, clash, release, reserve, standing, start};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::Number;
use crate::domain::limits::{HOOK_TTL, TTL_MIN};
use crate::domain::name::Party;
use crate::domain::pattern::Pattern;
use crate::domain::time::Span;
use crate::error::Code;
use crate::store::{Facts, Harness, Result};
use crate::wire::v1::{ClaimShape, ConflictShape, ContestedShape, GrantedShape, MessageShape};

/// How many claims, and how many owed acks, a reminder spells out.
const REMINDED: usize = 5;

/// How many other agents are named to one that starts.
const OTHERS: usize = 10;

/// What a harness tells of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// A session begins, or goes on.
    Start,
    /// The user has said something.
    #[default]
    Prompt,
    /// A tool is about to run.
    Before,
    /// A tool has run.
    After,
    /// The agent has said its last word of a turn.
    TurnEnd,
    SubagentEnd,
    End,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub moment: Moment,
    pub program: Option<String>,
    pub model: Option<String>,
    pub subagent: Option<Subagent>,
    /// Where the session runs.
    pub harness: Option<Harness>,
    /// Before: the files that are about to be edited.
    pub edits: Vec<String>,
    /// Before and after: the checkout that a command is about to move, as a resource.
    pub checkout: Option<String>,
    /// Before such a command: everything that is not committed there.
    pub dirty: Vec<String>,
    /// A call that meets others will not run.
    pub denies: bool,
    /// After: what this call changed.
    pub changed: Vec<String>,
    /// After: what changed meanwhile, and may be somebody else's doing.
    pub stray: Vec<String>,
    /// At the end of a turn: claims that hooks made, on files in which nothing is changed any more.
    pub done_with: Vec<Number>,
    /// The agent would read what it is told now.
    pub listens: bool,
}

/// A subagent, as its harness calls it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subagent {
    pub id: String,
    #[serde(default)]
    pub kind: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Who this is; nobody where a session that was never heard of ends.
    pub agent: Option<String>,
    /// Registered just now.
    pub new: bool,
    pub thread: Option<String>,
    /// The live claims of others who are alive, on what is about to be edited.
    pub met: Vec<ConflictShape>,
    /// The live claims of others who are alive, on what is not committed in the checkout that is about to move.
    pub endangered: Vec<ConflictShape>,
    /// What was claimed just now, and whom that meets.
    pub claimed: Vec<GrantedShape>,
    pub conflicts: Vec<ConflictShape>,
    /// Of what changed meanwhile, what nobody has claimed.
    pub outside: Vec<String>,
    /// At the start: who else is alive.
    pub others: Vec<String>,
    /// Mail that the agent was never shown, with short bodies.
    pub mail: Vec<MessageShape>,
    /// There is more of it.
    pub more_mail: bool,
    pub contested: Vec<ContestedShape>,
    /// At the end of a turn: what is still owed, and still held.
    pub owed: Vec<MessageShape>,
    pub held: Vec<ClaimShape>,
    pub held_total: usize,
    /// Claims that were given back.
    pub released: Vec<Number>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let Some(present) = identity::present(ctx, input)? else {
        return Ok(done(Outcome::default()));
    };
    show(ctx, input, &present);
    let mut outcome = Outcome {
        agent: Some(present.acts().name.to_string()),
        new: present.new,
        thread: present.session.thread.as_ref().map(ToString::to_string),
        ..Outcome::default()
    };
    match input.moment {
        Moment::Before => before(ctx, input, &present, &mut outcome)?,
        Moment::After => after(ctx, input, present.clone(), &mut outcome)?,
        Moment::TurnEnd => turn_end(ctx, input, present.clone(), &mut outcome)?,
        Moment::SubagentEnd => subagent_end(ctx, &present, &mut outcome)?,
        Moment::End => end(ctx, &present, &mut outcome)?,
        Moment::Start => outcome.others = others(ctx, &present)?,
        Moment::Prompt => {}
    }
    tell(ctx, input, &present, outcome)
}

/// Whoever has a hook is there: the session's agent, and the subagent that it is about.
fn show(ctx: &Ctx<'_>, input: &Input, present: &Present) {
    let presence = ctx.store.presence();
    for agent in [Some(&present.session), present.subagent.as_ref()].into_iter().flatten() {
        if let Some(harness) = &input.harness {
            presence.note(&agent.name, harness);
        }
        presence.touch(&agent.name, ctx.now);
    }
}

fn done(outcome: Outcome) -> Done {
    Done::new("hook", Told { outcome, signals: Vec::new(), next: Vec::new() }, Any::Hook)
}

/// What the agent should know now. A subagent is told of its edits alone: the mail is its parent's.
fn tell(ctx: &Ctx<'_>, input: &Input, present: &Present, mut outcome: Outcome) -> Result<Done> {
    if !input.listens || present.is_subagent() {
        return Ok(done(outcome));
    }
    let facts = ctx.store.read()?;
    let news = news::news(ctx, &*facts, &present.session)?;
    (outcome.mail, outcome.more_mail, outcome.contested) = (news.mail, news.more, news.contested);
    let actor = super::Actor::Agent(Box::new(present.session.clone()));
    let mut done = done(outcome);
    done.signals = signals_for(ctx, &*facts, &actor)?;
    done.signals.extend(start::owed(ctx, &*facts, &actor)?);
    done.afterwards = Some(news.afterwards).filter(|afterwards| !afterwards.is_empty());
    Ok(done)
}

fn others(ctx: &Ctx<'_>, present: &Present) -> Result<Vec<String>> {
    let is_other = |agent: &Agent| {
        let is_there = actor::state(ctx, agent) == Standing::Active && actor::alive(ctx, agent);
        is_there && !agent.shares_claims_with(&present.session)
    };
    let agents = ctx.store.read()?.agents()?;
    Ok(agents.iter().filter(|agent| is_other(agent)).map(|agent| agent.name.to_string()).take(OTHERS).collect())
}

fn before(ctx: &Ctx<'_>, input: &Input, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let met = |paths: &[String]| -> Result<Vec<ConflictShape>> {
        let mut met = clash::on_paths(ctx, &*facts, Some(present.acts()), paths)?;
        // Who is not there any more is in nobody's way.
        met.retain(|conflict| !conflict.silent);
        Ok(met)
    };
    if !input.edits.is_empty() {
        outcome.met = met(&input.edits)?;
    }
    if let Some(checkout) = &input.checkout {
        outcome.endangered = met(&input.dirty)?;
        drop(facts);
        take_checkout(ctx, input, checkout, present, outcome)?;
    }
    Ok(())
}

/// Takes the checkout for the time of a command where others have something to lose by it, or have taken it themselves.
fn take_checkout(ctx: &Ctx<'_>, input: &Input, checkout: &str, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let mut taken = facts.claims_near(&[checkout])?;
    taken.retain(|claim| {
        claim.pattern == checkout && claim.is_live(ctx.now) && !claim.holder.same_as(&present.acts().name)
    });
    let taken: Vec<ConflictShape> =
        taken.iter().map(|claim| clash::found(ctx, &*facts, claim, checkout, checkout)).collect::<Result<_>>()?;
    drop(facts);
    outcome.conflicts = taken.into_iter().filter(|claim| !claim.silent).collect();
    let meets_nobody = outcome.endangered.is_empty() && outcome.conflicts.is_empty();
    if !meets_nobody && !input.denies {
        outcome.claimed.extend(claim(ctx, present.acts(), vec![checkout.to_owned()], TTL_MIN)?.granted);
    }
    Ok(())
}

/// Claims what the call changed, and gives the checkout back.
fn after(ctx: &Ctx<'_>, input: &Input, mut present: Present, outcome: &mut Outcome) -> Result<()> {
    outcome.outside = outside(ctx, &*ctx.store.read()?, &input.stray)?;
    claim_changed(ctx, input, &mut present, outcome)?;
    if let Some(checkout) = &input.checkout {
        let patterns = vec![checkout.clone()];
        give_back(ctx, present.acts(), &release::Input { patterns, ..release::Input::default() }, outcome)?;
    }
    Ok(())
}

/// Claims what was changed, as narrowly as can be. Whatever the agent holds already is renewed when its time comes.
fn claim_changed(ctx: &Ctx<'_>, input: &Input, present: &mut Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let patterns = unclaimed(ctx, &*facts, present.acts(), &input.changed)?;
    let is_due = !facts.claims_to_renew(&present.acts().name, ctx.now)?.is_empty();
    drop(facts);
    if !patterns.is_empty() {
        identity::come_forward(ctx, input, present)?;
        outcome.agent = Some(present.acts().name.to_string());
        let claimed = claim(ctx, present.acts(), patterns, HOOK_TTL)?;
        outcome.claimed = claimed.granted;
        outcome.conflicts = claimed.conflicts.into_iter().filter(|conflict| !conflict.silent).collect();
    } else if is_due {
        // Any writing verb renews what its actor holds.
        write(&own_step(ctx, present.acts()), "hook", &"renew", |_| Ok(()))?;
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
    let held: Vec<_> =
        held.iter().filter_map(|claim| Some(Pattern::from_canonical(&claim.pattern).ok()?.compile(case))).collect();
    let wanted = paths.iter().filter_map(|path| Pattern::to_claim(path, &roots));
    Ok(wanted
        .filter(|pattern| {
            let compiled = pattern.compile(case);
            !held.iter().any(|held| held.covers(&compiled))
        })
        .map(|pattern| pattern.as_str().to_owned())
        .collect())
}

/// The paths that nobody has claimed.
fn outside(ctx: &Ctx<'_>, facts: &dyn Facts, paths: &[String]) -> Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let claimed = clash::on_paths(ctx, facts, None, paths)?;
    let is_claimed = |path: &String| claimed.iter().any(|claim| claim.example == *path);
    Ok(paths.iter().filter(|path| !is_claimed(path)).cloned().collect())
}

fn claim(ctx: &Ctx<'_>, agent: &Agent, patterns: Vec<String>, ttl: Span) -> Result<reserve::Outcome> {
    let input = reserve::Input { patterns, ttl: Some(ttl), reason: agent.thread.clone(), ..reserve::Input::default() };
    match super::run(&own_step(ctx, agent), &super::Request::Reserve(input))?.outcome {
        Any::Reserve(outcome) => Ok(outcome),
        _ => Err(Code::Internal.refuse("a claim was answered with something else")),
    }
}

fn give_back(ctx: &Ctx<'_>, agent: &Agent, input: &release::Input, outcome: &mut Outcome) -> Result<()> {
    let released = release::run(&own_step(ctx, agent), input);
    match released.map(|done| done.outcome) {
        Ok(Any::Release(given)) => outcome.released.extend(given.released.iter().map(|released| released.id)),
        // It was given back or taken meanwhile.
        Err(refusal) if refusal.code == Code::ReservationNotHeld => {}
        Err(refusal) => return Err(refusal),
        Ok(_) => {}
    }
    Ok(())
}

fn turn_end(ctx: &Ctx<'_>, input: &Input, mut present: Present, outcome: &mut Outcome) -> Result<()> {
    claim_changed(ctx, input, &mut present, outcome)?;
    for id in &input.done_with {
        give_back(ctx, present.acts(), &release::Input { id: vec![*id], ..release::Input::default() }, outcome)?;
    }
    let facts = ctx.store.read()?;
    let agent = present.acts();
    let held: Vec<_> = facts.claims_of(&agent.name)?.into_iter().filter(|claim| claim.is_live(ctx.now)).collect();
    outcome.held_total = held.len();
    outcome.held = held.iter().take(REMINDED).map(ClaimShape::from).collect();
    outcome.owed = news::owed(&*facts, &Party::Agent(agent.name.clone()), REMINDED)?;
    Ok(())
}

/// A subagent that came forward goes with its claims.
fn subagent_end(ctx: &Ctx<'_>, present: &Present, outcome: &mut Outcome) -> Result<()> {
    match &present.subagent {
        Some(child) => retire(ctx, child, outcome),
        None => Ok(()),
    }
}

fn retire(ctx: &Ctx<'_>, agent: &Agent, outcome: &mut Outcome) -> Result<()> {
    let input = standing::Input { action: standing::Action::Retire, name: None };
    if let Any::Standing(gone) = standing::run(&own_step(ctx, agent), &input)?.outcome {
        outcome.released.extend(gone.released);
    }
    Ok(())
}

/// The session is over: what it held is free. The agent stays, so that the session can go on another day.
fn end(ctx: &Ctx<'_>, present: &Present, outcome: &mut Outcome) -> Result<()> {
    let facts = ctx.store.read()?;
    let is_child = |agent: &Agent| {
        agent.standing == Standing::Active
            && agent.parent.as_ref().is_some_and(|parent| parent.same_as(&present.session.name))
    };
    let children: Vec<Agent> = facts.agents()?.into_iter().filter(is_child).collect();
    let holds = !facts.claims_of(&present.session.name)?.is_empty();
    drop(facts);
    for child in &children {
        retire(ctx, child, outcome)?;
    }
    if holds {
        let all = release::Input { all: true, ..release::Input::default() };
        give_back(ctx, &present.session, &all, outcome)?;
    }
    ctx.store.presence().forget(&present.session.name);
    Ok(())
}

/// A verb that the hook asks for this agent. Its key is its own: one hook may ask several.
fn own_step<'a>(ctx: &'a Ctx<'_>, agent: &Agent) -> Ctx<'a> {
    let mut step = ctx.step(&random_key(ctx.random.bytes()));
    step.caller.named = Some(agent.name.clone());
    step
}
