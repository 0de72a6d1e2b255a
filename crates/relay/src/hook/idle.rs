//! Waking an agent that has said its last word: a process in the background that waits for mail, and ends with it.

use std::path::Path;

use relay_core::domain::time::Span;
use relay_core::store::{Result, Store, Watch};
use relay_core::verbs::hook::{Input, Moment};

use super::dialect::Dialect;
use super::event::Event;
use super::memory::Book;
use super::place::Place;
use super::words::Speaker;
use super::{speak, who};
use crate::app::App;
use crate::environment;
use crate::output::Written;
use relay_core::store::Clock;

/// The hook that ends the turn runs at the same time, and shows the mail that is there already.
const FIRST: Span = Span::seconds(1);
/// How often one looks whether the agent is still idle, when nothing else happens.
const LOOK: Span = Span::seconds(5);

/// Waits until there is something that the idle agent should know. It ends without a word once the agent goes on by itself, or
/// another waits in its place.
pub fn wait(app: &App, home: &Path, dialect: Dialect, event: &Event) -> Result<u8> {
    // Where nobody sits in front of it, a session ends with its turn, and would be held up.
    if dialect.wake("news").is_none() || environment::is_unattended() {
        return Ok(0);
    }
    let Some(place) = Place::find(app)? else { return Ok(0) };
    let book = Book::of(home, &who(app, event));
    let (mut steps, own) = (0, std::process::id());
    book.change(|memory| {
        (memory.waiter, steps) = (Some(own), memory.steps);
    });
    let mut watch = Watching::of(&place)?;
    watch.wait(FIRST)?;
    loop {
        let memory = book.read();
        if memory.waiter != Some(own) || memory.steps != steps {
            return Ok(0);
        }
        if let Some(status) = look(app, dialect, &place)? {
            return Ok(status);
        }
        watch.wait(LOOK)?;
    }
}

/// Wakes the agent if there is news.
fn look(app: &App, dialect: Dialect, place: &Place) -> Result<Option<u8>> {
    let input = Input { moment: Moment::Prompt, listens: true, ..Input::default() };
    let (outcome, _, afterwards) = place.ask(app, &input)?;
    let Some(agent) = outcome.agent.as_ref().filter(|_| !(outcome.mail.is_empty() && outcome.contested.is_empty()))
    else {
        return Ok(None);
    };
    let text = Speaker { agent, now: app.clock.now() }.news(&outcome);
    let Some(answer) = dialect.wake(&text) else { return Ok(None) };
    let (status, written) = speak(&answer);
    if let (Some(afterwards), Written::Out) = (&afterwards, written) {
        let _ = place.written(app, afterwards);
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
