//! The document: threads with their messages in order, who got and acknowledged them, and what was claimed for them.

use std::fmt::Write;

use super::{Exported, Format, PAGE, Progress, Reading, Sink};
use crate::domain::delivery::{Line, State};
use crate::domain::event::Number;
use crate::domain::holding::{End, Holding, Holdings};
use crate::domain::message::Importance;
use crate::domain::name::ThreadId;
use crate::domain::plain::{escape, markdown};
use crate::domain::time::Timestamp;
use crate::store::{EventQuery, NEWEST, Result};
use crate::verbs::look::events::{STEP, each_step};
use crate::verbs::look::filter::CLAIMS;
use crate::wire::v1::{MessageShape, RecipientShape, RedactedShape};

/// More threads than anybody has.
const ALL: usize = u32::MAX as usize;

pub(super) fn write(
    reading: &Reading<'_>,
    thread: Option<&ThreadId>,
    sink: &mut Sink<'_>,
    progress: &mut Progress<'_>,
) -> Result<Exported> {
    let level = if thread.is_some() { 1 } else { 2 };
    let mut document = Document { reading, sink, level, threads: 0, messages: 0 };
    match thread {
        Some(thread) => {
            document.thread(thread)?;
            document.claims(Some(thread), &mut |done| progress(done, reading.number))?;
        }
        None => document.project(progress)?,
    }
    let Document { threads, messages, .. } = document;
    let counts = (Some(threads), Some(messages));
    let number = reading.number;
    Ok(Exported { format: Format::Markdown, number, events: None, threads: counts.0, messages: counts.1 })
}

struct Document<'a, 'b> {
    reading: &'a Reading<'a>,
    sink: &'a mut Sink<'b>,
    /// Of a thread's heading.
    level: usize,
    threads: u64,
    messages: u64,
}

impl Document<'_, '_> {
    fn project(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let Reading { ctx, number, .. } = *self.reading;
        let key = &ctx.project;
        let head = format!(
            "# {}\n\n{}, up to #{number}, exported {}\n",
            markdown(key.basename()),
            markdown(key.as_str()),
            ctx.now.to_the_second()
        );
        (self.sink)(&head)?;
        let mut threads = self.reading.look(|looking| looking.facts.threads("", NEWEST, ALL))?;
        threads.retain(|thread| thread.first_message.is_none_or(|first| first <= number));
        threads.sort_by_key(|thread| (thread.opened_at, thread.first_message));
        // First the threads, then the claims.
        let all = threads.len() as Number;
        for (done, thread) in threads.iter().enumerate() {
            (self.sink)("\n")?;
            self.thread(&thread.id)?;
            progress(done as Number + 1, all + number);
        }
        self.claims(None, &mut |done| progress(all + done, all + number))
    }

    fn thread(&mut self, id: &ThreadId) -> Result<()> {
        let Some(view) = self.reading.look(|looking| looking.thread_view(id, 0))? else { return Ok(()) };
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
        while after < self.reading.number {
            let (last, shown) = self.reading.look(|looking| {
                let mut page = looking.facts.thread_messages_after(id, after, PAGE.into())?;
                let last = page.last().map_or(self.reading.number, |message| message.id);
                page.retain(|message| message.id <= self.reading.number && looking.viewer.sees(message));
                let shown = page.iter().map(|message| self.message(&looking.shape(message, true)));
                Ok((last, shown.collect::<Vec<_>>()))
            })?;
            after = last;
            self.messages += shown.len() as u64;
            shown.iter().try_for_each(|message| (self.sink)(message))?;
        }
        Ok(())
    }

    /// What was claimed, for a thread or for anything: in the order in which it ended, then what has not ended yet. No more
    /// is kept than what is open at one time.
    fn claims(&mut self, thread: Option<&ThreadId>, progress: &mut dyn FnMut(Number)) -> Result<()> {
        let is_wanted = |held: &Holding| {
            thread.is_none_or(|wanted| held.reason.as_ref().is_some_and(|reason| reason.same_as(wanted)))
        };
        let now = self.reading.ctx.now;
        let (number, level) = (self.reading.number, self.level);
        let mut heading = Some(match thread {
            Some(_) => format!("\n{} Claims for it\n\n", "#".repeat(level + 1)),
            None => format!("\n{} Claims\n\n", "#".repeat(level)),
        });
        let mut hand_out = |held: Vec<Holding>| -> Result<()> {
            let rows: String =
                held.iter().filter(|held| is_wanted(held)).map(|held| row(held, thread.is_none(), now)).collect();
            if rows.is_empty() {
                return Ok(());
            }
            (self.sink)(&format!("{}{rows}", heading.take().unwrap_or_default()))
        };
        let mut following = Holdings::default();
        each_step(number, STEP, |after, up_to| {
            let query = EventQuery { kinds: &CLAIMS, ..EventQuery::between(after, up_to) };
            let events = self.reading.look(|looking| looking.facts.events(&query))?;
            for event in &events {
                // A renewal may be for another thread than the grant was, so all are followed.
                hand_out(following.follow(event, |_| true))?;
            }
            hand_out(following.sweep())?;
            progress(up_to);
            Ok(())
        })?;
        hand_out(following.finish().collect())
    }

    fn message(&self, message: &MessageShape) -> String {
        let subject = match (&message.subject, &message.redacted) {
            (Some(subject), _) => markdown(subject),
            (None, Some(_)) => "(erased)".to_owned(),
            // It had taken over the subject of a message whose texts were erased.
            (None, None) => "(subject erased with an earlier message's)".to_owned(),
        };
        let mut text = format!("\n{} #{} {subject}\n\n", "#".repeat(self.level + 1), message.id);
        let _ = write!(text, "{}, {}", markdown(&message.from), message.sent_at.to_the_second());
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
            None => text.push_str(&message.redacted.as_deref().map_or_else(|| "(erased)\n".to_owned(), tombstone)),
        }
        text.push('\n');
        for recipient in &message.recipients {
            let _ = writeln!(text, "- {}", receipt(recipient, message.ack_required));
        }
        text
    }
}

/// Who erased the texts, when and why.
fn tombstone(redacted: &RedactedShape) -> String {
    let why = redacted.why.as_deref().map(|why| format!(": {}", markdown(why))).unwrap_or_default();
    format!("(erased by {}, {}, with #{}{why})\n", markdown(&redacted.by), redacted.at.to_the_second(), redacted.number)
}

/// Who got it, and what became of it.
fn receipt(recipient: &RecipientShape, ack_required: bool) -> String {
    let line = match recipient.kind {
        Line::To => String::new(),
        other => format!(" ({})", other.as_str()),
    };
    let at = |word: &str, time: Option<crate::domain::time::Timestamp>| {
        time.map_or_else(|| word.to_owned(), |time| format!("{word} {}", time.to_the_second()))
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

fn row(held: &Holding, names_thread: bool, now: Timestamp) -> String {
    let mode = if held.exclusive { "" } else { ", shared" };
    let reason = held.reason.as_ref().filter(|_| names_thread);
    let reason = reason.map(|thread| format!(" for {}", markdown(thread.as_str()))).unwrap_or_default();
    let end = match held.end {
        End::Expiry if held.until > now => "ends",
        End::Expiry => "expired",
        End::Release => "released",
        End::Takeover => "taken over",
    };
    let (pattern, holder) = (markdown(&held.pattern), markdown(held.holder.as_str()));
    let (from, until) = (held.from.to_the_second(), held.until.to_the_second());
    format!("- #{} {pattern}{reason}{mode}: {holder}, from {from}, {end} {until}\n", held.id)
}
