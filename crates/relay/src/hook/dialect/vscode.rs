//! VS Code's own agent. It also runs the hooks that stand in `.claude/settings.json`, for every tool, whatever they are
//! registered for.

use relay_core::verbs::hook::Moment;
use serde::Serialize;

use super::said::{self, Tools};
use super::specific::{json, specific};
use super::{Grammar, Known, Words};
use crate::hook::event::Event;

pub const GRAMMAR: Grammar = Grammar {
    name: "vscode",
    program: "VS Code",
    events: &[
        Known::heard("SessionStart", Moment::Start),
        Known::heard("SubagentStart", Moment::Start).of_subagent(),
        Known::deaf("UserPromptSubmit", Moment::Prompt),
        Known::heard("PreToolUse", Moment::Before),
        Known::heard("PostToolUse", Moment::After),
        Known::deaf("Stop", Moment::TurnEnd),
        Known::deaf("SubagentStop", Moment::SubagentEnd).of_subagent(),
        Known::ignored("PreCompact"),
    ],
    tools: Tools {
        edits: &[
            "editFiles",
            "createFile",
            "deleteFile",
            "create_file",
            "insert_edit_into_file",
            "replace_string_in_file",
            "multi_replace_string_in_file",
            "apply_patch",
            "edit_notebook_file",
        ],
        shells: &["runTerminalCommand", "runInTerminal", "run_in_terminal"],
        patches_in_shell: false,
    },
    asks: true,
    read: said::plain,
    write,
    silence: "",
    wakes: "it cannot be woken",
    seen: None,
    wake: None,
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    hook_specific_output: Block<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    hook_event_name: &'a str,
    decision: &'a str,
    reason: &'a str,
}

fn write(event: &Event, words: &Words) -> Option<String> {
    match &words.go_on {
        Some(reason) => {
            json(&Output { hook_specific_output: Block { hook_event_name: &event.name, decision: "block", reason } })
        }
        None => specific(event, words),
    }
}
