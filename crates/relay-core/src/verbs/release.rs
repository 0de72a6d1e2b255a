//! `release`: gives reservations back, narrows or renews them, or takes one over from a dead holder (I8).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::post::{self, Draft};
use super::reserve;
use super::takeover;
use super::wanted::parse_all;
use super::writing::{Writing, write};
use super::{Ctx, Done, Outcome as Any, check_why};
use crate::domain::agent::Agent;
use crate::domain::delivery::Line;
use crate::domain::event::{Happened, Number, Renewal};
use crate::domain::message::Importance;
use crate::domain::name::{Address, ThreadId};
use crate::domain::pattern::{ByPrefix, Case, Pattern};
use crate::domain::reservation::Reservation;
use crate::domain::thread::Thread;
use crate::domain::time::Span;
use crate::error::{Code, Refusal};
use crate::store::Result;
use crate::wire::v1::{ClaimShape, GrantedShape};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub patterns: Vec<String>,
    pub id: Vec<Number>,
    pub reason: Option<ThreadId>,
    pub done: bool,
    pub all: bool,
    pub keep: Vec<String>,
    pub renew: Option<Span>,
    pub force: bool,
    pub why: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub released: Vec<Released>,
    /// What is still held, after `--keep` or `--renew`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<GrantedShape>,
    /// What was taken over with `--force`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<ClaimShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_done: Option<String>,
    /// The thread was done before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub was_done: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Released {
    pub id: Number,
    pub pattern: String,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    check(input)?;
    let roots = ctx.repository.roots();
    let patterns = parse_all(ctx.limits, &input.patterns, &roots)?;
    let keep = parse_all(ctx.limits, &input.keep, &roots)?;
    let told = write(ctx, "release", input, |writing| {
        if input.force {
            return takeover::take_over(writing, input, &patterns);
        }
        let agent = writing.actor.must_be_agent("hold reservations")?.clone();
        let claims = selected(writing, &agent, input, &patterns)?;
        match input.renew {
            Some(ttl) => renew(writing, &agent, &claims, ttl),
            None => give_back(writing, &agent, input, &claims, &keep),
        }
    })?;
    Ok(Done::new("release", told, Any::Release))
}

fn check(input: &Input) -> Result<()> {
    let invalid = |why: &str| Err(Code::InputInvalid.refuse(why));
    let names_something = !input.patterns.is_empty() || !input.id.is_empty() || input.reason.is_some();
    if !names_something && !input.all && input.renew.is_none() {
        return invalid("say what to release: a pattern, an id, the thread that is the reason, or all");
    }
    if input.done && input.reason.is_none() {
        return invalid("--done closes the thread that --reason names");
    }
    if input.force != input.why.is_some() {
        return invalid("force and why belong together: the holder is told why");
    }
    if input.force && (input.all || !input.keep.is_empty() || input.renew.is_some() || input.done) {
        return invalid("--force takes claims named by pattern or --id, and nothing else");
    }
    if input.renew.is_some() && (!input.keep.is_empty() || input.done) {
        return invalid("--renew keeps what is held; it does not go with --keep or --done");
    }
    check_why(input.why.as_deref())?;
    input.renew.map_or(Ok(()), reserve::check_ttl)
}

/// The actor's live claims that the input names; a named one that is not held is an error.
fn selected(writing: &Writing<'_>, agent: &Agent, input: &Input, patterns: &[Pattern]) -> Result<Vec<Reservation>> {
    let now = writing.ctx.now;
    let everything =
        input.all || (input.renew.is_some() && patterns.is_empty() && input.id.is_empty() && input.reason.is_none());
    let mut claims: Vec<Reservation> = Vec::new();
    if everything || input.reason.is_some() {
        let own = writing.tx.claims_of(&agent.name)?.into_iter().filter(|claim| claim.is_live(now));
        let for_reason = |claim: &Reservation| match (&claim.reason, &input.reason) {
            (Some(one), Some(other)) => one.same_as(other),
            _ => false,
        };
        claims.extend(own.filter(|claim| everything || for_reason(claim)));
    }
    for pattern in patterns {
        let mut held = writing.tx.claims_on(&agent.name, pattern.as_str())?;
        held.retain(|claim| claim.is_live(now));
        if held.is_empty() {
            return Err(not_held(writing, agent, pattern.as_str(), None));
        }
        held.sort_by_key(|claim| claim.id);
        held.into_iter().for_each(|claim| add(&mut claims, claim));
    }
    for id in &input.id {
        let claim = writing.tx.claim(*id)?;
        let held = claim.clone().filter(|claim| claim.is_live(now) && claim.holder.same_as(&agent.name));
        add(&mut claims, held.ok_or_else(|| not_held(writing, agent, &format!("#{id}"), claim.as_ref()))?);
    }
    Ok(claims)
}

pub(super) fn add(claims: &mut Vec<Reservation>, claim: Reservation) {
    if !claims.iter().any(|known| known.id == claim.id) {
        claims.push(claim);
    }
}

/// Names who took a claim over, when that is why it is no longer held.
fn not_held(writing: &Writing<'_>, agent: &Agent, what: &str, claim: Option<&Reservation>) -> Refusal {
    let taken = match claim {
        Some(claim) => writing.tx.taker(claim.id, &agent.name).ok().flatten().map(|taker| (claim.id, taker)),
        None => writing.tx.taken_on(&agent.name, what).ok().flatten(),
    };
    let held = writing.tx.claims_of(&agent.name).unwrap_or_default();
    let held: Vec<String> =
        held.into_iter().filter(|claim| claim.is_live(writing.ctx.now)).map(|claim| claim.pattern).take(10).collect();
    let message = match &taken {
        Some((id, taker)) => format!("{taker} took `{what}` (#{id}) over from {}", agent.name),
        None => format!("{} does not hold `{what}`", agent.name),
    };
    let mut refusal = Code::ReservationNotHeld.refuse(message).with("what", what).with("held", serde_json::json!(held));
    if let Some((id, taker)) = taken {
        refusal = refusal.with("taker", taker.to_string()).with("id", id);
    }
    refusal
}

fn give_back(
    writing: &mut Writing<'_>,
    agent: &Agent,
    input: &Input,
    claims: &[Reservation],
    keep: &[Pattern],
) -> Result<Outcome> {
    let kept: HashSet<&str> = keep.iter().map(Pattern::as_str).collect();
    let released: Vec<&Reservation> = claims.iter().filter(|claim| !kept.contains(claim.pattern.as_str())).collect();
    let parents = parents(writing.ctx.repository.case(), keep, claims)?;
    if !released.is_empty() {
        let claims = released.iter().map(|claim| claim.id).collect();
        writing.append(Happened::ReservationReleased { agent: agent.name.clone(), claims }, Vec::new())?;
    }
    let released = released.into_iter().map(Released::from).collect();
    let mut outcome = Outcome { released, ..Outcome::default() };
    for (pattern, parent) in keep.iter().zip(parents) {
        let held = writing.tx.claims_on(&agent.name, pattern.as_str())?.pop();
        let shape = match held.filter(|claim| claim.is_live(writing.ctx.now)) {
            Some(claim) => granted(&claim, claim.id),
            None => narrow(writing, agent, pattern, parent)?,
        };
        outcome.kept.push(shape);
    }
    if let (true, Some(thread)) = (input.done, &input.reason) {
        let found = close(writing, agent, thread, claims)?;
        (outcome.thread_done, outcome.was_done) = (Some(found.id.to_string()), found.done);
    }
    Ok(outcome)
}

impl From<&Reservation> for Released {
    fn from(claim: &Reservation) -> Self {
        Released { id: claim.id, pattern: claim.pattern.clone() }
    }
}

fn granted(claim: &Reservation, id: Number) -> GrantedShape {
    GrantedShape {
        id,
        pattern: claim.pattern.clone(),
        exclusive: claim.exclusive,
        expires_at: claim.expires_at,
        reason: claim.reason.as_ref().map(ToString::to_string),
        renewed: false,
    }
}

/// `--keep` narrows: each pattern that is kept lies inside one of the claims.
fn parents<'a>(case: Case, keep: &[Pattern], claims: &'a [Reservation]) -> Result<Vec<&'a Reservation>> {
    let (mut compiled, mut by_prefix) = (Vec::new(), ByPrefix::default());
    for (index, claim) in claims.iter().enumerate().filter(|_| !keep.is_empty()) {
        let pattern = Pattern::from_canonical(&claim.pattern)?;
        by_prefix.insert(&pattern.prefix(case), index);
        compiled.push(pattern.compile(case));
    }
    let inside = |pattern: &Pattern| {
        let inner = pattern.compile(case);
        let near = by_prefix.near(&pattern.prefix(case)).into_iter();
        let parent = near.filter(|index| compiled[*index].covers(&inner)).map(|index| &claims[index]).next();
        parent.ok_or_else(|| {
            Code::InputInvalid
                .refuse(format!("--keep {} is not inside what you release; claim it with reserve", pattern.as_str()))
                .with("pattern", pattern.as_str())
        })
    };
    keep.iter().map(inside).collect()
}

/// The narrower claim inherits the time of the one it came from.
fn narrow(writing: &mut Writing<'_>, agent: &Agent, pattern: &Pattern, parent: &Reservation) -> Result<GrantedShape> {
    let case = writing.ctx.repository.case();
    let now = writing.ctx.now;
    let compiled = pattern.compile(case);
    let prefix = pattern.prefix(case);
    let mut overlaps = Vec::new();
    for other in writing.tx.claims_near(&[&prefix])? {
        if other.is_live(now) && Pattern::from_canonical(&other.pattern)?.compile(case).overlap(&compiled).is_some() {
            overlaps.push(other.id);
        }
    }
    let what = Happened::ReservationGranted {
        agent: agent.name.clone(),
        pattern: pattern.as_str().to_owned(),
        prefix,
        exclusive: parent.exclusive,
        reason: parent.reason.clone(),
        ttl_ms: parent.ttl.as_millis(),
        first_granted_at: parent.first_granted_at,
        expires_at: parent.expires_at,
        overlaps,
        conflicts: Vec::new(),
    };
    let id = writing.append(what, Vec::new())?;
    Ok(granted(&Reservation { pattern: pattern.as_str().to_owned(), ..parent.clone() }, id))
}

fn renew(writing: &mut Writing<'_>, agent: &Agent, claims: &[Reservation], ttl: Span) -> Result<Outcome> {
    let expires_at = writing.ctx.now.plus(ttl);
    let renewals: Vec<Renewal> = claims
        .iter()
        .map(|claim| Renewal {
            id: claim.id,
            ttl_ms: ttl.as_millis(),
            expires_at,
            exclusive: claim.exclusive,
            reason: claim.reason.clone(),
            conflicts: Vec::new(),
        })
        .collect();
    if !renewals.is_empty() {
        writing.append(Happened::ReservationRenewed { agent: agent.name.clone(), claims: renewals }, Vec::new())?;
    }
    let kept =
        claims.iter().map(|claim| GrantedShape { expires_at, renewed: true, ..granted(claim, claim.id) }).collect();
    Ok(Outcome { kept, ..Outcome::default() })
}

/// Closes the thread and says so in it, to its members, who hear of it once. Returns it as it was.
fn close(writing: &mut Writing<'_>, agent: &Agent, thread: &ThreadId, claims: &[Reservation]) -> Result<Thread> {
    let me = writing.actor.party();
    // Whoever held claims for a thread takes part in it, even where nobody has said a word.
    let works_in_it = claims.iter().any(|claim| claim.reason.as_ref().is_some_and(|reason| reason.same_as(thread)));
    if works_in_it && !writing.tx.is_member(thread, &me)? {
        let thread = writing.tx.thread(thread)?.map_or_else(|| thread.clone(), |found| found.id);
        writing.append(Happened::ThreadPrepared { thread, agent: agent.name.clone() }, Vec::new())?;
    }
    let Some(found) = post::thread(writing, thread)? else {
        return Err(Code::ThreadNotFound
            .refuse(format!("there is no thread `{thread}`"))
            .with("thread", thread.as_str()));
    };
    let others = writing.tx.members(&found.id)?.into_iter().filter(|member| *member != me).count();
    if others > 0 && !found.done {
        let draft = Draft {
            wanted: vec![(Address { name: super::recipients::THREAD_GROUP.to_owned(), project: None }, Line::To)],
            thread: Some(found.id.clone()),
            reply_to: None,
            subject: if found.subject.is_some() { None } else { Some("Done") },
            body: "Done: the claims for this thread are released and the thread is closed.",
            importance: Importance::Normal,
            ack_within: None,
            hold: false,
            recover: false,
        };
        match post::post(writing, &draft) {
            Err(refusal) if refusal.code != Code::RecipientNotFound => return Err(refusal),
            _ => {}
        }
    }
    // Whoever prepared it after its end still works in it.
    let is_current = |agent: &Agent| agent.thread.as_ref().is_some_and(|current| current.same_as(&found.id));
    if !found.done || writing.tx.agents()?.iter().any(is_current) {
        writing.append(Happened::ThreadClosed { thread: found.id.clone(), agent: me }, Vec::new())?;
    }
    Ok(found)
}
