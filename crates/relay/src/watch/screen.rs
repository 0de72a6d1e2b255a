//! The terminal, which is given back as it was however this ends: by a key, an error, a signal or a panic.

use std::io;

use ratatui::backend::Backend;
use ratatui::{DefaultTerminal, Frame};
use rustix::process::{Signal, getpid, kill_process};

pub struct Screen {
    terminal: Option<DefaultTerminal>,
}

impl Screen {
    /// Takes the terminal. A panic anywhere gives it back before it says what broke.
    pub fn enter() -> io::Result<Self> {
        // Dropped where a later step fails, it undoes the earlier ones.
        let mut screen = Screen { terminal: None };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        self.terminal.insert(ratatui::try_init()?).backend_mut().clear()
    }

    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        match &mut self.terminal {
            Some(terminal) => terminal.draw(draw).map(drop),
            None => Err(io::Error::other("the screen was left")),
        }
    }

    /// Stops like any program that the terminal's owner puts aside, and takes the terminal again when it goes on.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        kill_process(getpid(), Signal::TSTP)?;
        self.take()
    }

    fn leave(&mut self) {
        if let Some(mut terminal) = self.terminal.take() {
            let _ = terminal.show_cursor();
        }
        let _ = ratatui::try_restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}
