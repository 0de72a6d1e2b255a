//! What went wrong in hooks, which let the agents go on.

use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_store::Home;

use super::{Finding, Severity, agents};
use crate::app::App;
use crate::hook::trace;
use crate::init::Agent;

/// That there is more to look at, where agents are set up.
pub fn of_the_agents(app: &App, home: &Home) -> Option<Finding> {
    let names: Vec<&str> = agents::set_up(app, home).into_iter().map(Agent::title).collect();
    let text = format!("set up here: {}; `relay doctor --agents` tries them out", names.join(", "));
    (!names.is_empty()).then(|| Finding::fine("agents", text))
}

/// What was longer ago has been mended, or happens again.
const LATELY: Span = Span::hours(24);

pub fn of_the_hooks(home: &Home, now: Timestamp) -> Finding {
    let mut lately = trace::read(home.root());
    lately.retain(|trace| now.since(trace.at) <= LATELY);
    let Some(last) = lately.last() else {
        return Finding::fine("hooks", "no hook has failed within a day");
    };
    let count = crate::render::count(lately.len(), "hook");
    let text = format!(
        "{count} failed within a day and let the agent go on; the last was {} at {}: {}",
        last.what, last.at, last.why
    );
    Finding::told("hooks", Severity::Warning, Code::Internal.to_string(), text)
}
