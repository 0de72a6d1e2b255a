//! What a commit of the archive says: the events in it, one line each, and how far the archive has come.

use std::fmt::Write;

use super::Entry;
use crate::domain::event::{Happened, Number};
use crate::domain::plain::escape_line;
use crate::domain::telling::tell;

/// How far the archive has come: the last event in it, and the chain's hash at that event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub number: Number,
    pub chain: String,
}

const NUMBER: &str = "Relay-Number";
const CHAIN: &str = "Relay-Chain";

/// The message of the commit that holds these events.
pub fn message(entries: &[Entry], chain: &str) -> String {
    let sentence = |entry: &Entry| {
        escape_line(&format!("#{} {} {}", entry.number, entry.payload.actor, told(&entry.payload.what)))
    };
    let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
        return String::new();
    };
    let mut text = if entries.len() == 1 {
        format!("{}\n", sentence(first))
    } else {
        let lines: Vec<String> = entries.iter().map(sentence).collect();
        format!("#{} to #{}\n\n{}\n", first.number, last.number, lines.join("\n"))
    };
    let _ = write!(text, "\n{NUMBER}: {}\n{CHAIN}: {chain}\n", last.number);
    text
}

impl Cursor {
    /// Reads the trailer of a commit's message; none when relay did not write it.
    pub fn read(message: &str) -> Option<Cursor> {
        let trailer = message.trim_end().rsplit("\n\n").next()?;
        let value = |name: &str| trailer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let chain = value(CHAIN).filter(|chain| chain.len() == 64 && chain.bytes().all(|b| b.is_ascii_hexdigit()))?;
        Some(Cursor { number: value(NUMBER)?.parse().ok()?, chain: chain.to_owned() })
    }
}

/// A receipt without what it is for, and a copy without its recipient: they would betray a blind one.
fn told(what: &Happened) -> String {
    match what {
        Happened::MailSurfaced { messages, .. } if !messages.is_empty() => "was shown mail".to_owned(),
        Happened::MailRead { .. } => "read mail".to_owned(),
        Happened::MailAcked { .. } => "acknowledged mail".to_owned(),
        Happened::HeldLapsed { message, .. } => format!("gave up delivering a copy of #{message}"),
        other => tell(other),
    }
}
