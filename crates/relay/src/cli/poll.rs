use relay_core::domain::name::Address;
use relay_core::store::Result;
use relay_core::verbs::{Request, poll::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::words::Digits;
use super::{Asks, words};

/// Read the inbox; with --wait, block until something arrives
///
/// Looking consumes nothing: mail stays unread until you ack it or say --read. Contested claims are told here too.
/// Every poll looks anew, also under an idempotency key that was used before: what --read has marked comes back with
/// --all.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay poll --bodies\n  relay poll --wait 10m --after 128\n  relay poll --from RedForest --wait 5m"
)]
pub struct Args {
    /// At most this many messages [default: 100]
    #[arg(long, value_name = "N")]
    limit: Option<Digits>,
    /// Only mail delivered after this cursor
    #[arg(long, value_name = "CURSOR")]
    #[schemars(extend("hint" = "cursor"))]
    after: Option<Digits>,
    /// Only this thread
    #[arg(long, value_name = "T")]
    thread: Option<String>,
    /// Only urgent mail
    #[arg(long)]
    #[serde(default)]
    urgent: bool,
    /// Only mail from this agent
    #[arg(long, value_name = "NAME")]
    from: Option<String>,
    /// Also what was read before
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "also what was read"))]
    all: bool,
    /// With the texts
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "with the texts"))]
    bodies: bool,
    /// Mark what is shown as read
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "mark as read"))]
    read: bool,
    /// Block until something arrives, at most this long
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "such as 10m"))]
    wait: Option<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Poll(Input {
            limit: words::count("--limit", self.limit.as_ref())?,
            after: words::number(self.after.as_ref())?,
            thread: words::thread(self.thread.as_deref())?,
            urgent: self.urgent,
            from: self.from.as_deref().map(Address::parse),
            all: self.all,
            bodies: self.bodies,
            read: self.read,
            wait: words::span(self.wait.as_deref())?,
        }))
    }
}
