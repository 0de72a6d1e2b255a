//! A reservation: an advisory claim on a path pattern or a named resource.

use super::event::Number;
use super::limits::{STALE_AFTER, TTL_MAX, TTL_MIN};
use super::name::{AgentName, ThreadId};
use super::time::{Span, Timestamp};

#[derive(Clone, Debug, PartialEq)]
pub struct Reservation {
    pub id: Number,
    pub holder: AgentName,
    pub pattern: String,
    pub exclusive: bool,
    pub reason: Option<ThreadId>,
    pub ttl: Span,
    /// The first grant; renewals by activity end a day after it.
    pub first_granted_at: Timestamp,
    /// The newest grant or renewal.
    pub granted_at: Timestamp,
    pub expires_at: Timestamp,
    /// Counts takeovers.
    pub generation: u64,
    pub ended: bool,
}

impl Reservation {
    /// Neither released nor expired. A grant from a clock that was ahead is not believed, or it would stand for ever.
    pub fn is_live(&self, now: Timestamp) -> bool {
        !self.ended && now < self.expires_at && self.granted_at.is_believable(now)
    }

    /// The new expiry that the holder's own activity earns, if it is time for one.
    pub fn renewal(&self, now: Timestamp) -> Option<Timestamp> {
        let left = self.expires_at.since(now).as_millis();
        let wanted = now.plus(self.ttl).min(self.first_granted_at.plus(TTL_MAX));
        (left < self.ttl.as_millis() / 2 && wanted > self.expires_at).then_some(wanted)
    }

    pub fn is_stale(&self, now: Timestamp) -> bool {
        now.since(self.first_granted_at) > STALE_AFTER
    }

    /// Whether two claims that overlap contest each other.
    pub fn contests(&self, other: &Reservation) -> bool {
        self.exclusive || other.exclusive
    }
}

/// What was told about a pair of claims. It changes when the pair does, so that each state is told once per side.
pub fn mark(mine_exclusive: bool, theirs_exclusive: bool, theirs_generation: u64) -> String {
    let mode = |exclusive| if exclusive { 'x' } else { 's' };
    format!("{}{}{theirs_generation}", mode(mine_exclusive), mode(theirs_exclusive))
}

/// The mark of a pair that no longer contests.
pub const ENDED: &str = "ended";

pub fn ttl_is_valid(ttl: Span) -> bool {
    (TTL_MIN..=TTL_MAX).contains(&ttl)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANTED: Timestamp = Timestamp::from_millis(1_794_700_800_000);

    fn claim(ttl: Span) -> Reservation {
        Reservation {
            id: 7,
            holder: AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}")),
            pattern: "src".into(),
            exclusive: true,
            reason: None,
            ttl,
            first_granted_at: GRANTED,
            granted_at: GRANTED,
            expires_at: GRANTED.plus(ttl),
            generation: 0,
            ended: false,
        }
    }

    #[test]
    fn a_claim_lives_until_its_expiry_and_not_at_it() {
        let hour = claim(Span::hours(1));
        assert!(hour.is_live(GRANTED));
        assert!(hour.is_live(hour.expires_at.minus(Span::millis(1))));
        assert!(!hour.is_live(hour.expires_at));
        assert!(!Reservation { ended: true, ..hour }.is_live(GRANTED));
    }

    #[test]
    fn a_claim_granted_by_a_clock_ahead_is_not_believed() {
        let hour = claim(Span::hours(1));
        assert!(hour.is_live(GRANTED.minus(Span::minutes(5))));
        assert!(!hour.is_live(GRANTED.minus(Span::minutes(6))));
    }

    #[test]
    fn activity_renews_in_the_second_half_for_at_most_a_day() {
        let check = |ttl: Span, after: Span, expected: Option<Span>| {
            let mut claim = claim(ttl);
            let now = GRANTED.plus(after);
            if after > ttl {
                claim.expires_at = now.plus(Span::millis(1));
            }
            assert_eq!(claim.renewal(now), expected.map(|span| GRANTED.plus(span)), "{ttl} {after}");
        };
        check(Span::hours(1), Span::minutes(30), None);
        check(Span::hours(1), Span::millis(30 * 60_000 + 1), Some(Span::millis(90 * 60_000 + 1)));
        check(Span::hours(1), Span::minutes(59), Some(Span::minutes(119)));
        check(Span::hours(24), Span::hours(13), None);
        check(Span::hours(1), Span::minutes(23 * 60 + 30), Some(Span::hours(24)));
        check(Span::hours(1), Span::hours(24), None);
    }

    #[test]
    fn only_two_shared_claims_live_in_peace() {
        let exclusive = claim(Span::hours(1));
        let shared = Reservation { exclusive: false, ..exclusive.clone() };
        assert!(exclusive.contests(&exclusive) && exclusive.contests(&shared) && shared.contests(&exclusive));
        assert!(!shared.contests(&shared));
    }

    #[test]
    fn a_ttl_is_a_minute_to_a_day() {
        for (ttl, valid) in
            [(0, false), (59, false), (60, true), (3_600, true), (86_400, true), (86_401, false), (-60, false)]
        {
            assert_eq!(ttl_is_valid(Span::seconds(ttl)), valid, "{ttl}");
        }
    }

    #[test]
    fn a_claim_older_than_half_a_day_is_stale() {
        let day = claim(Span::hours(24));
        assert!(!day.is_stale(GRANTED.plus(Span::hours(12))));
        assert!(day.is_stale(GRANTED.plus(Span::millis(12 * 3_600_000 + 1))));
    }

    #[test]
    fn a_mark_tells_every_change_of_a_pair_apart() {
        let mut marks: Vec<String> = Vec::new();
        for mine in [true, false] {
            for theirs in [true, false] {
                for generation in [0, 1, 12] {
                    marks.push(mark(mine, theirs, generation));
                }
            }
        }
        assert_eq!(marks[0], "xx0");
        marks.push(ENDED.to_owned());
        let count = marks.len();
        marks.sort();
        marks.dedup();
        assert_eq!(marks.len(), count);
    }
}
