use relay_core::domain::name::ThreadId;
use relay_core::store::Result;
use relay_core::verbs::{Request, prepare::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::Digits;
use super::{Asks, start::Identity, words};

/// Join a task's thread and read its digest
///
/// Starts the agent first where it is not registered yet. One task is one thread: use the id of your ticket.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(after_help = "Example:\n  relay prepare --thread bd-123")]
pub struct Args {
    /// The thread, made if it is new
    #[arg(long, value_name = "T")]
    #[schemars(extend("hint" = "the ticket's id"))]
    thread: String,
    /// How many of the last messages to show
    #[arg(long, value_name = "N")]
    #[schemars(extend("hint" = "last messages"))]
    limit: Option<Digits>,
    #[command(flatten)]
    #[serde(flatten)]
    identity: Identity,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Prepare(Input {
            thread: ThreadId::parse(&self.thread)?,
            limit: words::count("--limit", self.limit.as_ref())?,
            start: self.identity.input(),
        }))
    }
}
