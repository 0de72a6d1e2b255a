//! What leaves the program. Text for people, exactly one line of JSON for programs, and quiet when nobody reads.

use std::io::{self, ErrorKind, Write};

use owo_colors::OwoColorize;
use relay_core::error::Kind;
use serde::Serialize;

/// Where answers go. Colours leave only where a terminal shows them, and never with `NO_COLOR`.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub json: bool,
}

/// Whether somebody could read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Out,
    /// The pipe was closed: nobody saw it, and nobody wants to.
    Unseen,
    /// It could not be written, and that was said.
    Lost,
}

impl Written {
    /// Of a command that has nothing else to complain of.
    pub fn status(self) -> u8 {
        match self {
            Written::Out | Written::Unseen => 0,
            Written::Lost => Kind::Busy.exit_status(),
        }
    }
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
        self.written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    pub fn text(self, text: &str) -> Written {
        let mut out = anstream::stdout().lock();
        self.written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// What became of something that was to go to the standard output. A reader that has seen enough is no fault.
    pub fn written(self, result: io::Result<()>) -> Written {
        match result {
            Ok(()) => Written::Out,
            Err(fault) if fault.kind() == ErrorKind::BrokenPipe => Written::Unseen,
            Err(fault) => {
                let lost = format!("the answer cannot be written to the standard output: {fault}");
                let stands = "what this command has done stands, and `relay log` shows it";
                self.complain(&format!("{} {lost}; {stands}\n", "Error:".red().bold()));
                Written::Lost
            }
        }
    }

    pub fn complain(self, text: &str) {
        let mut out = anstream::stderr().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
}
