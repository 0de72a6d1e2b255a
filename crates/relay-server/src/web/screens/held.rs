//! Claims with what the project says of them: which are contested, and whose holder is silent.

use std::collections::HashSet;

use relay_core::domain::event::Number;
use relay_core::wire::v1::{AgentShape, ClaimShape};

pub struct Held<'a> {
    pub claim: &'a ClaimShape,
    pub contested: bool,
    pub silent: bool,
}

pub fn held<'a>(claims: &'a [ClaimShape], contested: &[Number], agents: &[AgentShape]) -> Vec<Held<'a>> {
    let alive: HashSet<&str> = agents.iter().filter(|agent| agent.alive).map(|agent| agent.name.as_str()).collect();
    let held = |claim: &'a ClaimShape| Held {
        claim,
        contested: contested.contains(&claim.id),
        silent: !alive.contains(claim.holder.as_str()),
    };
    claims.iter().map(held).collect()
}
