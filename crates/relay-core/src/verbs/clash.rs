//! Where the live claims of others stand in the way of paths: of a claim that is wanted, an edit that is about to happen, a
//! commit that is about to be made.

use std::collections::HashMap;
use std::rc::Rc;

use super::wanted::Wanted;
use super::{Ctx, actor};
use crate::domain::agent::Agent;
use crate::domain::reservation::Reservation;
use crate::domain::time::Timestamp;
use crate::store::{Facts, Result};
use crate::wire::v1::ConflictShape;

/// Somebody else's live claim that shares a path with a wanted one.
pub(super) struct Clash {
    pub theirs: Rc<Reservation>,
    pub wanted: usize,
    pub example: String,
}

/// For each wanted claim the live claims that share a path with it, whoever holds them, with an example.
pub(super) type Neighbours = Vec<Vec<(Rc<Reservation>, String)>>;

pub(super) fn neighbours(facts: &dyn Facts, me: Option<&Agent>, wanted: &Wanted, now: Timestamp) -> Result<Neighbours> {
    let mut all: Neighbours = vec![Vec::new(); wanted.claims.len()];
    for other in facts.claims_near(&wanted.prefixes())?.into_iter().filter(|other| other.is_live(now)).map(Rc::new) {
        let is_own = me.is_some_and(|me| other.holder.same_as(&me.name));
        for met in wanted.meets(&other.pattern)?.iter() {
            // The same claim again, which is renewed.
            if !is_own || other.pattern != wanted.claims[met.wanted].pattern.as_str() {
                all[met.wanted].push((Rc::clone(&other), met.example.clone()));
            }
        }
    }
    Ok(all)
}

/// Those of them that others hold: to nobody in particular everybody is another.
pub(super) fn clashes(
    facts: &dyn Facts,
    me: Option<&Agent>,
    near: &Neighbours,
    exclusive: bool,
    now: Timestamp,
) -> Result<Vec<Clash>> {
    let mut shares: HashMap<String, bool> = HashMap::new();
    let mut clashes = Vec::new();
    for (wanted, near) in near.iter().enumerate() {
        for (theirs, example) in near {
            let is_own = me.is_some_and(|me| theirs.holder.same_as(&me.name));
            if !(exclusive || theirs.exclusive) || is_own || !theirs.is_live(now) {
                continue;
            }
            let key = theirs.holder.key();
            let shared = match (shares.get(&key), me) {
                (Some(known), _) => *known,
                (None, Some(me)) => facts.agent(&theirs.holder)?.is_some_and(|other| me.shares_claims_with(&other)),
                (None, None) => false,
            };
            shares.insert(key, shared);
            if !shared {
                clashes.push(Clash { theirs: Rc::clone(theirs), wanted, example: example.clone() });
            }
        }
    }
    Ok(clashes)
}

/// The live claims that others hold on any of these paths, whose characters mean themselves. A path that is not of the
/// project is nobody's.
pub(super) fn on_paths(
    ctx: &Ctx<'_>,
    facts: &dyn Facts,
    me: Option<&Agent>,
    paths: &[String],
) -> Result<Vec<ConflictShape>> {
    let wanted = Wanted::of_paths(ctx, paths);
    let near = neighbours(facts, me, &wanted, ctx.now)?;
    let clashes = clashes(facts, me, &near, true, ctx.now)?;
    // Ten thousand claims have few holders.
    let mut silent: HashMap<String, bool> = HashMap::new();
    let mut shapes = Vec::with_capacity(clashes.len());
    for clash in &clashes {
        let key = clash.theirs.holder.key();
        let known = silent.get(&key).copied();
        let is_silent = known.map_or_else(|| is_silent(ctx, facts, &clash.theirs), Ok)?;
        silent.insert(key, is_silent);
        shapes.push(shaped(&wanted, clash, is_silent));
    }
    Ok(shapes)
}

pub(super) fn is_silent(ctx: &Ctx<'_>, facts: &dyn Facts, claim: &Reservation) -> Result<bool> {
    Ok(facts.agent(&claim.holder)?.is_some_and(|holder| !actor::alive(ctx, &holder)))
}

pub(super) fn shape(ctx: &Ctx<'_>, facts: &dyn Facts, wanted: &Wanted, clash: &Clash) -> Result<ConflictShape> {
    Ok(shaped(wanted, clash, is_silent(ctx, facts, &clash.theirs)?))
}

fn shaped(wanted: &Wanted, clash: &Clash, silent: bool) -> ConflictShape {
    met(&clash.theirs, wanted.claims[clash.wanted].pattern.as_str(), &clash.example, silent)
}

/// Somebody's claim, the pattern that it was found to meet, and a path that both match.
pub(super) fn found(
    ctx: &Ctx<'_>,
    facts: &dyn Facts,
    claim: &Reservation,
    overlaps: &str,
    example: &str,
) -> Result<ConflictShape> {
    Ok(met(claim, overlaps, example, is_silent(ctx, facts, claim)?))
}

fn met(claim: &Reservation, overlaps: &str, example: &str, silent: bool) -> ConflictShape {
    ConflictShape {
        id: claim.id,
        pattern: claim.pattern.clone(),
        holder: claim.holder.to_string(),
        exclusive: claim.exclusive,
        expires_at: claim.expires_at,
        overlaps: overlaps.to_owned(),
        example: example.to_owned(),
        worktree: None,
        reason: claim.reason.as_ref().map(ToString::to_string),
        silent,
    }
}
