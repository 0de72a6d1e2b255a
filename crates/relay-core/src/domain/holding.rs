//! Who held what, and when: the stretches of time in which a claim was somebody's, told from the events alone.
//!
//! The projection knows only how a claim stands now. This is for questions about the past.

use std::collections::BTreeMap;

use super::event::{Event, Happened, Number};
use super::limits::TTL_MAX;
use super::name::{AgentName, Party, ThreadId};
use super::time::Timestamp;

/// A claim in one pair of hands, from its grant until it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    pub id: Number,
    pub holder: AgentName,
    pub pattern: String,
    pub exclusive: bool,
    pub reason: Option<ThreadId>,
    pub generation: u64,
    pub from: Timestamp,
    /// The first moment at which it was not held any more.
    pub until: Timestamp,
    pub end: End,
}

/// What ends a holding, or would in its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    Expiry,
    Release,
    Takeover,
}

impl Holding {
    /// Whether it was held at some moment of a stretch, both of whose ends belong to it.
    pub fn meets(&self, from: Timestamp, to: Timestamp) -> bool {
        self.from <= to && from < self.until
    }

    fn ended(self, at: Timestamp, end: End) -> Holding {
        // What had expired before it was given back was nobody's in between.
        if at < self.until { Holding { until: at.max(self.from), end, ..self } } else { self }
    }
}

/// The claims that are being followed through the history, event by event.
#[derive(Debug, Default)]
pub struct Holdings {
    open: BTreeMap<Number, Holding>,
    last_grant: Option<Timestamp>,
}

impl Holdings {
    /// Takes the next event, and hands out the holdings that came to their end with it. Claims that `is_wanted` says no to
    /// are not followed.
    pub fn follow(&mut self, event: &Event, is_wanted: impl Fn(&Holding) -> bool) -> Vec<Holding> {
        let at = event.payload.at;
        let mut ended = Vec::new();
        match &event.payload.what {
            Happened::ReservationGranted { agent, pattern, exclusive, reason, expires_at, .. } => {
                self.last_grant = Some(at);
                let granted = Holding {
                    id: event.number,
                    holder: agent.clone(),
                    pattern: pattern.clone(),
                    exclusive: *exclusive,
                    reason: reason.clone(),
                    generation: 0,
                    from: at,
                    until: *expires_at,
                    end: End::Expiry,
                };
                if is_wanted(&granted) {
                    self.open.insert(event.number, granted);
                }
            }
            Happened::ReservationRenewed { claims, .. } => {
                for renewal in claims {
                    let Some(held) = self.open.get_mut(&renewal.id) else { continue };
                    if held.until <= at {
                        ended.push(held.clone());
                        held.from = at;
                    }
                    held.until = renewal.expires_at;
                    held.exclusive = renewal.exclusive;
                    held.reason.clone_from(&renewal.reason);
                }
            }
            Happened::ReservationReleased { claims, .. } => {
                let given_back = claims.iter().filter_map(|id| self.open.remove(id));
                ended.extend(given_back.map(|held| held.ended(at, End::Release)));
            }
            Happened::ReservationTaken { id, by, generation, expires_at, .. } => {
                let Some(held) = self.open.remove(id) else { return ended };
                // What the human takes is nobody's afterwards.
                if let Party::Agent(holder) = by {
                    let taken = Holding {
                        holder: holder.clone(),
                        generation: *generation,
                        from: at,
                        until: *expires_at,
                        ..held.clone()
                    };
                    self.open.insert(*id, taken);
                }
                ended.push(held.ended(at, End::Takeover));
            }
            _ => {}
        }
        ended
    }

    /// Hands out what expired so long ago that the last grant withdrew it: nobody can renew it any more, and whoever follows
    /// a long history need not keep it.
    pub fn sweep(&mut self) -> Vec<Holding> {
        let Some(granted) = self.last_grant else { return Vec::new() };
        let (withdrawn, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|(_, held)| held.until.plus(TTL_MAX) < granted);
        self.open = open;
        withdrawn.into_values().collect()
    }

    /// What has not ended by an event ends by its time.
    pub fn finish(self) -> impl Iterator<Item = Holding> {
        self.open.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::event::Payload;

    const START: i64 = 1_794_700_800_000;

    fn minute(minutes: i64) -> Timestamp {
        Timestamp::from_millis(START + minutes * 60_000)
    }

    fn event(number: Number, at: i64, what: &str) -> Event {
        let what: Happened = serde_json::from_str(what).unwrap_or_else(|fault| panic!("{what}: {fault}"));
        let actor = Party::Relay;
        Event { number, payload: Payload { at: minute(at), actor, key: None, what }, hash: String::new() }
    }

    fn granted(number: Number, at: i64, agent: &str, until: i64) -> Event {
        let (at_text, until) = (minute(at), minute(until));
        let what = format!(
            r#"{{"kind":"reservation_granted","agent":"{agent}","pattern":"src","prefix":"src","exclusive":true,"reason":"bd-1","ttl_ms":1,"first_granted_at":"{at_text}","expires_at":"{until}","overlaps":[],"conflicts":[]}}"#
        );
        event(number, at, &what)
    }

    fn renewed(number: Number, at: i64, id: Number, until: i64) -> Event {
        let until = minute(until);
        let what = format!(
            r#"{{"kind":"reservation_renewed","agent":"Blue","claims":[{{"id":{id},"ttl_ms":1,"expires_at":"{until}","exclusive":false,"reason":null}}]}}"#
        );
        event(number, at, &what)
    }

    fn released(number: Number, at: i64, id: Number) -> Event {
        event(number, at, &format!(r#"{{"kind":"reservation_released","agent":"Blue","claims":[{id}]}}"#))
    }

    fn taken(number: Number, at: i64, id: Number, by: &str, until: i64) -> Event {
        let until = minute(until);
        let what = format!(
            r#"{{"kind":"reservation_taken","id":{id},"from":"Blue","by":"{by}","generation":1,"expires_at":"{until}","why":"w"}}"#
        );
        event(number, at, &what)
    }

    /// Who held it in which minutes, how it ended, and whose turn it was.
    #[track_caller]
    fn check(events: &[Event], expected: &[&str]) {
        let mut holdings = Holdings::default();
        let mut found: Vec<Holding> =
            events.iter().flat_map(|event| holdings.follow(event, |held| held.pattern == "src")).collect();
        found.extend(holdings.finish());
        let minutes = |time: Timestamp| (time.millis() - START) / 60_000;
        let shown: Vec<String> = found
            .iter()
            .map(|held| {
                let (from, until) = (minutes(held.from), minutes(held.until));
                format!("#{} {} {from}-{until} {:?} {}", held.id, held.holder, held.end, held.generation)
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_claim_is_held_from_its_grant_until_it_ends() {
        check(&[granted(3, 0, "Blue", 60)], &["#3 Blue 0-60 Expiry 0"]);
        check(&[granted(3, 0, "Blue", 60), released(4, 10, 3)], &["#3 Blue 0-10 Release 0"]);
        check(&[granted(3, 0, "Blue", 60), renewed(4, 40, 3, 100)], &["#3 Blue 0-100 Expiry 0"]);
        let renewed_and_released = [granted(3, 0, "Blue", 60), renewed(4, 40, 3, 100), released(5, 90, 3)];
        check(&renewed_and_released, &["#3 Blue 0-90 Release 0"]);
    }

    #[test]
    fn what_expired_is_not_held_until_somebody_tidies_up() {
        check(&[granted(3, 0, "Blue", 60), released(4, 70, 3)], &["#3 Blue 0-60 Expiry 0"]);
        let late = [granted(3, 0, "Blue", 60), renewed(4, 80, 3, 120)];
        check(&late, &["#3 Blue 0-60 Expiry 0", "#3 Blue 80-120 Expiry 0"]);
    }

    #[test]
    fn a_taken_claim_changes_hands() {
        let by_red = [granted(3, 0, "Blue", 60), taken(4, 20, 3, "Red", 80), released(5, 30, 3)];
        check(&by_red, &["#3 Blue 0-20 Takeover 0", "#3 Red 20-30 Release 1"]);
        check(&[granted(3, 0, "Blue", 60), taken(4, 20, 3, "human", 60)], &["#3 Blue 0-20 Takeover 0"]);
        let expired = [granted(3, 0, "Blue", 60), taken(4, 70, 3, "Red", 130)];
        check(&expired, &["#3 Blue 0-60 Expiry 0", "#3 Red 70-130 Expiry 1"]);
    }

    #[test]
    fn a_clock_that_went_back_makes_no_holding_end_before_it_began() {
        check(&[granted(3, 10, "Blue", 60), released(4, 5, 3)], &["#3 Blue 10-10 Release 0"]);
    }

    /// Until the next grant withdraws it, a claim that expired can be renewed, however long ago that was.
    #[test]
    fn what_a_grant_withdrew_long_after_its_time_is_handed_out() {
        const DAY: i64 = 24 * 60;
        for (granted_at, is_withdrawn) in [(None, false), (Some(60 + DAY), false), (Some(61 + DAY), true)] {
            let mut holdings = Holdings::default();
            holdings.follow(&granted(3, 0, "Blue", 60), |_| true);
            holdings.follow(&released(4, 9 * DAY, 99), |_| true);
            if let Some(at) = granted_at {
                holdings.follow(&granted(5, at, "Red", at + 60), |_| true);
            }
            let withdrawn: Vec<Number> = holdings.sweep().iter().map(|held| held.id).collect();
            assert_eq!(withdrawn, if is_withdrawn { vec![3] } else { Vec::new() }, "{granted_at:?}");
            assert!(holdings.sweep().is_empty());
        }
    }

    #[test]
    fn claims_that_nobody_asked_for_are_not_followed() {
        let mut holdings = Holdings::default();
        assert!(holdings.follow(&granted(3, 0, "Blue", 60), |_| false).is_empty());
        assert!(holdings.follow(&released(4, 10, 3), |_| true).is_empty());
        assert_eq!(holdings.finish().count(), 0);
    }

    #[test]
    fn a_holding_meets_every_moment_from_its_first_to_before_its_last() {
        let mut holdings = Holdings::default();
        holdings.follow(&granted(3, 10, "Blue", 20), |_| true);
        let held = holdings.finish().next().unwrap_or_else(|| panic!("nobody held it"));
        for (from, to, meets) in [
            (9, 9, false),
            (9, 10, true),
            (10, 10, true),
            (19, 19, true),
            (20, 20, false),
            (0, 30, true),
            (20, 30, false),
        ] {
            assert_eq!(held.meets(minute(from), minute(to)), meets, "{from} {to}");
        }
    }
}
