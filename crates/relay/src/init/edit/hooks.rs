//! Hooks in a JSON file: lists by event, in which others have theirs. Relay's are known by their command, whichever release
//! wrote them, and are kept in their place.

use std::path::Path;

use jsonc_parser::cst::{CstArray, CstNode, CstObject, CstObjectProp};
use relay_core::domain::shell;
use serde_json::Value;

use super::Fault;
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

pub fn holds(hooks: &Value, program: &str, events: &[(&'static str, Json)]) -> bool {
    let list = |event: &str| hooks.get(event).and_then(Value::as_array).cloned().unwrap_or_default();
    let ours = |event: &str| list(event).into_iter().filter(|value| share(value, program) != Share::None).collect();
    events.iter().all(|(event, wanted)| {
        let found: Vec<Value> = ours(event);
        found == [plain(wanted)]
    })
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
    let text = |name: &str| handler.get(name).and_then(Value::as_str);
    let Some(command) = text("command").or_else(|| text("bash")) else { return false };
    let words = match handler.get("args").and_then(Value::as_array) {
        Some(arguments) => {
            let arguments = arguments.iter().filter_map(Value::as_str).map(str::to_owned);
            Some(std::iter::once(command.to_owned()).chain(arguments).collect())
        }
        None => shell::words(command),
    };
    let is_relay = |word: &str| word == program || Path::new(word).file_name().is_some_and(|name| name == "relay");
    words.is_some_and(|words: Vec<String>| match words.as_slice() {
        [exec, first, second, ..] if exec == "exec" => is_relay(first) && second == "hook",
        [first, second, ..] => is_relay(first) && second == "hook",
        _ => false,
    })
}
