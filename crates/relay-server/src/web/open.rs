//! Opening the page with a one-time link, and leaving it.
//!
//! The code stands in the link's fragment, which a browser sends to nobody and keeps out of what it tells other pages; a script
//! takes it out of the address and sends it as a form. Without scripts a person types it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use relay_store::sockets::Ends;

use super::door::{self, Inside, Typed};
use super::frame::Frame;
use super::{refused, shown};
use crate::http::Shared;

#[derive(Template)]
#[template(path = "door/open.html")]
struct Open<'a> {
    frame: Frame<'a>,
}

pub async fn page(State(shared): State<Arc<Shared>>) -> Response {
    let nonce = shown::nonce();
    let page = Open { frame: refused::bare(&shared, &nonce, "/open") };
    shown::page(StatusCode::OK, &nonce, page.render().unwrap_or_default())
}

pub async fn open(
    State(shared): State<Arc<Shared>>,
    Extension(ends): Extension<Ends>,
    headers: HeaderMap,
    Extension(form): Typed,
) -> Response {
    let code = form.text("code").unwrap_or_default().trim().to_owned();
    let (opener, now) = (shared.clone(), shared.desk.now());
    let taken = move || opener.openings.take(&code, opener.listens, &ends, now);
    if !tokio::task::spawn_blocking(taken).await.unwrap_or_default() {
        shared.porter.turned_away(&shared.desk, "/open", &door::refusal("a code that opens nothing"));
        return refused::wrong_code(&shared);
    }
    // A browser has one session: nobody can show the one before any more.
    if let Some(before) = shared.visitors.shown(&headers, now) {
        shared.visitors.end(&before);
    }
    // The door has seen that it is an address of this server.
    let secure = headers.get(header::ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let secret = shared.visitors.begin(secure, now);
    with_cookie(shown::see("/"), &shared.visitors.cookie(Some(&secret), secure))
}

/// Ends the session of whoever leaves; where it is wished, every other one too.
pub async fn leave(State(shared): State<Arc<Shared>>, Extension(session): Inside, Extension(form): Typed) -> Response {
    if form.has("everywhere") {
        shared.visitors.end_all();
    }
    shared.visitors.end(&session);
    with_cookie(shown::see("/open"), &shared.visitors.cookie_back(&session))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
