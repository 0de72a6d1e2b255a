//! VS Code with Copilot.

use super::{Agent, Setting, Target, Traces, Wish, copilot, server};
use crate::environment;

pub fn traces() -> Traces {
    let kept = vec![environment::config_folder().join("Code")];
    Traces { programs: &["code"], kept, in_project: &[".vscode"] }
}

pub fn targets(setting: &Setting<'_>) -> Vec<Target> {
    let place = setting.place;
    let server = server(place, &[("type", "stdio".into())], &["--project", "${workspaceFolder}"], &[]);
    let server = Wish::Member { under: vec!["servers"], name: "relay", value: server };
    let mut targets = vec![Target::json(".vscode/mcp.json", vec![server]), Target::instructions(), Target::skill()];
    if !has_claudes_hooks(setting) {
        targets.push(copilot::hooks(place));
    }
    targets
}

/// It reads Claude Code's hooks too: one set is enough.
fn has_claudes_hooks(setting: &Setting<'_>) -> bool {
    setting.chosen.contains(&Agent::Claude)
}

pub fn next(setting: &Setting<'_>) -> Vec<String> {
    let mut next = vec!["start the server `relay` when VS Code asks whether you trust it".to_owned()];
    if has_claudes_hooks(setting) {
        next.push("VS Code runs the hooks of .claude/settings.json, so it has none of its own".to_owned());
        if setting.chosen.contains(&Agent::Copilot) {
            let both = "VS Code also runs those of .github/hooks, which Copilot CLI needs; its setting chat.hookFilesLocations switches one of them off";
            next.push(both.to_owned());
        }
    }
    next
}
