//! Waiting for somebody: announced and checked under the gate, so that no two waits can close a ring unseen.

use std::ops::ControlFlow;

use serde_json::json;

use super::super::Ctx;
use super::{Deadline, announcement, until};
use crate::domain::name::{Party, ProjectKey};
use crate::domain::time::Span;
use crate::error::Code;
use crate::store::{Errand, Guard, Result, Tx, Wait};

/// Those in a ring may have been woken and not have looked yet. A ring that lasts longer than this stays.
const PASSING_RING: Span = Span::seconds(2);
const RING_LOOK: Span = Span::millis(20);

/// Announces a wait and draws its ticket, or refuses it when those waited for already wait for the caller.
pub(in crate::verbs) fn enter(ctx: &Ctx<'_>, wait: &Wait) -> Result<(Box<dyn Guard>, u64)> {
    let agent = wait.agent.to_string();
    let gate =
        ctx.store.begin(Errand { verb: &wait.verb, agent: &agent, wait: ctx.limits.gate_wait, durable: false })?;
    let presence = ctx.store.presence();
    let ticket = presence.waits().iter().map(|other| other.ticket).max().unwrap_or(0) + 1;
    let wait = Wait { ticket, ..wait.clone() };
    let guard = presence.enter(&wait)?;
    close_no_ring(ctx, gate, &wait)?;
    Ok((guard, ticket))
}

/// Announces that a wait is for others now, or refuses it as it would a new one.
pub(in crate::verbs) fn change(ctx: &Ctx<'_>, guard: &mut dyn Guard, wait: &Wait) -> Result<()> {
    let is_the_same = |other: &Wait| is_one(other, wait) && other.for_whom == wait.for_whom;
    if ctx.store.presence().waits().iter().any(is_the_same) {
        return Ok(());
    }
    let agent = wait.agent.to_string();
    let gate =
        ctx.store.begin(Errand { verb: &wait.verb, agent: &agent, wait: ctx.limits.gate_wait, durable: false })?;
    guard.update(wait);
    close_no_ring(ctx, gate, wait)
}

fn is_one(one: &Wait, other: &Wait) -> bool {
    one.pid == other.pid && one.ticket == other.ticket
}

/// Looks after the wait was announced: a ring through another project, which has a gate of its own, is then seen by
/// the one that closes it, whoever that is. The waits of this project are those of the moment in which the gate was
/// held; whoever comes later looks for itself. Other projects are looked at after it was given up, since opening one may
/// take its gate.
fn close_no_ring<'a>(ctx: &'a Ctx<'a>, gate: Box<dyn Tx + 'a>, wait: &Wait) -> Result<()> {
    let closed = |here: &[Wait]| ring(|party| awaited(ctx, here, wait, party), &wait.agent, &wait.for_whom);
    let here = ctx.store.presence().waits();
    drop(gate);
    if closed(&here).is_none() {
        return Ok(());
    }
    let deadline = Deadline::after(ctx, PASSING_RING);
    let lasting = until(ctx, || {
        Ok(match closed(&ctx.store.presence().waits()) {
            Some(_) if !deadline.is_over(ctx.clock) => ControlFlow::Continue(RING_LOOK),
            ended => ControlFlow::Break(ended),
        })
    })?;
    let Some(ring) = lasting else {
        return Ok(());
    };
    let names: Vec<String> = ring.iter().map(ToString::to_string).collect();
    Err(Code::WaitCycle
        .refuse(format!("waiting would close a ring: {}", names.join(" waits for ")))
        .with("ring", json!(names)))
}

/// Whether one of these waits for `me`, directly or through others.
pub(in crate::verbs) fn is_awaited(ctx: &Ctx<'_>, me: &Party, by: Vec<Party>) -> bool {
    let own = announcement(ctx, "recover", me.clone(), by, Vec::new());
    let here = ctx.store.presence().waits();
    ring(|party| awaited(ctx, &here, &own, party), me, &own.for_whom).is_some()
}

/// Those whom `party` waits for, `own` wait aside, as this project writes them.
fn awaited(ctx: &Ctx<'_>, here: &[Wait], own: &Wait, party: &Party) -> Vec<Party> {
    let Party::Elsewhere(name, project) = party else {
        let others = here.iter().filter(|wait| !is_one(wait, own) && wait.agent == *party);
        return others.flat_map(|wait| wait.for_whom.clone()).collect();
    };
    // A project that cannot be opened now lets nobody wait there either.
    let Ok(Some((_, store))) = ctx.bus.open(project) else {
        return Vec::new();
    };
    let there = store.presence().waits().into_iter().filter(|wait| wait.agent.is(name));
    there.flat_map(|wait| wait.for_whom).map(|party| from_elsewhere(party, project, &ctx.project)).collect()
}

/// A party as `there` writes it, as `here` does.
fn from_elsewhere(party: Party, there: &ProjectKey, here: &ProjectKey) -> Party {
    match party {
        Party::Agent(name) => Party::Elsewhere(name, there.clone()),
        Party::Elsewhere(name, project) if project == *here => Party::Agent(name),
        other => other,
    }
}

/// The ring that `me` waiting for `targets` would close: me, …, me.
fn ring(awaited: impl Fn(&Party) -> Vec<Party>, me: &Party, targets: &[Party]) -> Option<Vec<Party>> {
    let mut trails: Vec<Vec<Party>> = targets.iter().map(|target| vec![me.clone(), target.clone()]).collect();
    let mut visited: Vec<Party> = Vec::new();
    while let Some(trail) = trails.pop() {
        let last = trail.last()?.clone();
        if last == *me {
            return Some(trail);
        }
        if visited.contains(&last) {
            continue;
        }
        for next in awaited(&last) {
            let mut longer = trail.clone();
            longer.push(next);
            trails.push(longer);
        }
        visited.push(last);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::AgentName;

    fn party(name: &str) -> Party {
        Party::Agent(AgentName::parse(name).unwrap_or_else(|fault| panic!("{fault}")))
    }

    fn check(edges: &[(&str, &[&str])], me: &str, targets: &[&str], expected: Option<&[&str]>) {
        let parties = |names: &[&str]| names.iter().map(|name| party(name)).collect::<Vec<_>>();
        let awaited = |of: &Party| {
            let own = edges.iter().filter(|(from, _)| party(from) == *of);
            own.flat_map(|(_, to)| parties(to)).collect()
        };
        assert_eq!(ring(awaited, &party(me), &parties(targets)), expected.map(parties), "{edges:?} {me}");
    }

    #[test]
    fn a_wait_that_closes_a_ring_is_named_in_full() {
        check(&[], "Aa", &["Bb"], None);
        check(&[("Bb", &["Cc"])], "Aa", &["Bb"], None);
        check(&[("Bb", &["Aa"])], "Aa", &["Bb"], Some(&["Aa", "Bb", "Aa"]));
        check(&[("Bb", &["Cc"]), ("Cc", &["Aa"])], "Aa", &["Bb"], Some(&["Aa", "Bb", "Cc", "Aa"]));
        check(&[("Bb", &["Cc"]), ("Cc", &["Bb"])], "Aa", &["Bb"], None);
        check(&[("Bb", &["Cc", "Aa"])], "Aa", &["Dd", "Bb"], Some(&["Aa", "Bb", "Aa"]));
    }
}
