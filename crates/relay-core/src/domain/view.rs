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
    /// The store's owner without an agent, or somebody who has agents here and names none: sees what every registered agent
    /// sees.
    Anyone,
}

impl Viewer {
    /// A message all of whose recipients are blind is seen by its parties and the human only.
    pub fn sees(&self, message: &Message) -> bool {
        match self {
            Viewer::Human => true,
            Viewer::Agent(me) if message.from == *me || message.has_reached(me) => true,
            // The project is the boundary: a guest sees its own mail and nothing else.
            Viewer::Agent(Party::Elsewhere(..)) => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::message::Importance;
    use crate::domain::name::ThreadId;
    use crate::domain::time::Timestamp;

    fn party(text: &str) -> Party {
        Party::try_from(text.to_owned()).unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn delivery(recipient: &str, line: Line) -> Delivery {
        Delivery {
            message: 7,
            recipient: party(recipient),
            line,
            delivered_by: Some(7),
            delivered_at: Some(Timestamp::from_millis(0)),
            lapsed: false,
            surfaced_at: None,
            read_at: None,
            acked_at: None,
        }
    }

    /// A message from Blue; each recipient is written with its line: `to Red`, `bcc Grey`.
    fn message(recipients: &[&str]) -> Message {
        let deliver = |text: &&str| {
            let (line, name) = text.split_once(' ').unwrap_or_else(|| panic!("{text}"));
            delivery(name, Line::parse(line).unwrap_or_else(|| panic!("{line}")))
        };
        Message {
            id: 7,
            thread: ThreadId::parse("bd-1").unwrap_or_else(|fault| panic!("{fault}")),
            from: party("Blue"),
            subject: None,
            body: None,
            importance: Importance::Normal,
            ack_within: None,
            reply_to: None,
            sent_at: Timestamp::from_millis(0),
            twin: None,
            redacted: None,
            deliveries: recipients.iter().map(deliver).collect(),
        }
    }

    fn viewer(name: &str) -> Viewer {
        match name {
            "human" => Viewer::Human,
            "anyone" => Viewer::Anyone,
            name => Viewer::Agent(party(name)),
        }
    }

    /// `shown` lists the recipients that the viewer is shown, or says that it does not see the message.
    fn check(recipients: &[&str], who: &str, shown: Option<&[&str]>) {
        let (message, viewer) = (message(recipients), viewer(who));
        assert_eq!(viewer.sees(&message), shown.is_some(), "{who} of {recipients:?}");
        let names: Vec<String> = message
            .deliveries
            .iter()
            .filter(|delivery| viewer.sees_delivery(&message, delivery))
            .map(|delivery| delivery.recipient.to_string())
            .collect();
        assert_eq!(names, shown.unwrap_or_default(), "{who} of {recipients:?}");
    }

    #[test]
    fn the_reading_rule_over_every_viewer_and_every_kind_of_envelope() {
        let open: &[&str] = &["to Red", "cc Cyan"];
        for who in ["human", "Blue", "Red", "Cyan", "Green", "anyone"] {
            check(open, who, Some(&["Red", "Cyan"]));
        }

        let mixed: &[&str] = &["to Red", "bcc Grey", "bcc White"];
        for (who, shown) in [
            ("human", vec!["Red", "Grey", "White"]),
            ("Blue", vec!["Red", "Grey", "White"]),
            ("Red", vec!["Red"]),
            ("Grey", vec!["Red", "Grey"]),
            ("White", vec!["Red", "White"]),
            ("Green", vec!["Red"]),
            ("anyone", vec!["Red"]),
        ] {
            check(mixed, who, Some(&shown));
        }

        let blind: &[&str] = &["bcc Grey", "bcc White"];
        for (who, shown) in [
            ("human", Some(vec!["Grey", "White"])),
            ("Blue", Some(vec!["Grey", "White"])),
            ("Grey", Some(vec!["Grey"])),
            ("White", Some(vec!["White"])),
            ("Red", None),
            ("Green", None),
            ("anyone", None),
        ] {
            check(blind, who, shown.as_deref());
        }
    }

    #[test]
    fn an_agent_of_another_project_sees_only_its_own_deliveries() {
        let guest = "Red@/srv/app";
        check(&["to Red"], guest, None);
        check(&["to Red", "cc Cyan@/srv/app"], guest, None);
        check(&["to Red@/srv/app", "to Cyan@/srv/app"], guest, Some(&["Red@/srv/app", "Cyan@/srv/app"]));
        check(&["bcc Red@/srv/app", "bcc Cyan@/srv/app"], guest, Some(&["Red@/srv/app"]));
        check(&["to Red@/srv/app"], "Red@/srv/other", None);
    }

    #[test]
    fn a_message_from_another_project_is_its_senders_too() {
        let sent = Message { from: party("Blue@/srv/app"), ..message(&["bcc Grey"]) };
        assert!(viewer("Blue@/srv/app").sees(&sent));
        assert!(viewer("Blue@/srv/app").sees_delivery(&sent, &sent.deliveries[0]));
        assert!(!viewer("Blue").sees(&sent));
    }
}
