//! The envelope: exactly one of these is the answer to a request, whichever front carried it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::domain::event::Number;
use crate::error::{Code, Kind};
use crate::playbook::Step;

/// A success.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer<T> {
    pub relay: u8,
    pub ok: bool,
    pub verb: String,
    pub result: T,
    pub signals: Vec<Signal>,
    pub next: Vec<String>,
}

impl<T> Answer<T> {
    pub fn new(verb: &str, result: T, signals: Vec<Signal>, next: Vec<String>) -> Self {
        Answer { relay: 1, ok: true, verb: verb.to_owned(), result, signals, next }
    }
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    pub relay: u8,
    pub ok: bool,
    pub verb: String,
    pub error: Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failed {
    pub code: Code,
    pub kind: Kind,
    pub message: String,
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    pub details: Map<String, Value>,
    pub playbook: Vec<Step>,
}

/// The advisory half of the protocol: never a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub code: SignalCode,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<Number>,
}

impl Signal {
    pub fn new(code: SignalCode, text: impl Into<String>) -> Self {
        Signal { code, text: text.into(), about: None }
    }

    #[must_use]
    pub fn about(mut self, id: Number) -> Self {
        self.about = Some(id);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SignalCode {
    Contested,
    BroadClaim,
    StaleClaim,
    LongTtl,
    TopicDrift,
    OffThread,
    AckOverdue,
    ContactWaiting,
    ArchiveLags,
    Recovered,
    HolderSilent,
    DirtyOutsideClaim,
    LikelyDuplicate,
    SecretSuspected,
    ClockJumped,
    SomeoneWaits,
}

impl SignalCode {
    pub const ALL: [SignalCode; 16] = [
        SignalCode::Contested,
        SignalCode::BroadClaim,
        SignalCode::StaleClaim,
        SignalCode::LongTtl,
        SignalCode::TopicDrift,
        SignalCode::OffThread,
        SignalCode::AckOverdue,
        SignalCode::ContactWaiting,
        SignalCode::ArchiveLags,
        SignalCode::Recovered,
        SignalCode::HolderSilent,
        SignalCode::DirtyOutsideClaim,
        SignalCode::LikelyDuplicate,
        SignalCode::SecretSuspected,
        SignalCode::ClockJumped,
        SignalCode::SomeoneWaits,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SignalCode::Contested => "CONTESTED",
            SignalCode::BroadClaim => "BROAD_CLAIM",
            SignalCode::StaleClaim => "STALE_CLAIM",
            SignalCode::LongTtl => "LONG_TTL",
            SignalCode::TopicDrift => "TOPIC_DRIFT",
            SignalCode::OffThread => "OFF_THREAD",
            SignalCode::AckOverdue => "ACK_OVERDUE",
            SignalCode::ContactWaiting => "CONTACT_WAITING",
            SignalCode::ArchiveLags => "ARCHIVE_LAGS",
            SignalCode::Recovered => "RECOVERED",
            SignalCode::HolderSilent => "HOLDER_SILENT",
            SignalCode::DirtyOutsideClaim => "DIRTY_OUTSIDE_CLAIM",
            SignalCode::LikelyDuplicate => "LIKELY_DUPLICATE",
            SignalCode::SecretSuspected => "SECRET_SUSPECTED",
            SignalCode::ClockJumped => "CLOCK_JUMPED",
            SignalCode::SomeoneWaits => "SOMEONE_WAITS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_written_as_its_code_and_no_code_is_also_an_error() {
        for code in SignalCode::ALL {
            let json = serde_json::to_value(code).unwrap_or_default();
            assert_eq!(json, Value::from(code.as_str()));
            assert_eq!(Code::parse(code.as_str()), None);
        }
    }
}
