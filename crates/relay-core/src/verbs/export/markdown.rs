//! The document: threads with their messages in order, who got and acknowledged them, and what was claimed for them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Exported, Format, Progress, Sink, each_step};
use crate::domain::delivery::{Line, State};
use crate::domain::event::Number;
use crate::domain::holding::{End, Holding, Holdings};
use crate::domain::message::Importance;
use crate::domain::name::ThreadId;
use crate::domain::plain::{escape, markdown};
use crate::store::{EventQuery, Result};
use crate::verbs::look::Looking;
use crate::verbs::look::filter::CLAIMS;
use crate::wire::v1::{MessageShape, RecipientShape};

/// Messages that are in memory at once.
const PAGE: usize = 100;
/// More threads than anybody has.
const ALL: usize = u32::MAX as usize;

/// What was claimed for a thread, by its id in small letters; for none under no id.
type Claims = BTreeMap<Option<String>, Vec<Holding>>;

pub(super) fn write(
    looking: &Looking<'_>,
    thread: Option<&ThreadId>,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<Exported> {
    let number = looking.facts.tip()?.number;
    let mut claims = claims(looking, number, thread, &mut |_, _| {})?;
    let mut document = Document { looking, sink, level: if thread.is_some() { 1 } else { 2 }, threads: 0, messages: 0 };
    match thread {
        Some(thread) => document.thread(thread, &mut claims)?,
        None => document.project(number, &mut claims, progress)?,
    }
    let Document { threads, messages, .. } = document;
    let counts = (Some(threads), Some(messages));
    Ok(Exported { format: Format::Markdown, number, events: None, threads: counts.0, messages: counts.1 })
}

/// Everything that was ever claimed for the wanted thread, or for any.
fn claims(
    looking: &Looking<'_>,
    tip: Number,
    thread: Option<&ThreadId>,
    progress: &mut Progress<'_>,
) -> Result<Claims> {
    let mut following = Holdings::default();
    let mut found = Claims::new();
    let mut keep = |held: Holding| {
        let reason = held.reason.as_ref();
        if thread.is_none_or(|wanted| reason.is_some_and(|reason| reason.same_as(wanted))) {
            found.entry(reason.map(|reason| reason.as_str().to_ascii_lowercase())).or_default().push(held);
        }
    };
    each_step(tip, progress, |after, up_to| {
        for event in looking.facts.events(&EventQuery { kinds: &CLAIMS, ..EventQuery::between(after, up_to) })? {
            following.follow(&event, |_| true).into_iter().for_each(&mut keep);
        }
        Ok(())
    })?;
    following.finish().for_each(keep);
    found.values_mut().for_each(|held| held.sort_by_key(|held| (held.id, held.generation)));
    Ok(found)
}

struct Document<'a, 'b> {
    looking: &'a Looking<'a>,
    sink: &'a mut Sink<'b>,
    /// Of a thread's heading.
    level: usize,
    threads: u64,
    messages: u64,
}

impl Document<'_, '_> {
    fn project(&mut self, tip: Number, claims: &mut Claims, progress: &mut Progress<'_>) -> Result<()> {
        let ctx = self.looking.ctx;
        let key = &ctx.project;
        let head = format!("# {}\n\n{}, up to #{tip}, {}\n", markdown(key.basename()), markdown(key.as_str()), ctx.now);
        (self.sink)(&head)?;
        let mut threads = self.looking.facts.threads(ALL)?;
        threads.sort_by_key(|thread| (thread.opened_at, thread.first_message));
        let all = threads.len() as Number;
        for (done, thread) in threads.iter().enumerate() {
            (self.sink)("\n")?;
            self.thread(&thread.id, claims)?;
            progress(done as Number + 1, all);
        }
        match claims.remove(&None) {
            Some(held) => (self.sink)(&format!("\n## Claims without a thread\n\n{}", list(&held))),
            None => Ok(()),
        }
    }

    fn thread(&mut self, id: &ThreadId, claims: &mut Claims) -> Result<()> {
        let Some(view) = self.looking.thread_view(id, 0)? else { return Ok(()) };
        let subject = view.thread.subject.as_deref().map(|subject| format!(": {}", markdown(subject)));
        let mut text =
            format!("{} {}{}\n\n", "#".repeat(self.level), markdown(&view.thread.id), subject.unwrap_or_default());
        text.push_str(if view.thread.done { "Done." } else { "Open." });
        if !view.participants.is_empty() {
            let _ = write!(text, " Participants: {}.", markdown(&view.participants.join(", ")));
        }
        text.push('\n');
        (self.sink)(&text)?;
        self.threads += 1;
        let mut after = 0;
        loop {
            let page = self.looking.facts.thread_messages_after(id, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.id;
            for message in page.iter().filter(|message| self.looking.viewer.sees(message)) {
                let shown = self.message(&self.looking.shape(message, true));
                (self.sink)(&shown)?;
                self.messages += 1;
            }
        }
        match claims.remove(&Some(id.as_str().to_ascii_lowercase())) {
            Some(held) => (self.sink)(&format!("\n{} Claims for it\n\n{}", "#".repeat(self.level + 1), list(&held))),
            None => Ok(()),
        }
    }

    fn message(&self, message: &MessageShape) -> String {
        let subject = message.subject.as_deref().map_or_else(|| "(erased)".to_owned(), markdown);
        let mut text = format!("\n{} #{} {subject}\n\n", "#".repeat(self.level + 1), message.id);
        let _ = write!(text, "{}, {}", markdown(&message.from), message.sent_at);
        if message.importance != Importance::Normal {
            let _ = write!(text, ", {}", message.importance.as_str());
        }
        if let Some(parent) = message.reply_to {
            let _ = write!(text, ", in reply to #{parent}");
        }
        text.push_str("\n\n");
        match &message.body {
            Some(body) => escape(body).split('\n').for_each(|line| {
                let _ = writeln!(text, "{}", format!("> {line}").trim_end());
            }),
            None => text.push_str("(erased)\n"),
        }
        text.push('\n');
        for recipient in &message.recipients {
            let _ = writeln!(text, "- {}", receipt(recipient, message.ack_required));
        }
        text
    }
}

/// Who got it, and what became of it.
fn receipt(recipient: &RecipientShape, ack_required: bool) -> String {
    let line = match recipient.kind {
        Line::To => String::new(),
        other => format!(" ({})", other.as_str()),
    };
    let at = |word: &str, time: Option<crate::domain::time::Timestamp>| {
        time.map_or_else(|| word.to_owned(), |time| format!("{word} {time}"))
    };
    let state = match recipient.state {
        State::Held => "waits for consent".to_owned(),
        State::Lapsed => "consent never came".to_owned(),
        State::Stored => "not seen yet".to_owned(),
        State::Surfaced => "was shown it".to_owned(),
        State::Read => at("read", recipient.read_at),
        State::Acked => at("acknowledged", recipient.acked_at),
    };
    let owes = ack_required && matches!(recipient.state, State::Stored | State::Surfaced | State::Read);
    let owed = if owes { ", has yet to acknowledge" } else { "" };
    format!("{}{line}: {state}{owed}", markdown(&recipient.name))
}

fn list(held: &[Holding]) -> String {
    let row = |held: &Holding| {
        let mode = if held.exclusive { "" } else { ", shared" };
        let end = match held.end {
            End::Expiry => "expiry",
            End::Release => "release",
            End::Takeover => "takeover",
        };
        let (pattern, holder) = (markdown(&held.pattern), markdown(held.holder.as_str()));
        format!("- #{} {pattern}{mode}: {holder}, {} until {end} {}\n", held.id, held.from, held.until)
    };
    held.iter().map(row).collect()
}
