//! Whether a message may reach a recipient: the recipient's policy, the context both share, and what beats them.

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The rule. What beats everything comes first, then consent, then context.
pub fn decide(question: Question) -> Verdict {
    match question.recipient {
        Standing::Retired => return Verdict::Barred(Barrier::Retired),
        Standing::Suspended => return Verdict::Barred(Barrier::Suspended),
        Standing::Active => {}
    }
    if question.from_human {
        return Verdict::Deliver;
    }
    if question.link == Some(LinkState::Blocked) {
        return Verdict::Barred(Barrier::Blocked);
    }
    if question.policy == Policy::BlockAll {
        return Verdict::Barred(Barrier::BlockAll);
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
