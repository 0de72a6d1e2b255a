//! How a page goes out: with everything that a browser must know to keep it safe.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use relay_core::domain::event::hex;
use relay_core::store::Random;
use relay_store::SystemRandom;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// On everything that the page's door gives out. The referrer stays within the page: without any, a browser would not say where
/// the page's own forms come from.
const ALWAYS: [(HeaderName, &str); 5] = [
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub async fn kept_safe(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What is kept in a cache outlives the session; only what is the same for everybody says otherwise.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// What marks the scripts and styles of one response as ours.
pub fn nonce() -> String {
    hex(&SystemRandom.bytes())
}

/// An idempotency key that nobody has used.
pub fn key() -> String {
    hex(&SystemRandom.bytes())
}

pub fn page(status: StatusCode, nonce: &str, text: String) -> Response {
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"));
    (status, [(header::CONTENT_TYPE, HTML), (header::CONTENT_SECURITY_POLICY, policy)], text).into_response()
}

/// On to another page, which is asked for anew.
pub fn see(path: &str) -> Response {
    let path = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, path)]).into_response()
}
