//! One look at the bus, in this machine's store or at the server that has it.

use std::time::Duration;

use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_core::verbs::look::{Input, Now, Outcome, Status};
use relay_core::verbs::{self, Outcome as Any, Request};
use serde_json::Value;

use crate::app::App;
use crate::remote::Remote;

/// Whoever looks on does not wait longer for a server before being told that it is away.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the project stood at a look.
pub struct Seen {
    pub status: Status,
    pub now: Now,
}

pub fn look(app: &App) -> Result<Seen> {
    let input = Input { what: vec!["status".to_owned()], wide: true, ..Input::default() };
    let request = Request::Look(input);
    let status = match Remote::named()? {
        Some(remote) => there(app, &remote.within(PATIENCE), request)?,
        None => here(app, &request)?,
    };
    let (now, status) = (status.now.clone(), Status { now: None, ..status });
    let now = now.ok_or_else(|| Code::InputInvalid.refuse("the server is of an older relay, and tells too little"))?;
    Ok(Seen { status, now: *now })
}

/// The store is opened anew each time: it may have been replaced, and is then found again.
fn here(app: &App, request: &Request) -> Result<Status> {
    let opened = app.open(Some(request))?;
    let done = verbs::run(&app.context(&opened)?, request)?;
    match done.outcome {
        Any::Look(Outcome::Status(status)) => Ok(*status),
        _ => Err(Code::Internal.refuse("a look at the status found something else")),
    }
}

fn there(app: &App, remote: &Remote, request: Request) -> Result<Status> {
    let reply = remote.ask(&app.sent(request, "status", app.key()?)?)?;
    let answer: Value = serde_json::from_str(&reply.line).unwrap_or_default();
    match serde_json::from_value(answer["result"].clone()) {
        Ok(status) => Ok(status),
        Err(fault) => Err(refused(&answer).unwrap_or_else(|| Code::Internal.refuse(fault.to_string()))),
    }
}

/// What the server refused, in its own words.
fn refused(answer: &Value) -> Option<Refusal> {
    let error = answer.get("error")?;
    Some(Code::parse(error["code"].as_str()?)?.refuse(error["message"].as_str()?))
}
