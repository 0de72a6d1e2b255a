//! What became of it, for people and for programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::{escape, escape_line};
use relay_core::error::Kind;
use serde::Serialize;
use serde_json::json;

use super::Wanted;
use super::agents::Agent;
use super::file::Trouble;
use super::place::Place;
use crate::app::Said;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    Created,
    Changed,
    Unchanged,
    Restored,
    Removed,
    Failed,
}

/// What became of one file.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    path: String,
    action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    /// What stands in relay's own entry there, and is not relay's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_relays: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// It names a path that is this machine's alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    of_this_machine: bool,
    /// What to write there instead of relay.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_hand: Option<String>,
    #[serde(skip)]
    kind: Option<Kind>,
}

impl Action {
    /// Whether a file is, or would be, another than before.
    fn is_change(self) -> bool {
        !matches!(self, Action::Unchanged | Action::Failed)
    }
}

impl Outcome {
    pub fn new(path: &str, action: Action) -> Self {
        Outcome {
            path: path.to_owned(),
            action,
            why: None,
            not_relays: Vec::new(),
            diff: None,
            of_this_machine: false,
            by_hand: None,
            kind: None,
        }
    }

    pub fn failed(path: &str, trouble: &Trouble) -> Self {
        Outcome { why: Some(trouble.why.clone()), kind: Some(trouble.kind), ..Outcome::new(path, Action::Failed) }
    }

    #[must_use]
    pub fn because(self, why: String) -> Self {
        Outcome { why: Some(why), ..self }
    }

    #[must_use]
    pub fn warning(self, not_relays: Vec<String>) -> Self {
        Outcome { not_relays, ..self }
    }

    #[must_use]
    pub fn of_this_machine(self, of_this_machine: bool) -> Self {
        Outcome { of_this_machine, ..self }
    }

    #[must_use]
    pub fn diff(self, diff: String) -> Self {
        Outcome { diff: Some(diff), ..self }
    }

    #[must_use]
    pub fn by_hand(self, text: String) -> Self {
        Outcome { by_hand: Some(text), ..self }
    }
}

#[derive(Debug, Default)]
pub struct Report {
    agents: BTreeMap<Agent, (Vec<Outcome>, Vec<String>)>,
    /// Each file once.
    files: Vec<Outcome>,
}

impl Report {
    pub fn add(&mut self, agent: Agent, next: Vec<String>) {
        self.agents.entry(agent).or_default().1.extend(next);
    }

    /// What is left to the user. Nobody is told to trust a server of which not all is relay's.
    fn next(&self, agent: Agent) -> Vec<String> {
        let Some((files, next)) = self.agents.get(&agent) else { return Vec::new() };
        match files.iter().find(|file| !file.not_relays.is_empty()) {
            Some(file) => vec![format!("look at {} before you trust the server `relay` in it", file.path)],
            None => next.clone(),
        }
    }

    pub fn file(&mut self, agents: &BTreeSet<Agent>, outcome: &Outcome) {
        for agent in agents {
            self.agents.entry(*agent).or_default().0.push(outcome.clone());
        }
        self.files.push(outcome.clone());
    }

    /// The answer, and the exit status of the worst file.
    pub fn said(&self, place: &Place, found: &BTreeMap<Agent, String>, wanted: &Wanted) -> (Said, u8) {
        let status = self.files.iter().filter_map(|file| file.kind).map(Kind::exit_status).max().unwrap_or(0);
        // Whoever has nothing of relay's is not worth a word when it is taken out.
        let told: Vec<_> = self.agents.iter().filter(|(_, (files, _))| !(wanted.remove && files.is_empty())).collect();
        let agent = |(agent, (files, _)): &(&Agent, &(Vec<Outcome>, Vec<String>))| {
            let (because, next) = (found.get(agent), self.next(**agent));
            json!({"name": agent, "detected": because.is_some(), "because": because, "files": files, "next": next})
        };
        let agents: Vec<_> = told.iter().map(agent).collect();
        let mut notes = notes(place, wanted);
        notes.extend(self.whose().filter(|_| !wanted.remove));
        let result = json!({
            "project": place.project,
            "root": place.root.to_string_lossy(),
            "relay": place.relay,
            "dry_run": wanted.dry_run,
            "agents": agents,
            "notes": notes,
        });
        let mut text = String::new();
        for (agent, (files, _)) in told {
            text.push_str(&of_agent(*agent, files, &self.next(*agent), found.get(agent), wanted));
        }
        text.push_str(&self.closing(place, wanted, &notes));
        (Said { result, text, signals: Vec::new(), next: Vec::new() }, status)
    }

    /// Which files are the team's, and which are not.
    fn whose(&self) -> Option<String> {
        let there = || self.files.iter().filter(|file| file.action != Action::Failed);
        let own: Vec<String> =
            there().filter(|file| file.of_this_machine).map(|file| escape_line(&file.path)).collect();
        match there().count() {
            0 => None,
            _ if own.is_empty() => Some("Commit these files, and your team has relay too.".to_owned()),
            count if count == own.len() => {
                Some("These files hold paths of this machine: do not commit them.".to_owned())
            }
            _ => Some(format!(
                "Commit these files, and your team has relay too; not those with paths of this machine: {}.",
                own.join(", ")
            )),
        }
    }

    fn closing(&self, place: &Place, wanted: &Wanted, notes: &[String]) -> String {
        let mut text = String::new();
        for file in &self.files {
            if let Some(diff) = &file.diff {
                let _ = write!(text, "\n{}", escape(diff));
            }
            if let Some(lines) = &file.by_hand {
                let _ = write!(text, "\nTo add to {} by hand:\n{lines}", file.path);
            }
        }
        let is_done = self.files.iter().all(|file| file.action == Action::Unchanged);
        let is_failed = !is_done && !self.files.iter().any(|file| file.action.is_change());
        let last = match (is_done, wanted.remove, wanted.dry_run) {
            _ if is_failed => "Nothing was changed.".to_owned(),
            (true, true, _) if !self.files.is_empty() => "What is left is there for other agents.".to_owned(),
            (true, true, _) => format!("Nothing of relay's is left to take out of {}.", place.root.display()),
            (true, false, _) => format!("Nothing to do: relay is set up in {}.", place.root.display()),
            (false, _, true) => "Nothing was changed. Without --dry-run it is.".to_owned(),
            (false, true, false) => "The project's history stays; relay is out of the files above.".to_owned(),
            (false, false, false) => "`relay init --remove` takes it all out again.".to_owned(),
        };
        for line in notes {
            let _ = writeln!(text, "{line}");
        }
        let _ = writeln!(text, "{last}");
        text
    }
}

fn of_agent(agent: Agent, files: &[Outcome], next: &[String], because: Option<&String>, wanted: &Wanted) -> String {
    let because = because.map_or("not found here".to_owned(), |because| escape_line(because));
    let mut text = format!("{} ({because})\n", agent.title().bold());
    for file in files {
        let word = match wanted.dry_run {
            true => format!("{:<13}", future(file.action)),
            false => format!("{:<9}", word(file.action)),
        };
        let mark = match file.action {
            Action::Created | Action::Changed => word.green().to_string(),
            Action::Unchanged => word.dimmed().to_string(),
            Action::Restored | Action::Removed => word.yellow().to_string(),
            Action::Failed => word.red().bold().to_string(),
        };
        let why = file.why.as_ref().map(|why| format!(": {}", escape_line(why))).unwrap_or_default();
        let _ = writeln!(text, "  {mark} {}{why}", escape_line(&file.path));
        if !file.not_relays.is_empty() {
            let names = escape_line(&file.not_relays.join(", "));
            let _ = writeln!(text, "  {} relay did not write {names} in it", "warning:".yellow().bold());
        }
    }
    let is_new =
        |file: &Outcome| matches!(file.action, Action::Created | Action::Changed) || !file.not_relays.is_empty();
    let is_fresh = files.iter().any(is_new);
    for line in next.iter().filter(|_| is_fresh || wanted.remove) {
        let _ = writeln!(text, "  next: {}", escape_line(line));
    }
    text
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Created => "created",
        Action::Changed => "changed",
        Action::Unchanged => "unchanged",
        Action::Restored => "restored",
        Action::Removed => "removed",
        Action::Failed => "failed",
    }
}

/// The same of what has not happened.
fn future(action: Action) -> &'static str {
    match action {
        Action::Created => "would create",
        Action::Changed => "would change",
        Action::Restored => "would restore",
        Action::Removed => "would remove",
        Action::Unchanged | Action::Failed => word(action),
    }
}

/// What is true of all agents alike.
fn notes(place: &Place, wanted: &Wanted) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(main) = place.main() {
        notes.push(format!(
            "{} is a linked work tree of {}: only the agents in it read these files.",
            place.root.display(),
            main.display()
        ));
    }
    if place.names_a_path() && !wanted.remove {
        notes.push(format!(
            "The files name {}, which is a path of this machine: with this program on the PATH as `relay`, run it again before you share them.",
            place.relay
        ));
    }
    notes
}

/// No agent was found, and none was named.
pub fn nobody(place: &Place) -> (Said, u8) {
    let words = Agent::ALL.map(Agent::word).join(",");
    let text = format!("No coding agent was found here. `relay init --only {words}` sets up those that you name.\n");
    let result = json!({
        "project": place.project,
        "root": place.root.to_string_lossy(),
        "relay": place.relay,
        "agents": [],
        "notes": [text.trim_end()],
    });
    (Said { result, text, signals: Vec::new(), next: vec![format!("relay init --only {words}")] }, 0)
}
