//! One step of a playbook, taken by a button: the call of a tool, as the human and in this project.

use askama::Template;
use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{Outcome, Request};
use relay_core::wire::v1::Failure;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::door::Typed;
use super::super::form::Form;
use super::super::frame::{Flash, Frame, Screen};
use super::super::refused;
use super::super::visit::Visit;
use super::{FORMS, done, said, told, undone, unsent};
use crate::ask::Body;
use crate::front::Speech;
use crate::mcp::{boundary, plain};

#[derive(Template)]
#[template(path = "door/told.html")]
struct Told<'a> {
    frame: Frame<'a>,
    title: &'a str,
    text: String,
}

/// What a button says of its step. The buttons of an error are those of one form: what they share stands in it once.
#[derive(Deserialize)]
struct Chosen {
    /// Which of the steps it is, so that each has a key of its own.
    #[serde(default)]
    step: usize,
    tool: String,
    args: Map<String, Value>,
}

pub async fn step(visit: Visit, Extension(form): Typed) -> Response {
    let (chosen, request, key) = match request(&visit, &form) {
        Ok(made) => made,
        Err(refusal) => return failed(&visit, &form, &visit.refused("step", &refusal)).await,
    };
    let tool = chosen.tool.as_str();
    let key = key.or_else(|| Some(format!("{} step {}", form.key()?, chosen.step)));
    let answer = visit.act(request, tool, key.as_deref()).await;
    match &answer.body {
        Body::Failed(failure) => failed(&visit, &form, failure).await,
        // The request that failed was made again, and went through: there is nothing to go back to.
        Body::Done(done) if is_made_again(&done.outcome) => said(&visit, told::flash(&visit, [&answer])),
        Body::Done(done) if !is_told_in_a_sentence(&done.outcome) => {
            let front = visit.shared.desk.front();
            let text = plain(&front.text(&answer, Speech::Commands, &boundary()));
            if form.letter().is_some() {
                return super::done(visit, &form, Flash { text, ..Flash::default() }).await;
            }
            let page = Told { frame: visit.frame(Screen::Door), title: "What came of it", text };
            visit.page(StatusCode::OK, page.render().unwrap_or_default())
        }
        Body::Done(_) => {
            let flash = told::flash(&visit, [&answer]);
            done(visit, &form, flash).await
        }
    }
}

/// What was typed before the step is shown once more; a step itself is nothing that anybody typed.
async fn failed(visit: &Visit, form: &Form, failure: &Failure) -> Response {
    match form.failed().filter(|(command, _)| FORMS.contains(command)) {
        Some(("send", typed)) => unsent(visit, &typed, failure).await,
        Some((command, typed)) => undone(visit, &typed, command, failure),
        None => refused::inside(visit, &failure.error, None),
    }
}

fn request(visit: &Visit, form: &Form) -> Result<(Chosen, Request, Option<String>)> {
    let chosen = form.text("step").unwrap_or_default();
    let chosen: Chosen = serde_json::from_str(chosen)
        .map_err(|fault| Code::InputInvalid.refuse(format!("a step is a tool and its arguments, as JSON: {fault}")))?;
    let (request, key) = visit.request(&chosen.tool, chosen.args.clone())?;
    Ok((chosen, request, key))
}

fn is_made_again(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Recover(recover) if recover.retried.is_some())
}

/// Other answers are read, and need a page.
fn is_told_in_a_sentence(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Send(_) | Outcome::Ack(_) | Outcome::Release(_) | Outcome::Standing(_))
        || matches!(outcome, Outcome::Link(link) if link.link.is_some())
}
