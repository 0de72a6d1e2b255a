//! What an agent was not told yet, as much of it as fits into a turn.

use crate::domain::agent::Agent;
use crate::domain::name::Party;
use crate::domain::view::Viewer;
use crate::store::{Facts, InboxQuery, Result};
use crate::verbs::poll::Afterwards;
use crate::verbs::{Ctx, contested};
use crate::wire::v1::{ContestedShape, MessageShape};

/// How many messages one hook shows; the others come with the next.
const SHOWN: usize = 10;
/// A longer body is left to whoever wants to read it.
const BODY_BYTES: usize = 1_500;
/// All bodies of one hook together.
const BODIES_BYTES: usize = 4_000;

pub struct News {
    pub mail: Vec<MessageShape>,
    pub more: bool,
    pub contested: Vec<ContestedShape>,
    /// What is only true once the agent was shown it.
    pub afterwards: Afterwards,
}

pub fn news(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent) -> Result<News> {
    let me = Party::Agent(agent.name.clone());
    let query = InboxQuery { never_surfaced: true, ..InboxQuery::unread(&me, SHOWN + 1) };
    let mut messages = facts.inbox(&query)?;
    // Mail that one event delivered is never split over two pages, so there may be more than was asked for.
    let more = messages.len() > SHOWN;
    messages.truncate(SHOWN);
    let viewer = Viewer::Agent(me.clone());
    let (mut mail, mut left) = (Vec::new(), BODIES_BYTES);
    for message in &messages {
        let whole = if left > 0 { facts.message(message.id)? } else { None };
        let fits = |body: &str| body.len() <= BODY_BYTES.min(left);
        let whole = whole.filter(|whole| whole.body.as_deref().is_some_and(fits));
        left -= whole.as_ref().and_then(|whole| whole.body.as_ref()).map_or(0, String::len);
        mail.push(MessageShape::of(whole.as_ref().unwrap_or(message), &viewer, whole.is_some()));
    }
    let news = contested::news(ctx, facts, agent, ctx.now)?;
    let surfaced = messages.iter().map(|message| message.id).collect();
    let afterwards = Afterwards { party: me, at: ctx.now, surfaced, read: Vec::new(), told: news.told };
    Ok(News { mail, more, contested: news.contested, afterwards })
}

/// The acks that the agent owes for mail that it was shown.
pub fn owed(facts: &dyn Facts, me: &Party, most: usize) -> Result<Vec<MessageShape>> {
    let viewer = Viewer::Agent(me.clone());
    let mut owed = facts.acks_owed(me, most)?;
    owed.retain(|message| message.delivery_to(me).is_some_and(|delivery| delivery.surfaced_at.is_some()));
    Ok(owed.iter().map(|message| MessageShape::of(message, &viewer, false)).collect())
}
