//! What an action did, in a sentence.

use relay_core::domain::agent::Standing;
use relay_core::domain::contact::LinkState;
use relay_core::domain::event::Number;
use relay_core::domain::shell;
use relay_core::verbs::{Done, Outcome, ack, link, release, send, standing};

use super::super::frame::{Flash, Screen};
use super::super::visit::Visit;
use crate::ask::{Answer, Body};

/// How many are named.
const NAMED: usize = 5;

/// What was done, and the signals that came with it; what failed has a page of its own.
pub fn flash<'a>(visit: &Visit, answers: impl IntoIterator<Item = &'a Answer>) -> Flash {
    let done: Vec<&Done> = answers
        .into_iter()
        .filter_map(|answer| match &answer.body {
            Body::Done(done) => Some(&**done),
            Body::Failed(_) => None,
        })
        .collect();
    let texts: Vec<String> = done.iter().map(|done| sentence(visit, &done.outcome)).collect();
    let signals = done.iter().flat_map(|done| &done.signals);
    let mut signals: Vec<String> = signals.map(|signal| format!("{}: {}", signal.code.as_str(), signal.text)).collect();
    signals.dedup();
    let link = done.iter().find_map(|done| shown_at(visit, &done.outcome));
    Flash { text: texts.join(" "), signals, link }
}

/// What was sent stands in its thread.
fn shown_at(visit: &Visit, outcome: &Outcome) -> Option<String> {
    let Outcome::Send(send::Outcome { message, .. }) = outcome else { return None };
    Some(format!("{}#m{}", visit.frame(Screen::Threads).one("threads", &message.thread), message.id))
}

fn sentence(visit: &Visit, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Send(sent) => sent_to(sent),
        Outcome::Ack(acks) => acked(acks),
        Outcome::Link(linked) => answered(visit, linked),
        Outcome::Release(released) => freed(released),
        Outcome::Standing(standing) => stands(standing),
        Outcome::Recover(recover) if recover.retried.is_some() => {
            "The same request was made again, and went through.".to_owned()
        }
        _ => "Done.".to_owned(),
    }
}

fn sent_to(sent: &send::Outcome) -> String {
    let message = &sent.message;
    let names = message.recipients.iter().map(|recipient| recipient.name.clone());
    let mut text = format!("Sent #{} to {} in {}.", message.id, list(names.collect()), message.thread);
    if !sent.left_out.is_empty() {
        let left_out = sent.left_out.iter().map(|left| format!("{} ({})", left.name, left.reason));
        text.push_str(&format!(" It did not reach {}.", list(left_out.collect())));
    }
    text
}

fn acked(acks: &ack::Outcome) -> String {
    let ids = |first: bool| -> Vec<String> {
        acks.acks.iter().filter(|ack| ack.first == first).map(|ack| format!("#{}", ack.id)).collect()
    };
    let what = if acks.acks.iter().all(|ack| ack.acked_at.is_some()) { "Acknowledged" } else { "Marked as read" };
    match (ids(true), ids(false)) {
        (now, before) if before.is_empty() => format!("{what}: {}.", list(now)),
        (now, before) if now.is_empty() => format!("Nothing is new: that was done before for {}.", list(before)),
        (now, before) => format!("{what}: {}. It was done before for {}.", list(now), list(before)),
    }
}

/// The human answers what waits, and takes no answer back: the agents do, with a command.
fn answered(visit: &Visit, linked: &link::Outcome) -> String {
    let Some(link) = &linked.link else { return "Done.".to_owned() };
    let (from, to) = (&link.from, &link.to);
    let place = visit.project.as_ref().map(|place| place.key.as_str()).unwrap_or_default();
    let undone = shell::line(&["relay", "link", "--target", from, "--revoke", "--agent", to, "--project", place]);
    match link.state {
        LinkState::Accepted => format!("Accepted: {from} and {to} may write to each other. This ends it: {undone}"),
        LinkState::Blocked => format!("Blocked: {to} takes no contact from {from}. This lifts it: {undone}"),
        LinkState::Requested => format!("{from} waits for the answer of {to}."),
        LinkState::Revoked | LinkState::Lapsed => format!("{from} and {to} are in contact no longer."),
    }
}

fn freed(released: &release::Outcome) -> String {
    let claims = released.released.iter().map(|claim| format!("#{} {}", claim.id, claim.pattern));
    format!("Released {}; whoever held it is told why.", list(claims.collect()))
}

fn stands(standing: &standing::Outcome) -> String {
    let name = &standing.agent;
    let ids = |ids: &[Number]| list(ids.iter().map(|id| format!("#{id}")).collect());
    match standing.state {
        Standing::Retired if standing.released.is_empty() => format!("{name} has retired."),
        Standing::Retired => format!("{name} has retired, and what it held is free: {}.", ids(&standing.released)),
        Standing::Suspended => format!("{name} is suspended: it can do nothing until you let it act again."),
        _ => format!("{name} may act again."),
    }
}

/// `a, b and c`; of many the first few, and how many more.
fn list(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    if more > 0 {
        names.truncate(NAMED);
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        None => "nobody".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_named_as_the_first_few() {
        let check = |count: usize, expected: &str| {
            let names = (1..=count).map(|number| format!("#{number}")).collect();
            assert_eq!(list(names), expected);
        };
        check(0, "nobody");
        check(1, "#1");
        check(2, "#1 and #2");
        check(3, "#1, #2 and #3");
        check(8, "#1, #2, #3, #4, #5 and 3 more");
    }
}
