//! `config.toml` in `$RELAY_HOME`: other limits than the protocol's, those of a server, and how relay behaves, for all projects
//! or for one of them.

use std::collections::BTreeMap;
use std::path::Path;

use relay_core::domain::limits::{BODY_MAX, Limits};
use relay_core::domain::name::ProjectKey;
use relay_core::domain::pattern::MAX_BYTES;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_server::http;
use relay_store::filesystem::plain_text;
use serde::{Deserialize, Serialize};

/// More than this is no configuration.
const MOST: u64 = 1024 * 1024;

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub limits: Limits,
    pub serve: http::Limits,
    guard: Guard,
    hooks: Hooks,
    /// What is otherwise in one project, by its path.
    project: BTreeMap<String, Project>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Project {
    guard: Guard,
    hooks: Hooks,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Guard {
    mode: Option<Mode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Hooks {
    edit: Option<Stance>,
}

/// What a hook does where an edit meets the claim of another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// The agent is told, and goes on.
    #[default]
    Warn,
    /// The user is asked.
    Ask,
    Deny,
}

/// What the guard does where a commit meets the claim of another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Warn,
    Block,
}

impl Config {
    /// What the project says of edits, or else what is said for all.
    pub fn stance(&self, project: Option<&ProjectKey>) -> Stance {
        let own = project.and_then(|project| self.project.get(project.as_str())).and_then(|project| project.hooks.edit);
        own.or(self.hooks.edit).unwrap_or_default()
    }

    /// What the project says of the guard, or else what is said for all.
    pub fn guard(&self, project: &ProjectKey) -> Mode {
        let own = self.project.get(project.as_str()).and_then(|project| project.guard.mode);
        own.or(self.guard.mode).unwrap_or_default()
    }
}

pub fn limits(home: &Path) -> Result<Limits> {
    read(home).map(|config| config.limits)
}

pub fn read(home: &Path) -> Result<Config> {
    let path = home.join("config.toml");
    // None is there, or the folder cannot be entered: then the store says so.
    if std::fs::symlink_metadata(&path).is_err() {
        return Ok(Config::default());
    }
    let text = plain_text(&path, MOST).map_err(|refusal| Code::InputInvalid.refuse(refusal.message.clone()))?;
    let config: Config = toml::from_str(&text).map_err(|fault| refusal(&path, &explained(&text, &fault)))?;
    check(&config.limits).map_err(|why| refusal(&path, &why))?;
    Ok(config)
}

fn refusal(path: &Path, why: &str) -> Refusal {
    Code::InputInvalid.refuse(format!("{}: {why}", path.display()))
}

/// The line and what is wrong with it, in one line.
fn explained(text: &str, fault: &toml::de::Error) -> String {
    let line = fault.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    format!("line {line}: {}", fault.message().replace('\n', " "))
}

fn check(limits: &Limits) -> std::result::Result<(), String> {
    let counts = [
        ("body_bytes", limits.body_bytes),
        ("subject_chars", limits.subject_chars),
        ("recipients", limits.recipients),
        ("page", limits.page),
        ("pattern_bytes", limits.pattern_bytes),
        ("patterns", limits.patterns),
        ("live_claims", limits.live_claims),
        ("unread", limits.unread),
    ];
    match counts.iter().find(|(_, count)| *count == 0) {
        Some((name, _)) => Err(format!("{name} must be at least 1")),
        None if limits.body_bytes > BODY_MAX => Err(format!("body_bytes must be at most {BODY_MAX}")),
        None if limits.pattern_bytes > MAX_BYTES => Err(format!("pattern_bytes must be at most {MAX_BYTES}")),
        None => Ok(()),
    }
}
