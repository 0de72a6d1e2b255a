//! Pages that say no: who is not let in, what is not there, and what a verb refused, with the way out of it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use relay_core::domain::event::Number;
use relay_core::error::{Code, Refusal};
use relay_core::playbook::Setting;
use relay_core::verbs::recover;
use relay_core::wire::v1::{Failed, Failure};
use serde_json::Value;

use super::form::{Form, is_path};
use super::frame::{Frame, Screen};
use super::offers;
use super::screens::filters;
use super::screens::trouble::Trouble;
use super::session::Session;
use super::shown;
use super::visit::Visit;
use crate::http::{Shared, answers};

const COMMAND: &str = "serve";

#[derive(Template)]
#[template(path = "door/closed.html")]
struct Closed<'a> {
    frame: Frame<'a>,
    title: &'a str,
    why: &'a str,
    /// The page that was asked for.
    again: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "door/refused.html")]
struct Refused<'a> {
    frame: &'a Frame<'a>,
    title: &'a str,
    trouble: Trouble<'a>,
    again: Option<Again>,
    /// Where one goes on.
    out: String,
}

#[derive(Template)]
#[template(path = "door/unwritten.html")]
struct Unwritten<'a> {
    frame: &'a Frame<'a>,
    code: &'a str,
    thread: &'a str,
    /// Threads that are called much the same.
    near: Vec<&'a str>,
    out: String,
}

/// The form as it was sent.
pub struct Again {
    action: String,
    fields: Vec<Field>,
    /// Of a form that failed before this one.
    carried: Vec<(String, String)>,
    kept: Vec<(String, String)>,
}

pub struct Field {
    name: String,
    label: String,
    value: String,
    is_long: bool,
    is_box: bool,
    /// What the form was about, which nobody typed.
    is_fixed: bool,
}

/// Failures that the same form cannot but meet again: what it was about is not there.
const FOR_GOOD: [Code; 4] = [Code::ReservationNotHeld, Code::MessageNotFound, Code::LinkNotFound, Code::NotARecipient];

impl Again {
    /// The form of a command, to be sent to the page of `base`.
    pub fn of(base: &str, command: &str, form: &Form) -> Self {
        let field = |(name, value): &(String, String)| Field {
            label: label(command, name),
            is_long: ["body", "why"].contains(&name.as_str()),
            is_box: ["ack_required", "read", "lift"].contains(&name.as_str()),
            is_fixed: name == "id" && value.parse::<Number>().is_ok(),
            name: name.clone(),
            value: value.clone(),
        };
        let action = format!("{base}/{command}");
        let carried: Vec<(String, String)> = form.carried().cloned().collect();
        let fields = form.typed().filter(|typed| !carried.contains(typed)).map(field).collect();
        Again { action, fields, carried, kept: form.kept(command) }
    }
}

/// What a field is called on the page.
fn label(command: &str, name: &str) -> String {
    let word = match (command, name) {
        ("release", "id") => "Claim",
        ("link", "id") => "Request",
        (_, "id") => "Message",
        (_, "why") => "Why",
        (_, "name") => "Agent",
        (_, "target") => "Agent that was asked",
        (_, "answer") => "Answer: accept or block",
        (_, "read") => "Only mark it as read",
        (_, "lift") => "Let it act again",
        _ => return name.replace('_', " "),
    };
    word.to_owned()
}

/// Who has no session, and how to begin one; with the page that they asked for, where they only wanted to look.
pub fn closed(shared: &Shared, asked: Option<&Uri>) -> Response {
    let asked =
        asked.and_then(Uri::path_and_query).map(axum::http::uri::PathAndQuery::as_str).filter(|path| is_path(path));
    let why = "Nobody has opened it in this browser, or that was more than twelve hours ago, or the server was started anew since.";
    without_session(shared, "This page is closed", why, asked)
}

/// Who brought a code that opens nothing. It is not told why.
pub fn wrong_code(shared: &Shared) -> Response {
    let why = "This link opens nothing: it was used, it is more than two minutes old, it was made for a browser of the server's own user, or it never was one.";
    without_session(shared, "This link opens nothing", why, None)
}

fn without_session(shared: &Shared, title: &str, why: &str, again: Option<&str>) -> Response {
    let nonce = shown::nonce();
    let page = Closed { frame: bare(shared, &nonce, ""), title, why, again };
    shown::page(StatusCode::UNAUTHORIZED, &nonce, page.render().unwrap_or_default())
}

/// What surrounds a page of somebody whom nobody knows.
pub fn bare<'a>(shared: &Shared, nonce: &'a str, path: &'a str) -> Frame<'a> {
    Frame {
        project: None,
        projects: &[],
        here: Screen::Door,
        nonce,
        csrf: "",
        key: &shown::key,
        flash: None,
        now: shared.desk.now(),
        path,
    }
}

/// A refusal of the door's own.
pub fn outside(shared: &Shared, status: StatusCode, refusal: &Refusal) -> Response {
    let nonce = shown::nonce();
    let Failure { error, .. } = recover::failure_outside(COMMAND, refusal, &Setting::default());
    let frame = bare(shared, &nonce, "/");
    let trouble = Trouble::of(&frame, &error, |_| false);
    let page = Refused { frame: &frame, title: "Refused", trouble, again: None, out: "/".to_owned() };
    shown::page(status, &nonce, page.render().unwrap_or_default())
}

/// What a verb refused, inside.
pub fn inside(visit: &Visit, failed: &Failed, again: Option<Again>) -> Response {
    if let (true, Code::ThreadNotFound, Some(Value::String(thread))) =
        (visit.is_look(), failed.code, failed.details.get("thread"))
    {
        return unwritten(visit, failed, thread);
    }
    let frame = visit.frame(Screen::Door);
    let kept = again.as_ref().map(|again| again.kept.clone()).unwrap_or_default();
    let lifts = offers::lifts(failed, &kept);
    let trouble = Trouble::of(&frame, failed, |step| visit.takes(step)).of_form(kept).offering(lifts);
    let again = again.filter(|_| !FOR_GOOD.contains(&failed.code));
    let page = Refused { frame: &frame, title: "That did not work", trouble, again, out: visit.way_out() };
    visit.page(answers::status_of(failed.code), page.render().unwrap_or_default())
}

/// A thread of which only a claim's reason or a link knows: there is nothing wrong, and nothing to read yet.
fn unwritten(visit: &Visit, failed: &Failed, thread: &str) -> Response {
    let frame = visit.frame(Screen::Threads);
    let near = failed.details.get("nearest").and_then(Value::as_array).into_iter().flatten();
    let near = near.filter_map(Value::as_str).collect();
    let page = Unwritten { frame: &frame, code: failed.code.as_str(), thread, near, out: visit.way_out() };
    visit.page(answers::status_of(failed.code), page.render().unwrap_or_default())
}

/// Where there is nothing.
pub async fn nowhere(State(shared): State<Arc<Shared>>, Extension(_): Extension<Arc<Session>>, uri: Uri) -> Response {
    let refusal = Code::InputInvalid.refuse(format!("there is no page {}", uri.path()));
    outside(&shared, StatusCode::NOT_FOUND, &refusal)
}

/// Where there is something else.
pub async fn not_so(State(shared): State<Arc<Shared>>) -> Response {
    let refusal =
        Code::InputInvalid.refuse("this is asked for in another way: a page is looked at, and a form is sent");
    outside(&shared, StatusCode::METHOD_NOT_ALLOWED, &refusal)
}
