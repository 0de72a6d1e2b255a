//! What stands in a playbook's file, and what can be said against it. The build reads this file too: a playbook that
//! breaks its rules does not compile.

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// A playbook as it stands in its file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Playbook {
    /// What the caller sees, in a sentence.
    pub symptom: String,
    #[serde(default)]
    pub step: Vec<Template>,
    /// The same request is made once more at the end.
    pub retry: Option<Retry>,
}

/// When the request is made once more.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// Only where the details have this value.
    pub when: Option<String>,
    /// Not where the details have this value.
    pub unless: Option<String>,
}

/// A step before its values are filled in. `{name}` stands for a value of the error's details; `{name?}` for one that may
/// be absent. It is one of four: a tool call, an operator's command, a question to the human, or something to do for
/// somebody. A call may be one that only the caller can make, because what comes back is for it to use.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    pub why: String,
    /// Safe without a person.
    #[serde(default)]
    pub unattended: bool,
    /// One step for each value of this list in the details, as `{each}`; none when it is absent or empty.
    pub each: Option<String>,
    /// Only where the details have this value.
    pub when: Option<String>,
    /// Not where the details have this value.
    pub unless: Option<String>,
    /// The verb, for a step that is also a tool call.
    pub tool: Option<String>,
    /// The command, for a step of an operator.
    pub command: Option<String>,
    /// The flags of the verb or command, by their long names with `_`.
    #[serde(default)]
    pub args: Table,
    /// The question that is put before the human.
    pub escalate: Option<String>,
    /// The store itself is the problem, or nobody can write: the question goes beside the store.
    #[serde(default)]
    pub beside: bool,
    /// Who does what no command does.
    pub who: Option<Who>,
    /// What must be true afterwards.
    pub after: Option<Table>,
    /// What happens when it fails, or is not true afterwards.
    #[serde(default)]
    pub fails: Fails,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    /// Whoever made the request.
    You,
    /// The person in charge.
    Person,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fails {
    /// The recovery ends, and says so.
    #[default]
    Stop,
    /// The next step is another way.
    GoOn,
    /// The human is asked.
    Ask,
}

impl Fails {
    pub fn is_stop(&self) -> bool {
        *self == Fails::Stop
    }
}

/// What can be true after a step, by name.
const CONDITIONS: [(&str, Shape); 14] = [
    ("active", Shape::Text),
    ("acting", Shape::Flag),
    ("bound", Shape::Fields(&["agent", "session"])),
    ("asked", Shape::Text),
    ("linked", Shape::Text),
    ("unblocked", Shape::Text),
    ("held", Shape::Fields(&["patterns", "shared"])),
    ("thread", Shape::Text),
    ("written", Shape::Fields(&["to", "thread"])),
    ("apart", Shape::Text),
    ("archive", Shape::OneOf(&["sound", "writable", "current"])),
    ("store", Shape::OneOf(&["sound", "writable"])),
    ("server", Shape::OneOf(&["reachable"])),
    ("credential", Shape::OneOf(&["human"])),
];

/// What a condition is about.
enum Shape {
    Text,
    Flag,
    Fields(&'static [&'static str]),
    OneOf(&'static [&'static str]),
}

impl Shape {
    fn fits(&self, value: &Value) -> bool {
        match (self, value) {
            (Shape::Text, Value::String(text)) => !text.contains('?'),
            (Shape::Flag, Value::Boolean(flag)) => *flag,
            (Shape::Fields(names), Value::Table(table)) => {
                names.len() == table.len() && names.iter().all(|name| table.get(*name).is_some_and(Value::is_str))
            }
            (Shape::OneOf(words), Value::String(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

/// Values that every step may use, whatever the class.
const ALWAYS: [&str; 3] = ["agent", "project", "help"];

impl Playbook {
    /// What is wrong with the playbook of a class whose errors carry these values; `takes` says which arguments a verb or
    /// a command has.
    pub fn faults(&self, details: &[&str], takes: impl Fn(&str) -> Option<Vec<String>>) -> Vec<String> {
        let mut faults = Vec::new();
        if self.symptom.is_empty() {
            faults.push("it has no symptom".to_owned());
        }
        let is_end = |step: &Template| step.who.is_some() || step.escalate.is_some();
        if self.retry.is_none() && !self.step.last().is_some_and(is_end) {
            faults.push("it ends neither in a retry nor with somebody who decides".to_owned());
        }
        let retry = self.retry.iter().flat_map(|retry| retry.when.iter().chain(&retry.unless));
        faults.extend(retry.filter(|name| !details.contains(&name.as_str())).map(|name| unknown(name)));
        for (index, step) in self.step.iter().enumerate() {
            let named = |fault: String| format!("step {}: {fault}", index + 1);
            faults.extend(step.faults(details, &takes).into_iter().map(named));
        }
        faults
    }

    /// The values of the details that it can use, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for step in &self.step {
            let asked = step.when.iter().chain(&step.unless).cloned();
            names.extend(step.needs().into_iter().chain(asked));
            names.extend(step.placeholders().iter().filter_map(|name| name.strip_suffix('?')).map(str::to_owned));
        }
        names.sort();
        names.dedup();
        names
    }
}

fn unknown(name: &str) -> String {
    format!("no error of this class carries {name:?}")
}

impl Template {
    fn faults(&self, details: &[&str], takes: &impl Fn(&str) -> Option<Vec<String>>) -> Vec<String> {
        let mut faults = Vec::new();
        let verb = self.tool.as_ref().or(self.command.as_ref());
        let kinds = [self.tool.is_some(), self.command.is_some(), self.escalate.is_some(), self.who.is_some()];
        let is_own_call = self.tool.is_some() && self.who == Some(Who::You);
        if kinds.iter().filter(|is| **is).count() != if is_own_call { 2 } else { 1 } {
            faults.push("it is exactly one of tool, command, escalate and who".to_owned());
        }
        if self.who.is_some() && self.unattended {
            faults.push("what somebody does is not unattended".to_owned());
        }
        if self.beside && self.escalate.is_none() {
            faults.push("only a question goes beside the store".to_owned());
        }
        match (verb, &self.after) {
            (Some(_), None) => faults.push("it does not say what must be true afterwards".to_owned()),
            (_, Some(after)) if after.len() != 1 => faults.push("`after` is one condition".to_owned()),
            (_, Some(after)) => {
                for (name, value) in after {
                    match CONDITIONS.iter().find(|(known, _)| known == name) {
                        None => faults.push(format!("there is no condition {name:?}")),
                        Some((_, shape)) if !shape.fits(value) => {
                            faults.push(format!("{name:?} is about something else"));
                        }
                        Some(_) => {}
                    }
                }
            }
            (None, None) => {}
        }
        if let Some(verb) = verb {
            match takes(verb) {
                None => faults.push(format!("there is no command {verb:?}")),
                Some(flags) => {
                    let strange = self.args.keys().filter(|flag| !flags.contains(flag));
                    faults.extend(strange.map(|flag| format!("`{verb}` takes no {flag:?}")));
                }
            }
        }
        let lists = self.each.iter().chain(&self.when).chain(&self.unless);
        faults.extend(lists.filter(|name| !details.contains(&name.as_str())).map(|name| unknown(name)));
        for name in self.placeholders() {
            let bare = name.trim_end_matches('?');
            let known = details.contains(&bare) || ALWAYS.contains(&bare) || (bare == "each" && self.each.is_some());
            if !known {
                faults.push(unknown(bare));
            }
        }
        faults
    }

    /// The values without which it is no step.
    pub fn needs(&self) -> Vec<String> {
        let filled = self.placeholders().into_iter().filter(|name| !name.ends_with('?') && name != "each");
        filled.filter(|name| !ALWAYS.contains(&name.as_str())).chain(self.each.clone()).collect()
    }

    /// The values of the details that its question names.
    pub fn asks_with(&self) -> Vec<String> {
        let mut found = Vec::new();
        within(self.escalate.as_deref().unwrap_or_default(), &mut found);
        found.retain(|name| !ALWAYS.contains(&name.as_str()));
        found
    }

    /// Every placeholder in the step's texts.
    fn placeholders(&self) -> Vec<String> {
        let mut found = self.asks_with();
        within(&self.why, &mut found);
        for value in self.args.values().chain(self.after.iter().flat_map(Table::values)) {
            inside(value, &mut found);
        }
        found
    }
}

fn inside(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => within(text, found),
        Value::Array(values) => values.iter().for_each(|value| inside(value, found)),
        Value::Table(table) => table.values().for_each(|value| inside(value, found)),
        _ => {}
    }
}

fn within(text: &str, found: &mut Vec<String>) {
    for piece in text.split('{').skip(1) {
        // A brace that is not closed is no placeholder, and its text would never be filled in.
        found.push(piece.split_once('}').map_or_else(|| format!("{{{piece}"), |(name, _)| name.to_owned()));
    }
}
