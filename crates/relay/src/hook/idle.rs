//! Waking an agent that has said its last word: a process in the background that waits for mail, and ends with it.

use std::path::Path;

use relay_core::domain::message::Importance;
use relay_core::domain::name::HUMAN;
use relay_core::domain::time::Span;
use relay_core::store::{Clock, Result, Store, Watch};
use relay_core::verbs::hook::Input;
use relay_store::harness;

use super::dialect::Dialect;
use super::event::Event;
use super::memory::Book;
use super::place::Place;
use super::visit::folders;
use super::words::Speaker;
use super::{caller, speak, who};
use crate::app::App;
use crate::environment;
use crate::output::Written;

/// The hook that ends the turn runs at the same time, and shows the mail that is there already.
const FIRST: Span = Span::seconds(1);
/// How often one looks whether the agent is still idle, when nothing else happens.
const LOOK: Span = Span::seconds(5);

/// Waits until there is something that the idle agent should know. It ends without a word once the agent goes on by itself, its
/// program is gone, or another waits in its place.
pub fn wait(app: &App, home: &Path, dialect: Dialect, event: &Event) -> Result<u8> {
    // Where nobody sits in front of it, a session ends with its turn, and would be held up.
    if dialect.wake("news").is_none() || environment::is_unattended() {
        return Ok(0);
    }
    let Some(place) = Place::find(app, &folders(event))? else { return Ok(0) };
    let book = Book::of(home, &who(app, event));
    let (mut steps, own, caller) = (0, std::process::id(), caller());
    book.change(|memory| {
        (memory.waiter, steps) = (Some(own), memory.steps);
    });
    let mut watch = Watching::of(&place)?;
    watch.wait(FIRST)?;
    loop {
        let memory = book.read();
        let is_needed = memory.waiter == Some(own) && memory.steps == steps;
        if !is_needed || !caller.as_ref().is_some_and(harness::runs) {
            return Ok(0);
        }
        if let Some(status) = look(app, dialect, &place, &book)? {
            return Ok(status);
        }
        watch.wait(LOOK)?;
    }
}

/// Wakes the agent if there is news. That is no sign of the agent's life.
fn look(app: &App, dialect: Dialect, place: &Place, book: &Book) -> Result<Option<u8>> {
    let (outcome, _) = place.ask(app, &Input { listens: true, glances: true, ..Input::default() })?;
    let is_news = !(outcome.mail.is_empty() && outcome.contested.is_empty());
    let Some(agent) = outcome.agent.as_ref().filter(|_| is_news) else { return Ok(None) };
    let now = app.clock.now();
    let is_pressing = outcome.mail.iter().any(|mail| mail.importance == Importance::Urgent || mail.from == HUMAN);
    let mut may_wake = false;
    book.change(|memory| may_wake = memory.may_wake(now));
    if !may_wake && !is_pressing {
        return Ok(None);
    }
    let Some(answer) = dialect.wake(&Speaker { agent, now }.news(&outcome)) else { return Ok(None) };
    let (status, written) = speak(&answer);
    if let (Some(shown), Written::Out) = (outcome.shown, written) {
        place.written(app, shown);
    }
    Ok(Some(status))
}

/// What tells that something happened on the bus.
enum Watching {
    Here(Box<dyn Watch>),
    There,
}

impl Watching {
    fn of(place: &Place) -> Result<Self> {
        match place {
            Place::Here(opened) => Ok(Watching::Here(opened.store.watch()?)),
            Place::There(..) => Ok(Watching::There),
        }
    }

    fn wait(&mut self, at_most: Span) -> Result<()> {
        match self {
            Watching::Here(watch) => watch.wait(at_most),
            Watching::There => {
                #[expect(clippy::disallowed_methods, reason = "a server rings no bell here")]
                std::thread::sleep(at_most.to_std());
                Ok(())
            }
        }
    }
}
