//! Where an agent stands: its start, its thread, its claims and contacts.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::contact::LinkState;
use relay_core::domain::plain::escape_line;
use relay_core::verbs::{link, policy, prepare, release, reserve, start};
use relay_core::wire::v1::{ClaimShape, GrantedShape, LinkShape, ThreadShape};

use super::{Page, conflicts, count, mail, relative, table};

pub fn start(outcome: &start::Outcome, page: &Page<'_>) -> String {
    let came = if outcome.new { "registered" } else { "resumed" };
    let mut text = format!("You are {} in {} ({came}).\n", outcome.agent.name.bold(), outcome.project.key);
    let inbox = &outcome.inbox;
    let overdue = if inbox.overdue > 0 { format!(", {} overdue", count(inbox.overdue, "ack")) } else { String::new() };
    let _ = writeln!(text, "Inbox: {} unread{overdue}.", inbox.unread);
    for message in &inbox.newest {
        text.push_str(&mail::message(message, page));
    }
    for link in &outcome.contacts_waiting {
        let _ = writeln!(text, "{} asks for contact{}", link.from.bold(), why(link));
    }
    granted(&mut text, &outcome.granted, page);
    text.push_str(&conflicts(&outcome.conflicts, outcome.conflicts_total, page.now));
    if outcome.granted.is_empty() && !outcome.claims.is_empty() {
        let _ = writeln!(text, "You hold {}:", count(outcome.claims.len(), "claim"));
        text.push_str(&claims(&outcome.claims, page));
    }
    mail::contested(&mut text, &outcome.contested);
    if outcome.debt.items > 0 {
        let _ = writeln!(text, "You owe {} of coordination debt.", count(outcome.debt.items, "item"));
    }
    text
}

pub fn prepare(outcome: &prepare::Outcome, page: &Page<'_>) -> String {
    let mut text = format!("{} is in ", outcome.agent.name.bold());
    text.push_str(&thread_line(&outcome.thread, outcome.new));
    let others: Vec<String> =
        outcome.participants.iter().filter(|name| **name != outcome.agent.name).cloned().collect();
    thread_body(&mut text, &others, &outcome.acks_owed, &outcome.reservations, page);
    granted(&mut text, &outcome.granted, page);
    text.push_str(&conflicts(&outcome.conflicts, outcome.conflicts_total, page.now));
    for message in &outcome.messages {
        text.push_str(&mail::message(message, page));
    }
    text
}

pub fn thread_line(thread: &ThreadShape, new: bool) -> String {
    let subject = thread.subject.as_deref().map(|subject| format!(": {}", escape_line(subject))).unwrap_or_default();
    let state = match (new, thread.done) {
        (true, _) => " (new)",
        (_, true) => " (done)",
        _ => "",
    };
    format!("{}{subject}{state}\n", thread.id.bold())
}

pub fn thread_body(
    text: &mut String,
    participants: &[String],
    acks_owed: &[prepare::OwedAck],
    reservations: &[ClaimShape],
    page: &Page<'_>,
) {
    if !participants.is_empty() {
        let _ = writeln!(text, "With {}.", participants.join(", "));
    }
    for ack in acks_owed {
        let late = if ack.overdue { ", overdue" } else { "" };
        let _ = writeln!(text, "{} owes {} an ack for #{}{late}", ack.by, ack.to, ack.message);
    }
    if !reservations.is_empty() {
        text.push_str(&claims(reservations, page));
    }
}

pub fn reserve(outcome: &reserve::Outcome, page: &Page<'_>) -> String {
    let mut text = String::new();
    granted(&mut text, &outcome.granted, page);
    text.push_str(&conflicts(&outcome.conflicts, outcome.conflicts_total, page.now));
    text
}

fn granted(text: &mut String, granted: &[GrantedShape], page: &Page<'_>) {
    for claim in granted {
        let how = if claim.renewed { "renewed" } else { "granted" };
        let mode = if claim.exclusive { "" } else { ", shared" };
        let _ = writeln!(
            text,
            "{} {} (#{}{mode}, ends {})",
            how.green(),
            escape_line(&claim.pattern).bold(),
            claim.id,
            relative(claim.expires_at, page.now)
        );
    }
}

pub fn claims(claims: &[ClaimShape], page: &Page<'_>) -> String {
    let row = |claim: &ClaimShape| {
        vec![
            format!("#{}", claim.id),
            escape_line(&claim.pattern),
            claim.holder.clone(),
            if claim.exclusive { "exclusive".to_owned() } else { "shared".to_owned() },
            relative(claim.expires_at, page.now),
            claim.reason.clone().unwrap_or_default(),
        ]
    };
    table(&["id", "pattern", "holder", "mode", "ends", "for"], claims.iter().map(row).collect())
}

pub fn release(outcome: &release::Outcome, page: &Page<'_>) -> String {
    let mut text = String::new();
    for claim in &outcome.released {
        let _ = writeln!(text, "{} {} (#{})", "released".green(), escape_line(&claim.pattern).bold(), claim.id);
    }
    for claim in &outcome.kept {
        let how = if claim.renewed { "renewed" } else { "kept" };
        let _ = writeln!(
            text,
            "{} {} (#{}, ends {})",
            how.green(),
            escape_line(&claim.pattern).bold(),
            claim.id,
            relative(claim.expires_at, page.now)
        );
    }
    for claim in &outcome.taken {
        let _ = writeln!(
            text,
            "{} {} (#{}, generation {})",
            "taken over".green(),
            escape_line(&claim.pattern).bold(),
            claim.id,
            claim.generation
        );
    }
    if let Some(thread) = &outcome.thread_done {
        let _ = writeln!(text, "{thread} {}.", if outcome.was_done { "was done already" } else { "is done" });
    }
    if text.is_empty() {
        text.push_str("You held nothing.\n");
    }
    text
}

pub fn link(outcome: &link::Outcome, page: &Page<'_>) -> String {
    if let Some(links) = &outcome.links {
        return self::links(links, page);
    }
    let Some(link) = &outcome.link else { return String::new() };
    match link.state {
        LinkState::Accepted if link.by_policy => {
            format!("{} and {} are linked (#{}): the policy of {} consents.\n", link.from, link.to, link.id, link.to)
        }
        LinkState::Accepted => format!("{} and {} are linked (#{}).\n", link.from, link.to, link.id),
        LinkState::Requested => format!("{} was asked for contact (#{}) and has to answer.\n", link.to, link.id),
        LinkState::Blocked => format!("Contact is blocked by {} (#{}).\n", link.blocked_by.join(" and "), link.id),
        LinkState::Revoked => format!("The link between {} and {} is revoked (#{}).\n", link.from, link.to, link.id),
        LinkState::Lapsed => format!("The link between {} and {} has lapsed (#{}).\n", link.from, link.to, link.id),
    }
}

pub fn links(links: &[LinkShape], page: &Page<'_>) -> String {
    if links.is_empty() {
        return "No contacts yet.\n".to_owned();
    }
    let state = |link: &LinkShape| {
        serde_json::to_value(link.state).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
    };
    let row = |link: &LinkShape| {
        let ends = relative(link.expires_at, page.now);
        vec![format!("#{}", link.id), link.from.clone(), link.to.clone(), state(link), ends]
    };
    table(&["id", "asker", "asked", "state", "ends"], links.iter().map(row).collect())
}

fn why(link: &LinkShape) -> String {
    link.why.as_deref().map(|why| format!(": {}", escape_line(why))).unwrap_or_default()
}

pub fn policy(outcome: &policy::Outcome) -> String {
    let policy = outcome.policy;
    format!("{} takes mail from {} (policy {}).\n", outcome.agent, policy.whose(), policy.as_str())
}
