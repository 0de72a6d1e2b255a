//! The answers that Claude Code made up and others took over: an object for the one event, which is named in it.
//!
//! Any byte beside it, a missing or wrong name, and for Codex any key that is not its own, and the answer counts for
//! nothing.

use serde::Serialize;

use super::Words;
use crate::hook::event::Event;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    hook_specific_output: Specific<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<&'a str>,
}

#[derive(Serialize)]
struct Block<'a> {
    decision: &'a str,
    reason: &'a str,
}

pub fn write(event: &Event, words: &Words) -> Option<String> {
    match &words.go_on {
        Some(reason) => block(reason),
        None => specific(event, words),
    }
}

/// The turn goes on with this.
pub fn block(reason: &str) -> Option<String> {
    json(&Block { decision: "block", reason })
}

/// There is no word for letting a call run: `allow` would take the user's own say in it away.
pub fn specific(event: &Event, words: &Words) -> Option<String> {
    let decision = words.decision.as_ref();
    let additional_context = words.context.as_deref();
    if decision.is_none() && additional_context.is_none() {
        return None;
    }
    json(&Output {
        hook_specific_output: Specific {
            hook_event_name: &event.name,
            permission_decision: decision.map(|(decision, _)| *decision),
            permission_decision_reason: decision.map(|(_, reason)| reason.as_str()),
            additional_context,
        },
    })
}

pub fn json<T: Serialize>(answer: &T) -> Option<String> {
    serde_json::to_string(answer).ok()
}
