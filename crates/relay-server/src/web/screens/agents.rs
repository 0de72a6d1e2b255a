//! The list of agents, by state, a page at a time.

use askama::Template;
use relay_core::wire::v1::AgentShape;

use super::{filters, text};
use crate::web::frame::Frame;

/// As many as stand on a page.
const PAGE: usize = 50;

const STATES: [(&str, &str); 5] =
    [("", "All"), ("alive", "Alive"), ("silent", "Silent"), ("suspended", "Suspended"), ("retired", "Retired")];

#[derive(Template)]
#[template(path = "agents.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    tabs: Vec<Tab>,
    state: &'a str,
    agents: Vec<&'a AgentShape>,
    page: usize,
    last: usize,
}

struct Tab {
    state: &'static str,
    word: &'static str,
    count: usize,
}

/// `page` counts from one; whatever lies beyond the last is the last.
pub fn page(frame: &Frame<'_>, agents: &[AgentShape], state: &str, page: usize) -> String {
    let is_of = |agent: &AgentShape, state: &str| state.is_empty() || agent.standing() == state;
    let tab = |(state, word)| Tab { state, word, count: agents.iter().filter(|agent| is_of(agent, state)).count() };
    let mut wanted: Vec<&AgentShape> = agents.iter().filter(|agent| is_of(agent, state)).collect();
    wanted.sort_by_key(|agent| (rank(agent), std::cmp::Reverse(agent.seen_at)));
    let last = wanted.len().div_ceil(PAGE).max(1);
    let page = page.clamp(1, last);
    let shown = wanted.into_iter().skip((page - 1) * PAGE).take(PAGE).collect();
    text(&Screen { frame, tabs: STATES.map(tab).into(), state, agents: shown, page, last })
}

/// Whoever may act comes first.
fn rank(agent: &AgentShape) -> usize {
    STATES.iter().position(|(state, _)| *state == agent.standing()).unwrap_or(STATES.len())
}
