//! What the screen is told: keys, signals, and what was seen. Each comes from a thread of its own, so that no look at the bus
//! keeps anybody from leaving; they end with the process.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::park_timeout;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEvent, KeyEventKind};
use relay_core::domain::time::Span;
use relay_core::error::Refusal;
use relay_core::store::{Clock, Result, Store};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::look::{self, Seen};
use crate::app::App;
use crate::cli::Globals;
use crate::remote;

/// Silence, expiry and lateness are no events: after this time it is looked again by itself.
const SLOW: Duration = Duration::from_secs(3);
/// The same where a server has the store, which rings no bell here.
const REMOTE: Duration = Duration::from_secs(2);
/// What happens within this time is looked at together. On a bus where a look takes long it is three times as long as that, so that
/// those who work there are not slowed down by who looks on.
const GATHER: Duration = Duration::from_millis(60);
/// How long the bell is waited for before it is armed anew.
const BELL: Span = Span::minutes(10);

pub enum News {
    Key(KeyEvent),
    Resized,
    Seen(std::result::Result<Box<Seen>, Refusal>),
    Signal(i32),
    /// A part of this program broke, or the terminal is gone.
    Lost(String),
}

/// Where news arrive, and another look can be asked for.
pub struct Desk {
    news: Receiver<News>,
    wish: Sender<()>,
}

impl Desk {
    pub fn open(globals: Globals) -> std::io::Result<Self> {
        let (tell, news) = channel();
        let (wish, wishes) = channel();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let told = tell.clone();
        begin("signals", &tell, move || {
            signals.forever().try_for_each(|signal| told.send(News::Signal(signal)).map_err(drop))
        });
        let told = tell.clone();
        begin("keys", &tell, move || keys(&told));
        if remote::address().is_none() {
            let (globals, wish) = (globals.clone(), wish.clone());
            begin("bell", &tell, move || ring(&App::new(globals), &wish));
        }
        let told = tell.clone();
        begin("looks", &tell, move || looks(&App::new(globals), &wishes, &told));
        Ok(Desk { news, wish })
    }

    /// Waits for the next piece of news.
    pub fn next(&self) -> News {
        self.news.recv().unwrap_or_else(|_| News::Lost("nobody tells any news".to_owned()))
    }

    pub fn look(&self) {
        let _ = self.wish.send(());
    }
}

/// A part that ends with an error when nobody listens any more. One that breaks says so, since the screen would stand still.
fn begin<E>(
    what: &'static str,
    tell: &Sender<News>,
    part: impl FnOnce() -> std::result::Result<(), E> + Send + 'static,
) {
    let broken = Broken { what, tell: tell.clone() };
    #[expect(
        clippy::disallowed_methods,
        reason = "it blocks on something that no other can wait for, and ends with us"
    )]
    std::thread::spawn(move || {
        let _told_if_it_breaks = broken;
        let _ = part();
    });
}

struct Broken {
    what: &'static str,
    tell: Sender<News>,
}

impl Drop for Broken {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.tell.send(News::Lost(format!("the part for {} broke", self.what)));
        }
    }
}

type Told = std::result::Result<(), ()>;

fn keys(tell: &Sender<News>) -> Told {
    loop {
        let news = match event::read() {
            Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => News::Key(key),
            Ok(Event::Resize(..)) => News::Resized,
            Ok(_) => continue,
            // The terminal is gone, and so is whoever looked at it.
            Err(_) => News::Signal(SIGHUP),
        };
        let is_gone = matches!(news, News::Signal(_));
        tell.send(news).map_err(drop)?;
        if is_gone {
            return Err(());
        }
    }
}

/// Asks for a look after every commit. Where there is nothing to listen to, the slow look goes on alone, and this tries again.
fn ring(app: &App, wish: &Sender<()>) -> Told {
    loop {
        if let Ok(mut watch) = app.open(None).and_then(|opened| opened.store.watch()) {
            // Something may have happened before the watch was armed.
            wish.send(()).map_err(drop)?;
            while watch.wait(BELL).is_ok() {
                wish.send(()).map_err(drop)?;
            }
        }
        park_timeout(SLOW);
    }
}

fn looks(app: &App, wishes: &Receiver<()>, tell: &Sender<News>) -> Told {
    let pause = if remote::address().is_some() { REMOTE } else { SLOW };
    let mut gather = GATHER;
    loop {
        match wishes.recv_timeout(pause) {
            Ok(()) => park_timeout(gather),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(()),
        }
        while wishes.try_recv().is_ok() {}
        let began = app.clock.monotonic();
        let seen: Result<Seen> = look::look(app);
        let took = Span::millis(app.clock.monotonic().as_millis() - began.as_millis());
        gather = GATHER.max(took.to_std() * 3);
        tell.send(News::Seen(seen.map(Box::new))).map_err(drop)?;
    }
}
