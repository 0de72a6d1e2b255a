//! What was found, for people and for programs.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use serde::Serialize;
use serde_json::{Value, json};

use super::registered::Registration;
use super::version::Honoured;
use super::{Checkup, Problem, Severity};
use crate::app::Said;
use crate::environment;
use crate::init::Place;
use crate::render;

/// The answer, and the exit status of the worst error.
pub fn said(place: &Place, all: &[Checkup], is_known: bool, is_cut: bool) -> (Said, u8) {
    let problems = || all.iter().flat_map(|checkup| &checkup.problems);
    let errors = problems().filter(|problem| problem.severity == Severity::Error);
    let status = errors.map(|problem| problem.code.kind().exit_status()).max().unwrap_or(0);
    let notes = notes(place, all, is_known, is_cut);
    let worst = problems().map(|problem| problem.severity).max().unwrap_or(Severity::Ok);
    let result = json!({
        "project": place.project,
        "root": place.root.to_string_lossy(),
        "worst": worst,
        "agents": all,
        "notes": notes,
    });
    (Said { result, text: text(all, &notes), signals: Vec::new(), next: Vec::new() }, status)
}

/// What is true of all agents alike.
fn notes(place: &Place, all: &[Checkup], is_known: bool, is_cut: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let some = all.iter().any(|checkup| checkup.registered != Registration::NotSetUp);
    if some && !is_known && environment::url().is_none() {
        notes.push(format!(
            "relay does not know {} on this machine yet, so hooks keep silent there: `relay init` makes it known",
            place.project
        ));
    }
    if some && environment::url().is_some() {
        notes.push(
            "RELAY_URL names a server; these events stayed on this machine, and `relay doctor` tells whether it answers"
                .to_owned(),
        );
    }
    if is_cut {
        notes.push("The time was over: what was not tried by then is not told.".to_owned());
    }
    notes
}

fn text(all: &[Checkup], notes: &[String]) -> String {
    let (set_up, absent): (Vec<&Checkup>, Vec<&Checkup>) =
        all.iter().partition(|checkup| checkup.registered != Registration::NotSetUp);
    let mut text = String::new();
    if !set_up.is_empty() {
        let rows = set_up.iter().map(|checkup| row(checkup)).collect();
        text.push_str(&render::table(&["agent", "version", "registered", "trusted", "fired", "honoured"], rows));
    }
    for checkup in set_up {
        let _ = writeln!(text, "\n{}", checkup.program.bold());
        checkup.problems.iter().for_each(|problem| text.push_str(&of_problem(problem)));
        let _ = writeln!(text, "  when idle: {}", checkup.wakes);
    }
    if !absent.is_empty() {
        let titles: Vec<&str> = absent.iter().map(|checkup| checkup.program).collect();
        let words: Vec<&str> = absent.iter().map(|checkup| checkup.name.word()).collect();
        let gap = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{gap}Not set up: {}: `relay init --only {}`", titles.join(", "), words.join(","));
    }
    for note in notes {
        let _ = writeln!(text, "{}", escape_line(note));
    }
    text
}

fn row(checkup: &Checkup) -> Vec<String> {
    let honoured = match (checkup.honoured, checkup.seen_with) {
        (Honoured::Unproven, _) | (_, None) => "unproven: from its documentation".to_owned(),
        (_, Some(seen)) => format!("seen with {seen}"),
    };
    vec![
        checkup.program.to_owned(),
        checkup.version.clone().map_or("-".to_owned(), |version| escape_line(&version)),
        word(&checkup.registered),
        word(&checkup.trusted),
        word(&checkup.fired),
        honoured,
    ]
}

/// The same word as for programs.
fn word(state: &impl Serialize) -> String {
    let word = serde_json::to_value(state).unwrap_or(Value::Null);
    word.as_str().unwrap_or("-").replace('_', " ")
}

fn of_problem(problem: &Problem) -> String {
    let mark = match problem.severity {
        Severity::Ok | Severity::Note => "note".dimmed().to_string(),
        Severity::Warning => "warning".yellow().to_string(),
        Severity::Error => "error".red().bold().to_string(),
    };
    let mut text = format!("  {mark}: {}\n", escape_line(&problem.text));
    if let Some(next) = &problem.next {
        let _ = writeln!(text, "    next: {}", escape_line(next).cyan());
    }
    text
}
