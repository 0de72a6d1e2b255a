//! A line of the history as it is shown: who, what, and the texts that belong to it.

use relay_core::domain::event::Number;
use relay_core::domain::time::Timestamp;
use relay_core::wire::v1::EventShape;
use serde_json::Value;

use super::words;

pub struct Told<'a> {
    pub number: Number,
    pub at: Timestamp,
    pub day: String,
    pub actor: &'a str,
    /// What it did, in a sentence: up to the thread that it names, and from there on.
    pub text: &'a str,
    pub after: &'a str,
    pub subject: Option<&'a str>,
    pub why: Option<&'a str>,
    pub thread: Option<&'a str>,
    /// Of claims that the sentence names by their numbers.
    pub patterns: Vec<&'a str>,
    pub is_chosen: bool,
}

impl<'a> Told<'a> {
    pub fn of(event: &'a EventShape) -> Self {
        let text = |field: &str| event.data.get(field).and_then(Value::as_str);
        let patterns = event.data.get("patterns").and_then(Value::as_array);
        // The sentence of a grant says its pattern, and those of a thread say which.
        let patterns = patterns.filter(|_| event.kind != "reservation_granted");
        let thread = text("thread").or(text("reason"));
        let named = thread.and_then(|thread| Some((place(&event.text, thread)?, thread.len())));
        let (before, after) = match named {
            Some((at, length)) => (&event.text[..at], &event.text[at + length..]),
            None => (event.text.as_str(), ""),
        };
        Told {
            number: event.number,
            at: event.at,
            day: words::day(event.at),
            actor: &event.actor,
            text: before,
            after,
            subject: text("subject"),
            why: text("why").or(text("task")),
            thread: thread.filter(|_| named.is_some()),
            patterns: patterns.into_iter().flatten().filter_map(Value::as_str).collect(),
            is_chosen: false,
        }
    }
}

/// Where a sentence names its thread: after "for", or at its end.
fn place(sentence: &str, thread: &str) -> Option<usize> {
    let reason = format!(" for {thread}");
    let is_whole = |at: &usize| !sentence[at + reason.len()..].starts_with(|c: char| c.is_ascii_alphanumeric());
    let after_for = sentence.rfind(&reason).filter(is_whole).map(|at| at + " for ".len());
    after_for.or_else(|| sentence.rfind(thread))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn a_thread_is_found_where_the_sentence_names_it() {
        let check = |sentence: &str, thread: &str, expected: &str| {
            let at = place(sentence, thread).map(|at| &sentence[..at]);
            assert_eq!(at, Some(expected), "{sentence}");
        };
        check("reserved src/** for 15 until 2026-11-15T01:00:00Z, against #57", "15", "reserved src/** for ");
        check("reserved for for bd-1 until 2026", "bd-1", "reserved for for ");
        check("sent #15 to Blue in 15", "15", "sent #15 to Blue in ");
        assert_eq!(place("left it", "bd-1"), None);
    }
}
