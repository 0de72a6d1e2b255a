use relay_core::store::Result;
use relay_core::verbs::{Request, ack::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, words};

/// Acknowledge messages; with --read only mark them as read
///
/// Doing it again changes nothing and returns the same times.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(after_help = "Example:\n  relay ack 128 131")]
pub struct Args {
    /// Messages by their numbers
    #[arg(value_name = "N", required = true)]
    #[serde(deserialize_with = "words::list")]
    #[schemars(with = "Vec<u64>", extend("hint" = "message numbers"))]
    ids: Vec<String>,
    /// Only mark them as read
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "only mark as read"))]
    read: bool,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Ack(Input { ids: words::numbers(&self.ids)?, read: self.read }))
    }
}
