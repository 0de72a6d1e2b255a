//! Who was turned away, for whoever looks after the server: clients mostly say no more than that they failed.

use std::sync::{Mutex, PoisonError};

use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Span;
use relay_core::error::Refusal;

use crate::desk::Desk;

/// Anybody may stand at the door, so it is said no more often than this.
const BETWEEN: Span = Span::seconds(1);

#[derive(Default)]
pub struct Porter(Mutex<Told>);

#[derive(Default)]
struct Told {
    last: Option<Span>,
    since: u32,
}

impl Porter {
    pub fn turned_away(&self, desk: &Desk, path: &str, refusal: &Refusal) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = desk.monotonic();
        if told.last.is_some_and(|last| now.as_millis() - last.as_millis() < BETWEEN.as_millis()) {
            told.since += 1;
            return;
        }
        let more = if told.since > 0 { format!(" (and {} more before)", told.since) } else { String::new() };
        *told = Told { last: Some(now), since: 0 };
        let text: String = refusal.message.chars().take(200).collect();
        let path: String = path.chars().take(100).collect();
        desk.front().log(&escape_line(&format!(
            "{} turned away at {path}: {}: {text}{more}",
            desk.now(),
            refusal.code
        )));
    }
}
