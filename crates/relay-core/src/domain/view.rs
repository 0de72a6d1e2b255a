//! Who may read what. The project is the reading boundary; blind copies are the exception.

use super::delivery::{Delivery, Line};
use super::message::Message;
use super::name::Party;

/// Through whose eyes something is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// The person in charge, with the human's credential.
    Human,
    Agent(Party),
    /// The store's owner without an agent: sees what every registered agent sees.
    Anyone,
}

impl Viewer {
    /// A message all of whose recipients are blind is seen by its parties and the human only.
    pub fn sees(&self, message: &Message) -> bool {
        match self {
            Viewer::Human => true,
            Viewer::Agent(me) if message.from == *me || message.has_reached(me) => true,
            _ => message.deliveries.iter().any(|delivery| delivery.line != Line::Bcc),
        }
    }

    /// A blind copy is shown to the sender, to that recipient and to the human.
    pub fn sees_delivery(&self, message: &Message, delivery: &Delivery) -> bool {
        match self {
            Viewer::Human => true,
            _ if delivery.line != Line::Bcc => self.sees(message),
            Viewer::Agent(me) => message.from == *me || delivery.recipient == *me,
            Viewer::Anyone => false,
        }
    }
}
