//! `relay hook`: what coding agents call.

use crate::app::App;
use crate::hook;

/// Answer a coding agent's hook, in its own dialect, from what it says on the standard input
///
/// `relay init` registers this; its command line stays the same in every release. It says nothing in a project that relay does not
/// know, and lets the agent go on whatever goes wrong: `relay doctor` shows that.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  echo '{\"session_id\":\"s\",\"cwd\":\"/repo\",\"hook_event_name\":\"SessionStart\",\"source\":\"startup\"}' | relay hook"
)]
pub struct Args {
    /// Wait in the background until there is mail, and wake the agent with it
    #[arg(long)]
    idle: bool,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        hook::run(app.globals.clone(), self.idle)
    }
}
