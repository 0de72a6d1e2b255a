//! A delivery: one recipient's copy of a message, and how far it has come.

use serde::{Deserialize, Serialize};

use super::ack::Ack;
use super::event::Number;
use super::name::Party;
use super::time::{Span, Timestamp};

/// In which line of the envelope a recipient stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    To,
    Cc,
    Bcc,
}

impl Line {
    pub fn as_str(self) -> &'static str {
        match self {
            Line::To => "to",
            Line::Cc => "cc",
            Line::Bcc => "bcc",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Line::To, Line::Cc, Line::Bcc].into_iter().find(|line| line.as_str() == text)
    }
}

/// How far a copy has come; each state includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for the recipient's consent.
    Held,
    /// Was held, and the consent never came.
    Lapsed,
    Stored,
    /// Handed to the agent by poll or a hook.
    Surfaced,
    Read,
    Acked,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    pub message: Number,
    pub recipient: Party,
    pub line: Line,
    /// The event that delivered it: the message itself or, for held mail, the acceptance. None while it is held.
    pub delivered_by: Option<Number>,
    pub delivered_at: Option<Timestamp>,
    pub lapsed: bool,
    pub surfaced_at: Option<Timestamp>,
    pub read_at: Option<Timestamp>,
    pub acked_at: Option<Timestamp>,
}

impl Delivery {
    pub fn state(&self) -> State {
        if self.acked_at.is_some() {
            State::Acked
        } else if self.read_at.is_some() {
            State::Read
        } else if self.surfaced_at.is_some() {
            State::Surfaced
        } else if self.delivered_by.is_some() {
            State::Stored
        } else if self.lapsed {
            State::Lapsed
        } else {
            State::Held
        }
    }

    pub fn ack(&self, ack_within: Option<Span>) -> Ack {
        Ack::of(ack_within, self.delivered_at, self.acked_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_000);

    /// A copy that has come as far as the letters say: (d)elivered, (l)apsed, (s)urfaced, (r)ead, (a)cked.
    fn copy(letters: &str) -> Delivery {
        let at = |letter| letters.contains(letter).then_some(AT);
        Delivery {
            message: 7,
            recipient: Party::Human,
            line: Line::To,
            delivered_by: at('d').map(|_| 7),
            delivered_at: at('d'),
            lapsed: letters.contains('l'),
            surfaced_at: at('s'),
            read_at: at('r'),
            acked_at: at('a'),
        }
    }

    #[test]
    fn a_copy_is_as_far_as_it_has_come() {
        for (letters, expected) in [
            ("", State::Held),
            ("l", State::Lapsed),
            ("d", State::Stored),
            ("ds", State::Surfaced),
            ("dr", State::Read),
            ("dsr", State::Read),
            ("da", State::Acked),
            ("dsra", State::Acked),
        ] {
            assert_eq!(copy(letters).state(), expected, "{letters:?}");
        }
    }

    #[test]
    fn the_states_are_in_the_order_of_a_copys_way() {
        assert!([State::Held, State::Lapsed, State::Stored, State::Surfaced, State::Read, State::Acked].is_sorted());
    }

    #[test]
    fn an_ack_counts_from_the_delivery() {
        let within = Some(Span::hours(1));
        assert_eq!(copy("d").ack(within), Ack::Waiting { due: AT.plus(Span::hours(1)) });
        assert_eq!(copy("d").ack(None), Ack::NotAsked);
        assert_eq!(copy("").ack(within), Ack::NotAsked);
        assert_eq!(copy("dra").ack(within), Ack::Given { at: AT });
    }

    #[test]
    fn a_line_reads_back_from_its_word() {
        for (line, word) in [(Line::To, "to"), (Line::Cc, "cc"), (Line::Bcc, "bcc")] {
            assert_eq!((line.as_str(), Line::parse(word)), (word, Some(line)));
        }
        assert_eq!(Line::parse("from"), None);
    }
}
