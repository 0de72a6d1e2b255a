//! Web pages of other places that may call: a browser asks first, and shows a page only what it may see.

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, last-event-id, relay-project, relay-agent",
);
const SHOWN: HeaderValue = HeaderValue::from_static("mcp-session-id, retry-after");

/// Whether a browser asks if it may ask.
pub fn asks_first(request: &Request) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub fn may_ask(page: &HeaderValue) -> Response {
    let allowed = [(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS), (header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS)];
    shown_to(Some(page), (StatusCode::NO_CONTENT, allowed).into_response())
}

pub fn shown_to(page: Option<&HeaderValue>, mut response: Response) -> Response {
    if let Some(page) = page {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page.clone());
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, SHOWN);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}
