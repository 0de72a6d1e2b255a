//! Waiting for somebody: announced and checked under the gate, so that no two waits can close a ring unseen.

use serde_json::json;

use super::Ctx;
use crate::domain::name::{Party, ProjectKey};
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{Errand, Guard, Result, Tx, Wait};

/// A waiter looks again after this long even when nothing woke it.
const SAFETY_LOOK: Span = Span::seconds(30);

/// Those in a ring may have been woken and not have looked yet. A ring that lasts longer than this stays.
const PASSING_RING: Span = Span::seconds(2);
const RING_LOOK: Span = Span::millis(20);

pub(super) enum Look<T> {
    Ready(T),
    /// Nothing yet; time alone may change that at `again_at`.
    NotYet {
        again_at: Option<Timestamp>,
    },
}

pub fn announcement(ctx: &Ctx<'_>, verb: &str, agent: Party, for_whom: Vec<Party>, patterns: Vec<String>) -> Wait {
    Wait { agent, verb: verb.to_owned(), pid: ctx.pid, ticket: 0, for_whom, patterns }
}

/// Announces a wait and draws its ticket, or refuses it when those waited for already wait for the caller.
pub(super) fn enter(ctx: &Ctx<'_>, wait: &Wait) -> Result<(Box<dyn Guard>, u64)> {
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
pub(super) fn change(ctx: &Ctx<'_>, guard: &mut dyn Guard, wait: &Wait) -> Result<()> {
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
    let Some(mut ring) = closed(&here) else {
        return Ok(());
    };
    let passed = until(ctx, PASSING_RING, |now| {
        Ok(match closed(&ctx.store.presence().waits()) {
            None => Look::Ready(()),
            Some(still) => {
                ring = still;
                Look::NotYet { again_at: Some(now.plus(RING_LOOK)) }
            }
        })
    })?;
    if passed.is_some() {
        return Ok(());
    }
    let names: Vec<String> = ring.iter().map(ToString::to_string).collect();
    Err(Code::WaitCycle
        .refuse(format!("waiting would close a ring: {}", names.join(" waits for ")))
        .with("ring", json!(names)))
}

/// Whether one of these waits for `me`, directly or through others.
pub(super) fn is_awaited(ctx: &Ctx<'_>, me: &Party, by: Vec<Party>) -> bool {
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

/// Looks until something is ready or the time is over. The watch is armed before the first look: nothing is missed.
pub(super) fn until<T>(
    ctx: &Ctx<'_>,
    time: Span,
    mut look: impl FnMut(Timestamp) -> Result<Look<T>>,
) -> Result<Option<T>> {
    let deadline = Span::millis(ctx.clock.monotonic().as_millis().saturating_add(time.as_millis().max(0)));
    let mut watch = ctx.store.watch()?;
    loop {
        let now = ctx.clock.now();
        let again_at = match look(now)? {
            Look::Ready(found) => return Ok(Some(found)),
            Look::NotYet { again_at } => again_at,
        };
        let left = deadline.as_millis() - ctx.clock.monotonic().as_millis();
        if left <= 0 {
            return Ok(None);
        }
        let until_again = again_at.map_or(i64::MAX, |at| at.since(now).as_millis().max(1));
        watch.wait(Span::millis(left.min(until_again).min(SAFETY_LOOK.as_millis())))?;
    }
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
