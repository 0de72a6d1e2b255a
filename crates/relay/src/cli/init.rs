//! `init`: relay inside the coding agents of a project.

use relay_core::store::Result;

use crate::app::App;
use crate::init::{self, Agent, Wanted};

/// Set up the coding agents of this project: MCP server, hooks, instructions
///
/// Finds Claude Code, Codex CLI, Gemini CLI, Cursor, OpenCode, Copilot CLI and VS Code, and writes for each the MCP server, the hooks or
/// plugin, a skill, and a short marked block in AGENTS.md, all in this work tree. What else is in those files stays as it is. Each is
/// copied before it is changed and read back afterwards; running it again changes nothing. It also makes the project known
/// to relay, so that hooks act here. The exit status is that of the worst file, and the others are done all the same.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay init --dry-run\n  relay init\n  relay init --only claude,codex\n  relay init --remove"
)]
pub struct Args {
    /// Only these, found or not: claude, codex, gemini, cursor, opencode, copilot, vscode
    #[arg(long, value_name = "AGENTS", value_delimiter = ',')]
    only: Vec<String>,
    /// Show what would change, as a diff, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take it out again: files are as they were, or without relay's part where somebody has edited them since
    #[arg(long)]
    remove: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        match self.wanted().and_then(|wanted| init::run(app, &wanted)) {
            Ok((said, status)) => app.answer("init", Ok(said)).max(status),
            Err(refusal) => app.fail_outside("init", &refusal),
        }
    }

    fn wanted(&self) -> Result<Wanted> {
        let only: Vec<Agent> = self.only.iter().map(|word| Agent::parse(word.trim())).collect::<Result<_>>()?;
        Ok(Wanted { only, dry_run: self.dry_run, remove: self.remove })
    }
}
