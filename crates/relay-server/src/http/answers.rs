//! Answers that no verb gives, in the one shape that every answer has.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use relay_core::error::{Code, Kind, Refusal};
use relay_core::playbook::Setting;
use relay_core::verbs::recover;
use relay_core::wire::v1;
use serde_json::json;

use crate::ask::{Answer, Body};
use crate::desk::Desk;

const COMMAND: &str = "serve";

pub fn refused(status: StatusCode, refusal: &Refusal) -> Response {
    let failure = recover::failure_outside(COMMAND, refusal, &Setting::default());
    let mut response = (status, axum::Json(failure)).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        // What it sends with this is not read.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

pub fn too_large(bytes: usize, limit: usize) -> Refusal {
    Code::BodyTooLarge
        .refuse(format!("the request has {bytes} bytes, and {limit} are taken"))
        .with("bytes", bytes)
        .with("limit", limit)
}

pub fn nothing_here() -> Response {
    refused(StatusCode::NOT_FOUND, &Code::InputInvalid.refuse("there is nothing here; MCP is at /mcp"))
}

pub async fn not_so() -> Response {
    refused(StatusCode::METHOD_NOT_ALLOWED, &Code::InputInvalid.refuse("this is asked for in another way"))
}

pub fn health(desk: &Desk) -> Response {
    let result = json!({"version": env!("CARGO_PKG_VERSION"), "at": desk.now()});
    axum::Json(v1::Answer::new("health", result, Vec::new(), Vec::new())).into_response()
}

/// The status that says the same as an answer.
pub fn status(answer: &Answer) -> StatusCode {
    match &answer.body {
        Body::Done(_) => StatusCode::OK,
        Body::Failed(failure) => status_of(failure.error.code),
    }
}

/// The status that says the same as an error.
pub fn status_of(code: Code) -> StatusCode {
    match (code, code.kind()) {
        (Code::RateLimited, _) => StatusCode::TOO_MANY_REQUESTS,
        (Code::BodyTooLarge, _) => StatusCode::PAYLOAD_TOO_LARGE,
        (_, Kind::Input) => StatusCode::BAD_REQUEST,
        (_, Kind::Unknown) => StatusCode::NOT_FOUND,
        (_, Kind::Consent | Kind::Denied) => StatusCode::FORBIDDEN,
        (_, Kind::Conflict) => StatusCode::CONFLICT,
        (_, Kind::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        (_, Kind::Damaged | Kind::Internal) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
