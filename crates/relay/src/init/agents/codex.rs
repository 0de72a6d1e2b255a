//! Codex CLI.

use jsonc_parser::json;
use toml_edit::{InlineTable, Value};

use super::{Edit, Json, PATIENCE, Setting, Target, Traces, Wish, group};
use crate::environment;
use crate::init::edit::Setting as Toml;
use crate::init::place::Place;

/// It knows edits as `apply_patch`, and everything else that changes files as `Bash`.
const TOOLS: &str = "apply_patch|Bash";

pub fn traces() -> Traces {
    Traces { programs: &["codex"], kept: vec![environment::codex_folder()], in_project: &[".codex"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let shared = [Target::instructions(), Target::skill()];
    // In a linked work tree it reads the settings of the main one.
    if place.main().is_some() {
        return shared.into();
    }
    let hooks =
        Target::json(".codex/hooks.json", vec![Wish::Hooks { program: place.relay.clone(), events: events(place) }]);
    let config = Target { path: ".codex/config.toml".to_owned(), edit: Edit::Toml(settings(place)) };
    [config, hooks].into_iter().chain(shared).collect()
}

fn settings(place: &Place) -> Vec<Toml> {
    let mut entries: Vec<(&'static str, Value)> = vec![
        ("command", place.relay.as_str().into()),
        ("args", Value::Array(["mcp"].into_iter().collect())),
        // Without it calls are refused, not asked about, where nobody is there to approve them.
        ("default_tools_approval_mode", "approve".into()),
    ];
    if let Some(home) = place.unusual_home() {
        entries.push(("env", Value::InlineTable(InlineTable::from_iter([("RELAY_HOME", home)]))));
    }
    let store = place.store.to_string_lossy().into_owned();
    vec![
        Toml::Table { under: "mcp_servers", name: "relay", entries },
        Toml::Word {
            under: "sandbox_workspace_write",
            name: "writable_roots",
            word: store,
            folder: place.home.clone(),
        },
    ]
}

fn events(place: &Place) -> Vec<(&'static str, Json)> {
    let hook = |seconds: u32| vec![json!({"type": "command", "command": (place.hook_line()), "timeout": seconds})];
    let always = || group(None, hook(PATIENCE));
    let tools = || group(Some(TOOLS), hook(PATIENCE));
    vec![
        ("SessionStart", always()),
        ("UserPromptSubmit", always()),
        ("PreToolUse", tools()),
        ("PostToolUse", tools()),
        ("SubagentStart", always()),
        ("SubagentStop", always()),
        ("Stop", always()),
        // It gives no hook more time than this at the end.
        ("SessionEnd", group(None, hook(3))),
    ]
}

pub fn next(setting: &Setting<'_>) -> Vec<String> {
    if let Some(main) = setting.place.main() {
        return vec![format!(
            "Codex reads the settings of the main work tree here: run `relay init --only codex --project {}`",
            relay_core::domain::shell::quote(&main.to_string_lossy())
        )];
    }
    vec![
        "trust this directory when Codex asks".to_owned(),
        "Codex runs hooks only after you trust them: choose it when it starts, or under /hooks".to_owned(),
        "Codex uses relay's tools without asking (default_tools_approval_mode in .codex/config.toml)".to_owned(),
        setting.place.says_where_the_store_is(".codex/config.toml"),
    ]
}
