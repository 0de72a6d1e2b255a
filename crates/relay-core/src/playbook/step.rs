//! From a template and an error's details to steps that run as they stand.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::library::{Playbook, Template};
use crate::domain::shell;
use crate::error::{Code, Refused};

/// One step as it is printed: for a person (`why`), for a shell (`run`), for an agent with tools only (`tool`, `args`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// Arguments without a flag of their own, by verb.
const POSITIONAL: [&str; 4] = ["patterns", "ids", "what", "code"];

/// The steps out of a refusal, in order.
pub fn steps(playbook: &Playbook, refused: &Refused, setting: &Setting) -> Vec<Step> {
    let mut steps = Vec::new();
    let applies = |template: &&Template| !template.unless.as_ref().is_some_and(|has| refused.details.contains_key(has));
    for template in playbook.step.iter().filter(applies) {
        let values = match &template.each {
            None => vec![None],
            Some(list) => match refused.details.get(list) {
                Some(Value::Array(values)) => values.iter().map(Some).collect(),
                _ => Vec::new(),
            },
        };
        for each in values {
            steps.extend(fill(template, each, refused, setting));
        }
    }
    if playbook.retry {
        steps.push(retry(refused.code, setting));
    }
    number(steps)
}

/// The steps of a class without an error: each value is shown by its name, `<name>`.
pub fn outline(playbook: &Playbook, code: Code, setting: &Setting) -> Vec<Step> {
    let placeholder = |name: &str| Some(Value::from(format!("<{name}>")));
    let mut steps: Vec<Step> = playbook
        .step
        .iter()
        .filter_map(|template| {
            let lookup = |name: &str| match (name, &template.each) {
                ("each", Some(list)) => placeholder(list),
                ("help", _) => Some(Value::from("relay <verb> --help")),
                (optional, _) if optional.ends_with('?') => None,
                _ => placeholder(name),
            };
            filled(template, &lookup, setting)
        })
        .collect();
    if playbook.retry {
        let kept = setting.kept.clone().or_else(|| Some("<key>".to_owned()));
        steps.push(retry(code, &Setting { kept, ..setting.clone() }));
    }
    number(steps)
}

fn number(mut steps: Vec<Step>) -> Vec<Step> {
    for (index, step) in steps.iter_mut().enumerate() {
        step.step = index + 1;
    }
    steps
}

/// None when the details lack a value that the step needs: such a step does not apply.
fn fill(template: &Template, each: Option<&Value>, refused: &Refused, setting: &Setting) -> Option<Step> {
    let lookup = |name: &str| match name {
        "each" => each.cloned(),
        "project" => setting.project.clone().map(Value::from),
        "agent" => setting.agent.clone().map(Value::from),
        "help" => Some(Value::from(match &setting.verb {
            Some(verb) => format!("relay {verb} --help"),
            None => "relay --help".to_owned(),
        })),
        _ => refused.details.get(name.trim_end_matches('?')).cloned(),
    };
    filled(template, &lookup, setting)
}

fn filled(template: &Template, lookup: &impl Fn(&str) -> Option<Value>, setting: &Setting) -> Option<Step> {
    let why = substitute(&template.why, lookup)?;
    let mut args = Map::new();
    for (name, value) in &template.args {
        match fill_value(value, lookup) {
            Some(value) => args.insert(name.clone(), value),
            None if is_optional(value) => continue,
            None => return None,
        };
    }
    let verb = template.tool.as_ref().or(template.command.as_ref());
    Some(match verb {
        None => person(why),
        Some(verb) => step(verb, template.tool.is_some(), why, template.unattended, args, setting),
    })
}

/// `{name?}`: left out where the details have no such value.
fn is_optional(value: &toml::Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with("?}"))
}

fn person(why: String) -> Step {
    Step { step: 0, why, unattended: false, run: Vec::new(), tool: None, args: None }
}

fn step(
    verb: &str,
    is_tool: bool,
    why: String,
    unattended: bool,
    mut args: Map<String, Value>,
    setting: &Setting,
) -> Step {
    for (name, value) in [("project", &setting.project), ("agent", &setting.agent)] {
        if let Some(value) = value
            && !args.contains_key(name)
        {
            args.insert(name.to_owned(), Value::from(value.clone()));
        }
    }
    let run = argv(verb, &args);
    let (tool, args) = if is_tool { (Some(verb.to_owned()), Some(args)) } else { (None, None) };
    Step { step: 0, why, unattended, run, tool, args }
}

/// The same request once more, by its key; or a sentence, where relay could not keep the request.
fn retry(code: Code, setting: &Setting) -> Step {
    let Some(key) = &setting.kept else {
        let again = "make the same request again";
        // Under another key it could happen a second time.
        let keyed = |key: &String| format!("{again} with {}", shell::line(&shell::flag("--idempotency-key", key)));
        return person(setting.key.as_ref().map_or_else(|| again.to_owned(), keyed));
    };
    let mut args = Map::new();
    args.insert("code".to_owned(), Value::from(code.as_str()));
    args.insert("retry".to_owned(), Value::from(true));
    args.insert("idempotency_key".to_owned(), Value::from(key.clone()));
    step("recover", true, "make the same request again".to_owned(), true, args, setting)
}

/// `relay VERB positionals flags`, the project and the agent last, as in the answers people know.
fn argv(verb: &str, args: &Map<String, Value>) -> Vec<String> {
    let mut argv = vec!["relay".to_owned(), verb.to_owned()];
    let is_last = |name: &str| name == "project" || name == "agent";
    for name in POSITIONAL {
        let words = args.get(name).map(words).unwrap_or_default();
        // Patterns begin at the root, so `./` changes nothing but what the word begins with.
        argv.extend(words.into_iter().map(|word| if word.starts_with('-') { format!("./{word}") } else { word }));
    }
    let flags = args.iter().filter(|(name, _)| !POSITIONAL.contains(&name.as_str()));
    let (last, first): (Vec<_>, Vec<_>) = flags.partition(|(name, _)| is_last(name));
    for (name, value) in first.into_iter().chain(last.into_iter().rev()) {
        let flag = format!("--{}", name.replace('_', "-"));
        match value {
            Value::Bool(true) => argv.push(flag),
            Value::Bool(false) | Value::Null => {}
            _ => {
                for word in words(value) {
                    argv.extend(shell::flag(&flag, &word));
                }
            }
        }
    }
    argv
}

fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().flat_map(words).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    }
}

/// A whole placeholder keeps the type of its value; one inside a text, or one word of several, becomes text.
fn fill_value(value: &toml::Value, lookup: &impl Fn(&str) -> Option<Value>) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) if !name.contains(['{', '}']) => lookup(name)?,
            _ => Value::from(substitute(text, lookup)?),
        },
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Array(values) => {
            let word = |value: &toml::Value| Some(Value::from(substitute(value.as_str()?, lookup)?));
            Value::Array(values.iter().map(word).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn substitute(text: &str, lookup: &impl Fn(&str) -> Option<Value>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}')?;
        out.push_str(before);
        out.push_str(&words(&lookup(name)?).join(", "));
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(file: &str, refusal: &crate::error::Refusal, setting: &Setting) -> Vec<Step> {
        let playbook: Playbook = toml::from_str(file).unwrap_or_else(|fault| panic!("{fault}"));
        steps(&playbook, refusal, setting)
    }

    fn setting() -> Setting {
        Setting {
            project: Some("/abs/repo".into()),
            agent: Some("BlueLake".into()),
            kept: Some("k1".into()),
            key: Some("k1".into()),
            verb: None,
        }
    }

    #[test]
    fn a_step_is_the_same_as_argv_and_as_tool_call() {
        let file = r#"
            symptom = "s"
            retry = true
            [[step]]
            why = "ask {each}"
            unattended = true
            each = "ask"
            tool = "link"
            args = { target = "{each}" }
        "#;
        let refusal = Code::ContactRequired.refuse("x").with("ask", vec!["RedForest", "GreenHill"]);
        let steps = printed(file, &refusal, &setting());
        assert_eq!(steps.len(), 3);
        let expected = ["relay", "link", "--target", "RedForest", "--project", "/abs/repo", "--agent", "BlueLake"];
        assert_eq!(steps[0].run, expected);
        assert_eq!(steps[0].why, "ask RedForest");
        let args = serde_json::json!({"target": "RedForest", "project": "/abs/repo", "agent": "BlueLake"});
        assert_eq!(serde_json::to_value(&steps[0].args).unwrap_or_default(), args);
        let retry = [
            "relay",
            "recover",
            "CONTACT_REQUIRED",
            "--idempotency-key",
            "k1",
            "--retry",
            "--project",
            "/abs/repo",
            "--agent",
            "BlueLake",
        ];
        assert_eq!(steps[2].run, retry);
        assert_eq!(steps.iter().map(|step| step.step).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_step_without_its_value_does_not_apply() {
        let file =
            "symptom = \"s\"\n[[step]]\nwhy = \"see {id}\"\ntool = \"look\"\nargs = { what = [\"message\", \"{id}\"] }";
        assert_eq!(printed(file, &Code::MessageNotFound.refuse("x"), &setting()), []);
        let with_id = Code::MessageNotFound.refuse("x").with("id", 7);
        let step = printed(file, &with_id, &setting()).remove(0);
        assert_eq!(step.run[..4], ["relay", "look", "message", "7"]);
        assert_eq!(step.args.map(|args| args["what"].clone()), Some(serde_json::json!(["message", "7"])));
    }

    #[test]
    fn a_step_that_was_taken_already_does_not_apply() {
        let file = "symptom = \"s\"\n[[step]]\nwhy = \"see\"\nunless = \"findings\"\ncommand = \"verify\"";
        let count = |refusal: crate::error::Refusal| printed(file, &refusal, &setting()).len();
        assert_eq!(count(Code::StoreDamaged.refuse("x")), 1);
        assert_eq!(count(Code::StoreDamaged.refuse("x").with("findings", vec!["y"])), 0);
    }

    #[test]
    fn an_optional_value_is_left_out_where_it_is_missing() {
        let file = "symptom = \"s\"\n[[step]]\nwhy = \"w\"\ntool = \"reserve\"\nargs = { patterns = \"{patterns}\", shared = \"{shared?}\", ttl = \"{ttl?}\" }";
        let run = |refusal: crate::error::Refusal| printed(file, &refusal, &Setting::default())[0].run.join(" ");
        let refusal = Code::FileReservationConflict.refuse("x").with("patterns", vec!["src"]);
        assert_eq!(run(refusal.clone()), "relay reserve src");
        assert_eq!(run(refusal.with("shared", true).with("ttl", "2h")), "relay reserve src --shared --ttl 2h");
    }

    #[test]
    fn no_value_is_taken_for_a_flag() {
        let file = "symptom = \"s\"\nretry = true\n[[step]]\nwhy = \"w\"\ntool = \"reserve\"\nargs = { patterns = \"{patterns}\" }";
        let setting = Setting { kept: Some("-k9".into()), ..Setting::default() };
        let refusal = Code::FileReservationConflict.refuse("x").with("patterns", vec!["-x", "y"]);
        let steps = printed(file, &refusal, &setting);
        assert_eq!(steps[0].run, ["relay", "reserve", "./-x", "y"]);
        assert_eq!(steps[0].args.as_ref().map(|args| args["patterns"].clone()), Some(serde_json::json!(["-x", "y"])));
        assert_eq!(steps[1].run[3], "--idempotency-key=-k9");
    }

    #[test]
    fn an_unkept_request_is_repeated_by_its_maker() {
        let setting = Setting { kept: None, ..setting() };
        let steps = printed("symptom = \"s\"\nretry = true", &Code::StoreFull.refuse("x"), &setting);
        assert_eq!(steps.len(), 1);
        assert!(steps[0].run.is_empty() && !steps[0].unattended);
        assert_eq!(steps[0].why, "make the same request again with --idempotency-key k1");
        let setting = Setting { key: None, ..setting };
        let steps = printed("symptom = \"s\"\nretry = true", &Code::StoreFull.refuse("x"), &setting);
        assert_eq!(steps[0].why, "make the same request again");
    }
}
