//! Everything that happened, by kind, agent, thread, path and time.

use askama::Template;
use relay_core::domain::event::{Happened, Number};
use relay_core::verbs::look::{EventFilter, Events};

use super::events::Told;
use super::trouble::Trouble;
use super::{filters, text, words};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "history.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    filter: &'a EventFilter,
    kinds: Vec<Kind>,
    events: Vec<Told<'a>>,
    before: Option<Number>,
    /// As many as a whole page has.
    full: usize,
    /// The filter as a part of an address.
    query: String,
    is_filtered: bool,
    is_old: bool,
    /// What is wrong with the filter.
    trouble: Option<Trouble<'a>>,
}

struct Kind {
    kind: &'static str,
    words: String,
    is_chosen: bool,
}

/// `full` is how many events were asked for: a page with fewer may have been ended by impatience.
pub fn page(frame: &Frame<'_>, filter: &EventFilter, events: &Events, full: usize) -> String {
    let (before, events) = (events.before, events.events.iter().map(Told::of).collect());
    text(&Screen { before, events, full, ..screen(frame, filter) })
}

/// The form as it was filled in, with what is wrong with it.
pub fn refused(frame: &Frame<'_>, filter: &EventFilter, trouble: Trouble<'_>) -> String {
    text(&Screen { trouble: Some(trouble), ..screen(frame, filter) })
}

/// Without any events.
fn screen<'a>(frame: &'a Frame<'a>, filter: &'a EventFilter) -> Screen<'a> {
    let is_chosen = |kind: &str| filter.kind.iter().any(|chosen| chosen.eq_ignore_ascii_case(kind));
    let kind = |kind: &'static str| Kind { kind, words: kind.replace('_', " "), is_chosen: is_chosen(kind) };
    Screen {
        frame,
        filter,
        kinds: Happened::KINDS.map(kind).into(),
        events: Vec::new(),
        before: None,
        full: 0,
        query: query(filter),
        is_filtered: *filter != EventFilter::default(),
        is_old: frame.is_further(),
        trouble: None,
    }
}

fn query(filter: &EventFilter) -> String {
    let EventFilter { kind, by, thread, path, since, until } = filter;
    let one = |name: &'static str, value: &Option<String>| value.as_ref().map(|value| (name, value.clone()));
    let kinds = kind.iter().map(|kind| ("kind", kind.clone()));
    let rest = [one("by", by), one("thread", thread), one("path", path), one("since", since), one("until", until)];
    let parts = kinds.chain(rest.into_iter().flatten());
    parts.map(|(name, value)| format!("{name}={}", words::part(&value))).collect::<Vec<_>>().join("&")
}
