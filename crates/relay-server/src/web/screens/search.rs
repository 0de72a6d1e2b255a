//! Search over all messages, with the words marked where a subject has them.

use std::collections::HashSet;

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::domain::plain;
use relay_core::wire::v1::MessageShape;

use super::{filters, text};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "search.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    words: &'a str,
    found: Vec<Hit<'a>>,
    before: Option<Number>,
    is_old: bool,
}

struct Hit<'a> {
    message: &'a MessageShape,
    /// The subject in pieces, each a word that was looked for or not.
    pieces: Vec<(bool, String)>,
}

impl Hit<'_> {
    fn is_in_subject(&self) -> bool {
        self.pieces.iter().any(|(is_hit, _)| *is_hit)
    }
}

/// Nothing was looked for where the words are empty.
pub fn page(frame: &Frame<'_>, words: &str, found: &[MessageShape], before: Option<Number>) -> String {
    let wanted: HashSet<String> = runs(words).filter(|run| is_word(run)).map(str::to_lowercase).collect();
    let hit = |message| Hit { message, pieces: pieces(message, &wanted) };
    let found = found.iter().map(hit).collect();
    text(&Screen { frame, words: words.trim(), found, before, is_old: frame.is_further() })
}

fn pieces(message: &MessageShape, wanted: &HashSet<String>) -> Vec<(bool, String)> {
    match message.subject.as_deref().map(plain::escape_line) {
        Some(subject) => runs(&subject).map(|run| (wanted.contains(&run.to_lowercase()), run.to_owned())).collect(),
        None => vec![(false, "(erased)".to_owned())],
    }
}

/// A text as words and what stands between them.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_letter = rest.chars().next()?.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_letter).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(run)
    })
}

fn is_word(run: &str) -> bool {
    run.chars().next().is_some_and(char::is_alphanumeric)
}
