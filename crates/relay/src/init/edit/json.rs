//! Entries in a JSON file, with or without comments. Only what is missing or different is touched; an object that stands
//! on one line and gets an entry is given lines.

use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

use super::gap::{self, Gap, How};
use super::strange::ADDRESSES;
use super::{Fault, hooks, is_ours, is_said, strange};

pub type Json = CstInputValue;

/// One thing that relay wants to stand in a file.
#[derive(Debug, Clone)]
pub enum Wish {
    /// A member of an object, relay's by its name. What somebody added inside stays.
    Member { under: Vec<&'static str>, name: &'static str, value: Json },
    /// What the program asks of such a file whatever is in it: put in where it is missing.
    Needed { name: &'static str, value: Json },
    /// A word in a list of words; where there is no list, these stand before it. Other words that name something in a folder of
    /// relay's are relay's too, and give way to this one.
    Word {
        under: Vec<&'static str>,
        name: &'static str,
        before: Vec<&'static str>,
        word: String,
        folder: Option<PathBuf>,
    },
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

/// What a file says, as the programs read it; nothing where it is empty.
pub fn read(text: &str) -> Result<Value, Fault> {
    let text = text.strip_prefix(super::MARK).unwrap_or(text);
    let found = jsonc_parser::parse_to_serde_value::<Option<Value>>(text, &options());
    found.map(Option::unwrap_or_default).map_err(|fault| format!("is no JSON: {fault}"))
}

pub fn gaps(wishes: &[Wish], text: &str) -> Result<Vec<Gap>, Fault> {
    let found = read(text)?;
    Ok(wishes.iter().flat_map(|wish| wish.gaps(&found)).collect())
}

pub fn is_in(wishes: &[Wish], text: &str) -> bool {
    let found = read(text).unwrap_or_default();
    wishes.iter().any(|wish| match wish {
        Wish::Member { under, name, .. } => at(&found, under, name).is_some(),
        Wish::Hooks { program, .. } => !hooks::handlers(&found, program).is_empty(),
        Wish::Needed { .. } | Wish::Word { .. } => false,
    })
}

fn at<'a>(root: &'a Value, under: &[&str], name: &str) -> Option<&'a Value> {
    under.iter().chain([&name]).try_fold(root, |value, name| value.get(name))
}

/// What is in relay's entries beyond what relay wants there.
pub fn strange(wishes: &[Wish], text: &str) -> Vec<String> {
    let Ok(root) = jsonc_parser::parse_to_serde_value::<Value>(text, &options()) else { return Vec::new() };
    let of = |wish: &Wish| {
        let Wish::Member { under, name, value } = wish else { return Vec::new() };
        let found = at(&root, under, name);
        let path = [under.as_slice(), &[*name]].concat().join(".");
        found.map(|found| strange::strange(&path, found, Some(&plain(value)))).unwrap_or_default()
    };
    wishes.iter().flat_map(of).collect()
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
            Wish::Word { under, name, before, word, folder } => {
                put_word(&descend(root, under)?, name, before, word, folder.as_deref())?;
            }
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
            Wish::Word { under, name, before, word, folder } => {
                take_under(root, under, &|object| take_word(object, name, before, word, folder.as_deref()));
            }
            Wish::Hooks { program, .. } => take_under(root, &["hooks"], &|object| hooks::take(object, program)),
        }
    }

    fn gaps(&self, root: &Value) -> Vec<Gap> {
        let called = |under: &[&str], name: &str| [under, &[name]].concat().join(".");
        let gap = match self {
            Wish::Hooks { program, events } => {
                return hooks::gaps(root.get("hooks").unwrap_or(&Value::Null), program, events);
            }
            Wish::Member { under, name, value } => {
                let found = at(root, under, name);
                let how = gap::of(found.is_some(), found.is_some_and(|found| is_met(found, value)));
                how.map(|how| Gap::vital(how, called(under, name)))
            }
            Wish::Needed { name, .. } => root.get(name).is_none().then(|| Gap::vital(How::Missing, *name)),
            Wish::Word { under, name, word, folder, .. } => {
                let is_in = at(root, under, name).is_some_and(|found| {
                    let words = found.as_array().map_or(std::slice::from_ref(found), Vec::as_slice);
                    is_said(words.iter().filter_map(Value::as_str), word, folder.as_deref())
                });
                (!is_in).then(|| Gap::minor(How::Missing, format!("{word} in {}", called(under, name))))
            }
        };
        gap.into_iter().collect()
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

fn put_word(object: &CstObject, name: &str, before: &[&str], word: &str, folder: Option<&Path>) -> Result<(), Fault> {
    let Some(member) = object.get(name) else {
        let words = before.iter().copied().chain([word]).map(Json::from).collect();
        object.append(name, Json::Array(words));
        return Ok(());
    };
    if let Some(array) = member.array_value() {
        let is_there = words(&array).iter().any(|(_, found)| found.as_deref() == Some(word));
        for (node, found) in words(&array) {
            if found.is_some_and(|found| found != word && is_ours(&found, word, folder)) {
                node.remove();
            }
        }
        if !is_there {
            array.append(word.into());
        }
        return Ok(());
    }
    let one = member.value().and_then(|value| value.as_string_lit()).and_then(|text| text.decoded_value().ok());
    match one.ok_or_else(|| format!("has something else than a list in `{name}`"))? {
        one if one == word => {}
        one if is_ours(&one, word, folder) => member.set_value(Json::Array(vec![word.into()])),
        one => member.set_value(Json::Array(vec![one.into(), word.into()])),
    }
    Ok(())
}

fn take_word(object: &CstObject, name: &str, before: &[&str], word: &str, folder: Option<&Path>) {
    let Some(array) = object.array_value(name) else { return };
    let (ours, others): (Vec<_>, Vec<_>) = words(&array)
        .into_iter()
        .partition(|(_, found)| found.as_deref().is_some_and(|found| is_ours(found, word, folder)));
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
