//! The command line: a file per command, with its arguments and how they become a request.

mod ack;
mod atoms;
mod backup;
pub mod calls;
mod check;
mod cycle;
mod doctor;
mod drain;
mod export;
mod guard;
mod hook;
mod init;
mod link;
mod log;
mod look;
mod operator;
mod poll;
mod prepare;
mod rebuild;
mod recover;
mod redact;
mod release;
mod reserve;
mod send;
mod serve;
mod start;
mod token;
pub mod tools;
mod verify;
mod watch;
mod words;

pub use redact::clean_up_after;

use clap::{Args, Parser, Subcommand};
use relay_core::store::Result;
use relay_core::verbs::Request;

use crate::app::App;

/// The coordination bus for coding agents that share a codebase
#[derive(Debug, Parser)]
#[command(name = "relay", version, propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
#[command(
    after_help = "Start with `relay start`, then `relay prepare --thread TASK`. `relay demo` plays it through with three agents."
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub struct Globals {
    /// The project, by its absolute path [default: $RELAY_PROJECT, or the repository around you]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Common options")]
    pub project: Option<String>,
    /// The agent that acts [default: the session's agent, or $RELAY_AGENT]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Common options")]
    pub agent: Option<String>,
    /// Answer with one line of JSON
    #[arg(long, global = true, help_heading = "Common options")]
    pub json: bool,
    /// Make repeating this very request harmless
    #[arg(long, global = true, value_name = "KEY", help_heading = "Common options")]
    pub idempotency_key: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Start(start::Args),
    Prepare(prepare::Args),
    Reserve(reserve::Args),
    Release(release::Args),
    Link(link::Args),
    Send(send::Args),
    Poll(poll::Args),
    Ack(ack::Args),
    Look(look::Args),
    Recover(recover::Args),
    #[command(flatten)]
    Reading(look::Reading),
    #[command(flatten)]
    Atom(atoms::Atom),
    #[command(flatten)]
    Operator(operator::Operator),
}

/// Something that becomes a request.
trait Asks {
    fn request(&self) -> Result<Request>;
}

impl Cli {
    /// What a command of the protocol asks for; operators' commands ask for nothing.
    pub fn request(&self) -> Option<Result<Request>> {
        let asks: &dyn Asks = match &self.command {
            Command::Start(args) => args,
            Command::Prepare(args) => args,
            Command::Reserve(args) => args,
            Command::Release(args) => args,
            Command::Link(args) => args,
            Command::Send(args) => args,
            Command::Poll(args) => args,
            Command::Ack(args) => args,
            Command::Look(args) => args,
            Command::Recover(args) => args,
            Command::Atom(atom) => atom,
            Command::Reading(_) | Command::Operator(_) => return None,
        };
        Some(asks.request())
    }
}

pub fn run(cli: Cli) -> u8 {
    let app = App::new(cli.globals);
    let verb = |name, asks: &dyn Asks| app.run(asks.request(), name);
    match &cli.command {
        Command::Start(args) => verb("start", args),
        Command::Prepare(args) => verb("prepare", args),
        Command::Reserve(args) => args.run(&app),
        Command::Release(args) => verb("release", args),
        Command::Link(args) => verb("link", args),
        Command::Send(args) => verb("send", args),
        Command::Poll(args) => verb("poll", args),
        Command::Ack(args) => verb("ack", args),
        Command::Look(args) => args.run(&app),
        Command::Recover(args) => app.recover(args.request()),
        Command::Reading(reading) => reading.run(&app),
        Command::Atom(atom) => verb(atom.name(), atom),
        Command::Operator(operator) => operator.run(&app),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use relay_core::playbook::{COMMANDS, COMMON};

    use super::Cli;

    /// The names under which a command takes something, as playbooks write them.
    fn taken(command: &clap::Command) -> Vec<String> {
        let name =
            |argument: &clap::Arg| argument.get_long().map_or_else(|| argument.get_id().to_string(), str::to_owned);
        let own = command.get_arguments().map(|argument| name(argument).replace('-', "_"));
        let below = command.get_subcommands().flat_map(taken);
        // The word that chooses among commands below this one.
        let what = command.has_subcommands().then(|| "what".to_owned());
        own.chain(below).chain(what).collect()
    }

    #[test]
    fn what_playbooks_may_say_is_what_the_command_line_takes() {
        let mut cli = Cli::command();
        cli.build();
        for (name, arguments) in COMMANDS {
            let command = cli.find_subcommand(name).unwrap_or_else(|| panic!("there is no command {name}"));
            let taken = taken(command);
            for argument in arguments.iter().chain(&COMMON) {
                assert!(taken.contains(&(*argument).to_owned()), "`relay {name}` takes no {argument}: {taken:?}");
            }
        }
    }
}
