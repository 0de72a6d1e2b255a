//! Mail: sent, polled, acknowledged.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::delivery::State;
use relay_core::domain::message::Importance;
use relay_core::domain::plain::{escape, escape_line};
use relay_core::verbs::{ack, poll, redact, send};
use relay_core::wire::v1::{ContestedShape, MessageShape};

use super::{Page, count, relative};

pub fn send(outcome: &send::Outcome) -> String {
    let message = &outcome.message;
    let reached: Vec<&str> =
        message.recipients.iter().filter(|to| to.state != State::Held).map(|to| to.name.as_str()).collect();
    let held: Vec<&str> =
        message.recipients.iter().filter(|to| to.state == State::Held).map(|to| to.name.as_str()).collect();
    let mut text = format!("Sent {} in {}", format!("#{}", message.id).bold(), message.thread.bold());
    if !reached.is_empty() {
        let _ = write!(text, " to {}", reached.join(", "));
    }
    if !held.is_empty() {
        let _ = write!(text, "; held until {} consents", held.join(", "));
    }
    text.push_str(".\n");
    for left in &outcome.left_out {
        let _ = writeln!(text, "Left out: {} ({})", left.name, left.reason);
    }
    text
}

pub fn poll(outcome: &poll::Outcome, page: &Page<'_>) -> String {
    let mut text = String::new();
    if outcome.messages.is_empty() && outcome.contested.is_empty() {
        text.push_str("Nothing new.\n");
    }
    for message in &outcome.messages {
        text.push_str(&self::message(message, page));
    }
    contested(&mut text, &outcome.contested);
    if outcome.unread > outcome.messages.len() {
        let _ = writeln!(text, "{} unread in all.", count(outcome.unread, "message"));
    }
    text
}

pub fn contested(text: &mut String, contested: &[ContestedShape]) {
    for pair in contested {
        let (mine, theirs) = (escape_line(&pair.pattern), escape_line(&pair.overlaps));
        if pair.ended {
            let _ = writeln!(
                text,
                "{} {mine} (#{}): no longer contested by {theirs} of {} (#{})",
                "settled".green(),
                pair.mine,
                pair.holder.bold(),
                pair.id
            );
        } else {
            let example = pair
                .example
                .as_deref()
                .map(|example| format!(": both match {}", escape_line(example)))
                .unwrap_or_default();
            let _ = writeln!(
                text,
                "{} {mine} (#{}) overlaps {theirs} of {} (#{}){example}",
                "contested".yellow(),
                pair.mine,
                pair.holder.bold(),
                pair.id
            );
        }
    }
}

/// One message, its body between two lines that no body can forge.
pub fn message(message: &MessageShape, page: &Page<'_>) -> String {
    let subject = message.subject.as_deref().map_or_else(|| "(redacted)".to_owned(), escape_line);
    let mut marks = Vec::new();
    if message.from == "human" {
        marks.push("from the human".to_owned());
    }
    match message.importance {
        Importance::Normal => {}
        other => marks.push(other.as_str().to_owned()),
    }
    if let Some(due) = message.ack_due {
        marks.push(format!("ack due {}", relative(due, page.now)));
    }
    if message.acked_at.is_some() {
        marks.push("acked".to_owned());
    } else if message.read_at.is_some() {
        marks.push("read".to_owned());
    }
    let marks = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
    let mut text = format!(
        "{} {} in {}, {}: {}{}\n",
        format!("#{}", message.id).bold(),
        message.from.green(),
        message.thread,
        relative(message.sent_at, page.now),
        subject.bold(),
        marks.yellow()
    );
    if let Some(redacted) = &message.redacted {
        let why = redacted.why.as_ref().map(|why| format!(": {}", escape_line(why))).unwrap_or_default();
        let _ = writeln!(text, "  erased by {}, {}{why}", redacted.by, relative(redacted.at, page.now));
    }
    if let Some(body) = &message.body {
        let _ = writeln!(text, "  ┌ {}", format!("{} {}", page.boundary, origin(&message.from)).dimmed());
        for line in escape(body).lines() {
            let _ = writeln!(text, "  │ {line}");
        }
        let _ = writeln!(text, "  └ {}", page.boundary.dimmed());
    }
    text
}

/// Where a text comes from, and what lets it in: whoever reads it knows how far to believe it.
fn origin(from: &str) -> String {
    match from.split_once('@') {
        Some((_, project)) => format!("by an agent of {}, over an accepted link", escape_line(project)),
        None if from == "human" => "by the human in charge".to_owned(),
        None => "by an agent of this project, as the reader's policy allows".to_owned(),
    }
}

pub fn redact(outcome: &redact::Outcome) -> String {
    let mut text =
        format!("The texts of #{} are erased; #{} by {} says so.\n", outcome.message, outcome.redaction, outcome.by);
    if !outcome.copies.is_empty() {
        let numbers: Vec<String> = outcome.copies.iter().map(|number| format!("#{number}")).collect();
        let has = if numbers.len() == 1 { "has" } else { "have" };
        let _ = writeln!(text, "{} had taken its subject over and {has} none now.", numbers.join(" "));
    }
    if let Some(elsewhere) = &outcome.elsewhere {
        let number = elsewhere.message.map(|number| format!(" is #{number} there, and")).unwrap_or_default();
        let _ = writeln!(text, "Its copy in {}{number} keeps its texts.", elsewhere.project);
    }
    for pending in &outcome.pending {
        let _ = writeln!(
            text,
            "{} {}; `relay drain --wait` tries again.",
            "Not everywhere yet:".yellow(),
            escape_line(pending)
        );
    }
    for kept in &outcome.kept {
        let _ = writeln!(text, "{} an older copy that a rebuild kept: {}", "Still whole:".yellow(), escape_line(kept));
    }
    text.push_str("Clones of the archive, backups, and whoever has read it keep what they have.\n");
    text
}

pub fn ack(outcome: &ack::Outcome, page: &Page<'_>) -> String {
    let mut text = String::new();
    for ack in &outcome.acks {
        let what = if ack.acked_at.is_some() { "acknowledged" } else { "read" };
        let before = match ack.acked_at.or(ack.read_at).filter(|_| !ack.first) {
            Some(at) => format!(" already, {}", relative(at, page.now)),
            None => String::new(),
        };
        let _ = writeln!(text, "{} {what}{before}", format!("#{}", ack.id).bold());
    }
    text
}
