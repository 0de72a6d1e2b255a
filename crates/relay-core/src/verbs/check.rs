//! `check`: where what is changed meets what is claimed.

mod look;
mod shapes;
mod trees;

use serde::{Deserialize, Serialize};

use super::writing::Told;
use super::{Actor, Ctx, Done, Outcome as Any, actor, clash};
use crate::domain::limits::{CHECK_PATIENCE, CONFLICTS_SHOWN};
use crate::store::Result;
use crate::wire::v1::ConflictShape;

pub use shapes::{Counted, Outside, Trees, UnseenShape, WorkTreeShape, WouldConflict};
pub(super) use trees::counted;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    /// The paths that are changed, or about to be; their characters mean themselves.
    pub paths: Vec<String>,
    /// Only what stops others: exclusive claims whose holder is alive.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub standing: bool,
    /// Look for what is changed in the work trees, and only at these paths where some are given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trees: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Who asks, where that is known; to nobody in particular every claim is another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The live claims of others on these paths.
    pub inside: Vec<ConflictShape>,
    pub inside_total: usize,
    /// What else was found in the work trees.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub trees: Option<Box<Trees>>,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let facts = ctx.store.read()?;
    let (_, actor) = actor::viewer(ctx, &*facts)?;
    let me = actor.as_ref().and_then(Actor::agent);
    if let Some(me) = me {
        ctx.store.presence().touch(&me.name, ctx.now);
    }
    let told = if input.trees {
        // Nobody waits for a look at files with the store open, and what is in it is read once that is over.
        drop(facts);
        trees::told(ctx, me, &input.paths, CHECK_PATIENCE)?
    } else {
        let mut inside = clash::on_paths(ctx, &*facts, me, &input.paths)?;
        inside.retain(|claim| !input.standing || (claim.exclusive && !claim.silent));
        let inside_total = inside.len();
        inside.truncate(CONFLICTS_SHOWN);
        let agent = me.map(|me| me.name.to_string());
        Told { outcome: Outcome { agent, inside, inside_total, trees: None }, signals: Vec::new(), next: Vec::new() }
    };
    Ok(Done::new("check", told, Any::Check))
}
