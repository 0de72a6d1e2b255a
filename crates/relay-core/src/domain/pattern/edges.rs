//! What stands at the edges of segments once braces are in play.
//!
//! It decides which `**` is a whole segment, and refuses alternatives that would make the pattern
//! start or end in `/` or hold a `.` or `..` segment, none of which cleaning can reach.

use super::syntax::Node;
use super::{PatternFault, invalid};

/// Turns each `**` that is not a whole segment into the `*` it is then equal to.
///
/// The flags say whether the text beside this sequence is a `/` or an end of the pattern. Beside
/// another group the text differs by alternative, and the `**` counts as a `*`.
pub(super) fn settle_stars(nodes: &mut [Node], open_left: bool, open_right: bool) {
    for index in 0..nodes.len() {
        let left = index.checked_sub(1).map_or(open_left, |at| nodes[at] == Node::Slash);
        let right = nodes.get(index + 1).map_or(open_right, |node| *node == Node::Slash);
        match &mut nodes[index] {
            star @ Node::GlobStar if !(left && right) => *star = Node::Star,
            Node::Group(alternatives) => {
                alternatives.iter_mut().for_each(|nodes| settle_stars(nodes, left, right));
            }
            _ => {}
        }
    }
}

/// Where in a segment the text read so far may have ended: one bit for each possibility, since
/// alternatives end differently.
type Ends = u8;
const BEGIN: Ends = 1;
const SLASH: Ends = 2;
const DOT: Ends = 4;
const DOT_DOT: Ends = 8;
const TEXT: Ends = 16;

/// Refuses a cleaned pattern if some choice of alternatives spells a path that is not clean.
pub(super) fn check(nodes: &[Node]) -> Result<(), PatternFault> {
    let ends = flow(nodes, BEGIN)?;
    if ends & BEGIN != 0 {
        return Err(invalid("with an empty alternative nothing is left of it".into()));
    }
    if ends & SLASH != 0 {
        let why = "an alternative makes it end in `/`; put the `/` after the closing brace";
        return Err(invalid(why.into()));
    }
    refuse_dots(ends)
}

fn flow(nodes: &[Node], start: Ends) -> Result<Ends, PatternFault> {
    nodes.iter().try_fold(start, |ends, node| match node {
        Node::Slash => slash(ends),
        Node::Char('.') => Ok(dot(ends)),
        Node::Group(alternatives) => alternatives.iter().try_fold(0, |all, nodes| Ok(all | flow(nodes, ends)?)),
        _ => Ok(TEXT),
    })
}

fn slash(ends: Ends) -> Result<Ends, PatternFault> {
    if ends & BEGIN != 0 {
        let why = "an alternative makes it start with `/`; put the `/` inside, after the text";
        return Err(invalid(why.into()));
    }
    refuse_dots(ends)?;
    Ok(SLASH)
}

fn dot(ends: Ends) -> Ends {
    let mut after = 0;
    for (before, then) in [(BEGIN | SLASH, DOT), (DOT, DOT_DOT), (DOT_DOT | TEXT, TEXT)] {
        if ends & before != 0 {
            after |= then;
        }
    }
    after
}

fn refuse_dots(ends: Ends) -> Result<(), PatternFault> {
    if ends & (DOT | DOT_DOT) != 0 {
        return Err(invalid("an alternative makes a `.` or `..` segment".into()));
    }
    Ok(())
}
