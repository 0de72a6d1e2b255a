//! What of it stands in the files, read as the programs read them: for whoever wants to know whether it works.

use std::path::{Path, PathBuf};

use relay_core::store::Result;
use relay_store::Home;
use serde_json::Value;

use super::agents::{Agent, Setting, Target};
use super::edit::{Edit, Gap, Handler, Line, handlers, read};
use super::ledger::Ledger;
use super::place::Place;
use crate::app::App;

/// An agent that was set up here, or by somebody whose files these are.
#[derive(Debug)]
pub struct Installed {
    pub agent: Agent,
    /// Whose hooks it runs: VS Code reads those of Claude Code.
    pub hooks_of: Agent,
    /// Where its files are.
    pub place: Place,
    pub files: Vec<File>,
}

/// One file that relay has a part in.
#[derive(Debug)]
pub struct File {
    pub path: String,
    /// The agent that it is set up with.
    pub of: Agent,
    pub text: String,
    /// Where it is not as relay wants it; or what keeps it from being read.
    pub gaps: std::result::Result<Vec<Gap>, String>,
}

/// The agents that are set up in the work tree around the caller.
pub fn installed(app: &App, home: &Home) -> Result<(Place, Vec<Installed>)> {
    let here = Place::find(app, home)?;
    let mut chosen: Vec<Agent> = Vec::new();
    let mut found = Vec::new();
    // VS Code is the last, and must know whether Claude Code is there.
    for agent in Agent::ALL {
        let place = agent.place(&here);
        let tree = place.main().map(|_| place.root.clone());
        let ledger = Ledger::read(&home.folder(&place.project), tree.as_deref())?;
        chosen.push(agent);
        let targets = agent.targets(&Setting { place: &place, chosen: &chosen });
        if is_noted(&ledger, agent) || is_evident(agent, &targets, &place) {
            let mut files: Vec<File> = targets.iter().map(|target| File::read(&place.root, target, agent)).collect();
            let hooks_of =
                if agent == Agent::VsCode && chosen.contains(&Agent::Claude) { Agent::Claude } else { agent };
            files.extend(borrowed(hooks_of, agent, &place));
            found.push(Installed { agent, hooks_of, place, files });
        } else {
            chosen.pop();
        }
    }
    Ok((here, found))
}

/// The files with the hooks of another that this one runs.
fn borrowed(owner: Agent, agent: Agent, place: &Place) -> Vec<File> {
    let theirs = if owner == agent { Vec::new() } else { owner.targets(&Setting { place, chosen: &[owner] }) };
    let hooks = theirs.iter().filter(|target| agent.hooks_files().contains(&target.path.as_str()));
    hooks.map(|target| File::read(&place.root, target, owner)).collect()
}

fn is_noted(ledger: &Ledger, agent: Agent) -> bool {
    ledger.files().iter().any(|(_, agents)| agents.contains(&agent))
}

/// Files that came with the repository: the agent's own has something of relay's, or each of those that it shares with others.
fn is_evident(agent: Agent, targets: &[Target], place: &Place) -> bool {
    let is_in = |target: &&Target| target.edit.is_in(&text(&place.root, &target.path));
    let reaches: Vec<&Target> = targets.iter().filter(|target| target.reaches()).collect();
    let others = Agent::ALL.into_iter().filter(|other| *other != agent);
    let theirs: Vec<Target> = others.flat_map(|other| other.targets(&Setting { place, chosen: &[other] })).collect();
    let is_shared = |target: &&&Target| theirs.iter().any(|other| other.path == target.path);
    let own = reaches.iter().filter(|target| !is_shared(target)).any(is_in);
    own || (!reaches.is_empty() && reaches.iter().all(is_in))
}

fn text(root: &Path, path: &str) -> String {
    std::fs::read_to_string(root.join(path)).unwrap_or_default()
}

impl Target {
    /// Whether the agent is reached through it; the others it only reads.
    fn reaches(&self) -> bool {
        match &self.edit {
            Edit::Json(_) | Edit::Toml(_) => true,
            Edit::Block(_) => false,
            Edit::Whole(whole) => whole.is_script(),
        }
    }
}

impl File {
    fn read(root: &Path, target: &Target, of: Agent) -> Self {
        let text = text(root, &target.path);
        File { path: target.path.clone(), of, gaps: target.edit.gaps(&text), text }
    }
}

impl Installed {
    /// The file in which its hooks stand, with what it says.
    pub fn hooks(&self) -> Option<(PathBuf, Value)> {
        let paths = self.agent.hooks_files().iter().map(|path| self.place.root.join(path));
        let files = paths.filter_map(|path| {
            let said = read(&std::fs::read_to_string(&path).ok()?).ok()?;
            Some((path, said))
        });
        files.into_iter().find(|(_, said)| !handlers(said, &self.place.relay).is_empty())
    }

    /// What its program runs at an event for relay.
    pub fn line(&self, event: &str) -> Option<Line> {
        let (_, said) = self.hooks()?;
        let ours = handlers(&said, &self.place.relay);
        ours.iter().filter(|handler| handler.event == event).find_map(Handler::line)
    }
}
