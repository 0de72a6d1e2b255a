//! Contested claims: pairs of live claims that share a path. Each pair is told once per side until it changes.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Ctx;
use crate::domain::agent::Agent;
use crate::domain::event::{Number, Told};
use crate::domain::name::AgentName;
use crate::domain::pattern::Pattern;
use crate::domain::reservation::{self, Reservation};
use crate::domain::time::Timestamp;
use crate::store::{Facts, Result};
use crate::wire::v1::{ClaimShape, ContestedShape};

/// What an agent has not been told yet, and what will have been told once the answer is written out.
pub(super) struct News {
    pub contested: Vec<ContestedShape>,
    pub told: Vec<Told>,
    /// When time alone ends the next contest.
    pub changes_at: Option<Timestamp>,
}

/// More pairs than there are.
pub(super) const ALL: usize = 1_000_000_000;
/// Whoever looks is told of no more: two who claim the same a thousand times each make a million.
pub(super) const COUNTED: usize = 5_000;

/// An example is searched for anew at every look, and what that takes grows with the square of the patterns' length: two that
/// are longer together contest without one.
const BRIEF: usize = 200;

/// The pairs that contest each other now, seen from `agent`, of the first `among` that share a path.
pub(super) fn pairs(
    facts: &dyn Facts,
    agent: &Agent,
    now: Timestamp,
    among: usize,
) -> Result<Vec<(Reservation, Reservation)>> {
    let mut pairs = Vec::new();
    let mut strangers: HashMap<String, bool> = HashMap::new();
    for (mine, theirs) in facts.pairs(&agent.name, now, among)? {
        if mine.holder.same_as(&theirs.holder) || !mine.is_live(now) || !theirs.is_live(now) || !mine.contests(&theirs)
        {
            continue;
        }
        let key = theirs.holder.key();
        let stranger = match strangers.get(&key) {
            Some(known) => *known,
            None => facts.agent(&theirs.holder)?.is_some_and(|other| !agent.shares_claims_with(&other)),
        };
        strangers.insert(key, stranger);
        if stranger {
            pairs.push((mine, theirs));
        }
    }
    Ok(pairs)
}

/// Which of these claims are contested now.
pub(super) fn of(facts: &dyn Facts, claims: &[ClaimShape], now: Timestamp) -> Result<Vec<Number>> {
    let holders: BTreeSet<&str> = claims.iter().map(|claim| claim.holder.as_str()).collect();
    let mut contested = HashSet::new();
    for holder in holders {
        if let Some(agent) = facts.agent(&AgentName::parse(holder)?)? {
            contested.extend(pairs(facts, &agent, now, COUNTED)?.iter().map(|(mine, _)| mine.id));
        }
    }
    Ok(claims.iter().map(|claim| claim.id).filter(|id| contested.contains(id)).collect())
}

pub(super) fn news(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent, now: Timestamp) -> Result<News> {
    let current = pairs(facts, agent, now, ALL)?;
    let told = facts.told(&agent.name)?;
    let known: HashSet<(Number, Number, &str)> =
        told.iter().map(|pair| (pair.mine, pair.theirs, pair.mark.as_str())).collect();
    let standing: HashSet<(Number, Number)> = current.iter().map(|(mine, theirs)| (mine.id, theirs.id)).collect();
    let mut news = News { contested: Vec::new(), told: Vec::new(), changes_at: None };
    for (mine, theirs) in &current {
        let ends = mine.expires_at.min(theirs.expires_at);
        news.changes_at = Some(news.changes_at.map_or(ends, |at| at.min(ends)));
        let mark = reservation::mark(mine.exclusive, theirs.exclusive, theirs.generation);
        if !known.contains(&(mine.id, theirs.id, mark.as_str())) {
            news.contested.push(shape(ctx, mine, theirs, false));
            news.told.push(Told { mine: mine.id, theirs: theirs.id, mark });
        }
    }
    for pair in told.iter().filter(|pair| pair.mark != reservation::ENDED) {
        if standing.contains(&(pair.mine, pair.theirs)) {
            continue;
        }
        if let (Some(mine), Some(theirs)) = (facts.claim(pair.mine)?, facts.claim(pair.theirs)?)
            && mine.holder.same_as(&agent.name)
        {
            // What I gave up myself is no news to me, and no longer among what I was told; what expired is.
            news.contested.push(shape(ctx, &mine, &theirs, true));
            news.told.push(Told { mark: reservation::ENDED.to_owned(), ..pair.clone() });
        }
    }
    Ok(news)
}

fn shape(ctx: &Ctx<'_>, mine: &Reservation, theirs: &Reservation, ended: bool) -> ContestedShape {
    ContestedShape {
        mine: mine.id,
        pattern: mine.pattern.clone(),
        id: theirs.id,
        holder: theirs.holder.to_string(),
        overlaps: theirs.pattern.clone(),
        exclusive: theirs.exclusive,
        example: if ended { None } else { example(ctx, &mine.pattern, &theirs.pattern) },
        ended,
    }
}

/// A path that both patterns match, where it is quickly found.
pub(super) fn brief_example(ctx: &Ctx<'_>, one: &str, other: &str) -> Option<String> {
    if one.len() + other.len() > BRIEF { None } else { example(ctx, one, other) }
}

/// A path that both patterns match.
pub(super) fn example(ctx: &Ctx<'_>, one: &str, other: &str) -> Option<String> {
    let case = ctx.repository.case();
    let one = Pattern::from_canonical(one).ok()?.compile(case);
    let other = Pattern::from_canonical(other).ok()?.compile(case);
    one.overlap(&other)
}
