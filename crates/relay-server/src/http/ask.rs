//! `/v1/ask`: a request of relay's own command line, as the command line makes it, and its one line of an answer.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::body::{Body as Bytes, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use relay_core::error::Code;
use relay_core::verbs::Request;
use serde::{Deserialize, Serialize};

use super::{Shared, answers};
use crate::ask::{Answer, Ask, Body, Origin, Said};
use crate::front::Speech;
use crate::mcp::{Slot, boundary};

/// What is sent. The same word as everywhere: it is what [`Ask`] is made of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    pub command: String,
    pub request: Request,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// `--project` said so, rather than the place where the command runs.
    #[serde(default)]
    pub project_is_said: bool,
    /// The folders from which the caller sees the repository: it may be in a linked worktree.
    #[serde(default)]
    pub seen_from: Vec<PathBuf>,
    /// `--agent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `RELAY_AGENT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Nobody chose it: it is there so that the same request can be made again.
    #[serde(default)]
    pub key_is_made: bool,
    /// The human's credential, where the human asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human: Option<String>,
}

/// What comes back: the one line that `--json` prints, and the same as sentences, coloured for a terminal.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reply {
    pub line: String,
    pub text: String,
    /// The exit status.
    pub status: u8,
}

pub async fn ask(
    State(shared): State<Arc<Shared>>,
    Extension(origin): Extension<Origin>,
    Extension(slot): Extension<Slot>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.to_ascii_lowercase().starts_with("application/json") {
        let refusal = Code::InputInvalid.refuse(format!("a request is application/json, not {kind:?}"));
        return answers::refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, &refusal);
    }
    let Ok(bytes) = to_bytes(body, shared.most_bytes).await else {
        let refusal = answers::too_large(shared.most_bytes + 1, shared.most_bytes);
        return answers::refused(StatusCode::PAYLOAD_TOO_LARGE, &refusal);
    };
    let mut sent: Sent = match serde_json::from_slice(&bytes) {
        Ok(sent) => sent,
        Err(fault) => {
            let refusal = Code::InputInvalid.refuse(format!("this is no request: {fault}"));
            return answers::refused(StatusCode::BAD_REQUEST, &refusal);
        }
    };
    if !is_command(&sent.command) {
        let refusal = Code::InputInvalid.refuse("`command` is a word or two of lower-case letters");
        return answers::refused(StatusCode::BAD_REQUEST, &refusal);
    }
    if let Request::Recover(input) = &mut sent.request {
        // Whoever agrees does so at another machine, and a person's step is taken at this one.
        input.yes = false;
    }
    answer(&shared, origin, &slot, sent).await
}

/// A command stands in the steps that are proposed.
fn is_command(text: &str) -> bool {
    let is_word = |word: &str| (1..=20).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase());
    text.split(' ').all(is_word) && text.split(' ').count() <= 2
}

async fn answer(shared: &Shared, origin: Origin, slot: &Slot, sent: Sent) -> Response {
    let desk = &shared.desk;
    let said = Said {
        project: sent.project.or_else(|| origin.project.clone()),
        place: None,
        project_is_known: !sent.project_is_said,
        seen_from: sent.seen_from,
        agent: sent.agent,
        key: sent.key,
        key_is_made: sent.key_is_made,
    };
    let origin = Origin { agent: sent.variable.or(origin.agent), session: sent.session, ..origin };
    let caller = match &sent.human {
        Some(shown) => desk.front().is_human(shown).map(|()| origin.human()),
        None => origin.caller(&said),
    };
    let known = caller.and_then(|caller| Ok((caller, said.key()?)));
    let mut answer = match known {
        Ok((caller, key)) => {
            let ask = Ask { request: sent.request, command: sent.command, said, caller, key, is_glance: false };
            origin.admit(desk, ask).await
        }
        Err(refusal) => Answer::refused(&sent.command, &said, None, &refusal, desk.now()),
    };
    if let Some(late) = answer.late.take() {
        slot.put(late);
    }
    let reply = Reply {
        line: answer.line(),
        text: desk.front().text(&answer, Speech::Commands, &boundary()),
        status: match &answer.body {
            Body::Done(_) => 0,
            Body::Failed(failure) => failure.error.kind.exit_status(),
        },
    };
    (answers::status(&answer), axum::Json(reply)).into_response()
}
