//! The archive: the history as files in git, for people to read and for relay to rebuild a store from.
//!
//! What stands in it is a pure function of the history: the same events with the same texts give the same files, however
//! they were gathered into commits. Writing and reading the repository is another crate's.

mod commit;
mod readable;

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::value::RawValue;

pub use commit::{Cursor, message};
use readable::Readable;

use crate::domain::event::{Happened, Number, Payload, hex, text_hash};
use crate::domain::name::Party;
use crate::domain::plain::is_plain;

/// An event with what is kept beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub number: Number,
    /// The payload as it was hashed, byte for byte.
    pub canonical: String,
    pub payload: Payload,
    /// By field; an erased one is absent.
    pub texts: BTreeMap<String, KeptText>,
    pub erased: Option<Erased>,
}

/// A text with the salt of the hash by which its event names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptText {
    pub salt: Vec<u8>,
    pub text: String,
}

/// Who erased texts of an event, and by which event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    pub by: Party,
    pub number: Number,
    pub why: Option<String>,
    /// Only the subject, which was another message's.
    pub only_subject: bool,
}

/// One file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: String,
    pub bytes: Vec<u8>,
}

/// Why a file of the archive cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Unreadable {
    pub path: String,
    pub why: String,
}

impl Entry {
    /// The event's own file.
    pub fn file(&self) -> File {
        let number = self.number;
        let texts: Vec<String> = self.texts.iter().map(|(field, text)| self.kept(field, text)).collect();
        let json =
            format!("{{\"number\":{number},\n\"payload\":{},\n\"texts\":{{{}}}}}\n", self.canonical, texts.join(","));
        File { path: path(number), bytes: json.into_bytes() }
    }

    /// The file for people, where the event has one.
    pub fn readable(&self) -> Option<File> {
        Readable::of(self).map(|readable| readable.file())
    }

    /// A message's texts stand in its readable file, once and not twice; the event's own keeps their salts.
    fn kept(&self, field: &str, text: &KeptText) -> String {
        let (field, salt) = (quoted(field), hex(&text.salt));
        if self.is_message() {
            return format!("{field}:{{\"salt\":\"{salt}\"}}");
        }
        format!("{field}:{{\"salt\":\"{salt}\",\"text\":{}}}", quoted(&text.text))
    }

    /// What is wrong with the event as it stands, apart from its place in the chain.
    pub fn faults(&self) -> Vec<String> {
        let is_erased = |field: &str| {
            self.erased.as_ref().is_some_and(|erased| field == "subject" || field == "body" && !erased.only_subject)
        };
        let named = self.payload.what.texts();
        let missing = named.iter().filter(|(field, _)| !self.texts.contains_key(*field) && !is_erased(field));
        let missing = missing.map(|(field, _)| format!("the {field} of #{} is missing", self.number));
        self.wrong().into_iter().chain(missing).collect()
    }

    /// The same for what is there.
    pub fn wrong(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if serde_json::to_string(&self.payload).ok().as_deref() != Some(&self.canonical) {
            faults.push(format!("the payload of #{} is not canonical", self.number));
        }
        let named = self.payload.what.texts();
        for (field, hash) in &named {
            if self.texts.get(*field).is_some_and(|kept| text_hash(&kept.salt, &kept.text) != **hash) {
                faults.push(format!("the {field} of #{} is not the one that it names", self.number));
            }
        }
        let unnamed = self.texts.keys().filter(|field| !named.iter().any(|(known, _)| known == field));
        faults.extend(unnamed.map(|field| format!("#{} names no {field}, and there is one", self.number)));
        faults
    }

    pub fn is_message(&self) -> bool {
        matches!(self.payload.what, Happened::MessageSent { .. })
    }

    /// Reads an event back; `readable` fetches the file of this path.
    pub fn read(
        number: Number,
        bytes: &[u8],
        readable: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Result<Entry, Unreadable> {
        let unreadable = |why: String| Unreadable { path: path(number), why };
        let stored: Stored<'_> = serde_json::from_slice(bytes).map_err(|fault| unreadable(fault.to_string()))?;
        if stored.number != number {
            return Err(unreadable(format!("it is the file of #{}", stored.number)));
        }
        let canonical = stored.payload.get().to_owned();
        let payload: Payload = serde_json::from_str(&canonical).map_err(|fault| unreadable(fault.to_string()))?;
        let mut entry = Entry { number, canonical, payload, texts: BTreeMap::new(), erased: None };
        let in_readable = match Readable::path_of(&entry).filter(|_| entry.is_message() && !stored.texts.is_empty()) {
            Some(path) => {
                let missing = || Unreadable { path: path.clone(), why: "it is missing".to_owned() };
                let bytes = readable(&path).ok_or_else(missing)?;
                Some(readable::texts(&bytes).map_err(|why| Unreadable { path: path.clone(), why })?)
            }
            None => None,
        };
        for (field, kept) in stored.texts {
            let found = in_readable.as_ref().and_then(|texts| texts.get(&field).cloned());
            let text = kept.text.or(found).ok_or_else(|| unreadable(format!("the text of {field:?} is missing")))?;
            let salt = unhex(&kept.salt).ok_or_else(|| unreadable(format!("the salt of {field:?} is not hex")))?;
            entry.texts.insert(field, KeptText { salt, text });
        }
        Ok(entry)
    }
}

/// Where an event's own file stands.
pub fn path(number: Number) -> String {
    format!("events/{}/{}/{number}.json", number / 10_000, number / 100)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored<'a> {
    number: Number,
    #[serde(borrow)]
    payload: &'a RawValue,
    texts: BTreeMap<String, StoredText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredText {
    salt: String,
    text: Option<String>,
}

/// A text as JSON writes it, which is also how YAML reads it. What could steer a terminal is written out, and read back as it
/// was.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in serde_json::Value::from(text).to_string().chars() {
        if is_plain(c) {
            quoted.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                let _ = write!(quoted, "\\u{unit:04x}");
            });
        }
    }
    quoted
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::try_from(digit(*pair.first()?)? * 16 + digit(*pair.get(1)?)?).ok()).collect()
}

#[cfg(test)]
mod tests;
