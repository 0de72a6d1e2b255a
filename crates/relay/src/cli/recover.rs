use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, recover::Input};

use super::Asks;

/// See the way out of an error, or make the failed request again
///
/// Running a playbook's steps by itself arrives with a later relay: say --dry-run and run them as printed, or --retry.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  relay recover CONTACT_REQUIRED --dry-run\n  relay recover CONTACT_REQUIRED --retry --idempotency-key 3f2a…"
)]
pub struct Args {
    /// The error class, as an error prints it
    #[arg(value_name = "CODE")]
    code: String,
    /// For --dry-run: give a value that the playbook needs; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Also run steps that ask for a person; changes nothing yet, since no steps are run
    #[arg(long)]
    yes: bool,
    /// Print the steps
    #[arg(long)]
    dry_run: bool,
    /// Make the failed request again, by its key or the newest one
    #[arg(long)]
    retry: bool,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        let code = Code::parse(&self.code).ok_or_else(|| {
            Code::InputInvalid
                .refuse(format!("{:?} is no error class; `relay look playbook CODE` shows one", self.code))
        })?;
        Ok(Request::Recover(Input {
            code,
            set: self.set.clone(),
            yes: self.yes,
            dry_run: self.dry_run,
            retry: self.retry,
        }))
    }
}
