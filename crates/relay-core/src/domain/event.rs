//! An event: one line of the history. Everything else changes only by appending one.
//!
//! The payload is canonical JSON in a fixed field order. Free text never stands in it: it is named by a salted hash and
//! kept beside the event, so that it can be erased without breaking the chain.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::agent::Policy;
use super::delivery::Line;
use super::message::Importance;
use super::name::{AgentName, Party, ProjectKey, ThreadId};
use super::time::Timestamp;

/// Each project counts its events 1, 2, 3 …; the number of the event that created a thing is that thing's id.
pub type Number = u64;

/// SHA-256(16 random bytes ‖ text) in hex: what an event says of a free text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TextHash(pub String);

/// A free text on its way into the store, with the salt that hides it from guessing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Which text of the event it is: `subject`, `body`, `why`, `task`.
    pub field: &'static str,
    pub salt: [u8; 16],
    pub text: String,
}

impl Text {
    pub fn hash(&self) -> TextHash {
        text_hash(&self.salt, &self.text)
    }
}

pub fn text_hash(salt: &[u8], text: &str) -> TextHash {
    let digest = Sha256::new().chain_update(salt).chain_update(text.as_bytes()).finalize();
    TextHash(hex(&digest))
}

/// The same message in another project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Twin {
    pub project: ProjectKey,
    pub number: Number,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient {
    pub party: Party,
    pub line: Line,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    pub id: Number,
    pub ttl_ms: i64,
    pub expires_at: Timestamp,
    pub exclusive: bool,
    pub reason: Option<ThreadId>,
    /// Claims of others that the answer told the holder of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<Number>,
}

/// A pair of claims as it was told to one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub mine: Number,
    pub theirs: Number,
    pub mark: String,
}

/// What can happen on the bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Happened {
    ProjectOpened {
        project: String,
        path: ProjectKey,
    },
    ProjectMoved {
        from: ProjectKey,
        to: ProjectKey,
    },
    /// Another project that this one knows: from now on its agents are known by the new path.
    OtherProjectMoved {
        from: ProjectKey,
        to: ProjectKey,
    },
    AgentRegistered {
        agent: AgentName,
        credential: String,
        program: Option<String>,
        model: Option<String>,
        task: Option<TextHash>,
        session: Option<String>,
        parent: Option<AgentName>,
        policy: Policy,
    },
    /// Only what changed is set.
    AgentResumed {
        agent: AgentName,
        program: Option<String>,
        model: Option<String>,
        task: Option<TextHash>,
        session: Option<String>,
        revived: bool,
    },
    AgentSuspended {
        agent: AgentName,
    },
    AgentReinstated {
        agent: AgentName,
    },
    AgentRetired {
        agent: AgentName,
    },
    PolicySet {
        agent: AgentName,
        policy: Policy,
    },
    ThreadPrepared {
        thread: ThreadId,
        agent: AgentName,
    },
    ThreadLeft {
        thread: ThreadId,
        agent: AgentName,
    },
    ThreadClosed {
        thread: ThreadId,
        agent: Party,
    },
    MessageSent {
        thread: ThreadId,
        from: Party,
        recipients: Vec<Recipient>,
        subject: TextHash,
        body: TextHash,
        importance: Importance,
        ack_within_ms: Option<i64>,
        reply_to: Option<Number>,
        twin: Option<Twin>,
    },
    /// The texts of a message are erased, and the subject of those that had taken it over from there.
    MessageRedacted {
        message: Number,
        copies: Vec<Number>,
        why: Option<TextHash>,
    },
    /// A held copy whose consent never came; `blocked` tells a refusal from a lapse.
    HeldLapsed {
        message: Number,
        recipient: Party,
        blocked: bool,
    },
    MailSurfaced {
        agent: Party,
        messages: Vec<Number>,
        contested: Vec<Told>,
    },
    MailRead {
        agent: Party,
        messages: Vec<Number>,
    },
    MailAcked {
        agent: Party,
        messages: Vec<Number>,
    },
    ReservationGranted {
        agent: AgentName,
        pattern: String,
        prefix: String,
        exclusive: bool,
        reason: Option<ThreadId>,
        ttl_ms: i64,
        first_granted_at: Timestamp,
        expires_at: Timestamp,
        /// Every live claim that shares a path with this one, whoever holds it.
        overlaps: Vec<Number>,
        /// Those of them that the newcomer was told of.
        conflicts: Vec<Number>,
    },
    ReservationRenewed {
        agent: AgentName,
        claims: Vec<Renewal>,
    },
    ReservationReleased {
        agent: AgentName,
        claims: Vec<Number>,
    },
    ReservationTaken {
        id: Number,
        from: AgentName,
        /// What the human takes is nobody's afterwards.
        by: Party,
        generation: u64,
        expires_at: Timestamp,
        why: TextHash,
    },
    LinkRequested {
        from: Party,
        to: Party,
        why: Option<TextHash>,
        ttl_ms: i64,
        expires_at: Timestamp,
    },
    LinkAccepted {
        link: Number,
        by: Party,
        by_policy: bool,
        expires_at: Timestamp,
        /// Held messages that this acceptance delivers.
        delivers: Vec<Number>,
    },
    /// Without a link the block makes one, with this event's number.
    LinkBlocked {
        link: Option<Number>,
        by: Party,
        other: Party,
    },
    LinkRevoked {
        link: Number,
        by: Party,
    },
}

impl Happened {
    /// The claims that it changes; what it grants has no number yet.
    pub fn claims(&self) -> Vec<Number> {
        match self {
            Happened::ReservationRenewed { claims, .. } => claims.iter().map(|claim| claim.id).collect(),
            Happened::ReservationReleased { claims, .. } => claims.clone(),
            Happened::ReservationTaken { id, .. } => vec![*id],
            _ => Vec::new(),
        }
    }

    /// The name of every kind.
    pub const KINDS: [&str; 26] = [
        "project_opened",
        "project_moved",
        "other_project_moved",
        "agent_registered",
        "agent_resumed",
        "agent_suspended",
        "agent_reinstated",
        "agent_retired",
        "policy_set",
        "thread_prepared",
        "thread_left",
        "thread_closed",
        "message_sent",
        "message_redacted",
        "held_lapsed",
        "mail_surfaced",
        "mail_read",
        "mail_acked",
        "reservation_granted",
        "reservation_renewed",
        "reservation_released",
        "reservation_taken",
        "link_requested",
        "link_accepted",
        "link_blocked",
        "link_revoked",
    ];

    /// Whether losing this event in a power cut costs nothing but showing something twice.
    pub fn may_be_lost(&self) -> bool {
        matches!(self, Happened::MailSurfaced { .. } | Happened::MailRead { .. })
    }

    /// Names everybody of a project that has moved since by its new path, as the projections do.
    pub fn follow(&mut self, from: &ProjectKey, to: &ProjectKey) {
        if let Happened::MessageSent { twin: Some(twin), .. } = self
            && twin.project == *from
        {
            twin.project = to.clone();
        }
        self.parties().into_iter().for_each(|party| party.follow(from, to));
    }

    fn parties(&mut self) -> Vec<&mut Party> {
        match self {
            Happened::MessageSent { from, recipients, .. } => {
                std::iter::once(from).chain(recipients.iter_mut().map(|recipient| &mut recipient.party)).collect()
            }
            Happened::HeldLapsed { recipient, .. } => vec![recipient],
            Happened::MailSurfaced { agent, .. }
            | Happened::MailRead { agent, .. }
            | Happened::MailAcked { agent, .. } => {
                vec![agent]
            }
            Happened::LinkRequested { from, to, .. } => vec![from, to],
            Happened::LinkBlocked { by, other, .. } => vec![by, other],
            Happened::LinkAccepted { by, .. } | Happened::LinkRevoked { by, .. } => vec![by],
            _ => Vec::new(),
        }
    }

    /// The free texts that stand beside this event, each by the hash that names it.
    pub fn texts(&self) -> Vec<(&'static str, &TextHash)> {
        match self {
            Happened::MessageSent { subject, body, .. } => vec![("subject", subject), ("body", body)],
            Happened::AgentRegistered { task: Some(task), .. } | Happened::AgentResumed { task: Some(task), .. } => {
                vec![("task", task)]
            }
            Happened::ReservationTaken { why, .. }
            | Happened::LinkRequested { why: Some(why), .. }
            | Happened::MessageRedacted { why: Some(why), .. } => {
                vec![("why", why)]
            }
            _ => Vec::new(),
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Happened::ProjectOpened { .. } => "project_opened",
            Happened::ProjectMoved { .. } => "project_moved",
            Happened::OtherProjectMoved { .. } => "other_project_moved",
            Happened::AgentRegistered { .. } => "agent_registered",
            Happened::AgentResumed { .. } => "agent_resumed",
            Happened::AgentSuspended { .. } => "agent_suspended",
            Happened::AgentReinstated { .. } => "agent_reinstated",
            Happened::AgentRetired { .. } => "agent_retired",
            Happened::PolicySet { .. } => "policy_set",
            Happened::ThreadPrepared { .. } => "thread_prepared",
            Happened::ThreadLeft { .. } => "thread_left",
            Happened::ThreadClosed { .. } => "thread_closed",
            Happened::MessageSent { .. } => "message_sent",
            Happened::MessageRedacted { .. } => "message_redacted",
            Happened::HeldLapsed { .. } => "held_lapsed",
            Happened::MailSurfaced { .. } => "mail_surfaced",
            Happened::MailRead { .. } => "mail_read",
            Happened::MailAcked { .. } => "mail_acked",
            Happened::ReservationGranted { .. } => "reservation_granted",
            Happened::ReservationRenewed { .. } => "reservation_renewed",
            Happened::ReservationReleased { .. } => "reservation_released",
            Happened::ReservationTaken { .. } => "reservation_taken",
            Happened::LinkRequested { .. } => "link_requested",
            Happened::LinkAccepted { .. } => "link_accepted",
            Happened::LinkBlocked { .. } => "link_blocked",
            Happened::LinkRevoked { .. } => "link_revoked",
        }
    }
}

/// The canonical payload: its field order is part of the format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload {
    pub at: Timestamp,
    pub actor: Party,
    pub key: Option<String>,
    #[serde(flatten)]
    pub what: Happened,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub number: Number,
    pub payload: Payload,
    pub hash: String,
}

/// The chain: each hash covers the one before it, the project, the number and the payload, each with its length.
pub fn chain_hash(project: &str, number: Number, previous: &str, payload: &str) -> String {
    let mut hasher = Sha256::new();
    for part in ["relay.event.v1", project, &number.to_string(), previous, payload] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hex(&hasher.finalize())
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_keeps_its_field_order_and_reads_back() {
        let payload = Payload {
            at: Timestamp::from_millis(0),
            actor: Party::Human,
            key: Some("k".into()),
            what: Happened::MailAcked { agent: Party::Human, messages: vec![3, 5] },
        };
        let text = serde_json::to_string(&payload).unwrap_or_default();
        assert_eq!(
            text,
            r#"{"at":"1970-01-01T00:00:00.000Z","actor":"human","key":"k","kind":"mail_acked","agent":"human","messages":[3,5]}"#
        );
        assert_eq!(serde_json::from_str::<Payload>(&text).ok(), Some(payload));
    }

    #[test]
    fn the_chain_covers_every_part() {
        let base = chain_hash("p", 1, "prev", "payload");
        assert_eq!(base.len(), 64);
        assert_ne!(base, chain_hash("q", 1, "prev", "payload"));
        assert_ne!(base, chain_hash("p", 2, "prev", "payload"));
        assert_ne!(base, chain_hash("p", 1, "other", "payload"));
        assert_ne!(base, chain_hash("p", 1, "prev", "payloae"));
        assert_ne!(chain_hash("p", 1, "ab", "c"), chain_hash("p", 1, "a", "bc"), "lengths are hashed too");
    }

    #[test]
    fn the_same_text_with_another_salt_has_another_hash() {
        assert_ne!(text_hash(&[0; 16], "yes"), text_hash(&[1; 16], "yes"));
        assert_eq!(text_hash(&[1; 16], "yes"), text_hash(&[1; 16], "yes"));
    }

    /// One of each, as short as it may be.
    fn happenings() -> Vec<Happened> {
        let texts = [
            r#"{"kind":"project_opened","project":"p","path":"/p"}"#,
            r#"{"kind":"project_moved","from":"/p","to":"/q"}"#,
            r#"{"kind":"agent_registered","agent":"Blue","credential":"uid:1","program":null,"model":null,"task":null,"session":null,"parent":null,"policy":"auto"}"#,
            r#"{"kind":"agent_resumed","agent":"Blue","program":null,"model":null,"task":null,"session":null,"revived":true}"#,
            r#"{"kind":"agent_suspended","agent":"Blue"}"#,
            r#"{"kind":"agent_reinstated","agent":"Blue"}"#,
            r#"{"kind":"agent_retired","agent":"Blue"}"#,
            r#"{"kind":"policy_set","agent":"Blue","policy":"open"}"#,
            r#"{"kind":"thread_prepared","thread":"t","agent":"Blue"}"#,
            r#"{"kind":"thread_left","thread":"t","agent":"Blue"}"#,
            r#"{"kind":"thread_closed","thread":"t","agent":"Blue"}"#,
            r#"{"kind":"message_sent","thread":"t","from":"Blue","recipients":[{"party":"Red","line":"to"}],"subject":"s","body":"b","importance":"normal","ack_within_ms":null,"reply_to":null,"twin":null}"#,
            r#"{"kind":"message_redacted","message":1,"copies":[2],"why":null}"#,
            r#"{"kind":"held_lapsed","message":1,"recipient":"Red","blocked":false}"#,
            r#"{"kind":"mail_surfaced","agent":"Blue","messages":[1],"contested":[]}"#,
            r#"{"kind":"mail_read","agent":"Blue","messages":[1]}"#,
            r#"{"kind":"mail_acked","agent":"Blue","messages":[1]}"#,
            r#"{"kind":"reservation_granted","agent":"Blue","pattern":"a","prefix":"a","exclusive":true,"reason":null,"ttl_ms":1,"first_granted_at":"1970-01-01T00:00:00.000Z","expires_at":"1970-01-01T00:00:00.001Z","overlaps":[],"conflicts":[]}"#,
            r#"{"kind":"reservation_renewed","agent":"Blue","claims":[]}"#,
            r#"{"kind":"reservation_released","agent":"Blue","claims":[1]}"#,
            r#"{"kind":"reservation_taken","id":1,"from":"Blue","by":"Red","generation":1,"expires_at":"1970-01-01T00:00:00.000Z","why":"w"}"#,
            r#"{"kind":"link_requested","from":"Blue","to":"Red","why":null,"ttl_ms":1,"expires_at":"1970-01-01T00:00:00.000Z"}"#,
            r#"{"kind":"link_accepted","link":1,"by":"Red","by_policy":true,"expires_at":"1970-01-01T00:00:00.000Z","delivers":[]}"#,
            r#"{"kind":"link_blocked","link":null,"by":"Red","other":"Blue"}"#,
            r#"{"kind":"link_revoked","link":1,"by":"Red"}"#,
        ];
        texts
            .iter()
            .map(|text| {
                let what: Happened = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
                assert_eq!(serde_json::to_string(&what).unwrap_or_default(), *text, "the format is golden");
                what
            })
            .collect()
    }

    #[test]
    fn every_kind_is_on_the_list_of_kinds() {
        let fault = serde_json::from_str::<Happened>(r#"{"kind":"?"}"#).err().map(|fault| fault.to_string());
        let expected = Happened::KINDS.map(|kind| format!("`{kind}`")).join(", ");
        assert!(fault.as_ref().is_some_and(|fault| fault.contains(&format!("one of {expected}"))), "{fault:?}");
    }

    #[test]
    fn every_kind_is_named_as_its_payload_names_it_and_once() {
        let mut kinds = Vec::new();
        for what in happenings() {
            let json = serde_json::to_value(&what).unwrap_or_default();
            assert_eq!(json["kind"], what.kind());
            kinds.push(what.kind());
        }
        let count = kinds.len();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), count);
    }

    #[test]
    fn everybody_of_a_project_that_moved_is_written_by_its_new_path() {
        let texts = [
            r#"{"kind":"message_sent","thread":"t","from":"Blue@/old","recipients":[{"party":"Red@/old","line":"to"},{"party":"Red@/other","line":"cc"}],"subject":"s","body":"b","importance":"normal","ack_within_ms":null,"reply_to":null,"twin":{"project":"/old","number":1}}"#,
            r#"{"kind":"held_lapsed","message":1,"recipient":"Red@/old","blocked":false}"#,
            r#"{"kind":"mail_surfaced","agent":"Red@/old","messages":[1],"contested":[]}"#,
            r#"{"kind":"mail_read","agent":"Red@/old","messages":[1]}"#,
            r#"{"kind":"mail_acked","agent":"Red@/old","messages":[1]}"#,
            r#"{"kind":"link_requested","from":"Blue@/old","to":"Red@/old","why":null,"ttl_ms":1,"expires_at":"1970-01-01T00:00:00.000Z"}"#,
            r#"{"kind":"link_accepted","link":1,"by":"Red@/old","by_policy":true,"expires_at":"1970-01-01T00:00:00.000Z","delivers":[]}"#,
            r#"{"kind":"link_blocked","link":null,"by":"Red@/old","other":"Blue@/old"}"#,
            r#"{"kind":"link_revoked","link":1,"by":"Red@/old"}"#,
        ];
        let (old, new) = (ProjectKey::resolved("/old"), ProjectKey::resolved("/new"));
        for text in texts {
            let mut what: Happened = serde_json::from_str(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
            what.follow(&ProjectKey::resolved("/elsewhere"), &new);
            assert_eq!(serde_json::to_string(&what).unwrap_or_default(), text, "nobody there moved");
            what.follow(&old, &new);
            assert_eq!(serde_json::to_string(&what).unwrap_or_default(), text.replace("/old", "/new"));
        }
    }

    #[test]
    fn only_what_is_shown_again_may_be_lost() {
        let lost: Vec<&str> = happenings().iter().filter(|what| what.may_be_lost()).map(Happened::kind).collect();
        assert_eq!(lost, ["mail_surfaced", "mail_read"]);
    }

    #[test]
    fn bytes_are_written_as_two_small_hex_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }
}
