use relay_core::store::Result;
use relay_core::verbs::look::Input;
use relay_core::verbs::{self, Request};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::Digits;
use super::{Asks, log, words};
use crate::app::App;

/// Look at anything: messages, threads, agents, claims, contacts, history
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay look message 128\n  relay look thread bd-123\n  relay look reservations src/auth.rs\n  relay look search login token\n  relay look playbook CONTACT_REQUIRED"
)]
pub struct Args {
    /// message N | thread [T] | agents | agent NAME | reservations [PATH] | contacts | outbox | events | line PATH:N |
    /// search WORDS | status | debt | traffic | day DATE | playbook CODE
    #[arg(value_name = "WHAT", required = true)]
    #[serde(deserialize_with = "words::sentence")]
    #[schemars(extend("hint" = "[\"thread\",\"bd-1\"]: message N, thread [T], agents, agent NAME, reservations [PATH], contacts, outbox, events, line PATH:N, search WORDS, status, debt, traffic, day DATE, playbook CODE"))]
    what: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: Page,
    #[command(flatten)]
    #[serde(flatten)]
    events: log::Events,
}

/// Which part of a long list.
#[derive(Debug, Clone, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Page {
    /// Only events, or reservations, after this number
    #[arg(long, value_name = "N")]
    #[schemars(extend("hint" = "events after this number"))]
    after: Option<Digits>,
    /// Only what came before this number: the page that follows
    #[arg(long, value_name = "N")]
    #[schemars(extend("hint" = "only before this number"))]
    before: Option<Digits>,
    /// At most this many [default: 100]
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<Digits>,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        answer(app, self.input(), "look")
    }

    fn input(&self) -> Result<Input> {
        self.page.input(self.what.clone()).map(|input| self.events.input(input))
    }
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        self.input().map(Request::Look)
    }
}

/// A noun that is a command of its own.
fn look(app: &App, what: Vec<String>, page: &Page) -> u8 {
    let noun = what.first().cloned().unwrap_or_default();
    answer(app, page.input(what), &noun)
}

/// `command` is what was typed.
pub fn answer(app: &App, input: Result<Input>, command: &str) -> u8 {
    match input {
        Ok(input) if input.is_about_a_playbook() => text_only(app, &input),
        other => app.run(other.map(|input| Request::Look(for_a_person(input))), command),
    }
}

/// A person who asks where things stand is told all of it, and of the files too; to a model they are told by the hooks.
fn for_a_person(input: Input) -> Input {
    let is_status = input.is_about_status();
    Input { trees: is_status, wide: is_status, ..input }
}

impl Page {
    pub fn input(&self, what: Vec<String>) -> Result<Input> {
        let (after, before) = (words::number(self.after.as_ref())?, words::number(self.before.as_ref())?);
        Ok(Input { what, after, before, limit: words::count("--limit", self.limit.as_ref())?, ..Input::default() })
    }
}

/// A playbook is a text of this program: it needs no project and no store.
fn text_only(app: &App, input: &Input) -> u8 {
    match verbs::look::playbook(input) {
        Ok(done) => app.print(&done, relay_core::domain::time::Timestamp::from_millis(0)).status(),
        Err(refusal) => app.fail_outside("look", &refusal),
    }
}

/// The nouns of `look` as commands of their own.
#[derive(Debug, clap::Subcommand)]
pub enum Reading {
    /// Show a thread, or the list of threads
    #[command(after_help = "Example:\n  relay thread bd-123")]
    Thread {
        /// The thread [default: list them all]
        #[arg(value_name = "T")]
        id: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one message
    #[command(after_help = "Example:\n  relay message 128")]
    Message {
        /// The message by its number
        #[arg(value_name = "N")]
        id: String,
    },
    /// List the project's agents
    #[command(after_help = "Example:\n  relay agents")]
    Agents,
    /// List the live claims, or who holds a path
    #[command(after_help = "Example:\n  relay reservations src/auth.rs")]
    Reservations {
        /// A path or pattern [default: list them all]
        #[arg(value_name = "PATH")]
        path: Option<String>,
        /// As they were held after this event
        #[arg(long, value_name = "N")]
        at: Option<Digits>,
        #[command(flatten)]
        page: Page,
    },
    /// Search messages, agents, threads and claims
    #[command(after_help = "Example:\n  relay search login token")]
    Search {
        /// Words, all of them: whole ones of a message, or any part of a name, a task, a thread's id or a path
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show where the project stands
    #[command(after_help = "Example:\n  relay status")]
    Status,
    Log(log::Args),
}

impl Reading {
    pub fn run(&self, app: &App) -> u8 {
        let none = &Page::default();
        let phrase = |noun: &str, rest: &[String]| [&[noun.to_owned()], rest].concat();
        match self {
            Reading::Thread { id, page } => look(app, phrase("thread", id.as_slice()), page),
            Reading::Message { id } => look(app, phrase("message", std::slice::from_ref(id)), none),
            Reading::Agents => look(app, phrase("agents", &[]), none),
            Reading::Reservations { path, at, page } => {
                let (input, at) = (page.input(phrase("reservations", path.as_slice())), words::number(at.as_ref()));
                answer(app, input.and_then(|input| Ok(Input { at: at?, ..input })), "reservations")
            }
            Reading::Search { words: wanted, page } => look(app, phrase("search", wanted), page),
            Reading::Status => look(app, phrase("status", &[]), none),
            Reading::Log(args) => args.run(app),
        }
    }
}
