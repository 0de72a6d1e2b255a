use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Request, recover::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, words};

/// Run the way out of an error, and make the failed request again
///
/// Takes the steps of the class's playbook in order, with the values of your newest failure of that class. Steps that are
/// safe without a person run by themselves; before the others it asks, or waits for --yes. After each it looks whether what
/// must be true is true, makes the request once more, and stops.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay recover CONTACT_REQUIRED --dry-run\n  relay recover CONTACT_REQUIRED\n  relay recover STORE_DAMAGED --yes\n  relay recover CONTACT_REQUIRED --retry --idempotency-key 3f2a…"
)]
pub struct Args {
    /// The error class, as an error prints it
    #[arg(value_name = "CODE")]
    #[schemars(extend("hint" = "as the error says"))]
    code: String,
    /// Give a value that the playbook needs, where no failed request is kept; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(extend("hint" = "NAME=VALUE, names of the error's details"))]
    set: Vec<String>,
    /// Run the steps that ask for a person too: you are that person, at the machine that has the stores
    #[arg(long)]
    #[serde(skip)]
    yes: bool,
    /// Print the steps and which of them hold already, and take none
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "only show the steps"))]
    dry_run: bool,
    /// Only make the failed request again, by its key or the newest one
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "only make the request again"))]
    retry: bool,
    /// Only put the playbook's question before the person in charge, in a file beside the store
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "only ask the human"))]
    escalate: bool,
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
            escalate: self.escalate,
        }))
    }
}
