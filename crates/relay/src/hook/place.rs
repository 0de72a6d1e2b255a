//! Where the bus is that a hook asks: in this machine's stores, or at a server.

use std::path::PathBuf;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_core::verbs::hook::{Input, Outcome, Shown};
use relay_core::verbs::{self, Key, Outcome as Any, Request};
use relay_core::wire::v1::Signal;
use relay_store::repository::Files;
use serde_json::Value;

use crate::app::{App, Opened};
use crate::environment;
use crate::remote::Remote;

/// A hook waits no longer for its turn to write than an agent waits for a tool without wondering.
const GATE_WAIT: Span = Span::seconds(1);

/// Nor longer for a server.
const ANSWER: Span = Span::seconds(3);

#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Place {
    Here(Opened),
    There(Remote, Files),
}

impl Place {
    /// Where the project around one of these folders is, the first that relay knows; nowhere, if it knows none. The process goes there.
    pub fn find(app: &App, folders: &[PathBuf]) -> Result<Option<Self>> {
        for folder in folders {
            environment::go_to(folder);
            if let Some(place) = Place::here(app)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }

    fn here(app: &App) -> Result<Option<Self>> {
        if let Some(remote) = Remote::named()? {
            let files = app.project().map(|project| Files::new(&project).seen_from(app.folders()));
            return Ok(files.ok().map(|files| Place::There(remote.within(ANSWER.to_std()), files)));
        }
        let Ok(project) = app.project() else { return Ok(None) };
        let (home, _) = app.home()?;
        if home.known(&project)?.is_none() {
            return Ok(None);
        }
        let mut opened = app.open(None)?;
        opened.limits.gate_wait = opened.limits.gate_wait.min(GATE_WAIT);
        Ok(Some(Place::Here(opened)))
    }

    pub fn files(&self) -> &Files {
        match self {
            Place::Here(opened) => &opened.repository,
            Place::There(_, files) => files,
        }
    }

    pub fn ask(&self, app: &App, input: &Input) -> Result<(Outcome, Vec<Signal>)> {
        match self {
            Place::Here(opened) => {
                let done = verbs::run(&app.context(opened)?, &Request::Hook(input.clone()))?;
                match done.outcome {
                    Any::Hook(outcome) => Ok((outcome, done.signals)),
                    _ => Err(Code::Internal.refuse("a hook was answered with something else")),
                }
            }
            Place::There(remote, _) => there(app, remote, input),
        }
    }

    /// After the answer was written out: what is only true by that. What could not be said is shown again.
    pub fn written(&self, app: &App, shown: Shown) {
        let _ = self.ask(app, &Input { shown: Some(shown), ..Input::default() });
    }

    /// What is left to do for the store.
    pub fn leave(&self, app: &App) {
        if let Place::Here(opened) = self {
            app.leave(opened);
        }
    }
}

fn there(app: &App, remote: &Remote, input: &Input) -> Result<(Outcome, Vec<Signal>)> {
    let sent = app.sent(Request::Hook(input.clone()), "hook", Key::said(None, &app.random)?)?;
    let reply = remote.ask(&sent)?;
    let answer: Value = serde_json::from_str(&reply.line).unwrap_or_default();
    if reply.status != 0 {
        return Err(refused(&answer));
    }
    let read = |value: &Value| serde_json::from_value(value.clone());
    let outcome =
        read(&answer["result"]).map_err(|fault| Code::Internal.refuse(format!("a server's answer: {fault}")))?;
    let signals = serde_json::from_value(answer["signals"].clone()).unwrap_or_default();
    Ok((outcome, signals))
}

fn refused(answer: &Value) -> Refusal {
    let error = &answer["error"];
    let code = error["code"].as_str().and_then(Code::parse).unwrap_or(Code::Internal);
    code.refuse(error["message"].as_str().unwrap_or_default())
}
