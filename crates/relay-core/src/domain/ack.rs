//! The receipt contract of one delivery. Lateness is computed: there is no column to flip and no job to forget.

use super::time::{Span, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    NotAsked,
    Waiting { due: Timestamp },
    Given { at: Timestamp },
}

impl Ack {
    /// `delivered_at` is none while the message is held: nothing is due before it arrived.
    pub fn of(ack_within: Option<Span>, delivered_at: Option<Timestamp>, acked_at: Option<Timestamp>) -> Self {
        match (acked_at, ack_within, delivered_at) {
            (Some(at), _, _) => Ack::Given { at },
            (None, Some(within), Some(delivered)) => Ack::Waiting { due: delivered.plus(within) },
            _ => Ack::NotAsked,
        }
    }

    pub fn is_overdue(self, now: Timestamp) -> bool {
        matches!(self, Ack::Waiting { due } if due < now)
    }

    pub fn is_owed(self) -> bool {
        matches!(self, Ack::Waiting { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Timestamp = Timestamp::from_millis(1_000_000);

    fn check(
        within: Option<Span>,
        delivered: Option<Timestamp>,
        acked: Option<Timestamp>,
        now: Timestamp,
        owed: bool,
        overdue: bool,
    ) {
        let ack = Ack::of(within, delivered, acked);
        assert_eq!((ack.is_owed(), ack.is_overdue(now)), (owed, overdue), "{ack:?} at {now}");
    }

    #[test]
    fn an_ack_is_overdue_only_after_its_due_time() {
        let hour = Some(Span::hours(1));
        let due = SENT.plus(Span::hours(1));
        check(None, Some(SENT), None, due.plus(Span::days(9)), false, false);
        check(hour, Some(SENT), None, SENT, true, false);
        check(hour, Some(SENT), None, due, true, false);
        check(hour, Some(SENT), None, due.plus(Span::millis(1)), true, true);
        check(hour, Some(SENT), Some(due), due.plus(Span::days(1)), false, false);
    }

    #[test]
    fn held_mail_owes_nothing() {
        check(Some(Span::hours(1)), None, None, SENT.plus(Span::days(1)), false, false);
    }
}
