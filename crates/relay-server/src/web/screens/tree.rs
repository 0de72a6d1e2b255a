//! The claims on the tree of files, folder in folder.

use askama::Template;
use askama::filters::HtmlSafe;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::look::{Branch, Leaf};

use super::filters;
use crate::web::frame::Frame;

/// Folders with more claims than this begin folded, unless something in them is contested.
const UNFOLDED: usize = 12;

#[derive(Template)]
#[template(path = "tree.html")]
pub struct Tree<'a> {
    pub frame: &'a Frame<'a>,
    pub branch: &'a Branch,
    /// What is contested or forgotten can be let go here.
    pub acts: bool,
    /// When it was so, where that is not now.
    pub then: Option<Timestamp>,
}

impl HtmlSafe for Tree<'_> {}

impl<'a> Tree<'a> {
    fn below(&self, branch: &'a Branch) -> Tree<'a> {
        Tree { branch, ..*self }
    }

    /// The claim of a folder that has no other: both stand on one line.
    fn only(&self, branch: &'a Branch) -> Option<&'a Leaf> {
        branch.leaves.first().filter(|_| branch.claims == 1)
    }

    fn is_open(&self, branch: &Branch) -> bool {
        branch.contested > 0 || branch.claims <= UNFOLDED
    }
}
