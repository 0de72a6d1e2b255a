use relay_core::store::Result;
use relay_core::verbs::{Request, start::Input};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Asks, words};

/// Register or resume as an agent, and see where you stand
///
/// Opens the project, registers the agent or resumes it, optionally claims paths, and returns the situation: unread
/// mail, owed acks, contact requests, own and contested claims, and what to do next.
#[derive(Debug, clap::Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Example:\n  relay start --agent BlueLake --program claude-code --task 'Fix the login'\n  export RELAY_AGENT=BlueLake"
)]
pub struct Args {
    #[command(flatten)]
    #[serde(flatten)]
    pub identity: Identity,
}

/// What an agent says of itself.
#[derive(Debug, Clone, clap::Args, Deserialize, JsonSchema)]
pub struct Identity {
    /// The program that the agent runs in
    #[arg(long, value_name = "P")]
    program: Option<String>,
    /// The model behind it
    #[arg(long, value_name = "M")]
    model: Option<String>,
    /// What it works on, in a sentence
    #[arg(long, value_name = "T")]
    task: Option<String>,
    /// The harness's session; the same session is the same agent
    #[arg(long, value_name = "ID")]
    #[schemars(extend("hint" = "same session, same agent"))]
    session: Option<String>,
    /// Take the name from another session that is still alive
    #[arg(long)]
    #[serde(default)]
    #[schemars(extend("hint" = "take the name from a session that is alive"))]
    take_over: bool,
    /// Claim this path right away; may be repeated
    #[arg(long = "path", value_name = "PATTERN")]
    #[serde(default, deserialize_with = "words::list")]
    #[schemars(extend("hint" = "patterns to claim at once"))]
    path: Vec<String>,
}

impl Identity {
    pub fn input(&self) -> Input {
        Input {
            program: self.program.clone(),
            model: self.model.clone(),
            task: self.task.clone(),
            session: self.session.clone(),
            take_over: self.take_over,
            path: self.path.clone(),
            parent: None,
        }
    }
}

impl Asks for Args {
    fn request(&self) -> Result<Request> {
        Ok(Request::Start(self.identity.input()))
    }
}
