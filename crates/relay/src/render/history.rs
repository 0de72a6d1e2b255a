//! What `look` and `recover` show.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::holding::End;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Timestamp;
use relay_core::playbook::Who;
use relay_core::verbs::look::{Day, Events, HeldShape, Layout, Line, Outcome, Pair, Search, Traffic};
use relay_core::verbs::recover::{self, State};
use relay_core::wire::v1::{AgentShape, EventShape, MessageShape, ThreadShape};
use serde_json::Value;

use super::{Page, mail, relative, speech, state, steps, table};

pub fn look(outcome: &Outcome, page: &Page<'_>) -> String {
    match outcome {
        Outcome::Message { message } => with_recipients(message, page),
        Outcome::Thread(view) => {
            let mut text = state::thread_line(&view.thread, false);
            state::thread_body(&mut text, &view.participants, &view.acks_owed, &view.reservations, page);
            view.messages.iter().for_each(|message| text.push_str(&mail::message(message, page)));
            text.push_str(&older(view.before));
            text
        }
        Outcome::Threads { threads, .. } if threads.is_empty() => "No threads yet.\n".to_owned(),
        Outcome::Threads { threads, before, .. } => {
            format!("{}{}", self::threads(threads, page), older(*before))
        }
        Outcome::Agents { agents } => self::agents(agents, page),
        Outcome::Reservations { reservations, .. } if reservations.is_empty() => {
            "Nobody holds anything there.\n".to_owned()
        }
        Outcome::Reservations { reservations, contested, total, after } => {
            let ids: Vec<String> = contested.iter().map(|id| format!("#{id}")).collect();
            let contested =
                if ids.is_empty() { String::new() } else { format!("{} {}\n", "contested".yellow(), ids.join(", ")) };
            let rest = after.map(|after| format!("{}\n", format!("({total} in all, more: --after {after})").dimmed()));
            format!("{}{contested}{}", state::claims(reservations, page), rest.unwrap_or_default())
        }
        Outcome::Contacts { links, before } => format!("{}{}", state::links(links, page), older(*before)),
        Outcome::Outbox { outbox } if outbox.is_empty() => "You sent nothing yet.\n".to_owned(),
        Outcome::Outbox { outbox } => outbox.iter().map(|message| with_recipients(message, page)).collect(),
        Outcome::Events(events) => self::events(events, page.now),
        Outcome::Line(line) => self::line(line, page),
        Outcome::Search(search) => self::search(search, page),
        Outcome::Traffic(traffic) => self::traffic(traffic, page),
        Outcome::Day(day) => self::day(day),
        Outcome::Status(status) => super::status::status(status, page),
        Outcome::Debt { debt } if debt.is_empty() => "No debt: nothing stale, contested or overdue.\n".to_owned(),
        Outcome::Debt { debt } => debt
            .iter()
            .map(|item| {
                let pay = speech::proposal(&item.pay, page.speech);
                format!("{} {}\n  {}\n", item.words().yellow(), escape_line(&item.text), pay.cyan())
            })
            .collect(),
        Outcome::Playbook(playbook) => {
            let head = format!(
                "{} (exit status {}): {}\n",
                playbook.code.to_string().bold(),
                playbook.exit_status,
                playbook.symptom
            );
            format!("{head}{}", steps(&playbook.playbook, page.speech))
        }
    }
}

fn threads(threads: &[ThreadShape], page: &Page<'_>) -> String {
    let row = |thread: &ThreadShape| {
        let subject = thread.subject.as_deref().map(escape_line).unwrap_or_default();
        let done = if thread.done { "done" } else { "open" };
        let last = relative(thread.last_at, page.now);
        vec![thread.id.clone(), done.to_owned(), thread.messages.to_string(), last, subject]
    };
    table(&["thread", "state", "messages", "last", "subject"], threads.iter().map(row).collect())
}

fn search(search: &Search, page: &Page<'_>) -> String {
    let mut text = String::new();
    if !search.agents.is_empty() {
        let _ = writeln!(text, "{}", agents(&search.agents, page));
    }
    if !search.threads.is_empty() {
        let _ = writeln!(text, "{}", threads(&search.threads, page));
    }
    if !search.reservations.is_empty() {
        let _ = writeln!(text, "{}", state::claims(&search.reservations, page));
    }
    search.found.iter().for_each(|message| text.push_str(&mail::message(message, page)));
    text.push_str(&older(search.before));
    if text.is_empty() { "Nothing found.\n".to_owned() } else { text.trim_end().to_owned() + "\n" }
}

/// How to see what came before.
fn older(before: Option<u64>) -> String {
    before.map(|before| format!("{}\n", format!("(older: --before {before})").dimmed())).unwrap_or_default()
}

fn traffic(traffic: &Traffic, page: &Page<'_>) -> String {
    if traffic.traffic.is_empty() {
        return "Nobody has written to anybody yet.\n".to_owned();
    }
    let row =
        |pair: &Pair| vec![pair.from.clone(), pair.to.clone(), pair.messages.to_string(), format!("#{}", pair.newest)];
    let rows = table(&["from", "to", "messages", "newest"], traffic.traffic.iter().map(row).collect());
    let since = traffic.since.map(|since| format!("Counted since {}.\n", relative(since, page.now)));
    format!("{rows}{}", since.unwrap_or_default())
}

fn day(day: &Day) -> String {
    let (Some(first), Some(last)) = (day.first, day.last) else {
        return format!("Nothing happened on {}.\n", day.day);
    };
    let hours = day.hours.iter().enumerate().filter(|(_, events)| **events > 0);
    let rows = hours.map(|(hour, events)| vec![format!("{hour:02}:00"), events.to_string()]).collect();
    format!("#{first} to #{last} happened on {}.\n{}", day.day, table(&["hour", "events"], rows))
}

fn with_recipients(message: &MessageShape, page: &Page<'_>) -> String {
    let mut text = mail::message(message, page);
    for recipient in &message.recipients {
        let state = serde_json::to_value(recipient.state)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        let _ = writeln!(text, "  {} {}: {state}", recipient.kind.as_str(), recipient.name);
    }
    text
}

pub fn agents(agents: &[AgentShape], page: &Page<'_>) -> String {
    if agents.is_empty() {
        return "Nobody is registered yet.\n".to_owned();
    }
    let row = |agent: &AgentShape| {
        let task = agent.task.as_deref().map(escape_line).unwrap_or_default();
        vec![
            agent.name.clone(),
            agent.standing().to_owned(),
            agent.seen_at.map(|at| relative(at, page.now)).unwrap_or_default(),
            agent.policy.clone().unwrap_or_default(),
            agent.program.as_deref().map(escape_line).unwrap_or_default(),
            agent.thread.clone().unwrap_or_default(),
            task,
        ]
    };
    table(&["agent", "state", "seen", "policy", "program", "thread", "task"], agents.iter().map(row).collect())
}

/// A part of the history.
fn events(page: &Events, now: Timestamp) -> String {
    if page.events.is_empty() && page.layout != Layout::Line {
        return "Nothing on record.\n".to_owned();
    }
    let width = |of: &dyn Fn(&EventShape) -> String| page.events.iter().map(|event| of(event).chars().count()).max();
    let widths = (width(&|event| event.number.to_string()), width(&|event| escape_line(&event.actor)));
    let widths = (widths.0.unwrap_or_default(), widths.1.unwrap_or_default());
    let entries: Vec<String> = page.events.iter().map(|event| entry(event, page.layout, widths, now)).collect();
    let mut text = entries.join(if page.layout == Layout::Full { "\n" } else { "" });
    text.push_str(&older(page.before));
    text
}

/// One event: who did what and, at length, when and with which words. Lines are aligned to the widest number and name.
fn entry(event: &EventShape, layout: Layout, (numbers, names): (usize, usize), now: Timestamp) -> String {
    let (number, actor, what) = (format!("#{}", event.number), escape_line(&event.actor), escape_line(&event.text));
    let written = |field: &str| event.data.get(field).and_then(Value::as_str).map(escape_line);
    let patterns: Vec<String> = event
        .data
        .get("patterns")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(escape_line)
        .collect();
    let at = event.at.to_the_second();
    if layout == Layout::Full {
        let when = format!("{at} ({})", relative(event.at, now));
        let mut text = format!("{} {} {}\n    {what}\n", number.yellow(), actor.green(), when.dimmed());
        if !patterns.is_empty() {
            let _ = writeln!(text, "    patterns: {}", patterns.join(" "));
        }
        for field in ["subject", "task", "why"] {
            if let Some(written) = written(field) {
                let _ = writeln!(text, "    {field}: {written}");
            }
        }
        return text;
    }
    let words = written("subject").or_else(|| (!patterns.is_empty()).then(|| patterns.join(" ")));
    let words = words.map(|words| format!(": {words}")).unwrap_or_default();
    let (number, actor) = (format!("{number:<width$}", width = numbers + 1), format!("{actor:<names$}"));
    match layout {
        Layout::Short => format!("{} {} {what}{words}\n", number.yellow(), actor.green()),
        _ => format!("{} {} {} {what}{words}\n", number.bold(), at.dimmed(), actor.green()),
    }
}

/// Who held a path when a line of it was changed.
fn line(line: &Line, page: &Page<'_>) -> String {
    let change = &line.change;
    let place = format!("{}:{}", escape_line(&change.path), change.line);
    let moved = (change.committed_line != change.line).then(|| format!(", line {} in HEAD,", change.committed_line));
    let mut text = format!("{place}{} was last changed by {}\n", moved.unwrap_or_default(), change.commit.yellow());
    let _ = writeln!(text, "    {}", escape_line(&change.subject));
    let when = format!("{} ({})", change.at.to_the_second(), relative(change.at, page.now));
    let _ = writeln!(text, "    {}, {}", escape_line(&change.author), when.dimmed());
    if change.edited {
        let _ = writeln!(text, "    It reads otherwise in the working tree; that change is not committed.");
    }
    for held in &line.held {
        let _ = writeln!(text, "{} held it: {}", held.holder.green(), self::held(held));
    }
    if line.held.is_empty() {
        let _ = writeln!(text, "Nobody held it then.");
    }
    if let Some(begins) = line.begins {
        let _ = writeln!(
            text,
            "The history begins later, {}: who worked on it before is not on record.",
            begins.to_the_second()
        );
    }
    if let Some(last) = &line.last {
        let _ = writeln!(text, "The last before was {}: {}", last.holder.green(), self::held(last));
    }
    line.messages.iter().for_each(|message| text.push_str(&mail::message(message, page)));
    text
}

fn held(held: &HeldShape) -> String {
    let mode = if held.exclusive { "" } else { ", shared" };
    let reason = held.reason.as_ref().map(|thread| format!(" for {thread}")).unwrap_or_default();
    let turn = if held.generation > 0 { format!(", taken over {}", times(held.generation)) } else { String::new() };
    let end = match held.end {
        End::Expiry => "expiry",
        End::Release => "release",
        End::Takeover => "takeover",
    };
    let pattern = escape_line(&held.pattern);
    let (from, until) = (held.from.to_the_second(), held.until.to_the_second());
    format!("#{} {pattern}{reason}{mode}, from {from} until its {end} at {until}{turn}", held.id)
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

pub fn recover(outcome: &recover::Outcome, page: &Page<'_>) -> String {
    let code = outcome.code.to_string();
    let mut text = match outcome.state {
        None => format!("The way out of {}:\n", code.bold()),
        Some(State::Recovered) => String::new(),
        Some(State::Escalated) => "The person in charge was asked; run it again when there is an answer.\n".to_owned(),
        Some(State::Waits) => {
            let whom = if outcome.waits_for == Some(Who::You) { "you" } else { "a person" };
            format!("The way out of {} waits for {whom}:\n", code.bold())
        }
    };
    text.push_str(&steps(&outcome.steps, page.speech));
    if let Some(note) = &outcome.note {
        let _ = writeln!(text, "The question lies in {}.", escape_line(note));
    }
    match &outcome.retried {
        Some(retried) => {
            let erased =
                (retried.verb == "redact").then(|| serde_json::from_value(retried.result.clone()).ok()).flatten();
            let told = erased.map(|outcome| mail::redact(&outcome)).unwrap_or_default();
            let _ = write!(text, "Made the failed {} again, and it went through.\n{told}", retried.verb);
        }
        None if outcome.state == Some(State::Recovered) => text.push_str("Every step holds.\n"),
        None => {}
    }
    text
}
