//! `check`: where what is changed meets what is claimed.

use serde::{Deserialize, Serialize};

use super::writing::Told;
use super::{Actor, Ctx, Done, Outcome as Any, actor, clash};
use crate::domain::limits::CONFLICTS_SHOWN;
use crate::store::Result;
use crate::wire::v1::ConflictShape;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    /// The paths that are changed, or about to be; their characters mean themselves.
    pub paths: Vec<String>,
    /// Only what stops others: exclusive claims whose holder is alive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Who asks, where that is known; to nobody in particular every claim is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The live claims of others on these paths.
    pub inside: Vec<ConflictShape>,
    pub inside_total: usize,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let facts = ctx.store.read()?;
    let (_, actor) = actor::viewer(ctx, &*facts)?;
    let me = actor.as_ref().and_then(Actor::agent);
    let mut inside = clash::on_paths(ctx, &*facts, me, &input.paths)?;
    inside.retain(|claim| !input.standing || (claim.exclusive && !claim.silent));
    let inside_total = inside.len();
    inside.truncate(CONFLICTS_SHOWN);
    if let Some(me) = me {
        ctx.store.presence().touch(&me.name, ctx.now);
    }
    let agent = me.map(|me| me.name.to_string());
    let outcome = Outcome { agent, inside, inside_total };
    Ok(Done::new("check", Told { outcome, signals: Vec::new(), next: Vec::new() }, Any::Check))
}
