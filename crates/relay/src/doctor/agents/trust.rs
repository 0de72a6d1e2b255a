//! Whether a program would run what stands in its files: most of them ask their user first, and note the answer in files of
//! their own. Those are read, never written.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::switches::json;
use super::{Problem, codex};
use crate::environment;
use crate::init::{Agent, Installed};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    Trusted,
    /// The user was not asked yet, or said no.
    Untrusted,
    /// The user trusted something else than what stands there now.
    Changed,
    NotNeeded,
    /// Nothing tells it.
    Unproven,
}

pub fn of(installed: &Installed) -> (Trust, Vec<Problem>) {
    match installed.agent {
        Agent::Claude => claude(installed),
        Agent::Codex => codex::trust(installed),
        Agent::Gemini => gemini(installed),
        Agent::Copilot => copilot(installed),
        Agent::OpenCode => (Trust::NotNeeded, Vec::new()),
        Agent::Cursor | Agent::VsCode => (Trust::Unproven, Vec::new()),
    }
}

/// Trust in a repository goes for its linked work trees too.
fn claude(installed: &Installed) -> (Trust, Vec<Problem>) {
    let root = &installed.place.root;
    let Some(said) = json(&environment::user_folder().join(".claude.json")) else {
        return (Trust::Unproven, Vec::new());
    };
    let folders = [&*root.to_string_lossy(), installed.place.project.as_str()];
    let projects = folders.map(|folder| &said["projects"][folder]);
    let mut problems = Vec::new();
    if !projects.iter().any(|project| project["hasTrustDialogAccepted"] == true) {
        let text = format!("Claude Code was not told to trust {}: it asks when it starts there", root.display());
        problems.push(Problem::warning(text, format!("start `claude` in {} and say yes", root.display())));
    }
    let user = environment::user_folder().join(".claude/settings.json");
    let files = [user, root.join(".claude/settings.json"), root.join(".claude/settings.local.json")];
    let settings: Vec<Value> = files.iter().filter_map(|file| json(file)).collect();
    let all = || settings.iter().chain(projects);
    let names = |list: &Value| list.as_array().is_some_and(|names| names.iter().any(|name| name == "relay"));
    let next = "choose `relay` under /mcp in Claude Code, or say yes when it asks";
    if all().any(|said| names(&said["disabledMcpjsonServers"])) {
        problems.push(Problem::warning("Claude Code was told not to use the server `relay` of .mcp.json", next));
    } else if !all().any(|said| names(&said["enabledMcpjsonServers"]) || said["enableAllProjectMcpServers"] == true) {
        problems.push(Problem::warning("Claude Code was not told yet to use the server `relay` of .mcp.json", next));
    }
    (if problems.is_empty() { Trust::Trusted } else { Trust::Untrusted }, problems)
}

/// The rule with the longest path counts.
fn gemini(installed: &Installed) -> (Trust, Vec<Problem>) {
    let root = &installed.place.root;
    let settings = json(&environment::user_folder().join(".gemini/settings.json")).unwrap_or_default();
    let is_asked = settings["security"]["folderTrust"]["enabled"] != false;
    let rules = json(&environment::gemini_trusted_folders()).unwrap_or_default();
    let rules = rules.as_object().into_iter().flatten().filter_map(|(folder, level)| Some((folder, level.as_str()?)));
    let matching = rules.filter(|(folder, level)| {
        let folder = Path::new(folder);
        let folder = if *level == "TRUST_PARENT" { folder.parent().unwrap_or(folder) } else { folder };
        is_in(root, folder)
    });
    let level = matching.max_by_key(|(folder, _)| folder.len()).map(|(_, level)| level);
    let is_trusted = level.is_some_and(|level| ["TRUST_FOLDER", "TRUST_PARENT"].contains(&level));
    if environment::gemini_trusts().unwrap_or(!is_asked || is_trusted) {
        return (Trust::Trusted, Vec::new());
    }
    let text = format!("Gemini CLI was not told to trust {}, and runs neither hooks nor servers there", root.display());
    (
        Trust::Untrusted,
        vec![Problem::warning(text, format!("start `gemini` in {} and trust the folder", root.display()))],
    )
}

fn copilot(installed: &Installed) -> (Trust, Vec<Problem>) {
    let root = &installed.place.root;
    let said = json(&environment::copilot_folder().join("config.json")).unwrap_or_default();
    let folders = ["trustedFolders", "trusted_folders"].into_iter().filter_map(|name| said[name].as_array()).flatten();
    if folders.filter_map(Value::as_str).any(|folder| is_in(root, Path::new(folder))) {
        return (Trust::Trusted, Vec::new());
    }
    let text = format!("Copilot CLI was not told to trust {}, and skips its hooks without a word", root.display());
    (
        Trust::Untrusted,
        vec![Problem::warning(text, format!("start `copilot` in {} and trust the folder", root.display()))],
    )
}

/// Behind links, whatever the user called it.
fn is_in(root: &Path, folder: &Path) -> bool {
    std::fs::canonicalize(folder).is_ok_and(|folder| root.starts_with(folder))
}
