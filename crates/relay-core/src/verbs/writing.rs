//! The shape that every writing verb has: take the turn, know who acts, look whether the request was answered before,
//! tell the story, renew what the actor's activity renews, remember the answer, commit.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::actor::{self, Actor};
use super::{Ctx, crossing, post, start};
use crate::domain::agent::Agent;
use crate::domain::event::{Happened, Number, Renewal, Text, hex, text_hash};
use crate::domain::name::{AgentName, Party};
use crate::domain::routing::Barrier;
use crate::error::Code;
use crate::store::{Crossing, Errand, Remembered, Result, Tx};
use crate::wire::v1::{Signal, SignalCode};

/// A story under way.
pub(super) struct Writing<'a> {
    pub ctx: &'a Ctx<'a>,
    pub tx: Box<dyn Tx + 'a>,
    pub actor: Actor,
    pub signals: Vec<Signal>,
    pub next: Vec<String>,
    /// What keeps mail from a guest in its own project, as far as that has said.
    pub guest_is_closed: Option<Barrier>,
    wrote: bool,
}

/// What a story came to.
#[derive(Debug, Clone)]
pub(super) struct Told<T> {
    pub outcome: T,
    pub signals: Vec<Signal>,
    pub next: Vec<String>,
}

/// Who may tell the story.
pub(super) enum Who<'a> {
    Registered,
    /// `start` and its kin.
    Newcomer(&'a start::Input),
    Guest(Party),
    /// An agent that was let through in an earlier turn of the same command.
    LetThrough(Box<Agent>),
    /// An agent whose interrupted command relay completes. It was let through then and is not here now.
    Absent(AgentName),
}

impl Writing<'_> {
    /// Appends one event as the actor.
    pub fn append(&mut self, what: Happened, texts: Vec<Text>) -> Result<Number> {
        // What relay completes for somebody is no sign of life of theirs.
        let actor = if matches!(self.actor, Actor::Absent(_)) { Party::Relay } else { self.actor.party() };
        self.append_as(&actor, what, texts)
    }

    pub fn append_as(&mut self, actor: &Party, what: Happened, texts: Vec<Text>) -> Result<Number> {
        self.wrote = true;
        self.tx.append(self.ctx.now, actor, Some(&self.ctx.key.text), what, texts)
    }

    pub fn note_crossing(&mut self, crossing: &Crossing) -> Result<()> {
        self.wrote = true;
        self.tx.note_crossing(crossing)
    }

    pub fn drop_crossing(&mut self, actor: &Party, key: &str) -> Result<()> {
        self.wrote = true;
        self.tx.drop_crossing(actor, key)
    }

    pub fn text(&self, field: &'static str, text: &str) -> Text {
        Text { field, salt: self.ctx.random.bytes(), text: text.to_owned() }
    }

    pub fn signal(&mut self, code: SignalCode, text: impl Into<String>) {
        self.signals.push(Signal::new(code, text));
    }

    pub fn signal_about(&mut self, code: SignalCode, about: Number, text: impl Into<String>) {
        self.signals.push(Signal::new(code, text).about(about));
    }
}

/// Runs a writing verb for somebody registered.
pub(super) fn write<T, R>(
    ctx: &Ctx<'_>,
    verb: &'static str,
    request: &R,
    story: impl FnOnce(&mut Writing<'_>) -> Result<T>,
) -> Result<Told<T>>
where
    T: Serialize + DeserializeOwned,
    R: Serialize,
{
    write_as(ctx, verb, Who::Registered, request, story)
}

pub(super) fn write_as<T, R>(
    ctx: &Ctx<'_>,
    verb: &'static str,
    who: Who<'_>,
    request: &R,
    story: impl FnOnce(&mut Writing<'_>) -> Result<T>,
) -> Result<Told<T>>
where
    T: Serialize + DeserializeOwned,
    R: Serialize,
{
    let mut writing = open(ctx, verb, who)?;
    // A newcomer acts under its own name from the middle of the story on; its keys stay where they were looked for.
    let scope = writing.actor.scope();
    if let Some(told) = remembered(&writing, &scope, verb, request)? {
        drop(writing);
        // Whoever did it may have died before it was durable, or have seen the sync fail.
        ctx.store.settle(ctx.limits.gate_wait)?;
        return Ok(told);
    }
    let jumped = clock_jumped(ctx, &*writing.tx)?;
    writing.signals.extend(jumped);
    post::settle_held(&mut writing)?;
    let outcome = story(&mut writing)?;
    renew_by_activity(&mut writing)?;
    finish(writing, &scope, verb, request, outcome)
}

/// Takes the turn. What an earlier command left between two projects is completed first, without holding the gate.
pub(super) fn open<'a>(ctx: &'a Ctx<'a>, verb: &str, who: Who<'_>) -> Result<Writing<'a>> {
    let name = ctx.caller.named.as_ref().or(ctx.caller.variable.as_ref()).map(ToString::to_string).unwrap_or_default();
    let errand = Errand { verb, agent: &name, wait: ctx.limits.gate_wait, durable: true };
    let mut tx = ctx.store.begin(errand)?;
    if crossing::any_abandoned(ctx, &*tx)? {
        drop(tx);
        match who {
            Who::Guest(_) => crossing::settle_as_guest(ctx),
            _ => crossing::settle(ctx),
        }
        tx = ctx.store.begin(errand)?;
    }
    let actor = match who {
        Who::Registered => actor::acting(ctx, &*tx)?,
        Who::Newcomer(input) => Actor::Newcomer(start::scope(ctx, &*tx, input)?),
        Who::Guest(party) => Actor::Guest(party),
        Who::LetThrough(agent) => Actor::Agent(agent),
        Who::Absent(name) => Actor::Absent(name),
    };
    Ok(Writing { ctx, tx, actor, signals: Vec::new(), next: Vec::new(), guest_is_closed: None, wrote: false })
}

/// The first answer to a request whose key was seen to be used before.
pub(super) fn again<T, R>(ctx: &Ctx<'_>, verb: &'static str, request: &R) -> Result<Told<T>>
where
    T: Serialize + DeserializeOwned,
    R: Serialize,
{
    write(ctx, verb, request, |_| Err(Code::Internal.refuse("the remembered answer is gone")))
}

/// The first answer, when this key was used before.
fn remembered<T: DeserializeOwned, R: Serialize>(
    writing: &Writing<'_>,
    scope: &str,
    verb: &str,
    request: &R,
) -> Result<Option<Told<T>>> {
    let ctx = writing.ctx;
    let Some(first) = writing.tx.remembered(scope, &ctx.key.text)? else {
        return Ok(None);
    };
    if let Some(why) = first.is_beyond_compare() {
        let text = format!("the key {:?} {why}; what it did is in the history by #{}", ctx.key.text, first.number);
        let after = first.number.saturating_sub(1);
        return Err(Code::IdempotencyReused.refuse(text).with("number", first.number).with("after", after));
    }
    if first.verb != verb || first.request != digest(&first.salt, verb, request)? {
        return Err(Code::IdempotencyReused
            .refuse(format!("the key {:?} belongs to another request, a `{}`", ctx.key.text, first.verb))
            .with("verb", first.verb));
    }
    let (outcome, signals, next) = serde_json::from_str(&first.answer).map_err(internal)?;
    Ok(Some(Told { outcome, signals, next }))
}

fn finish<T: Serialize, R: Serialize>(
    mut writing: Writing<'_>,
    scope: &str,
    verb: &str,
    request: &R,
    outcome: T,
) -> Result<Told<T>> {
    let ctx = writing.ctx;
    writing.signals.extend(someone_waits(ctx, &writing.actor));
    let Writing { mut tx, actor, signals, next, wrote, .. } = writing;
    if wrote || ctx.key.chosen {
        let salt = ctx.random.bytes();
        let answer = serde_json::to_string(&(&outcome, &signals, &next)).map_err(internal)?;
        let (verb, request, number) = (verb.to_owned(), digest(&salt, verb, request)?, tx.tip()?.number);
        let remembered = Remembered { verb, salt, request, answer, number };
        tx.remember(scope, &ctx.key.text, &remembered)?;
        tx.commit()?;
    } else {
        drop(tx);
        // What the answer rests on was done by others, who may have died before it was durable.
        ctx.store.sync()?;
    }
    if let Some(agent) = actor.agent() {
        ctx.store.presence().touch(&agent.name, ctx.now);
    }
    Ok(Told { outcome, signals, next })
}

/// A request as it is compared: salted, so that nothing can be guessed from it.
fn digest<R: Serialize>(salt: &[u8], verb: &str, request: &R) -> Result<String> {
    let request = serde_json::to_string(request).map_err(internal)?;
    Ok(text_hash(salt, &format!("{verb} {request}")).0)
}

/// A writing verb of the holder renews its claims in the second half of their time.
fn renew_by_activity(writing: &mut Writing<'_>) -> Result<()> {
    let Some(agent) = writing.actor.agent().map(|agent| agent.name.clone()) else {
        return Ok(());
    };
    let now = writing.ctx.now;
    let claims: Vec<Renewal> = writing
        .tx
        .claims_to_renew(&agent, now)?
        .into_iter()
        .filter(|claim| claim.is_live(now))
        .filter_map(|claim| {
            let expires_at = claim.renewal(now)?;
            Some(Renewal {
                id: claim.id,
                ttl_ms: claim.ttl.as_millis(),
                expires_at,
                exclusive: claim.exclusive,
                reason: claim.reason,
                conflicts: Vec::new(),
            })
        })
        .collect();
    if !claims.is_empty() {
        writing.append(Happened::ReservationRenewed { agent, claims }, Vec::new())?;
    }
    Ok(())
}

/// What every answer to this actor says, whatever the verb.
pub(super) fn signals_for(ctx: &Ctx<'_>, facts: &dyn crate::store::Facts, actor: &Actor) -> Result<Vec<Signal>> {
    let mut signals: Vec<Signal> = clock_jumped(ctx, facts)?.into_iter().collect();
    signals.extend(someone_waits(ctx, actor));
    Ok(signals)
}

/// The newest event comes from a clock that is ahead of this one. A writer asks before its own events are the newest.
fn clock_jumped(ctx: &Ctx<'_>, facts: &dyn crate::store::Facts) -> Result<Option<Signal>> {
    let tip = facts.tip()?;
    Ok(tip.at.filter(|at| !at.is_believable(ctx.now)).map(|at| {
        let text = format!("event #{} is dated {at}, ahead of this clock; times are not believed", tip.number);
        Signal::new(SignalCode::ClockJumped, text).about(tip.number)
    }))
}

fn someone_waits(ctx: &Ctx<'_>, actor: &Actor) -> Vec<Signal> {
    let me = actor.party();
    let waits = ctx.store.presence().waits_of("reserve");
    let for_me = waits.iter().filter(|wait| wait.for_whom.contains(&me));
    for_me
        .map(|wait| {
            let text = format!("{} waits for you to release {}", wait.agent, wait.patterns.join(" "));
            Signal::new(SignalCode::SomeoneWaits, text)
        })
        .collect()
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
pub(super) fn internal(fault: serde_json::Error) -> crate::error::Refusal {
    Code::Internal.refuse(format!("an answer could not be written or read back: {fault}"))
}

/// A short random word for keys that nobody chose.
pub fn random_key(bytes: [u8; 16]) -> String {
    hex(&bytes)
}
