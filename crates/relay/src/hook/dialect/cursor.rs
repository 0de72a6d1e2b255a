//! Cursor, the editor and its CLI. Where it runs hooks from `.claude/settings.json`, it may call its events as Claude
//! Code does.

use relay_core::verbs::hook::Moment;
use serde::Serialize;
use serde_json::Value;

use super::said::{self, Tools};
use super::specific::json;
use super::{Grammar, Known, Words};
use crate::hook::event::{Call, Deed, Event};

pub const GRAMMAR: Grammar = Grammar {
    name: "cursor",
    program: "Cursor",
    events: &[
        Known::heard("sessionStart", Moment::Start),
        Known::deaf("subagentStart", Moment::Start).of_subagent(),
        Known::deaf("beforeSubmitPrompt", Moment::Prompt),
        Known::deaf("preToolUse", Moment::Before),
        Known::deaf("beforeShellExecution", Moment::Before),
        Known::heard("postToolUse", Moment::After),
        Known::deaf("postToolUseFailure", Moment::After),
        Known::deaf("afterShellExecution", Moment::After),
        Known::deaf("afterFileEdit", Moment::After),
        Known::deaf("stop", Moment::TurnEnd),
        Known::deaf("subagentStop", Moment::SubagentEnd).of_subagent(),
        Known::deaf("sessionEnd", Moment::End),
        Known::ignored("afterAgentResponse"),
        Known::ignored("afterAgentThought"),
        Known::ignored("afterMCPExecution"),
        Known::ignored("afterTabFileEdit"),
        Known::ignored("beforeMCPExecution"),
        Known::ignored("beforeReadFile"),
        Known::ignored("beforeTabFileRead"),
        Known::ignored("preCompact"),
    ],
    tools: Tools {
        edits: &[
            "Write",
            "StrReplace",
            "Edit",
            "MultiEdit",
            "EditNotebook",
            "NotebookEdit",
            "ApplyPatch",
            "Delete",
            "edit_file",
            "search_replace",
            "delete_file",
        ],
        shells: &["Shell", "Bash", "run_terminal_cmd"],
        patches_in_shell: false,
    },
    // It is said to let calls run that it should ask for.
    asks: false,
    read,
    write,
    silence: "{}",
    wakes: "it cannot be woken: it listens at the end of a turn only",
    seen: None,
    wake: None,
};

#[derive(Serialize)]
struct Denial<'a> {
    permission: &'a str,
    user_message: &'a str,
    agent_message: &'a str,
}

#[derive(Serialize)]
struct Context<'a> {
    additional_context: &'a str,
}

#[derive(Serialize)]
struct FollowUp<'a> {
    followup_message: &'a str,
}

fn read(stdin: &Value, grammar: &Grammar) -> Option<Event> {
    let name = said::text(stdin, &["hook_event_name"])?;
    let name = if name == "UserPromptSubmit" { "beforeSubmitPrompt".to_owned() } else { camel(name) };
    let mut event = match told_of(stdin, &name, grammar) {
        Some(deed) => said::about(stdin, &name, grammar, Some(Call { id: None, deed, failed: false }))?,
        None => said::event(stdin, &name, grammar)?,
    };
    // A subagent talks in a conversation of its own.
    if let Some(parent) = said::text(stdin, &["parent_conversation_id"]) {
        event.session = parent.to_owned();
    }
    Some(event)
}

/// What an event tells of that names no tool.
fn told_of(stdin: &Value, name: &str, grammar: &Grammar) -> Option<Deed> {
    match name {
        "beforeShellExecution" | "afterShellExecution" => {
            Some(said::shell(said::text(stdin, &["command"])?, &grammar.tools))
        }
        "afterFileEdit" => Some(Deed::Edit(vec![said::text(stdin, &["file_path"])?.to_owned()])),
        _ => None,
    }
}

/// `PreToolUse` as `preToolUse`.
pub fn camel(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

fn write(_: &Event, words: &Words) -> Option<String> {
    if let Some((permission, reason)) = &words.decision {
        return json(&Denial { permission, user_message: reason, agent_message: reason });
    }
    if let Some(followup_message) = &words.go_on {
        return json(&FollowUp { followup_message });
    }
    json(&Context { additional_context: words.context.as_deref()? })
}
