//! Claude Code.

use relay_core::verbs::hook::Moment;
use serde_json::Value;

use super::said::{self, Tools};
use super::{Grammar, Known, Words, specific};
use crate::hook::event::{Answer, Event};

pub const GRAMMAR: Grammar = Grammar {
    name: "claude",
    program: "Claude Code",
    events: &[
        Known::heard("SessionStart", Moment::Start),
        Known::heard("SubagentStart", Moment::Start).of_subagent(),
        Known::heard("UserPromptSubmit", Moment::Prompt),
        Known::heard("PreToolUse", Moment::Before),
        Known::heard("PostToolUse", Moment::After),
        Known::heard("PostToolUseFailure", Moment::After),
        // Context would prolong the turn: it is how the turn is told to go on.
        Known::deaf("Stop", Moment::TurnEnd),
        Known::deaf("SubagentStop", Moment::SubagentEnd).of_subagent(),
        Known::deaf("SessionEnd", Moment::End),
        // Its calls were each told of before.
        Known::ignored("PostToolBatch"),
        Known::ignored("StopFailure"),
        // A compacted session starts anew, with its own name.
        Known::ignored("PreCompact"),
        Known::ignored("PostCompact"),
        Known::ignored("ConfigChange"),
        Known::ignored("CwdChanged"),
        Known::ignored("DirectoryAdded"),
        Known::ignored("Elicitation"),
        Known::ignored("ElicitationResult"),
        Known::ignored("FileChanged"),
        Known::ignored("InstructionsLoaded"),
        Known::ignored("MessageDisplay"),
        Known::ignored("Notification"),
        Known::ignored("PermissionDenied"),
        Known::ignored("PermissionRequest"),
        Known::ignored("PostModelSwitch"),
        Known::ignored("PreModelSwitch"),
        Known::ignored("Setup"),
        Known::ignored("TaskCompleted"),
        Known::ignored("TaskCreated"),
        Known::ignored("TeammateIdle"),
        Known::ignored("UserPromptExpansion"),
        Known::ignored("WorktreeCreate"),
        Known::ignored("WorktreeRemove"),
    ],
    tools: Tools {
        edits: &["Edit", "Write", "MultiEdit", "NotebookEdit"],
        shells: &["Bash", "PowerShell"],
        patches_in_shell: false,
    },
    asks: true,
    read,
    write,
    silence: "",
    wakes: "a hook that waits in the background (asyncRewake) wakes an interactive session when something comes",
    seen: Some("2.1.325"),
    wake: Some(wake),
};

/// Each compaction ends a subagent that never began, and is of no type.
fn read(stdin: &Value, grammar: &Grammar) -> Option<Event> {
    let event = said::plain(stdin, grammar)?;
    let has_type = event.subagent.as_ref().is_some_and(|subagent| subagent.kind.is_some());
    (has_type || event.moment != Moment::SubagentEnd).then_some(event)
}

/// A turn that is blocked from ending is told why twice, and in print mode loses its result in the end; one that is given
/// context goes on just the same.
fn write(event: &Event, words: &Words) -> Option<String> {
    let context = words.context.clone().or_else(|| words.go_on.clone());
    specific::specific(event, &Words { context, decision: words.decision.clone(), go_on: None })
}

/// A hook in the background is heard when it ends like one that blocks.
fn wake(words: &str) -> Answer {
    Answer { stderr: words.to_owned(), status: 2, ..Answer::default() }
}
