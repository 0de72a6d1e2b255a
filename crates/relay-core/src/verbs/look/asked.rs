//! What waits for the human: mail that the human has not read, or owes an acknowledgement for.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::Looking;
use crate::domain::ack::Ack;
use crate::domain::event::Number;
use crate::domain::message::Message;
use crate::domain::name::Party;
use crate::domain::view::Viewer;
use crate::store::{InboxQuery, Result};
use crate::wire::v1::MessageShape;

/// So many are weighed against each other, the oldest; what is younger comes up as these are answered.
const WEIGHED: usize = 300;
/// Where there are more, as many of the newest of each agent that has none among those.
const OF_EACH: usize = 2;

/// The most pressing first, and how many there are in all.
pub(super) fn look(looking: &Looking<'_>) -> Result<(Vec<MessageShape>, usize)> {
    let mut asked = looking.facts.inbox(&InboxQuery::unread(&Party::Human, WEIGHED))?;
    let unread = asked.len();
    let known: HashSet<Number> = asked.iter().map(|message| message.id).collect();
    let owed = looking.facts.acks_owed(&Party::Human, WEIGHED)?;
    asked.extend(owed.into_iter().filter(|message| !known.contains(&message.id)));
    if unread >= WEIGHED {
        asked.extend(of_others(looking, &asked)?);
    }
    asked.retain(|message| {
        message.delivery_to(&Party::Human).is_some_and(|copy| looking.viewer.sees_delivery(message, copy))
    });
    let mut total = asked.len();
    if unread >= WEIGHED && looking.viewer == Viewer::Human {
        total = total.max(looking.facts.unread(&Party::Human, looking.ctx.limits.unread)?);
    }
    let asked = ranked(looking, asked);
    Ok((asked.iter().take(looking.limit).map(|message| looking.shape(message, false)).collect(), total))
}

/// What waits of agents none of whose mail is among this.
fn of_others(looking: &Looking<'_>, asked: &[Message]) -> Result<Vec<Message>> {
    let heard: HashSet<&Party> = asked.iter().map(|message| &message.from).collect();
    let mut found = Vec::new();
    for agent in looking.facts.agents()? {
        let sender = Party::Agent(agent.name);
        if heard.contains(&sender) {
            continue;
        }
        for id in looking.facts.newest_from(&sender, &Party::Human, OF_EACH)? {
            let message = looking.facts.envelope(id)?;
            let waits = |message: &Message| {
                let copy = message.delivery_to(&Party::Human);
                copy.is_some_and(|copy| copy.read_at.is_none() || copy.ack(message.ack_within).is_owed())
            };
            found.extend(message.filter(waits));
        }
    }
    Ok(found)
}

/// By how pressing they are, and the first of each sender before the second of any: whoever writes much, or calls everything
/// urgent, hides nobody else.
fn ranked(looking: &Looking<'_>, mut asked: Vec<Message>) -> Vec<Message> {
    asked.sort_by_cached_key(|message| pressing(looking, message));
    let mut turns: HashMap<Party, usize> = HashMap::new();
    let mut in_turn: Vec<(usize, Message)> = Vec::new();
    for message in asked {
        let turn = turns.entry(message.from.clone()).or_default();
        *turn += 1;
        in_turn.push((*turn, message));
    }
    in_turn.sort_by_key(|(turn, _)| *turn);
    in_turn.into_iter().map(|(_, message)| message).collect()
}

fn pressing(looking: &Looking<'_>, message: &Message) -> impl Ord + use<> {
    let due = message.delivery_to(&Party::Human).and_then(|copy| match copy.ack(message.ack_within) {
        Ack::Waiting { due } => Some(due),
        _ => None,
    });
    let is_overdue = due.is_some_and(|due| due < looking.ctx.now);
    (Reverse(is_overdue), Reverse(message.importance), due.is_none(), due, message.id)
}
