//! `reserve`: claims patterns; returns what was granted **and** what it conflicts with (I7).

use serde::{Deserialize, Serialize};

use super::actor;
use super::broad::Breadth;
use super::clash::{Clash, clashes, is_silent, neighbours, shape};
use super::wait::{self, Look, Waiter, Waiting};
use super::wanted::{Claim, Wanted};
use super::writing::{Writing, write};
use super::{Begun, Ctx, Done, Outcome as Any};
use crate::domain::agent::Agent;
use crate::domain::event::{Happened, Number, Renewal};
use crate::domain::limits::{CONFLICTS_SHOWN, Limits, TTL_DEFAULT, TTL_LONG};
use crate::domain::name::{Party, ThreadId};
use crate::domain::reservation::ttl_is_valid;
use crate::domain::shell;
use crate::domain::time::{Span, Timestamp};
use crate::error::{Code, Refusal};
use crate::store::{Guard, Result, Wait};
use crate::wire::v1::{ConflictShape, GrantedShape, SignalCode};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub patterns: Vec<String>,
    pub ttl: Option<Span>,
    pub shared: bool,
    pub reason: Option<ThreadId>,
    pub if_free: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub granted: Vec<GrantedShape>,
    pub conflicts: Vec<ConflictShape>,
    pub conflicts_total: usize,
}

pub fn begin(ctx: &Ctx<'_>, input: &Input) -> Result<Begun> {
    if input.patterns.is_empty() {
        return Err(Code::InputInvalid.refuse("name at least one pattern"));
    }
    if input.wait.is_some() && !input.if_free {
        return Err(Code::InputInvalid.refuse("--wait belongs to --if-free: a plain claim is granted at once"));
    }
    check_ttl(input.ttl.unwrap_or(TTL_DEFAULT))?;
    let wanted = Wanted::new(ctx, &input.patterns)?;
    // How long the caller waits is no part of what it asks for.
    let asked = Input { wait: None, ..input.clone() };
    // Whoever has no ticket yet stands behind everybody who has one.
    let behind_all = input.wait.map(|_| u64::MAX);
    match (claim(ctx, &asked, &wanted, behind_all), input.wait) {
        (Err(refusal), Some(time)) if refusal.code == Code::FileReservationConflict => {
            let in_line = InLine::enter(ctx, asked, wanted, refusal)?;
            Ok(Begun::Waits(Waiting::new(ctx, time, in_line)))
        }
        (Err(refusal), _) => Err(with_wish(refusal, &asked, &wanted)),
        (Ok(done), _) => Ok(Begun::Done(done)),
    }
}

fn claim(ctx: &Ctx<'_>, input: &Input, wanted: &Wanted, ticket: Option<u64>) -> Result<Done> {
    let told = write(ctx, "reserve", input, |writing| story(writing, input, wanted, ticket))?;
    Ok(Done::new("reserve", told, Any::Reserve))
}

/// A claim that is not free names what was asked for, so that the steps ask for the same.
fn with_wish(refusal: Refusal, input: &Input, wanted: &Wanted) -> Refusal {
    if ![Code::FileReservationConflict, Code::WaitTimeout].contains(&refusal.code) {
        return refusal;
    }
    let mut refusal = refusal.with("patterns", wanted.texts());
    if input.shared {
        refusal = refusal.with("shared", true);
    }
    if let Some(reason) = &input.reason {
        refusal = refusal.with("reason", reason.as_str());
    }
    match input.ttl {
        Some(ttl) => refusal.with("ttl", ttl.to_string()),
        None => refusal,
    }
}

pub(super) fn check_ttl(ttl: Span) -> Result<()> {
    if ttl_is_valid(ttl) {
        return Ok(());
    }
    Err(Code::TtlOutOfRange.refuse(format!("a claim lives 60s to 24h, not {ttl}")).with("ttl", ttl.to_string()))
}

/// Claims everything that is wanted. With `--if-free` an overlap leaves nothing behind.
pub(super) fn story(writing: &mut Writing<'_>, input: &Input, wanted: &Wanted, ticket: Option<u64>) -> Result<Outcome> {
    let agent = writing.actor.must_be_agent("hold reservations")?.clone();
    let now = writing.ctx.now;
    let near = neighbours(&*writing.tx, Some(&agent), wanted, now)?;
    let clashes = clashes(&*writing.tx, Some(&agent), &near, !input.shared, now)?;
    if input.if_free
        && let Some(refusal) = obstacle(writing.ctx, &agent, wanted, &clashes, ticket)
    {
        return Err(refusal);
    }
    within_limit(writing, &agent, wanted)?;
    let mut conflicts: Vec<Vec<Number>> = vec![Vec::new(); wanted.claims.len()];
    clashes.iter().for_each(|clash| conflicts[clash.wanted].push(clash.theirs.id));
    let mut granted: Vec<GrantedShape> = Vec::new();
    for ((claim, near), conflicts) in wanted.claims.iter().zip(&near).zip(conflicts) {
        let mut overlaps: Vec<Number> = near.iter().map(|(other, _)| other.id).collect();
        // Those of the same request too: one of the two may come to belong to somebody else.
        let siblings = claim.siblings.iter().map(|earlier| &granted[*earlier]);
        overlaps.extend(siblings.filter(|sibling| !sibling.renewed).map(|sibling| sibling.id));
        granted.push(grant(writing, input, &agent, claim, overlaps, conflicts)?);
    }
    signals(writing, input, wanted, &clashes)?;
    let conflicts = clashes
        .iter()
        .take(CONFLICTS_SHOWN)
        .map(|clash| shape(writing.ctx, &*writing.tx, wanted, clash))
        .collect::<Result<_>>()?;
    Ok(Outcome { granted, conflicts, conflicts_total: clashes.len() })
}

/// What the agent holds already is renewed and counts once.
fn within_limit(writing: &Writing<'_>, agent: &Agent, wanted: &Wanted) -> Result<()> {
    let (limit, now) = (writing.ctx.limits.live_claims, writing.ctx.now);
    let held = writing.tx.count_claims(&agent.name, now)?;
    let mut more = wanted.claims.len();
    if held + more <= limit {
        return Ok(());
    }
    for claim in &wanted.claims {
        let on_it = writing.tx.claims_on(&agent.name, claim.pattern.as_str())?;
        more -= usize::from(on_it.iter().any(|held| held.is_live(now)));
    }
    // Renewing is allowed also where a limit was lowered below what is held.
    if more == 0 || held + more <= limit {
        return Ok(());
    }
    Err(Code::InputInvalid.refuse(format!(
        "{} holds {held} live claims and wants {more} more; at most {limit} are allowed: release some first",
        agent.name
    )))
}

/// One claim: new, or the same pattern again, which renews and keeps its id.
fn grant(
    writing: &mut Writing<'_>,
    input: &Input,
    agent: &Agent,
    claim: &Claim,
    overlaps: Vec<Number>,
    conflicts: Vec<Number>,
) -> Result<GrantedShape> {
    let now = writing.ctx.now;
    let ttl = input.ttl.unwrap_or(TTL_DEFAULT);
    let expires_at = now.plus(ttl);
    let exclusive = !input.shared;
    let pattern = claim.pattern.as_str().to_owned();
    let held = writing.tx.claims_on(&agent.name, &pattern)?.pop().filter(|held| held.is_live(now));
    let reason = input.reason.clone().or_else(|| held.as_ref().and_then(|held| held.reason.clone()));
    let shape = |id, renewed, reason: &Option<ThreadId>| GrantedShape {
        id,
        pattern: pattern.clone(),
        exclusive,
        expires_at,
        reason: reason.as_ref().map(ToString::to_string),
        renewed,
    };
    if let Some(held) = held {
        let (id, ttl_ms) = (held.id, ttl.as_millis());
        let renewal = Renewal { id, ttl_ms, expires_at, exclusive, reason: reason.clone(), conflicts };
        writing
            .append(Happened::ReservationRenewed { agent: agent.name.clone(), claims: vec![renewal] }, Vec::new())?;
        return Ok(shape(held.id, true, &reason));
    }
    let what = Happened::ReservationGranted {
        agent: agent.name.clone(),
        pattern: pattern.clone(),
        prefix: claim.prefix.clone(),
        exclusive,
        reason: reason.clone(),
        ttl_ms: ttl.as_millis(),
        first_granted_at: now,
        expires_at,
        overlaps,
        conflicts,
    };
    let id = writing.append(what, Vec::new())?;
    Ok(shape(id, false, &reason))
}

fn signals(writing: &mut Writing<'_>, input: &Input, wanted: &Wanted, clashes: &[Clash]) -> Result<()> {
    for claim in &wanted.claims {
        let pattern = claim.pattern.as_str();
        match &claim.breadth {
            Some(Breadth::Everything) => writing
                .signal(SignalCode::BroadClaim, format!("{pattern} claims the whole project; name what you will edit")),
            Some(Breadth::Files { taken, of }) => {
                writing.signal(
                    SignalCode::BroadClaim,
                    format!("{pattern} takes {taken} of {of} tracked files; name what you will edit"),
                );
            }
            None => {}
        }
    }
    let ttl = input.ttl.unwrap_or(TTL_DEFAULT);
    if ttl > TTL_LONG {
        writing.signal(SignalCode::LongTtl, format!("{ttl} is long for a claim; it is renewed by your own activity"));
    }
    let mut told: Vec<&str> = Vec::new();
    for clash in clashes {
        let holder = clash.theirs.holder.as_str();
        if told.contains(&holder) {
            continue;
        }
        told.push(holder);
        let pattern = wanted.claims[clash.wanted].pattern.as_str();
        writing.signal_about(
            SignalCode::Contested,
            clash.theirs.id,
            format!("{holder} holds {} too, for example {}", clash.theirs.pattern, clash.example),
        );
        if is_silent(writing.ctx, &*writing.tx, &clash.theirs)? {
            writing.signal_about(
                SignalCode::HolderSilent,
                clash.theirs.id,
                format!("{holder} was not seen for ten minutes"),
            );
            let id = clash.theirs.id.to_string();
            writing.next.push(shell::line(&["relay", "release", "--id", &id, "--force", "--why", "WHY"]));
        } else {
            let thread = clash.theirs.reason.as_ref().map_or("NEW_THREAD", ThreadId::as_str);
            let subject = subject(writing.ctx.limits, pattern, clash.theirs.id);
            let mut line: Vec<String> = ["relay", "send", "--to", holder, "--thread", thread].map(str::to_owned).into();
            line.extend(shell::flag("--subject", &subject));
            line.extend(["--body", "-"].map(str::to_owned));
            writing.next.push(shell::line(&line));
        }
    }
    Ok(())
}

/// What two holders have to talk about: the pattern, unless no subject takes it.
fn subject(limits: &Limits, pattern: &str, theirs: Number) -> String {
    let subject = format!("{pattern}: both of us");
    let fits = subject.chars().count() <= limits.subject_chars && !subject.chars().any(char::is_control);
    if fits { subject } else { format!("#{theirs}: both of us") }
}

fn conflict(ctx: &Ctx<'_>, wanted: &Wanted, clashes: &[Clash]) -> Refusal {
    let first = &clashes[0];
    let rows: Vec<serde_json::Value> = clashes
        .iter()
        .take(CONFLICTS_SHOWN)
        .map(|clash| {
            serde_json::json!({"id": clash.theirs.id, "pattern": clash.theirs.pattern, "holder": clash.theirs.holder,
                "exclusive": clash.theirs.exclusive, "expires_at": clash.theirs.expires_at,
                "overlaps": wanted.claims[clash.wanted].pattern.as_str(), "example": clash.example})
        })
        .collect();
    let mut holders: Vec<&str> = clashes.iter().map(|clash| clash.theirs.holder.as_str()).collect();
    holders.sort_unstable();
    holders.dedup();
    let free_at = clashes.iter().map(|clash| clash.theirs.expires_at).min().unwrap_or(ctx.now);
    Code::FileReservationConflict
        .refuse(format!(
            "{} overlaps {} of {}: both match {}",
            wanted.claims[first.wanted].pattern.as_str(),
            first.theirs.pattern,
            first.theirs.holder,
            first.example
        ))
        .with("conflicts", rows)
        .with("conflicts_total", clashes.len())
        .with("holders", serde_json::json!(holders))
        .with("free_at", serde_json::json!(free_at))
}

/// What stands in the way of a claim that is wanted only where it is free.
fn obstacle(ctx: &Ctx<'_>, agent: &Agent, wanted: &Wanted, clashes: &[Clash], ticket: Option<u64>) -> Option<Refusal> {
    if !clashes.is_empty() {
        return Some(conflict(ctx, wanted, clashes));
    }
    ticket.and_then(|ticket| earlier_waiter(ctx, agent, wanted, ticket)).map(|earlier| behind(&earlier))
}

/// Somebody waits longer for one of the same paths.
fn earlier_waiter(ctx: &Ctx<'_>, agent: &Agent, wanted: &Wanted, ticket: u64) -> Option<Wait> {
    let me = Party::Agent(agent.name.clone());
    let meets = |theirs: &String| wanted.meets(theirs).is_ok_and(|met| !met.is_empty());
    let waits = ctx.store.presence().waits_of("reserve");
    waits.into_iter().find(|wait| wait.agent != me && wait.ticket < ticket && wait.patterns.iter().any(meets))
}

fn behind(earlier: &Wait) -> Refusal {
    Code::FileReservationConflict
        .refuse(format!("{} waits for {} already, and comes first", earlier.agent, earlier.patterns.join(" ")))
        .with("holders", serde_json::json!([earlier.agent.to_string()]))
}

/// Somebody who waits until everything wanted is free, first come first served.
struct InLine {
    input: Input,
    wanted: Wanted,
    place: Wait,
    announced: Box<dyn Guard>,
    /// What stood in the way at the last look.
    last: Refusal,
}

impl InLine {
    fn enter(ctx: &Ctx<'_>, input: Input, wanted: Wanted, last: Refusal) -> Result<Self> {
        let me = actor::acting(ctx, &*ctx.store.read()?)?.party();
        let mut place = wait::announcement(ctx, "reserve", me, holders(&last), wanted.texts());
        let (announced, ticket) = wait::enter(ctx, &place)?;
        place.ticket = ticket;
        Ok(InLine { input, wanted, place, announced, last })
    }

    /// A waiter looks before it asks: asking takes the gate, and that wakes every waiter, this one included.
    fn ask(&self, ctx: &Ctx<'_>) -> Result<Done> {
        match self.held(ctx)? {
            Some(refusal) => Err(refusal),
            None => claim(ctx, &self.input, &self.wanted, Some(self.place.ticket)),
        }
    }

    /// Why the claim would not be granted now.
    fn held(&self, ctx: &Ctx<'_>) -> Result<Option<Refusal>> {
        let facts = ctx.store.read()?;
        let actor = actor::acting(ctx, &*facts)?;
        let agent = actor.must_be_agent("hold reservations")?;
        let near = neighbours(&*facts, Some(agent), &self.wanted, ctx.now)?;
        let clashes = clashes(&*facts, Some(agent), &near, !self.input.shared, ctx.now)?;
        Ok(obstacle(ctx, agent, &self.wanted, &clashes, Some(self.place.ticket)))
    }
}

impl Waiter for InLine {
    fn look(&mut self, ctx: &Ctx<'_>) -> Result<Look> {
        match self.ask(ctx) {
            Err(refusal) if refusal.code == Code::FileReservationConflict => {
                self.place.for_whom = holders(&refusal);
                wait::change(ctx, &mut *self.announced, &self.place)?;
                let again_at = Some(free_at(ctx, &refusal));
                self.last = refusal;
                Ok(Look::NotYet { again_at })
            }
            asked => asked.map(Look::Ready),
        }
    }

    fn in_vain(&self, _: &Ctx<'_>, time: Span) -> Result<Done> {
        let refusal = Code::WaitTimeout
            .refuse(format!("not free within {time}: {}", self.last.message))
            .with("holders", self.last.details.get("holders").cloned().unwrap_or_default());
        Err(with_wish(refusal, &self.input, &self.wanted))
    }
}

/// Who stands in the way.
fn holders(refusal: &Refusal) -> Vec<Party> {
    let holders = refusal.details.get("holders").cloned().unwrap_or_default();
    serde_json::from_value(holders).unwrap_or_default()
}

/// When time alone may free the paths.
fn free_at(ctx: &Ctx<'_>, refusal: &Refusal) -> Timestamp {
    let told = refusal.details.get("free_at").and_then(|at| serde_json::from_value(at.clone()).ok());
    // Behind another waiter only its process's end may free the way, and that wakes nobody.
    told.unwrap_or_else(|| ctx.now.plus(Span::seconds(2)))
}
