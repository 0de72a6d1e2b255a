//! Copilot CLI. Its own events carry no name, and are told apart by what they hold. Those that are registered under Claude
//! Code's names come with a name and in Claude Code's words, but take the same answers.

use relay_core::verbs::hook::Moment;
use serde::Serialize;
use serde_json::Value;

use super::cursor::camel;
use super::said::{self, Tools};
use super::specific::{block, json};
use super::{Grammar, Known, Words};
use crate::hook::event::Event;

pub const GRAMMAR: Grammar = Grammar {
    name: "copilot",
    program: "Copilot CLI",
    events: &[
        Known::heard("sessionStart", Moment::Start),
        Known::heard("subagentStart", Moment::Start).of_subagent(),
        Known::heard("userPromptSubmitted", Moment::Prompt),
        Known::heard("preToolUse", Moment::Before),
        Known::heard("postToolUse", Moment::After),
        Known::heard("postToolUseFailure", Moment::After),
        Known::deaf("agentStop", Moment::TurnEnd),
        Known::deaf("subagentStop", Moment::SubagentEnd).of_subagent(),
        Known::deaf("sessionEnd", Moment::End),
        Known::ignored("errorOccurred"),
        Known::ignored("notification"),
        Known::ignored("permissionRequest"),
        Known::ignored("preCompact"),
        Known::ignored("userPromptTransformed"),
    ],
    tools: Tools {
        edits: &["edit", "create", "str_replace_editor", "apply_patch", "Edit", "Write"],
        shells: &["bash", "powershell", "Bash"],
        patches_in_shell: false,
    },
    asks: true,
    read,
    write,
    silence: "",
    wakes: "it cannot be woken: only a hook that keeps its turn from ending would be heard",
    seen: Some("1.0.102"),
    wake: None,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<&'a str>,
}

fn read(stdin: &Value, grammar: &Grammar) -> Option<Event> {
    let mut event = match said::text(stdin, &["hook_event_name"]) {
        Some("Stop") => said::event(stdin, "agentStop", grammar)?,
        Some("UserPromptSubmit") => said::event(stdin, "userPromptSubmitted", grammar)?,
        Some(name) => said::event(stdin, &camel(name), grammar)?,
        None => said::event(stdin, called(stdin)?, grammar)?,
    };
    // Within a subagent, the session is the subagent itself.
    if let (Some(_), Some(root)) = (&event.subagent, said::text(stdin, &["parentAgentId", "parent_agent_id"])) {
        event.session = root.to_owned();
    }
    Some(event)
}

/// The event that holds just this, the more telling keys first.
fn called(stdin: &Value) -> Option<&'static str> {
    const KEYS: [(&str, &str); 13] = [
        ("errorContext", "errorOccurred"),
        ("notification_type", "notification"),
        ("hookName", "permissionRequest"),
        ("toolResult", "postToolUse"),
        ("error", "postToolUseFailure"),
        ("toolArgs", "preToolUse"),
        ("transformedPrompt", "userPromptTransformed"),
        ("prompt", "userPromptSubmitted"),
        ("customInstructions", "preCompact"),
        ("agentName", "subagentStart"),
        ("stopReason", "agentStop"),
        ("reason", "sessionEnd"),
        ("source", "sessionStart"),
    ];
    let has = |key: &str| stdin.get(key).is_some();
    let (_, name) = KEYS.iter().find(|(key, _)| has(key))?;
    Some(if *name == "subagentStart" && has("stopReason") { "subagentStop" } else { name })
}

fn write(_: &Event, words: &Words) -> Option<String> {
    if let Some(reason) = &words.go_on {
        return block(reason);
    }
    let decision = words.decision.as_ref();
    if decision.is_none() && words.context.is_none() {
        return None;
    }
    json(&Output {
        permission_decision: decision.map(|(decision, _)| *decision),
        permission_decision_reason: decision.map(|(_, reason)| reason.as_str()),
        additional_context: words.context.as_deref(),
    })
}
