//! `relay hook`: brings the bus to the moment of the edit, in every coding agent that calls it.
//!
//! It reads what the harness tells from its standard input, recognises the dialect by that, and answers in it; nothing else ever
//! leaves on the standard output. Whatever goes wrong in here lets the agent go on, and leaves a trace for `doctor`.

mod calls;
mod checkout;
pub mod dialect;
pub mod event;
mod ground;
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
use std::path::Path;

use relay_core::error::{Code, Refusal};
use relay_core::store::{Clock, Harness, Result};
use relay_core::verbs::hook::Moment;
use relay_store::harness;
use serde_json::Value;

use self::dialect::Dialect;
use self::event::{Answer, Event, Reply};
use self::memory::Book;
use self::place::Place;
use self::visit::{Visit, concerns_the_agent, folders};
use crate::app::App;
use crate::cli::Globals;
use crate::clock::SystemClock;
use crate::output::Written;
use crate::{config, environment};

/// More than this no harness tells.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// How a harness is told to run the sessions of many.
const SERVER: &str = "app-server";
/// Programs between a harness and its hook.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout"];

pub fn run(globals: Globals, is_idle: bool) -> u8 {
    let (home, clock) = (environment::home().ok(), SystemClock::new());
    let note = |what: &str, why: &str| {
        if let Some(home) = &home {
            trace::note(home, clock.now(), what, why);
        }
    };
    let stdin = match said() {
        Ok(stdin) => stdin,
        Err(why) => {
            note("somebody", &why);
            return 0;
        }
    };
    let Some(dialect) = Dialect::of(&stdin) else { return 0 };
    let (Some(event), Some(home)) = (dialect.read(&stdin), &home) else { return speak(&dialect.silence()).0 };
    quiet_panics();
    let visited = panic::catch_unwind(AssertUnwindSafe(|| {
        let app = App::new(globals);
        if is_idle {
            idle::wait(&known_as(app, home, &event), home, dialect, &event)
        } else {
            visit(app, home, dialect, &event)
        }
    }));
    let why = match visited {
        Ok(Ok(status)) => return status,
        // A server says so of a project that it does not know.
        Ok(Err(refusal)) if refusal.code == Code::AgentNotRegistered => return speak(&dialect.silence()).0,
        Ok(Err(refusal)) if concerns_the_agent(&refusal) => return explain(home, dialect, &event, &refusal),
        Ok(Err(refusal)) => format!("{}: {}", refusal.code, refusal.message),
        Err(_) => "relay broke: this is a fault in relay itself".to_owned(),
    };
    note(&format!("{} {}", dialect.name(), event.name), &why);
    speak(&dialect.silence()).0
}

/// What was said, or why that is nothing. Nothing at all is no fault.
fn said() -> std::result::Result<Value, String> {
    let mut text = Vec::new();
    std::io::stdin().take(MOST_BYTES + 1).read_to_end(&mut text).map_err(|fault| fault.to_string())?;
    if text.is_empty() {
        return Ok(Value::Null);
    }
    if text.len() as u64 > MOST_BYTES {
        return Err(format!("more than {MOST_BYTES} bytes were said"));
    }
    serde_json::from_slice(&text).map_err(|fault| format!("what was said is no JSON: {fault}"))
}

/// Under the name that the session has on the bus.
fn known_as(app: App, home: &Path, event: &Event) -> App {
    App { session: Some(sessions::canonical(home, event.session.clone())), ..app }
}

fn visit(app: App, home: &Path, dialect: Dialect, event: &Event) -> Result<u8> {
    #[cfg(feature = "test-doors")]
    assert_ne!(environment::test_break().as_deref(), Some("hook"), "broken by a test");
    let Some(place) = Place::find(&app, &folders(event))? else {
        return Ok(speak(&dialect.silence()).0);
    };
    let harness = harness(dialect, event);
    note_session(home, dialect, event);
    let app = &known_as(app, home, event);
    // A session that ends because it was cleared goes on.
    let goes_on = event.moment == Moment::End && event.carries_on;
    if goes_on || is_echo(app, home, dialect, event) {
        return Ok(speak(&dialect.silence()).0);
    }
    let stance = config::read(home)?.stance(app.project().ok().as_ref());
    let visit = Visit { app, dialect, event, place: &place, stance, home, who: who(app, event), harness };
    let told = visit.tell()?;
    let (status, written) = speak(&dialect.write(event, &told.reply));
    if let (Some(shown), Written::Out) = (told.shown, written) {
        place.written(app, shown);
    }
    place.leave(app);
    Ok(status)
}

/// Keeps the first name of a session, and the process by which it is known. Of an editor it is not: a terminal in it is the user's own.
fn note_session(home: &Path, dialect: Dialect, event: &Event) {
    let is_its = |caller: &Harness| event.subagent.is_none() && !dialect.is_editor() && !is_server(caller.pid);
    let Some(caller) = caller().filter(is_its) else { return };
    match event.moment {
        Moment::End if !event.carries_on => sessions::forget(home, &event.session, &caller),
        // Not every program tells that a session was resumed.
        Moment::Start | Moment::Prompt | Moment::Before | Moment::After => {
            sessions::note(home, &event.session, &caller, event.carries_on);
        }
        _ => {}
    }
    if event.moment == Moment::Start {
        sessions::sweep(home);
    }
}

/// Whether the sessions of many run in this process.
fn is_server(pid: u32) -> bool {
    harness::arguments(pid).iter().any(|word| word == SERVER)
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
    let next = if refusal.details.contains_key("variable") {
        "; unset RELAY_AGENT, or take that name with `relay start --take-over`"
    } else {
        ""
    };
    let context =
        (is_news && dialect.hears(event)).then(|| format!("relay: {}: {}{next}\n", refusal.code, refusal.message));
    speak(&dialect.write(event, &Reply { context, ..Reply::default() })).0
}

/// Whoever called this hook, past the shells between them.
fn caller() -> Option<Harness> {
    let mut pid = harness::parent(std::process::id())?;
    while harness::program(pid).is_some_and(|program| SHELLS.contains(&program.as_str())) {
        pid = harness::parent(pid)?;
    }
    harness::of(pid, None)
}

/// The program that the session runs in. One that many sessions share is no sign of life of one of them; what it writes down for
/// this one is.
fn harness(dialect: Dialect, event: &Event) -> Option<Harness> {
    let caller = caller()?;
    // A subagent's transcript is no sign of its parent's life, but its process is.
    let transcript = event.transcript.clone().filter(|_| event.subagent.is_none());
    let is_shared = dialect.shares_process() || is_server(caller.pid);
    let caller = if is_shared { Harness { pid: 0, began: 0, ..caller } } else { caller };
    Some(Harness { transcript, ..caller })
}

fn speak(answer: &Answer) -> (u8, Written) {
    use std::io::Write;
    let complained = std::io::stderr().lock().write_all(answer.stderr.as_bytes());
    let mut out = std::io::stdout().lock();
    let answered = out.write_all(answer.stdout.as_bytes()).and_then(|()| out.flush());
    let written = match complained.and(answered) {
        Ok(()) => Written::Out,
        Err(_) => Written::Unseen,
    };
    (answer.status, written)
}

/// A harness may show the user what stands on the standard error: that is for answers.
fn quiet_panics() {
    panic::set_hook(Box::new(|_| {}));
}
