//! From a template and an error's details to steps that run as they stand.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::condition::Condition;
use super::file::{Fails, Playbook, Retry, Template, Who};
use super::fill;
use crate::domain::event::text_hash;
use crate::domain::name::HUMAN;
use crate::domain::shell;
use crate::error::{Code, Refused};

/// One step as it is printed: for a person (`why`), for a shell (`run`), for an agent with tools only (`tool`, `args`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub step: usize,
    pub why: String,
    pub unattended: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub run: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Who does what no command does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<Who>,
    /// What must be true afterwards, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// What happens when it fails; unless said otherwise the recovery stops there.
    #[serde(default, skip_serializing_if = "Fails::is_stop")]
    pub fails: Fails,
    /// What became of it, where somebody took it or looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<Taken>,
    /// The result of what ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(skip)]
    pub condition: Option<Condition>,
    #[serde(skip)]
    pub escalation: Option<Escalation>,
    #[serde(skip)]
    pub is_retry: bool,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// It is still to be taken.
    ToDo,
    /// What must be true afterwards was true before.
    Already,
    Done,
    Failed,
    /// It waits for a person, or for whoever made the request.
    Waits,
}

/// A question for the human.
#[derive(Debug, Clone, PartialEq)]
pub struct Escalation {
    /// Its name, the same for the same question.
    pub case: String,
    pub question: String,
    /// It goes beside the store instead of into it.
    pub beside: bool,
}

/// Where the request was made: every step carries it, so that it runs from any shell.
#[derive(Debug, Clone, Default)]
pub struct Setting {
    pub project: Option<String>,
    pub agent: Option<String>,
    /// The key of the kept request; none when nothing could be kept.
    pub kept: Option<String>,
    /// The key that the request had; none when it came to none.
    pub key: Option<String>,
    /// The command that failed; none when there is no such command.
    pub verb: Option<String>,
}

/// Whether errors of these details end in making the request again.
pub fn retries(playbook: &Playbook, details: &Map<String, Value>) -> bool {
    playbook.retry.as_ref().is_some_and(|Retry { when, unless }| applies(when, unless, details))
}

fn applies(when: &Option<String>, unless: &Option<String>, details: &Map<String, Value>) -> bool {
    // An empty list is as good as none.
    let has =
        |name: &String| details.get(name).is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()));
    when.as_ref().is_none_or(has) && !unless.as_ref().is_some_and(has)
}

/// Whether a step is missing for want of a value.
pub fn lacks(playbook: &Playbook, details: &Map<String, Value>) -> bool {
    let applying = playbook.step.iter().filter(|step| applies(&step.when, &step.unless, details));
    applying.flat_map(Template::needs).any(|name| !details.contains_key(&name))
}

/// The steps out of a refusal, in order.
pub fn steps(playbook: &Playbook, refused: &Refused, setting: &Setting) -> Vec<Step> {
    let mut steps = Vec::new();
    for template in playbook.step.iter().filter(|step| applies(&step.when, &step.unless, &refused.details)) {
        let values = match &template.each {
            None => vec![None],
            Some(list) => match refused.details.get(list) {
                Some(Value::Array(values)) => values.iter().map(Some).collect(),
                _ => Vec::new(),
            },
        };
        for each in values {
            let lookup = |name: &str| match name {
                "each" => each.cloned(),
                "project" => setting.project.clone().map(Value::from),
                "agent" => Some(Value::from(setting.agent.as_deref().unwrap_or("somebody"))),
                "help" => Some(Value::from(help(setting))),
                _ => refused.details.get(name.trim_end_matches('?')).cloned(),
            };
            steps.extend(filled(template, refused.code, &lookup, setting));
        }
    }
    if retries(playbook, &refused.details) {
        steps.push(retry(refused.code, setting));
    }
    number(steps)
}

/// The steps of a class without an error: each value is shown by its name, `<name>`.
pub fn outline(playbook: &Playbook, code: Code, setting: &Setting) -> Vec<Step> {
    let agent = setting.agent.clone().or_else(|| Some("<agent>".to_owned()));
    let setting = &Setting { agent, ..setting.clone() };
    let placeholder = |name: &str| Some(Value::from(format!("<{name}>")));
    let outlined = |template: &Template| {
        let lookup = |name: &str| match (name, &template.each) {
            ("each", Some(list)) => placeholder(list),
            ("help", _) => Some(Value::from("relay <verb> --help")),
            (optional, _) if optional.ends_with('?') => None,
            _ => placeholder(name),
        };
        filled(template, code, &lookup, setting)
    };
    let mut steps: Vec<Step> = playbook.step.iter().filter_map(outlined).collect();
    if playbook.retry.is_some() {
        let shown = |key: &Option<String>| key.clone().or_else(|| Some("<key>".to_owned()));
        // What cannot be kept is made again by whoever made it.
        let (kept, key) = if code.is_kept() { (shown(&setting.kept), None) } else { (None, shown(&setting.key)) };
        steps.push(retry(code, &Setting { kept, key, ..setting.clone() }));
    }
    number(steps)
}

fn help(setting: &Setting) -> String {
    setting.verb.as_ref().map_or_else(|| "relay --help".to_owned(), |verb| format!("relay {verb} --help"))
}

fn number(mut steps: Vec<Step>) -> Vec<Step> {
    for (index, step) in steps.iter_mut().enumerate() {
        step.step = index + 1;
    }
    steps
}

/// None when the details lack a value that the step needs: such a step does not apply.
fn filled(template: &Template, code: Code, lookup: &impl Fn(&str) -> Option<Value>, setting: &Setting) -> Option<Step> {
    let why = fill::text(&template.why, lookup)?;
    let condition = match template.after.iter().flatten().next() {
        Some((name, value)) => Some(Condition::read(name, fill::value(value, lookup)?)?),
        None => None,
    };
    let (unattended, fails) = (template.unattended, template.fails);
    let step = Step { why, unattended, fails, who: template.who, ..Step::default() };
    if template.escalate.is_some() {
        return escalation(step, template, code, lookup, setting);
    }
    let step = Step { after: condition.as_ref().map(Condition::tell), condition, ..step };
    let Some(verb) = template.tool.as_ref().or(template.command.as_ref()) else { return Some(step) };
    if setting.agent.as_deref() == Some(HUMAN) && ["start", "prepare"].contains(&verb.as_str()) {
        // The human is on the bus without it, and has somebody do it.
        return Some(Step { unattended: false, who: Some(Who::Person), ..step });
    }
    let mut args = Map::new();
    for (name, value) in &template.args {
        match fill::value(value, lookup) {
            Some(value) => args.insert(name.clone(), value),
            None if fill::is_optional(value) => continue,
            None => return None,
        };
    }
    Some(runs(step, verb, template.tool.is_some(), args, setting))
}

/// The step that puts a question before the human: as mail, or beside the store where nobody can write to the bus.
fn escalation(
    step: Step,
    template: &Template,
    code: Code,
    lookup: &impl Fn(&str) -> Option<Value>,
    setting: &Setting,
) -> Option<Step> {
    let question = fill::text(template.escalate.as_ref()?, lookup)?;
    // The human asks nobody, and is the one who decides.
    if setting.agent.as_deref() == Some(HUMAN) {
        return Some(Step { why: question, unattended: false, who: Some(Who::Person), ..step });
    }
    // Of a store there is one question of each class, whatever part of it was met first.
    let is_the_stores = code.is_about_the_store();
    let what = setting.project.as_ref().filter(|_| is_the_stores).unwrap_or(&question);
    let case = format!("{code}.{}", &text_hash(&[], what).0[..8]);
    let speaker = setting.agent.as_ref().filter(|_| !template.beside);
    let (verb, condition, args) = match speaker {
        Some(agent) => {
            let args = json!({"to": ["human"], "thread": case, "subject": format!("{code} stops {agent}"), "body": question, "ack_required": true});
            ("send", Condition::Asks(case.clone()), args)
        }
        None => {
            let used = template.asks_with();
            let values: Vec<String> = used
                .iter()
                .map(|name| name.trim_end_matches('?'))
                .filter_map(|name| Some(format!("{name}={}", fill::words(&lookup(name)?).join(","))))
                .collect();
            ("recover", Condition::Noted(case.clone()), json!({"code": code.as_str(), "escalate": true, "set": values}))
        }
    };
    let escalation = Escalation { case, question, beside: speaker.is_none() };
    let step = Step { after: Some(condition.tell()), condition: Some(condition), escalation: Some(escalation), ..step };
    let Value::Object(args) = args else { return None };
    Some(runs(step, verb, true, args, setting))
}

fn runs(step: Step, verb: &str, is_tool: bool, mut args: Map<String, Value>, setting: &Setting) -> Step {
    for (name, value) in [("project", &setting.project), ("agent", &setting.agent)] {
        if let Some(value) = value
            && !args.contains_key(name)
        {
            args.insert(name.to_owned(), Value::from(value.clone()));
        }
    }
    let run = fill::argv(verb, &args);
    let (tool, args) = if is_tool { (Some(verb.to_owned()), Some(args)) } else { (None, None) };
    Step { run, tool, args, ..step }
}

/// Stands for a name that nobody has yet.
const NAMED_BY_START: &str = "NAME_THAT_START_RETURNED";

/// The same request once more, by its key; or a sentence, where relay could not keep the request.
fn retry(code: Code, setting: &Setting) -> Step {
    let again = "make the same request again".to_owned();
    let Some(key) = &setting.kept else {
        // Under another key it could happen a second time.
        let keyed = |key: &String| format!("{again} with {}", shell::line(&shell::flag("--idempotency-key", key)));
        let why = setting.key.as_ref().map_or_else(|| again.clone(), keyed);
        return Step { why, who: Some(Who::You), is_retry: true, ..Step::default() };
    };
    let is_nobody = code == Code::AgentNotRegistered && setting.agent.is_none();
    let step = Step { why: again, unattended: !is_nobody, is_retry: true, ..Step::default() };
    let args = json!({"code": code.as_str(), "retry": true, "idempotency_key": key});
    let Value::Object(args) = args else { return step };
    let mut step = runs(step, "recover", true, args, setting);
    if let Some(args) = step.args.as_mut().filter(|_| is_nobody) {
        // Whoever was nobody is somebody by now. A shell knows who, from RELAY_AGENT; a call has to say it.
        args.insert("agent".to_owned(), Value::from(NAMED_BY_START));
    }
    step
}

#[cfg(test)]
mod tests;
