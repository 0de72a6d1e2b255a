//! What can be looked at: each address asks the verbs for what its screen shows.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;

use super::frame::{Frame, Screen};
use super::visit::Visit;
use crate::http::Shared;

pub fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/", get(projects)).route("/p/{slug}/", get(now))
}

#[derive(Template)]
#[template(path = "door/projects.html")]
struct Projects<'a> {
    frame: Frame<'a>,
}

async fn projects(visit: Visit) -> Response {
    let page = Projects { frame: visit.frame(Screen::Projects) };
    visit.page(StatusCode::OK, page.render().unwrap_or_default())
}

async fn now(visit: Visit) -> Response {
    let page = Projects { frame: visit.frame(Screen::Now) };
    visit.page(StatusCode::OK, page.render().unwrap_or_default())
}
