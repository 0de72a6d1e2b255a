//! `relay watch`: where the project stands, as a live screen.
//!
//! One thread draws. Others tell it what is new: a key, a signal, or another look at the bus, which is taken whenever
//! something was committed, and now and then since silence is no event.

mod draw;
mod look;
mod news;
mod panes;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Result};

use crate::app::App;
use crate::environment;
use news::{Desk, News};
use screen::Screen;
use state::{Act, State};

/// Runs until somebody has seen enough; the exit status.
pub fn run(app: &App) -> Result<u8> {
    // What is wrong from the start is said as everywhere else, before there is a screen.
    let mut seen = look::look(app)?;
    let mut state = State::new(environment::wants_colour(), panes::first(&seen));
    // Whoever ends it is heard before the terminal is taken.
    let desk = Desk::open(app.globals.clone()).map_err(|fault| unshown(&fault))?;
    let mut screen = Screen::enter().map_err(|fault| unshown(&fault))?;
    loop {
        let drawn = screen.draw(|frame| draw::draw(frame, &seen, &mut state, app.clock.now()));
        drawn.map_err(|fault| unshown(&fault))?;
        match desk.next() {
            News::Seen(Ok(anew)) => (seen, state.trouble) = (*anew, None),
            News::Seen(Err(refusal)) => state.trouble = Some(format!("{}: {refusal}", refusal.code)),
            News::Resized => {}
            News::Key(key) => match state.press(key) {
                Act::Nothing => {}
                Act::Look => desk.look(),
                Act::Suspend => screen.suspend().map_err(|fault| unshown(&fault))?,
                Act::Quit => return Ok(0),
            },
            News::Signal(signal) => return Ok(u8::try_from(128 + signal).unwrap_or(u8::MAX)),
            News::Lost(what) => return Err(Code::Internal.refuse(what)),
        }
    }
}

fn unshown(fault: &std::io::Error) -> Refusal {
    Code::StoreIo.refuse(format!("the screen cannot be drawn: {fault}; `relay status` prints the same once"))
}
