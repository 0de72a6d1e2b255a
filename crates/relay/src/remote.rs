//! The command line, where a server has the stores: `RELAY_URL` says where, `RELAY_TOKEN` opens the door. The answers are the
//! same, so nobody who asks can tell who answered.

use std::io::Read;
use std::time::Duration;

use relay_core::domain::time::Span;
use relay_core::error::{Code, Refusal};
use relay_core::store::Result;
use relay_server::http::{Reply, Sent};
use serde_json::Value;
use ureq::tls::{RootCerts, TlsConfig};

use crate::environment;

/// A server that does not answer a knock within this time is away.
const KNOCK: Duration = Duration::from_secs(5);
/// How long an answer may take beside what the request itself waits for.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Remote {
    pub url: String,
    token: String,
    patience: Duration,
}

impl Remote {
    /// The server that the environment names, if it names one.
    pub fn named() -> Result<Option<Self>> {
        let Some(url) = address() else { return Ok(None) };
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Code::InputInvalid.refuse(format!("RELAY_URL is {url:?}; it starts with http:// or https://")));
        }
        Ok(Some(Remote { url, token: token()?, patience: PATIENCE }))
    }

    /// The same for somebody who does without an answer that takes longer.
    #[must_use]
    pub fn within(self, patience: Duration) -> Self {
        Remote { patience, ..self }
    }

    /// Asks it. What fails before the request itself is on its way did not happen; from then on only an answer says what did.
    pub fn ask(&self, sent: &Sent) -> Result<Reply> {
        let wait = sent.request.waits_for().map_or(Duration::ZERO, Span::to_std);
        let body = serde_json::to_vec(sent).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        let mut outgoing = Outgoing { left: &body, is_on_its_way: false };
        let answered = agent(self.patience + wait)
            .post(format!("{}/v1/ask", self.url))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .send(ureq::SendBody::from_reader(&mut outgoing));
        let mut response = match answered {
            Ok(response) => response,
            Err(fault) if outgoing.is_on_its_way => return Err(self.unknown(&fault.to_string())),
            Err(fault) => return Err(self.away(&fault.to_string())),
        };
        let status = response.status();
        let text = response.body_mut().with_config().limit(u64::MAX).read_to_string();
        let text = text.map_err(|fault| self.unknown(&fault.to_string()))?;
        let answer: Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(refusal) = turned_away(&answer) {
            return Err(refusal);
        }
        serde_json::from_value(answer).map_err(|_| {
            // Whatever stands there says itself that it took nothing; another fault may be one on the way back.
            let took_nothing = status.is_redirection() || status.is_client_error();
            let strange = strange(status);
            if took_nothing { self.away(&strange) } else { self.unknown(&strange) }
        })
    }

    /// Whether it answers, and lets the caller in.
    pub fn knock(&self) -> Result<()> {
        let knock = agent(KNOCK).get(format!("{}/health", self.url));
        let answered = knock.header("authorization", format!("Bearer {}", self.token)).call();
        let mut response = answered.map_err(|fault| self.away(&fault.to_string()))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let said: Value =
            serde_json::from_str(&response.body_mut().read_to_string().unwrap_or_default()).unwrap_or_default();
        Err(turned_away(&said).unwrap_or_else(|| self.away(&strange(status))))
    }

    fn away(&self, why: &str) -> Refusal {
        Code::StoreUnreachable
            .refuse(format!("the server at {} does not answer: {why}", self.url))
            .with("url", self.url.as_str())
    }

    /// It has the request, or a part of it, and did not say what came of it.
    fn unknown(&self, why: &str) -> Refusal {
        let text = format!(
            "the request went out to {}, and no whole answer came back: {why}; whether it took effect is unknown",
            self.url
        );
        Code::StoreIo.refuse(text).with("url", self.url.as_str())
    }
}

fn strange(status: ureq::http::StatusCode) -> String {
    format!("{status} is no answer of relay's")
}

/// Where the server is: as an agent's configuration has it, or without the last part.
pub fn address() -> Option<String> {
    let url = environment::url()?;
    Some(url.trim().trim_end_matches('/').trim_end_matches("/mcp").trim_end_matches('/').to_owned())
}

/// The token, and nothing around it: what a file or a command gave often ends in a new line.
fn token() -> Result<String> {
    let refuse = |text: &str| Code::Unauthorized.refuse(text).with("served", true).with("token", true);
    let token = environment::token().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| refuse("RELAY_URL names a server, and RELAY_TOKEN no token for it"))?;
    let scheme = token.split_whitespace().next().unwrap_or_default();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Err(refuse("RELAY_TOKEN begins with `Bearer`; it is the token alone"));
    }
    if !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(refuse("RELAY_TOKEN has spaces or characters in it that no token has"));
    }
    Ok(token)
}

fn agent(patience: Duration) -> ureq::Agent {
    // Who is trusted is for the machine to say, or for SSL_CERT_FILE: what stands before a server often has a certificate of
    // the house.
    let trusted = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
    ureq::Agent::config_builder()
        .tls_config(trusted)
        .timeout_connect(Some(KNOCK))
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        // A request that is sent on somewhere else would arrive there without what it asks for.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .build()
        .into()
}

/// What is sent, and whether any of it may have left: it is asked for only once the connection stands.
struct Outgoing<'a> {
    left: &'a [u8],
    is_on_its_way: bool,
}

impl Read for Outgoing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.is_on_its_way = true;
        self.left.read(buffer)
    }
}

/// What the server said to a request that it did not let in.
fn turned_away(answer: &Value) -> Option<Refusal> {
    let error = answer.get("error")?;
    let refusal = Code::parse(error["code"].as_str()?)?.refuse(error["message"].as_str()?);
    let details = error["details"].as_object().into_iter().flatten();
    Some(details.fold(refusal, |refusal, (name, value)| refusal.with(name, value.clone())))
}
