//! `guard`: the hooks of git that ask relay.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::store::Result;
use relay_store::hooks::Hooks;
use serde_json::json;

use crate::app::{App, Said};
use crate::config::{self, Mode};
use crate::environment;
use crate::guard::{self, Hook, Row, State};

#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Put the hooks where git looks for them, behind what is there
    ///
    /// A hook that is there runs first, and what it says counts. Where husky, lefthook, pre-commit or a folder of several
    /// repositories has the hooks, nothing is written, and the lines to add are shown.
    #[command(after_help = "Example:\n  relay guard install")]
    Install,
    /// Take the hooks away, and put back what was there before
    #[command(after_help = "Example:\n  relay guard remove")]
    Remove,
    /// Tell whether git asks relay, hook by hook
    #[command(after_help = "Example:\n  relay guard status --json")]
    Status,
    /// Check what is staged; git's hook calls this before a commit
    ///
    /// The exit status is 1 where the commit is to stop, and otherwise 0.
    #[command(after_help = "Example:\n  relay guard pre-commit")]
    PreCommit {
        /// What git says to the hook
        #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<String>,
    },
    /// Check what is pushed; git's hook calls this before a push
    ///
    /// Reads a line for each ref from the standard input, as git gives them. The exit status is 1 where the push is to stop,
    /// and otherwise 0.
    #[command(after_help = "Example:\n  relay guard pre-push")]
    PrePush {
        /// What git says to the hook
        #[arg(value_name = "WORD", trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        words: Vec<String>,
    },
}

impl Action {
    pub fn run(&self, app: &App) -> u8 {
        match self {
            Action::Install => app.answer("guard", install(app)),
            Action::Remove => app.answer("guard", remove(app)),
            Action::Status => app.answer("guard", status(app)),
            Action::PreCommit { .. } => guard::stand(app, Hook::PreCommit),
            Action::PrePush { .. } => guard::stand(app, Hook::PrePush),
        }
    }
}

/// The hooks around the project that is named, or else around the working directory.
fn hooks(app: &App) -> Result<Hooks> {
    app.named()?;
    let folder = app.folders().into_iter().next();
    let folder = folder.map_or_else(environment::working_directory, Ok)?;
    Hooks::around(&folder, &environment::of_git)
}

fn mode(app: &App) -> Result<(Mode, String)> {
    let home = environment::home()?;
    let mode = config::read(&home)?.guard(&app.project()?);
    Ok((mode, home.join("config.toml").to_string_lossy().into_owned()))
}

fn install(app: &App) -> Result<Said> {
    let (hooks, (mode, file)) = (hooks(app)?, mode(app)?);
    let rows = guard::install(&hooks, &environment::own_name()?)?;
    let mut text = "git asks relay from now on, in every work tree of this repository:\n".to_owned();
    text.push_str(&told(&rows));
    text.push_str(&told_mode(mode, &file));
    text.push_str("Try it with `git hook run pre-commit`; it says nothing where nobody stands in the way.\n");
    Ok((json!({"folder": hooks.folder.to_string_lossy(), "mode": mode, "hooks": rows}), text).into())
}

fn remove(app: &App) -> Result<Said> {
    let hooks = hooks(app)?;
    let rows = guard::remove(&hooks)?;
    let mut text = match rows.is_empty() {
        true => "There is no hook of relay's here.\n".to_owned(),
        false => "git does not ask relay any more:\n".to_owned(),
    };
    text.push_str(&told(&rows));
    Ok((json!({"folder": hooks.folder.to_string_lossy(), "hooks": rows}), text).into())
}

fn status(app: &App) -> Result<Said> {
    let (hooks, (mode, file)) = (hooks(app)?, mode(app)?);
    let rows = guard::status(&hooks)?;
    let mut text = told(&rows);
    text.push_str(&told_mode(mode, &file));
    let is_whole = rows.iter().all(|row| matches!(row.state, State::Installed | State::Chained | State::Called));
    let next = if is_whole { Vec::new() } else { vec!["relay guard install".to_owned()] };
    let result = json!({"folder": hooks.folder.to_string_lossy(), "mode": mode, "hooks": rows});
    Ok(Said { result, text, signals: Vec::new(), next })
}

fn told(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let state = match row.state {
            State::Installed => "installed".green().to_string(),
            State::Chained => "chained".green().to_string(),
            State::Called => "called".green().to_string(),
            State::Foreign => "foreign".yellow().to_string(),
            State::Changed => "changed".yellow().to_string(),
            State::NotExecutable => "not executable".yellow().to_string(),
            State::Shadowed => "shadowed".yellow().to_string(),
            State::Missing => "not there".to_owned(),
        };
        let note = row.note.as_ref().map(|note| format!("; {}", escape_line(note))).unwrap_or_default();
        let _ = writeln!(text, "  {}: {state}, {}{note}", row.hook.as_str(), escape_line(&row.path));
    }
    text
}

fn told_mode(mode: Mode, file: &str) -> String {
    let file = escape_line(file);
    match mode {
        Mode::Warn => format!("It warns and does not block; `[guard] mode = \"block\"` in {file} makes it block.\n"),
        Mode::Block => format!("It blocks; `[guard] mode = \"warn\"` in {file} makes it warn only.\n"),
    }
}
