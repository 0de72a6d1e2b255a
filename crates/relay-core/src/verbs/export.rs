//! `export`: a thread or the whole project to take away, as far as the caller may see it.
//!
//! It is one moment of the store, read step by step and handed out piece by piece: the history may be longer than memory.

mod markdown;

use serde::Serialize;

use super::look::Looking;
use super::look::events::{STEP, hide, shape};
use super::look::filter::{EventFilter, Sieve, followed};
use super::{Actor, Ctx, actor};
use crate::domain::event::Number;
use crate::domain::name::ThreadId;
use crate::store::Result;
use crate::verbs::writing::internal;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// A document for people.
    Markdown,
    /// One event per line.
    Jsonl,
}

#[derive(Debug, Clone)]
pub struct Input {
    /// The whole project where there is none.
    pub thread: Option<ThreadId>,
    pub format: Format,
}

/// What was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    pub format: Format,
    /// The newest event at that moment.
    pub number: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// Where the pieces go. What cannot be written ends the export.
pub type Sink<'a> = dyn FnMut(&str) -> Result<()> + 'a;
/// How far it is: so many of so many.
pub type Progress<'a> = dyn FnMut(Number, Number) + 'a;

pub fn run(ctx: &Ctx<'_>, input: &Input, sink: &mut Sink<'_>, progress: &mut Progress<'_>) -> Result<Exported> {
    let facts = ctx.store.read()?;
    let (viewer, actor) = actor::viewer(ctx, &*facts)?;
    let looking = Looking { ctx, facts: &*facts, viewer, limit: 0 };
    if let Some(thread) = &input.thread {
        // Asked first: a thread that is not there leaves no file behind.
        if looking.thread_view(thread, 0)?.is_none() {
            return Err(looking.thread_not_found(thread)?);
        }
    }
    let exported = match input.format {
        Format::Markdown => markdown::write(&looking, input.thread.as_ref(), sink, progress),
        Format::Jsonl => lines(&looking, input.thread.as_ref(), sink, progress),
    }?;
    if let Some(agent) = actor.as_ref().and_then(Actor::agent) {
        ctx.store.presence().touch(&agent.name, ctx.now);
    }
    Ok(exported)
}

/// Every event as `look events` shows it, with its body where it has one.
fn lines(
    looking: &Looking<'_>,
    thread: Option<&ThreadId>,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<Exported> {
    let filter = EventFilter { thread: thread.map(ToString::to_string), ..EventFilter::default() };
    let (sieve, moves) = (Sieve::new(looking, &filter)?, looking.facts.moves()?);
    let number = looking.facts.tip()?.number;
    let mut events = 0;
    each_step(number, progress, |after, up_to| {
        for event in looking.facts.events(&sieve.query(after, up_to, moves.is_empty()))? {
            let event = followed(event, &moves);
            let Some(what) = hide(looking, &event)? else { continue };
            if sieve.takes(&what)? {
                let line = serde_json::to_string(&shape(looking.facts, &event, &what, true)?).map_err(internal)?;
                sink(&format!("{line}\n"))?;
                events += 1;
            }
        }
        Ok(())
    })?;
    Ok(Exported { format: Format::Jsonl, number, events: Some(events), threads: None, messages: None })
}

/// Goes through the history in stretches.
fn each_step(
    tip: Number,
    progress: &mut Progress<'_>,
    mut step: impl FnMut(Number, Number) -> Result<()>,
) -> Result<()> {
    let mut after = 0;
    while after < tip {
        let up_to = tip.min(after + STEP);
        step(after, up_to)?;
        after = up_to;
        progress(after, tip);
    }
    Ok(())
}
