//! An event read out of the archive's files without relay: line by line, as somebody would who has nothing but a clone.

use std::collections::BTreeMap;

use serde_json::Value;

/// The files of a clone, by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What the archive says of an event.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// As it was hashed.
    pub payload: String,
    /// The salt in hex and the text, by field.
    pub texts: BTreeMap<String, (String, String)>,
}

/// An event has three lines of its own. A message keeps its texts in its letter, which is the one file in `threads` with its
/// number.
pub fn read(number: u64, files: &Files) -> Option<Told> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).ok();
    let own = text(files.get(&format!("events/{}/{}/{number}.json", number / 10_000, number / 100))?)?;
    let mut lines = own.lines();
    if lines.next()? != format!("{{\"number\":{number},") {
        return None;
    }
    let payload = lines.next()?.strip_prefix("\"payload\":")?.strip_suffix(',')?.to_owned();
    let kept = lines.next()?.strip_prefix("\"texts\":")?.strip_suffix('}')?;
    let kept: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(kept).ok()?;
    let name = format!("/{number}.md");
    let letter = files.iter().find(|(path, _)| path.starts_with("threads/") && path.ends_with(&name));
    let letter = letter.and_then(|(_, bytes)| text(bytes));
    let mut texts = BTreeMap::new();
    for (field, mut kept) in kept {
        let text = match kept.remove("text") {
            Some(text) => text,
            None => in_letter(letter.as_deref()?, &field)?,
        };
        texts.insert(field, (kept.remove("salt")?, text));
    }
    // What was erased has left no body behind.
    let is_bare = letter.as_deref().is_none_or(|letter| in_letter(letter, "body").is_none());
    (texts.contains_key("body") || is_bare).then_some(Told { payload, texts })
}

/// The subject is a line between the rules, the body all that comes after them.
fn in_letter(letter: &str, field: &str) -> Option<String> {
    let (matter, body) = letter.strip_prefix("---\n")?.split_once("\n---\n\n")?;
    match field {
        "subject" => {
            let quoted = matter.lines().find_map(|line| line.strip_prefix("subject: "))?;
            serde_json::from_str::<Value>(quoted).ok()?.as_str().map(str::to_owned)
        }
        "body" => body.strip_suffix('\n').map(str::to_owned),
        _ => None,
    }
}
