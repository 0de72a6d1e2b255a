//! Where the project stands: for a person everything at once, for a model what it asked for and no more.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::verbs::look::Status;

use super::{Page, check, count, history, mail, now, speech};

pub fn status(status: &Status, page: &Page<'_>) -> String {
    if let Some(now) = &status.now {
        return now::page(status, now, page);
    }
    let mut text = format!("{} at event #{}\n", status.project.bold(), status.tip);
    text.push_str(&history::agents(&status.agents, page));
    let _ =
        writeln!(text, "{}, {}.", count(status.live_claims, "live claim"), count(status.open_threads, "open thread"));
    if status.archive.behind > 0 {
        let _ = writeln!(text, "The archive is at #{}.", status.archive.number);
    }
    if status.contacts_waiting > 0 {
        let _ = writeln!(text, "{} for contact not answered yet.", count(status.contacts_waiting, "request"));
    }
    if status.debt > 0 {
        let line = format!("{} of coordination debt: `relay look debt`.", count(status.debt, "item"));
        let _ = writeln!(text, "{}", speech::sentence(&line, page.speech));
    }
    if let Some(line) = status.work.as_ref().and_then(check::counted) {
        let _ = writeln!(text, "{}", speech::sentence(&line, page.speech));
    }
    for question in &status.questions {
        let said = if question.text.is_empty() { &question.case } else { &question.text };
        let _ = writeln!(text, "{} {} ({})", "for the human".yellow(), escape_line(said), escape_line(&question.path));
    }
    if let Some(unread) = status.unread {
        let _ = writeln!(text, "You have {}.", count(unread, "unread message"));
    }
    for pair in &status.contested {
        let example = pair.example.as_deref().map(escape_line).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {} and {} ({}) share {example}",
            "contested".yellow(),
            escape_line(&pair.pattern),
            escape_line(&pair.overlaps),
            pair.holder
        );
    }
    if !status.for_the_human.is_empty() {
        let _ = writeln!(text, "{}", "For the human:".bold());
        status.for_the_human.iter().for_each(|message| text.push_str(&mail::message(message, page)));
    }
    text
}
