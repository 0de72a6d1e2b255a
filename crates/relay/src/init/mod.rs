//! `init`: puts relay into the coding agents of a project, and takes it out again.
//!
//! An agent is data (`agents/`): files, and what relay wants in each. An edit (`edit/`) is a function from text to text. Here is
//! the story: which agents, which files, and for each file copy, write, read back, take note (`ledger.rs`).

mod agents;
mod detect;
mod diff;
mod edit;
mod file;
mod installed;
mod ledger;
mod place;
mod put;
mod report;
mod take;

use std::collections::{BTreeMap, BTreeSet};

pub use agents::{Agent, plugin_for};
pub use edit::{Handler, How, Line, handlers, read};
pub use installed::{File, Installed, installed};
pub use place::Place;
use relay_core::store::Result;
use relay_store::Home;

use crate::app::{App, Said};
use agents::{Setting, Target};
use ledger::Ledger;
use report::Report;

/// What the caller asked for.
pub struct Wanted {
    pub only: Vec<Agent>,
    pub dry_run: bool,
    pub remove: bool,
}

/// A project that is being worked on.
struct Work {
    place: Place,
    ledger: Ledger,
    dry_run: bool,
}

pub fn run(app: &App, wanted: &Wanted) -> Result<(Said, u8)> {
    app.named()?;
    let (home, _) = app.home()?;
    let place = Place::find(app, &home)?;
    app.mind_the_server(&home);
    let found: BTreeMap<Agent, String> =
        Agent::ALL.into_iter().filter_map(|agent| Some((agent, detect::because(agent, &place)?))).collect();
    let chosen: Vec<Agent> = match wanted.only.as_slice() {
        [] if wanted.remove => Agent::ALL.to_vec(),
        [] => found.keys().copied().collect(),
        only => only.to_vec(),
    };
    if chosen.is_empty() {
        return Ok(report::nobody(&place));
    }
    let mut work = Work::begin(&home, place, wanted)?;
    let report = if wanted.remove { work.take_out(&chosen)? } else { work.set_up(&chosen)? };
    Ok(report.said(&work.place, &found, wanted))
}

impl Work {
    fn begin(home: &Home, place: Place, wanted: &Wanted) -> Result<Self> {
        let folder = home.folder(&place.project);
        let tree = place.main().map(|_| place.root.clone());
        let ledger = if wanted.dry_run {
            Ledger::read(&folder, tree.as_deref())?
        } else {
            if !wanted.remove {
                // Hooks act only in projects that have a store.
                home.open_or_create(&place.project)?;
            }
            Ledger::open(&folder, tree.as_deref())?
        };
        Ok(Work { place, ledger, dry_run: wanted.dry_run })
    }

    fn set_up(&mut self, chosen: &[Agent]) -> Result<Report> {
        let all = self.set_up_already(&[]).union(&chosen.iter().copied().collect()).copied().collect::<Vec<_>>();
        let setting = Setting { place: &self.place, chosen: &all };
        let mut report = Report::default();
        for agent in chosen {
            report.add(*agent, agent.next(&setting));
        }
        let plan = plan(chosen, &setting);
        let unwanted = self.no_longer_wanted(&all);
        for (target, agents) in plan {
            let outcome = self.put_in(&target, &agents);
            report.file(&agents, &outcome);
        }
        for (path, agents) in unwanted {
            let leaving: Vec<Agent> = agents.iter().copied().collect();
            if let Some(outcome) = self.take_from(&path, self.edit_of(&path).as_ref(), &leaving) {
                report.file(&agents, &outcome);
            }
        }
        self.tidy()?;
        Ok(report)
    }

    fn take_out(&mut self, chosen: &[Agent]) -> Result<Report> {
        let left: Vec<Agent> = self.set_up_already(chosen).into_iter().collect();
        let mut report = Report::default();
        for agent in chosen {
            report.add(*agent, Vec::new());
        }
        if chosen.contains(&Agent::Claude) && left.contains(&Agent::VsCode) {
            report.add(
                Agent::Claude,
                vec!["VS Code used these hooks: `relay init --only vscode` gives it its own".to_owned()],
            );
        }
        for (path, agents) in self.files_for(chosen) {
            if let Some(outcome) = self.take_from(&path, self.edit_of(&path).as_ref(), chosen) {
                report.file(&agents, &outcome);
            }
        }
        self.tidy()?;
        Ok(report)
    }

    /// The files that these agents would have, and those that an earlier relay gave them.
    fn files_for(&self, chosen: &[Agent]) -> Vec<(String, BTreeSet<Agent>)> {
        let planned = plan(chosen, &Setting { place: &self.place, chosen });
        let mut files: Vec<_> = planned.into_iter().map(|(target, agents)| (target.path, agents)).collect();
        for (path, agents) in self.ledger.files() {
            let leaving: BTreeSet<Agent> = agents.into_iter().filter(|agent| chosen.contains(agent)).collect();
            if !leaving.is_empty() && !files.iter().any(|(known, _)| *known == path) {
                files.push((path, leaving));
            }
        }
        files
    }

    fn tidy(&mut self) -> Result<()> {
        if self.dry_run { Ok(()) } else { self.ledger.remove_folders(&self.place.root) }
    }

    /// The agents that have been set up here, without these.
    fn set_up_already(&self, without: &[Agent]) -> BTreeSet<Agent> {
        let all = self.ledger.files().into_iter().flat_map(|(_, agents)| agents);
        all.filter(|agent| !without.contains(agent)).collect()
    }

    /// Files that relay has a part in, and the agents that no longer want them, given who is set up now.
    fn no_longer_wanted(&self, all: &[Agent]) -> Vec<(String, BTreeSet<Agent>)> {
        let setting = Setting { place: &self.place, chosen: all };
        let wants = |agent: &Agent, path: &str| agent.targets(&setting).iter().any(|target| target.path == path);
        let files = self.ledger.files().into_iter().map(|(path, agents)| {
            let unwilling = agents.into_iter().filter(|agent| all.contains(agent) && !wants(agent, &path)).collect();
            (path, unwilling)
        });
        files.filter(|(_, agents): &(String, BTreeSet<Agent>)| !agents.is_empty()).collect()
    }

    /// What relay wants in a file, whoever wants it.
    fn edit_of(&self, path: &str) -> Option<edit::Edit> {
        let alone =
            Agent::ALL.into_iter().flat_map(|agent| agent.targets(&Setting { place: &self.place, chosen: &[agent] }));
        let target = alone.into_iter().find(|target| target.path == path);
        target.map(|target| target.edit)
    }
}

/// Every file once, with the agents that it is there for.
fn plan(chosen: &[Agent], setting: &Setting<'_>) -> Vec<(Target, BTreeSet<Agent>)> {
    let mut files: Vec<(Target, BTreeSet<Agent>)> = Vec::new();
    for agent in chosen {
        for target in agent.targets(setting) {
            match files.iter_mut().find(|(known, _)| known.path == target.path) {
                Some((_, agents)) => drop(agents.insert(*agent)),
                None => files.push((target, BTreeSet::from([*agent]))),
            }
        }
    }
    files
}
