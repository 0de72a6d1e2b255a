//! Cursor, the editor and its command line.

use jsonc_parser::json;

use super::{Json, PATIENCE, Setting, Target, Traces, Wish, server};
use crate::environment;
use crate::init::place::Place;

/// A regular expression on the whole name.
const TOOLS: &str = "^(Write|StrReplace|Edit|MultiEdit|Delete|Shell)$";

pub fn traces() -> Traces {
    let kept = vec![environment::user_folder().join(".cursor")];
    Traces { programs: &["cursor", "cursor-agent"], kept, in_project: &[".cursor"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    // It starts servers elsewhere than in the project.
    let server = server(place, &[], &["--project", "${workspaceFolder}"], &[]);
    let hooks = vec![
        Wish::Needed { name: "version", value: json!(1) },
        Wish::Hooks { program: place.relay.clone(), events: events(place) },
    ];
    vec![
        Target::json(
            ".cursor/mcp.json",
            vec![Wish::Member { under: vec!["mcpServers"], name: "relay", value: server }],
        ),
        Target::json(".cursor/hooks.json", hooks),
        Target::instructions(),
        Target::skill(),
    ]
}

fn events(place: &Place) -> Vec<(&'static str, Json)> {
    let always = || json!({"command": (place.hook_line()), "timeout": PATIENCE});
    let tools = || json!({"command": (place.hook_line()), "matcher": TOOLS, "timeout": PATIENCE});
    vec![
        ("sessionStart", always()),
        ("beforeSubmitPrompt", always()),
        ("preToolUse", tools()),
        ("postToolUse", tools()),
        ("postToolUseFailure", tools()),
        ("subagentStart", always()),
        ("subagentStop", always()),
        ("stop", always()),
        ("sessionEnd", always()),
    ]
}

pub fn next() -> Vec<String> {
    vec!["switch the server `relay` on under Cursor's settings, Tools & MCP, where it is off".to_owned()]
}
