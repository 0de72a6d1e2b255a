use relay_core::store::Result;
use relay_core::verbs::{Request, release::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, words};

/// Give claims back, narrow or renew them, or take one over
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay release 'src/auth/**'\n  relay release --reason bd-123 --done\n  relay release 'src/**' --keep src/main.rs\n  relay release --id 57 --force --why 'holder crashed'"
)]
pub struct Args {
    /// Patterns as they were claimed
    #[arg(value_name = "PATTERN")]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(extend("hint" = "as they were claimed"))]
    patterns: Vec<String>,
    /// A claim by its number; may be repeated
    #[arg(long, value_name = "N")]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(with = "Vec<u64>", extend("hint" = "claim numbers"))]
    id: Vec<String>,
    /// All claims made for this thread
    #[arg(long, value_name = "THREAD")]
    #[schemars(extend("hint" = "all claims made for this thread"))]
    reason: Option<String>,
    /// Also close that thread, and say so in it
    #[arg(long)]
    #[serde(default)]
    done: bool,
    /// Everything you hold
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "everything you hold"))]
    all: bool,
    /// Keep this part of what is released; may be repeated
    #[arg(long, value_name = "PATTERN")]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(extend("hint" = "patterns to keep holding"))]
    keep: Vec<String>,
    /// Keep them for another TTL instead
    #[arg(long, value_name = "TTL", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "TTL such as 1h"))]
    renew: Option<String>,
    /// Take over a claim whose holder is dead
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "take from a dead holder, with why"))]
    force: bool,
    /// Why it is taken over
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Release(Input {
            patterns: self.patterns.clone(),
            id: words::numbers(&self.id)?,
            reason: words::thread(self.reason.as_deref())?,
            done: self.done,
            all: self.all,
            keep: self.keep.clone(),
            renew: words::span(self.renew.as_deref())?,
            force: self.force,
            why: self.why.clone(),
        }))
    }
}
