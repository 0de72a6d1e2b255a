//! Settings in a TOML file. A table of relay's own is put behind everything else and cut out again as lines; what is there already
//! is changed where it stands, inline or not.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Array, Document, DocumentMut, Item, RawString, Table, TableLike, Value};

use super::gap::{self, Gap, How};
use super::{Fault, is_ours, is_said, strange};

/// One thing that relay wants to stand in a file.
#[derive(Debug, Clone)]
pub enum Setting {
    /// A table, relay's by its name. What somebody added inside stays.
    Table { under: &'static str, name: &'static str, entries: Vec<(&'static str, Value)> },
    /// A word in a list of words. Other words that name something in this folder of relay's are relay's too, and give way to it.
    Word { under: &'static str, name: &'static str, word: String, folder: PathBuf },
}

pub fn put(settings: &[Setting], text: &str) -> Result<String, Fault> {
    parse(text)?;
    settings.iter().try_fold(
        text.to_owned(),
        |text, setting| {
            if holds(setting, &text) { Ok(text) } else { setting.put(&text) }
        },
    )
}

pub fn take(settings: &[Setting], text: &str) -> Result<String, Fault> {
    // The last first, so that each finds the empty lines that it was put behind.
    settings.iter().rev().try_fold(text.to_owned(), |text, setting| setting.take(&text))
}

pub fn gaps(settings: &[Setting], text: &str) -> Result<Vec<Gap>, Fault> {
    parse(text)?;
    // Read with another reader than the one that writes.
    let found = text.parse::<toml::Table>().map_err(|fault| format!("is no TOML: {}", fault.message()))?;
    Ok(settings.iter().filter_map(|setting| setting.gap(&found)).collect())
}

pub fn is_in(settings: &[Setting], text: &str) -> bool {
    let found = text.parse::<toml::Table>().unwrap_or_default();
    settings.iter().any(|setting| match setting {
        Setting::Table { under, name, .. } => found.get(*under).is_some_and(|outer| outer.get(name).is_some()),
        Setting::Word { .. } => false,
    })
}

fn holds(setting: &Setting, text: &str) -> bool {
    gaps(std::slice::from_ref(setting), text).is_ok_and(|gaps| gaps.is_empty())
}

/// What is in relay's tables beyond what relay wants there.
pub fn strange(settings: &[Setting], text: &str) -> Vec<String> {
    let Ok(root) = text.parse::<toml::Table>() else { return Vec::new() };
    let of = |setting: &Setting| {
        let Setting::Table { under, name, entries } = setting else { return Vec::new() };
        let json = |value: &toml::Value| serde_json::to_value(value).ok();
        let found = root.get(*under).and_then(|outer| outer.get(name)).and_then(json);
        let wanted =
            entries.iter().filter_map(|(key, value)| Some(((*key).to_owned(), json(&wanted(value)?)?))).collect();
        found.map(|found| strange::strange(&format!("{under}.{name}"), &found, Some(&wanted))).unwrap_or_default()
    };
    settings.iter().flat_map(of).collect()
}

/// The value as the other reader has it.
fn wanted(value: &Value) -> Option<toml::Value> {
    value.to_string().trim().parse().ok()
}

fn parse(text: &str) -> Result<Document<&str>, Fault> {
    Document::parse(text).map_err(|fault| {
        let line = fault.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        format!("is no TOML: line {line}: {}", fault.message().replace('\n', " "))
    })
}

/// The library writes one kind of line end; a file that has only the other kind gets its own back.
fn in_place(text: &str, edit: impl FnOnce(&mut DocumentMut) -> Result<(), Fault>) -> Result<String, Fault> {
    let returns = text.matches("\r\n").count();
    if returns != 0 && returns != text.matches('\n').count() {
        return Err("ends its lines in two ways, and one of them would be lost".to_owned());
    }
    let unix = text.replace("\r\n", "\n");
    let mut document = parse(&unix)?.into_mut();
    edit(&mut document)?;
    let written = document.to_string();
    Ok(if returns == 0 { written } else { written.replace('\n', "\r\n") })
}

impl Setting {
    fn under(&self) -> &'static str {
        let (Setting::Table { under, .. } | Setting::Word { under, .. }) = self;
        under
    }

    fn put(&self, text: &str) -> Result<String, Fault> {
        let document = parse(text)?;
        let outer = document.get(self.under());
        let is_new = match self {
            Setting::Table { name, .. } => outer.is_none_or(|outer| outer.is_table() && outer.get(name).is_none()),
            Setting::Word { .. } => outer.is_none(),
        };
        if is_new { Ok(behind(text, &self.alone()?)) } else { in_place(text, |document| self.put_into(document)) }
    }

    /// The setting as it stands in a file that has nothing else.
    fn alone(&self) -> Result<String, Fault> {
        let mut document = DocumentMut::new();
        self.put_into(&mut document)?;
        Ok(document.to_string())
    }

    fn put_into(&self, document: &mut DocumentMut) -> Result<(), Fault> {
        match self {
            Setting::Table { under, name, entries } => {
                let inner = table(table(document.as_table_mut(), under, true)?, name, false)?;
                entries.iter().for_each(|(key, value)| set(inner, key, value));
            }
            Setting::Word { under, name, word, folder } => {
                let outer = table(document.as_table_mut(), under, false)?;
                let list = outer.entry(name).or_insert_with(|| Item::Value(Array::new().into()));
                let list = list.as_array_mut();
                let list = list.ok_or_else(|| format!("has something else than a list in `{under}.{name}`"))?;
                take_words(list, word, folder);
                push(list, word);
            }
        }
        Ok(())
    }

    fn take(&self, text: &str) -> Result<String, Fault> {
        let document = parse(text)?;
        let Some(outer) = document.get(self.under()) else { return Ok(text.to_owned()) };
        match self {
            Setting::Table { under, name, .. } => match outer.get(name) {
                None => Ok(text.to_owned()),
                Some(inner) if inner.get("url").is_some() => Ok(text.to_owned()),
                Some(Item::Table(inner)) => Ok(cut(text, inner)),
                Some(_) => in_place(text, |document| {
                    drop(document[under].as_table_like_mut().and_then(|outer| outer.remove(name)));
                    Ok(())
                }),
            },
            Setting::Word { under, name, word, folder } => {
                let words = outer.get(name).and_then(Item::as_array);
                let is_ours = |found: &Value| found.as_str().is_some_and(|found| is_ours(found, word, Some(folder)));
                let is_in = words.is_some_and(|words| words.iter().any(is_ours));
                let is_all = words.is_some_and(|words| words.iter().all(is_ours))
                    && outer.as_table_like().is_some_and(|outer| outer.len() == 1);
                match outer {
                    _ if !is_in => Ok(text.to_owned()),
                    Item::Table(outer) if is_all => Ok(cut(text, outer)),
                    _ => in_place(text, |document| {
                        take_word(&mut document[under], name, word, folder);
                        Ok(())
                    }),
                }
            }
        }
    }

    fn gap(&self, root: &toml::Table) -> Option<Gap> {
        match self {
            Setting::Table { under, name, entries } => {
                let found = root.get(*under).and_then(|outer| outer.get(name));
                let has = |(key, value): &(&str, Value)| match (found.and_then(|found| found.get(key)), wanted(value)) {
                    (Some(found), Some(wanted)) => covers(found, &wanted),
                    _ => false,
                };
                // Somebody reaches relay through a server, and meant that.
                let is_reached = found.is_some_and(|found| found.get("url").is_some());
                let how = gap::of(found.is_some(), is_reached || entries.iter().all(has));
                how.map(|how| Gap::vital(how, format!("{under}.{name}")))
            }
            Setting::Word { under, name, word, folder } => {
                let list = root.get(*under).and_then(|outer| outer.get(name)).and_then(toml::Value::as_array);
                let is_in = is_said(list.into_iter().flatten().filter_map(toml::Value::as_str), word, Some(folder));
                (!is_in).then(|| Gap::minor(How::Missing, format!("{word} in {under}.{name}")))
            }
        }
    }
}

/// Every member of a wanted table is there as it is wanted; others may be too.
fn covers(found: &toml::Value, wanted: &toml::Value) -> bool {
    match wanted {
        toml::Value::Table(members) => {
            members.iter().all(|(name, value)| found.get(name).is_some_and(|found| covers(found, value)))
        }
        value => found == value,
    }
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn behind(text: &str, addition: &str) -> String {
    let newline = newline(text);
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => newline,
        _ => &newline.repeat(2),
    };
    format!("{text}{gap}{}", addition.replace('\n', newline))
}

/// The text without the lines of a table and of those inside it, and without the empty line before each.
fn cut(text: &str, table: &Table) -> String {
    let mut left = text.to_owned();
    let mut places = lines(text, table);
    places.sort_by_key(|place| std::cmp::Reverse(place.start));
    for place in places {
        let newline = newline(text);
        let gap = if text[..place.start].ends_with(&newline.repeat(2)) { newline.len() } else { 0 };
        left.replace_range(place.start - gap..place.end, "");
    }
    left
}

/// Where a table stands, from its header to the line of its last value, and the same for those inside it.
fn lines(text: &str, table: &Table) -> Vec<Range<usize>> {
    let values = table.iter().filter_map(|(_, item)| item.as_value()?.span());
    let inner = table.iter().filter_map(|(_, item)| item.as_table());
    let own = table.span().filter(|_| !table.is_implicit() && !table.is_dotted()).map(|header| {
        let end = values.map(|value| value.end).chain([header.end]).max().unwrap_or(header.end);
        let start = text[..header.start].rfind('\n').map_or(0, |at| at + 1);
        start..text[end..].find('\n').map_or(text.len(), |at| end + at + 1)
    });
    own.into_iter().chain(inner.flat_map(|inner| lines(text, inner))).collect()
}

/// A table in a table, made where there is none. One that only holds others needs no line of its own.
fn table<'a>(outer: &'a mut dyn TableLike, name: &str, only_holds: bool) -> Result<&'a mut dyn TableLike, Fault> {
    let made = || {
        let mut table = Table::new();
        table.set_implicit(only_holds);
        Item::Table(table)
    };
    let item = outer.entry(name).or_insert_with(made);
    item.as_table_like_mut().ok_or_else(|| format!("has something else than a table in `{name}`"))
}

/// Sets what is missing or different; in a table, member by member.
fn set(table: &mut dyn TableLike, key: &str, wanted: &Value) {
    let found = table.get(key).and_then(Item::as_value).map(plain);
    match (table.get_mut(key).and_then(Item::as_table_like_mut), wanted) {
        _ if found == Some(plain(wanted)) => {}
        (Some(inner), Value::InlineTable(members)) => {
            members.iter().for_each(|(key, value)| set(inner, key, value));
        }
        _ => drop(table.insert(key, Item::Value(wanted.clone()))),
    }
}

/// The value without the space around it.
fn plain(value: &Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    if let Some(list) = value.as_array_mut() {
        list.fmt();
    }
    value.to_string()
}

fn text(raw: Option<&RawString>) -> String {
    raw.and_then(RawString::as_str).unwrap_or_default().to_owned()
}

/// A list that has a line for each gets one more, behind what is said of the last.
fn push(list: &mut Array, word: &str) {
    let Some(last) = list.len().checked_sub(1).and_then(|at| list.get_mut(at)) else { return list.push(word) };
    let (before, after) = (text(last.decor().prefix()), text(last.decor().suffix()));
    let Some((_, indent)) = before.rsplit_once('\n') else { return list.push(word) };
    last.decor_mut().set_suffix("");
    let said = format!("{after}{}", text(Some(list.trailing())));
    let (said, rest) = said.rsplit_once('\n').unwrap_or((&said, ""));
    list.set_trailing(format!("\n{rest}"));
    list.push_formatted(Value::from(word).decorated(format!("{said}\n{indent}"), ""));
}

fn take_word(outer: &mut Item, name: &str, word: &str, folder: &Path) {
    let Some(outer) = outer.as_table_like_mut() else { return };
    let Some(list) = outer.get_mut(name).and_then(Item::as_array_mut) else { return };
    take_words(list, word, folder);
    if list.is_empty() {
        outer.remove(name);
    }
}

fn take_words(list: &mut Array, word: &str, folder: &Path) {
    let is_ours = |value: &Value| value.as_str().is_some_and(|found| is_ours(found, word, Some(folder)));
    let place = |list: &Array| list.iter().position(is_ours);
    while let Some(at) = place(list) {
        let taken = list.remove(at);
        // What is said of the one before stands in front of this one.
        let (said, after) = (text(taken.decor().prefix()), text(taken.decor().suffix()));
        let said = said.rsplit_once('\n').map_or("", |(said, _)| said);
        match list.get_mut(at).map(Value::decor_mut) {
            Some(next) => next.set_prefix(format!("{said}{}", text(next.prefix()))),
            None => list.set_trailing(format!("{said}{after}{}", text(Some(list.trailing())))),
        }
    }
}

#[cfg(test)]
mod tests;
