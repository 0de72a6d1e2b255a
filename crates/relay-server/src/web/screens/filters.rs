//! How values become words in a template. Whatever somebody else wrote goes through `line` or `lines` first, which write out
//! what would not be seen; that it is no markup is the template's own doing.

use std::fmt::Display;

use askama::{Result, Values, filter_fn};
use relay_core::domain::plain;
use relay_core::domain::time::Timestamp;

use super::words;

/// A text of others on one line.
#[filter_fn]
pub fn line(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(plain::escape_line(&text.to_string()))
}

/// A text of others, with its line breaks.
#[filter_fn]
pub fn lines(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(plain::escape(&text.to_string()))
}

/// The beginning of a text of others, with its line breaks.
#[filter_fn]
pub fn beginning(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(plain::escape(&words::beginning(&text.to_string())))
}

/// A text as one part of an address, in the path or in the query.
#[filter_fn]
pub fn part(text: impl Display, _: &dyn Values) -> Result<String> {
    Ok(words::part(&text.to_string()))
}

/// How long ago, or in how long.
#[filter_fn]
pub fn age(at: &Timestamp, _: &dyn Values, now: &Timestamp) -> Result<String> {
    Ok(words::age(*at, *now))
}

/// An instant as people write it.
#[filter_fn]
pub fn moment(at: &Timestamp, _: &dyn Values) -> Result<String> {
    Ok(words::moment(*at))
}

/// Its time of day.
#[filter_fn]
pub fn clock(at: &Timestamp, _: &dyn Values) -> Result<String> {
    Ok(words::clock(*at))
}

/// A number with the word that it counts.
#[filter_fn]
pub fn counted(count: impl Display, _: &dyn Values, word: &str) -> Result<String> {
    Ok(words::counted(&count.to_string(), word))
}

/// A size in units that people know.
#[filter_fn]
pub fn size(bytes: &u64, _: &dyn Values) -> Result<String> {
    Ok(relay_core::domain::size::told(*bytes))
}
