//! Those who are connected: as many as there is room for, and nobody who says nothing.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use relay_store::sockets::Ends;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How long a request may take to say what it wants, and a connection to say nothing at all.
const SILENCE: Duration = Duration::from_secs(30);
/// After a fault in accepting, which is mostly one of too many open files.
const BREATH: Duration = Duration::from_millis(50);
/// How many files are open beside connections, at most: those of the stores.
const OTHER_FILES: u64 = 640;
const MOST: u64 = 4_096;
const LEAST: u64 = 128;

/// Serves whoever connects until it is told to stop; then until everybody has an answer.
pub async fn serve(listener: TcpListener, router: Router, closing: CancellationToken) {
    let room = Arc::new(Semaphore::new(usize::try_from(room()).unwrap_or(usize::MAX)));
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(SILENCE);
    let connected = GracefulShutdown::new();
    loop {
        let accepted = async {
            // Those beyond wait to be accepted.
            let place = room.clone().acquire_owned().await;
            (listener.accept().await, place)
        };
        let (accepted, place) = tokio::select! {
            accepted = accepted => accepted,
            () = closing.cancelled() => break,
        };
        let Ok((stream, theirs)) = accepted else {
            tokio::time::sleep(BREATH).await;
            continue;
        };
        // One that is gone already has no ends any more.
        let Ok(ours) = stream.local_addr() else { continue };
        // An answer is one small write: it should not wait for another.
        let _ = stream.set_nodelay(true);
        let (router, ends) = (TowerToHyperService::new(router.clone()), Ends { theirs, ours });
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ends);
            router.call(request)
        });
        let connection = connected.watch(protocol.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // One that breaks off has nobody who could be told.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    connected.shutdown().await;
}

/// How many connections there is room for, among the files that this process may open. It takes all that it is allowed.
fn room() -> u64 {
    let allowed = getrlimit(Resource::Nofile);
    let all = Rlimit { current: allowed.maximum, ..allowed };
    let files = if setrlimit(Resource::Nofile, all).is_ok() { all.current } else { allowed.current };
    files.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES).clamp(LEAST, MOST)
}
