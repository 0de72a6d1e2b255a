//! Knowing that a response has gone out: its last byte was handed to the connection.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Frame, SizeHint};

use crate::mcp::Slot;

/// The same response; once it is out, what waits in the slot is done.
pub fn after(response: Response, slot: Slot) -> Response {
    response.map(|body| Body::new(Watched { body, slot }))
}

struct Watched {
    body: Body,
    slot: Slot,
}

impl http_body::Body for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // One whose connection broke is dropped instead: it was never read.
        if matches!(polled, Poll::Ready(None))
            || matches!(polled, Poll::Ready(Some(Ok(_)))) && self.body.is_end_stream()
        {
            self.slot.written();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
