use relay_core::store::Result;
use relay_core::verbs::{Request, release::Input};

use super::{Asks, words};

/// Give claims back, narrow or renew them, or take one over
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay release 'src/auth/**'\n  relay release --reason bd-123 --done\n  relay release 'src/**' --keep src/main.rs\n  relay release --id 57 --force --why 'holder crashed'"
)]
pub struct Args {
    /// Patterns as they were claimed
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// A claim by its number; may be repeated
    #[arg(long, value_name = "N")]
    id: Vec<String>,
    /// All claims made for this thread
    #[arg(long, value_name = "THREAD")]
    reason: Option<String>,
    /// Also close that thread, and say so in it
    #[arg(long)]
    done: bool,
    /// Everything you hold
    #[arg(long)]
    all: bool,
    /// Keep this part of what is released; may be repeated
    #[arg(long, value_name = "PATTERN")]
    keep: Vec<String>,
    /// Keep them for another TTL instead
    #[arg(long, value_name = "TTL", allow_hyphen_values = true)]
    renew: Option<String>,
    /// Take over a claim whose holder is dead
    #[arg(long)]
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
