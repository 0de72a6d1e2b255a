use std::io::IsTerminal;

use relay_core::error::Code;
use relay_core::store::Result;

use crate::app::App;
use crate::watch;

/// Show where the project stands as a live screen
///
/// What needs a decision, who is alive and at what, who holds what, who waits for whom and what is owed: the same as
/// `relay status`, drawn anew whenever something happens. The human sees blind copies and all mail too: `--agent human`.
///
/// Keys: q, Esc and Ctrl-C leave; Tab and Shift-Tab go from pane to pane; the arrows, j, k, PgUp and PgDn scroll; r looks
/// again at once; ? tells the keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relay watch\n  relay watch --agent human")]
pub struct Args {}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        match drawable(app).and_then(|()| watch::run(app)) {
            Ok(status) => status,
            Err(refusal) => app.fail_outside("watch", &refusal),
        }
    }
}

/// A screen needs somebody in front of it.
fn drawable(app: &App) -> Result<()> {
    if app.output.json {
        return Err(Code::InputInvalid.refuse("a live screen has no JSON; `relay status --json` says the same once"));
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let text = "a live screen needs a terminal for its input and output; `relay status` prints the same once";
        return Err(Code::InputInvalid.refuse(text));
    }
    Ok(())
}
