//! Who is let in. A request comes under a name of this server, from no foreign page, not too large, and with a token; what the
//! token stands for goes on with it.

use std::net::Ipv6Addr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use relay_core::error::{Code, Refusal};
use relay_store::tokens::Token;

use super::{Shared, answers, pages, sessions, written};
use crate::ask::Origin;
use crate::mcp::Slot;
use crate::quota::{Entry, Pass, too_fast};

/// Names that a machine has for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Which project and agent a request is for where it does not say so itself.
const PROJECT: &str = "relay-project";
const AGENT: &str = "relay-agent";

/// How somebody is turned away.
pub type Turned = (StatusCode, Refusal);

pub async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let page = match known_place(&shared, &request) {
        Ok(page) => page,
        Err(turned) => return turn_away(&shared, &request, turned),
    };
    if let Some(page) = page.as_ref().filter(|_| pages::asks_first(&request)) {
        return pages::may_ask(page);
    }
    let origin = match let_in(&shared, &request) {
        Ok(origin) => origin,
        Err(turned) => return pages::shown_to(page.as_ref(), turn_away(&shared, &request, turned)),
    };
    let token = origin.pass.as_ref().map(|pass| pass.token.name.clone()).unwrap_or_default();
    let slot = Slot::default();
    request.extensions_mut().insert(origin);
    request.extensions_mut().insert(slot.clone());
    let response = next.run(request).await;
    if let Some(session) = sessions::named(&response) {
        shared.sessions.note(&token, &session).await;
    }
    pages::shown_to(page.as_ref(), written::after(response, slot))
}

fn turn_away(shared: &Shared, request: &Request, (status, refusal): Turned) -> Response {
    shared.porter.turned_away(&shared.desk, request.uri().path(), &refusal);
    answers::refused(status, &refusal)
}

/// What a program that looks for something that is not there is told, once it was let in.
pub async fn nothing_here(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match known_place(&shared, &request).and_then(|_| let_in(&shared, &request)) {
        Ok(_) => answers::nothing_here(),
        Err(turned) => turn_away(&shared, &request, turned),
    }
}

fn forbidden(text: String) -> Turned {
    (StatusCode::FORBIDDEN, Code::Unauthorized.refuse(text).with("served", true).with("place", true))
}

fn twice() -> Turned {
    forbidden("Host and Origin are said once each, and Host is a name".to_owned())
}

/// The name under which this server was called, and the port if one was said. It is one of its names.
pub fn called(shared: &Shared, request: &Request) -> Result<String, Turned> {
    let called = authority(request.headers(), request.uri()).ok_or_else(twice)?;
    let host = host(&called).ok_or_else(twice)?;
    if !is_served(&host, &shared.config.hosts) {
        return Err(forbidden(format!("{host:?} is no name of this server; `relay serve --allow-host` adds one")));
    }
    Ok(called)
}

/// The page that a request comes from, as its browser says; none where it says nothing.
pub fn origin(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Turned> {
    only(headers, &header::ORIGIN).map_err(|Twice| twice())
}

/// Whether it comes under a name of this server, and from where. The page that it comes from, if it is one that may call.
fn known_place(shared: &Shared, request: &Request) -> Result<Option<HeaderValue>, Turned> {
    called(shared, request)?;
    let page = origin(request.headers())?;
    match page {
        Some(page) if !shared.config.origins.iter().any(|known| known == page) => {
            Err(forbidden(format!("pages of {page:?} may not call; `relay serve --allow-origin` lets them")))
        }
        page => Ok(page.cloned()),
    }
}

fn let_in(shared: &Shared, request: &Request) -> Result<Origin, Turned> {
    let headers = request.headers();
    let token = token(shared, headers).map_err(|refusal| (StatusCode::UNAUTHORIZED, refusal))?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if let Some(bytes) = length.filter(|bytes| *bytes > shared.most_bytes) {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, answers::too_large(bytes, shared.most_bytes)));
    }
    let quota = shared.quotas.of(&token.name);
    let too_fast = match quota.enter() {
        Entry::Free => None,
        // What is asked in the words of the protocol is told so in them.
        Entry::Told(until) if request.method() == Method::POST => Some(too_fast(until)),
        Entry::Told(_) | Entry::Closed => {
            return Err((StatusCode::TOO_MANY_REQUESTS, too_fast(std::time::Duration::from_secs(1))));
        }
    };
    shared.sessions.must_be_of(&token.name, headers)?;
    let credential = if token.separate { format!("token:{}", token.name) } else { shared.config.owner.clone() };
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Origin {
        credential,
        separate: token.separate,
        project: said(PROJECT).or_else(|| shared.config.project.clone()),
        agent: said(AGENT),
        session: None,
        pass: Some(Pass { token, tokens: shared.tokens.clone(), quota, too_fast }),
    })
}

/// A header that is there more than once says nothing.
struct Twice;

fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Result<Option<&'a HeaderValue>, Twice> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() { Err(Twice) } else { Ok(first) }
}

/// What a request says about whom it is for; empty where it says nothing, none where that is not clear. One that says it twice says the
/// same.
fn authority(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let said = only(headers, &header::HOST).ok()?.map(|host| host.to_str().unwrap_or_default().to_owned());
    let named = uri.authority().map(|authority| authority.as_str().to_owned());
    if let (Some(said), Some(named)) = (&said, &named)
        && !said.eq_ignore_ascii_case(named)
    {
        return None;
    }
    Some(named.or(said).unwrap_or_default()).filter(|authority| !authority.contains('@'))
}

/// The name without its port.
fn host(called: &str) -> Option<String> {
    if called.is_empty() {
        return Some(String::new());
    }
    let authority: axum::http::uri::Authority = called.parse().ok()?;
    let name = authority.host();
    let port = called.strip_prefix(name)?.trim_start_matches(':');
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Only an address stands in brackets.
    match name.strip_prefix('[') {
        Some(rest) => Some(rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.to_string()),
        None => Some(name.to_ascii_lowercase()),
    }
}

fn is_served(host: &str, more: &[String]) -> bool {
    LOOPBACK.contains(&host) || more.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// The token that a request brings. A wrong one and none at all are told apart by nobody but whoever sent it.
fn token(shared: &Shared, headers: &HeaderMap) -> Result<Token, Refusal> {
    let unknown = |text: &str| Code::Unauthorized.refuse(text).with("served", true).with("token", true);
    let missing = || unknown("a request brings a token in its header: `Authorization: Bearer TOKEN`");
    let said = only(headers, &header::AUTHORIZATION).map_err(|Twice| unknown("`Authorization` is said once"))?;
    let header = said.and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    let (scheme, secret) = header.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    shared.tokens.find(secret.trim())?.ok_or_else(|| unknown("this token is unknown here, or was revoked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_request_is_for_is_said_clearly() {
        let check = |uri: &str, hosts: &[&'static str], expected: Option<&str>| {
            let uri: Uri = uri.parse().unwrap_or_else(|fault| panic!("{uri}: {fault}"));
            let host = |host: &&'static str| (header::HOST, HeaderValue::from_static(host));
            let headers = hosts.iter().map(host).fold(HeaderMap::new(), |mut all, (name, value)| {
                all.append(name, value);
                all
            });
            assert_eq!(authority(&headers, &uri).as_deref(), expected, "{uri} {hosts:?}");
        };
        check("/", &["localhost:7717"], Some("localhost:7717"));
        check("/", &[], Some(""));
        check("http://localhost:7717/", &[], Some("localhost:7717"));
        check("http://localhost:7717/", &["LOCALHOST:7717"], Some("localhost:7717"));
        check("http://localhost:7717/", &["evil.example"], None);
        check("http://evil.example/", &["localhost:7717"], None);
        check("/", &["localhost", "localhost"], None);
        check("/", &["a@localhost"], None);
    }

    #[test]
    fn a_server_is_called_by_a_name_or_by_an_address_in_brackets() {
        let check = |called: &str, expected: Option<&str>| assert_eq!(host(called).as_deref(), expected, "{called:?}");
        check("localhost", Some("localhost"));
        check("LOCALHOST:7717", Some("localhost"));
        check("127.0.0.1:7717", Some("127.0.0.1"));
        check("[::1]:7717", Some("::1"));
        check("[0:0:0:0:0:0:0:1]", Some("::1"));
        check("", Some(""));
        for called in [
            "[localhost]",
            "[localhost]:7717",
            "[127.0.0.1]",
            "[::1",
            "::1]",
            "[::1]x",
            "[]",
            "[[::1]]",
            "a b",
            "[::1%25lo]",
        ] {
            check(called, None);
        }
    }
}
