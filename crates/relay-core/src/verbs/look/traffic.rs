//! Who has written to whom of late.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Looking, Outcome};
use crate::domain::event::Number;
use crate::domain::name::Party;
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;
use crate::store::{EventQuery, Result};

/// How far back it looks, in events: what is older says little about who works with whom now.
const REACH: Number = 20_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// The busiest first.
    pub traffic: Vec<Pair>,
    /// Since when it is counted; the beginning of the history, where that is nearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// Mail from one to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    pub from: String,
    pub to: String,
    pub messages: usize,
    /// The newest of them.
    pub newest: Number,
}

pub(super) fn look(looking: &Looking<'_>) -> Result<Outcome> {
    let after = looking.facts.tip()?.number.saturating_sub(REACH);
    let first = looking.facts.events(&EventQuery::between(after, after + 1))?;
    let mut pairs: HashMap<(Party, Party), Pair> = HashMap::new();
    for mail in looking.facts.traffic(after)? {
        // A blind copy is known to its parties and the human: only the human is told of those of all.
        if mail.blind && looking.viewer != Viewer::Human {
            continue;
        }
        let (from, to) = (mail.from.to_string(), mail.to.to_string());
        let none = || Pair { from, to, messages: 0, newest: 0 };
        let pair = pairs.entry((mail.from, mail.to)).or_insert_with(none);
        pair.messages += mail.messages;
        pair.newest = pair.newest.max(mail.newest);
    }
    let mut traffic: Vec<Pair> = pairs.into_values().collect();
    traffic.sort_by(|one, other| {
        let busier = (other.messages, other.newest).cmp(&(one.messages, one.newest));
        busier.then_with(|| (&one.from, &one.to).cmp(&(&other.from, &other.to)))
    });
    traffic.truncate(looking.limit);
    Ok(Outcome::Traffic(Box::new(Traffic { traffic, since: first.first().map(|event| event.payload.at) })))
}
