//! Codex CLI. It takes Claude Code's shapes and nothing beside them: one key too many, and the call runs.

use relay_core::verbs::hook::Moment;

use super::said::{self, Tools};
use super::{Grammar, Known, specific};

pub const GRAMMAR: Grammar = Grammar {
    name: "codex",
    program: "Codex CLI",
    events: &[
        Known::heard("SessionStart", Moment::Start),
        Known::heard("SubagentStart", Moment::Start).of_subagent(),
        Known::heard("UserPromptSubmit", Moment::Prompt),
        Known::heard("PreToolUse", Moment::Before),
        // Failed shell commands come here too; what else failed is not told at all.
        Known::heard("PostToolUse", Moment::After),
        Known::deaf("Stop", Moment::TurnEnd),
        Known::deaf("SubagentStop", Moment::SubagentEnd).of_subagent(),
        Known::deaf("SessionEnd", Moment::End),
        Known::ignored("Interrupt"),
        Known::ignored("PermissionRequest"),
        Known::ignored("PostCompact"),
        Known::ignored("PostModelRequest"),
        Known::ignored("PreCompact"),
        Known::ignored("PreModelRequest"),
    ],
    tools: Tools { edits: &["apply_patch"], shells: &["Bash"], patches_in_shell: true },
    asks: false,
    read: said::plain,
    write: specific::write,
    silence: "",
    wakes: "not by itself: `codex queue --thread SESSION --message TEXT` would, but also after you have left the session",
    seen: Some("0.166.0"),
    wake: None,
};
