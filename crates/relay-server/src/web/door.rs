//! Who is let onto the page. A request comes under a name of this server; what acts comes from a page of this server's own; and
//! everybody shows the session that a one-time link has opened. Every action is looked at here, so that none can forget to.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use percent_encoding::percent_decode_str;
use relay_core::error::{Code, Refusal};

use super::form::Form;
use super::refused;
use super::session::Session;
use crate::http::guard::Turned;
use crate::http::{Shared, answers, guard, written};
use crate::mcp::Slot;

/// Where a browser says that a request comes from.
const FETCH_SITE: &str = "sec-fetch-site";
/// How long a form may take to arrive, and how long that of somebody who has no session may be.
const PATIENCE: Duration = Duration::from_secs(30);
const OUTSIDE_BYTES: usize = 16 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";

/// Looks where a request comes from, and reads what is brought with it.
pub async fn door(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    match came_in(&shared, request).await {
        Ok(request) => next.run(request).await,
        Err((status, refusal)) => {
            shared.porter.turned_away(&shared.desk, &path, &refusal);
            refused::outside(&shared, status, &refusal)
        }
    }
}

async fn came_in(shared: &Shared, request: Request) -> Result<Request, Turned> {
    let called = guard::called(shared, &request)?;
    must_be_text(request.uri().path())?;
    if is_a_look(&request) {
        return Ok(request);
    }
    must_come_from_the_page(request.headers(), &called)?;
    let (mut parts, body) = request.into_parts();
    // Of whoever is not inside nothing is wanted but a code.
    let is_inside = shared.visitors.shown(&parts.headers, shared.desk.now()).is_some();
    let form = form(&parts.headers, body, if is_inside { shared.most_bytes } else { OUTSIDE_BYTES }).await?;
    parts.extensions.insert(Arc::new(form));
    Ok(Request::from_parts(parts, Body::empty()))
}

/// What an address names is text: projects, threads and agents are called nothing else.
fn must_be_text(path: &str) -> Result<(), Turned> {
    let invalid =
        || Code::InputInvalid.refuse(format!("the address {path} is no text in UTF-8; / leads to every page"));
    percent_decode_str(path).decode_utf8().map(drop).map_err(|_| (StatusCode::BAD_REQUEST, invalid()))
}

/// The session that a request shows. What acts also shows that a page of that very session made it.
pub async fn session(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let Some(session) = shared.visitors.shown(request.headers(), shared.desk.now()) else {
        return refused::closed(&shared, is_a_look(&request).then(|| request.uri()));
    };
    if let Err((status, refusal)) = is_of(&session, &request) {
        shared.porter.turned_away(&shared.desk, request.uri().path(), &refusal);
        return refused::outside(&shared, status, &refusal);
    }
    let slot = Slot::default();
    request.extensions_mut().insert(session);
    request.extensions_mut().insert(slot.clone());
    written::after(next.run(request).await, slot)
}

fn is_of(session: &Session, request: &Request) -> Result<(), Turned> {
    if is_a_look(request) {
        return must_not_be_led_here(request.headers());
    }
    if request.extensions().get::<Arc<Form>>().is_some_and(|form| session.is_csrf(form.csrf())) {
        return Ok(());
    }
    let text = "this form is of no page that this session was shown; go back, load that page anew and try again";
    Err(forbidden(text.to_owned()))
}

/// Everything else acts, or might.
fn is_a_look(request: &Request) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// One who brings a token is a program.
pub async fn programs(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return guard::nothing_here(State(shared), request).await;
    }
    next.run(request).await
}

fn forbidden(text: String) -> Turned {
    (StatusCode::FORBIDDEN, refusal(text))
}

/// The refusal of whoever is not let onto the page.
pub fn refusal(text: impl Into<String>) -> Refusal {
    Code::Unauthorized.refuse(text).with("served", true).with("page", true)
}

/// What another site leads to brings no cookie; what another page of this host leads to does, and is not shown all the same.
fn must_not_be_led_here(headers: &HeaderMap) -> Result<(), Turned> {
    match site(headers)? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(site) => Err(forbidden(format!("another page ({site}) led here; type this address yourself"))),
    }
}

/// What acts is sent by a page of this very server: a browser says so, and no page can say it for another.
fn must_come_from_the_page(headers: &HeaderMap, called: &str) -> Result<(), Turned> {
    let origin = guard::origin(headers)?.and_then(|origin| origin.to_str().ok());
    let Some(origin) = origin else {
        return Err(forbidden("an action says which page it comes from, in its header `Origin`".to_owned()));
    };
    let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    if !place.is_some_and(|place| place.eq_ignore_ascii_case(called)) {
        return Err(forbidden(format!("pages of {origin:?} may not act here")));
    }
    match site(headers)? {
        None | Some("same-origin") => Ok(()),
        Some(site) => Err(forbidden(format!("this action comes from another page ({site})"))),
    }
}

fn site(headers: &HeaderMap) -> Result<Option<&str>, Turned> {
    let mut said = headers.get_all(FETCH_SITE).iter();
    let site = said.next().map(|site| site.to_str().unwrap_or("unreadable"));
    if said.next().is_some() { Err(forbidden("`Sec-Fetch-Site` is said once".to_owned())) } else { Ok(site) }
}

async fn form(headers: &HeaderMap, body: Body, most: usize) -> Result<Form, Turned> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(FORM)) {
        let refusal = Code::InputInvalid.refuse(format!("an action is a form ({FORM}), not {kind:?}"));
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal));
    }
    // What is longer is not read to its end, so how long it is stays unknown.
    let too_large = || (StatusCode::PAYLOAD_TOO_LARGE, answers::too_large(most + 1, most));
    let too_slow =
        || (StatusCode::REQUEST_TIMEOUT, Code::InputInvalid.refuse("the form did not come to its end in time"));
    let read = tokio::time::timeout(PATIENCE, to_bytes(body, most)).await.map_err(|_| too_slow())?;
    let bytes = read.map_err(|_| too_large())?;
    Form::sent(&bytes).map_err(|refusal| (StatusCode::BAD_REQUEST, refusal))
}

/// What a handler that is behind the door takes.
pub type Inside = Extension<Arc<Session>>;
pub type Typed = Extension<Arc<Form>>;

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn an_action_comes_from_the_page_itself() {
        let check = |pairs: &[(&'static str, &'static str)], called: &str, expected: bool| {
            assert_eq!(must_come_from_the_page(&headers(pairs), called).is_ok(), expected, "{pairs:?} {called}");
        };
        let own = ("origin", "http://localhost:7717");
        check(&[own], "localhost:7717", true);
        check(&[own], "LOCALHOST:7717", true);
        check(&[("origin", "https://bus.example")], "bus.example", true);
        check(&[own, (FETCH_SITE, "same-origin")], "localhost:7717", true);
        for site in ["cross-site", "same-site", "none", ""] {
            check(&[own, (FETCH_SITE, site)], "localhost:7717", false);
        }
        for origin in
            ["http://localhost:7718", "http://127.0.0.1:7717", "null", "localhost:7717", "", "ftp://localhost:7717"]
        {
            check(&[("origin", origin)], "localhost:7717", false);
        }
        check(&[], "localhost:7717", false);
    }

    #[test]
    fn a_page_is_shown_to_whoever_comes_by_themselves() {
        let check = |pairs: &[(&'static str, &'static str)], expected: bool| {
            assert_eq!(must_not_be_led_here(&headers(pairs)).is_ok(), expected, "{pairs:?}");
        };
        check(&[], true);
        check(&[(FETCH_SITE, "none")], true);
        check(&[(FETCH_SITE, "same-origin")], true);
        check(&[(FETCH_SITE, "same-site")], false);
        check(&[(FETCH_SITE, "cross-site")], false);
    }
}
