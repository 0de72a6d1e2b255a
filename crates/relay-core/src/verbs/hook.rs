//! `hook`: what a coding agent's harness tells of its session, and what the agent should know at that moment.
//!
//! A hook is no eleventh thing that an agent can do. It says who is there, and asks the other verbs on the agent's behalf:
//! what it edits is reserved, what it held is released when it ends, and its mail comes to it.

mod identity;
mod leaving;
mod news;
mod work;

use serde::{Deserialize, Serialize};

use self::identity::Present;
pub use self::news::Shown;
use super::writing::{Told, random_key, signals_for};
use super::{Actor, Ctx, Done, Outcome as Any, actor, start};
use crate::domain::agent::{Agent, Standing};
use crate::domain::event::Number;
use crate::store::{Harness, Result};
use crate::wire::v1::{ClaimShape, ConflictShape, ContestedShape, GrantedShape, MessageShape};

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
    /// Before: the checkout that a command is about to move, as a resource.
    pub checkout: Option<String>,
    /// Before such a command: what it could take along of everything that is not committed there.
    pub dirty: Vec<String>,
    /// That could not be seen in time.
    pub blind: bool,
    /// A call that meets others will not run.
    pub denies: bool,
    /// After: what this call changed, and what earlier ones changed that is not committed yet.
    pub changed: Vec<String>,
    /// After: what changed meanwhile, and may be somebody else's doing.
    pub stray: Vec<String>,
    /// Claims that hooks made for the agent.
    pub made: Vec<Number>,
    /// Those of them that are not needed any more.
    pub done_with: Vec<Number>,
    /// The agent would read what it is told now.
    pub listens: bool,
    /// The agent was not told yet who it is.
    pub introduces: bool,
    /// Nobody is there: it is looked whether there is something to wake the agent for.
    pub glances: bool,
    /// What an earlier answer said has reached the agent.
    pub shown: Option<Shown>,
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
    /// What is changed and nobody has claimed.
    pub outside: Vec<String>,
    /// To one that begins: who else is alive.
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
    /// What becomes true once the agent has read this; to be said then.
    pub shown: Option<Shown>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    if let Some(shown) = &input.shown {
        shown.commit(ctx)?;
        return Ok(done(Outcome::default()));
    }
    let Some(mut present) = identity::present(ctx, input)? else {
        return Ok(done(Outcome::default()));
    };
    show(ctx, input, &present);
    let mut outcome = Outcome {
        new: present.new,
        thread: present.session.thread.as_ref().map(ToString::to_string),
        ..Outcome::default()
    };
    match input.moment {
        Moment::Before => work::before(ctx, input, &present, &mut outcome)?,
        Moment::After => work::after(ctx, input, &mut present, &mut outcome)?,
        Moment::TurnEnd => work::turn_end(ctx, input, &mut present, &mut outcome)?,
        Moment::SubagentEnd => leaving::subagent(ctx, &present, &mut outcome)?,
        Moment::End => leaving::session(ctx, &present, &mut outcome)?,
        Moment::Start | Moment::Prompt => {}
    }
    outcome.agent = Some(present.acts().name.to_string());
    if input.moment == Moment::Start || input.introduces {
        outcome.others = others(ctx, &present)?;
    }
    tell(ctx, input, &present, outcome)
}

/// Whoever has a hook is there: the session's agent, and the subagent that it is about.
fn show(ctx: &Ctx<'_>, input: &Input, present: &Present) {
    let presence = ctx.store.presence();
    for agent in [Some(&present.session), present.subagent.as_ref()].into_iter().flatten().filter(|_| !input.glances) {
        if let Some(harness) = &input.harness {
            presence.note(&agent.name, harness);
        }
        presence.touch(&agent.name, ctx.now);
    }
}

fn done(outcome: Outcome) -> Done {
    Done::new("hook", Told { outcome, signals: Vec::new(), next: Vec::new() }, Any::Hook)
}

fn others(ctx: &Ctx<'_>, present: &Present) -> Result<Vec<String>> {
    let is_other = |agent: &Agent| {
        let is_there = actor::state(ctx, agent) == Standing::Active && actor::alive(ctx, agent);
        is_there && !agent.shares_claims_with(&present.session)
    };
    let agents = ctx.store.read()?.agents()?;
    Ok(agents.iter().filter(|agent| is_other(agent)).map(|agent| agent.name.to_string()).take(OTHERS).collect())
}

/// What the agent should know now. A subagent is told of its edits alone: the mail is its parent's.
fn tell(ctx: &Ctx<'_>, input: &Input, present: &Present, mut outcome: Outcome) -> Result<Done> {
    if !input.listens || present.is_subagent() {
        return Ok(done(outcome));
    }
    let facts = ctx.store.read()?;
    let news = news::news(ctx, &*facts, &present.session)?;
    (outcome.mail, outcome.more_mail, outcome.contested) = (news.mail, news.more, news.contested);
    outcome.shown = Some(news.shown).filter(|shown| !shown.is_empty());
    let actor = Actor::Agent(Box::new(present.session.clone()));
    let mut done = done(outcome);
    done.signals = signals_for(ctx, &*facts, &actor)?;
    done.signals.extend(start::owed(ctx, &*facts, &actor)?);
    Ok(done)
}

/// A verb that the hook asks for this agent. Its key is its own: one hook may ask several.
fn own_step<'a>(ctx: &'a Ctx<'_>, agent: &Agent) -> Ctx<'a> {
    let mut step = ctx.step(&random_key(ctx.random.bytes()));
    step.caller.named = Some(agent.name.clone());
    step
}
