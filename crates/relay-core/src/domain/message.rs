//! A message: one work or decision artifact in one thread.

use serde::{Deserialize, Serialize};

use super::delivery::Delivery;
use super::event::{Number, Twin};
use super::name::{Party, ThreadId};
use super::redaction::Redaction;
use super::time::{Span, Timestamp};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

impl Importance {
    pub const ALL: [Importance; 4] = [Importance::Low, Importance::Normal, Importance::High, Importance::Urgent];

    pub fn as_str(self) -> &'static str {
        match self {
            Importance::Low => "low",
            Importance::Normal => "normal",
            Importance::High => "high",
            Importance::Urgent => "urgent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Importance::ALL.into_iter().find(|importance| importance.as_str() == text)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: Number,
    pub thread: ThreadId,
    pub from: Party,
    /// None after redaction.
    pub subject: Option<String>,
    pub body: Option<String>,
    pub importance: Importance,
    pub ack_within: Option<Span>,
    pub reply_to: Option<Number>,
    pub sent_at: Timestamp,
    /// The same message in another project, where it crossed a border.
    pub twin: Option<Twin>,
    pub redacted: Option<Redaction>,
    pub deliveries: Vec<Delivery>,
}

impl Message {
    pub fn delivery_to(&self, party: &Party) -> Option<&Delivery> {
        self.deliveries.iter().find(|delivery| delivery.recipient == *party)
    }

    /// Whether `party` has a copy. One that waits for consent, or never got it, is not there.
    pub fn has_reached(&self, party: &Party) -> bool {
        self.delivery_to(party).is_some_and(|delivery| delivery.delivered_by.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importance_reads_back_from_its_word_and_has_an_order() {
        for (importance, word) in Importance::ALL.into_iter().zip(["low", "normal", "high", "urgent"]) {
            assert_eq!((importance.as_str(), Importance::parse(word)), (word, Some(importance)));
        }
        assert_eq!(Importance::parse("URGENT"), None);
        assert_eq!(Importance::default(), Importance::Normal);
        assert!(Importance::ALL.is_sorted());
    }
}
