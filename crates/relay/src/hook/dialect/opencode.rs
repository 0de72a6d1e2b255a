//! OpenCode, through the plugin that `relay init` writes: the one dialect that is relay's own.

use relay_core::verbs::hook::{Moment, Subagent};
use serde::Serialize;
use serde_json::Value;

use super::said::{self, Tools};
use super::specific::json;
use super::{Grammar, Known, Words};
use crate::hook::event::{Answer, Event};

pub const GRAMMAR: Grammar = Grammar {
    name: "opencode",
    program: "OpenCode",
    events: &[
        Known::deaf("session.created", Moment::Start),
        Known::heard("chat.message", Moment::Prompt),
        Known::deaf("tool.execute.before", Moment::Before),
        Known::heard("tool.execute.after", Moment::After),
        Known::deaf("session.idle", Moment::TurnEnd),
        Known::deaf("session.deleted", Moment::End),
        Known::deaf("dispose", Moment::End),
        // What was told before is forgotten with it.
        Known::deaf("session.compacted", Moment::Start),
    ],
    tools: Tools {
        edits: &["edit", "write", "multiedit", "patch", "apply_patch"],
        shells: &["bash"],
        patches_in_shell: false,
    },
    asks: false,
    read,
    write,
    silence: "{}",
    wakes: "its plugin waits in the background, and starts a turn in an interactive session when something comes",
    seen: Some("1.18.33"),
    wake: Some(wake),
};

#[derive(Default, Serialize)]
struct Output<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
}

/// A subagent is a session of its own, which names its parent.
fn read(stdin: &Value, grammar: &Grammar) -> Option<Event> {
    let mut event = said::plain(stdin, grammar)?;
    if let Some(parent) = said::text(stdin, &["parent_session_id"]) {
        let id = std::mem::replace(&mut event.session, parent.to_owned());
        event.subagent = Some(Subagent { id, kind: None });
        if matches!(event.moment, Moment::TurnEnd | Moment::End) {
            event.moment = Moment::SubagentEnd;
        }
    }
    Some(event)
}

fn write(_: &Event, words: &Words) -> Option<String> {
    let deny = words.decision.as_ref().map(|(_, reason)| reason.as_str());
    let output = Output { deny, context: words.context.as_deref(), prompt: words.go_on.as_deref() };
    json(&output)
}

fn wake(words: &str) -> Answer {
    let output = Output { prompt: Some(words), ..Output::default() };
    Answer { stdout: json(&output).unwrap_or_default(), ..Answer::default() }
}
