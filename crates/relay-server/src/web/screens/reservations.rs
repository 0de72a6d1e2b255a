//! Who holds what, as a list.

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::wire::v1::{AgentShape, ClaimShape};

use super::held::{Held, held};
use super::trouble::Trouble;
use super::{filters, text};
use crate::web::frame::Frame;

/// A page of the claims, and what was asked for.
pub struct Claims<'a> {
    /// Empty where all are shown.
    pub path: &'a str,
    pub claims: &'a [ClaimShape],
    pub contested: &'a [Number],
    /// Of those that were asked for, on this page or not.
    pub total: usize,
    /// There are more after this number.
    pub after: Option<Number>,
    /// Everybody, since it counts who of the holders is alive.
    pub agents: &'a [AgentShape],
}

#[derive(Template)]
#[template(path = "reservations.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    path: &'a str,
    claims: Vec<Held<'a>>,
    total: usize,
    after: Option<Number>,
    is_further: bool,
    /// What is wrong with the path.
    trouble: Option<Trouble<'a>>,
}

pub fn page(frame: &Frame<'_>, asked: &Claims<'_>) -> String {
    let Claims { path, claims, contested, total, after, agents } = *asked;
    let (claims, is_further) = (held(claims, contested, agents), frame.is_further());
    text(&Screen { frame, path, claims, total, after, is_further, trouble: None })
}

/// The form as it was filled in, with what is wrong with it.
pub fn refused(frame: &Frame<'_>, path: &str, trouble: Trouble<'_>) -> String {
    let (claims, is_further) = (Vec::new(), frame.is_further());
    text(&Screen { frame, path, claims, total: 0, after: None, is_further, trouble: Some(trouble) })
}
