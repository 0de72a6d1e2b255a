//! The history, line by line, as far as the viewer may see it.

use serde::Serialize;
use serde_json::json;

use super::filter::{Sieve, followed};
use super::{Input, Looking, Outcome};
use crate::domain::delivery::Delivery;
use crate::domain::event::{Event, Happened, Number};
use crate::domain::name::{Party, ProjectKey};
use crate::domain::telling::tell;
use crate::domain::time::Span;
use crate::domain::view::Viewer;
use crate::store::{Facts, Result};
use crate::verbs::writing::internal;
use crate::wire::v1::EventShape;

/// A page of the history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Events {
    pub events: Vec<EventShape>,
    /// Everything up to here was looked at.
    pub cursor: Number,
    /// Of a page from the end: older ones are found before this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Number>,
    /// For people.
    #[serde(skip)]
    pub layout: Layout,
}

/// How much of an event a person is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    #[default]
    Line,
    /// A line without the time.
    Short,
    /// As `git log` shows a commit.
    Full,
}

/// How many numbers one step through a filtered history covers.
pub(in crate::verbs) const STEP: u16 = 1_000;
const SHORT_STEP: u16 = 200;

/// Goes through the history up to an event, a stretch of so many numbers at a time.
pub(in crate::verbs) fn each_step(
    tip: Number,
    size: u16,
    mut step: impl FnMut(Number, Number) -> Result<()>,
) -> Result<()> {
    let mut after = 0;
    while after < tip {
        let up_to = tip.min(after + Number::from(size));
        step(after, up_to)?;
        after = up_to;
    }
    Ok(())
}

pub(super) fn look(looking: &Looking<'_>, input: &Input) -> Result<Outcome> {
    let (after, tip) = (input.after.unwrap_or(0), looking.facts.tip()?.number);
    let up_to = input.before.map_or(tip, |before| tip.min(before.saturating_sub(1)));
    let sieve = Sieve::new(looking, &input.filter)?;
    let thread = sieve.thread.clone();
    let page = Page {
        looking,
        moves: looking.facts.moves()?,
        sieve,
        limit: looking.limit,
        until: input
            .patience
            .map(|patience| Span::millis(looking.ctx.clock.monotonic().as_millis() + patience.as_millis())),
        events: Vec::new(),
        layout: input.layout,
    };
    let from_the_end = input.newest || (input.before.is_some() && input.after.is_none());
    let mut page = if from_the_end { page.newest(after, up_to)? } else { page.oldest(after, up_to)? };
    if from_the_end && !input.newest {
        page.events.reverse();
    }
    // Claims may be made for something that is no thread: they show that it is known.
    if let Some(thread) = thread.filter(|_| page.events.is_empty())
        && looking.thread_view(&thread, 0)?.is_none()
        && looking.facts.claims_for(&thread)?.is_empty()
    {
        return Err(looking.thread_not_found(&thread)?);
    }
    Ok(Outcome::Events(Box::new(page)))
}

/// A page of the history under way, filled step by step.
struct Page<'a> {
    looking: &'a Looking<'a>,
    moves: Vec<(Number, ProjectKey, ProjectKey)>,
    sieve: Sieve<'a>,
    limit: usize,
    /// When whoever waits for it has waited long enough.
    until: Option<Span>,
    events: Vec<EventShape>,
    layout: Layout,
}

impl Page<'_> {
    fn oldest(mut self, after: Number, up_to: Number) -> Result<Events> {
        let mut cursor = after;
        while cursor < up_to && !self.is_full() {
            let last = up_to.min(cursor + self.step());
            cursor = self.fill(self.stretch(cursor, last)?.into_iter())?.unwrap_or(last);
        }
        Ok(Events { events: self.events, cursor, before: None, layout: self.layout })
    }

    fn newest(mut self, after: Number, up_to: Number) -> Result<Events> {
        let mut last = up_to;
        // One more than is shown tells whether there are older ones.
        self.limit += 1;
        while last > after && !self.is_full() {
            let from = last.saturating_sub(self.step()).max(after);
            self.fill(self.stretch(from, last)?.into_iter().rev())?;
            last = from;
            if self.is_late() {
                break;
            }
        }
        let is_full = self.is_full();
        self.events.truncate(self.limit - 1);
        let before = if is_full {
            self.events.last().map(|event| event.number)
        } else {
            // Everything from there on was looked at.
            (last > after).then_some(last + 1)
        };
        Ok(Events { events: self.events, cursor: up_to.max(after), before, layout: self.layout })
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| self.looking.ctx.clock.monotonic() > until)
    }

    fn is_full(&self) -> bool {
        self.events.len() >= self.limit
    }

    fn step(&self) -> Number {
        match self.until {
            _ if self.sieve.is_open() => self.limit as Number,
            // Whoever cannot wait looks at the clock more often: a step may have to come from the disk.
            Some(_) => SHORT_STEP.into(),
            None => STEP.into(),
        }
    }

    /// Kind, actor and time are told from the event alone, before anybody looks at a message.
    fn stretch(&self, after: Number, up_to: Number) -> Result<Vec<Event>> {
        self.looking.facts.events(&self.sieve.query(after, up_to, self.moves.is_empty()))
    }

    /// Adds what is wanted and visible; the number of the event that filled the page.
    fn fill(&mut self, events: impl Iterator<Item = Event>) -> Result<Option<Number>> {
        for event in events {
            let event = followed(event, &self.moves);
            if self.sieve.is_by(&event.payload.actor)
                && let Some(what) = hide(self.looking, &event)?
                && self.sieve.takes(&what)?
            {
                self.events.push(shape(self.looking.facts, &event, &what, false)?);
            }
            if self.is_full() {
                return Ok(Some(event.number));
            }
        }
        Ok(None)
    }
}

/// The event as it is shown, with its texts; a body may be long, and is read only where it is wanted.
pub(in crate::verbs) fn shape(facts: &dyn Facts, event: &Event, what: &Happened, bodies: bool) -> Result<EventShape> {
    let mut data = serde_json::to_value(what).map_err(internal)?;
    if let Some(fields) = data.as_object_mut() {
        fields.remove("kind");
        // A salted hash means nothing to a reader.
        for hash in ["subject", "body", "task", "why"] {
            fields.remove(hash);
        }
        let claims = what.claims();
        if !claims.is_empty() {
            let mut patterns = Vec::new();
            for claim in claims {
                patterns.extend(facts.claim(claim)?.map(|claim| claim.pattern));
            }
            fields.insert("patterns".to_owned(), json!(patterns));
        }
        if matches!(what, Happened::MessageSent { .. }) && !bodies {
            let subject = facts.envelope(event.number)?.and_then(|message| message.subject);
            fields.extend(subject.map(|subject| ("subject".to_owned(), json!(subject))));
        } else {
            fields.extend(facts.texts(event.number)?.into_iter().map(|(field, text)| (field, json!(text))));
        }
    }
    let payload = &event.payload;
    Ok(EventShape {
        number: event.number,
        at: payload.at,
        actor: payload.actor.to_string(),
        kind: what.kind().to_owned(),
        text: tell(what),
        data,
    })
}

/// What the viewer may see of an event; none when nothing of it is left.
pub(in crate::verbs) fn hide(looking: &Looking<'_>, event: &Event) -> Result<Option<Happened>> {
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
        Happened::MailSurfaced { agent, .. } | Happened::MailRead { agent, .. } if !is_own(looking, agent)? => false,
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

/// What somebody was shown and has read is known to the credential that it belongs to, and to the human.
fn is_own(looking: &Looking<'_>, party: &Party) -> Result<bool> {
    match (&looking.viewer, party) {
        (Viewer::Human, _) => Ok(true),
        (_, Party::Agent(name)) => Ok(looking.facts.agent(name)?.is_some_and(|agent| looking.ctx.owns(&agent))),
        _ => Ok(false),
    }
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
