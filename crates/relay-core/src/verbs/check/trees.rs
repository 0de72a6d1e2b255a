//! What is changed in the work trees, held against what is claimed. Who made a change cannot be seen from the files: it is
//! told whose claims it is under, or that it is under none.

use std::collections::{BTreeMap, BTreeSet};

use super::Outcome;
use super::look::{Look, Tree};
use super::shapes::{Counted, Outside, Trees};
use crate::domain::agent::Agent;
use crate::domain::covering::Covering;
use crate::domain::event::Number;
use crate::domain::limits::{FOUND_SHOWN, STATUS_PATIENCE};
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::domain::shell;
use crate::domain::time::{Span, Timestamp};
use crate::domain::worktree::{Changed, WorkTree};
use crate::error::Refusal;
use crate::store::{Facts, Result};
use crate::verbs::writing::Told;
use crate::verbs::{Ctx, clash};
use crate::wire::v1::{ClaimShape, ConflictShape, Signal, SignalCode};

/// How many paths a proposed claim names.
const PROPOSED: usize = 5;

/// Everything that there is to tell. The files are looked at first: what is claimed is read when that is over.
pub(super) fn told(ctx: &Ctx<'_>, me: Option<&Agent>, paths: &[String], patience: Span) -> Result<Told<Outcome>> {
    let look = Look::new(ctx, paths, patience)?;
    let conflicts = look.conflicts();
    let facts = ctx.store.read()?;
    let claims = live_claims(ctx, &*facts)?;
    let covering = covering(&look, &claims)?;
    let untouched = untouched(&look, &claims, &covering)?;
    let outside = outside(&look, &covering);
    let inside = inside(&look, &covering, &Side::of(&*facts, me, &claims)?);
    let (signals, next) = advice(&outside, me.is_some());
    let trees = Trees {
        worktrees: look.trees.iter().map(Tree::shape).collect(),
        outside_total: outside.len(),
        outside: first(outside),
        untouched_total: untouched.len(),
        untouched: first(untouched),
        conflicts_total: conflicts.len(),
        conflicts: first(conflicts),
        unseen: look.unseen.take(),
    };
    let shape = |(tree, changed, claim): &Found<'_>| {
        // A name that no pattern can have, with a control character in it, is told as it is.
        let pattern =
            Pattern::of_path(&changed.path, &[]).map_or_else(|_| changed.path.clone(), |path| path.to_string());
        let found = clash::found(ctx, &*facts, claim, &pattern, &changed.path)?;
        Ok(ConflictShape { worktree: Some(tree.root.clone()), ..found })
    };
    let outcome = Outcome {
        agent: me.map(|me| me.name.to_string()),
        inside: inside.iter().take(FOUND_SHOWN).map(shape).collect::<Result<_>>()?,
        inside_total: inside.len(),
        trees: Some(Box::new(trees)),
    };
    Ok(Told { outcome, signals, next })
}

/// How things stand, as far as can be told at a glance; none where there is no work tree.
pub(in crate::verbs) fn counted(ctx: &Ctx<'_>, facts: &dyn Facts, me: Option<&Agent>) -> Result<Option<Counted>> {
    let look = Look::new(ctx, &[], STATUS_PATIENCE)?;
    if look.trees.is_empty() {
        return Ok(None);
    }
    let claims = live_claims(ctx, facts)?;
    let covering = covering(&look, &claims)?;
    let inside = inside(&look, &covering, &Side::of(facts, me, &claims)?);
    let (outside, inside, unseen) = (outside(&look, &covering).len(), inside.len(), look.unseen.take().len());
    Ok(Some(Counted { outside, inside, unseen }))
}

pub(super) fn first<T>(mut all: Vec<T>) -> Vec<T> {
    all.truncate(FOUND_SHOWN);
    all
}

fn live_claims(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<Vec<Reservation>> {
    Ok(facts.claims()?.into_iter().filter(|claim| claim.is_live(ctx.now)).collect())
}

fn covering<'a>(look: &'a Look<'_>, claims: &'a [Reservation]) -> Result<Covering<'a>> {
    let changed = look.trees.iter().flat_map(Tree::changes);
    let paths: BTreeSet<&str> = changed.map(|changed| changed.path.as_str()).collect();
    Covering::new(claims, &paths, look.case).map_err(Refusal::from)
}

fn outside(look: &Look<'_>, covering: &Covering<'_>) -> Vec<Outside> {
    let mut outside = Vec::new();
    for tree in &look.trees {
        let alone = tree.changes().iter().filter(|changed| covering.over(&changed.path).is_empty());
        let worktree = &tree.tree.root;
        outside.extend(alone.map(|Changed { path, kind, .. }| Outside {
            worktree: worktree.clone(),
            path: path.clone(),
            kind: *kind,
        }));
    }
    outside
}

/// From whose side claims are looked at.
struct Side {
    /// Those whose claims are the caller's own; none where nobody in particular asks.
    own: Option<BTreeSet<String>>,
}

impl Side {
    fn of(facts: &dyn Facts, me: Option<&Agent>, claims: &[Reservation]) -> Result<Self> {
        let Some(me) = me else { return Ok(Side { own: None }) };
        let mut own = BTreeSet::from([me.name.key()]);
        let holders: BTreeMap<String, &Reservation> = claims.iter().map(|claim| (claim.holder.key(), claim)).collect();
        for (key, claim) in holders {
            if facts.agent(&claim.holder)?.is_some_and(|holder| me.shares_claims_with(&holder)) {
                own.insert(key);
            }
        }
        Ok(Side { own: Some(own) })
    }

    /// Whether what is under these claims, and is changed, is somebody else's; or anybody's, where nobody asks.
    fn is_across(&self, over: &[&Reservation]) -> bool {
        let holders: BTreeSet<String> = over.iter().map(|claim| claim.holder.key()).collect();
        match &self.own {
            Some(own) => !holders.is_empty() && holders.is_disjoint(own),
            None => holders.len() > 1,
        }
    }
}

/// A change, where it is, and a claim that it is under.
type Found<'a> = (&'a WorkTree, &'a Changed, &'a Reservation);

fn inside<'a>(look: &'a Look<'_>, covering: &Covering<'a>, side: &Side) -> Vec<Found<'a>> {
    let mut inside = Vec::new();
    for tree in &look.trees {
        for changed in tree.changes() {
            let over = covering.over(&changed.path);
            if side.is_across(over) {
                inside.extend(over.iter().map(|claim| (&tree.tree, changed, *claim)));
            }
        }
    }
    inside
}

/// The claims on paths under which nothing happened since they were granted; none where that cannot be told.
fn untouched(look: &Look<'_>, claims: &[Reservation], covering: &Covering<'_>) -> Result<Vec<ClaimShape>> {
    if look.trees.is_empty() || !look.saw_all_changes() {
        return Ok(Vec::new());
    }
    let touched: BTreeSet<Number> = covering.pairs().map(|(_, claim)| claim.id).collect();
    let mut quiet = Vec::new();
    for claim in claims.iter().filter(|claim| !touched.contains(&claim.id)) {
        let pattern = Pattern::from_canonical(&claim.pattern)?;
        if !pattern.is_resource() && look.wants_some_of(&pattern.compile(look.case)) {
            quiet.push(claim);
        }
    }
    let Some(since) = quiet.iter().map(|claim| claim.first_granted_at).min() else { return Ok(Vec::new()) };
    let Some(committed) = look.committed(since) else { return Ok(Vec::new()) };
    let paths = committed.keys().map(String::as_str).collect();
    let under = Covering::new(quiet.iter().copied(), &paths, look.case)?;
    let is_since = |path: &str, claim: &Reservation| ended(committed[path]) >= claim.first_granted_at;
    let busy: BTreeSet<Number> =
        under.pairs().filter(|(path, claim)| is_since(path, claim)).map(|(_, claim)| claim.id).collect();
    Ok(quiet.into_iter().filter(|claim| !busy.contains(&claim.id)).map(ClaimShape::from).collect())
}

/// The last moment of a second: git says no more of a commit.
fn ended(second: Timestamp) -> Timestamp {
    second.plus(Span::millis(999))
}

fn advice(outside: &[Outside], by_agent: bool) -> (Vec<Signal>, Vec<String>) {
    let paths: BTreeSet<&str> = outside.iter().map(|outside| outside.path.as_str()).collect();
    let text = match paths.iter().next() {
        None => return (Vec::new(), Vec::new()),
        Some(path) if paths.len() == 1 => format!("{path} is changed and under no live claim"),
        Some(path) => format!("{} changed files are under no live claim, for example {path}", paths.len()),
    };
    let signals = vec![Signal::new(SignalCode::DirtyOutsideClaim, text)];
    let patterns = paths.iter().filter_map(|path| Pattern::to_claim(path, &[])).map(|path| path.to_string());
    let patterns: Vec<String> = patterns.take(PROPOSED).collect();
    if patterns.is_empty() || !by_agent {
        return (signals, Vec::new());
    }
    let line: Vec<String> = ["relay", "reserve"].map(str::to_owned).into_iter().chain(patterns).collect();
    (signals, vec![shell::line(&line)])
}
