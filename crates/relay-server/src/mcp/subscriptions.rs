//! Telling a client that something it looks at has changed. The bell of the project wakes; what is seen then is compared
//! with what was seen before.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{Handler, resources};
use crate::ask::Origin;

/// What a client of an older revision has subscribed to, one task each.
#[derive(Default)]
pub struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    pub async fn add(
        &self,
        handler: &Handler,
        uri: String,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut watched = Watched::new(handler, &uri, handler.origin(context)?).await?;
        let (peer, about) = (context.peer.clone(), uri.clone());
        let task = tokio::spawn(async move {
            while watched.changed().await {
                let told = peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(about.clone())).await;
                if told.is_err() {
                    return;
                }
            }
        });
        self.keep(uri, Some(task.abort_handle()));
        Ok(())
    }

    pub fn remove(&self, uri: &str) {
        self.keep(uri.to_owned(), None);
    }

    fn keep(&self, uri: String, task: Option<AbortHandle>) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match task {
            Some(task) => tasks.insert(uri, task),
            None => tasks.remove(&uri),
        };
        before.iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(AbortHandle::abort);
    }
}

/// Lists never change; resources do.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
    accepted
}

pub async fn listen(handler: &Handler, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let origin = handler.origin(context.request_context())?;
    let mut tasks = tokio::task::JoinSet::new();
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        let mut watched = Watched::new(handler, uri, origin.clone()).await?;
        let (sink, about) = (context.sink().clone(), uri.clone());
        tasks.spawn(async move {
            // The client was told that it is subscribed before anybody looked: what happened in between is told at once.
            while sink.notify_resource_updated(about.clone()).await.is_ok() && watched.changed().await {}
        });
    }
    tokio::select! {
        () = context.cancelled() => {}
        () = handler.desk.closed() => {}
    }
    Ok(())
}

/// A resource, as it was when it was last looked at.
struct Watched {
    handler: Handler,
    uri: String,
    origin: Origin,
    bell: watch::Receiver<u64>,
    seen: u64,
}

impl Watched {
    async fn new(handler: &Handler, uri: &str, origin: Origin) -> Result<Self, ErrorData> {
        let ask = resources::ask(handler, uri, &origin)?;
        let project = ask.as_ref().ok().and_then(|ask| ask.said.project.clone());
        let bell = handler.desk.watch(project.as_deref()).await;
        let bell = bell.map_err(|refusal| ErrorData::resource_not_found(refusal.message.clone(), None))?;
        // Without its own subscriptions: they would keep themselves alive.
        let handler = Handler { subscriptions: std::sync::Arc::default(), ..handler.clone() };
        let mut watched = Watched { handler, uri: uri.to_owned(), origin, bell, seen: 0 };
        watched.bell.mark_unchanged();
        watched.seen = watched.look().await;
        Ok(watched)
    }

    /// Waits until it looks otherwise. False when it never will again.
    async fn changed(&mut self) -> bool {
        while self.bell.changed().await.is_ok() {
            let now = self.look().await;
            if std::mem::replace(&mut self.seen, now) != now {
                return true;
            }
        }
        false
    }

    async fn look(&self) -> u64 {
        let Ok(Ok(ask)) = resources::ask(&self.handler, &self.uri, &self.origin) else { return 0 };
        let mut hasher = DefaultHasher::new();
        // Looking is ours here, not the client's: it costs no quota of its.
        self.handler.desk.ask(ask).await.json()["result"].to_string().hash(&mut hasher);
        hasher.finish()
    }
}
