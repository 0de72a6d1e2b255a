//! Events that did not happen, in the words of each program: a session that starts, and an edit that is about to be made.

use std::path::Path;

use serde_json::{Value, json};

use crate::hook::dialect::Dialect;

/// The file that is said to be edited. Nothing is written there.
pub const FILE: &str = "relay-doctor-try.txt";

/// What the program would tell its hook, under the name by which it looks for the hook in its file. OpenCode has a plugin instead.
pub fn events(dialect: Dialect, root: &Path) -> Vec<(&'static str, Value)> {
    let (cwd, file) = (root.to_string_lossy(), root.join(FILE).to_string_lossy().into_owned());
    let session = format!("relay-doctor-{}", dialect.name());
    let time = "2026-01-01T00:00:00.000Z";
    match dialect {
        Dialect::Claude => {
            let at = |name: &str| {
                json!({"session_id": session, "transcript_path": "/nonexistent/relay-doctor.jsonl", "cwd": cwd,
                    "hook_event_name": name})
            };
            let call = json!({"permission_mode": "default", "tool_name": "Write",
                "tool_input": {"file_path": file, "content": "x"}, "tool_use_id": "toolu_1"});
            pair("SessionStart", "PreToolUse", at, json!({"source": "startup"}), call)
        }
        Dialect::Codex => {
            let patch = format!("*** Begin Patch\n*** Add File: {FILE}\n+x\n*** End Patch\n");
            let at = |name: &str| {
                json!({"session_id": session, "transcript_path": "/nonexistent/rollout-relay-doctor.jsonl",
                    "cwd": cwd, "hook_event_name": name, "model": "none", "permission_mode": "default"})
            };
            let call = json!({"turn_id": "1", "tool_name": "apply_patch", "tool_input": {"command": patch},
                "tool_use_id": "call_1"});
            pair("SessionStart", "PreToolUse", at, json!({"source": "startup"}), call)
        }
        Dialect::Gemini => {
            let at = |name: &str| {
                json!({"session_id": session, "transcript_path": "/nonexistent/chats/session-relay-doctor.jsonl",
                    "cwd": cwd, "hook_event_name": name, "timestamp": time})
            };
            let call = json!({"tool_name": "write_file", "tool_input": {"file_path": FILE, "content": "x"}});
            pair("SessionStart", "BeforeTool", at, json!({"source": "startup"}), call)
        }
        Dialect::Cursor => {
            let at = |name: &str| {
                json!({"conversation_id": session, "generation_id": "1", "model": "none", "cursor_version": "0",
                    "workspace_roots": [cwd], "transcript_path": null, "hook_event_name": name})
            };
            let start = json!({"session_id": session, "is_background_agent": false});
            let call = json!({"tool_name": "Write", "tool_input": {"path": file, "contents": "x"},
                "tool_use_id": "tool_1", "cwd": cwd});
            pair("sessionStart", "preToolUse", at, start, call)
        }
        // Under Claude Code's names, which are those that `init` uses.
        Dialect::Copilot => {
            let at =
                |name: &str| json!({"hook_event_name": name, "session_id": session, "timestamp": time, "cwd": cwd});
            let call = json!({"tool_name": "Write", "tool_input": {"path": file, "file_text": "x"}});
            pair("SessionStart", "PreToolUse", at, json!({"source": "new"}), call)
        }
        Dialect::VsCode => {
            let at = |name: &str| {
                json!({"timestamp": time, "cwd": cwd, "sessionId": session, "hookEventName": name,
                    "transcript_path": "/nonexistent/relay-doctor.json"})
            };
            let call = json!({"tool_name": "create_file", "tool_input": {"filePath": file, "content": "x"},
                "tool_use_id": "tool-1"});
            pair("SessionStart", "PreToolUse", at, json!({"source": "new"}), call)
        }
        Dialect::OpenCode => Vec::new(),
    }
}

fn pair(
    start: &'static str,
    before: &'static str,
    at: impl Fn(&str) -> Value,
    source: Value,
    call: Value,
) -> Vec<(&'static str, Value)> {
    let told = |name: &'static str, more: Value| {
        let mut event = at(name);
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        (name, event)
    };
    vec![told(start, source), told(before, call)]
}

#[cfg(test)]
mod tests {
    use relay_core::verbs::hook::Moment;

    use super::*;
    use crate::hook::event::Deed;

    #[test]
    fn every_event_is_one_of_its_dialect() {
        for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::OpenCode) {
            let events = events(dialect, Path::new("/repo"));
            assert!(events.iter().all(|(_, event)| Dialect::of(event) == Some(dialect)), "{events:?}");
            let read: Vec<_> = events.iter().filter_map(|(_, event)| dialect.read(event)).collect();
            let moments: Vec<Moment> = read.iter().map(|event| event.moment).collect();
            assert_eq!(moments, [Moment::Start, Moment::Before], "{dialect:?}");
            assert!(dialect.hears(&read[0]), "{dialect:?}: the first is answered with context");
            let Some(Deed::Edit(paths)) = read[1].call.as_ref().map(|call| call.deed.clone()) else {
                panic!("{dialect:?} edits nothing");
            };
            assert!(paths.len() == 1 && paths[0].ends_with(FILE), "{dialect:?}: {paths:?}");
        }
    }
}
