//! Claims with what the project says of them: which are contested, and whose holder is silent.

use std::collections::HashSet;

use relay_core::verbs::look::Status;
use relay_core::wire::v1::ClaimShape;

pub struct Held<'a> {
    pub claim: &'a ClaimShape,
    pub contested: bool,
    pub silent: bool,
}

pub fn held<'a>(claims: &'a [ClaimShape], status: &Status) -> Vec<Held<'a>> {
    let contested: HashSet<u64> = status.contested.iter().flat_map(|pair| [pair.mine, pair.id]).collect();
    let alive: HashSet<&str> =
        status.agents.iter().filter(|agent| agent.alive).map(|agent| agent.name.as_str()).collect();
    let held = |claim: &'a ClaimShape| Held {
        claim,
        contested: contested.contains(&claim.id),
        silent: !alive.contains(claim.holder.as_str()),
    };
    claims.iter().map(held).collect()
}
