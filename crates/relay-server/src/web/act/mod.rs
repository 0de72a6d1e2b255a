//! What a person does on the page: a form becomes the request of a verb, the same as everywhere else. What went well is said on
//! the page that one goes back to; what did not is a page of its own, with the way out and with everything that was typed.

mod requests;
mod step;
mod told;

use std::sync::Arc;

use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use relay_core::store::Result;
use relay_core::verbs::Request;

use super::door::Typed;
use super::form::Form;
use super::frame::Flash;
use super::refused::{self, Again};
use super::shown;
use super::visit::Visit;
use crate::ask::{Answer, Body};
use crate::http::Shared;
use crate::http::answers;

pub fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/p/{slug}/send", post(send))
        .route("/p/{slug}/ack", post(ack))
        .route("/p/{slug}/link", post(link))
        .route("/p/{slug}/release", post(release))
        .route("/p/{slug}/retire", post(retire))
        .route("/p/{slug}/suspend", post(suspend))
        .route("/p/{slug}/step", post(step::step))
}

/// A reply may acknowledge what it answers. That is a verb of its own, and is only done once the reply is out.
async fn send(mut visit: Visit, Extension(form): Typed) -> Response {
    let acked = requests::acked_along(&form);
    let sent = match acked.as_ref().map_err(Clone::clone).and_then(|_| requests::send(&form)) {
        Ok(request) => visit.act(request, "send", form.key()).await,
        Err(refusal) => return refuse(&visit, &form, "send", &refusal),
    };
    let (Ok(Some(ack)), Body::Done(_)) = (acked, &sent.body) else { return answered(&visit, &form, "send", sent) };
    let key = form.key().map(|key| format!("{key} ack"));
    let answer = visit.act(Request::Ack(ack), "ack", key.as_deref()).await;
    let flash = told::flash([&sent, &answer]);
    match &answer.body {
        Body::Done(_) => said(&visit, &form, flash),
        // What was sent is not sent again: only the receipt is still to be given.
        Body::Failed(failure) => {
            visit.flash = Some(flash);
            let status = answers::status(&answer);
            refused::inside(&visit, status, &failure.error, back(&visit, &form).as_str(), None)
        }
    }
}

async fn ack(visit: Visit, Extension(form): Typed) -> Response {
    act(&visit, &form, "ack", requests::ack(&form)).await
}

async fn link(visit: Visit, Extension(form): Typed) -> Response {
    act(&visit, &form, "link", requests::link(&form)).await
}

async fn release(visit: Visit, Extension(form): Typed) -> Response {
    act(&visit, &form, "release", requests::release(&form)).await
}

async fn retire(visit: Visit, Extension(form): Typed) -> Response {
    act(&visit, &form, "retire", requests::retire(&form)).await
}

async fn suspend(visit: Visit, Extension(form): Typed) -> Response {
    act(&visit, &form, "suspend", requests::suspend(&form)).await
}

async fn act(visit: &Visit, form: &Form, command: &str, request: Result<Request>) -> Response {
    match request {
        Ok(request) => answered(visit, form, command, visit.act(request, command, form.key()).await),
        Err(refusal) => refuse(visit, form, command, &refusal),
    }
}

fn answered(visit: &Visit, form: &Form, command: &str, answer: Answer) -> Response {
    match &answer.body {
        Body::Done(_) => said(visit, form, told::flash([&answer])),
        Body::Failed(failure) => {
            let again = Again::of(format!("{}/{command}", visit.base()), form);
            refused::inside(visit, answers::status(&answer), &failure.error, &back(visit, form), Some(again))
        }
    }
}

/// What was typed is no request.
fn refuse(visit: &Visit, form: &Form, command: &str, refusal: &relay_core::error::Refusal) -> Response {
    let failure = visit.refused(command, refusal);
    answered(visit, form, command, Answer::failed(*failure, visit.shared.desk.now()))
}

fn said(visit: &Visit, form: &Form, flash: Flash) -> Response {
    visit.session.say(flash);
    shown::see(&back(visit, form))
}

fn back(visit: &Visit, form: &Form) -> String {
    form.back().map_or_else(|| format!("{}/", visit.base()), str::to_owned)
}
