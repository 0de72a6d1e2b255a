//! The command line, where a server has the stores: `RELAY_URL` says where, `RELAY_TOKEN` opens the door. The answers are the
//! same, so nobody who asks can tell who answered.

use std::time::Duration;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_server::http::{Reply, Sent};
use serde_json::Value;

use crate::environment;

/// A server that does not answer a knock within this time is away.
const KNOCK: Duration = Duration::from_secs(5);
/// How long an answer may take beside what the request itself waits for.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Remote {
    url: String,
    token: String,
}

impl Remote {
    /// The server that the environment names, if it names one.
    pub fn named() -> Result<Option<Self>> {
        let Some(url) = environment::url() else { return Ok(None) };
        if !url.starts_with("http://") {
            return Err(Code::InputInvalid.refuse(format!("RELAY_URL is {url:?}; it starts with http://")));
        }
        let missing = || {
            Code::Unauthorized
                .refuse("RELAY_URL names a server, and RELAY_TOKEN no token for it")
                .with("served", true)
                .with("token", true)
        };
        let token = environment::token().ok_or_else(missing)?;
        // As an agent's configuration has it, or without the last part.
        let url = url.trim_end_matches('/').trim_end_matches("/mcp").to_owned();
        Ok(Some(Remote { url, token }))
    }

    pub fn ask(&self, sent: &Sent) -> Result<Reply> {
        let wait = sent.request.waits_for().map_or(Duration::ZERO, Span::to_std);
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .timeout_connect(Some(KNOCK))
            .timeout_global(Some(PATIENCE + wait))
            .http_status_as_error(false)
            .build()
            .into();
        let body = serde_json::to_string(sent).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        let answered = agent
            .post(format!("{}/v1/ask", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .send(body);
        let mut response = answered.map_err(|fault| self.away(&fault.to_string()))?;
        let text = response.body_mut().with_config().limit(u64::MAX).read_to_string();
        let text = text.map_err(|fault| self.away(&fault.to_string()))?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        match turned_away(&answer) {
            Some(refusal) => Err(refusal),
            None => serde_json::from_value(answer)
                .map_err(|_| self.away("it answers with something that is no answer of relay's")),
        }
    }

    /// Whether it answers at all.
    pub fn is_there(&self) -> bool {
        let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(KNOCK)).build().into();
        let knock = agent.get(format!("{}/health", self.url)).header("authorization", format!("Bearer {}", self.token));
        knock.call().is_ok()
    }

    fn away(&self, why: &str) -> Refusal {
        Code::StoreUnreachable
            .refuse(format!("the server at {} does not answer: {why}", self.url))
            .with("url", self.url.as_str())
    }
}

/// What the server said to a request that it did not let in.
fn turned_away(answer: &Value) -> Option<Refusal> {
    let error = answer.get("error")?;
    let refusal = Code::parse(error["code"].as_str()?)?.refuse(error["message"].as_str()?);
    let details = error["details"].as_object().into_iter().flatten();
    Some(details.fold(refusal, |refusal, (name, value)| refusal.with(name, value.clone())))
}
