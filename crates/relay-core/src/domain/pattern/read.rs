//! Reads the text of a path pattern into syntax nodes, with faults that name the offending byte.
//!
//! Every run of two or more stars comes out as a `GlobStar`; [`super::edges`] demotes those that
//! are not a whole segment, once [`super::clean`] has settled what the segments are.

use super::syntax::Node;
use super::{PatternFault, bracket, invalid};

/// How deep braces may nest. It bounds the recursion of everything that walks the tree.
pub(super) const MAX_DEPTH: usize = 16;

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// The sequence being read: the pattern, or an alternative of the innermost open brace.
    nodes: Vec<Node>,
    open: Vec<OpenBrace>,
}

struct OpenBrace {
    at: usize,
    before: Vec<Node>,
    alternatives: Vec<Vec<Node>>,
}

/// Reads `text` from byte `start` to its end.
pub(super) fn read(text: &str, start: usize) -> Result<Vec<Node>, PatternFault> {
    let mut reader = Reader { text, at: start, nodes: Vec::new(), open: Vec::new() };
    while let Some(letter) = reader.take() {
        reader.node(letter)?;
    }
    match reader.open.last() {
        Some(brace) => Err(invalid(format!("`{{` at byte {} is never closed", brace.at))),
        None => Ok(reader.nodes),
    }
}

impl Reader<'_> {
    fn node(&mut self, letter: char) -> Result<(), PatternFault> {
        let in_brace = !self.open.is_empty();
        let node = match letter {
            '/' => Node::Slash,
            '?' => Node::AnyByte,
            '*' => self.stars(),
            '\\' => self.escaped()?,
            '[' => self.class()?,
            '{' => return self.open_brace(),
            ',' if in_brace => {
                self.end_alternative();
                return Ok(());
            }
            '}' if in_brace => {
                self.close_brace();
                return Ok(());
            }
            plain => Node::Char(plain),
        };
        self.nodes.push(node);
        Ok(())
    }

    fn take(&mut self) -> Option<char> {
        let letter = self.text[self.at..].chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn stars(&mut self) -> Node {
        let rest = &self.text[self.at..];
        let more = rest.len() - rest.trim_start_matches('*').len();
        self.at += more;
        if more == 0 { Node::Star } else { Node::GlobStar }
    }

    fn escaped(&mut self) -> Result<Node, PatternFault> {
        let at = self.at - 1;
        match self.take() {
            None => Err(invalid(format!("`\\` at byte {at} has nothing after it to escape"))),
            // Git reads `**\/` unlike `**/`, a difference nobody could want to write.
            Some('/') => Err(invalid(format!("`\\` at byte {at} escapes a `/`, write it plain"))),
            Some(letter) => Ok(Node::Char(letter)),
        }
    }

    fn class(&mut self) -> Result<Node, PatternFault> {
        let (class, end) = bracket::read(self.text, self.at - 1)?;
        self.at = end;
        Ok(Node::Class(class))
    }

    fn open_brace(&mut self) -> Result<(), PatternFault> {
        let at = self.at - 1;
        if self.open.len() == MAX_DEPTH {
            let why = format!("`{{` at byte {at} nests braces more than {MAX_DEPTH} deep");
            return Err(invalid(why));
        }
        let before = std::mem::take(&mut self.nodes);
        self.open.push(OpenBrace { at, before, alternatives: Vec::new() });
        Ok(())
    }

    fn end_alternative(&mut self) {
        let alternative = std::mem::take(&mut self.nodes);
        if let Some(brace) = self.open.last_mut() {
            brace.alternatives.push(alternative);
        }
    }

    /// Closes the innermost brace. Without a comma it is no choice, and stands for itself as in a
    /// shell: names such as `{id}.tsx` and `{{cookiecutter.slug}}` occur in real trees.
    fn close_brace(&mut self) {
        let Some(mut brace) = self.open.pop() else {
            return;
        };
        let last = std::mem::replace(&mut self.nodes, brace.before);
        if brace.alternatives.is_empty() {
            self.nodes.push(Node::Char('{'));
            self.nodes.extend(last);
            self.nodes.push(Node::Char('}'));
        } else {
            brace.alternatives.push(last);
            self.nodes.push(Node::Group(brace.alternatives));
        }
    }
}
