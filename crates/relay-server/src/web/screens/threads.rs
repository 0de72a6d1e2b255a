//! The list of threads.

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::wire::v1::ThreadShape;

use super::{filters, text};
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "threads.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    threads: &'a [ThreadShape],
    before: Option<Number>,
    /// Newer ones are on another page.
    is_old: bool,
}

pub fn page(frame: &Frame<'_>, threads: &[ThreadShape], before: Option<Number>) -> String {
    text(&Screen { frame, threads, before, is_old: frame.is_further() })
}
