//! Answers as sentences for people. What others wrote is shown as text, never as terminal commands.

mod check;
mod history;
mod mail;
pub mod now;
mod speech;
mod state;
mod status;
pub mod tree;

pub use mail::{contested, message};

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::{Rough, Timestamp};
use relay_core::playbook::{Step, Taken};
use relay_core::verbs::{Done, Outcome};
use relay_core::wire::v1::{ConflictShape, Failure, Signal};
use relay_server::Speech;
use serde_json::{Map, Value};

/// How many findings a person is shown.
const FINDINGS_SHOWN: usize = 20;

/// What a rendering needs to know beside the answer.
pub struct Page<'a> {
    pub now: Timestamp,
    /// Encloses bodies, so that a body cannot pretend to be relay's own words.
    pub boundary: &'a str,
    pub speech: Speech,
}

pub fn done(done: &Done, now: Timestamp, speech: Speech, boundary: &str) -> String {
    let page = Page { now, boundary, speech };
    let text = match &done.outcome {
        Outcome::Start(outcome) => state::start(outcome, &page),
        Outcome::Prepare(outcome) => state::prepare(outcome, &page),
        Outcome::Reserve(outcome) => state::reserve(outcome, &page),
        Outcome::Release(outcome) => state::release(outcome, &page),
        Outcome::Link(outcome) => state::link(outcome, &page),
        Outcome::Send(outcome) => mail::send(outcome),
        Outcome::Poll(outcome) => mail::poll(outcome, &page),
        Outcome::Ack(outcome) => mail::ack(outcome, &page),
        Outcome::Look(outcome) => history::look(outcome, &page),
        Outcome::Recover(outcome) => history::recover(outcome, &page),
        Outcome::Policy(outcome) => state::policy(outcome),
        Outcome::Standing(outcome) => {
            let released = if outcome.released.is_empty() {
                String::new()
            } else {
                format!(" It gave back {}.", count(outcome.released.len(), "claim"))
            };
            format!("{} is {} now.{released}\n", outcome.agent, outcome.state.as_str())
        }
        Outcome::Redact(outcome) => mail::redact(outcome),
        // A hook's answer is written by its dialect.
        Outcome::Hook(_) => String::new(),
        Outcome::Check(outcome) => check::check(outcome, &page),
        Outcome::Leave(outcome) if outcome.left => format!("You left {}.\n", outcome.thread),
        Outcome::Leave(outcome) => format!("You were not in {}.\n", outcome.thread),
    };
    closing(text, &done.signals, &done.next, speech)
}

/// What stands under every answer: the signals, and what to do next.
pub fn closing(mut text: String, signals: &[Signal], next: &[String], speech: Speech) -> String {
    self::signals(&mut text, signals, speech);
    if !next.is_empty() {
        let _ = writeln!(text, "{}", "Next:".bold());
        for command in next {
            let _ = writeln!(text, "  {}", speech::proposal(command, speech).cyan());
        }
    }
    text
}

fn signals(text: &mut String, signals: &[Signal], speech: Speech) {
    for signal in signals {
        let told = speech::sentence(&signal.text, speech);
        let _ = writeln!(text, "{} {}: {told}", "!".yellow(), signal.code.as_str().yellow());
    }
}

pub fn failure(failure: &Failure, speech: Speech) -> String {
    let error = &failure.error;
    let mut text = format!("{} {} [{}]\n", "Error:".red().bold(), speech::sentence(&error.message, speech), error.code);
    text.push_str(&findings(&error.details));
    text.push_str(&additions(&error.details));
    text.push_str(&steps(&error.playbook, speech));
    if let Some(key) = error.idempotency_key.as_ref().filter(|_| error.retryable) {
        let _ = writeln!(text, "  {}", format!("(the key of this request: {key})").dimmed());
    }
    text
}

/// What was found beside the first, which the message names.
fn findings(details: &Map<String, Value>) -> String {
    let told = details.get("findings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let total = details.get("findings_total").and_then(Value::as_u64).unwrap_or(told.len() as u64);
    let line = |finding: &Value| {
        let said = |field: &str| escape_line(finding[field].as_str().unwrap_or_default());
        format!("  and {}: {}\n", said("where"), said("what"))
    };
    let mut text: String = told.iter().skip(1).take(FINDINGS_SHOWN - 1).map(line).collect();
    if total > FINDINGS_SHOWN as u64 {
        let _ =
            writeln!(text, "  … and {} more; `relay verify --json` tells more of them", total - FINDINGS_SHOWN as u64);
    }
    text
}

/// What a person is to add to a file, ready to be copied.
fn additions(details: &Map<String, Value>) -> String {
    let mut text = String::new();
    for addition in details.get("add").and_then(Value::as_array).into_iter().flatten() {
        let said = |field: &str| addition[field].as_str().unwrap_or_default();
        let _ = writeln!(text, "  {} {}:", "to".dimmed(), escape_line(said("file")).bold());
        for line in said("text").lines() {
            let _ = writeln!(text, "{}", escape_line(line).cyan());
        }
    }
    text
}

/// The way out, step by step, with what became of each step where somebody took it.
pub fn steps(steps: &[Step], speech: Speech) -> String {
    let mut text = String::new();
    for step in steps {
        let mark = step.state.map(|state| format!("{} ", mark(state))).unwrap_or_default();
        let is_open = matches!(step.state, None | Some(Taken::ToDo | Taken::Waits));
        let attended = if step.unattended || step.run.is_empty() || !is_open { "" } else { "  (for you to decide)" };
        let _ = writeln!(text, "  {}. {mark}{}{attended}", step.step, speech::sentence(&step.why, speech));
        if let Some(run) = speech::step(step, speech) {
            let _ = writeln!(text, "     {}", run.cyan());
        }
        // What a verb did is in the history; what an operator's command did is told here.
        if let (None, Some(Value::Object(result))) = (&step.tool, &step.result) {
            for (name, value) in result.iter().filter(|(_, value)| !value.is_null()) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = writeln!(text, "     {} {}", format!("{name}:").dimmed(), escape_line(&value));
            }
        }
    }
    text
}

fn mark(state: Taken) -> String {
    match state {
        Taken::ToDo => "[to do]".to_owned(),
        Taken::Already => "[holds already]".dimmed().to_string(),
        Taken::Done => "[done]".green().to_string(),
        Taken::Failed => "[failed]".red().to_string(),
        Taken::Waits => "[waits]".yellow().to_string(),
    }
}

pub fn conflicts(conflicts: &[ConflictShape], total: usize, now: Timestamp) -> String {
    let mut text = String::new();
    for conflict in conflicts {
        let mode = if conflict.exclusive { "" } else { ", shared" };
        let silent = if conflict.silent { ", and was not seen for ten minutes" } else { "" };
        let _ = writeln!(
            text,
            "{} {} overlaps {} of {} (#{}{mode}, ends {}){silent}: both match {}",
            "conflict".yellow(),
            escape_line(&conflict.overlaps).bold(),
            escape_line(&conflict.pattern).bold(),
            conflict.holder.bold(),
            conflict.id,
            relative(conflict.expires_at, now),
            escape_line(&conflict.example)
        );
    }
    if total > conflicts.len() {
        let _ = writeln!(text, "… and {} more conflicts", total - conflicts.len());
    }
    text
}

/// How long until or since, rounded to the largest unit that says enough.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let size = match at.since(now).roughly() {
        Rough::Seconds(0) => return "just now".to_owned(),
        Rough::Seconds(seconds) => format!("{seconds}s"),
        Rough::Minutes(minutes) => format!("{minutes}m"),
        Rough::Hours(hours) => format!("{hours}h"),
        Rough::Days(days) => format!("{days}d"),
    };
    if at > now { format!("in {size}") } else { format!("{size} ago") }
}

/// A table without frames, for things that people compare.
pub fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(comfy_table::ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    for row in rows {
        table.add_row(row);
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().trim_start_matches(' ').to_owned()).collect();
    format!("{}\n", lines.join("\n"))
}

pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_in_time_is_rounded_to_what_people_say() {
        let now = Timestamp::from_millis(1_794_700_800_000);
        let check = |millis: i64, expected: &str| {
            assert_eq!(relative(Timestamp::from_millis(now.millis() + millis), now), expected, "{millis}");
        };
        check(0, "just now");
        check(-300, "just now");
        check(-5_000, "5s ago");
        check(-59_900, "1m ago");
        check(3_599_000, "in 1h");
        check(3_600_000, "in 1h");
        check(30 * 60_000, "in 30m");
        check(-47 * 3_600_000, "47h ago");
        check(7 * 86_400_000 - 5, "in 7d");
    }
}
