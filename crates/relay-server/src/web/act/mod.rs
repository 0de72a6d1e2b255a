//! What a person does on the page: a form becomes the request of a verb, the same as everywhere else. What went well is said on
//! the page that one goes back to; what did not is a page of its own, with the way out and with everything that was typed.

mod requests;
mod step;
mod told;

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use axum::{Extension, Router};
use relay_core::store::Result;
use relay_core::verbs::Request;
use relay_core::wire::v1::Failure;

use super::door::Typed;
use super::form::Form;
use super::frame::{Flash, Screen};
use super::offers;
use super::refused::{self, Again};
use super::screens::trouble::Trouble;
use super::screens::write::{self, Beside, Draft};
use super::shown;
use super::visit::Visit;
use crate::ask::Body;
use crate::http::{Shared, answers};

/// The forms whose fields are shown again where they fail; a letter's stand in the box that it was written in.
const FORMS: [&str; 6] = ["send", "ack", "link", "release", "retire", "suspend"];

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
    let made = requests::acked_along(&form).and_then(|ack| Ok((requests::send(&form)?, ack)));
    let (sent, ack) = match made {
        Ok((request, ack)) => (visit.act(request, "send", form.key()).await, ack),
        Err(refusal) => return unsent(&visit, &form, &visit.refused("send", &refusal)).await,
    };
    if let Body::Failed(failure) = &sent.body {
        return unsent(&visit, &form, failure).await;
    }
    let Some(ack) = ack else { return written(&visit, told::flash(&visit, [&sent])) };
    let key = form.key().map(|key| format!("{key} ack"));
    let answer = visit.act(Request::Ack(ack), "ack", key.as_deref()).await;
    let flash = told::flash(&visit, [&sent, &answer]);
    match &answer.body {
        Body::Done(_) => written(&visit, flash),
        // What was sent is not sent again: only the receipt is still to be given.
        Body::Failed(failure) => {
            visit.flash = Some(flash);
            refused::inside(&visit, &failure.error, None)
        }
    }
}

/// The box to write in once more, with everything that was typed.
async fn unsent(visit: &Visit, form: &Form, failure: &Failure) -> Response {
    let draft = draft(form);
    let beside = beside(visit, &draft).await;
    let frame = visit.frame(Screen::Write);
    let (failed, kept) = (&failure.error, form.kept("send"));
    let offers = [offers::instead(failed, form), offers::lifts(failed, &kept)].concat();
    let trouble = Trouble::of(&frame, failed, |step| visit.takes(step)).of_form(kept).offering(offers);
    let text = write::page(&frame, &draft, &beside, Some(trouble));
    visit.page(answers::status_of(failed.code), text)
}

/// What stands beside a letter that comes back; of one that answers nothing there is, as much as can be told.
async fn beside(visit: &Visit, draft: &Draft) -> Beside {
    match visit.beside(draft).await {
        Ok(beside) => beside,
        Err(_) => Beside { agents: visit.agents().await.unwrap_or_default(), ..Beside::default() },
    }
}

/// What was done for the sake of a letter that failed leads to that letter; everything else to where one came from.
async fn done(mut visit: Visit, form: &Form, flash: Flash) -> Response {
    let Some(typed) = form.letter() else { return said(&visit, flash) };
    visit.flash = Some(flash);
    let draft = draft(&typed);
    let beside = beside(&visit, &draft).await;
    let text = write::page(&visit.frame(Screen::Write), &draft, &beside, None);
    visit.page(StatusCode::OK, text)
}

/// What was typed into the box, right or wrong.
pub fn draft(form: &Form) -> Draft {
    let text = |name: &str| form.lines(name).unwrap_or_default();
    let names = form.texts("to").flat_map(|text| text.split(',')).map(str::trim).filter(|name| !name.is_empty());
    Draft {
        to: names.map(str::to_owned).collect(),
        thread: text("thread"),
        subject: text("subject"),
        body: text("body"),
        importance: text("importance"),
        ack_required: form.has("ack_required"),
        ack_within: text("ack_within"),
        reply_to: form.number("reply_to").ok().flatten(),
        ack: form.number("ack").ok().flatten(),
    }
}

async fn ack(visit: Visit, Extension(form): Typed) -> Response {
    act(visit, &form, "ack", requests::ack(&form)).await
}

async fn link(visit: Visit, Extension(form): Typed) -> Response {
    act(visit, &form, "link", requests::link(&form)).await
}

async fn release(visit: Visit, Extension(form): Typed) -> Response {
    act(visit, &form, "release", requests::release(&form)).await
}

async fn retire(visit: Visit, Extension(form): Typed) -> Response {
    act(visit, &form, "retire", requests::retire(&form)).await
}

async fn suspend(visit: Visit, Extension(form): Typed) -> Response {
    act(visit, &form, "suspend", requests::suspend(&form)).await
}

async fn act(visit: Visit, form: &Form, command: &str, request: Result<Request>) -> Response {
    let answer = match request {
        Ok(request) => visit.act(request, command, form.key()).await,
        Err(refusal) => return undone(&visit, form, command, &visit.refused(command, &refusal)),
    };
    match &answer.body {
        Body::Done(_) => {
            let flash = told::flash(&visit, [&answer]);
            done(visit, form, flash).await
        }
        Body::Failed(failure) => undone(&visit, form, command, failure),
    }
}

fn undone(visit: &Visit, form: &Form, command: &str, failure: &Failure) -> Response {
    refused::inside(visit, &failure.error, Some(Again::of(&visit.base(), command, form)))
}

/// Whoever wrote where letters are read or written goes on where theirs stands; from any other screen they stay on it, and are
/// shown the way.
fn written(visit: &Visit, flash: Flash) -> Response {
    let screen = visit.back().strip_prefix(&visit.base()).unwrap_or_default();
    let is_of_letters = ["/write", "/threads/", "/messages/"].iter().any(|begins| screen.starts_with(begins));
    match flash.link.clone().filter(|_| is_of_letters) {
        None => said(visit, flash),
        Some(place) => {
            visit.session.say(Flash { link: None, ..flash });
            shown::see(&place)
        }
    }
}

fn said(visit: &Visit, flash: Flash) -> Response {
    visit.session.say(flash);
    shown::see(visit.back())
}
