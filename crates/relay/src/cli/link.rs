use relay_core::domain::name::Address;
use relay_core::store::Result;
use relay_core::verbs::look::parse_number;
use relay_core::verbs::{Request, link::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, words};

/// Ask for contact with an agent, or answer such a request
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  relay link --target RedForest --why 'we both touch auth'\n  relay link --target RedForest --accept\n  relay link --target RedForest@/abs/other-repo --wait 10m\n  relay link --list\n\nThe human answers for the agent that was asked, and lists every request that waits:\n  relay link --list --agent human\n  relay link --target RedForest --id 57 --accept --agent human"
)]
pub struct Args {
    /// The other agent; NAME@/abs/path or NAME@basename in another project. For the human: the agent that was asked
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    #[schemars(extend("hint" = "agent"))]
    target: Option<String>,
    /// Why you ask
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// How long the link lives [default: 7d]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    ttl: Option<String>,
    /// Accept the other's request
    #[arg(long)]
    #[serde(default)]
    accept: bool,
    /// Block the other; no mail passes in either direction
    #[arg(long)]
    #[serde(default)]
    block: bool,
    /// Take back the link, or your own block
    #[arg(long)]
    #[serde(default)]
    revoke: bool,
    /// For the human: the request to accept or block, where several wait for the same agent
    #[arg(long, value_name = "N")]
    #[serde(skip)]
    id: Option<String>,
    /// List your links
    #[arg(long)]
    #[serde(default)]
    list: bool,
    /// Wait this long for the answer
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    #[schemars(extend("hint" = "for the answer, such as 10m"))]
    wait: Option<String>,
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Link(Input {
            target: self.target.as_deref().map(Address::parse),
            why: self.why.clone(),
            ttl: words::span(self.ttl.as_deref())?,
            accept: self.accept,
            block: self.block,
            revoke: self.revoke,
            list: self.list,
            id: self.id.as_deref().map(parse_number).transpose()?,
            wait: words::span(self.wait.as_deref())?,
        }))
    }
}
