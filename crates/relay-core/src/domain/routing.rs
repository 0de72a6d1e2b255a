//! Whether a message may reach a recipient: the recipient's policy, the context both share, and what beats them.

use serde::{Deserialize, Serialize};

use super::agent::{Policy, Standing};
use super::contact::LinkState;

/// What the two sides have in common at the moment of the send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    pub both_in_thread: bool,
    pub live_overlapping_claims: bool,
    /// The recipient wrote to the sender within a day.
    pub recipient_wrote_recently: bool,
    /// The message answers one that the recipient wrote.
    pub reply_to_recipients_own: bool,
}

impl Shared {
    pub fn any(self) -> bool {
        self.both_in_thread
            || self.live_overlapping_claims
            || self.recipient_wrote_recently
            || self.reply_to_recipients_own
    }
}

/// Everything the rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub from_human: bool,
    pub same_project: bool,
    pub recipient: Standing,
    pub policy: Policy,
    pub link: Option<LinkState>,
    /// A request by this sender waits for an answer.
    pub asked: bool,
    pub shared: Shared,
}

/// Why somebody cannot be reached whatever the sender does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Barrier {
    Retired,
    Suspended,
    Blocked,
    BlockAll,
}

impl Barrier {
    pub fn as_str(self) -> &'static str {
        match self {
            Barrier::Retired => "retired",
            Barrier::Suspended => "suspended",
            Barrier::Blocked => "blocked",
            Barrier::BlockAll => "block_all",
        }
    }

    /// What is said of the one behind it, after its name.
    pub fn tell(self) -> &'static str {
        match self {
            Barrier::Retired => "has retired",
            Barrier::Suspended => "is suspended",
            Barrier::Blocked => "is behind a block",
            Barrier::BlockAll => "takes no mail",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Deliver,
    /// Escalate or reroute.
    Barred(Barrier),
    /// Asked already; wait.
    Pending,
    /// A handshake, then again.
    Required,
}

/// What keeps everybody but the human from an agent, whatever stands between the two: no thread or link opens it.
pub fn closed(recipient: Standing, policy: Policy) -> Option<Barrier> {
    match recipient {
        Standing::Retired => Some(Barrier::Retired),
        Standing::Suspended => Some(Barrier::Suspended),
        Standing::Active => (policy == Policy::BlockAll).then_some(Barrier::BlockAll),
    }
}

/// The rule. What beats everything comes first, then consent, then context.
pub fn decide(question: Question) -> Verdict {
    match closed(question.recipient, question.policy) {
        Some(gone @ (Barrier::Retired | Barrier::Suspended)) => return Verdict::Barred(gone),
        _ if question.from_human => return Verdict::Deliver,
        _ if question.link == Some(LinkState::Blocked) => return Verdict::Barred(Barrier::Blocked),
        Some(barrier) => return Verdict::Barred(barrier),
        None => {}
    }
    let consents = question.link == Some(LinkState::Accepted)
        || question.same_project
            && match question.policy {
                Policy::Open => true,
                Policy::Auto => question.shared.any(),
                Policy::ContactsOnly | Policy::BlockAll => false,
            };
    match (consents, question.asked) {
        (true, _) => Verdict::Deliver,
        (false, true) => Verdict::Pending,
        (false, false) => Verdict::Required,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One letter of the table.
    fn verdict(letter: char) -> Verdict {
        match letter {
            'D' => Verdict::Deliver,
            'P' => Verdict::Pending,
            'R' => Verdict::Required,
            'X' => Verdict::Barred(Barrier::Blocked),
            'A' => Verdict::Barred(Barrier::BlockAll),
            other => panic!("{other} is no verdict"),
        }
    }

    /// The columns: the state of the newest link, and whether it is the sender's own request that waits.
    const LINKS: [(Option<LinkState>, bool); 7] = [
        (None, false),
        (Some(LinkState::Requested), true),
        (Some(LinkState::Requested), false),
        (Some(LinkState::Accepted), false),
        (Some(LinkState::Blocked), false),
        (Some(LinkState::Revoked), false),
        (Some(LinkState::Lapsed), false),
    ];

    const HERE: bool = true;
    const ELSEWHERE: bool = false;

    /// Policy, project, and a letter for each link: first without any shared context, then with some.
    ///
    /// The columns: no link, I asked, they asked, accepted, blocked, revoked, lapsed.
    const TABLE: [(Policy, bool, &str, &str); 8] = [
        (Policy::Open, HERE, "DDDDXDD", "DDDDXDD"),
        (Policy::Auto, HERE, "RPRDXRR", "DDDDXDD"),
        (Policy::ContactsOnly, HERE, "RPRDXRR", "RPRDXRR"),
        (Policy::BlockAll, HERE, "AAAAXAA", "AAAAXAA"),
        (Policy::Open, ELSEWHERE, "RPRDXRR", "RPRDXRR"),
        (Policy::Auto, ELSEWHERE, "RPRDXRR", "RPRDXRR"),
        (Policy::ContactsOnly, ELSEWHERE, "RPRDXRR", "RPRDXRR"),
        (Policy::BlockAll, ELSEWHERE, "AAAAXAA", "AAAAXAA"),
    ];

    /// Every combination of contexts; the first is none at all.
    fn contexts() -> impl Iterator<Item = Shared> {
        (0..16).map(|bits| Shared {
            both_in_thread: bits & 1 != 0,
            live_overlapping_claims: bits & 2 != 0,
            recipient_wrote_recently: bits & 4 != 0,
            reply_to_recipients_own: bits & 8 != 0,
        })
    }

    /// Every question that an agent can put about an active recipient, with the table's answer.
    fn questions() -> Vec<(Question, Verdict)> {
        let mut questions = Vec::new();
        for (policy, same_project, bare, shared) in TABLE {
            for (index, context) in contexts().enumerate() {
                let row = if index == 0 { bare } else { shared };
                assert_eq!(row.len(), LINKS.len(), "{policy:?} {same_project}");
                for ((link, asked), letter) in LINKS.into_iter().zip(row.chars()) {
                    let question = Question {
                        from_human: false,
                        same_project,
                        recipient: Standing::Active,
                        policy,
                        link,
                        asked,
                        shared: context,
                    };
                    questions.push((question, verdict(letter)));
                }
            }
        }
        questions
    }

    #[test]
    fn the_full_table_of_policy_context_block_and_project() {
        let questions = questions();
        assert_eq!(questions.len(), 4 * 2 * 16 * 7);
        for (question, expected) in questions {
            assert_eq!(decide(question), expected, "{question:?}");
        }
    }

    #[test]
    fn the_human_reaches_every_active_agent_whatever_its_policy() {
        for (question, _) in questions() {
            assert_eq!(decide(Question { from_human: true, ..question }), Verdict::Deliver, "{question:?}");
        }
    }

    #[test]
    fn retirement_and_suspension_beat_everything_even_the_human() {
        for (question, _) in questions() {
            for (recipient, barrier) in
                [(Standing::Retired, Barrier::Retired), (Standing::Suspended, Barrier::Suspended)]
            {
                for from_human in [false, true] {
                    let question = Question { from_human, recipient, ..question };
                    assert_eq!(decide(question), Verdict::Barred(barrier), "{question:?}");
                }
            }
        }
    }

    #[test]
    fn retirement_suspension_and_block_all_close_an_agent() {
        for policy in Policy::ALL {
            assert_eq!(closed(Standing::Retired, policy), Some(Barrier::Retired), "{policy:?}");
            assert_eq!(closed(Standing::Suspended, policy), Some(Barrier::Suspended), "{policy:?}");
            let expected = (policy == Policy::BlockAll).then_some(Barrier::BlockAll);
            assert_eq!(closed(Standing::Active, policy), expected, "{policy:?}");
        }
    }

    #[test]
    fn a_barrier_is_named_as_the_caller_reads_it() {
        let named = [Barrier::Retired, Barrier::Suspended, Barrier::Blocked, Barrier::BlockAll].map(Barrier::as_str);
        assert_eq!(named, ["retired", "suspended", "blocked", "block_all"]);
        let told = [Barrier::Retired, Barrier::Suspended, Barrier::Blocked, Barrier::BlockAll].map(Barrier::tell);
        assert_eq!(told, ["has retired", "is suspended", "is behind a block", "takes no mail"]);
    }
}
