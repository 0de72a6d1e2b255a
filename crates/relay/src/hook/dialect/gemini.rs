//! Gemini CLI. It has names of its own for most moments, and honours no verdict but its own.

use relay_core::verbs::hook::Moment;
use serde::Serialize;

use super::said::{self, Tools};
use super::specific::{block, json, specific};
use super::{Grammar, Known, Words};
use crate::hook::event::Event;

/// Events that no other program calls by this name.
pub const OWN: [&str; 8] = [
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "BeforeModel",
    "AfterModel",
    "BeforeToolSelection",
    "PreCompress",
];

pub const GRAMMAR: Grammar = Grammar {
    name: "gemini",
    program: "Gemini CLI",
    events: &[
        Known::heard("SessionStart", Moment::Start),
        Known::heard("BeforeAgent", Moment::Prompt),
        Known::deaf("BeforeTool", Moment::Before),
        Known::heard("AfterTool", Moment::After),
        Known::deaf("AfterAgent", Moment::TurnEnd),
        Known::deaf("SessionEnd", Moment::End),
        Known::ignored("AfterModel"),
        Known::ignored("BeforeModel"),
        Known::ignored("BeforeToolSelection"),
        Known::ignored("Notification"),
        // It comes before every request, whether anything is compressed or not.
        Known::ignored("PreCompress"),
    ],
    tools: Tools { edits: &["write_file", "replace"], shells: &["run_shell_command"], patches_in_shell: false },
    asks: false,
    read: said::plain,
    write,
    // Where stdout is empty, what stands on stderr is taken for the answer.
    silence: "{}",
    wakes: "it cannot be woken: only a hook that keeps its turn from ending would be heard",
    seen: Some("0.61.0"),
    wake: None,
};

#[derive(Serialize)]
struct Denial<'a> {
    decision: &'a str,
    reason: &'a str,
}

/// Context is thrown away after a clear, and where a tool failed.
pub fn loses(event: &Event) -> bool {
    event.carries_on || event.call.as_ref().is_some_and(|call| call.failed)
}

fn write(event: &Event, words: &Words) -> Option<String> {
    if let Some((decision, reason)) = &words.decision {
        return json(&Denial { decision, reason });
    }
    match &words.go_on {
        Some(reason) => block(reason),
        None => specific(event, words),
    }
}
