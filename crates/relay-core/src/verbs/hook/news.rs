//! What an agent was not told yet, as much of it as fits into a turn.

use serde::{Deserialize, Serialize};

use crate::domain::agent::Agent;
use crate::domain::event::{Number, Told};
use crate::domain::name::{AgentName, Party};
use crate::domain::plain::escape;
use crate::domain::time::Timestamp;
use crate::domain::view::Viewer;
use crate::store::{Facts, InboxQuery, Result};
use crate::verbs::poll::Afterwards;
use crate::verbs::{Ctx, actor, contested};
use crate::wire::v1::{ContestedShape, MessageShape};

/// How many messages one hook shows; the others come with the next.
const SHOWN: usize = 10;
/// A longer body is left to whoever wants to read it.
const BODY: usize = 1_500;
/// All mail of one hook together, as it is shown: what no program would show to its end must not count as shown.
const MAIL: usize = 4_500;
/// What stands around a message: names, commands, the boundary.
const FRAME: usize = 500;
/// The contests of one hook together.
const CONTESTS: usize = 1_500;

pub struct News {
    pub mail: Vec<MessageShape>,
    pub more: bool,
    pub contested: Vec<ContestedShape>,
    pub shown: Shown,
}

/// What is only true once the agent was shown it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub agent: AgentName,
    pub at: Timestamp,
    pub surfaced: Vec<Number>,
    pub told: Vec<Told>,
}

impl Shown {
    pub fn is_empty(&self) -> bool {
        self.surfaced.is_empty() && self.told.is_empty()
    }

    /// Commits it, for whoever may speak for the agent.
    pub fn commit(&self, ctx: &Ctx<'_>) -> Result<()> {
        let actor = actor::acting(ctx, &*ctx.store.read()?)?;
        let party = Party::Agent(self.agent.clone());
        if actor.party() != party {
            return Ok(());
        }
        let (surfaced, told) = (self.surfaced.clone(), self.told.clone());
        Afterwards { party, at: self.at, surfaced, read: Vec::new(), told }.commit(ctx)
    }
}

pub fn news(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent) -> Result<News> {
    let me = Party::Agent(agent.name.clone());
    let query = InboxQuery { never_surfaced: true, ..InboxQuery::unread(&me, SHOWN + 1) };
    let messages = facts.inbox(&query)?;
    let viewer = Viewer::Agent(me.clone());
    let (mut mail, mut left) = (Vec::new(), MAIL);
    for message in messages.iter().take(SHOWN) {
        let head = FRAME + length(message.subject.as_deref());
        let Some(rest) = left.checked_sub(head) else { break };
        let whole = facts.message(message.id)?;
        let whole = whole.filter(|whole| length(whole.body.as_deref()) <= BODY.min(rest));
        left = rest - whole.as_ref().map_or(0, |whole| length(whole.body.as_deref()));
        mail.push(MessageShape::of(whole.as_ref().unwrap_or(message), &viewer, whole.is_some()));
    }
    let (contested, told) = contests(ctx, facts, agent)?;
    let surfaced = mail.iter().map(|message| message.id).collect();
    let shown = Shown { agent: agent.name.clone(), at: ctx.now, surfaced, told };
    Ok(News { more: mail.len() < messages.len(), mail, contested, shown })
}

/// How long a text is where it is shown: what cannot be seen is written out.
fn length(text: Option<&str>) -> usize {
    text.map_or(0, |text| escape(text).len())
}

/// As many contests as fit; the others are told next time.
fn contests(ctx: &Ctx<'_>, facts: &dyn Facts, agent: &Agent) -> Result<(Vec<ContestedShape>, Vec<Told>)> {
    let news = contested::news(ctx, facts, agent, ctx.now)?;
    let mut left = CONTESTS;
    let fits = |pair: &&(ContestedShape, Told)| {
        let texts = [Some(pair.0.pattern.as_str()), Some(&pair.0.overlaps), pair.0.example.as_deref()];
        let size = texts.into_iter().map(length).sum::<usize>() + 150;
        let fits = left.checked_sub(size).is_some();
        left = left.saturating_sub(size);
        fits
    };
    let pairs: Vec<(ContestedShape, Told)> = news.contested.into_iter().zip(news.told).collect();
    // One that is too long for everybody is told all the same.
    let count = pairs.iter().take_while(fits).count().max(1);
    Ok(pairs.into_iter().take(count).unzip())
}

/// The acks that the agent owes for mail that it was shown.
pub fn owed(facts: &dyn Facts, me: &Party, most: usize) -> Result<Vec<MessageShape>> {
    let viewer = Viewer::Agent(me.clone());
    let mut owed = facts.acks_owed(me, most)?;
    owed.retain(|message| message.delivery_to(me).is_some_and(|delivery| delivery.surfaced_at.is_some()));
    Ok(owed.iter().map(|message| MessageShape::of(message, &viewer, false)).collect())
}
