//! What stdin says, in the words that most dialects share.
//!
//! Nothing of it is trusted to be there or to be of the right kind.

use std::borrow::Cow;
use std::path::PathBuf;

use relay_core::verbs::hook::{Moment, Subagent};
use serde_json::Value;

use super::Grammar;
use crate::hook::event::{Call, Deed, Event};
use crate::hook::patch;

/// Where an edit names its file.
const PATHS: [&str; 6] = ["file_path", "notebook_path", "path", "filePath", "notebookPath", "target_file"];
/// Where an edit lists several of them.
const LISTS: [&str; 4] = ["files", "paths", "edits", "replacements"];
/// Where an edit has its patch.
const PATCHES: [&str; 4] = ["command", "input", "patchText", "patch"];

/// The tools of a program that change files.
pub struct Tools {
    pub edits: &'static [&'static str],
    pub shells: &'static [&'static str],
    /// It applies patches that its shell is given, without calling the tool for it.
    pub patches_in_shell: bool,
}

/// The first of these that is a text with something in it.
pub fn text<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(key)?.as_str().filter(|text| !text.is_empty()))
}

/// An event of the name that stdin gives.
pub fn plain(stdin: &Value, grammar: &Grammar) -> Option<Event> {
    event(stdin, text(stdin, &["hook_event_name", "hookEventName"])?, grammar)
}

/// An event of this name, with the call that stdin tells of.
pub fn event(stdin: &Value, name: &str, grammar: &Grammar) -> Option<Event> {
    about(stdin, name, grammar, call(stdin, grammar))
}

/// An event of this name. Around a tool it means nothing without the call.
pub fn about(stdin: &Value, name: &str, grammar: &Grammar, call: Option<Call>) -> Option<Event> {
    let known = grammar.known(name)?;
    let subagent = subagent(stdin);
    let moment = match known.moment? {
        // A turn of a subagent is the whole of it.
        Moment::TurnEnd if subagent.is_some() => Moment::SubagentEnd,
        moment => moment,
    };
    let is_tool = matches!(moment, Moment::Before | Moment::After);
    let event = Event {
        name: known.name.to_owned(),
        moment,
        session: text(stdin, &["session_id", "sessionId", "conversation_id"])?.to_owned(),
        subagent,
        cwd: cwd(stdin),
        transcript: text(stdin, &["transcript_path", "transcriptPath"]).map(str::to_owned),
        model: text(stdin, &["model"]).map(str::to_owned),
        call: if is_tool { Some(call?) } else { None },
        carries_on: matches!(moment, Moment::Start | Moment::End)
            && text(stdin, &["source", "reason"]) == Some("clear"),
        again: again(stdin),
    };
    (event.subagent.is_some() || !known.of_subagent).then_some(event)
}

/// Where the session works; where nothing says it, that is where the hook runs.
fn cwd(stdin: &Value) -> PathBuf {
    let root = || stdin.get("workspace_roots")?.get(0)?.as_str();
    PathBuf::from(text(stdin, &["cwd"]).or_else(root).unwrap_or("."))
}

fn subagent(stdin: &Value) -> Option<Subagent> {
    let id = text(stdin, &["agent_id", "agentId", "subagent_id"])?.to_owned();
    let kind = text(stdin, &["agent_type", "agentType", "subagent_type", "agentName"]).map(str::to_owned);
    Some(Subagent { id, kind })
}

fn again(stdin: &Value) -> bool {
    let is_active = stdin.get("stop_hook_active").and_then(Value::as_bool).unwrap_or(false);
    is_active || stdin.get("loop_count").and_then(Value::as_f64).is_some_and(|count| count > 0.0)
}

fn call(stdin: &Value, grammar: &Grammar) -> Option<Call> {
    let tool = text(stdin, &["tool_name", "toolName"])?;
    let id = text(stdin, &["tool_use_id"]).map(str::to_owned);
    Some(Call { id, deed: deed(tool, &input(stdin), &grammar.tools), failed: failed(stdin) })
}

/// A failure is told beside the call, or within what came of it. Claude Code leaves the place for it empty.
fn failed(stdin: &Value) -> bool {
    let is_told = |value: &Value| value.get("error").is_some_and(|error| !error.is_null() && error != "");
    is_told(stdin) || text(stdin, &["error_message"]).is_some() || stdin.get("tool_response").is_some_and(is_told)
}

/// What a tool is given. Copilot CLI writes it as a text of JSON.
fn input(stdin: &Value) -> Cow<'_, Value> {
    let Some(input) = stdin.get("tool_input").or_else(|| stdin.get("toolArgs")) else {
        return Cow::Owned(Value::Null);
    };
    let parsed = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    parsed.filter(Value::is_object).map_or(Cow::Borrowed(input), Cow::Owned)
}

pub fn deed(tool: &str, input: &Value, tools: &Tools) -> Deed {
    if tools.shells.contains(&tool) {
        return text(input, &["command"]).map_or(Deed::Other, |command| shell(command, tools));
    }
    if !tools.edits.contains(&tool) || input.get("command").is_some_and(|command| command == "view") {
        return Deed::Other;
    }
    let mut paths = named(input);
    if paths.is_empty() {
        let text = input.as_str().or_else(|| text(input, &PATCHES));
        paths = text.map(patch::paths).unwrap_or_default();
    }
    if paths.is_empty() { Deed::Other } else { Deed::Edit(paths) }
}

pub fn shell(command: &str, tools: &Tools) -> Deed {
    let patched = if tools.patches_in_shell { patch::paths_in_command(command) } else { Vec::new() };
    if patched.is_empty() { Deed::Shell(command.to_owned()) } else { Deed::Edit(patched) }
}

/// The files that an edit names: one, or a list of names or of edits that each name theirs.
fn named(input: &Value) -> Vec<String> {
    let lists = LISTS.iter().filter_map(|key| input.get(key)?.as_array()).flatten();
    let listed = lists.filter_map(|item| item.as_str().or_else(|| text(item, &PATHS)));
    let paths = text(input, &PATHS).into_iter().chain(listed);
    patch::distinct(paths.filter(|path| !path.is_empty()).map(str::to_owned).collect())
}
