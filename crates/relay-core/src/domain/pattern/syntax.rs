//! The syntax tree of a path pattern, and its canonical text.
//!
//! Reading text into a tree is [`super::read`]'s work, giving it a meaning is [`super::nfa`]'s.

use super::Case;
use super::bytes::ByteSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Slash,
    Char(char),
    /// `?`
    AnyByte,
    /// `*`
    Star,
    /// `**` as a whole segment.
    GlobStar,
    Class(Class),
    /// `{a,b}` with at least two alternatives.
    Group(Vec<Vec<Node>>),
}

/// A bracket expression. Its text is kept, because two spellings of a set are not worth unifying.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    pub text: String,
    pub members: ByteSet,
    pub negated: bool,
}

impl Class {
    /// The bytes it matches. Case folds before the negation, so `[!a]` refuses both `a` and `A`.
    pub fn bytes(&self, case: Case) -> ByteSet {
        let members = match case {
            Case::Sensitive => self.members,
            Case::Insensitive => self.members.fold_case(),
        };
        let set = if self.negated { members.not() } else { members };
        set.and(ByteSet::NOT_SLASH)
    }
}

/// The nodes of a text in which nothing is special but `/`.
pub(super) fn literal_nodes(text: &str) -> Vec<Node> {
    let node = |letter| {
        if letter == '/' { Node::Slash } else { Node::Char(letter) }
    };
    text.chars().map(node).collect()
}

/// The text the nodes stand for, if none of them is a wildcard.
pub(super) fn plain_text(nodes: &[Node]) -> Option<String> {
    let letter = |node: &Node| match node {
        Node::Slash => Some('/'),
        Node::Char(letter) => Some(*letter),
        _ => None,
    };
    nodes.iter().map(letter).collect()
}

/// The canonical text of a whole pattern.
pub(super) fn canonical(nodes: &[Node], trailing_slash: bool) -> String {
    let mut text = String::new();
    // Without the escape, a file called `res:x` would read back as the resource of that name.
    if plain_text(&nodes[..nodes.len().min(4)]).is_some_and(|start| start == "res:") {
        text.push('\\');
    }
    write_nodes(&mut text, nodes, false);
    if trailing_slash {
        text.push('/');
    }
    text
}

fn write_nodes(text: &mut String, nodes: &[Node], in_group: bool) {
    for node in nodes {
        match node {
            Node::Slash => text.push('/'),
            Node::Char(letter) => write_char(text, *letter, in_group),
            Node::AnyByte => text.push('?'),
            Node::Star => text.push('*'),
            Node::GlobStar => text.push_str("**"),
            Node::Class(class) => text.push_str(&class.text),
            Node::Group(alternatives) => write_group(text, alternatives),
        }
    }
}

fn write_char(text: &mut String, letter: char, in_group: bool) {
    let special = matches!(letter, '\\' | '*' | '?' | '[' | '{');
    if special || (in_group && matches!(letter, ',' | '}')) {
        text.push('\\');
    }
    text.push(letter);
}

fn write_group(text: &mut String, alternatives: &[Vec<Node>]) {
    for (index, alternative) in alternatives.iter().enumerate() {
        text.push(if index == 0 { '{' } else { ',' });
        write_nodes(text, alternative, true);
    }
    text.push('}');
}
