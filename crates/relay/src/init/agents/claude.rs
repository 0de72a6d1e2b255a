//! Claude Code.

use jsonc_parser::json;

use super::{Block, Edit, Json, PATIENCE, Setting, Target, Traces, Wish, group, server};
use crate::environment;
use crate::init::place::Place;

/// What changes files; reading costs nothing.
const TOOLS: &str = "Edit|MultiEdit|Write|NotebookEdit|Bash";

/// How long a hook may wait in the background for something to wake an idle agent with: a working day and a night.
const IDLE: u32 = 24 * 60 * 60;

/// The settings that are the user's own: what is in them is true of this machine only.
const OWN: &str = ".claude/settings.local.json";

pub fn traces() -> Traces {
    let kept = vec![environment::user_folder().join(".claude")];
    Traces { programs: &["claude"], kept, in_project: &[".claude", "CLAUDE.md"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let server = Wish::Member {
        under: vec!["mcpServers"],
        name: "relay",
        value: server(place, &[("type", "stdio".into())], &[], &[]),
    };
    let hooks = Wish::Hooks { program: place.relay.clone(), events: events(place) };
    let mut targets = vec![
        Target::json(".mcp.json", vec![server]),
        Target::json(".claude/settings.json", vec![hooks]),
        Target::json(OWN, vec![writable(place)]),
        Target::skill_in(".claude"),
        Target::instructions(),
    ];
    targets.extend(import(place));
    targets
}

fn events(place: &Place) -> Vec<(&'static str, Json)> {
    // As one line, though it has a form without a shell: VS Code reads this file too, and knows only the line.
    let hook = || json!({"type": "command", "command": (place.hook_line()), "timeout": PATIENCE});
    let idle = json!({
        "type": "command",
        "command": (format!("{} --idle", place.hook_line())),
        "asyncRewake": true,
        "timeout": IDLE,
    });
    let always = || group(None, vec![hook()]);
    let tools = || group(Some(TOOLS), vec![hook()]);
    vec![
        ("SessionStart", always()),
        ("UserPromptSubmit", always()),
        ("PreToolUse", tools()),
        ("PostToolUse", tools()),
        ("PostToolUseFailure", tools()),
        ("SubagentStart", always()),
        ("SubagentStop", always()),
        ("Stop", group(None, vec![hook(), idle])),
        ("SessionEnd", always()),
    ]
}

/// Where commands run in a sandbox, they may write to the project's store.
fn writable(place: &Place) -> Wish {
    let store = place.store.to_string_lossy().into_owned();
    Wish::Word {
        under: vec!["sandbox", "filesystem"],
        name: "allowWrite",
        before: Vec::new(),
        word: store,
        folder: Some(place.home.clone()),
    }
}

/// What makes it read AGENTS.md, unless both are one file.
fn import(place: &Place) -> Option<Target> {
    let real = |name: &str| std::fs::canonicalize(place.root.join(name)).ok();
    if real("CLAUDE.md").is_some() && real("CLAUDE.md") == real("AGENTS.md") {
        return None;
    }
    let block = Block::new("@AGENTS.md").unless(&["@AGENTS.md", "@./AGENTS.md"]);
    Some(Target { path: "CLAUDE.md".to_owned(), edit: Edit::Block(block) })
}

pub fn next(setting: &Setting<'_>) -> Vec<String> {
    vec![
        "say yes when Claude Code asks whether it may use this folder's server `relay`, or choose it under /mcp"
            .to_owned(),
        "start Claude Code anew, and in this folder: it reads the project's hooks nowhere below".to_owned(),
        setting.place.says_where_the_store_is(OWN),
    ]
}
