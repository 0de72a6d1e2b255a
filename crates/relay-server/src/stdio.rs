//! MCP over the standard streams: one client, who started this process. It ends with its input, and with its parent.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::{IntoTransport, Transport};
use rmcp::{RoleServer, ServiceExt};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::ask::Origin;
use crate::descriptor;
use crate::desk::Desk;
use crate::mcp::{Handler, Outbox};
use crate::runtime::runtime;
use crate::stop::Stop;

/// How long what has begun may take when nobody is at the other end any more.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// How long an answer needs from the desk to the pipe.
const ON_ITS_WAY: Duration = Duration::from_millis(20);

/// Serves whoever is at the other end until nobody is.
pub fn run(desk: Arc<Desk>, origin: Origin) -> io::Result<()> {
    let runtime = runtime()?;
    let served = runtime.block_on(serve(desk, origin));
    // A read from the standard input that never ends is no reason to stay.
    runtime.shutdown_background();
    served
}

async fn serve(desk: Arc<Desk>, origin: Origin) -> io::Result<()> {
    let mut stop = Stop::new()?;
    let outbox = Outbox::pipe();
    let handler = Handler::new(desk.clone(), Some(origin), outbox.clone());
    let pipe = Pipe { inner: rmcp::transport::stdio_pipes().into_transport(), outbox, desk: desk.clone() };
    let parent = getppid();
    let mut client = pin!(client(handler, pipe));
    let is_there = tokio::select! {
        () = &mut client => false,
        () = death(parent) => true,
        () = stop.wanted() => true,
    };
    desk.close();
    // Whoever is at its work still ends it, and who asked hears of it.
    let ended = async {
        desk.answered().await;
        tokio::time::sleep(ON_ITS_WAY).await;
    };
    tokio::select! {
        _ = tokio::time::timeout(LAST_WORDS, ended) => {}
        () = client, if is_there => desk.answered().await,
    }
    desk.drain().await;
    Ok(())
}

async fn client(handler: Handler, pipe: impl Transport<RoleServer> + 'static) {
    // One who goes away before it has said anything is served no worse than any other.
    if let Ok(service) = handler.serve(pipe).await {
        let _ = service.waiting().await;
    }
}

/// Waits until this process has become an orphan: one whose input somebody else still holds would stay for ever.
async fn death(parent: Option<Pid>) {
    let watched = parent.and_then(|parent| pidfd_open(parent, PidfdFlags::NONBLOCK).ok());
    match watched.map(descriptor::watched) {
        Some(Ok(parent)) => drop(parent.readable().await),
        _ => std::future::pending().await,
    }
}

/// The pipe, which says when an answer has gone out, and when nobody will ask any more.
struct Pipe<T> {
    inner: T,
    outbox: Outbox,
    desk: Arc<Desk>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Pipe<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let id = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            _ => None,
        };
        let (sent, outbox) = (self.inner.send(item), self.outbox.clone());
        async move {
            sent.await?;
            id.iter().for_each(|id| outbox.written(id));
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let received = self.inner.receive().await;
        if received.is_none() {
            // What was asked is answered; what waits has waited long enough.
            self.desk.close();
        }
        received
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
