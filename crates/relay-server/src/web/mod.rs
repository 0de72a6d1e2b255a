//! The human's page: what the bus shows to a person in a browser, and what they decide there.
//!
//! `door.rs` lets in whoever has opened the page with a one-time link (`open.rs`) and nobody else, and looks at every action
//! before anything is done. A request that is inside is a [`visit::Visit`]: it reads and acts through the desk, as the human. A
//! screen is a pure function from what the verbs answered to text; `pages.rs` asks for it, `act/` turns forms into requests.

mod act;
pub mod assets;
mod door;
mod form;
pub mod frame;
mod live;
mod markdown;
mod offers;
mod open;
mod pages;
mod refused;
pub mod screens;
mod seen;
mod session;
mod shown;
mod visit;
mod waiting;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};

use crate::http::Shared;
pub(crate) use session::Sessions;
pub(crate) use waiting::Waiting;

/// What stands in the page on which a link is opened: who finds it there has found a relay.
pub const MARK: &str = "<form id=\"relay-open\" ";

/// The page. What is outside is for anybody; everything else needs a session.
pub(crate) fn router(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let outside =
        Router::new().route("/open", get(open::page).post(open::open)).route(assets::ROUTE, get(assets::give));
    let inside =
        pages::routes().merge(act::routes()).route("/leave", post(open::leave)).route(live::ROUTE, get(live::live));
    let inside =
        inside.method_not_allowed_fallback(refused::not_so).layer(from_fn_with_state(shared.clone(), door::session));
    behind_the_door(shared, outside.method_not_allowed_fallback(refused::not_so).merge(inside))
}

/// Where there is nothing. A program, which brings a token, is told so in its own words; a person on a page.
pub(crate) fn nowhere(shared: &Arc<Shared>) -> Router {
    let nothing = Router::new().fallback(refused::nowhere).layer(from_fn_with_state(shared.clone(), door::session));
    let nothing = behind_the_door(shared, nothing);
    nothing.layer(from_fn_with_state(shared.clone(), door::programs)).with_state(shared.clone())
}

fn behind_the_door(shared: &Arc<Shared>, router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    router.layer(from_fn_with_state(shared.clone(), door::door)).layer(from_fn(shown::kept_safe))
}
