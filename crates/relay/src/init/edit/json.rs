//! Entries in a JSON file, with or without comments. Only what is missing or different is touched; an object that stands
//! on one line and gets an entry is given lines.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::Fault;
use super::hooks;

pub type Json = CstInputValue;

/// Where an entry names one of these, somebody reaches relay through a server, and meant that.
const ADDRESSES: [&str; 3] = ["url", "httpUrl", "serverUrl"];

/// One thing that relay wants to stand in a file.
#[derive(Debug, Clone)]
pub enum Wish {
    /// A member of an object, relay's by its name. What somebody added inside stays.
    Member { under: Vec<&'static str>, name: &'static str, value: Json },
    /// What the program asks of such a file whatever is in it: put in where it is missing.
    Needed { name: &'static str, value: Json },
    /// A word in a list of words; where there is no list, these stand before it.
    Word { under: Vec<&'static str>, name: &'static str, before: Vec<&'static str>, word: String },
    /// Groups of hooks by event, or hooks without groups; relay's by the command in them.
    Hooks { program: String, events: Vec<(&'static str, Json)> },
}

/// Comments and commas at the end are what some of the programs take; nothing else that is no JSON.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn parse(text: &str) -> Result<(CstRootNode, CstObject), Fault> {
    let root = CstRootNode::parse(text, &options()).map_err(|fault| format!("is no JSON: {fault}"))?;
    let object = root.object_value_or_create().ok_or("is JSON, and no object")?;
    Ok((root, object))
}

pub fn put(wishes: &[Wish], text: &str) -> Result<String, Fault> {
    let (root, object) = parse(text)?;
    for wish in wishes {
        wish.put(&object)?;
    }
    Ok(root.to_string())
}

pub fn take(wishes: &[Wish], text: &str) -> Result<String, Fault> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let (root, object) = parse(text)?;
    for wish in wishes {
        wish.take(&object);
    }
    Ok(root.to_string())
}

pub fn holds(wishes: &[Wish], text: &str) -> bool {
    let Ok(found) = jsonc_parser::parse_to_serde_value::<Value>(text, &options()) else { return false };
    wishes.iter().all(|wish| wish.holds(&found))
}

/// Nothing is left but what every such file has.
pub fn is_hollow(wishes: &[Wish], text: &str) -> bool {
    let Ok((root, object)) = parse(text) else { return false };
    let is_needed =
        |name: &str| wishes.iter().any(|wish| matches!(wish, Wish::Needed { name: needed, .. } if *needed == name));
    let has_comment = root.children().iter().chain(&object.children()).any(CstNode::is_comment);
    !has_comment && object.properties().iter().all(|member| member.decoded_name().is_some_and(|name| is_needed(&name)))
}

/// The value as the rest of relay reads JSON.
pub fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        Json::Number(number) => number.parse().map_or(Value::Null, Value::Number),
        Json::String(text) => Value::String(text.clone()),
        Json::Array(elements) => elements.iter().map(plain).collect(),
        Json::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
    }
}

impl Wish {
    fn put(&self, root: &CstObject) -> Result<(), Fault> {
        match self {
            Wish::Member { under, name, value } => put_member(&descend(root, under)?, name, value),
            Wish::Needed { name, value } => {
                if root.get(name).is_none() {
                    root.insert(0, name, value.clone());
                }
            }
            Wish::Word { under, name, before, word } => put_word(&descend(root, under)?, name, before, word)?,
            Wish::Hooks { program, events } => hooks::put(&descend(root, &["hooks"])?, program, events)?,
        }
        Ok(())
    }

    fn take(&self, root: &CstObject) {
        match self {
            Wish::Member { under, name, .. } => take_under(root, under, &|object| {
                let Some(member) = object.get(name) else { return };
                if !member.value().is_some_and(|value| is_reached_by_address(&value)) {
                    member.remove();
                }
            }),
            Wish::Needed { .. } => {}
            Wish::Word { under, name, before, word } => {
                take_under(root, under, &|object| take_word(object, name, before, word));
            }
            Wish::Hooks { program, .. } => take_under(root, &["hooks"], &|object| hooks::take(object, program)),
        }
    }

    fn holds(&self, root: &Value) -> bool {
        let at = |under: &[&str], name: &str| under.iter().chain([&name]).try_fold(root, |value, name| value.get(name));
        match self {
            Wish::Member { under, name, value } => at(under, name).is_some_and(|found| is_met(found, value)),
            Wish::Needed { name, .. } => root.get(name).is_some(),
            Wish::Word { under, name, word, .. } => at(under, name).is_some_and(|found| {
                found == word.as_str()
                    || found.as_array().is_some_and(|words| words.iter().any(|found| found == word.as_str()))
            }),
            Wish::Hooks { program, events } => {
                root.get("hooks").is_some_and(|found| hooks::holds(found, program, events))
            }
        }
    }
}

fn descend(root: &CstObject, under: &[&str]) -> Result<CstObject, Fault> {
    under.iter().try_fold(root.clone(), |object, name| {
        object.object_value_or_create(name).ok_or_else(|| format!("has something else than an object in `{name}`"))
    })
}

/// Takes something out of an object; what is empty after that, and was not before, goes too.
fn take_under(root: &CstObject, under: &[&str], take: &dyn Fn(&CstObject)) {
    let Some((name, rest)) = under.split_first() else { return take(root) };
    let Some(object) = root.object_value(name) else { return };
    let was_empty = object.properties().is_empty();
    take_under(&object, rest, take);
    if !was_empty && object.properties().is_empty() && !object.children().iter().any(CstNode::is_comment) {
        object.parent().map(CstNode::from).into_iter().for_each(CstNode::remove);
    }
}

/// What is there says what is wanted, or reaches relay through a server.
fn is_met(found: &Value, wanted: &Json) -> bool {
    covers(found, &plain(wanted)) || ADDRESSES.iter().any(|name| found.get(name).is_some())
}

/// Every member of a wanted object is there as it is wanted; others may be too.
fn covers(found: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(members) => {
            members.iter().all(|(name, value)| found.get(name).is_some_and(|found| covers(found, value)))
        }
        value => found == value,
    }
}

fn is_reached_by_address(node: &CstNode) -> bool {
    node.as_object().is_some_and(|object| ADDRESSES.iter().any(|name| object.get(name).is_some()))
}

fn put_member(object: &CstObject, name: &str, wanted: &Json) {
    let Some(member) = object.get(name) else {
        object.append(name, wanted.clone());
        return;
    };
    let found = member.value().and_then(|value| value.to_serde_value()).unwrap_or(Value::Null);
    match (member.object_value(), wanted) {
        _ if is_met(&found, wanted) => {}
        (Some(inner), Json::Object(members)) => {
            members.iter().for_each(|(name, value)| put_member(&inner, name, value));
        }
        _ => member.set_value(wanted.clone()),
    }
}

fn words(array: &CstArray) -> Vec<(CstNode, Option<String>)> {
    let word = |node: &CstNode| node.as_string_lit().and_then(|text| text.decoded_value().ok());
    array.elements().into_iter().map(|node| (node.clone(), word(&node))).collect()
}

fn put_word(object: &CstObject, name: &str, before: &[&str], word: &str) -> Result<(), Fault> {
    let Some(member) = object.get(name) else {
        let words = before.iter().copied().chain([word]).map(Json::from).collect();
        object.append(name, Json::Array(words));
        return Ok(());
    };
    if let Some(array) = member.array_value() {
        if !words(&array).iter().any(|(_, found)| found.as_deref() == Some(word)) {
            array.append(word.into());
        }
        return Ok(());
    }
    let one = member.value().and_then(|value| value.as_string_lit()).and_then(|text| text.decoded_value().ok());
    match one.ok_or_else(|| format!("has something else than a list in `{name}`"))? {
        one if one == word => {}
        one => member.set_value(Json::Array(vec![one.into(), word.into()])),
    }
    Ok(())
}

fn take_word(object: &CstObject, name: &str, before: &[&str], word: &str) {
    let Some(array) = object.array_value(name) else { return };
    let (ours, others): (Vec<_>, Vec<_>) =
        words(&array).into_iter().partition(|(_, found)| found.as_deref() == Some(word));
    if ours.is_empty() {
        return;
    }
    if others.iter().map(|(_, word)| word.as_deref()).eq(before.iter().copied().map(Some)) {
        object.get(name).into_iter().for_each(CstObjectProp::remove);
        return;
    }
    ours.into_iter().for_each(|(node, _)| node.remove());
}

#[cfg(test)]
mod tests;
