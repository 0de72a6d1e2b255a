//! What leaves the program. Text for people, exactly one line of JSON for programs, and quiet when nobody reads.

use std::io::{self, Write};

use serde::Serialize;

/// Where answers go. Colours leave only where a terminal shows them, and never with `NO_COLOR`.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

/// Whether the reader is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Out,
    /// The pipe was closed: nobody saw it.
    Unseen,
}

impl Output {
    pub fn line(self, value: &impl Serialize) -> Written {
        let text = serde_json::to_string(value)
            .unwrap_or_else(|fault| format!("{{\"relay\":1,\"ok\":false,\"error\":\"{fault}\"}}"));
        self.exact(&format!("{text}\n"))
    }

    /// For programs: byte for byte. What strips colours from a pipe would strip other characters of a body with them.
    pub fn exact(self, text: &str) -> Written {
        let mut out = io::stdout().lock();
        seen(&out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    pub fn text(self, text: &str) -> Written {
        let mut out = anstream::stdout().lock();
        seen(&out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    pub fn complain(self, text: &str) {
        let mut out = anstream::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}

fn seen(result: &io::Result<()>) -> Written {
    match result {
        Ok(()) => Written::Out,
        Err(_) => Written::Unseen,
    }
}
