//! All projects of this machine.

use askama::Template;

use super::text;
use crate::web::frame::Frame;

#[derive(Template)]
#[template(path = "projects.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
}

pub fn page(frame: &Frame<'_>) -> String {
    text(&Screen { frame })
}
