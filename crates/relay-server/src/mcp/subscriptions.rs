//! Telling a client that something it looks at has changed. The bell of the project wakes; what is seen then is compared
//! with what was seen before.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

use super::{Handler, resources};
use crate::ask::Origin;
use crate::desk::Heard;
use crate::quota::{self, Pass};

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
        let origin = handler.origin(context)?;
        let place = place(&origin)?;
        let mut watched = Watched::new(handler, &uri, origin).await?;
        let (peer, about) = (context.peer.clone(), uri.clone());
        let task = tokio::spawn(async move {
            let _place = place;
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

/// Lists never change; resources do. What is no address of one is left out, so that the others are told of.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let mut accepted = SubscriptionFilter::new();
    accepted.resource_subscriptions.clone_from(&requested.resource_subscriptions);
    accepted.resource_subscriptions.iter_mut().for_each(|uris| uris.retain(|uri| resources::is_address(uri)));
    accepted
}

pub async fn listen(handler: &Handler, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let origin = handler.origin(context.request_context())?;
    let mut tasks = tokio::task::JoinSet::new();
    let uris: BTreeSet<&String> = context.accepted().resource_subscriptions.iter().flatten().collect();
    for uri in uris {
        let place = place(&origin)?;
        let mut watched = Watched::new(handler, uri, origin.clone()).await?;
        let (sink, about) = (context.sink().clone(), uri.clone());
        tasks.spawn(async move {
            let _place = place;
            // The client was told that it is subscribed before anybody looked: what happened in between is told at once.
            while sink.notify_resource_updated(about.clone()).await.is_ok() && watched.changed().await {}
        });
    }
    tokio::select! {
        () = context.cancelled() => {}
        () = handler.desk.closed() => {}
        // One that has nothing more to tell, since it may not or cannot, ends all: the client begins anew.
        Some(_) = tasks.join_next() => {}
    }
    Ok(())
}

/// Whoever is told of changes waits for them.
fn place(origin: &Origin) -> Result<Option<OwnedSemaphorePermit>, ErrorData> {
    let Some(pass) = &origin.pass else { return Ok(None) };
    let place = pass.place().ok_or_else(|| ErrorData::internal_error(quota::too_many_wait().message.clone(), None))?;
    Ok(Some(place))
}

/// A resource, as it was when it was last looked at.
struct Watched {
    handler: Handler,
    uri: String,
    origin: Origin,
    project: Option<String>,
    bell: Heard,
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
        let mut watched = Watched { handler, uri: uri.to_owned(), origin, project, bell, seen: 0 };
        watched.bell.so_far();
        watched.seen = watched.look().await;
        Ok(watched)
    }

    /// Waits until it looks otherwise. False when it never will again, or when this one may not know.
    async fn changed(&mut self) -> bool {
        loop {
            if !self.bell.rings().await {
                // Another store may have taken the place of the one that was heard.
                match self.handler.desk.watch(self.project.as_deref()).await {
                    Ok(bell) => self.bell = bell,
                    Err(_) => return false,
                }
            }
            if self.origin.pass.as_ref().is_some_and(Pass::was_revoked) {
                return false;
            }
            let now = self.look().await;
            if std::mem::replace(&mut self.seen, now) != now {
                return true;
            }
        }
    }

    async fn look(&self) -> u64 {
        let Ok(Ok(ask)) = resources::ask(&self.handler, &self.uri, &self.origin) else { return 0 };
        let mut hasher = DefaultHasher::new();
        // Looking is ours here, not the client's: it costs no quota of its.
        self.handler.desk.ask(ask).await.json()["result"].to_string().hash(&mut hasher);
        hasher.finish()
    }
}
