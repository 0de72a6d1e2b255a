//! What becomes true once an answer was written out: mail was surfaced, or read. Each front says in its own way when that is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::request::Parts;
use rmcp::RoleServer;
use rmcp::model::RequestId;
use rmcp::service::RequestContext;

use crate::desk::Late;

/// Where it waits for that.
#[derive(Clone)]
pub enum Outbox {
    /// On a pipe, answers go out under the ids of their requests.
    Pipe(Arc<Mutex<HashMap<RequestId, Box<Late>>>>),
    /// Over HTTP, with the response to the request that brought the slot.
    Http,
}

/// A place for one answer's rest.
#[derive(Clone, Default)]
pub struct Slot(Arc<Mutex<Option<Box<Late>>>>);

impl Slot {
    pub fn put(&self, late: Box<Late>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(late);
    }

    /// The answer is out.
    pub fn written(&self) {
        let late = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(late) = late {
            late.commit();
        }
    }
}

impl Outbox {
    pub fn pipe() -> Self {
        Outbox::Pipe(Arc::default())
    }

    pub fn after(&self, context: &RequestContext<RoleServer>, late: Box<Late>) {
        match self {
            Outbox::Pipe(waiting) => {
                waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(context.id.clone(), late);
            }
            Outbox::Http => {
                if let Some(slot) = parts(context).and_then(|parts| parts.extensions.get::<Slot>()) {
                    slot.put(late);
                }
            }
        }
    }

    /// The answer to this request is out.
    pub fn written(&self, id: &RequestId) {
        let Outbox::Pipe(waiting) = self else { return };
        let late = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(late) = late {
            late.commit();
        }
    }
}

/// The HTTP request that a message came with.
pub fn parts(context: &RequestContext<RoleServer>) -> Option<&Parts> {
    context.extensions.get::<Parts>()
}
