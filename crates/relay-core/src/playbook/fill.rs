//! Placeholders become values, and values become words of a command.

use serde_json::{Map, Value};

use crate::domain::shell;

/// Arguments without a flag of their own, by verb.
const POSITIONAL: [&str; 4] = ["patterns", "ids", "what", "code"];

/// `{name?}`: left out where there is no such value.
pub fn is_optional(value: &toml::Value) -> bool {
    value.as_str().is_some_and(|text| text.ends_with("?}"))
}

/// A whole placeholder keeps the type of its value; one inside a text, or one word of several, becomes text. None where a
/// value is missing.
pub fn value(template: &toml::Value, lookup: &impl Fn(&str) -> Option<Value>) -> Option<Value> {
    Some(match template {
        toml::Value::String(template) => match template.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) if !name.contains(['{', '}']) => lookup(name)?,
            _ => Value::from(text(template, lookup)?),
        },
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Array(values) => {
            let word = |value: &toml::Value| Some(Value::from(text(value.as_str()?, lookup)?));
            Value::Array(values.iter().map(word).collect::<Option<_>>()?)
        }
        toml::Value::Table(table) => {
            let mut fields = Map::new();
            for (name, template) in table {
                match value(template, lookup) {
                    Some(value) => fields.insert(name.clone(), value),
                    None if is_optional(template) => continue,
                    None => return None,
                };
            }
            Value::Object(fields)
        }
        _ => return None,
    })
}

/// A text with every placeholder filled in; none where a value is missing. `{name?}` is empty then.
pub fn text(template: &str, lookup: &impl Fn(&str) -> Option<Value>) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, tail) = after.split_once('}')?;
        out.push_str(before);
        match lookup(name) {
            Some(value) => out.push_str(&words(&value).join(", ")),
            None if name.ends_with('?') => {}
            None => return None,
        }
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

/// `relay VERB positionals flags`, the project and the agent last, as in the answers people know.
pub fn argv(verb: &str, args: &Map<String, Value>) -> Vec<String> {
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

pub fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(values) => values.iter().flat_map(words).collect(),
        Value::String(text) => vec![text.clone()],
        Value::Null => Vec::new(),
        other => vec![other.to_string()],
    }
}
