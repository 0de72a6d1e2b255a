//! The claims as they stood after an event, told from the history alone.

use std::collections::BTreeMap;

use super::Looking;
use super::events::STEP;
use super::filter::{CLAIMS, Touching};
use crate::domain::event::{Event, Happened, Number};
use crate::domain::holding::{Holding, Holdings};
use crate::domain::limits::TTL_MAX;
use crate::domain::name::AgentName;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{EventQuery, Result};
use crate::wire::v1::ClaimShape;

/// A claim lives no longer than a day after it was granted or renewed, and clocks differ by a little: whatever was held at a
/// moment has an event in the time before it.
const LIFE: Span = Span::millis(TTL_MAX.as_millis() + 10 * 60_000);
/// Events further back than this are not looked at, however short the time was in which they happened.
const REACH: Number = 200_000;

pub(super) fn claims(looking: &Looking<'_>, at: Number, path: Option<&str>) -> Result<Vec<ClaimShape>> {
    let found = looking.facts.events(&EventQuery::between(at.saturating_sub(1), at))?;
    let Some(moment) = found.first().map(|event| event.payload.at) else {
        let tip = looking.facts.tip()?.number;
        return Err(Code::InputInvalid.refuse(format!("there is no event #{at}; the newest is #{tip}")));
    };
    let touching = path.map(|path| Touching::new(looking, path)).transpose()?;
    let is_wanted = |held: &Holding| touching.as_ref().is_none_or(|touching| touching.touches(&held.pattern));
    let mut following = Holdings::default();
    for event in relevant(looking, at, moment)? {
        following.follow(&event, is_wanted);
    }
    Ok(following.finish().filter(|held| held.meets(moment, moment)).map(|held| shape(&held)).collect())
}

/// The events that tell what was held, oldest first: those of a day, and the grants of what was renewed in it.
fn relevant(looking: &Looking<'_>, at: Number, moment: Timestamp) -> Result<Vec<Event>> {
    let since = moment.minus(LIFE);
    let (mut stretches, mut last) = (Vec::new(), at);
    while last > at.saturating_sub(REACH) {
        let from = last.saturating_sub(STEP.into());
        let stretch = looking.facts.events(&EventQuery { kinds: &CLAIMS, ..EventQuery::between(from, last) })?;
        let first = looking.facts.events(&EventQuery::between(from, from + 1))?;
        stretches.push(stretch);
        last = from;
        if first.first().is_none_or(|event| event.payload.at < since) {
            break;
        }
    }
    let mut events: Vec<Event> = stretches.into_iter().rev().flatten().collect();
    let mut older = granted_before(looking, &events, last)?;
    older.append(&mut events);
    Ok(older)
}

/// The grants from before a number of claims that events after it are about. Whoever changes a claim then is its holder, also
/// where that one had taken it over in between.
fn granted_before(looking: &Looking<'_>, events: &[Event], number: Number) -> Result<Vec<Event>> {
    let mut holders: BTreeMap<Number, &AgentName> = BTreeMap::new();
    for event in events {
        let what = &event.payload.what;
        let (Happened::ReservationRenewed { agent: holder, .. }
        | Happened::ReservationReleased { agent: holder, .. }
        | Happened::ReservationTaken { from: holder, .. }) = what
        else {
            continue;
        };
        for id in what.claims().into_iter().filter(|id| *id <= number) {
            holders.entry(id).or_insert(holder);
        }
    }
    let mut grants = Vec::new();
    for (id, holder) in holders {
        for mut grant in looking.facts.events(&EventQuery::between(id - 1, id))? {
            if let Happened::ReservationGranted { agent, .. } = &mut grant.payload.what {
                agent.clone_from(holder);
            }
            grants.push(grant);
        }
    }
    Ok(grants)
}

fn shape(held: &Holding) -> ClaimShape {
    ClaimShape {
        id: held.id,
        pattern: held.pattern.clone(),
        holder: held.holder.to_string(),
        exclusive: held.exclusive,
        expires_at: held.until,
        reason: held.reason.as_ref().map(ToString::to_string),
        generation: held.generation,
    }
}
