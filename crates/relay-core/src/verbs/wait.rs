//! Waiting for somebody: announced and checked under the gate, so that no two waits can close a ring unseen.

use serde_json::json;

use super::Ctx;
use crate::domain::name::Party;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{Errand, Guard, Result, Wait};

/// A waiter looks again after this long even when nothing woke it.
const SAFETY_LOOK: Span = Span::seconds(30);

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
    let waits = ctx.store.presence().waits();
    close_no_ring(&waits, wait)?;
    let ticket = waits.iter().map(|other| other.ticket).max().unwrap_or(0) + 1;
    let guard = ctx.store.presence().enter(&Wait { ticket, ..wait.clone() })?;
    drop(gate);
    Ok((guard, ticket))
}

/// Announces that a wait is for others now, or refuses it as it would a new one.
pub(super) fn change(ctx: &Ctx<'_>, guard: &mut dyn Guard, wait: &Wait) -> Result<()> {
    let is_own = |other: &Wait| other.pid == wait.pid && other.ticket == wait.ticket;
    let is_the_same = |other: &Wait| is_own(other) && other.for_whom == wait.for_whom;
    if ctx.store.presence().waits().iter().any(is_the_same) {
        return Ok(());
    }
    let agent = wait.agent.to_string();
    let _gate =
        ctx.store.begin(Errand { verb: &wait.verb, agent: &agent, wait: ctx.limits.gate_wait, durable: false })?;
    let others: Vec<Wait> = ctx.store.presence().waits().into_iter().filter(|other| !is_own(other)).collect();
    close_no_ring(&others, wait)?;
    guard.update(wait);
    Ok(())
}

fn close_no_ring(waits: &[Wait], wait: &Wait) -> Result<()> {
    let Some(ring) = ring(waits, &wait.agent, &wait.for_whom) else {
        return Ok(());
    };
    let names: Vec<String> = ring.iter().map(ToString::to_string).collect();
    Err(Code::WaitCycle
        .refuse(format!("waiting would close a ring: {}", names.join(" waits for ")))
        .with("ring", json!(names)))
}

/// The ring that `me` waiting for `targets` would close: me, …, me.
fn ring(waits: &[Wait], me: &Party, targets: &[Party]) -> Option<Vec<Party>> {
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
        visited.push(last.clone());
        for wait in waits.iter().filter(|wait| wait.agent == last) {
            for next in &wait.for_whom {
                let mut longer = trail.clone();
                longer.push(next.clone());
                trails.push(longer);
            }
        }
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

    fn waits(edges: &[(&str, &[&str])]) -> Vec<Wait> {
        let wait = |(from, to): &(&str, &[&str])| Wait {
            agent: party(from),
            verb: "poll".into(),
            pid: 1,
            ticket: 1,
            for_whom: to.iter().map(|name| party(name)).collect(),
            patterns: Vec::new(),
        };
        edges.iter().map(wait).collect()
    }

    fn check(edges: &[(&str, &[&str])], me: &str, targets: &[&str], expected: Option<&[&str]>) {
        let targets: Vec<Party> = targets.iter().map(|name| party(name)).collect();
        let found = ring(&waits(edges), &party(me), &targets);
        let expected = expected.map(|names| names.iter().map(|name| party(name)).collect::<Vec<_>>());
        assert_eq!(found, expected, "{edges:?} {me}");
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
