//! One agent: what it is at, what it holds and owes, what it did last, and how to stop it.

use askama::Template;
use relay_core::domain::agent::Policy;
use relay_core::domain::event::Number;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{AckShape, Busy, Events, Status, WaitShape};
use relay_core::wire::v1::{AgentShape, ClaimShape};

use super::events::Told;
use super::held::{Held, held};
use super::{filters, text};
use crate::web::frame::Frame;

/// What is known of it.
pub struct About<'a> {
    pub agent: &'a AgentShape,
    /// The wide one, in which its share is looked up.
    pub status: &'a Status,
    /// Its live claims, and how many there are with those that are not shown.
    pub claims: &'a [ClaimShape],
    pub contested: &'a [Number],
    pub total: usize,
    /// What it did last, the newest first.
    pub last: &'a Events,
}

#[derive(Template)]
#[template(path = "agent.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    agent: &'a AgentShape,
    standing: &'a str,
    busy: Option<&'a Busy>,
    waits: Vec<&'a WaitShape>,
    acks: Vec<&'a AckShape>,
    debt: Vec<&'a DebtItem>,
    /// All that it owes: acks, of which not every one may be listed, and the rest.
    owes: usize,
    claims: Vec<Held<'a>>,
    total: usize,
    events: Vec<Told<'a>>,
    /// What it did before those was not looked at.
    has_older: bool,
    /// Not all that is owed was looked through.
    is_cut: bool,
}

pub fn page(frame: &Frame<'_>, about: &About<'_>) -> String {
    let agent = about.agent;
    let is_it = |name: &str| name == agent.name;
    let now = about.status.now.as_deref();
    let busy = now.and_then(|now| now.busy.iter().find(|busy| is_it(&busy.agent)));
    let acks: Vec<&AckShape> = now.iter().flat_map(|now| &now.acks).filter(|ack| is_it(&ack.by)).collect();
    // Acks that are late stand among the acks.
    let is_else = |item: &&DebtItem| is_it(&item.who) && item.kind != "ack_overdue";
    let debt: Vec<&DebtItem> = now.iter().flat_map(|now| &now.debt).filter(is_else).collect();
    text(&Screen {
        frame,
        agent,
        standing: agent.standing(),
        owes: busy.map_or(0, |busy| busy.owes).max(acks.len()) + debt.len(),
        busy,
        waits: now.iter().flat_map(|now| &now.waits).filter(|wait| is_it(&wait.who)).collect(),
        acks,
        debt,
        claims: held(about.claims, about.contested, &about.status.agents),
        total: about.total,
        events: about.last.events.iter().map(Told::of).collect(),
        has_older: about.last.before.is_some(),
        is_cut: now.is_some_and(|now| now.debt_total > now.debt.len()),
    })
}

impl Screen<'_> {
    /// Whose mail it takes, in words.
    fn whose(&self) -> Option<&'static str> {
        let policy = self.agent.policy.as_deref()?;
        Policy::ALL.into_iter().find(|known| known.as_str() == policy).map(Policy::whose)
    }
}
