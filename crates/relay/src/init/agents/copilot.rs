//! Copilot CLI. VS Code reads the same file of hooks.

use jsonc_parser::json;

use super::{Json, PATIENCE, Setting, Target, Traces, Wish, server};
use crate::environment;
use crate::init::place::Place;

/// What changes files, by the names that it has under these events; a regular expression on the whole name.
const TOOLS: &str = "Write|Edit|Bash";

pub fn traces() -> Traces {
    let kept = vec![environment::user_folder().join(".copilot")];
    Traces { programs: &["copilot"], kept, in_project: &[".github/copilot-instructions.md"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let server = server(place, &[("type", "stdio".into())], &[], &[]);
    vec![
        Target::json(".mcp.json", vec![Wish::Member { under: vec!["mcpServers"], name: "relay", value: server }]),
        hooks(place),
        Target::instructions(),
        Target::skill(),
    ]
}

pub fn hooks(place: &Place) -> Target {
    let wishes = vec![
        Wish::Needed { name: "version", value: json!(1) },
        Wish::Hooks { program: place.relay.clone(), events: events(place) },
    ];
    Target::json(".github/hooks/relay.json", wishes)
}

/// Events by the names that VS Code has for them too; under its other names Copilot does not say which event it is.
fn events(place: &Place) -> Vec<(&'static str, Json)> {
    // A hook that fails, also because the program is not there, stops the call: so it never does.
    let line = format!("{} || true", place.hook_line());
    let hook = |matcher: Option<&str>| {
        let matcher = matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
        let members: Vec<(String, Json)> = vec![
            ("type".to_owned(), "command".into()),
            ("command".to_owned(), line.as_str().into()),
            // The one is Copilot's, the other VS Code's.
            ("timeoutSec".to_owned(), PATIENCE.into()),
            ("timeout".to_owned(), PATIENCE.into()),
        ];
        Json::Object(members.into_iter().chain(matcher).collect())
    };
    vec![
        ("SessionStart", hook(None)),
        ("UserPromptSubmit", hook(None)),
        ("PreToolUse", hook(Some(TOOLS))),
        ("PostToolUse", hook(Some(TOOLS))),
        ("PostToolUseFailure", hook(Some(TOOLS))),
        ("SubagentStart", hook(None)),
        ("SubagentStop", hook(None)),
        ("Stop", hook(None)),
        ("SessionEnd", hook(None)),
    ]
}

pub fn next() -> Vec<String> {
    vec!["trust this folder when Copilot CLI asks: without that no hook runs".to_owned()]
}
