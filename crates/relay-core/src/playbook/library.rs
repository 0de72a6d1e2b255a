//! The embedded files, one for each error class.

use serde::Deserialize;
use toml::Table;

use crate::error::Code;

/// A playbook as it stands in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Playbook {
    /// What the caller sees, in a sentence.
    pub symptom: String,
    /// Whether the same request is made again at the end.
    #[serde(default)]
    pub retry: bool,
    #[serde(default)]
    pub step: Vec<Template>,
}

/// A step before its values are filled in. `{name}` stands for a value of the error's details; `{name?}` for one that may
/// be absent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub why: String,
    #[serde(default)]
    pub unattended: bool,
    /// One step for each value of this list in the details, as `{each}`; none when it is absent or empty.
    pub each: Option<String>,
    /// No step where the details have this value.
    pub unless: Option<String>,
    /// The verb, for a step that is also a tool call.
    pub tool: Option<String>,
    /// The flags of the verb or command, by their long names with `_`.
    #[serde(default)]
    pub args: Table,
    /// The command, for a step of an operator.
    pub command: Option<String>,
}

macro_rules! embedded {
    ($($code:literal)*) => {
        fn text(code: Code) -> &'static str {
            match code.as_str() {
                $($code => include_str!(concat!("../../../../playbooks/", $code, ".toml")),)*
                // The test below walks the whole catalogue, so that a class without a file does not leave the house.
                _ => "symptom = \"\"",
            }
        }
    };
}

embedded! {
    "PROJECT_UNRESOLVED" "PROJECT_KEY_INVALID" "AGENT_NOT_REGISTERED" "AGENT_NAME_INVALID" "AGENT_NAME_TAKEN"
    "AGENT_RETIRED" "AGENT_SUSPENDED" "IDENTITY_MISMATCH" "THREAD_ID_INVALID" "THREAD_MISMATCH" "THREAD_NOT_FOUND"
    "MESSAGE_NOT_FOUND" "NOT_A_RECIPIENT" "RECIPIENT_NOT_FOUND" "CONTACT_REQUIRED" "CONTACT_PENDING" "CONTACT_BLOCKED"
    "LINK_NOT_FOUND" "FILE_RESERVATION_CONFLICT" "RESERVATION_NOT_HELD" "HOLDER_ALIVE" "PATTERN_INVALID"
    "PATTERN_OUTSIDE_PROJECT" "TTL_OUT_OF_RANGE" "INPUT_INVALID" "BODY_TOO_LARGE" "RATE_LIMITED" "INBOX_FULL"
    "IDEMPOTENCY_REUSED" "WAIT_TIMEOUT" "WAIT_CYCLE" "STORE_BUSY" "STORE_FULL" "STORE_READONLY" "STORE_IO"
    "STORE_DAMAGED" "STORE_TOO_NEW" "STORE_FOREIGN" "STORE_UNSUPPORTED" "STORE_UNREACHABLE" "ARCHIVE_BEHIND"
    "ARCHIVE_DIVERGED" "ARCHIVE_UNAVAILABLE" "UNAUTHORIZED" "RECOVERY_EXHAUSTED" "INTERNAL"
}

/// The playbook of a class.
pub fn playbook(code: Code) -> Playbook {
    toml::from_str(text(code)).unwrap_or_else(|fault| Playbook {
        symptom: format!("the playbook of {code} does not parse: {fault}"),
        retry: false,
        step: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_playbook_that_parses_and_leads_somewhere() {
        for code in Code::ALL {
            let parsed: Result<Playbook, _> = toml::from_str(text(*code));
            let playbook = parsed.unwrap_or_else(|fault| panic!("{code}: {fault}"));
            assert!(!playbook.symptom.is_empty(), "{code} has no symptom");
            assert!(playbook.retry || !playbook.step.is_empty(), "{code} leads nowhere");
            for step in &playbook.step {
                assert!(step.tool.is_none() || step.command.is_none(), "{code}: a step is a tool call or a command");
                assert!(
                    !step.unattended || step.tool.is_some() || step.command.is_some(),
                    "{code}: nothing runs unattended"
                );
            }
        }
    }
}
