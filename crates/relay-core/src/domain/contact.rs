//! A contact link: consent between two agents. Accepted is mutual; a block is directed and silences both ways.

use serde::{Deserialize, Serialize};

use super::agent::{Policy, Standing};
use super::event::Number;
use super::name::Party;
use super::routing::{Barrier, closed};
use super::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    Requested,
    Accepted,
    Blocked,
    Revoked,
    /// Requested or accepted, and its time ran out.
    Lapsed,
}

/// What was last decided about a link; a block stands beside it, one for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decided {
    Requested,
    Accepted,
    Revoked,
}

impl Decided {
    pub fn as_str(self) -> &'static str {
        match self {
            Decided::Requested => "requested",
            Decided::Accepted => "accepted",
            Decided::Revoked => "revoked",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Decided::Requested, Decided::Accepted, Decided::Revoked].into_iter().find(|d| d.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub id: Number,
    /// The side that asked.
    pub from: Party,
    pub to: Party,
    pub decided: Decided,
    pub from_blocks: bool,
    pub to_blocks: bool,
    /// Accepted by the recipient's policy rather than by a decision.
    pub by_policy: bool,
    /// The last that was decided between the two, in this link or one before it, is a revoke.
    pub after_revoke: bool,
    pub requested_at: Timestamp,
    pub expires_at: Timestamp,
    pub why: Option<String>,
}

impl Link {
    pub fn state(&self, now: Timestamp) -> LinkState {
        if self.from_blocks || self.to_blocks {
            return LinkState::Blocked;
        }
        match self.decided {
            Decided::Revoked => LinkState::Revoked,
            _ if self.expires_at <= now => LinkState::Lapsed,
            Decided::Requested => LinkState::Requested,
            Decided::Accepted => LinkState::Accepted,
        }
    }

    pub fn other(&self, party: &Party) -> &Party {
        if self.from == *party { &self.to } else { &self.from }
    }

    pub fn is_blocked_by(&self, party: &Party) -> bool {
        (self.from_blocks && self.from == *party) || (self.to_blocks && self.to == *party)
    }

    pub fn blockers(&self) -> impl Iterator<Item = &Party> {
        let from = self.from_blocks.then_some(&self.from);
        from.into_iter().chain(self.to_blocks.then_some(&self.to))
    }
}

/// What a request for contact comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// There is an accepted link already.
    Standing,
    /// The recipient's policy consents at once.
    AcceptedByPolicy,
    /// The other side had asked: asking back is consent.
    AcceptsTheirs,
    /// The same request waits already.
    StillWaits,
    Waits,
    Refused(Barrier),
}

/// Whom a request for contact is put to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Door {
    pub standing: Standing,
    pub policy: Policy,
    pub same_project: bool,
}

/// Decides a request by `from` for contact with somebody behind this door.
///
/// Whoever retired, is suspended or takes no mail consents to nothing, and nobody's policy speaks for it meanwhile.
/// Only a policy of the same project speaks for its agent, and after a revoke it no longer does, however many requests
/// lapse, until somebody accepts one.
pub fn ask(link: Option<&Link>, from: &Party, door: Door, now: Timestamp) -> Asked {
    let state = link.map(|link| link.state(now));
    let consents = door.same_project && matches!(door.policy, Policy::Auto | Policy::Open);
    match (state, link) {
        (Some(LinkState::Blocked), _) => return Asked::Refused(Barrier::Blocked),
        (Some(LinkState::Accepted), _) => return Asked::Standing,
        _ => {}
    }
    if let Some(barrier) = closed(door.standing, door.policy) {
        return Asked::Refused(barrier);
    }
    match (state, link) {
        (Some(LinkState::Requested), Some(link)) if link.from != *from => Asked::AcceptsTheirs,
        (Some(LinkState::Requested), _) => Asked::StillWaits,
        (_, Some(link)) if link.after_revoke => Asked::Waits,
        _ if consents => Asked::AcceptedByPolicy,
        _ => Asked::Waits,
    }
}

/// Which side of held mail did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Sender,
    Recipient,
}

/// Why held mail is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    Lapsed,
    Blocked(Side),
    Revoked(Side),
    /// Accepted, and no link opens this.
    Closed(Barrier),
}

impl GivenUp {
    /// What became of held mail that no decision took with it; none while it waits.
    pub fn found(link: Option<&Link>, recipient: &Party, now: Timestamp) -> Option<Self> {
        match (link.map(|link| link.state(now)), link) {
            (Some(LinkState::Requested | LinkState::Accepted), _) => None,
            (Some(LinkState::Blocked), Some(link)) if link.is_blocked_by(recipient) => {
                Some(GivenUp::Blocked(Side::Recipient))
            }
            (Some(LinkState::Blocked), _) => Some(GivenUp::Blocked(Side::Sender)),
            // Whoever revokes gives up its own mail in the same breath.
            (Some(LinkState::Revoked), _) => Some(GivenUp::Revoked(Side::Recipient)),
            (Some(LinkState::Lapsed) | None, _) => Some(GivenUp::Lapsed),
        }
    }

    /// A decision stands behind it, rather than time alone.
    pub fn is_decided(self) -> bool {
        self != GivenUp::Lapsed
    }

    /// What happened, as the sender reads it.
    pub fn tell(self, recipient: &Party) -> String {
        match self {
            GivenUp::Lapsed => format!("{recipient} never answered the request for contact"),
            GivenUp::Blocked(Side::Recipient) => format!("{recipient} refused contact"),
            GivenUp::Blocked(Side::Sender) => format!("You blocked {recipient}"),
            GivenUp::Revoked(Side::Recipient) => format!("{recipient} revoked the contact"),
            GivenUp::Revoked(Side::Sender) => format!("You revoked the contact with {recipient}"),
            GivenUp::Closed(barrier) => format!("{recipient} {}", barrier.tell()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::AgentName;
    use crate::domain::time::Span;

    const NOW: Timestamp = Timestamp::from_millis(1_794_700_800_000);
    const ACTIVE: Standing = Standing::Active;

    fn party(name: &str) -> Party {
        Party::Agent(AgentName::parse(name).unwrap_or_else(|fault| panic!("{fault}")))
    }

    fn link(decided: Decided, from_blocks: bool, to_blocks: bool, expires: Span) -> Link {
        Link {
            id: 1,
            from: party("Blue"),
            to: party("Red"),
            decided,
            from_blocks,
            to_blocks,
            by_policy: false,
            after_revoke: decided == Decided::Revoked,
            requested_at: NOW,
            expires_at: NOW.plus(expires),
            why: None,
        }
    }

    #[test]
    fn a_block_beats_what_was_decided_and_time_ends_the_rest() {
        use LinkState::*;
        let hour = Span::hours(1);
        let check = |link: Link, expected| assert_eq!(link.state(NOW), expected, "{link:?}");
        check(link(Decided::Requested, false, false, hour), Requested);
        check(link(Decided::Accepted, false, false, hour), Accepted);
        check(link(Decided::Revoked, false, false, hour), Revoked);
        check(link(Decided::Requested, false, false, Span::millis(0)), Lapsed);
        check(link(Decided::Accepted, false, false, Span::millis(0)), Lapsed);
        check(link(Decided::Revoked, false, false, Span::millis(0)), Revoked);
        check(link(Decided::Accepted, true, false, hour), Blocked);
        check(link(Decided::Accepted, false, true, hour), Blocked);
        check(link(Decided::Revoked, true, true, Span::millis(0)), Blocked);
    }

    #[test]
    fn a_request_comes_to_what_the_policy_and_the_past_allow() {
        use Asked::*;
        let hour = Span::hours(1);
        let check = |link: Option<&Link>, from: &str, policy, same_project, expected| {
            assert_eq!(
                ask(link, &party(from), Door { standing: ACTIVE, policy, same_project }, NOW),
                expected,
                "{link:?} {from} {policy:?} {same_project}"
            );
        };
        for (policy, at_home, elsewhere) in [
            (Policy::Open, AcceptedByPolicy, Waits),
            (Policy::Auto, AcceptedByPolicy, Waits),
            (Policy::ContactsOnly, Waits, Waits),
            (Policy::BlockAll, Refused(Barrier::BlockAll), Refused(Barrier::BlockAll)),
        ] {
            check(None, "Blue", policy, true, at_home);
            check(None, "Blue", policy, false, elsewhere);
            let lapsed = link(Decided::Requested, false, false, Span::millis(0));
            check(Some(&lapsed), "Blue", policy, true, at_home);
        }
        let requested = link(Decided::Requested, false, false, hour);
        check(Some(&requested), "Blue", Policy::ContactsOnly, true, StillWaits);
        check(Some(&requested), "Red", Policy::ContactsOnly, true, AcceptsTheirs);
        let accepted = link(Decided::Accepted, false, false, hour);
        check(Some(&accepted), "Red", Policy::Auto, true, Standing);
        let revoked = link(Decided::Revoked, false, false, hour);
        check(Some(&revoked), "Blue", Policy::Auto, true, Waits);
        check(Some(&revoked), "Red", Policy::Open, true, Waits);
        // A revoke is not outwaited: the request after it lapsed, and the next one waits as well.
        for (from, policy) in [("Blue", Policy::Auto), ("Red", Policy::Open)] {
            let outwaited = Link { after_revoke: true, ..link(Decided::Requested, false, false, Span::millis(0)) };
            check(Some(&outwaited), from, policy, true, Waits);
        }
        let blocked = link(Decided::Accepted, true, false, hour);
        check(Some(&blocked), "Blue", Policy::Auto, true, Refused(Barrier::Blocked));
        check(Some(&blocked), "Red", Policy::Open, true, Refused(Barrier::Blocked));
    }

    #[test]
    fn no_policy_consents_for_somebody_who_is_gone() {
        let hour = Span::hours(1);
        let requested = link(Decided::Requested, false, false, hour);
        let accepted = link(Decided::Accepted, false, false, hour);
        for (standing, barrier) in [(Standing::Retired, Barrier::Retired), (Standing::Suspended, Barrier::Suspended)] {
            for policy in Policy::ALL {
                let door = Door { standing, policy, same_project: true };
                for (link, from) in [(None, "Blue"), (Some(&requested), "Blue"), (Some(&requested), "Red")] {
                    assert_eq!(
                        ask(link, &party(from), door, NOW),
                        Asked::Refused(barrier),
                        "{policy:?} {from} {link:?}"
                    );
                }
                assert_eq!(ask(Some(&accepted), &party("Blue"), door, NOW), Asked::Standing);
            }
        }
    }

    #[test]
    fn only_the_side_that_blocks_is_the_blocker() {
        let one = link(Decided::Requested, true, false, Span::hours(1));
        assert!(one.is_blocked_by(&party("Blue")));
        assert!(!one.is_blocked_by(&party("Red")));
        assert_eq!(one.blockers().count(), 1);
        let other = link(Decided::Requested, false, true, Span::hours(1));
        assert!(other.is_blocked_by(&party("Red")));
        assert!(!other.is_blocked_by(&party("Blue")));
        assert_eq!(link(Decided::Requested, true, true, Span::hours(1)).blockers().count(), 2);
        assert_eq!(one.other(&party("Blue")), &party("Red"));
        assert_eq!(one.other(&party("Red")), &party("Blue"));
    }

    #[test]
    fn the_sender_of_held_mail_reads_what_happened() {
        let hour = Span::hours(1);
        let check = |link: Option<Link>, expected: Option<&str>| {
            let found = GivenUp::found(link.as_ref(), &party("Red"), NOW).map(|why| why.tell(&party("Red")));
            assert_eq!(found.as_deref(), expected, "{link:?}");
        };
        check(Some(link(Decided::Requested, false, false, hour)), None);
        check(Some(link(Decided::Accepted, false, false, hour)), None);
        let lapsed = Some("Red never answered the request for contact");
        check(Some(link(Decided::Requested, false, false, Span::millis(0))), lapsed);
        check(None, lapsed);
        check(Some(link(Decided::Requested, false, true, hour)), Some("Red refused contact"));
        check(Some(link(Decided::Requested, true, true, hour)), Some("Red refused contact"));
        check(Some(link(Decided::Requested, true, false, hour)), Some("You blocked Red"));
        check(Some(link(Decided::Revoked, false, false, hour)), Some("Red revoked the contact"));
        assert_eq!(GivenUp::Revoked(Side::Sender).tell(&party("Red")), "You revoked the contact with Red");
        for (barrier, expected) in [
            (Barrier::Retired, "Red has retired"),
            (Barrier::Suspended, "Red is suspended"),
            (Barrier::BlockAll, "Red takes no mail"),
        ] {
            assert_eq!(GivenUp::Closed(barrier).tell(&party("Red")), expected);
        }
        assert_eq!([GivenUp::Lapsed, GivenUp::Revoked(Side::Sender)].map(GivenUp::is_decided), [false, true]);
    }

    #[test]
    fn a_decision_reads_back_from_its_word() {
        for (decided, word) in
            [(Decided::Requested, "requested"), (Decided::Accepted, "accepted"), (Decided::Revoked, "revoked")]
        {
            assert_eq!((decided.as_str(), Decided::parse(word)), (word, Some(decided)));
        }
        assert_eq!(Decided::parse("blocked"), None);
    }
}
