//! `export`: a thread or the whole project to take away, as far as the caller may see it.
//!
//! It goes up to the event that was the newest when it began, read page by page and handed out piece by piece: the history
//! may be longer than memory, and whoever takes it slower than others write. Receipts are as they are when their page is
//! read, and what is erased meanwhile is not handed out.

mod markdown;

use serde::Serialize;

use super::look::Looking;
use super::look::events::{each_step, hide, shape};
use super::look::filter::{EventFilter, Sieve, followed};
use super::{Actor, Ctx, actor};
use crate::domain::event::Number;
use crate::domain::name::ThreadId;
use crate::domain::view::Viewer;
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
    /// The newest event when it began.
    pub number: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// How many events or messages are in memory at once.
const PAGE: u16 = 100;

/// Where the pieces go. What cannot be written ends the export.
pub type Sink<'a> = dyn FnMut(&str) -> Result<()> + 'a;
/// How far it is: so many of so many.
pub type Progress<'a> = dyn FnMut(Number, Number) + 'a;

pub fn run(ctx: &Ctx<'_>, input: &Input, sink: &mut Sink<'_>, progress: &mut Progress<'_>) -> Result<Exported> {
    let facts = ctx.store.read()?;
    let (viewer, actor) = actor::viewer(ctx, &*facts)?;
    let reading = Reading { ctx, viewer, number: facts.tip()?.number };
    drop(facts);
    if let Some(thread) = &input.thread {
        // Asked first: a thread that is not there leaves no file behind.
        reading.look(|looking| match looking.thread_view(thread, 0)? {
            Some(_) => Ok(()),
            None => Err(looking.thread_not_found(thread)?),
        })?;
    }
    let exported = match input.format {
        Format::Markdown => markdown::write(&reading, input.thread.as_ref(), sink, progress),
        Format::Jsonl => lines(&reading, input.thread.as_ref(), sink, progress),
    }?;
    if let Some(agent) = actor.as_ref().and_then(Actor::agent) {
        ctx.store.presence().touch(&agent.name, ctx.now);
    }
    Ok(exported)
}

/// The history up to one event, read page by page.
struct Reading<'a> {
    ctx: &'a Ctx<'a>,
    viewer: Viewer,
    /// Nothing after it is handed out.
    number: Number,
}

impl Reading<'_> {
    /// One short look at the store. Nothing is handed out meanwhile: whoever takes it may be slow, and a view that is held
    /// keeps the store's log from being folded in.
    fn look<T>(&self, read: impl FnOnce(&Looking<'_>) -> Result<T>) -> Result<T> {
        let facts = self.ctx.store.read()?;
        read(&Looking { ctx: self.ctx, facts: &*facts, viewer: self.viewer.clone(), limit: 0 })
    }
}

/// Every event as `look events` shows it, with its body where it has one.
fn lines(
    reading: &Reading<'_>,
    thread: Option<&ThreadId>,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<Exported> {
    let filter = EventFilter { thread: thread.map(ToString::to_string), ..EventFilter::default() };
    let mut events = 0;
    each_step(reading.number, PAGE, |after, up_to| {
        let page = reading.look(|looking| {
            let (sieve, moves) = (Sieve::new(looking, &filter)?, looking.facts.moves()?);
            let mut page = String::new();
            for event in looking.facts.events(&sieve.query(after, up_to, moves.is_empty()))? {
                let event = followed(event, &moves);
                let Some(what) = hide(looking, &event)? else { continue };
                if sieve.takes(&what)? {
                    let line = serde_json::to_string(&shape(looking.facts, &event, &what, true)?).map_err(internal)?;
                    page.push_str(&line);
                    page.push('\n');
                    events += 1;
                }
            }
            Ok(page)
        })?;
        sink(&page)?;
        progress(up_to, reading.number);
        Ok(())
    })?;
    Ok(Exported { format: Format::Jsonl, number: reading.number, events: Some(events), threads: None, messages: None })
}
