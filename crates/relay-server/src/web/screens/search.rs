//! Search over everything, with the words marked where a message has them.

use askama::Template;
use relay_core::domain::plain;
use relay_core::domain::words::Words;
use relay_core::verbs::look::Search;
use relay_core::wire::v1::MessageShape;

use super::{filters, text};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "search.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    words: &'a str,
    search: &'a Search,
    found: Vec<Hit<'a>>,
    is_old: bool,
}

impl Screen<'_> {
    fn is_empty(&self) -> bool {
        let Search { agents, threads, reservations, .. } = self.search;
        self.found.is_empty() && agents.is_empty() && threads.is_empty() && reservations.is_empty()
    }
}

struct Hit<'a> {
    message: &'a MessageShape,
    subject: Marked,
    excerpt: Marked,
}

/// A text in pieces, each with whether it was looked for.
type Marked = Vec<(bool, String)>;

/// Nothing was looked for where the words are empty.
pub fn page(frame: &Frame<'_>, words: &str, search: &Search) -> String {
    let wanted = Words::of(words);
    let mark = |text: &str| -> Marked {
        let text = plain::escape_line(text);
        wanted.mark(&text).map(|(is_wanted, run)| (is_wanted, run.to_owned())).collect()
    };
    let hit = |message| Hit { message, subject: subject(message, mark), excerpt: excerpt(message, mark) };
    let found = search.found.iter().map(hit).collect();
    text(&Screen { frame, words: words.trim(), search, found, is_old: frame.is_further() })
}

fn subject(message: &MessageShape, mark: impl Fn(&str) -> Marked) -> Marked {
    match message.subject.as_deref() {
        Some("") => vec![(false, "(no subject)".to_owned())],
        Some(subject) => mark(subject),
        None => Marked::new(),
    }
}

fn excerpt(message: &MessageShape, mark: impl Fn(&str) -> Marked) -> Marked {
    message.excerpt.as_deref().map(mark).unwrap_or_default()
}
