//! Hooks in a JSON file: lists by event, in which others have theirs. Relay's are known by their command, whichever release
//! wrote them, and are kept in their place.

use std::path::Path;

use jsonc_parser::cst::{CstArray, CstNode, CstObject, CstObjectProp};
use relay_core::domain::shell;
use serde_json::Value;

use super::Fault;
use super::gap::{self, Gap, How};
use super::json::{Json, plain};

/// How much of an element is relay's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    None,
    Part,
    All,
}

pub fn put(hooks: &CstObject, program: &str, events: &[(&'static str, Json)]) -> Result<(), Fault> {
    for member in hooks.properties() {
        let name = member.decoded_name().unwrap_or_default();
        if let Some(list) = member.array_value().filter(|_| !events.iter().any(|(event, _)| *event == name)) {
            take_from(hooks, &name, &list, program);
        }
    }
    for (event, wanted) in events {
        let list = hooks
            .array_value_or_create(event)
            .ok_or_else(|| format!("has something else than a list in `hooks.{event}`"))?;
        put_one(&list, program, wanted);
    }
    Ok(())
}

/// One element is relay's and is as it is wanted; what others put into it is not relay's to throw away.
fn put_one(list: &CstArray, program: &str, wanted: &Json) {
    let mut is_there = false;
    for node in list.elements() {
        let value = node.to_serde_value().unwrap_or(Value::Null);
        match share(&value, program) {
            Share::None => {}
            Share::Part => take_handlers(&node, program),
            Share::All if is_there => node.remove(),
            Share::All => {
                is_there = true;
                if let Some(old) = node.as_object().filter(|_| value != plain(wanted)) {
                    old.replace_with(wanted.clone());
                }
            }
        }
    }
    if !is_there {
        list.append(wanted.clone());
    }
}

pub fn take(hooks: &CstObject, program: &str) {
    for member in hooks.properties() {
        let name = member.decoded_name().unwrap_or_default();
        if let Some(list) = member.array_value() {
            take_from(hooks, &name, &list, program);
        }
    }
}

fn take_from(hooks: &CstObject, event: &str, list: &CstArray, program: &str) {
    let mut took = false;
    for node in list.elements() {
        match share(&node.to_serde_value().unwrap_or(Value::Null), program) {
            Share::None => {}
            Share::Part => take_handlers(&node, program),
            Share::All => {
                node.remove();
                took = true;
            }
        }
    }
    if took && list.elements().is_empty() && !list.children().iter().any(CstNode::is_comment) {
        hooks.get(event).into_iter().for_each(CstObjectProp::remove);
    }
}

fn take_handlers(group: &CstNode, program: &str) {
    let handlers = group.as_object().and_then(|group| group.array_value("hooks"));
    for handler in handlers.iter().flat_map(CstArray::elements) {
        if handler.to_serde_value().is_some_and(|value| is_ours(&value, program)) {
            handler.remove();
        }
    }
}

pub fn gaps(hooks: &Value, program: &str, events: &[(&'static str, Json)]) -> Vec<Gap> {
    let ours = |list: &Value| -> Vec<Value> {
        let list = list.as_array().into_iter().flatten();
        list.filter(|value| share(value, program) != Share::None).cloned().collect()
    };
    let wanted = events.iter().filter_map(|(event, wanted)| {
        let found = hooks.get(event).map(ours).unwrap_or_default();
        let how = gap::of(!found.is_empty(), found == [plain(wanted)])?;
        Some(Gap::vital(how, format!("hooks.{event}")))
    });
    let others = hooks.as_object().into_iter().flatten();
    let others = others.filter(|(event, list)| !events.iter().any(|(name, _)| name == event) && !ours(list).is_empty());
    wanted.chain(others.map(|(event, _)| Gap::minor(How::LeftOver, format!("hooks.{event}")))).collect()
}

/// What a program runs for a hook of relay's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// One line, through a shell.
    Shell(String),
    Words(Vec<String>),
}

impl Line {
    /// The program that it calls, and what it tells it.
    fn words(&self) -> Vec<String> {
        let words = match self {
            Line::Shell(line) => shell::words(line).unwrap_or_default(),
            Line::Words(words) => words.clone(),
        };
        // The shell makes place for the program.
        words.into_iter().skip_while(|word| word == "exec").collect()
    }

    pub fn program(&self) -> Option<String> {
        self.words().into_iter().next()
    }
}

/// One hook of relay's, where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Handler<'a> {
    pub event: &'a str,
    /// Which of the event's groups, and which hook in it.
    pub place: (usize, usize),
    pub matcher: Option<&'a str>,
    pub value: &'a Value,
}

impl Handler<'_> {
    pub fn line(&self) -> Option<Line> {
        line(self.value)
    }
}

/// Every hook of relay's in a file.
pub fn handlers<'a>(file: &'a Value, program: &str) -> Vec<Handler<'a>> {
    let events = file.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let groups = events.flat_map(|(event, list)| {
        let list = list.as_array().into_iter().flatten().enumerate();
        list.map(move |(group, element)| (event.as_str(), group, element))
    });
    let all = groups.flat_map(|(event, group, element)| {
        let matcher = element.get("matcher").and_then(Value::as_str);
        let handlers = match element.get("hooks").and_then(Value::as_array) {
            Some(handlers) => handlers.iter().collect(),
            None => vec![element],
        };
        handlers.into_iter().enumerate().map(move |(at, value)| Handler { event, place: (group, at), matcher, value })
    });
    all.filter(|handler| is_ours(handler.value, program)).collect()
}

fn share(element: &Value, program: &str) -> Share {
    let Some(handlers) = element.get("hooks").and_then(Value::as_array) else {
        return if is_ours(element, program) { Share::All } else { Share::None };
    };
    match handlers.iter().filter(|handler| is_ours(handler, program)).count() {
        0 => Share::None,
        count if count == handlers.len() => Share::All,
        _ => Share::Part,
    }
}

/// A handler that runs `relay hook`, in whichever of the forms that dialects have for a command.
fn is_ours(handler: &Value, program: &str) -> bool {
    let is_relay = |word: &str| word == program || Path::new(word).file_name().is_some_and(|name| name == "relay");
    line(handler).is_some_and(|line| match line.words().as_slice() {
        [first, second, ..] => is_relay(first) && second == "hook",
        _ => false,
    })
}

fn line(handler: &Value) -> Option<Line> {
    let text = |name: &str| handler.get(name).and_then(Value::as_str);
    let command = text("command").or_else(|| text("bash"))?.to_owned();
    Some(match handler.get("args").and_then(Value::as_array) {
        Some(arguments) => {
            let arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
            Line::Words(std::iter::once(command).chain(arguments).collect())
        }
        None => Line::Shell(command),
    })
}
