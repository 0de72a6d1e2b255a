//! `release --force`: takes claims from a dead holder, and tells it why (I8).

use std::collections::HashMap;

use super::actor;
use super::post::{self, Notice};
use super::release::{Input, Outcome, Released, add};
use super::writing::Writing;
use crate::domain::delivery::Line;
use crate::domain::event::Happened;
use crate::domain::name::{AgentName, Party, ThreadId};
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::error::Code;
use crate::store::Result;
use crate::wire::v1::ClaimShape;

/// How many claims a notice names.
const NAMED: usize = 20;

/// Takes claims whose holder is silent and has no live process; the human always may.
pub(super) fn take_over(writing: &mut Writing<'_>, input: &Input, patterns: &[Pattern]) -> Result<Outcome> {
    let why = input.why.clone().unwrap_or_default();
    let mut outcome = Outcome::default();
    let targets = targets(writing, input, patterns)?;
    for claim in &targets {
        take(writing, claim, &why, &mut outcome)?;
    }
    tell(writing, &targets, &why)?;
    Ok(outcome)
}

fn targets(writing: &Writing<'_>, input: &Input, patterns: &[Pattern]) -> Result<Vec<Reservation>> {
    let now = writing.ctx.now;
    let mut targets: Vec<Reservation> = Vec::new();
    for id in &input.id {
        let claim = writing.tx.claim(*id)?.filter(|claim| claim.is_live(now));
        add(
            &mut targets,
            claim.ok_or_else(|| {
                Code::ReservationNotHeld.refuse(format!("#{id} is not a live claim")).with("what", format!("#{id}"))
            })?,
        );
    }
    let me = writing.actor.party();
    let mut others: HashMap<String, Vec<Reservation>> = HashMap::new();
    let all = if patterns.is_empty() { Vec::new() } else { writing.tx.claims()? };
    for claim in all.into_iter().filter(|claim| claim.is_live(now) && !me.is(&claim.holder)) {
        others.entry(claim.pattern.clone()).or_default().push(claim);
    }
    for pattern in patterns {
        let Some(live) = others.get(pattern.as_str()) else {
            return Err(Code::ReservationNotHeld
                .refuse(format!("nobody else holds {}", pattern.as_str()))
                .with("what", pattern.as_str()));
        };
        live.iter().for_each(|claim| add(&mut targets, claim.clone()));
    }
    Ok(targets)
}

fn take(writing: &mut Writing<'_>, claim: &Reservation, why: &str, outcome: &mut Outcome) -> Result<()> {
    let me = writing.actor.party();
    if me.is(&claim.holder) {
        return Err(Code::InputInvalid.refuse(format!("#{} is your own; release it without --force", claim.id)));
    }
    let holder = writing.tx.agent(&claim.holder)?;
    let is_alive = holder.is_some_and(|holder| actor::alive(writing.ctx, &holder));
    if is_alive && me != Party::Human {
        return Err(Code::HolderAlive
            .refuse(format!("{} is alive and holds #{} {}", claim.holder, claim.id, claim.pattern))
            .with("holder", claim.holder.as_str())
            .with("id", claim.id)
            .with("pattern", claim.pattern.as_str()));
    }
    let texts = vec![writing.text("why", why)];
    let (generation, expires_at) = (claim.generation + 1, writing.ctx.now.plus(claim.ttl));
    let what = Happened::ReservationTaken {
        id: claim.id,
        from: claim.holder.clone(),
        by: me.clone(),
        generation,
        expires_at,
        why: texts[0].hash(),
    };
    writing.append(what, texts)?;
    if me == Party::Human {
        // The human works on no files: what the human takes is free.
        outcome.released.push(Released::from(claim));
    } else {
        outcome.taken.push(ClaimShape { holder: me.to_string(), generation, expires_at, ..ClaimShape::from(claim) });
    }
    Ok(())
}

/// Tells each holder what it lost, to whom and why: one notice, however many claims.
fn tell(writing: &mut Writing<'_>, taken: &[Reservation], why: &str) -> Result<()> {
    let mut holders: Vec<&AgentName> = Vec::new();
    for claim in taken {
        if !holders.contains(&&claim.holder) {
            holders.push(&claim.holder);
        }
    }
    for holder in holders {
        let lost: Vec<&Reservation> = taken.iter().filter(|claim| claim.holder == *holder).collect();
        let notice = Notice {
            thread: place(writing, &lost)?,
            reply_to: None,
            to: &Party::Agent(holder.clone()),
            line: Line::To,
            subject: &subject(&lost),
            body: &body(writing.actor.agent().map(|agent| &agent.name), &lost, why),
        };
        post::notice(writing, &notice)?;
    }
    Ok(())
}

/// The thread that a lost claim was for, where people talk in it; a notice opens or reopens nobody's.
fn place(writing: &Writing<'_>, lost: &[&Reservation]) -> Result<ThreadId> {
    for reason in lost.iter().filter_map(|claim| claim.reason.as_ref()) {
        let thread = post::thread(writing, reason)?.filter(|thread| !thread.done && thread.subject.is_some());
        if let Some(thread) = thread {
            return Ok(thread.id);
        }
    }
    post::fresh_thread(writing)
}

fn subject(lost: &[&Reservation]) -> String {
    let first = lost.first().map_or(0, |claim| claim.id);
    match lost.len() {
        0 | 1 => format!("No longer yours: #{first}"),
        count => format!("No longer yours: #{first} and {} more", count - 1),
    }
}

/// The reason is what somebody else wrote: quoted, line by line.
fn body(taker: Option<&AgentName>, lost: &[&Reservation], why: &str) -> String {
    let (what, whose) = match taker {
        Some(taker) => (format!("{taker} took over what you held:"), taker.to_string()),
        None => ("The human released what you held:".to_owned(), "the human".to_owned()),
    };
    let mut lines = vec![what, String::new()];
    lines.extend(lost.iter().take(NAMED).map(|claim| format!("- #{} {}", claim.id, claim.pattern)));
    if lost.len() > NAMED {
        lines.push(format!("- and {} more", lost.len() - NAMED));
    }
    lines.extend([String::new(), format!("The reason that {whose} gave:"), String::new()]);
    lines.extend(why.lines().map(|line| format!("> {line}")));
    lines.join("\n")
}
