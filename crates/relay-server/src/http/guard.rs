//! Who is let in. A request comes under a name of this server, from no foreign page, not too large, and with a token; what the
//! token stands for goes on with it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use relay_core::error::{Code, Refusal};
use relay_store::tokens::Token;

use super::{Shared, answers, written};
use crate::ask::Origin;
use crate::mcp::Slot;

/// Names that a machine has for itself.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Which project and agent a request is for where it does not say so itself.
const PROJECT: &str = "relay-project";
const AGENT: &str = "relay-agent";

pub async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let origin = match let_in(&shared, &request) {
        Ok(origin) => origin,
        Err((status, refusal)) => return answers::refused(status, &refusal),
    };
    let slot = Slot::default();
    request.extensions_mut().insert(origin);
    request.extensions_mut().insert(slot.clone());
    written::after(next.run(request).await, slot)
}

fn let_in(shared: &Shared, request: &Request) -> Result<Origin, (StatusCode, Refusal)> {
    let headers = request.headers();
    let forbidden = |text: String| {
        (StatusCode::FORBIDDEN, Code::Unauthorized.refuse(text).with("served", true).with("place", true))
    };
    let host = host(headers, request.uri()).unwrap_or_default();
    if !is_served(&host, &shared.config.hosts) {
        return Err(forbidden(format!("{host:?} is no name of this server; `relay serve --allow-host` adds one")));
    }
    let foreign =
        headers.get(header::ORIGIN).filter(|origin| !shared.config.origins.iter().any(|known| known == *origin));
    if let Some(origin) = foreign {
        return Err(forbidden(format!("pages of {origin:?} may not call; `relay serve --allow-origin` lets them")));
    }
    let token = token(shared, headers).map_err(|refusal| (StatusCode::UNAUTHORIZED, refusal))?;
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if let Some(bytes) = length.filter(|bytes| *bytes > shared.most_bytes) {
        return Err((StatusCode::PAYLOAD_TOO_LARGE, answers::too_large(bytes, shared.most_bytes)));
    }
    let credential = if token.separate { format!("token:{}", token.name) } else { shared.config.owner.clone() };
    let quota = shared.quotas.of(&token.name);
    if !quota.may_come_in() {
        return Err((StatusCode::TOO_MANY_REQUESTS, crate::quota::too_fast(Duration::from_secs(1))));
    }
    let said = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Origin {
        credential,
        project: said(PROJECT).or_else(|| shared.config.project.clone()),
        agent: said(AGENT),
        session: None,
        quota: Some(quota),
    })
}

/// The name under which this server was called, without its port.
fn host(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let named = uri.authority().map(|authority| authority.as_str().to_owned());
    let authority = named.or_else(|| headers.get(header::HOST)?.to_str().ok().map(str::to_owned))?;
    let authority: axum::http::uri::Authority = authority.parse().ok()?;
    Some(authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase())
}

fn is_served(host: &str, more: &[String]) -> bool {
    LOOPBACK.contains(&host) || more.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// The token that a request brings. A wrong one and none at all are told apart by nobody but whoever sent it.
fn token(shared: &Shared, headers: &HeaderMap) -> Result<Token, Refusal> {
    let unknown = |text: &str| Code::Unauthorized.refuse(text).with("served", true).with("token", true);
    let missing = || unknown("a request brings a token in its header: `Authorization: Bearer TOKEN`");
    let header = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    let (scheme, secret) = header.split_once(' ').ok_or_else(missing)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(missing());
    }
    shared.tokens.find(secret.trim())?.ok_or_else(|| unknown("this token is unknown here, or was revoked"))
}
