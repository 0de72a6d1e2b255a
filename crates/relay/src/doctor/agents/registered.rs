//! Whether all that `init` would write stands in the files that the program reads, and counts there.

use relay_core::domain::shell;
use relay_core::error::Code;
use serde::Serialize;

use super::{Problem, switches};
use crate::init::{Agent, File, How, Installed, Place};

/// The worse the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    let files = installed.files.iter().map(|file| of_file(file, &init_again(file.of, &installed.place, here)));
    let off = switches::off(installed).map(|problem| (Registration::Off, vec![problem]));
    files.chain(off).fold((Registration::Registered, Vec::new()), |(worst, mut problems), (found, more)| {
        problems.extend(more);
        (worst.max(found), problems)
    })
}

fn of_file(file: &File, again: &str) -> (Registration, Vec<Problem>) {
    let path = &file.path;
    let gaps = match &file.gaps {
        Ok(gaps) => gaps,
        Err(fault) => {
            let next = format!("mend it, then `{again}`");
            return (
                Registration::Incomplete,
                vec![Problem::error(Code::InputInvalid, format!("{path} {fault}"), next)],
            );
        }
    };
    let named = |how: How, is_vital: bool| {
        let gaps = gaps.iter().filter(move |gap| gap.how == how && gap.is_vital == is_vital);
        Some(gaps.map(|gap| gap.what.as_str()).collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty())
    };
    let mut worst = Registration::Registered;
    let mut problems = Vec::new();
    if let Some(names) = named(How::Missing, true) {
        problems.push(Problem::error(Code::InputInvalid, format!("{path} lacks {names}"), again));
        worst = worst.max(Registration::Incomplete);
    }
    if let Some(names) = named(How::Different, true) {
        let text = format!("{path} has something else in {names} than this relay writes there");
        problems.push(Problem::warning(text, again));
        worst = worst.max(Registration::Different);
    }
    for (how, text) in
        [(How::Missing, "lacks"), (How::Different, "has something else than"), (How::LeftOver, "still has")]
    {
        let names = named(how, false);
        problems.extend(names.map(|names| Problem::warning(format!("{path} {text} {names}"), again)));
    }
    (worst, problems)
}

/// The command that sets it up anew.
pub fn init_again(agent: Agent, place: &Place, here: &Place) -> String {
    let elsewhere =
        (place.root != here.root).then(|| format!(" --project {}", shell::quote(&place.root.to_string_lossy())));
    format!("relay init --only {}{}", agent.word(), elsewhere.unwrap_or_default())
}
