//! Mail: sent, polled, acknowledged.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::delivery::State;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{HUMAN, RELAY};
use relay_core::domain::plain::{escape, escape_line};
use relay_core::verbs::{ack, poll, redact, send};
use relay_core::wire::v1::{ContestedShape, MessageShape, Reach};

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
    if let Some(excerpt) = &message.excerpt {
        let _ = writeln!(text, "  │ {}", escape_line(excerpt));
    }
    if let Some(body) = &message.body {
        let _ = writeln!(text, "  ┌ {}", format!("{} {}", page.boundary, origin(message)).dimmed());
        for line in escape(body).lines() {
            let _ = writeln!(text, "  │ {line}");
        }
        let _ = writeln!(text, "  └ {}", page.boundary.dimmed());
    }
    text
}

/// Who wrote a text, where that one is, and what lets it in, as far as it is certain: whoever reads it knows how far to
/// believe it.
fn origin(message: &MessageShape) -> String {
    let from = escape_line(&message.from);
    let consent = match message.reach {
        Reach::Own => return format!("by {from}, who reads it"),
        _ if from == HUMAN => return "by the human in charge".to_owned(),
        _ if from == RELAY => return "by relay itself".to_owned(),
        // Nothing else leads from one project to another.
        _ if from.contains('@') => "over an accepted link",
        Reach::Delivered => "as the reader's policy allows",
        Reach::Seen => "not to the reader",
    };
    let place = if from.contains('@') { "another" } else { "this" };
    format!("by {from}, an agent of {place} project, {consent}")
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_origin_of_a_text_claims_what_is_certain() {
        let check = |from: &str, reach: Reach, expected: &str| {
            let shape = json!({"id": 7, "thread": "bd-1", "from": from, "subject": "s", "importance": "normal", "ack_required": false,
                "sent_at": "2026-11-15T00:00:00.000Z", "read_at": null, "acked_at": null, "recipients": []});
            let message: MessageShape = serde_json::from_value(shape).unwrap_or_else(|fault| panic!("{fault}"));
            assert_eq!(origin(&MessageShape { reach, ..message }), expected, "{from} {reach:?}");
        };
        check("BlueLake", Reach::Delivered, "by BlueLake, an agent of this project, as the reader's policy allows");
        check("BlueLake", Reach::Seen, "by BlueLake, an agent of this project, not to the reader");
        check("BlueLake", Reach::Own, "by BlueLake, who reads it");
        let afar = "by BlueLake@/abs/other, an agent of another project, over an accepted link";
        check("BlueLake@/abs/other", Reach::Delivered, afar);
        check("BlueLake@/abs/other", Reach::Seen, afar);
        check("human", Reach::Delivered, "by the human in charge");
        check("relay", Reach::Seen, "by relay itself");
        check(
            "BlueLake@/a\u{202e}b",
            Reach::Seen,
            "by BlueLake@/a\\u{202e}b, an agent of another project, over an accepted link",
        );
    }
}
