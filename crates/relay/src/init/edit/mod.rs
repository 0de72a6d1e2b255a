//! What relay puts into a file that is not its own, as functions from text to text: put in, find again, take out.
//!
//! Everything else in the text stays as it is: comments, order, indentation, the ends of lines, and the mark at the
//! beginning that some editors write.

mod block;
mod gap;
mod hooks;
mod json;
mod strange;
mod toml;
mod whole;

use std::path::Path;

pub use block::Block;
pub use gap::{Gap, How};
pub use hooks::{Handler, Line, handlers};
pub use json::{Json, Wish, read};
pub use toml::Setting;
pub use whole::Whole;

/// What some editors put before the first character.
const MARK: char = '\u{feff}';

/// What is wrong with a text, as the end of a sentence that begins with the file.
pub type Fault = String;

#[derive(Debug, Clone)]
pub enum Edit {
    Json(Vec<Wish>),
    Toml(Vec<Setting>),
    Block(Block),
    Whole(Whole),
}

impl Edit {
    /// The text with relay's part in it; the same text where it is there already.
    pub fn put(&self, text: &str) -> Result<String, Fault> {
        around_mark(text, |text| match self {
            Edit::Json(wishes) => json::put(wishes, text),
            Edit::Toml(settings) => toml::put(settings, text),
            Edit::Block(block) => block.put(text),
            Edit::Whole(whole) => whole.put(text),
        })
    }

    /// The text without relay's part, whichever relay wrote it.
    pub fn take(&self, text: &str) -> Result<String, Fault> {
        around_mark(text, |text| match self {
            Edit::Json(wishes) => json::take(wishes, text),
            Edit::Toml(settings) => toml::take(settings, text),
            Edit::Block(block) => block.take(text),
            Edit::Whole(whole) => whole.take(text),
        })
    }

    /// Whether the text says what relay wants it to say. It is read with another reader than the one that wrote it.
    pub fn holds(&self, text: &str) -> bool {
        self.gaps(text).is_ok_and(|gaps| gaps.iter().all(|gap| gap.how == How::LeftOver))
    }

    /// Where it does not.
    pub fn gaps(&self, text: &str) -> Result<Vec<Gap>, Fault> {
        let text = text.strip_prefix(MARK).unwrap_or(text);
        match self {
            Edit::Json(wishes) => json::gaps(wishes, text),
            Edit::Toml(settings) => toml::gaps(settings, text),
            Edit::Block(block) => {
                // Somebody's own words may do as well.
                let is_as_wanted = block.put(text)? == text;
                let how = gap::of(is_as_wanted || block.take(text)? != text, is_as_wanted);
                Ok(how.map(|how| Gap::minor(how, "relay's block")).into_iter().collect())
            }
            Edit::Whole(whole) => Ok(whole.gap(text).into_iter().collect()),
        }
    }

    /// Whether there is anything in it that is relay's by its name, or was.
    pub fn is_in(&self, text: &str) -> bool {
        match self {
            Edit::Json(wishes) => json::is_in(wishes, text),
            Edit::Toml(settings) => toml::is_in(settings, text),
            Edit::Block(block) => block.take(text).is_ok_and(|without| without != text),
            Edit::Whole(_) => self.take(text).as_deref() != Ok(text),
        }
    }

    /// What relay's own entries say beyond what relay writes.
    pub fn strange(&self, text: &str) -> Vec<String> {
        let text = text.strip_prefix(MARK).unwrap_or(text);
        match self {
            Edit::Json(wishes) => json::strange(wishes, text),
            Edit::Toml(settings) => toml::strange(settings, text),
            Edit::Block(_) | Edit::Whole(_) => Vec::new(),
        }
    }

    /// Whether nothing of anybody's is left in a file that relay made.
    pub fn is_hollow(&self, text: &str) -> bool {
        let text = text.strip_prefix(MARK).unwrap_or(text);
        match self {
            Edit::Json(wishes) => json::is_hollow(wishes, text),
            Edit::Toml(_) | Edit::Block(_) | Edit::Whole(_) => text.trim().is_empty(),
        }
    }
}

/// A word in a list that relay put there: this one, or any that names something in this folder of relay's.
fn is_ours(found: &str, word: &str, folder: Option<&Path>) -> bool {
    found == word || folder.is_some_and(|folder| Path::new(found).starts_with(folder))
}

/// Whether the word is among these, and no other of relay's.
fn is_said<'a>(words: impl Iterator<Item = &'a str>, word: &str, folder: Option<&Path>) -> bool {
    let mut ours = words.filter(|found| is_ours(found, word, folder)).peekable();
    ours.peek().is_some() && ours.all(|found| found == word)
}

fn around_mark(text: &str, edit: impl FnOnce(&str) -> Result<String, Fault>) -> Result<String, Fault> {
    match text.strip_prefix(MARK) {
        Some(rest) => edit(rest).map(|rest| format!("{MARK}{rest}")),
        None => edit(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_at_the_beginning_stays() {
        let edit = Edit::Block(Block::new("text"));
        let with = edit.put("\u{feff}# Title\n").unwrap_or_default();
        assert!(with.starts_with("\u{feff}# Title\n") && edit.holds(&with), "{with:?}");
        assert_eq!(edit.take(&with).as_deref(), Ok("\u{feff}# Title\n"));
    }
}
