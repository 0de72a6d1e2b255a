//! The history, line by line, as far as the viewer may see it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Input, Looking, Outcome};
use crate::domain::delivery::Delivery;
use crate::domain::event::{Event, Happened, Number};
use crate::error::Code;
use crate::store::Result;
use crate::wire::v1::EventShape;

/// Which events are wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFilter {
    pub kind: Option<String>,
    pub by: Option<String>,
    pub thread: Option<String>,
}

pub(super) fn look(looking: &Looking<'_>, input: &Input) -> Result<Outcome> {
    let mut events = Vec::new();
    let mut cursor = input.after.unwrap_or(0);
    let moves = looking.facts.moves()?;
    'pages: loop {
        let page = looking.facts.events(cursor, looking.ctx.limits.page)?;
        if page.is_empty() {
            break;
        }
        for mut event in page {
            for (_, from, to) in moves.iter().filter(|(number, ..)| *number > event.number) {
                event.payload.actor.follow(from, to);
                event.payload.what.follow(from, to);
            }
            cursor = event.number;
            if let Some(shape) = shown(looking, &event)?.filter(|shape| input.filter.takes(shape)) {
                events.push(shape);
                if events.len() >= looking.limit {
                    break 'pages;
                }
            }
        }
    }
    Ok(Outcome::Events { events, cursor })
}

impl EventFilter {
    fn takes(&self, event: &EventShape) -> bool {
        let is = |wanted: &Option<String>, value: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| value.is_some_and(|value| value.eq_ignore_ascii_case(wanted)))
        };
        let thread = event.data.get("thread").or_else(|| event.data.get("reason")).and_then(Value::as_str);
        is(&self.kind, Some(&event.kind)) && is(&self.by, Some(&event.actor)) && is(&self.thread, thread)
    }
}

/// The event without what the viewer may not see; none when nothing of it is left.
fn shown(looking: &Looking<'_>, event: &Event) -> Result<Option<EventShape>> {
    let what = match hide(looking, event)? {
        Some(what) => what,
        None => return Ok(None),
    };
    let mut data = serde_json::to_value(&what).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
    if let Some(fields) = data.as_object_mut() {
        fields.remove("kind");
        // A salted hash means nothing to a reader; the message itself is one look away.
        for hash in ["subject", "body", "task", "why"] {
            fields.remove(hash);
        }
        if matches!(what, Happened::ReservationTaken { .. } | Happened::LinkRequested { .. }) {
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
        Happened::MessageSent { recipients, .. } => match looking.facts.message(event.number)? {
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
        Happened::LinkAccepted { delivers, .. } => {
            keep_visible(looking, delivers, |copy| copy.delivered_by == Some(event.number))?;
            true
        }
        _ => true,
    };
    Ok(stays.then_some(what))
}

/// Keeps the messages of which the viewer may know the copy that the event is about: a receipt must not betray a blind
/// one.
fn keep_visible(looking: &Looking<'_>, messages: &mut Vec<Number>, is_meant: impl Fn(&Delivery) -> bool) -> Result<()> {
    let mut kept = Vec::new();
    for id in messages.iter() {
        let Some(message) = looking.facts.message(*id)? else { continue };
        let mut meant = message.deliveries.iter().filter(|copy| is_meant(copy));
        if meant.any(|copy| looking.viewer.sees_delivery(&message, copy)) {
            kept.push(*id);
        }
    }
    *messages = kept;
    Ok(())
}
