//! Operators' commands: for the person who looks after a machine.

use std::fmt::Write;

use clap::CommandFactory;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::size;
use relay_core::error::Code;
use relay_core::store::{Clock, Result, Store};
use relay_core::verbs::lag::ArchiveShape;
use relay_core::verbs::moved;
use relay_store::repository;
use serde_json::json;

use super::{Asks, Cli};
use crate::app::{App, Said};
use crate::{demo, render};

#[derive(Debug, clap::Subcommand)]
pub enum Operator {
    Init(super::init::Args),
    /// Check that the project's store answers and is whole
    #[command(after_help = "Example:\n  relay health --json")]
    Health,
    Watch(super::watch::Args),
    Check(super::check::Args),
    Serve(super::serve::Serve),
    Mcp(super::serve::Mcp),
    Hook(super::hook::Args),
    Doctor(super::doctor::Args),
    Drain(super::drain::Args),
    Redact(super::redact::Args),
    Backup(super::backup::Args),
    Export(super::export::Args),
    Verify(super::verify::Args),
    Rebuild(super::rebuild::Args),
    /// Check commits and pushes against the live claims of others
    ///
    /// Two hooks of git ask relay who holds what is about to be committed or pushed. They warn, or they block where
    /// `config.toml` says so, and let git go on whenever relay cannot tell.
    #[command(after_help = "Examples:\n  relay guard install\n  relay guard status\n  relay guard remove")]
    Guard {
        #[command(subcommand)]
        action: super::guard::Action,
    },
    /// List the projects on this bus, or follow one that was moved
    #[command(after_help = "Examples:\n  relay project list\n  relay project move /old/path /new/path")]
    Project {
        #[command(subcommand)]
        action: ProjectAction,
    },
    /// Manage credentials
    #[command(
        after_help = "Examples:\n  relay token add laptop\n  relay token human\n  relay send --agent human --to BlueLake --subject Hello --body 'It is me.'"
    )]
    Token {
        #[command(subcommand)]
        action: super::token::Action,
    },
    /// Play the main job through with three agents, in a temporary home
    #[command(after_help = "Example:\n  relay demo")]
    Demo,
    /// Print shell completions, or write the man pages
    #[command(
        after_help = "Examples:\n  relay completions bash > /etc/bash_completion.d/relay\n  relay completions man --dir /usr/local/share/man/man1"
    )]
    Completions {
        /// bash, zsh, fish, elvish, powershell or man
        #[arg(value_name = "SHELL")]
        shell: String,
        /// Where the man pages go
        #[arg(long, value_name = "DIR")]
        dir: Option<std::path::PathBuf>,
    },
}

#[derive(Debug, clap::Subcommand)]
pub enum ProjectAction {
    /// List the projects on this bus
    #[command(after_help = "Example:\n  relay project list --json")]
    List,
    /// Follow a repository that was moved
    #[command(after_help = "Example:\n  relay project move /old/path /new/path")]
    Move {
        /// The absolute path that it had
        #[arg(value_name = "OLD")]
        old: String,
        /// Where it is now
        #[arg(value_name = "NEW")]
        new: String,
    },
}

impl Operator {
    fn name(&self) -> &'static str {
        match self {
            Operator::Init(_) => "init",
            Operator::Health => "health",
            Operator::Watch(_) => "watch",
            Operator::Check(_) => "check",
            Operator::Serve(_) => "serve",
            Operator::Mcp(_) => "mcp",
            Operator::Hook(_) => "hook",
            Operator::Doctor(_) => "doctor",
            Operator::Drain(_) => "drain",
            Operator::Redact(_) => "redact",
            Operator::Backup(_) => "backup",
            Operator::Export(_) => "export",
            Operator::Verify(_) => "verify",
            Operator::Rebuild(_) => "rebuild",
            Operator::Guard { .. } => "guard",
            Operator::Project { .. } => "project",
            Operator::Token { .. } => "token",
            Operator::Demo => "demo",
            Operator::Completions { .. } => "completions",
        }
    }

    pub fn run(&self, app: &App) -> u8 {
        // A promise that nobody keeps is worse than none.
        if app.globals.idempotency_key.is_some() && !matches!(self, Operator::Redact(_)) {
            let name = self.name();
            let text = format!("`relay {name}` remembers no answers; repeat it without --idempotency-key");
            return app.fail_outside(name, &Code::InputInvalid.refuse(text));
        }
        match self {
            Operator::Init(args) => args.run(app),
            Operator::Health => app.answer("health", health(app)),
            Operator::Watch(args) => args.run(app),
            Operator::Hook(args) => args.run(app),
            Operator::Doctor(args) => args.run(app),
            Operator::Drain(args) => args.run(app),
            Operator::Check(args) => app.run(args.request(), "check"),
            Operator::Redact(args) => app.run(args.request(), "redact"),
            Operator::Backup(args) => args.run(app),
            Operator::Export(args) => args.run(app),
            Operator::Verify(args) => args.run(app),
            Operator::Rebuild(args) => args.run(app),
            Operator::Project { action: ProjectAction::List } => app.answer("project", list(app)),
            Operator::Project { action: ProjectAction::Move { old, new } } => {
                app.answer("project", follow(app, old, new))
            }
            Operator::Guard { action } => action.run(app),
            Operator::Token { action } => action.run(app),
            Operator::Serve(args) => args.run(app),
            Operator::Mcp(args) => args.run(app),
            Operator::Demo => demo::run(app),
            Operator::Completions { shell, dir } => completions(app, shell, dir.as_deref()),
        }
    }
}

fn health(app: &App) -> Result<Said> {
    let opened = app.open(None)?;
    let health = opened.store.health()?;
    let facts = opened.store.read()?;
    let archive = ArchiveShape::of(&opened.store, &*facts)?;
    let text = format!(
        "The store of {} is whole: {} events, {} in {} and {} of log, SQLite {}. The archive is {} behind.\n",
        opened.project,
        health.events,
        size::told(health.bytes),
        health.path,
        size::told(health.log_bytes),
        health.sqlite,
        render::count(archive.behind as usize, "event")
    );
    let signals: Vec<_> = archive.signal(&*facts, app.clock.now())?.into_iter().collect();
    let next = signals.iter().map(|_| "relay drain --wait".to_owned()).collect();
    let result = json!({"project": opened.project, "store": health, "archive": archive});
    Ok(Said { result, text, signals, next })
}

fn list(app: &App) -> Result<(serde_json::Value, String)> {
    let (home, _) = app.home()?;
    app.mind_the_server(&home);
    let projects = home.projects()?;
    let text = if projects.is_empty() {
        "No project is on this bus yet.\n".to_owned()
    } else {
        projects.iter().map(|(key, _)| format!("{key}\n")).collect()
    };
    let rows: Vec<_> =
        projects.iter().map(|(key, folder)| json!({"key": key, "store": folder.to_string_lossy()})).collect();
    Ok((json!({"projects": rows}), text))
}

fn follow(app: &App, old: &str, new: &str) -> Result<(serde_json::Value, String)> {
    let (home, _) = app.home()?;
    if !old.starts_with('/') {
        return Err(Code::ProjectKeyInvalid
            .refuse(format!("{old:?} is relative; name the absolute path that the project had"))
            .with("path", old));
    }
    // The old path may be gone, so it is taken as relay knew it.
    let old = ProjectKey::resolved(old.trim_end_matches('/'));
    let new = repository::resolve(std::path::Path::new(new))?;
    home.move_project(&old, &new)?;
    // What cannot be told now is told by the next command there.
    let untold = app.open_moved(&new).and_then(|opened| moved::tell(&app.context(&opened)?)).unwrap_or_default();
    let mut text = format!("{old} is now {new}; its history goes on there.\n");
    for project in &untold {
        let _ = writeln!(text, "{project} could not be told yet; the next command in {new} tells it.");
    }
    Ok((json!({"from": old, "to": new, "untold": untold}), text))
}

fn completions(app: &App, shell: &str, dir: Option<&std::path::Path>) -> u8 {
    let mut command = Cli::command();
    if shell == "man" {
        return app.answer("completions", man_pages(command, dir));
    }
    let Ok(shell) = <clap_complete::Shell as clap::ValueEnum>::from_str(shell, true) else {
        let refusal = Code::InputInvalid.refuse(format!("there are completions for bash, zsh, fish, elvish and powershell, and man pages with `man --dir DIR`, not {shell:?}"));
        return app.fail_outside("completions", &refusal);
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "relay", &mut script);
    app.output.exact(&String::from_utf8_lossy(&script)).status()
}

fn man_pages(command: clap::Command, dir: Option<&std::path::Path>) -> Result<(serde_json::Value, String)> {
    let dir = dir.ok_or_else(|| Code::InputInvalid.refuse("say where the man pages go with --dir DIR"))?;
    let failed = |fault: std::io::Error| {
        Code::InputInvalid.refuse(format!("the man pages cannot be written to {}: {fault}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(failed)?;
    clap_mangen::generate_to(command, dir).map_err(failed)?;
    let count = std::fs::read_dir(dir).map_err(failed)?.count();
    Ok((json!({"dir": dir.to_string_lossy(), "pages": count}), format!("Wrote the man pages to {}.\n", dir.display())))
}
