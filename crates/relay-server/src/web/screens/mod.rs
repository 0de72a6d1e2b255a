//! The screens: each a pure function from what the verbs answered to the text of a page. None opens a store or knows of HTTP, so
//! that each is tested with values. The templates escape what they are given; only what is made of escaped text already says
//! so by its type ([`askama::filters::HtmlSafe`]): the Markdown of a message, and one template within another.

pub mod agent;
pub mod agents;
mod around;
pub mod contacts;
mod events;
pub(super) mod filters;
mod held;
pub mod history;
pub mod message;
pub mod now;
pub mod projects;
pub mod replay;
pub mod reservations;
#[cfg(test)]
pub(super) mod samples;
pub mod search;
pub mod talk;
#[cfg(test)]
mod tests;
pub mod thread;
pub mod threads;
mod tree;
pub mod trouble;
mod words;
pub mod write;

use askama::Template;

/// The text of a page. Writing into a text fails for nobody.
fn text(page: &impl Template) -> String {
    page.render().unwrap_or_else(|fault| format!("this page could not be written: {fault}"))
}

/// As many as a screen has room for.
fn first<T>(all: &[T], most: usize) -> &[T] {
    &all[..all.len().min(most)]
}
