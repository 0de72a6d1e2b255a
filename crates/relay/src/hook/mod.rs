//! `relay hook`: brings the bus to the moment of the edit, in every coding agent that calls it.
//!
//! It reads what the harness tells from its standard input, recognises the dialect by that, and answers in it; nothing else ever
//! leaves on the standard output. Whatever goes wrong in here lets the agent go on, and leaves a trace for `doctor`.

mod calls;
mod checkout;
pub mod dialect;
pub mod event;
mod idle;
mod memory;
mod patch;
mod place;
pub mod sessions;
pub mod trace;
mod tree;
mod visit;
mod words;

use std::io::Read;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Harness, Result};
use relay_core::verbs::hook::Moment;
use relay_store::harness;
use serde_json::Value;

use self::dialect::Dialect;
use self::event::{Answer, Event, Reply};
use self::memory::Book;
use self::place::Place;
use self::visit::{Visit, concerns_the_agent};
use crate::app::App;
use crate::cli::Globals;
use crate::output::Written;
use crate::{config, environment};

/// More than this no harness tells.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// How a harness is told to run the sessions of many.
const SERVER: &str = "app-server";
/// Programs between a harness and its hook.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout"];

pub fn run(globals: Globals, is_idle: bool) -> u8 {
    let Some(stdin) = said() else { return 0 };
    let Some(dialect) = Dialect::of(&stdin) else { return 0 };
    let Some(event) = dialect.read(&stdin) else { return speak(&dialect.silence()).0 };
    let (home, app) = match arrive(globals, dialect, &event) {
        Ok(arrived) => arrived,
        // Without a home there is no place for a trace either.
        Err(_) => return speak(&dialect.silence()).0,
    };
    if is_echo(&app, &home, dialect, &event) {
        return speak(&dialect.silence()).0;
    }
    quiet_panics();
    let visited = panic::catch_unwind(AssertUnwindSafe(|| {
        if is_idle { idle::wait(&app, &home, dialect, &event) } else { visit(&app, &home, dialect, &event) }
    }));
    let why = match visited {
        Ok(Ok(status)) => return status,
        // A server says so of a project that it does not know.
        Ok(Err(refusal)) if refusal.code == Code::AgentNotRegistered => return speak(&dialect.silence()).0,
        Ok(Err(refusal)) if concerns_the_agent(&refusal) => return explain(&home, dialect, &event, &refusal),
        Ok(Err(refusal)) => format!("{}: {}", refusal.code, refusal.message),
        Err(_) => "relay broke: this is a fault in relay itself".to_owned(),
    };
    trace::note(&home, app.clock.now(), &format!("{} {}", dialect.name(), event.name), &why);
    speak(&dialect.silence()).0
}

/// Whether the program has just told the same: one that also runs the hooks of another program's configuration does.
fn is_echo(app: &App, home: &Path, dialect: Dialect, event: &Event) -> bool {
    let mut is_echo = false;
    if dialect.runs_others_hooks() {
        let now = app.clock.now();
        Book::of(home, &who(app, event)).change(|memory| is_echo = memory.is_echo(&format!("{event:?}"), now));
    }
    is_echo
}

fn said() -> Option<Value> {
    let mut text = Vec::new();
    std::io::stdin().take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Goes where the session is, under the name that the session has on the bus.
fn arrive(globals: Globals, dialect: Dialect, event: &Event) -> Result<(PathBuf, App)> {
    let home = environment::home()?;
    environment::go_to(&event.cwd);
    if let Some(harness) = harness(dialect, event).filter(|harness| event.subagent.is_none() && harness.pid > 0) {
        match event.moment {
            Moment::Start => sessions::note(&home, &event.session, &harness, event.carries_on),
            Moment::End if !event.carries_on => sessions::forget(&home, &event.session, &harness),
            _ => {}
        }
    }
    let session = sessions::canonical(&home, event.session.clone());
    let app = App { session: Some(session), ..App::new(globals) };
    Ok((home, app))
}

fn visit(app: &App, home: &Path, dialect: Dialect, event: &Event) -> Result<u8> {
    #[cfg(feature = "test-doors")]
    assert_ne!(environment::test_break().as_deref(), Some("hook"), "broken by a test");
    // A session that ends because it was cleared goes on.
    let ends = event.moment == Moment::End && event.carries_on;
    let Some(place) = Place::find(app)?.filter(|_| !ends) else {
        return Ok(speak(&dialect.silence()).0);
    };
    let stance = config::read(home)?.stance(app.project().ok().as_ref());
    let visit = Visit { app, dialect, event, place: &place, stance, home: home.to_owned(), who: who(app, event) };
    let told = visit.tell()?;
    let (status, written) = speak(&dialect.write(event, &told.reply));
    if let (Some(afterwards), Written::Out) = (&told.afterwards, written) {
        // The answer is out: what could not be noted is shown again.
        let _ = place.written(app, afterwards);
    }
    place.leave(app);
    Ok(status)
}

/// Whose memory it is: a session's, or one of its subagents'.
fn who(app: &App, event: &Event) -> String {
    let session = app.session.clone().unwrap_or_default();
    match &event.subagent {
        Some(subagent) => format!("{session}/{}", subagent.id),
        None => session,
    }
}

/// A refusal that the agent should know of, told once.
fn explain(home: &Path, dialect: Dialect, event: &Event, refusal: &Refusal) -> u8 {
    let mut is_news = false;
    Book::of(home, &event.session).change(|memory| is_news = memory.is_news(refusal.message.clone()));
    let context = (is_news && dialect.hears(event)).then(|| format!("relay: {}: {}\n", refusal.code, refusal.message));
    speak(&dialect.write(event, &Reply { context, ..Reply::default() })).0
}

/// The program that the session runs in: whoever called this hook, past the shells between them. A program that many sessions
/// share is no sign of life of one of them; what it writes down for this one is.
fn harness(dialect: Dialect, event: &Event) -> Option<Harness> {
    let mut pid = harness::parent(std::process::id())?;
    while harness::program(pid).is_some_and(|program| SHELLS.contains(&program.as_str())) {
        pid = harness::parent(pid)?;
    }
    // A subagent's transcript is no sign of its parent's life, but its process is.
    let transcript = event.transcript.clone().filter(|_| event.subagent.is_none());
    let harness = harness::of(pid, transcript)?;
    let is_shared = dialect.shares_process() || harness::arguments(pid).iter().any(|word| word == SERVER);
    Some(if is_shared { Harness { pid: 0, began: 0, ..harness } } else { harness })
}

fn speak(answer: &Answer) -> (u8, Written) {
    use std::io::Write;
    let _ = std::io::stderr().lock().write_all(answer.stderr.as_bytes());
    let mut out = std::io::stdout().lock();
    let written = match out.write_all(answer.stdout.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Written::Out,
        Err(_) => Written::Unseen,
    };
    (answer.status, written)
}

/// A harness may show the user what stands on the standard error: that is for answers.
fn quiet_panics() {
    panic::set_hook(Box::new(|_| {}));
}
