//! Where the bus is that a hook asks: in this machine's stores, or at a server.

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_core::verbs::hook::{Input, Outcome};
use relay_core::verbs::{Afterwards, Key, Request};
use relay_core::wire::v1::Signal;
use relay_store::repository::Files;
use serde_json::Value;

use super::visit::heard;
use crate::app::{App, Opened};
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
    /// Where the project around the working directory is; nowhere, if relay does not know it.
    pub fn find(app: &App) -> Result<Option<Self>> {
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

    pub fn ask(&self, app: &App, input: &Input) -> Result<(Outcome, Vec<Signal>, Option<Afterwards>)> {
        match self {
            Place::Here(opened) => heard(&app.context(opened)?, input),
            Place::There(remote, _) => there(app, remote, input),
        }
    }

    /// After the answer was written out: what is only true by that.
    pub fn written(&self, app: &App, afterwards: &Afterwards) -> Result<()> {
        match self {
            Place::Here(opened) => afterwards.commit(&app.context(opened)?),
            // The server noted it when it had answered.
            Place::There(..) => Ok(()),
        }
    }

    /// What is left to do for the store.
    pub fn leave(&self, app: &App) {
        if let Place::Here(opened) = self {
            app.leave(opened);
        }
    }
}

fn there(app: &App, remote: &Remote, input: &Input) -> Result<(Outcome, Vec<Signal>, Option<Afterwards>)> {
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
    Ok((outcome, signals, None))
}

fn refused(answer: &Value) -> Refusal {
    let error = &answer["error"];
    let code = error["code"].as_str().and_then(Code::parse).unwrap_or(Code::Internal);
    code.refuse(error["message"].as_str().unwrap_or_default())
}
