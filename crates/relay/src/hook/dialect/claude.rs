//! Claude Code.

use relay_core::verbs::hook::Moment;

use super::said::{self, Tools};
use super::{Grammar, Known, specific};
use crate::hook::event::Answer;

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
        // Context would be heard, and would prolong the turn like a block, which says so.
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
    read: said::plain,
    write: specific::write,
    silence: "",
    wakes: "a hook that waits in the background (asyncRewake) wakes it when something comes",
    wake: Some(wake),
};

/// A hook in the background is heard when it ends like one that blocks.
fn wake(words: &str) -> Answer {
    Answer { stderr: words.to_owned(), status: 2, ..Answer::default() }
}
