//! The box in which the human writes to one, to several or to all.

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::domain::limits::ALL_SEEN_WITHIN;
use relay_core::domain::message::Importance;
use relay_core::domain::time::Timestamp;
use relay_core::wire::v1::{AgentShape, MessageShape};

use super::trouble::Trouble;
use super::{filters, text};
use crate::web::frame::Frame;

/// As many agents as have a box of their own; others are named.
const BOXES: usize = 100;

/// What was typed so far, as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Draft {
    pub to: Vec<String>,
    pub thread: String,
    pub subject: String,
    pub body: String,
    pub importance: String,
    pub ack_required: bool,
    pub ack_within: String,
    pub reply_to: Option<Number>,
    /// What is acknowledged along with it.
    pub ack: Option<Number>,
}

#[derive(Template)]
#[template(path = "write.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    draft: &'a Draft,
    agents: Vec<&'a AgentShape>,
    more: usize,
    /// How many `@all` reaches.
    able: usize,
    /// Recipients that have no box.
    named: String,
    importances: [&'static str; 4],
    trouble: Option<Trouble<'a>>,
    answered: Option<&'a MessageShape>,
    reopens: bool,
}

/// What is known of a letter that is written: to whom it can go, what it answers, and what becomes of its thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    pub agents: Vec<AgentShape>,
    pub answered: Option<MessageShape>,
    /// The thread is done, and whoever writes in it opens it again.
    pub reopens: bool,
}

/// The box with what was typed, and what was wrong with it.
pub fn page(frame: &Frame<'_>, draft: &Draft, beside: &Beside, trouble: Option<Trouble<'_>>) -> String {
    let Beside { agents, answered, reopens } = beside;
    let mut shown: Vec<&AgentShape> = agents.iter().filter(|agent| agent.standing() != "retired").collect();
    // Where not all have a box those have one who were seen last; they stand where one looks for a name.
    shown.sort_by_key(|agent| (!agent.alive, std::cmp::Reverse(agent.seen_at)));
    let more = shown.len().saturating_sub(BOXES);
    shown.truncate(BOXES);
    shown.sort_by_key(|agent| agent.name.to_lowercase());
    // Mail to somebody who is suspended is refused: their box cannot be ticked.
    let has_box = |name: &str| {
        let is_it = |agent: &&AgentShape| agent.name == name && agent.standing() != "suspended";
        !shown.is_empty() && (name == "@all" || shown.iter().any(is_it))
    };
    let named: Vec<&str> = draft.to.iter().map(String::as_str).filter(|name| !has_box(name)).collect();
    text(&Screen {
        frame,
        draft,
        named: named.join(", "),
        agents: shown,
        more,
        able: agents.iter().filter(|agent| is_reached(agent, frame.now)).count(),
        importances: Importance::ALL.map(Importance::as_str),
        trouble,
        answered: answered.as_ref(),
        reopens: *reopens,
    })
}

/// Whether `@all` reaches it.
fn is_reached(agent: &AgentShape, now: Timestamp) -> bool {
    let is_recent = agent.seen_at.is_some_and(|at| at >= now.minus(ALL_SEEN_WITHIN));
    ["alive", "silent"].contains(&agent.standing()) && is_recent
}

impl Screen<'_> {
    /// Which letter this is: what is typed for one is not kept for another.
    fn about(&self) -> String {
        let answered = self.draft.reply_to.map(|number| number.to_string()).unwrap_or_default();
        [self.draft.to.join(",").as_str(), &self.draft.thread, &answered].join(" / ")
    }

    fn is_chosen(&self, name: &str) -> bool {
        self.draft.to.iter().any(|chosen| chosen == name)
    }

    fn is_importance(&self, word: &str) -> bool {
        let chosen = self.draft.importance.as_str();
        word == if chosen.is_empty() { Importance::default().as_str() } else { chosen }
    }
}
