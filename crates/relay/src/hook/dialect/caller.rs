//! Who calls a hook. Each program has a mark of its own in what it tells, but for Claude Code, whose shapes most of the
//! others have taken over: it is who is left.

use serde_json::Value;

use super::{Dialect, gemini, said};

pub fn of(stdin: &Value) -> Option<Dialect> {
    let event = said::text(stdin, &["hook_event_name"]);
    let has = |key: &str| stdin.get(key).is_some_and(Value::is_string);
    if !stdin.is_object() {
        None
    } else if let Some(plugin) = stdin.get("relay_plugin") {
        (plugin == "opencode").then_some(Dialect::OpenCode)
    } else if has("conversation_id") || has("cursor_version") {
        Some(Dialect::Cursor)
    } else if has("hookEventName") {
        Some(Dialect::VsCode)
    } else if has("sessionId") {
        Some(Dialect::Copilot)
    } else if !has("session_id") || event.is_none() {
        None
    } else if stdin.get("timestamp").is_some() {
        Some(if is_gemini(stdin, event?) { Dialect::Gemini } else { Dialect::Copilot })
    } else if is_codex(stdin) {
        Some(Dialect::Codex)
    } else {
        Some(Dialect::Claude)
    }
}

/// Copilot CLI speaks in Claude Code's words where a hook is registered under its names, and says the time like Gemini
/// CLI. What both call alike is told apart by where the session is written down.
fn is_gemini(stdin: &Value, event: &str) -> bool {
    let transcript = said::text(stdin, &["transcript_path"]).unwrap_or_default();
    gemini::OWN.contains(&event) || transcript.replace('\\', "/").contains("/chats/session-")
}

/// Codex names model and turn in every event of a turn, and writes its sessions down in files of its own kind, or not at
/// all. Claude Code always has a transcript, and tells the mode of permissions within a turn only.
fn is_codex(stdin: &Value) -> bool {
    let has = |key: &str| stdin.get(key).is_some_and(Value::is_string);
    let is_start = has("source");
    match stdin.get("transcript_path") {
        Some(Value::String(path)) if file_name(path).starts_with("rollout-") => true,
        Some(Value::Null) => true,
        _ => has("model") && (has("turn_id") || has("permission_mode") && is_start),
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
