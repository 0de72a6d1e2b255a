//! `token`: who is let in.

use std::fmt::Write;

use relay_core::store::{Clock, Result};
use relay_store::tokens::Tokens;
use serde_json::json;

use crate::app::{App, Said};
use crate::{human, render};

#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Make this user the human on this machine
    #[command(after_help = "Example:\n  relay token human\n  relay status --agent human")]
    Human,
    /// Make a token with which a client reaches `relay serve`; it is shown this once
    ///
    /// The token alone is printed on the standard output. One that stands for itself goes by its name: made anew under a name
    /// that was revoked, it has the agents that the old one had.
    #[command(
        after_help = "Examples:\n  relay token add workstation\n  TOKEN=$(relay token add laptop)\n  relay token add guest --separate"
    )]
    Add {
        /// What you call it
        #[arg(value_name = "NAME")]
        name: String,
        /// It stands for itself: its agents are its own, and it cannot act as yours
        #[arg(long)]
        separate: bool,
    },
    /// List the tokens, without what they are
    #[command(after_help = "Example:\n  relay token list")]
    List,
    /// Let nobody in with this token any more
    #[command(after_help = "Example:\n  relay token revoke laptop")]
    Revoke {
        /// What you called it
        #[arg(value_name = "NAME")]
        name: String,
    },
}

impl Action {
    pub fn run(&self, app: &App) -> u8 {
        app.answer("token", self.said(app))
    }

    fn said(&self, app: &App) -> Result<Said> {
        let (home, _) = app.home()?;
        app.mind_the_server(&home);
        let tokens = Tokens::of(home.root());
        Ok(match self {
            Action::Human => human(app)?.into(),
            Action::Add { name, separate } => {
                let secret = tokens.add(name, *separate, app.clock.now(), &app.random)?;
                if !app.output.json {
                    // Beside the answer, which is the token alone: `TOKEN=$(relay token add NAME)` takes it.
                    app.output.complain(&format!(
                        "This is the only time that it is shown. It opens a server of the stores in {}; `relay token revoke {name}` takes \
                         it back.\n",
                        home.root().display()
                    ));
                }
                (json!({"name": name, "token": secret, "separate": separate}), format!("{secret}\n")).into()
            }
            Action::List => list(app, &tokens)?.into(),
            Action::Revoke { name } => {
                tokens.revoke(name)?;
                (json!({"name": name}), format!("Nobody is let in with {name} any more.\n")).into()
            }
        })
    }
}

fn human(app: &App) -> Result<(serde_json::Value, String)> {
    let (home, _) = app.home()?;
    let (path, new) = human::create(home.root(), &app.random)?;
    let text = if new {
        "You are the human on this machine now: say `--agent human`."
    } else {
        "You are the human on this machine already: say `--agent human`."
    };
    Ok((
        json!({"path": path.to_string_lossy(), "new": new}),
        format!("{text}\nThe credential lies in {}; whoever can read it is the human.\n", path.display()),
    ))
}

fn list(app: &App, tokens: &Tokens) -> Result<(serde_json::Value, String)> {
    let tokens = tokens.list()?;
    let mut text = String::new();
    if tokens.is_empty() {
        text.push_str("There is no token; `relay token add NAME` makes one.\n");
    }
    for token in &tokens {
        let stands_for = if token.separate { "itself" } else { "you" };
        let added = render::relative(token.added_at, app.clock.now());
        let _ = writeln!(text, "{}: stands for {stands_for}, made {added}", token.name);
    }
    let rows: Vec<_> = tokens
        .iter()
        .map(|token| json!({"name": token.name, "separate": token.separate, "added_at": token.added_at}))
        .collect();
    Ok((json!({"tokens": rows}), text))
}
