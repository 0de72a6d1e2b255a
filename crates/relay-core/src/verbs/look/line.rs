//! Who held a path when one of its lines was changed.

use serde::{Deserialize, Serialize};

use super::events::{STEP, each_step};
use super::filter::CLAIMS;
use super::{Looking, Outcome};
use crate::domain::event::Number;
use crate::domain::holding::{End, Holding, Holdings};
use crate::domain::name::ThreadId;
use crate::domain::pattern::Pattern;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{Change, EventQuery, Result};
use crate::wire::v1::MessageShape;

/// How many messages of a claim's thread are shown: enough to see what was agreed.
const MESSAGES: usize = 3;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    pub change: Change,
    /// Every claim on the path that was live when the line was changed.
    pub held: Vec<HeldShape>,
    /// The last claim before, where nobody held the path at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<HeldShape>,
    /// Where nobody is known to have held it because the history begins only later: when it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begins: Option<Timestamp>,
    /// The last messages until then in the threads that the claims were made for.
    pub messages: Vec<MessageShape>,
}

/// A claim as it was held once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldShape {
    pub id: Number,
    pub pattern: String,
    pub holder: String,
    pub exclusive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub generation: u64,
    pub from: Timestamp,
    pub until: Timestamp,
    pub end: End,
}

impl From<&Holding> for HeldShape {
    fn from(held: &Holding) -> Self {
        HeldShape {
            id: held.id,
            pattern: held.pattern.clone(),
            holder: held.holder.to_string(),
            exclusive: held.exclusive,
            reason: held.reason.as_ref().map(ToString::to_string),
            generation: held.generation,
            from: held.from,
            until: held.until,
            end: held.end,
        }
    }
}

pub(super) fn look(looking: &Looking<'_>, text: &str) -> Result<Outcome> {
    let (path, line) = parse(text)?;
    let change = looking.ctx.repository.last_change(path, line)?;
    // A commit knows its time to the second: whatever lived in any moment of it counts.
    let (from, to) = (change.at, change.at.plus(Span::millis(999)));
    let mut held = Vec::new();
    let mut last: Option<Holding> = None;
    for holding in change.path_then.as_deref().map_or(Ok(Vec::new()), |path| holdings(looking, path))? {
        if holding.meets(from, to) {
            held.push(holding);
        } else if holding.until <= from && last.as_ref().is_none_or(|last| last.until < holding.until) {
            last = Some(holding);
        }
    }
    held.sort_by_key(|holding| (holding.id, holding.generation));
    let mut messages = Vec::new();
    let mut reasons: Vec<&ThreadId> = held.iter().filter_map(|holding| holding.reason.as_ref()).collect();
    reasons.sort_by_key(|thread| thread.as_str());
    reasons.dedup();
    for thread in reasons {
        let until = looking.facts.thread_messages_until(thread, to, MESSAGES)?;
        let seen = until.iter().filter(|message| looking.viewer.sees(message));
        messages.extend(seen.map(|message| looking.shape(message, false)));
    }
    messages.sort_by_key(|message| message.id);
    messages.dedup_by_key(|message| message.id);
    let first = looking.facts.events(&EventQuery::between(0, 1))?;
    let begins = first.first().map(|event| event.payload.at).filter(|begins| held.is_empty() && *begins > to);
    Ok(Outcome::Line(Box::new(Line {
        change,
        begins,
        last: last.as_ref().filter(|_| held.is_empty()).map(HeldShape::from),
        held: held.iter().map(HeldShape::from).collect(),
        messages,
    })))
}

fn parse(text: &str) -> Result<(&str, u32)> {
    let line = |digits: &str| digits.parse().ok().filter(|line| *line > 0);
    let read = text.rsplit_once(':').and_then(|(path, digits)| Some((path, line(digits)?)));
    read.filter(|(path, _)| !path.is_empty()).ok_or_else(|| {
        Code::InputInvalid.refuse(format!("{text:?} names no line; write the path and the line as src/auth.rs:42"))
    })
}

/// Every stretch of time in which somebody held the path.
fn holdings(looking: &Looking<'_>, path: &str) -> Result<Vec<Holding>> {
    let tip = looking.facts.tip()?.number;
    let case = looking.ctx.repository.case();
    let matches =
        |pattern: &str| Pattern::from_canonical(pattern).is_ok_and(|pattern| pattern.compile(case).matches(path));
    let mut following = Holdings::default();
    let mut found = Vec::new();
    each_step(tip, STEP, |after, up_to| {
        for event in looking.facts.events(&EventQuery { kinds: &CLAIMS, ..EventQuery::between(after, up_to) })? {
            found.extend(following.follow(&event, |claim| matches(&claim.pattern)));
        }
        Ok(())
    })?;
    found.extend(following.finish());
    Ok(found)
}
