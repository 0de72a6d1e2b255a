//! `doctor --agents`: whether relay reaches each coding agent, tried out through the very configuration that is installed.
//!
//! For each agent: does its program read what `init` wrote (`registered.rs`), would it run that (`trust.rs`), does what stands
//! there answer an event in the program's dialect (`fire.rs`), and was the program seen to honour such an answer (`version.rs`).
//! The events are made up, and go to a bus that is thrown away: nothing reaches the user's own.

mod calls;
mod codex;
mod fire;
mod plugin;
mod registered;
mod report;
mod stage;
mod switches;
mod synthetic;
mod trust;
mod version;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Result};
use relay_store::Home;
use serde::Serialize;

use super::Severity;
use crate::app::{App, Said};
use crate::clock::SystemClock;
use crate::init::{self, Agent, Installed};
use crate::progress::Progress;
use fire::Firing;
use registered::Registration;
use stage::Stage;
use trust::Trust;
use version::{Honoured, Versions};

/// All of it takes no longer than this.
const IN_ALL: Span = Span::seconds(10);
/// What one program is waited for.
const FOR_ONE: Span = Span::seconds(3);

/// What was found of one agent. Of one that is not set up there is nothing to say.
#[derive(Debug, Serialize)]
pub struct Checkup {
    name: Agent,
    program: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    registered: Registration,
    trusted: Option<Trust>,
    fired: Option<Firing>,
    honoured: Honoured,
    /// The version of the program that was seen to honour relay's answers.
    seen_with: Option<&'static str>,
    wakes: &'static str,
    problems: Vec<Problem>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    severity: Severity,
    text: String,
    /// A command, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip)]
    code: Code,
}

impl Problem {
    /// What was set up does not work.
    fn error(code: Code, text: impl Into<String>, next: impl Into<String>) -> Self {
        Problem { severity: Severity::Error, text: text.into(), next: Some(next.into()), code }
    }

    /// It works, or waits for the user's word.
    fn warning(text: impl Into<String>, next: impl Into<String>) -> Self {
        Problem { severity: Severity::Warning, text: text.into(), next: Some(next.into()), code: Code::InputInvalid }
    }

    fn note(text: impl Into<String>) -> Self {
        Problem { severity: Severity::Note, text: text.into(), next: None, code: Code::InputInvalid }
    }
}

/// How long things may take.
#[derive(Clone, Copy)]
pub struct Time<'a> {
    clock: &'a SystemClock,
    end: Span,
}

impl<'a> Time<'a> {
    fn of(clock: &'a SystemClock) -> Self {
        Time { clock, end: Span::millis(clock.monotonic().as_millis() + IN_ALL.as_millis()) }
    }

    fn is_over(&self) -> bool {
        self.clock.monotonic() >= self.end
    }

    /// The same for one thing, from now on.
    fn for_one(&self) -> Self {
        let end = self.clock.monotonic().as_millis() + FOR_ONE.as_millis();
        Time { end: Span::millis(end.min(self.end.as_millis())), ..*self }
    }
}

/// The agents that are set up around the caller.
pub fn set_up(app: &App, home: &Home) -> Vec<Agent> {
    let found = init::installed(app, home).map(|(_, found)| found).unwrap_or_default();
    found.iter().map(|installed| installed.agent).collect()
}

pub fn look(app: &App, home: &Home) -> Result<(Said, u8)> {
    let (place, found) = init::installed(app, home)?;
    let time = Time::of(&app.clock);
    let mut progress = Progress::new(app);
    let is_known = matches!(home.known(&place.project), Ok(Some(_)));
    if found.is_empty() {
        let all: Vec<Checkup> = Agent::ALL.into_iter().map(absent).collect();
        return Ok(report::said(&place, &all, is_known, false));
    }
    let stage = Stage::set(&place, time);
    let versions = Versions::ask(found.iter().map(|installed| installed.agent));
    let mut looked = Vec::new();
    for (done, installed) in found.iter().enumerate() {
        progress.at(installed.agent.title(), done as u64, found.len() as u64);
        looked.push(checkup(installed, &place, stage.as_ref(), time));
    }
    progress.at("versions", found.len() as u64, found.len() as u64);
    versions.told(&mut looked, time.for_one());
    drop(progress);
    if stage.as_ref().is_ok_and(Stage::is_interrupted) {
        return Err(Code::Internal.refuse("doctor was interrupted"));
    }
    let all = Agent::ALL.into_iter().map(|agent| {
        let at = looked.iter().position(|checkup| checkup.name == agent);
        at.map_or_else(|| absent(agent), |at| looked.swap_remove(at))
    });
    let all: Vec<Checkup> = all.collect();
    Ok(report::said(&place, &all, is_known, time.is_over()))
}

fn checkup(
    installed: &Installed,
    here: &init::Place,
    stage: std::result::Result<&Stage, &Refusal>,
    time: Time<'_>,
) -> Checkup {
    let (registered, mut problems) = registered::of(installed, here);
    let (trusted, untrusted) = trust::of(installed);
    let (fired, unfired) = match stage {
        Ok(stage) => fire::fire(installed, here, stage, time),
        Err(refusal) => {
            let text = format!("no event was fired: {}", refusal.message);
            (
                Firing::Unproven,
                Some(Problem::warning(text, "see that there is a temporary folder with room in it (TMPDIR)")),
            )
        }
    };
    problems.extend(untrusted.into_iter().chain(unfired));
    Checkup { registered, trusted: Some(trusted), fired: Some(fired), problems, ..absent(installed.agent) }
}

fn absent(agent: Agent) -> Checkup {
    let dialect = agent.dialect();
    Checkup {
        name: agent,
        program: agent.title(),
        version: None,
        registered: Registration::NotSetUp,
        trusted: None,
        fired: None,
        honoured: if dialect.seen().is_some() { Honoured::Seen } else { Honoured::Unproven },
        seen_with: dialect.seen(),
        wakes: dialect.wakes(),
        problems: Vec::new(),
    }
}
