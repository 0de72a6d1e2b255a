//! The claims as they stood after an event, and which of them were contested, told from the history alone.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Looking;
use super::events::STEP;
use super::filter::{CLAIMS, Touching};
use crate::domain::event::{Event, Happened, Number};
use crate::domain::holding::{Holding, Holdings};
use crate::domain::limits::TTL_MAX;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{EventQuery, Result};
use crate::wire::v1::ClaimShape;

/// A claim lives no longer than a day after it was granted or renewed, and clocks differ by a little: whatever was held at a
/// moment has an event in the time before it.
const LIFE: Span = Span::millis(TTL_MAX.as_millis() + 10 * 60_000);
/// Events further back than this are not looked at, however short the time was in which they happened.
const REACH: Number = 200_000;

/// What was held then of what was asked for, and which of all claims were contested.
pub(super) fn claims(
    looking: &Looking<'_>,
    at: Number,
    path: Option<&str>,
) -> Result<(Vec<ClaimShape>, BTreeSet<Number>)> {
    let found = looking.facts.events(&EventQuery::between(at.saturating_sub(1), at))?;
    let Some(moment) = found.first().map(|event| event.payload.at) else {
        let tip = looking.facts.tip()?.number;
        return Err(Code::InputInvalid.refuse(format!("there is no event #{at}; the newest is #{tip}")));
    };
    let touching = path.map(|path| Touching::new(looking, path)).transpose()?;
    let is_wanted = |held: &&Holding| touching.as_ref().is_none_or(|touching| touching.touches(&held.pattern));
    let (mut following, mut met) = (Holdings::default(), Vec::new());
    for event in relevant(looking, at, moment)? {
        // What a claim is contested by need not be what was asked for.
        following.follow(&event, |_| true);
        if let Happened::ReservationGranted { overlaps, .. } = &event.payload.what {
            met.extend(overlaps.iter().map(|other| (event.number, *other)));
        }
    }
    let held: BTreeMap<Number, Holding> =
        following.finish().filter(|held| held.meets(moment, moment)).map(|held| (held.id, held)).collect();
    let contested = contested(looking, &held, &met)?;
    Ok((held.values().filter(is_wanted).map(shape).collect(), contested))
}

/// Of claims that shared a path when one of them was granted, those whose holders contested each other then. Who is whose
/// subagent is as it stands now.
fn contested(
    looking: &Looking<'_>,
    held: &BTreeMap<Number, Holding>,
    met: &[(Number, Number)],
) -> Result<BTreeSet<Number>> {
    let is_of_two =
        |(one, other): &(&Holding, &Holding)| !one.holder.same_as(&other.holder) && (one.exclusive || other.exclusive);
    let pairs = met.iter().filter_map(|(one, other)| held.get(one).zip(held.get(other)));
    let pairs: Vec<(&Holding, &Holding)> = pairs.filter(is_of_two).collect();
    let mut holders = HashMap::new();
    for claim in pairs.iter().flat_map(|(one, other)| [one, other]) {
        if let Entry::Vacant(holder) = holders.entry(claim.holder.key()) {
            holder.insert(looking.facts.agent(&claim.holder)?);
        }
    }
    let holder = |claim: &Holding| holders.get(&claim.holder.key()).and_then(Option::as_ref);
    let are_strangers = |(one, other): &&(&Holding, &Holding)| {
        holder(one).zip(holder(other)).is_some_and(|(one, other)| !one.shares_claims_with(other))
    };
    Ok(pairs.iter().filter(are_strangers).flat_map(|(one, other)| [one.id, other.id]).collect())
}

/// The events that tell what was held, oldest first: those of a day, and the earlier ones of what was renewed in it.
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
    let mut earlier = earlier(looking, &events, last)?;
    earlier.append(&mut events);
    Ok(earlier)
}

/// What happened up to a number to the claims that events after it are about: the grant, and for one that was ever taken over
/// everything since. Of the others the events of a day say all the rest.
fn earlier(looking: &Looking<'_>, events: &[Event], number: Number) -> Result<Vec<Event>> {
    let about = events.iter().flat_map(|event| event.payload.what.claims());
    let claims: BTreeSet<Number> = about.filter(|id| *id <= number).collect();
    let (mut earlier, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for id in claims {
        let grant = looking.facts.events(&EventQuery::between(id - 1, id))?;
        earlier.extend(grant.into_iter().map(|event| (event.number, event)));
        if looking.facts.claim(id)?.is_some_and(|claim| claim.generation > 0) {
            taken.insert(id);
        }
    }
    // All that were taken over are followed at once, from the oldest on.
    let mut last = number;
    while let Some(oldest) = taken.first().filter(|oldest| **oldest < last) {
        let from = last.saturating_sub(STEP.into()).max(*oldest);
        let stretch = looking.facts.events(&EventQuery { kinds: &CLAIMS, ..EventQuery::between(from, last) })?;
        let is_about = |event: &Event| event.payload.what.claims().iter().any(|id| taken.contains(id));
        earlier.extend(stretch.into_iter().filter(is_about).map(|event| (event.number, event)));
        last = from;
    }
    Ok(earlier.into_values().collect())
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
