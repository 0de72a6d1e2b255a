//! The nouns as others see them.

use serde::{Deserialize, Serialize};

use crate::domain::agent::{Agent, Standing};
use crate::domain::contact::{Link, LinkState};
use crate::domain::delivery::{Line, State};
use crate::domain::event::Number;
use crate::domain::message::{Importance, Message};
use crate::domain::name::{Party, ProjectKey};
use crate::domain::redaction::Redaction;
use crate::domain::reservation::Reservation;
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProjectShape {
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentShape {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    pub state: String,
    pub alive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl AgentShape {
    /// How it stands, in one word: whoever may act is alive or silent, the others are what they are.
    pub fn standing(&self) -> &str {
        match (self.state.as_str(), self.alive) {
            ("active", true) => "alive",
            ("active", false) => "silent",
            (other, _) => other,
        }
    }

    pub fn of(agent: &Agent, state: Standing, alive: bool, seen_at: Timestamp) -> Self {
        AgentShape {
            name: agent.name.to_string(),
            program: agent.program.clone(),
            model: agent.model.clone(),
            task: agent.task.clone(),
            policy: Some(agent.policy.as_str().to_owned()),
            state: state.as_str().to_owned(),
            alive,
            seen_at: Some(seen_at),
            parent: agent.parent.as_ref().map(ToString::to_string),
            thread: agent.thread.as_ref().map(ToString::to_string),
        }
    }

    /// As much as agents of other projects see: who it is, and whether an answer can be expected.
    #[must_use]
    pub fn for_guests(self, project: &ProjectKey) -> Self {
        let name = format!("{}@{project}", self.name);
        AgentShape { name, model: None, task: None, policy: None, seen_at: None, parent: None, thread: None, ..self }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecipientShape {
    pub name: String,
    pub kind: Line,
    pub state: State,
    /// Told to the human, as the one who looks after all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surfaced_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acked_at: Option<Timestamp>,
}

/// What is certain of how a message came before whoever reads it. Nobody asks for it in JSON: it says no more than `from` and
/// `recipients` do to one who knows its own name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// It was not written to the reader, who sees it because the project is open to its agents.
    #[default]
    Seen,
    /// The reader wrote it.
    Own,
    /// It was delivered to the reader, by consent that was checked when it was.
    Delivered,
}

/// A message as `poll`, `prepare` and `look` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageShape {
    pub id: Number,
    pub thread: String,
    pub from: String,
    /// Absent after redaction.
    pub subject: Option<String>,
    pub importance: Importance,
    pub ack_required: bool,
    pub sent_at: Timestamp,
    /// The reader's own times; null for somebody who is not a recipient.
    pub read_at: Option<Timestamp>,
    pub acked_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_due: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Number>,
    pub recipients: Vec<RecipientShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Of what a search found: the text around the first of its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<String>,
    /// Who erased the texts, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Box<RedactedShape>>,
    #[serde(skip)]
    pub reach: Reach,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedactedShape {
    pub by: String,
    pub at: Timestamp,
    pub number: Number,
    pub why: Option<String>,
}

impl From<&Redaction> for RedactedShape {
    fn from(redaction: &Redaction) -> Self {
        let Redaction { number, by, at, why } = redaction;
        RedactedShape { by: by.to_string(), at: *at, number: *number, why: why.clone() }
    }
}

impl MessageShape {
    /// What `viewer` is shown of a message that it sees.
    pub fn of(message: &Message, viewer: &Viewer, with_body: bool) -> Self {
        let own = match viewer {
            Viewer::Agent(me) => message.delivery_to(me),
            Viewer::Human => message.delivery_to(&Party::Human),
            Viewer::Anyone => None,
        };
        let recipients = message.deliveries.iter().filter(|delivery| viewer.sees_delivery(message, delivery));
        let is_own = match viewer {
            Viewer::Agent(me) => message.from == *me,
            Viewer::Human => message.from == Party::Human,
            Viewer::Anyone => false,
        };
        let reach = match own {
            _ if is_own => Reach::Own,
            Some(delivery) if delivery.state() != State::Held => Reach::Delivered,
            _ => Reach::Seen,
        };
        MessageShape {
            id: message.id,
            thread: message.thread.to_string(),
            from: message.from.to_string(),
            subject: message.subject.clone(),
            importance: message.importance,
            ack_required: message.ack_within.is_some(),
            sent_at: message.sent_at,
            read_at: own.and_then(|delivery| delivery.read_at),
            acked_at: own.and_then(|delivery| delivery.acked_at),
            ack_due: own.and_then(|delivery| match delivery.ack(message.ack_within) {
                crate::domain::ack::Ack::Waiting { due } => Some(due),
                _ => None,
            }),
            reply_to: message.reply_to,
            recipients: recipients
                .map(|delivery| RecipientShape {
                    name: delivery.recipient.to_string(),
                    kind: delivery.line,
                    state: delivery.state(),
                    surfaced_at: delivery.surfaced_at.filter(|_| *viewer == Viewer::Human),
                    read_at: delivery.read_at,
                    acked_at: delivery.acked_at,
                })
                .collect(),
            body: if with_body { message.body.clone() } else { None },
            excerpt: None,
            redacted: message.redacted.as_ref().map(|redaction| Box::new(redaction.into())),
            reach,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimShape {
    pub id: Number,
    pub pattern: String,
    pub holder: String,
    pub exclusive: bool,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub generation: u64,
}

impl From<&Reservation> for ClaimShape {
    fn from(claim: &Reservation) -> Self {
        ClaimShape {
            id: claim.id,
            pattern: claim.pattern.clone(),
            holder: claim.holder.to_string(),
            exclusive: claim.exclusive,
            expires_at: claim.expires_at,
            reason: claim.reason.as_ref().map(ToString::to_string),
            generation: claim.generation,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrantedShape {
    pub id: Number,
    pub pattern: String,
    pub exclusive: bool,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The claim was held already and lives longer now.
    pub renewed: bool,
}

/// A live claim of somebody else that shares a path with a wanted pattern.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConflictShape {
    pub id: Number,
    pub pattern: String,
    pub holder: String,
    pub exclusive: bool,
    pub expires_at: Timestamp,
    /// The wanted pattern.
    pub overlaps: String,
    /// A path that both match.
    pub example: String,
    /// The work tree in which that path is changed, where it was found in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The holder is active and was not seen for a while.
    pub silent: bool,
}

/// A pair of claims that contest each other, told to one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContestedShape {
    /// My claim.
    pub mine: Number,
    pub pattern: String,
    /// The other side's claim.
    pub id: Number,
    pub holder: String,
    pub overlaps: String,
    pub exclusive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The contest is over.
    pub ended: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkShape {
    pub id: Number,
    pub state: LinkState,
    pub from: String,
    pub to: String,
    pub by_policy: bool,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_by: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl LinkShape {
    pub fn of(link: &Link, now: Timestamp) -> Self {
        LinkShape {
            id: link.id,
            state: link.state(now),
            from: link.from.to_string(),
            to: link.to.to_string(),
            by_policy: link.by_policy,
            expires_at: link.expires_at,
            blocked_by: link.blockers().map(ToString::to_string).collect(),
            why: link.why.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadShape {
    pub id: String,
    pub subject: Option<String>,
    pub done: bool,
    pub messages: u64,
    pub last_at: Timestamp,
}

/// One line of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventShape {
    pub number: Number,
    pub at: Timestamp,
    pub actor: String,
    pub kind: String,
    /// What happened, as half a sentence after the actor's name.
    pub text: String,
    /// The payload without what stands in the other fields, and the texts that the viewer is shown.
    pub data: serde_json::Value,
}
