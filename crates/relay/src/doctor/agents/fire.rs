//! Fires synthetic events through what is installed: the very command line of the file, the way the program runs it, must answer in
//! the program's dialect, and hold back an edit of what somebody else holds.

use std::process::Output;

use relay_core::error::Code;
use relay_core::verbs::hook::Moment;
use serde::Serialize;
use serde_json::Value;

use super::registered::init_again;
use super::stage::{HOLDER, Stage};
use super::{Problem, Time, calls, plugin, synthetic};
use crate::hook::dialect::Dialect;
use crate::hook::event::{Reply, Verdict};
use crate::init::{Agent, Installed, Line, Place};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Firing {
    /// In the dialect of the program, and with what was to be said.
    Answered,
    NoAnswer,
    /// The program that the file names is not there.
    NotFound,
    TimedOut,
    /// With something that the program would not understand.
    Wrong,
    /// More than a call of relay stands there, or a relay that the project brought along: doctor does not run that.
    Foreign,
    /// There is nothing to fire, or the time was over.
    NotFired,
    /// What would run it is not on this machine.
    Unproven,
}

/// One event that was fired.
pub struct Shot {
    pub fired: Firing,
    /// What is wrong, as the end of a sentence.
    pub why: String,
}

pub fn fire(installed: &Installed, here: &Place, stage: &Stage, time: Time<'_>) -> (Firing, Option<Problem>) {
    let shot = match installed.agent {
        Agent::OpenCode => plugin::fire(installed, here, stage, time),
        _ => hooks(installed, here, stage, time),
    };
    let again = init_again(installed.hooks_of, &installed.place, here);
    let next = match shot.fired {
        Firing::Answered => return (shot.fired, None),
        Firing::NotFired | Firing::Unproven => {
            return (shot.fired, Some(shot.why).filter(|why| !why.is_empty()).map(Problem::note));
        }
        Firing::Foreign => return (shot.fired, Some(Problem::warning(shot.why, again))),
        Firing::NotFound => format!("`{again}`, with the relay that is to stay where it is"),
        Firing::NoAnswer | Firing::TimedOut | Firing::Wrong => {
            format!("`{again}`; `relay doctor` tells what hooks left behind")
        }
    };
    let code = if shot.fired == Firing::NotFound { Code::InputInvalid } else { Code::Internal };
    (shot.fired, Some(Problem::error(code, shot.why, next)))
}

/// Each event in turn, up to the first that comes to nothing.
fn hooks(installed: &Installed, here: &Place, stage: &Stage, time: Time<'_>) -> Shot {
    let dialect = installed.agent.dialect();
    let mut last = Shot { fired: Firing::NotFired, why: String::new() };
    for (name, event) in synthetic::events(dialect, &here.root) {
        // What is missing is said elsewhere.
        let Some(line) = installed.line(name) else { return Shot { fired: Firing::NotFired, why: String::new() } };
        if time.is_over() || stage.is_interrupted() {
            return Shot { fired: Firing::NotFired, why: "the time was over before its hooks were fired".to_owned() };
        }
        if let Err(shot) = may_run(&line.program().unwrap_or_default(), calls::is_plain(&line), "hook", here) {
            return shot;
        }
        last = shot(dialect, name, &line, &event, stage, time);
        if last.fired != Firing::Answered {
            return last;
        }
    }
    last
}

/// Whether what a file names is there, and may be run; otherwise what to say of it.
pub fn may_run(program: &str, is_plain: bool, what: &str, here: &Place) -> Result<(), Shot> {
    let foreign = |why: String| Err(Shot { fired: Firing::Foreign, why });
    match calls::place_of(program, here) {
        _ if !is_plain => foreign(format!("its {what} does more than call relay, and was not run")),
        None => Err(Shot { fired: Firing::NotFound, why: format!("{program}, which its {what} calls, is not there") }),
        Some(place) if !calls::is_of_the_machine(&place, here) => {
            foreign(format!("its {what} calls {program}, a program of the project's own, and was not run"))
        }
        Some(_) => Ok(()),
    }
}

fn shot(dialect: Dialect, name: &str, line: &Line, event: &Value, stage: &Stage, time: Time<'_>) -> Shot {
    let program = line.program().unwrap_or_default();
    let output = match stage.fire(line, &format!("{event}\n"), time) {
        Ok(Some(output)) => output,
        Ok(None) => {
            return Shot { fired: Firing::TimedOut, why: format!("its hook gives no answer to {name} in time") };
        }
        Err(fault) => return Shot { fired: Firing::NotFound, why: format!("{program} cannot be run: {fault}") },
    };
    let fired = judge(dialect, event, &output);
    let why = match fired {
        Firing::NotFound => format!("{program}, which its hook calls, is not there"),
        Firing::NoAnswer => {
            let why = stage.trace().map(|why| format!(": {why}")).unwrap_or_default();
            format!("its hook says nothing to {name}{why}")
        }
        _ => format!("its hook answers {name} with what {} does not take: {}", dialect.program(), said(&output)),
    };
    Shot { fired, why }
}

/// The beginning of what it said, and how it ended.
fn said(output: &Output) -> String {
    let text = String::from_utf8_lossy(if output.stdout.is_empty() { &output.stderr } else { &output.stdout });
    let text: String = text.trim().chars().take(200).collect();
    format!("{text:?} and {}", output.status)
}

fn judge(dialect: Dialect, event: &Value, output: &Output) -> Firing {
    let stdout = String::from_utf8_lossy(&output.stdout);
    match output.status.code() {
        // What shells say of a program that they do not find, or may not run.
        Some(126 | 127) => Firing::NotFound,
        Some(0) if is_answer(dialect, event, &stdout) => Firing::Answered,
        Some(0) if stdout.trim() == dialect.silence().stdout => Firing::NoAnswer,
        _ => Firing::Wrong,
    }
}

/// An answer is in the dialect where to say the same would be the same answer: at the start with context, before an edit
/// with a denial that names the holder.
fn is_answer(dialect: Dialect, event: &Value, stdout: &str) -> bool {
    let Some(event) = dialect.read(event) else { return false };
    let Ok(said) = serde_json::from_str::<Value>(stdout) else { return false };
    let texts = texts(&said);
    let is_same =
        |reply: Reply| serde_json::from_str(&dialect.write(&event, &reply).stdout).ok().as_ref() == Some(&said);
    if event.moment == Moment::Start {
        return texts.into_iter().any(|text| is_same(Reply { context: Some(text), ..Reply::default() }));
    }
    let contexts: Vec<Option<String>> = [None].into_iter().chain(texts.iter().cloned().map(Some)).collect();
    let reasons = texts.into_iter().filter(|text| text.contains(HOLDER));
    reasons.into_iter().any(|reason| {
        let denial = |context| Reply { context, verdict: Some(Verdict::Deny(reason.clone())), ..Reply::default() };
        contexts.iter().any(|context| is_same(denial(context.clone())))
    })
}

/// Every text in an answer.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn only_what_a_program_takes_is_an_answer_in_its_dialect() {
        for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::OpenCode) {
            for (name, event) in synthetic::events(dialect, Path::new("/repo")) {
                let read = dialect.read(&event).unwrap_or_else(|| panic!("{name}"));
                let reason = format!("{HOLDER} holds it");
                let reply = match read.moment {
                    Moment::Start => Reply { context: Some(reason.clone()), ..Reply::default() },
                    _ => Reply { verdict: Some(Verdict::Deny(reason.clone())), ..Reply::default() },
                };
                let answer = dialect.write(&read, &reply).stdout;
                assert!(is_answer(dialect, &event, &answer), "{dialect:?}: {answer}");
                let nobody = answer.replace(HOLDER, "nobody");
                assert_eq!(is_answer(dialect, &event, &nobody), read.moment == Moment::Start, "{nobody}");
                for other in [String::new(), "{}".to_owned(), reason, format!("{answer}\nmore"), format!("[{answer}]")]
                {
                    assert!(!is_answer(dialect, &event, &other), "{dialect:?}: {other}");
                }
            }
        }
    }
}
