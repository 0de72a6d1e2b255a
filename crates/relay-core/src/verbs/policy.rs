//! `policy`: whose mail an agent takes.

use serde::{Deserialize, Serialize};

use super::writing::write;
use super::{Ctx, Done, Outcome as Any};
use crate::domain::agent::Policy;
use crate::domain::event::Happened;
use crate::store::Result;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub policy: Policy,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub agent: String,
    pub policy: Policy,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let told = write(ctx, "policy", input, |writing| {
        let agent = writing.actor.must_be_agent("have a policy")?.clone();
        if agent.policy != input.policy {
            writing.append(Happened::PolicySet { agent: agent.name.clone(), policy: input.policy }, Vec::new())?;
        }
        Ok(Outcome { agent: agent.name.to_string(), policy: input.policy })
    })?;
    Ok(Done::new("policy", told, Any::Policy))
}
