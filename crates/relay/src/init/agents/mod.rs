//! The coding agents, one file each: how it is found, what goes where, and what is then left to the user.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;
mod vscode;

use std::path::PathBuf;

pub use opencode::plugin_for;

use jsonc_parser::json;
use relay_core::error::Code;
use relay_core::store::Result;
use serde::{Deserialize, Serialize};

use super::edit::{Block, Edit, Json, Whole, Wish};
use super::place::Place;
use crate::hook::dialect::Dialect;

/// How long an agent waits for a hook, in seconds.
const PATIENCE: u32 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Cursor,
    OpenCode,
    Copilot,
    VsCode,
}

/// What shows that an agent is here.
pub struct Traces {
    pub programs: &'static [&'static str],
    /// What it keeps for the user.
    pub kept: Vec<PathBuf>,
    pub in_project: &'static [&'static str],
}

/// A file, from the root of the work tree, and what relay wants in it.
#[derive(Debug, Clone)]
pub struct Target {
    pub path: String,
    pub edit: Edit,
}

impl Target {
    fn json(path: &str, wishes: Vec<Wish>) -> Self {
        Target { path: path.to_owned(), edit: Edit::Json(wishes) }
    }

    /// What an agent must know of relay, where most of them read it.
    fn instructions() -> Self {
        Target { path: "AGENTS.md".to_owned(), edit: Edit::Block(Block::new(include_str!("../texts/agents.md"))) }
    }

    /// The skill, where most of them read skills.
    fn skill() -> Self {
        Target::skill_in(".agents")
    }

    fn skill_in(folder: &str) -> Self {
        let edit = Edit::Whole(Whole::markdown(include_str!("../texts/skill.md")));
        Target { path: format!("{folder}/skills/relay/SKILL.md"), edit }
    }
}

/// What is set up, as far as one agent must know it of the others.
pub struct Setting<'a> {
    pub place: &'a Place,
    pub chosen: &'a [Agent],
}

impl Agent {
    pub const ALL: [Agent; 7] =
        [Agent::Claude, Agent::Codex, Agent::Gemini, Agent::Cursor, Agent::OpenCode, Agent::Copilot, Agent::VsCode];

    /// The word for it on the command line and in answers.
    pub fn word(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Cursor => "cursor",
            Agent::OpenCode => "opencode",
            Agent::Copilot => "copilot",
            Agent::VsCode => "vscode",
        }
    }

    /// The name that people know it by.
    pub fn title(self) -> &'static str {
        match self {
            Agent::Claude => "Claude Code",
            Agent::Codex => "Codex CLI",
            Agent::Gemini => "Gemini CLI",
            Agent::Cursor => "Cursor",
            Agent::OpenCode => "OpenCode",
            Agent::Copilot => "Copilot CLI",
            Agent::VsCode => "VS Code",
        }
    }

    pub fn parse(word: &str) -> Result<Agent> {
        Agent::ALL.into_iter().find(|agent| agent.word() == word).ok_or_else(|| {
            let words = Agent::ALL.map(Agent::word).join(", ");
            Code::InputInvalid.refuse(format!("--only takes {words}, separated by commas, not {word:?}"))
        })
    }

    pub fn traces(self) -> Traces {
        match self {
            Agent::Claude => claude::traces(),
            Agent::Codex => codex::traces(),
            Agent::Gemini => gemini::traces(),
            Agent::Cursor => cursor::traces(),
            Agent::OpenCode => opencode::traces(),
            Agent::Copilot => copilot::traces(),
            Agent::VsCode => vscode::traces(),
        }
    }

    pub fn targets(self, setting: &Setting<'_>) -> Vec<Target> {
        match self {
            Agent::Claude => claude::targets(setting),
            Agent::Codex => codex::targets(setting),
            Agent::Gemini => gemini::targets(setting),
            Agent::Cursor => cursor::targets(setting),
            Agent::OpenCode => opencode::targets(setting),
            Agent::Copilot => copilot::targets(setting),
            Agent::VsCode => vscode::targets(setting),
        }
    }

    /// Where the program looks for its files, for somebody who is here.
    pub fn place(self, here: &Place) -> Place {
        let main = here.main().filter(|_| self == Agent::Codex);
        Place { root: main.unwrap_or(&here.root).to_owned(), ..here.clone() }
    }

    /// The files in which its hooks may stand, the first that is read first.
    pub fn hooks_files(self) -> &'static [&'static str] {
        match self {
            Agent::Claude => &[".claude/settings.json"],
            Agent::Codex => &[".codex/hooks.json"],
            Agent::Gemini => &[".gemini/settings.json"],
            Agent::Cursor => &[".cursor/hooks.json"],
            Agent::OpenCode => &[],
            Agent::Copilot => &[".github/hooks/relay.json"],
            Agent::VsCode => &[".claude/settings.json", ".github/hooks/relay.json"],
        }
    }

    /// What its hooks say and are told.
    pub fn dialect(self) -> Dialect {
        match self {
            Agent::Claude => Dialect::Claude,
            Agent::Codex => Dialect::Codex,
            Agent::Gemini => Dialect::Gemini,
            Agent::Cursor => Dialect::Cursor,
            Agent::OpenCode => Dialect::OpenCode,
            Agent::Copilot => Dialect::Copilot,
            Agent::VsCode => Dialect::VsCode,
        }
    }

    /// What the program still wants from the user, and what the user should know.
    pub fn next(self, setting: &Setting<'_>) -> Vec<String> {
        match self {
            Agent::Claude => claude::next(setting),
            Agent::Codex => codex::next(setting),
            Agent::Gemini => gemini::next(setting),
            Agent::Cursor => cursor::next(),
            Agent::OpenCode => opencode::next(),
            Agent::Copilot => copilot::next(),
            Agent::VsCode => vscode::next(setting),
        }
    }
}

/// An entry for `relay mcp` as most programs write it, with what comes before and after the usual members.
fn server(place: &Place, first: &[(&str, Json)], arguments: &[&str], last: &[(&str, Json)]) -> Json {
    let owned = |members: &[(&str, Json)]| {
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Vec<_>>()
    };
    let arguments: Vec<&str> = ["mcp"].iter().chain(arguments).copied().collect();
    let usual = [("command", Json::from(place.relay.as_str())), ("args", Json::from(arguments))];
    let env = place.unusual_home().map(|home| ("env".to_owned(), json!({"RELAY_HOME": home})));
    Json::Object([owned(first), owned(&usual), env.into_iter().collect(), owned(last)].concat())
}

/// A group with one hook, for the tools that the matcher names or for everything.
fn group(matcher: Option<&str>, handlers: Vec<Json>) -> Json {
    let matcher = matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
    Json::Object(matcher.into_iter().chain([("hooks".to_owned(), Json::Array(handlers))]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_is_short() {
        // The two lines of its marks are counted in.
        assert!(include_str!("../texts/agents.md").lines().count() + 2 <= 15);
    }

    #[test]
    fn every_agent_is_known_by_its_word() {
        for agent in Agent::ALL {
            assert_eq!(Agent::parse(agent.word()), Ok(agent));
            assert_eq!(serde_json::to_value(agent).ok(), Some(agent.word().into()));
            assert_eq!((agent.dialect().name(), agent.dialect().program()), (agent.word(), agent.title()));
        }
        let refusal = Agent::parse("emacs").err().map(|refusal| refusal.message.clone()).unwrap_or_default();
        assert!(Agent::ALL.iter().all(|agent| refusal.contains(agent.word())), "{refusal}");
    }
}
