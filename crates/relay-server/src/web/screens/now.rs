//! Now: who is alive and at what, who holds what, who waits for whom, and what only the human can decide.

use std::collections::HashMap;

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::domain::name::{HUMAN, RELAY};
use relay_core::domain::shell;
use relay_core::store::Size;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{AckShape, Branch, Busy, Now, Status, WaitShape};
use relay_core::wire::v1::{AgentShape, ContestedShape, LinkShape, MessageShape};

use super::tree::Tree;
use super::{filters, first, text};
use crate::web::frame::Frame;

/// As many agents as are shown at once; the others have a page of their own.
const AGENTS: usize = 40;
/// As many questions and requests, which take the most room.
const ASKED: usize = 12;
/// As many letters of one sender as are read one by one.
const LOUD: usize = 4;
/// The archive may be behind by this many events without anybody being told to do something.
const ARCHIVE_LAG: Number = 100;
/// As many questions as are shown with how they begin.
pub const OPENED: usize = 5;
/// As many of everything else.
const ROWS: usize = 20;

#[derive(Template)]
#[template(path = "now.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    status: &'a Status,
    now: &'a Now,
    /// A page of what the human was asked.
    asked: &'a [MessageShape],
    opened: &'a [MessageShape],
    page: usize,
    last: usize,
    /// Those who wrote much of it.
    loud: Vec<Loud<'a>>,
    requests: &'a [LinkShape],
    contested: &'a [ContestedShape],
    waits: &'a [WaitShape],
    acks: &'a [AckShape],
    debt: &'a [DebtItem],
    rows: Vec<Row<'a>>,
    /// Agents that are not shown.
    more: usize,
    tree: Tree<'a>,
}

/// Somebody who wrote much of what waits for the human.
struct Loud<'a> {
    name: &'a str,
    letters: usize,
    /// Those that ask for no receipt, and are done with once they are read.
    read: Vec<Number>,
}

/// An agent, with what it is at.
struct Row<'a> {
    agent: &'a AgentShape,
    standing: &'a str,
    busy: Option<&'a Busy>,
    waits: Vec<&'a WaitShape>,
}

/// The questions that stand on such a page; pages count from one, and whatever lies beyond the last is the last.
pub fn asked(status: &Status, page: usize) -> (&[MessageShape], usize, usize) {
    let last = status.for_the_human.len().div_ceil(ASKED).max(1);
    let page = page.clamp(1, last);
    let rest = status.for_the_human.get((page - 1) * ASKED..).unwrap_or_default();
    (first(rest, ASKED), page, last)
}

/// `opened` are questions of the status with their texts, which the status itself leaves out.
pub fn page(frame: &Frame<'_>, status: &Status, page: usize, opened: &[MessageShape]) -> String {
    let nothing = nothing();
    let now = status.now.as_deref().unwrap_or(&nothing);
    let (asked, page, last) = asked(status, page);
    text(&Screen {
        frame,
        status,
        now,
        asked,
        opened,
        page,
        last,
        loud: loud(&status.for_the_human),
        requests: first(&now.requests, ASKED),
        contested: first(&status.contested, ROWS),
        waits: first(&now.waits, ROWS),
        acks: first(&now.acks, ROWS),
        debt: first(&now.debt, ROWS),
        rows: rows(status, now),
        more: status.agents.len().saturating_sub(AGENTS),
        tree: Tree { frame, branch: &now.tree, acts: true, then: None },
    })
}

fn loud(asked: &[MessageShape]) -> Vec<Loud<'_>> {
    let mut senders: Vec<Loud<'_>> = Vec::new();
    for message in asked {
        let known = senders.iter().position(|sender| sender.name == message.from);
        let place = known.unwrap_or_else(|| {
            senders.push(Loud { name: &message.from, letters: 0, read: Vec::new() });
            senders.len() - 1
        });
        senders[place].letters += 1;
        senders[place].read.extend(Some(message.id).filter(|_| !message.ack_required));
    }
    senders.retain(|sender| sender.letters >= LOUD);
    senders
}

/// What such a word says, for whoever points at it.
pub fn meaning(standing: &str) -> &'static str {
    match standing {
        "alive" => "It did something here within the last minutes",
        "silent" => "It has done nothing here for a while: it may have ended, or be at work without a word",
        "suspended" => "It can do nothing here until you let it",
        "retired" => "It has left, and holds nothing",
        _ => "",
    }
}

fn rows<'a>(status: &'a Status, now: &'a Now) -> Vec<Row<'a>> {
    let busy: HashMap<&str, &Busy> = now.busy.iter().map(|busy| (busy.agent.as_str(), busy)).collect();
    let row = |agent: &'a AgentShape| Row {
        agent,
        standing: agent.standing(),
        busy: busy.get(agent.name.as_str()).copied(),
        waits: now.waits.iter().filter(|wait| wait.who == agent.name).collect(),
    };
    status.agents.iter().take(AGENTS).map(row).collect()
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
        debt_total: 0,
        retired: 0,
        store: Size::default(),
    }
}

impl Screen<'_> {
    /// A command of relay's for this project, whatever folder it is run in.
    fn command(&self, words: &str) -> String {
        let words: Vec<&str> = ["relay"].into_iter().chain(words.split(' ')).collect();
        shell::line(&[&words[..], &["--project", &self.status.project]].concat())
    }

    /// What is asked beyond what all the pages have room for.
    fn unasked(&self) -> usize {
        self.status.for_the_human_total.saturating_sub(self.status.for_the_human.len())
    }

    /// The text of a question, where it was opened.
    fn beginning(&self, id: &Number) -> Option<&str> {
        self.opened.iter().find(|message| message.id == *id).and_then(|message| message.body.as_deref())
    }

    /// The archive follows a little later: that is as it should be, until it is far behind.
    fn is_archive_late(&self) -> bool {
        self.status.archive.behind > ARCHIVE_LAG
    }

    /// Why somebody who asks would not read an answer. Those of other projects, and relay itself, are not known here.
    fn gone(&self, name: &str) -> Option<&str> {
        if name.contains('@') || name == HUMAN || name == RELAY {
            return None;
        }
        let known = self.status.agents.iter().find(|agent| agent.name == name);
        known.map_or(Some("retired"), |agent| Some(agent.standing()).filter(|word| *word == "suspended"))
    }

    /// How many agents stand so.
    fn count(&self, word: &str) -> usize {
        self.status.agents.iter().filter(|agent| agent.standing() == word).count()
    }
}
