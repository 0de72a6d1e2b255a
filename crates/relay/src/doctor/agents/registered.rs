//! Whether all that `init` would write stands in the files that the program reads, and counts there.

use relay_core::domain::shell;
use relay_core::error::Code;
use serde::Serialize;

use super::{Problem, switches};
use crate::init::{Agent, How, Installed, Place};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Registration {
    Registered,
    /// Another relay wrote it, or somebody has edited it: what that comes to is tried out.
    Different,
    /// Something is missing without which relay does not reach the agent.
    Incomplete,
    /// All is there, and the program is told not to run hooks.
    Off,
    NotSetUp,
}

pub fn of(installed: &Installed, here: &Place) -> (Registration, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut worst = Registration::Registered;
    for file in &installed.files {
        let again = init_again(file.of, &installed.place, here);
        let gaps = match &file.gaps {
            Ok(gaps) => gaps,
            Err(fault) => {
                let next = format!("mend it, then `{again}`");
                problems.push(Problem::error(Code::InputInvalid, format!("{} {fault}", file.path), next));
                worst = Registration::Incomplete;
                continue;
            }
        };
        let named = |how: How, is_vital: bool| {
            let gaps = gaps.iter().filter(move |gap| gap.how == how && gap.is_vital == is_vital);
            Some(gaps.map(|gap| gap.what.as_str()).collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
        };
        let path = &file.path;
        if let Some(names) = named(How::Missing, true) {
            problems.push(Problem::error(Code::InputInvalid, format!("{path} lacks {names}"), &again));
            worst = Registration::Incomplete;
        }
        if let Some(names) = named(How::Different, true) {
            let text = format!("{path} has something else in {names} than this relay writes there");
            problems.push(Problem::warning(text, &again));
            worst = if worst == Registration::Incomplete { worst } else { Registration::Different };
        }
        for (how, text) in
            [(How::Missing, "lacks"), (How::Different, "has something else than"), (How::LeftOver, "still has")]
        {
            let names = named(how, false);
            problems.extend(names.map(|names| Problem::warning(format!("{path} {text} {names}"), &again)));
        }
    }
    if let Some(problem) = switches::off(installed) {
        problems.push(problem);
        worst = Registration::Off;
    }
    (worst, problems)
}

/// The command that sets it up anew.
pub fn init_again(agent: Agent, place: &Place, here: &Place) -> String {
    let elsewhere =
        (place.root != here.root).then(|| format!(" --project {}", shell::quote(&place.root.to_string_lossy())));
    format!("relay init --only {}{}", agent.word(), elsewhere.unwrap_or_default())
}
