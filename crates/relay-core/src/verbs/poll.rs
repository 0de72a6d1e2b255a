//! `poll`: the inbox. Peeking consumes nothing; what was shown is noted after it was written out.

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::contested::{self, News};
use super::wait::{self, Look, Waiter, Waiting};
use super::writing::{Told as Telling, signals_for};
use super::{Begun, Ctx, Done, Outcome as Any, crossing, start};
use crate::domain::contact::GivenUp;
use crate::domain::delivery::Delivery;
use crate::domain::event::{Happened, Number, Told};
use crate::domain::name::{Address, Party, ThreadId};
use crate::domain::shell;
use crate::domain::time::{Span, Timestamp};
use crate::domain::view::Viewer;
use crate::error::Code;
use crate::store::{Errand, Facts, Guard, InboxQuery, Result};
use crate::wire::v1::{ContestedShape, MessageShape};

/// How long noting "surfaced" may wait for its turn; after that the mail is shown again.
const SURFACING_PATIENCE: Span = Span::millis(50);
/// What may keep it from being written down that mail was shown.
const MAY_BE_SHOWN_AGAIN: [Code; 2] = [Code::StoreBusy, Code::StoreReadonly];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub limit: Option<usize>,
    pub after: Option<Number>,
    pub thread: Option<ThreadId>,
    pub urgent: bool,
    pub from: Option<Address>,
    pub all: bool,
    pub bodies: bool,
    pub read: bool,
    pub wait: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub messages: Vec<MessageShape>,
    pub contested: Vec<ContestedShape>,
    /// The number of the event that delivered the last message, for `--after`.
    pub cursor: Number,
    /// Unread mail in all.
    pub unread: usize,
}

/// What is committed after the answer was written out: the mail surfaced, was read, the contests were told.
#[derive(Debug, Clone, PartialEq)]
pub struct Afterwards {
    pub party: Party,
    /// When the inbox was looked at; the answer says so too.
    pub at: Timestamp,
    pub surfaced: Vec<Number>,
    pub read: Vec<Number>,
    pub told: Vec<Told>,
}

pub fn begin(ctx: &Ctx<'_>, input: &Input) -> Result<Begun> {
    if let Some(limit) = input.limit
        && !(1..=ctx.limits.page).contains(&limit)
    {
        return Err(Code::InputInvalid.refuse(format!("--limit is 1 to {}, not {limit}", ctx.limits.page)));
    }
    settle(ctx)?;
    let from = sender(ctx, input)?;
    let facts = ctx.store.read()?;
    let actor = actor::acting(ctx, &*facts)?;
    let page = page(ctx, &*facts, &actor, input, from.as_ref())?;
    match input.wait {
        // Who has something to read waits for nobody.
        Some(time) if !page.is_news => {
            drop(facts);
            let at_the_inbox = AtTheInbox::enter(ctx, input, from, actor)?;
            Ok(Begun::Waits(Waiting::new(ctx, time, at_the_inbox)))
        }
        _ => finish(ctx, &*facts, &actor, input, page).map(Begun::Done),
    }
}

/// Completes what earlier commands left: a lapse of held mail and crossings are told before the inbox is read.
pub(super) fn settle(ctx: &Ctx<'_>) -> Result<()> {
    let facts = ctx.store.read()?;
    if crossing::any_abandoned(ctx, &*facts)? {
        drop(facts);
        crossing::settle(ctx);
        return settle_held(ctx);
    }
    drop(facts);
    settle_held(ctx)
}

fn settle_held(ctx: &Ctx<'_>) -> Result<()> {
    let facts = ctx.store.read()?;
    let me = actor::acting(ctx, &*facts)?.party();
    let mut lapsed = false;
    for (_, recipient) in facts.held_of(&me)? {
        let link = facts.link(&me, &recipient)?;
        lapsed |= GivenUp::found(link.as_ref(), &recipient, ctx.now).is_some();
    }
    drop(facts);
    if lapsed {
        // The story is empty: every writing verb tells its actor of lapsed mail. It has a key of its own: reading uses none.
        let key = super::writing::random_key(ctx.random.bytes());
        super::writing::write(&ctx.step(&key), "settle", &"held", |_| Ok(()))?;
    }
    Ok(())
}

/// The party that `--from` means.
fn sender(ctx: &Ctx<'_>, input: &Input) -> Result<Option<Party>> {
    let Some(address) = &input.from else {
        return Ok(None);
    };
    actor::addressed(ctx, &*ctx.store.read()?, address).map(Some)
}

/// One look at the inbox.
struct Page {
    outcome: Outcome,
    afterwards: Afterwards,
    changes_at: Option<Timestamp>,
    /// There is something that a waiter waits for.
    is_news: bool,
    /// There is more of what was asked for, after the cursor.
    has_more: bool,
}

fn page(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor, input: &Input, from: Option<&Party>) -> Result<Page> {
    let (me, now) = (actor.party(), ctx.now);
    let query = InboxQuery {
        recipient: &me,
        after: input.after.unwrap_or(0),
        thread: input.thread.as_ref(),
        from,
        urgent: input.urgent,
        with_read: input.all,
        never_surfaced: false,
        limit: input.limit.unwrap_or(ctx.limits.page),
        bodies: input.bodies,
    };
    let mut messages = facts.inbox(&query)?;
    let is_new = |messages: &[crate::domain::message::Message]| {
        messages.iter().any(|message| {
            message.delivery_to(&me).is_some_and(|delivery| {
                delivery.read_at.is_none() && (input.after.is_some() || delivery.surfaced_at.is_none())
            })
        })
    };
    if input.wait.is_some() && !is_new(&messages) {
        // New mail behind a full page of old mail, or before the cursor, must not hide: it is what the caller waits for.
        messages = facts.inbox(&InboxQuery { after: 0, never_surfaced: true, with_read: false, ..query.clone() })?;
    }
    let news = match actor.agent() {
        Some(agent) => contested::news(ctx, facts, agent, now)?,
        None => News { contested: Vec::new(), told: Vec::new(), changes_at: None },
    };
    let is_news = is_new(&messages) || !news.contested.is_empty();
    let viewer = if me == Party::Human { Viewer::Human } else { Viewer::Agent(me.clone()) };
    let cursor = messages.iter().filter_map(|message| message.delivery_to(&me)?.delivered_by).max();
    let has_more = match cursor {
        Some(after) => !facts.inbox(&InboxQuery { after, limit: 1, bodies: false, ..query })?.is_empty(),
        None => false,
    };
    let which = |is_so: fn(&Delivery) -> bool| -> Vec<Number> {
        messages
            .iter()
            .filter(|message| message.delivery_to(&me).is_some_and(is_so))
            .map(|message| message.id)
            .collect()
    };
    let afterwards = Afterwards {
        party: me.clone(),
        at: now,
        surfaced: which(|delivery| delivery.surfaced_at.is_none()),
        read: if input.read { which(|delivery| delivery.read_at.is_none()) } else { Vec::new() },
        told: news.told,
    };
    let mut shapes: Vec<MessageShape> =
        messages.iter().map(|message| MessageShape::of(message, &viewer, input.bodies)).collect();
    if input.read {
        shapes.iter_mut().for_each(|shape| shape.read_at = shape.read_at.or(Some(now)));
    }
    let outcome = Outcome {
        messages: shapes,
        contested: news.contested,
        // Mail that never surfaced may come from before the cursor; the cursor does not go back for it.
        cursor: cursor.max(input.after).unwrap_or(0),
        unread: facts.unread(&me, ctx.limits.unread)?,
    };
    Ok(Page { outcome, afterwards, changes_at: news.changes_at, is_news, has_more })
}

/// Somebody who waits for mail, or for news of contested claims.
struct AtTheInbox {
    input: Input,
    from: Option<Party>,
    actor: Actor,
    _announced: Box<dyn Guard>,
}

impl AtTheInbox {
    fn enter(ctx: &Ctx<'_>, input: &Input, from: Option<Party>, actor: Actor) -> Result<Self> {
        if let Some(agent) = actor.agent() {
            ctx.store.presence().touch(&agent.name, ctx.now);
        }
        let for_whom = from.clone().into_iter().collect();
        let announcement = wait::announcement(ctx, "poll", actor.party(), for_whom, Vec::new());
        let announced = match from {
            Some(_) => wait::enter(ctx, &announcement)?.0,
            None => ctx.store.presence().enter(&announcement)?,
        };
        Ok(AtTheInbox { input: input.clone(), from, actor, _announced: announced })
    }
}

impl Waiter for AtTheInbox {
    fn look(&mut self, ctx: &Ctx<'_>) -> Result<Look> {
        let facts = ctx.store.read()?;
        // Somebody may have taken the agent over meanwhile; the mail is for that one.
        actor::acting(ctx, &*facts)?;
        let page = page(ctx, &*facts, &self.actor, &self.input, self.from.as_ref())?;
        if !page.is_news {
            return Ok(Look::NotYet { again_at: page.changes_at });
        }
        finish(ctx, &*facts, &self.actor, &self.input, page).map(Look::Ready)
    }

    fn in_vain(&self, ctx: &Ctx<'_>, _: Span) -> Result<Done> {
        let facts = ctx.store.read()?;
        let page = nothing(ctx, &*facts, &self.actor, &self.input)?;
        finish(ctx, &*facts, &self.actor, &self.input, page)
    }
}

/// The answer at the deadline: ok, and empty.
fn nothing(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor, input: &Input) -> Result<Page> {
    let me = actor.party();
    let unread = facts.unread(&me, ctx.limits.unread)?;
    let outcome = Outcome { messages: Vec::new(), contested: Vec::new(), cursor: input.after.unwrap_or(0), unread };
    let afterwards = Afterwards { party: me, at: ctx.now, surfaced: Vec::new(), read: Vec::new(), told: Vec::new() };
    Ok(Page { outcome, afterwards, changes_at: None, is_news: false, has_more: false })
}

fn finish(ctx: &Ctx<'_>, facts: &dyn Facts, actor: &Actor, input: &Input, page: Page) -> Result<Done> {
    let mut signals = signals_for(ctx, facts, actor)?;
    signals.extend(start::owed(ctx, facts, actor)?);
    let mut next = Vec::new();
    for message in page.outcome.messages.iter().filter(|message| message.ack_due.is_some()).take(3) {
        next.push(format!("relay ack {}", message.id));
    }
    if page.has_more {
        next.push(more(input, page.outcome.cursor));
    }
    if let Some(agent) = actor.agent() {
        ctx.store.presence().touch(&agent.name, ctx.clock.now());
    }
    let mut done = Done::new("poll", Telling { outcome: page.outcome, signals, next }, Any::Poll);
    done.afterwards = Some(page.afterwards).filter(|afterwards| !afterwards.is_empty());
    Ok(done)
}

/// The same request for the page after this one. It is there already: nobody needs to wait for it.
fn more(input: &Input, cursor: Number) -> String {
    let mut words = vec!["relay".to_owned(), "poll".to_owned()];
    let mut value = |flag: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    };
    value("--limit", input.limit.map(|limit| limit.to_string()));
    value("--after", Some(cursor.to_string()));
    value("--thread", input.thread.as_ref().map(ToString::to_string));
    value("--from", input.from.as_ref().map(ToString::to_string));
    let switches =
        [("--urgent", input.urgent), ("--all", input.all), ("--bodies", input.bodies), ("--read", input.read)];
    words.extend(switches.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned()));
    shell::line(&words)
}

impl Afterwards {
    pub fn is_empty(&self) -> bool {
        self.surfaced.is_empty() && self.read.is_empty() && self.told.is_empty()
    }

    /// Commits what the answer showed, once it was written out. Losing the race for the gate only shows it again, and so does
    /// a disk that cannot be written; what was asked to be read waits its turn.
    pub fn commit(&self, ctx: &Ctx<'_>) -> Result<()> {
        let patience = if self.read.is_empty() { SURFACING_PATIENCE } else { ctx.limits.gate_wait };
        let agent = self.party.to_string();
        let begun = ctx.store.begin(Errand { verb: "poll", agent: &agent, wait: patience, durable: false });
        let mut tx = match begun {
            Err(refusal) if self.read.is_empty() && MAY_BE_SHOWN_AGAIN.contains(&refusal.code) => return Ok(()),
            other => other?,
        };
        let (party, key) = (&self.party, Some(ctx.key.text.as_str()));
        // Another poll of the same agent may have shown it meanwhile.
        let messages = still(&*tx, party, &self.surfaced, |delivery| delivery.surfaced_at.is_none())?;
        if !messages.is_empty() || !self.told.is_empty() {
            let (agent, contested) = (party.clone(), self.told.clone());
            tx.append(self.at, party, key, Happened::MailSurfaced { agent, messages, contested }, Vec::new())?;
        }
        let messages = still(&*tx, party, &self.read, |delivery| delivery.read_at.is_none())?;
        if !messages.is_empty() {
            tx.append(self.at, party, key, Happened::MailRead { agent: party.clone(), messages }, Vec::new())?;
        }
        tx.commit()
    }
}

/// Those messages whose copy for this party is still like this.
fn still(facts: &dyn Facts, party: &Party, ids: &[Number], is_so: impl Fn(&Delivery) -> bool) -> Result<Vec<Number>> {
    let mut kept = Vec::new();
    for id in ids {
        if facts.envelope(*id)?.is_some_and(|message| message.delivery_to(party).is_some_and(&is_so)) {
            kept.push(*id);
        }
    }
    Ok(kept)
}
