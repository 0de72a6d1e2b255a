//! How far a long command is, on a terminal, once it has taken a second.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use relay_core::domain::event::Number;
use relay_core::domain::time::Span;
use relay_core::store::Clock;

use crate::app::App;

/// What is over sooner needs no bar.
const PATIENCE: Span = Span::seconds(1);

pub struct Progress<'a> {
    app: &'a App,
    /// Whether somebody looks on.
    is_watched: bool,
    began: Span,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    pub fn new(app: &'a App) -> Self {
        let is_watched = !app.output.json && std::io::stderr().is_terminal();
        Progress { app, is_watched, began: app.clock.monotonic(), bar: None }
    }

    /// For one long step that cannot say how far it is.
    pub fn busy(&mut self, phase: &str) {
        if self.is_watched {
            let bar = ProgressBar::new_spinner().with_message(phase.to_owned());
            bar.enable_steady_tick(std::time::Duration::from_millis(100));
            self.bar = Some(bar);
        }
    }

    pub fn at(&mut self, phase: &str, done: Number, of: Number) {
        if self.bar.is_none() && self.is_watched {
            let took = self.app.clock.monotonic().as_millis() - self.began.as_millis();
            self.bar = (took >= PATIENCE.as_millis()).then(bar);
        }
        if let Some(bar) = &self.bar {
            if bar.message() != phase {
                bar.set_message(phase.to_owned());
            }
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

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:10} {wide_bar} {human_pos}/{human_len} {elapsed}");
    style.map_or_else(|_| ProgressBar::new(0), |style| ProgressBar::new(0).with_style(style))
}
