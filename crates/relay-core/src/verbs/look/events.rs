//! The history, line by line, as far as the viewer may see it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Input, Looking, Outcome};
use crate::domain::delivery::Delivery;
use crate::domain::event::{Event, Happened, Number};
use crate::domain::name::{Party, ProjectKey};
use crate::store::{EventQuery, Result};
use crate::verbs::writing::internal;
use crate::wire::v1::EventShape;

/// Which events are wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFilter {
    pub kind: Option<String>,
    pub by: Option<String>,
    pub thread: Option<String>,
}

/// How many numbers one step through a filtered history covers.
const STEP: Number = 1_000;

pub(super) fn look(looking: &Looking<'_>, input: &Input) -> Result<Outcome> {
    let (after, tip) = (input.after.unwrap_or(0), looking.facts.tip()?.number);
    let page = Page { looking, moves: looking.facts.moves()?, filter: &input.filter, events: Vec::new() };
    if input.newest { page.newest(after, tip) } else { page.oldest(after, tip) }
}

/// A page of the history under way, filled step by step.
struct Page<'a> {
    looking: &'a Looking<'a>,
    moves: Vec<(Number, ProjectKey, ProjectKey)>,
    filter: &'a EventFilter,
    events: Vec<EventShape>,
}

impl Page<'_> {
    fn oldest(mut self, after: Number, tip: Number) -> Result<Outcome> {
        let mut cursor = after;
        while cursor < tip && !self.is_full() {
            let up_to = tip.min(cursor + self.step());
            cursor = self.fill(self.stretch(cursor, up_to)?.into_iter())?.unwrap_or(up_to);
        }
        Ok(Outcome::Events { events: self.events, cursor })
    }

    fn newest(mut self, after: Number, tip: Number) -> Result<Outcome> {
        let mut before = tip;
        while before > after && !self.is_full() {
            let from = before.saturating_sub(self.step()).max(after);
            self.fill(self.stretch(from, before)?.into_iter().rev())?;
            before = from;
        }
        self.events.reverse();
        Ok(Outcome::Events { events: self.events, cursor: tip.max(after) })
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.looking.limit
    }

    /// Without a filter almost everything is shown, and what is not shown need not be read.
    fn step(&self) -> Number {
        if *self.filter == EventFilter::default() { self.looking.limit as Number } else { STEP }
    }

    /// Kind and actor are told from the event alone, before anybody looks at a message.
    fn stretch(&self, after: Number, up_to: Number) -> Result<Vec<Event>> {
        let kind = self.filter.kind.as_deref();
        // Somebody of another project stands there by the path that it had then.
        let actor = self.filter.by.as_deref().filter(|by| self.moves.is_empty() || !by.contains('@'));
        self.looking.facts.events(&EventQuery { after, up_to, kind, actor })
    }

    /// Adds what is wanted and visible; the number of the event that filled the page.
    fn fill(&mut self, events: impl Iterator<Item = Event>) -> Result<Option<Number>> {
        for mut event in events {
            for (_, from, to) in self.moves.iter().filter(|(number, ..)| *number > event.number) {
                event.payload.actor.follow(from, to);
                event.payload.what.follow(from, to);
            }
            if self.filter.is_by(&event.payload.actor) && self.filter.is_of_thread(&event.payload.what)? {
                self.events.extend(shown(self.looking, &event)?);
            }
            if self.is_full() {
                return Ok(Some(event.number));
            }
        }
        Ok(None)
    }
}

impl EventFilter {
    fn is_by(&self, actor: &Party) -> bool {
        self.by.as_ref().is_none_or(|by| actor.to_string().eq_ignore_ascii_case(by))
    }

    fn is_of_thread(&self, what: &Happened) -> Result<bool> {
        let Some(wanted) = &self.thread else { return Ok(true) };
        let data = serde_json::to_value(what).map_err(internal)?;
        let thread = data.get("thread").or_else(|| data.get("reason")).and_then(Value::as_str);
        Ok(thread.is_some_and(|thread| thread.eq_ignore_ascii_case(wanted)))
    }
}

/// The event without what the viewer may not see; none when nothing of it is left.
fn shown(looking: &Looking<'_>, event: &Event) -> Result<Option<EventShape>> {
    let what = match hide(looking, event)? {
        Some(what) => what,
        None => return Ok(None),
    };
    let mut data = serde_json::to_value(&what).map_err(internal)?;
    if let Some(fields) = data.as_object_mut() {
        fields.remove("kind");
        // A salted hash means nothing to a reader; the message itself is one look away.
        for hash in ["subject", "body", "task", "why"] {
            fields.remove(hash);
        }
        let has_a_reason = matches!(
            what,
            Happened::ReservationTaken { .. } | Happened::LinkRequested { .. } | Happened::MessageRedacted { .. }
        );
        if has_a_reason {
            for (field, text) in looking.facts.texts(event.number)? {
                fields.insert(field, json!(text));
            }
        }
    }
    let payload = &event.payload;
    Ok(Some(EventShape {
        number: event.number,
        at: payload.at,
        actor: payload.actor.to_string(),
        kind: what.kind().to_owned(),
        data,
    }))
}

fn hide(looking: &Looking<'_>, event: &Event) -> Result<Option<Happened>> {
    let mut what = event.payload.what.clone();
    let stays = match &mut what {
        Happened::MessageSent { recipients, .. } => match looking.facts.envelope(event.number)? {
            Some(message) if looking.viewer.sees(&message) => {
                recipients.retain(|recipient| {
                    message
                        .delivery_to(&recipient.party)
                        .is_some_and(|delivery| looking.viewer.sees_delivery(&message, delivery))
                });
                true
            }
            _ => false,
        },
        Happened::MailSurfaced { agent, messages, contested } => {
            keep_visible(looking, messages, |copy| copy.recipient == *agent)?;
            !messages.is_empty() || !contested.is_empty()
        }
        Happened::MailRead { agent, messages } | Happened::MailAcked { agent, messages } => {
            keep_visible(looking, messages, |copy| copy.recipient == *agent)?;
            !messages.is_empty()
        }
        Happened::HeldLapsed { message, recipient, .. } => {
            let mut messages = vec![*message];
            keep_visible(looking, &mut messages, |copy| copy.recipient == *recipient)?;
            !messages.is_empty()
        }
        Happened::MessageRedacted { message, copies, .. } => {
            let mut seen = Vec::new();
            for copy in copies.iter() {
                if sees(looking, *copy)? {
                    seen.push(*copy);
                }
            }
            *copies = seen;
            sees(looking, *message)?
        }
        Happened::LinkAccepted { delivers, .. } => {
            keep_visible(looking, delivers, |copy| copy.delivered_by == Some(event.number))?;
            true
        }
        _ => true,
    };
    Ok(stays.then_some(what))
}

fn sees(looking: &Looking<'_>, message: Number) -> Result<bool> {
    Ok(looking.facts.envelope(message)?.is_some_and(|message| looking.viewer.sees(&message)))
}

/// Keeps the messages of which the viewer may know the copy that the event is about: a receipt must not betray a blind
/// one.
fn keep_visible(looking: &Looking<'_>, messages: &mut Vec<Number>, is_meant: impl Fn(&Delivery) -> bool) -> Result<()> {
    let mut kept = Vec::new();
    for id in messages.iter() {
        let Some(message) = looking.facts.envelope(*id)? else { continue };
        let mut meant = message.deliveries.iter().filter(|copy| is_meant(copy));
        if meant.any(|copy| looking.viewer.sees_delivery(&message, copy)) {
            kept.push(*id);
        }
    }
    *messages = kept;
    Ok(())
}
