use relay_core::verbs::look::{EventFilter, Input, Layout};
use schemars::JsonSchema;
use serde::Deserialize;

use super::look::{self, Page};
use super::words;
use crate::app::App;

/// Which events are wanted; all that is said must be true of one.
#[derive(Debug, Clone, Default, clap::Args, Deserialize, JsonSchema)]
pub struct Events {
    /// Only what this agent did; of claims, what it holds
    #[arg(long, value_name = "NAME", help_heading = "Which events")]
    #[schemars(extend("hint" = "agent"))]
    by: Option<String>,
    /// Only events of these kinds, given more than once or with commas between
    #[arg(long, value_name = "KIND", value_delimiter = ',', help_heading = "Which events")]
    #[serde(default, deserialize_with = "words::list")]
    kind: Vec<String>,
    /// Only this thread's: its mail and receipts, its members, its claims
    #[arg(long, value_name = "T", help_heading = "Which events")]
    thread: Option<String>,
    /// Only of claims that share a path with this path or pattern
    #[arg(long, value_name = "PATH", help_heading = "Which events")]
    path: Option<String>,
    /// Only from this time on: how long ago (2h), a date, or a time such as 2026-11-15T09:30:00Z
    #[arg(long, value_name = "TIME", help_heading = "Which events")]
    #[schemars(extend("hint" = "2h, a date or a time"))]
    since: Option<String>,
    /// Only up to this time
    #[arg(long, value_name = "TIME", help_heading = "Which events")]
    until: Option<String>,
    /// Show each on one line, without its time
    #[arg(long, help_heading = "Which events")]
    #[serde(skip)]
    oneline: bool,
}

impl Events {
    pub fn input(&self, input: Input) -> Input {
        let filter = EventFilter {
            kind: self.kind.clone(),
            by: self.by.clone(),
            thread: self.thread.clone(),
            path: self.path.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
        };
        let layout = if self.oneline { Layout::Short } else { input.layout };
        Input { filter, layout, ..input }
    }
}

/// Show the history, the newest first, as `git log` does
///
/// `relay look events` shows the same from the beginning on, the oldest first.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay log -n 20\n  relay log --by BlueLake --kind message_sent,mail_acked --since 2h\n  relay log --path src/auth.rs --oneline\n  relay log --line src/auth.rs:42"
)]
pub struct Args {
    #[command(flatten)]
    page: Page,
    #[command(flatten)]
    events: Events,
    /// Show who held this line's path when the commit that last changed the line was made
    #[arg(long, value_name = "PATH:N", help_heading = "Which events", conflicts_with_all = ["before", "by", "kind", "thread", "path", "since", "until", "oneline", "after", "limit"])]
    line: Option<String>,
}

impl Args {
    pub fn run(&self, app: &App) -> u8 {
        let input = match &self.line {
            Some(line) => Ok(Input { what: vec!["line".to_owned(), line.clone()], ..Input::default() }),
            None => self
                .page
                .input(vec!["events".to_owned()])
                .map(|input| self.events.input(Input { newest: true, layout: Layout::Full, ..input })),
        };
        look::answer(app, input, "log")
    }
}
