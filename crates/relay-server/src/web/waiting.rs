//! How many decisions wait for the human in each project, as this server last saw it: for the title of a tab and for the
//! switcher.
//!
//! To know it a store must be looked into. So what is seen is kept for a moment, and of the projects that are not shown one is
//! looked into at a time, whichever that was longest ago: what a page costs does not grow with how many there are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::Span;
use relay_core::verbs::look::{self, Status};
use relay_core::verbs::{Caller, Outcome, Request};

use super::frame::Place;
use super::seen::noun;
use crate::ask::{Ask, Body, Said};
use crate::http::Shared;

/// What was seen of the project that is shown is good for so long.
const FRESH: Span = Span::seconds(5);
/// Of the others one is looked into no more often than this.
const BETWEEN: Span = Span::seconds(3);
/// The list of all projects is shown after this time, also where not all were looked into.
const PATIENCE: Span = Span::seconds(1);

/// A project that does not answer within this time keeps nobody: neither a page nor the list.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Default)]
pub struct Waiting(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// By the name of the project's folder: how many, and when that was seen; without a time it is to be seen anew.
    projects: HashMap<String, (usize, Option<Span>)>,
    /// When one of the others was looked into.
    round: Option<Span>,
}

impl Waiting {
    /// How many wait there, as far as is known.
    pub fn of(&self, place: &Place) -> usize {
        self.known().projects.get(&place.slug).map_or(0, |(count, _)| *count)
    }

    pub fn seen(&self, place: &Place, status: &Status, now: Span) {
        self.known().projects.insert(place.slug.clone(), (status.decisions(), Some(now)));
    }

    /// It was looked into in vain: it has had its turn, and what was known before is all that is.
    fn tried(&self, place: &Place, now: Span) {
        self.known().projects.entry(place.slug.clone()).or_default().1 = Some(now);
    }

    /// Something was done there: what was seen before may be so no longer.
    pub fn changed(&self, place: &Place) {
        if let Some((_, at)) = self.known().projects.get_mut(&place.slug) {
            *at = None;
        }
    }

    /// When it was looked into.
    fn at(&self, place: &Place) -> Option<Span> {
        self.known().projects.get(&place.slug).and_then(|(_, at)| *at)
    }

    fn is_fresh(&self, place: &Place, now: Span) -> bool {
        self.at(place).is_some_and(|at| now.as_millis() - at.as_millis() < FRESH.as_millis())
    }

    /// Whose turn it is among the projects that are not shown.
    fn next<'a>(&self, places: &'a [Place], shown: &Place, now: Span) -> Option<&'a Place> {
        let mut known = self.known();
        if known.round.is_some_and(|round| now.as_millis() - round.as_millis() < BETWEEN.as_millis()) {
            return None;
        }
        let others = places.iter().filter(|place| place.slug != shown.slug);
        let next = others.min_by_key(|place| known.projects.get(&place.slug).and_then(|(_, at)| *at))?;
        known.round = Some(now);
        Some(next)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks into a project that is shown, unless that was done a moment ago.
pub async fn look_at(shared: &Arc<Shared>, shown: &Place) {
    if !shared.waiting.is_fresh(shown, shared.desk.monotonic()) {
        look_into(shared, shown).await;
    }
}

/// Looks into one of the others, if it is time. Nobody waits for it: the next page says what was seen.
pub fn look_around(shared: &Arc<Shared>, places: &[Place], shown: &Place) {
    if let Some(next) = shared.waiting.next(places, shown, shared.desk.monotonic()).cloned() {
        let shared = shared.clone();
        tokio::spawn(async move { look_into(&shared, &next).await });
    }
}

/// Looks into all of them, for as long as somebody waits for their list.
pub async fn look_into_all(shared: &Arc<Shared>, places: &[Place]) {
    let begun = shared.desk.monotonic();
    // Whichever was looked into longest ago comes first: one that does not answer keeps the others waiting once.
    let mut places: Vec<&Place> = places.iter().collect();
    places.sort_by_key(|place| shared.waiting.at(place));
    for place in places {
        let now = shared.desk.monotonic();
        if now.as_millis() - begun.as_millis() > PATIENCE.as_millis() {
            return;
        }
        if !shared.waiting.is_fresh(place, now) {
            look_into(shared, place).await;
        }
    }
}

/// What cannot be looked into has nothing that could be decided here; its own page says why.
async fn look_into(shared: &Arc<Shared>, place: &Place) {
    let key = ProjectKey::resolved(place.key.clone());
    let said = Said { project: Some(key.to_string()), place: Some(key), project_is_known: true, ..Said::default() };
    let Ok(key) = said.key() else { return };
    let caller = Caller::human(shared.config.owner.clone());
    let request = Request::Look(noun(&["status"]));
    let ask = Ask { request, command: "look".to_owned(), said, caller, key, is_glance: true };
    let answer = tokio::time::timeout(LOOK, shared.desk.ask(ask)).await;
    let now = shared.desk.monotonic();
    if let Ok(answer) = answer
        && let Body::Done(done) = answer.body
        && let Outcome::Look(look::Outcome::Status(status)) = done.outcome
    {
        shared.waiting.seen(place, &status, now);
    } else {
        shared.waiting.tried(place, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::screens::samples;

    fn at(seconds: i64) -> Span {
        Span::seconds(seconds)
    }

    #[test]
    fn what_was_seen_is_known_for_a_moment_and_until_something_is_done() {
        let (waiting, places) = (Waiting::default(), samples::places());
        assert_eq!((waiting.of(&places[0]), waiting.is_fresh(&places[0], at(0))), (0, false));
        waiting.seen(&places[0], &samples::status(&samples::PLAIN), at(10));
        assert_eq!((waiting.of(&places[0]), waiting.of(&places[1])), (2, 0));
        assert!(waiting.is_fresh(&places[0], at(14)) && !waiting.is_fresh(&places[0], at(15)));
        waiting.changed(&places[0]);
        assert_eq!((waiting.of(&places[0]), waiting.is_fresh(&places[0], at(10))), (2, false));
    }

    #[test]
    fn of_many_projects_one_is_looked_into_at_a_time_and_each_has_its_turn() {
        let waiting = Waiting::default();
        let place = |number: usize| Place { slug: format!("p{number}"), ..samples::places()[0].clone() };
        let places: Vec<Place> = (0..4).map(place).collect();
        let mut turns = Vec::new();
        for second in 0..12 {
            let next = waiting.next(&places, &places[0], at(second));
            if let Some(next) = next {
                turns.push(next.slug.clone());
                waiting.seen(next, &samples::empty(), at(second));
            }
        }
        assert_eq!(turns, ["p1", "p2", "p3", "p1"]);
        // One that cannot be looked into has its turn too, and no more.
        waiting.tried(&places[2], at(20));
        assert_eq!(waiting.next(&places, &places[0], at(30)).map(|place| place.slug.as_str()), Some("p3"));
        assert!(waiting.next(&places[..1], &places[0], at(99)).is_none(), "there is no other");
    }
}
