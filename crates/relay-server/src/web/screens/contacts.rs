//! Who may write to whom, and what waits for an answer.

use askama::Template;
use relay_core::domain::contact::LinkState;
use relay_core::domain::event::Number;
use relay_core::wire::v1::LinkShape;

use super::{filters, text};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "contacts.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    links: &'a [LinkShape],
    before: Option<Number>,
    is_old: bool,
}

pub fn page(frame: &Frame<'_>, links: &[LinkShape], before: Option<Number>) -> String {
    text(&Screen { frame, links, before, is_old: frame.is_further() })
}

impl Screen<'_> {
    fn state(&self, link: &LinkShape) -> &'static str {
        match link.state {
            LinkState::Requested => "requested",
            LinkState::Accepted => "accepted",
            LinkState::Blocked => "blocked",
            LinkState::Revoked => "revoked",
            LinkState::Lapsed => "lapsed",
        }
    }
}
