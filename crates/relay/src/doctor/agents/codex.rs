//! Whether Codex CLI was told to trust relay's hooks. It runs none that its user has not trusted, by a hash of what the hook says;
//! in `codex exec` it leaves the others out without a word.

use std::path::Path;

use relay_core::domain::event::hex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Problem;
use super::switches;
use super::trust::Trust;
use crate::environment;
use crate::init::{Handler, Installed, handlers};

/// How long it lets a hook run where the file does not say, in seconds.
const PATIENCE: u64 = 600;
/// The same for the hooks of an end, of which one is never given more than the other number.
const AT_THE_END: u64 = 1;
const MOST_AT_THE_END: u64 = 3;

pub fn trust(installed: &Installed) -> (Trust, Vec<Problem>) {
    let file = environment::codex_folder().join("config.toml");
    let said = switches::toml(&file).unwrap_or_default();
    let root = installed.place.root.to_string_lossy();
    let at = |names: &[&str]| {
        let table = said.get(names[0])?;
        names[1..].iter().try_fold(table, |value, name| value.get(name))?.as_str()
    };
    if at(&["projects", &root, "trust_level"]) != Some("trusted") {
        let text = format!("Codex was not told to trust {root}, and reads nothing of the project there");
        return (
            Trust::Untrusted,
            vec![Problem::warning(text, format!("start `codex` in {root} and trust the directory"))],
        );
    }
    let Some((path, hooks)) = installed.hooks() else { return (Trust::Untrusted, Vec::new()) };
    let mut states = Vec::new();
    for handler in handlers(&hooks, &installed.place.relay) {
        let trusted = at(&["hooks", "state", &key(&path, &handler), "trusted_hash"]);
        states.push(match trusted {
            Some(trusted) if trusted == hash(&handler) => Trust::Trusted,
            Some(_) => Trust::Changed,
            None => Trust::Untrusted,
        });
    }
    told(&states)
}

/// Whether the user has switched one of them off.
pub fn is_switched_off(installed: &Installed, config: &Path) -> bool {
    let Some((path, hooks)) = installed.hooks() else { return false };
    let said = switches::toml(config).unwrap_or_default();
    let state = said.get("hooks").and_then(|hooks| hooks.get("state"));
    let enabled = |handler: &Handler<'_>| state?.get(key(&path, handler))?.get("enabled")?.as_bool();
    handlers(&hooks, &installed.place.relay).iter().any(|handler| enabled(handler) == Some(false))
}

fn told(states: &[Trust]) -> (Trust, Vec<Problem>) {
    let count = |state: Trust| states.iter().filter(|found| **found == state).count();
    let next = "start `codex` here and choose to trust all hooks, or go through them under /hooks";
    let of = format!("of relay's {} hooks", states.len());
    match (count(Trust::Changed), count(Trust::Untrusted)) {
        (0, 0) => (Trust::Trusted, Vec::new()),
        (0, new) => {
            (Trust::Untrusted, vec![Problem::warning(format!("Codex skips {new} {of} until you trust them"), next)])
        }
        (changed, new) => {
            let text = format!("Codex skips {} {of}: {changed} changed since you trusted them", changed + new);
            (Trust::Changed, vec![Problem::warning(text, next)])
        }
    }
}

/// What Codex calls a hook: by the place where it stands.
fn key(file: &Path, handler: &Handler<'_>) -> String {
    let (group, at) = handler.place;
    format!("{}:{}:{group}:{at}", file.display(), snake(handler.event))
}

/// What Codex notes of a hook that is trusted: the hash of what it says, in the form that Codex reads it as.
fn hash(handler: &Handler<'_>) -> String {
    let own = |name: &str| handler.value.get(name).filter(|value| !value.is_null()).cloned();
    let mut hook = Map::new();
    hook.insert("type".to_owned(), own("type").unwrap_or_default());
    hook.insert("command".to_owned(), own("command").unwrap_or_default());
    hook.insert("async".to_owned(), own("async").unwrap_or(json!(false)));
    hook.insert("timeout".to_owned(), json!(timeout(handler)));
    for name in ["statusMessage", "additionalContextLimit"] {
        hook.extend(own(name).map(|value| (name.to_owned(), value)));
    }
    let mut said = Map::new();
    said.insert("event_name".to_owned(), json!(snake(handler.event)));
    said.insert("hooks".to_owned(), json!([hook]));
    // These take no matcher.
    let matcher = handler.matcher.filter(|_| !["UserPromptSubmit", "Stop"].contains(&handler.event));
    said.extend(matcher.map(|matcher| ("matcher".to_owned(), json!(matcher))));
    format!("sha256:{}", hex(&Sha256::digest(Value::Object(said).to_string().as_bytes())))
}

fn timeout(handler: &Handler<'_>) -> u64 {
    let said = handler.value.get("timeout").and_then(Value::as_u64);
    match handler.event {
        "SessionEnd" => said.unwrap_or(AT_THE_END).min(MOST_AT_THE_END),
        "Interrupt" => said.unwrap_or(AT_THE_END),
        _ => said.unwrap_or(PATIENCE),
    }
}

/// `PreToolUse` as `pre_tool_use`.
fn snake(event: &str) -> String {
    let mut snake = String::new();
    for letter in event.chars() {
        if letter.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_is_hashed_as_codex_reads_it() {
        let file = json!({"hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"timeout": 5, "command": "relay hook", "type": "command"}]}],
            "Stop": [{"hooks": []}, {"matcher": "x", "hooks": [{"type": "command", "command": "other"}, {"type": "command", "command": "relay hook"}]}],
            "SessionEnd": [{"hooks": [{"type": "command", "command": "relay hook", "timeout": 10}]}],
        }});
        let sha = |text: &str| format!("sha256:{}", hex(&Sha256::digest(text.as_bytes())));
        let mut found: Vec<(String, String)> = handlers(&file, "relay")
            .iter()
            .map(|handler| (key(Path::new("/h.json"), handler), hash(handler)))
            .collect();
        found.sort();
        let expected = [
            (
                "/h.json:pre_tool_use:0:0",
                r#"{"event_name":"pre_tool_use","hooks":[{"async":false,"command":"relay hook","timeout":5,"type":"command"}],"matcher":"Bash"}"#,
            ),
            (
                "/h.json:session_end:0:0",
                r#"{"event_name":"session_end","hooks":[{"async":false,"command":"relay hook","timeout":3,"type":"command"}]}"#,
            ),
            (
                "/h.json:stop:1:1",
                r#"{"event_name":"stop","hooks":[{"async":false,"command":"relay hook","timeout":600,"type":"command"}]}"#,
            ),
        ];
        assert_eq!(found, expected.map(|(key, text)| (key.to_owned(), sha(text))));
    }
}
