//! `check`: what is changed in the work trees, held against what is claimed.

use relay_core::store::Result;
use relay_core::verbs::{Request, check};

use super::Asks;

/// Compare what is changed in all work trees with what is claimed
///
/// Tells which changes are under no live claim, which are under the claims of others, which claims nobody used, and which files
/// would conflict if two work trees were merged as they are now. Nothing is written, and nothing that the repository
/// configures is run. What there was no time for is said.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  relay check\n  relay check src/auth docs/login.md --json")]
pub struct Args {
    /// Only these files and folders [default: everything]
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Check(check::Input { paths: self.paths.clone(), trees: true, ..check::Input::default() }))
    }
}
