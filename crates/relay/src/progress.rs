//! How far a long command is, on a terminal, once it has taken a second.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use relay_core::domain::event::Number;
use relay_core::domain::time::Span;
use relay_core::store::Clock;

use crate::app::App;

/// Nobody misses a bar for what is done sooner.
const SOON: Span = Span::seconds(1);

pub struct Progress<'a> {
    app: &'a App,
    since: Span,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    pub fn new(app: &'a App) -> Self {
        Progress { app, since: app.clock.monotonic(), bar: None }
    }

    /// For one long step that cannot say how far it is.
    pub fn busy(&mut self, what: &str) {
        if !self.app.output.json && std::io::stderr().is_terminal() {
            let bar = ProgressBar::new_spinner().with_message(what.to_owned());
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            self.bar = Some(bar);
        }
    }

    pub fn at(&mut self, what: &str, done: Number, of: Number) {
        let is_shown = !self.app.output.json && std::io::stderr().is_terminal();
        let taken = Span::millis(self.app.clock.monotonic().as_millis() - self.since.as_millis());
        if self.bar.is_none() && is_shown && taken >= SOON {
            let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len}");
            self.bar = style.ok().map(|style| ProgressBar::new(of).with_style(style));
        }
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.set_length(of);
            bar.set_position(done);
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
