//! Now: who is alive and at what, who holds what, who waits for whom, and what only the human can decide.

use std::collections::HashMap;

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::store::Size;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{AckShape, Branch, Busy, Now, Status, WaitShape};
use relay_core::wire::v1::{AgentShape, LinkShape, MessageShape};

use super::tree::Tree;
use super::{filters, text};
use crate::web::frame::Frame;

/// As many agents as are shown at once; the others have a page of their own.
const AGENTS: usize = 40;
/// As many of everything else.
const ROWS: usize = 20;

#[derive(Template)]
#[template(path = "now.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    status: &'a Status,
    now: &'a Now,
    alive: usize,
    asked: &'a [MessageShape],
    unasked: usize,
    requests: &'a [LinkShape],
    acks: &'a [AckShape],
    debt: &'a [DebtItem],
    rows: Vec<Row<'a>>,
    /// Agents that are not shown.
    more: usize,
    tree: Tree<'a>,
    /// Who holds which of the claims that are drawn.
    holders: HashMap<Number, &'a str>,
}

/// An agent, with what it is at.
struct Row<'a> {
    agent: &'a AgentShape,
    standing: &'static str,
    busy: Option<&'a Busy>,
    waits: Vec<&'a WaitShape>,
}

pub fn page(frame: &Frame<'_>, status: &Status) -> String {
    let nothing = nothing();
    let now = status.now.as_deref().unwrap_or(&nothing);
    let mut holders = HashMap::new();
    gather(&now.tree, &mut holders);
    text(&Screen {
        frame,
        status,
        now,
        alive: status.agents.iter().filter(|agent| standing(agent) == "alive").count(),
        asked: first(&status.for_the_human, ROWS),
        unasked: status.for_the_human.len().saturating_sub(ROWS),
        requests: first(&now.requests, ROWS),
        acks: first(&now.acks, ROWS),
        debt: first(&now.debt, ROWS),
        rows: rows(status, now),
        more: status.agents.len().saturating_sub(AGENTS),
        tree: Tree { frame, branch: &now.tree, acts: true },
        holders,
    })
}

fn first<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
}

/// How an agent stands, in one word.
pub fn standing(agent: &AgentShape) -> &'static str {
    match (agent.state.as_str(), agent.alive) {
        ("suspended", _) => "suspended",
        ("retired", _) => "retired",
        (_, true) => "alive",
        (_, false) => "silent",
    }
}

fn rows<'a>(status: &'a Status, now: &'a Now) -> Vec<Row<'a>> {
    let busy: HashMap<&str, &Busy> = now.busy.iter().map(|busy| (busy.agent.as_str(), busy)).collect();
    let row = |agent: &'a AgentShape| Row {
        agent,
        standing: standing(agent),
        busy: busy.get(agent.name.as_str()).copied(),
        waits: now.waits.iter().filter(|wait| wait.who == agent.name).collect(),
    };
    status.agents.iter().take(AGENTS).map(row).collect()
}

fn gather<'a>(branch: &'a Branch, holders: &mut HashMap<Number, &'a str>) {
    holders.extend(branch.leaves.iter().map(|leaf| (leaf.claim.id, leaf.claim.holder.as_str())));
    for below in &branch.branches {
        gather(below, holders);
    }
}

/// Of a status that was not asked for all this.
fn nothing() -> Now {
    Now {
        busy: Vec::new(),
        waits: Vec::new(),
        tree: Branch::default(),
        acks: Vec::new(),
        acks_total: 0,
        requests: Vec::new(),
        debt: Vec::new(),
        retired: 0,
        store: Size::default(),
    }
}

impl Screen<'_> {
    fn decisions(&self) -> usize {
        self.status.for_the_human.len() + self.now.requests.len() + self.status.questions.len()
    }

    fn holder(&self, claim: &Number) -> Option<&str> {
        self.holders.get(claim).copied()
    }
}
