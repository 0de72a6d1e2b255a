//! Telling a page that the bus has changed. It is told that, and up to which event; what has changed it asks for itself.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use relay_core::domain::event::Number;
use relay_core::domain::name::ProjectKey;
use relay_core::error::Code;
use relay_core::verbs::look;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::refused;
use super::visit::Visit;
use crate::desk::Heard;

pub const ROUTE: &str = "/p/{slug}/live";

/// However much is written, a page is told no more often than this.
const BETWEEN: Duration = Duration::from_secs(1);
/// Something comes at least so often, so that both ends know of each other; whether the session is over is looked at as often.
const SILENCE: Duration = Duration::from_secs(15);

pub async fn live(visit: Visit) -> Response {
    let Some(place) = visit.session.stream() else {
        let refusal =
            Code::RateLimited.refuse("too many pages of this session are told of changes already; close some");
        return refused::outside(&visit.shared, StatusCode::TOO_MANY_REQUESTS, &refusal);
    };
    let Some(project) = visit.key() else { return StatusCode::NOT_FOUND.into_response() };
    let bell = match visit.shared.desk.watch_in(project.clone()).await {
        Ok(bell) => bell,
        Err(refusal) => {
            let failure = visit.refused("look", &refusal);
            return refused::inside(&visit, &failure.error, None);
        }
    };
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        let _place = place;
        Watch { visit, project, bell }.tell(&tell).await;
    });
    let events = ReceiverStream::new(told);
    Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE)).into_response()
}

struct Watch {
    visit: Visit,
    project: ProjectKey,
    bell: Heard,
}

type Tell = mpsc::Sender<Result<Event, Infallible>>;

impl Watch {
    /// Until the page is closed, the session is over, or the server goes away.
    async fn tell(mut self, tell: &Tell) {
        let (session, desk) = (self.visit.session.clone(), self.visit.shared.desk.clone());
        tokio::select! {
            () = self.go_on(tell) => {}
            () = session.ended() => {}
            () = desk.closed() => {}
            () = tell.closed() => {}
        }
    }

    /// What happened between the page and this is not missed: the first is told at once.
    async fn go_on(&mut self, tell: &Tell) {
        self.bell.so_far();
        while let Some(tip) = self.tip().await {
            let event = Event::default().event("changed").data(tip.to_string());
            if tell.send(Ok(event)).await.is_err() {
                return;
            }
            tokio::time::sleep(BETWEEN).await;
            if !self.rang().await {
                return;
            }
        }
    }

    /// Waits for the bell. False when it never rings again, or this one may not hear it.
    async fn rang(&mut self) -> bool {
        loop {
            let rang = tokio::time::timeout(SILENCE, self.bell.rings()).await;
            if self.visit.session.is_over(self.visit.shared.desk.now()) {
                return false;
            }
            match rang {
                Ok(true) => return true,
                // Another store may have taken the place of the one that was heard.
                Ok(false) => match self.visit.shared.desk.watch_in(self.project.clone()).await {
                    Ok(bell) => {
                        self.bell = bell;
                        return true;
                    }
                    Err(_) => return false,
                },
                Err(_) => {}
            }
        }
    }

    async fn tip(&self) -> Option<Number> {
        let newest =
            look::Input { what: vec!["events".to_owned()], newest: true, limit: Some(1), ..look::Input::default() };
        match self.visit.look(newest).await {
            Ok(look::Outcome::Events(events)) => Some(events.events.first().map_or(0, |event| event.number)),
            _ => None,
        }
    }
}
