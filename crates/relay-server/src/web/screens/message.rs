//! One message in full, with the way to its thread.

use askama::Template;
use relay_core::wire::v1::MessageShape;

use super::thread::Letter;
use super::{filters, text};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "message.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    letter: Letter<'a>,
}

pub fn page(frame: &Frame<'_>, message: &MessageShape) -> String {
    text(&Screen { frame, letter: Letter::of(message) })
}
