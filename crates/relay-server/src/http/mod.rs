//! relay over HTTP: MCP at `/mcp`, the command line's requests at `/v1/ask`, and two pages for whoever looks after it, all behind
//! the same guard, which wants a token. Beside them the human's page, which has a door of its own (`web/door.rs`): a token does not
//! open it, and what opens it opens nothing else.

pub(crate) mod answers;
mod ask;
mod connections;
pub(crate) mod guard;
mod pages;
mod porter;
mod sessions;
pub(crate) mod written;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any_service, get, post};
use metrics_exporter_prometheus::PrometheusHandle;
use relay_store::openings::Openings;
use relay_store::tokens::{Keyring, Tokens};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use ask::{Reply, Sent};

use self::porter::Porter;
use self::sessions::Sessions;
use crate::desk::Desk;
use crate::mcp::{Handler, Outbox};
use crate::quota::Quotas;
use crate::runtime::runtime;
use crate::stop::Stop;
use crate::web;

/// What is served to programs, and how it is asked for.
pub const ROUTES: [(&str, &str); 4] = [("POST", "/mcp"), ("POST", "/v1/ask"), ("GET", "/health"), ("GET", "/metrics")];

/// More than a body and what is around it has.
const ROOM: usize = 1024 * 1024;
/// How long those who are being answered have left when the server goes away.
const LAST_WORDS: Duration = Duration::from_secs(10);
const BETWEEN_SUMS: Duration = Duration::from_secs(5);
/// How long an answer needs from the desk to the connection.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// How much one credential may ask for.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub requests_per_second: u32,
    /// How many requests wait for something at the same time.
    pub waits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { requests_per_second: 1_000, waits: 256 }
    }
}

/// Where it listens, and to whom.
#[derive(Debug, Clone)]
pub struct Config {
    pub listen: SocketAddr,
    /// Names under which it may be called, beside those of this machine.
    pub hosts: Vec<String>,
    /// Web pages that may call it.
    pub origins: Vec<String>,
    /// The project of those who name none.
    pub project: Option<String>,
    /// What the owner's tokens stand for.
    pub owner: String,
    pub limits: Limits,
}

pub(crate) struct Shared {
    pub desk: Arc<Desk>,
    pub config: Config,
    /// Where it listens, once it does.
    pub listens: SocketAddr,
    tokens: Arc<Keyring>,
    /// The one-time links to the page, and whoever has opened it.
    pub openings: Openings,
    pub visitors: web::Sessions,
    /// What waits for the human, as it was last seen.
    pub waiting: web::Waiting,
    quotas: Quotas,
    sessions: Sessions,
    pub porter: Porter,
    metrics: PrometheusHandle,
    pub most_bytes: usize,
}

/// Listens, says where, and serves until somebody says stop.
pub fn run(
    desk: Arc<Desk>,
    config: Config,
    tokens: Tokens,
    openings: Openings,
    announced: impl FnOnce(SocketAddr),
) -> io::Result<()> {
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(config.listen).await?;
        // Whoever is told where it listens may also tell it to stop.
        let stop = Stop::new()?;
        announced(listener.local_addr()?);
        serve(listener, stop, desk, config, tokens, openings).await
    });
    // A look at a disk that does not answer is no reason to stay.
    runtime.shutdown_background();
    served
}

/// What has begun is answered, and whoever waits is told that the wait is over.
async fn serve(
    listener: TcpListener,
    mut signals: Stop,
    desk: Arc<Desk>,
    config: Config,
    tokens: Tokens,
    openings: Openings,
) -> io::Result<()> {
    let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().map_err(io::Error::other)?;
    tokio::spawn(look_after(metrics.clone()));
    let most_bytes = desk.limits().body_bytes * 2 + ROOM;
    let quotas = Quotas::new(config.limits.clone());
    let tokens = Arc::new(Keyring::new(tokens));
    let shared = Arc::new(Shared {
        desk: desk.clone(),
        config,
        listens: listener.local_addr()?,
        tokens,
        openings,
        visitors: web::Sessions::on(listener.local_addr()?.port()),
        waiting: web::Waiting::default(),
        quotas,
        sessions: Sessions::default(),
        porter: Porter::default(),
        metrics,
        most_bytes,
    });
    let (closing, streams) = (CancellationToken::new(), CancellationToken::new());
    let router = router(&shared, &streams);
    let serving = tokio::spawn(connections::serve(listener, router, closing.clone()));
    signals.wanted().await;
    desk.close();
    closing.cancel();
    let ended = async {
        desk.answered().await;
        // What was answered is on its way; a stream that only tells of changes never ends by itself.
        tokio::time::sleep(ON_ITS_WAY).await;
        streams.cancel();
        let _ = serving.await;
    };
    let _ = tokio::time::timeout(LAST_WORDS, ended).await;
    desk.drain().await;
    Ok(())
}

/// What was measured is put together now and then, also where nobody asks for it.
async fn look_after(metrics: PrometheusHandle) {
    let mut now_and_then = tokio::time::interval(BETWEEN_SUMS);
    loop {
        now_and_then.tick().await;
        metrics.run_upkeep();
    }
}

/// What is for programs, and the page. What is neither is a page too, unless a program asks.
fn router(shared: &Arc<Shared>, streams: &CancellationToken) -> Router {
    let page = programs(shared, streams).merge(web::router(shared)).with_state(shared.clone());
    page.fallback_service(web::nowhere(shared))
}

fn programs(shared: &Arc<Shared>, streams: &CancellationToken) -> Router<Arc<Shared>> {
    let guard = axum::middleware::from_fn_with_state(shared.clone(), guard::guard);
    Router::new()
        .route(ROUTES[0].1, any_service(mcp(shared, streams)))
        // As some configurations have it.
        .route("/mcp/", any_service(mcp(shared, streams)))
        .route(ROUTES[1].1, post(ask::ask))
        .route(ROUTES[2].1, get(health))
        .route(ROUTES[3].1, get(metrics))
        .method_not_allowed_fallback(answers::not_so)
        .layer(guard)
}

fn mcp(shared: &Arc<Shared>, streams: &CancellationToken) -> StreamableHttpService<Handler, LocalSessionManager> {
    let mut config = StreamableHttpServerConfig::default();
    // The guard has looked at both already, on every route.
    config.allowed_hosts = Vec::new();
    config.json_response = true;
    config.max_request_body_bytes = shared.most_bytes;
    config.cancellation_token = streams.clone();
    let desk = shared.desk.clone();
    StreamableHttpService::new(
        move || Ok(Handler::new(desk.clone(), None, Outbox::Http)),
        shared.sessions.manager.clone(),
        config,
    )
}

async fn health(State(shared): State<Arc<Shared>>) -> Response {
    answers::health(&shared.desk)
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let plain = HeaderValue::from_static("text/plain; version=0.0.4");
    ([(header::CONTENT_TYPE, plain)], shared.metrics.render()).into_response()
}
