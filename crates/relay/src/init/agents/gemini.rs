//! Gemini CLI.

use jsonc_parser::json;

use super::{Json, PATIENCE, Setting, Target, Traces, Wish, group, server};
use crate::environment;
use crate::init::place::Place;

/// A regular expression on the whole name.
const TOOLS: &str = "^(write_file|replace|run_shell_command)$";

pub fn traces() -> Traces {
    let kept = vec![environment::user_folder().join(".gemini")];
    Traces { programs: &["gemini"], kept, in_project: &[".gemini", "GEMINI.md"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let store = place.store.to_string_lossy().into_owned();
    let wishes = vec![
        Wish::Member { under: vec!["mcpServers"], name: "relay", value: server(place, &[], &[], &[]) },
        Wish::Hooks { program: place.relay.clone(), events: events(place) },
        Wish::Word {
            under: vec!["context"],
            name: "fileName",
            before: vec!["GEMINI.md"],
            word: "AGENTS.md".to_owned(),
            folder: None,
        },
        Wish::Word {
            under: vec!["tools"],
            name: "sandboxAllowedPaths",
            before: Vec::new(),
            word: store,
            folder: Some(place.home.clone()),
        },
    ];
    vec![Target::json(".gemini/settings.json", wishes), Target::instructions(), Target::skill()]
}

fn events(place: &Place) -> Vec<(&'static str, Json)> {
    // A hook that ends badly and says something stops the whole turn, also where the program is not there at all: so
    // whatever is not the answer goes nowhere. Without the shell in between, Gemini is the hook's parent, as it is the server's.
    let line = format!("exec {} 2>/dev/null", place.hook_line());
    let hook = || json!({"type": "command", "name": "relay", "command": (line.as_str()), "timeout": (PATIENCE * 1000)});
    let always = || group(None, vec![hook()]);
    let tools = || group(Some(TOOLS), vec![hook()]);
    vec![
        ("SessionStart", always()),
        ("BeforeAgent", always()),
        ("BeforeTool", tools()),
        ("AfterTool", tools()),
        ("AfterAgent", always()),
        ("SessionEnd", always()),
    ]
}

pub fn next(setting: &Setting<'_>) -> Vec<String> {
    vec![
        format!(
            "trust this folder when Gemini CLI asks: without that neither hooks nor servers run ({})",
            setting.place.root.display()
        ),
        "start Gemini CLI in this folder: it reads the project's settings nowhere below".to_owned(),
        setting.place.says_where_the_store_is(".gemini/settings.json"),
    ]
}
