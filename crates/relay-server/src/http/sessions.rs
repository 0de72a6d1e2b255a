//! Sessions, which only clients of older revisions have. Each is of the token that began it, and no token has many.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use relay_core::error::{Code, Refusal};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

const HEADER: &str = "mcp-session-id";

/// As many as one token has at a time. Whoever begins one more ends its oldest.
const MOST: usize = 64;

#[derive(Default)]
pub struct Sessions {
    pub manager: Arc<LocalSessionManager>,
    /// By token, the oldest first.
    of: Mutex<HashMap<String, VecDeque<String>>>,
}

/// The session that a response speaks of.
pub fn named(response: &Response) -> Option<String> {
    response.headers().get(HEADER)?.to_str().ok().map(str::to_owned)
}

impl Sessions {
    /// Refuses somebody else's, as one that is not there.
    pub fn must_be_of(&self, token: &str, headers: &HeaderMap) -> Result<(), (StatusCode, Refusal)> {
        let Some(named) = headers.get(HEADER) else { return Ok(()) };
        let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if of.get(token).is_some_and(|sessions| sessions.iter().any(|session| session.as_bytes() == named.as_bytes())) {
            return Ok(());
        }
        Err((StatusCode::NOT_FOUND, Code::InputInvalid.refuse("there is no such session; begin with `initialize`")))
    }

    /// Notes one that has begun.
    pub async fn note(&self, token: &str, begun: &str) {
        if let Some(oldest) = self.add(token, begun) {
            let _ = self.manager.close_session(&oldest.into()).await;
        }
    }

    /// Returns the one that has to end for it.
    fn add(&self, token: &str, begun: &str) -> Option<String> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let sessions = of.entry(token.to_owned()).or_default();
        if sessions.iter().any(|session| session == begun) {
            return None;
        }
        sessions.push_back(begun.to_owned());
        if sessions.len() > MOST { sessions.pop_front() } else { None }
    }
}
