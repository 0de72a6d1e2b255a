//! Switches with which a user turns all hooks of a program off, or relay's: the program then says nothing of it.

use std::path::{Path, PathBuf};

use relay_core::error::Code;
use serde_json::Value;

use super::{Problem, codex};
use crate::environment;
use crate::init::{Agent, Installed, read};

/// What turns the hooks off, if anything does.
pub fn off(installed: &Installed) -> Option<Problem> {
    let root = &installed.place.root;
    let (user, copilot) = (environment::user_folder(), environment::copilot_folder());
    let (file, switch) = match installed.agent {
        Agent::Claude => thrown(
            [user.join(".claude"), root.join(".claude")]
                .iter()
                .flat_map(|folder| ["settings.json", "settings.local.json"].map(|name| folder.join(name))),
            disables_all,
        ),
        Agent::Copilot => thrown(
            [copilot.join("settings.json"), copilot.join("config.json")].into_iter().chain(
                ["copilot/settings.json", "copilot/settings.local.json", "hooks/relay.json"]
                    .map(|name| root.join(".github").join(name)),
            ),
            disables_all,
        ),
        Agent::Gemini => {
            thrown([user.join(".gemini/settings.json"), root.join(".gemini/settings.json")].into_iter(), of_gemini)
        }
        Agent::Codex => {
            let files = [environment::codex_folder().join("config.toml"), root.join(".codex/config.toml")];
            let off = files.iter().find(|file| is_off_in_codex(file)).map(|file| (file.clone(), "features.hooks"));
            let one =
                || codex::is_switched_off(installed, &files[0]).then(|| (files[0].clone(), "enabled of hooks.state"));
            off.or_else(one)
        }
        Agent::Cursor | Agent::OpenCode | Agent::VsCode => None,
    }?;
    let text =
        format!("{} runs no hooks of relay's: {switch} in {} turns them off", installed.agent.title(), file.display());
    Some(Problem::error(Code::InputInvalid, text, format!("take {switch} out of {}", file.display())))
}

/// The first of the files in which a switch is thrown, and which.
fn thrown(
    mut files: impl Iterator<Item = PathBuf>,
    switch: fn(&Value) -> Option<&'static str>,
) -> Option<(PathBuf, &'static str)> {
    files.find_map(|file| switch(&json(&file)?).map(|switch| (file, switch)))
}

/// What a file of a program says.
pub fn json(file: &Path) -> Option<Value> {
    read(&std::fs::read_to_string(file).ok()?).ok()
}

pub fn toml(file: &Path) -> Option<toml::Table> {
    std::fs::read_to_string(file).ok()?.parse().ok()
}

fn disables_all(settings: &Value) -> Option<&'static str> {
    (settings["disableAllHooks"] == true).then_some("disableAllHooks")
}

fn of_gemini(settings: &Value) -> Option<&'static str> {
    let hooks = &settings["hooksConfig"];
    let is_named = hooks["disabled"].as_array().is_some_and(|names| names.iter().any(|name| name == "relay"));
    match hooks["enabled"] == false {
        true => Some("hooksConfig.enabled"),
        false => is_named.then_some("hooksConfig.disabled"),
    }
}

fn is_off_in_codex(file: &Path) -> bool {
    let hooks = toml(file).and_then(|said| said.get("features")?.get("hooks")?.as_bool());
    hooks == Some(false)
}
