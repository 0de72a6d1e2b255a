//! Path patterns, and the resources that are claimed like paths.
//!
//! Two claims conflict if and only if some path matches both of their patterns. This module reads
//! patterns, gives them one canonical text, and answers exactly whether they match, overlap and
//! cover. Who holds a claim and what a conflict leads to is decided elsewhere.
//!
//! A pattern is anchored at the project root and matches like git's wildmatch on path names, byte
//! by byte, with braces added:
//!
//! - `*` and `?` stay in one segment; `[…]`, `[!…]` and `[[:alpha:]]` match one byte but never `/`.
//! - `**` as a whole segment is any number of segments, at least one at the end of the pattern;
//!   elsewhere it is `*`.
//! - `{a,b}` is a choice; alternatives may nest, be empty and contain `/`. Braces without a comma
//!   stand for themselves, as in a shell.
//! - `\` takes the meaning from the character after it.
//! - A pattern without any of these, or one that ends in `/`, covers what it matches and everything
//!   below. A choice counts as a wildcard here: `{src,doc}` is two paths, `{src,doc}/` two trees.
//! - `res:NAME` is no path: it names a thing, and meets only itself.
//!
//! Slashes that an empty alternative doubles collapse; alternatives that would make the pattern
//! start or end in `/`, or hold a `.` or `..` segment, are refused.
//!
//! The paths all this speaks about are clean, relative and in UTF-8: one or more segments joined by
//! `/`, none of them empty, `.` or `..`, without NUL.

mod bracket;
mod bytes;
mod clean;
mod compiled;
mod cover;
mod edges;
mod near;
mod nfa;
mod overlap;
mod read;
mod syntax;
#[cfg(test)]
mod tests;
mod universe;
mod walk;

use std::fmt;

pub use compiled::Compiled;
pub use near::{ByPrefix, at_or_above, below};
use nfa::Nfa;
use syntax::{Node, canonical, literal_nodes, plain_text};

/// The longest pattern that is read, in bytes, whatever an operator allows: the time to compare two grows with the
/// product of their lengths.
pub const MAX_BYTES: usize = 2048;
/// The longest name of a resource.
const MAX_NAME: usize = 128;
pub const RESOURCE: &str = "res:";

/// Whether letters match in their own case only. Insensitive folds ASCII, as git's
/// `core.ignorecase` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    Sensitive,
    Insensitive,
}

/// Why a text is not a pattern of this project.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It is not a pattern; `why` names the problem. Bytes are counted from 0.
    #[error("the pattern is not valid: {why}")]
    Invalid { why: String },
    /// It names a place that is not in the project.
    #[error("`{path}` lies outside the project")]
    Outside { path: String },
}

fn invalid(why: String) -> PatternFault {
    PatternFault::Invalid { why }
}

/// A pattern in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    text: String,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Body {
    /// The whole text, `res:NAME`.
    Resource(String),
    /// A path without wildcards, with its escapes removed.
    Literal(String),
    Glob {
        nodes: Vec<Node>,
        subtree: bool,
    },
}

impl Pattern {
    /// Reads what a user wrote. `roots` are the absolute paths of the project root and of all its
    /// worktrees, clean and without a slash at the end.
    pub fn parse(input: &str, roots: &[&str]) -> Result<Self, PatternFault> {
        let pattern = Self::read(input, roots)?;
        if let Body::Glob { nodes, subtree } = &pattern.body
            && overlap::common_path(&Nfa::new(nodes, *subtree, Case::Sensitive), Nfa::anything()).is_none()
        {
            return Err(invalid("it can match no path (`?` and `[…]` match single bytes)".into()));
        }
        Ok(pattern)
    }

    /// The pattern of one path, absolute or from the project root, whose characters all mean themselves. Nobody claims a
    /// name with a line break in it, but files have such names, and a folder is claimed with all that is in it.
    pub fn of_path(path: &str, roots: &[&str]) -> Result<Self, PatternFault> {
        check_written(path)?;
        Self::from_cleaned(clean::relative(&canonical(&literal_nodes(path), false), roots)?)
    }

    /// The same where somebody could claim it: a name that no pattern can spell is nobody's to claim.
    pub fn to_claim(path: &str, roots: &[&str]) -> Option<Self> {
        let pattern = Self::of_path(path, roots).ok()?;
        Self::parse(&pattern.text, &[]).ok()
    }

    /// Reads the canonical text of a pattern that was parsed before.
    pub fn from_canonical(text: &str) -> Result<Self, PatternFault> {
        Self::read(text, &[])
    }

    fn read(input: &str, roots: &[&str]) -> Result<Self, PatternFault> {
        check_text(input)?;
        if let Some(name) = input.strip_prefix(RESOURCE) {
            check_name(name)?;
            return Ok(Self { text: input.to_owned(), body: Body::Resource(input.to_owned()) });
        }
        let pattern = Self::from_cleaned(clean::relative(input, roots)?)?;
        check_length(&pattern.text, "in its canonical form")?;
        Ok(pattern)
    }

    fn from_cleaned(cleaned: clean::Cleaned) -> Result<Self, PatternFault> {
        let clean::Cleaned { mut nodes, trailing_slash } = cleaned;
        if let Some(text) = plain_text(&nodes) {
            return Ok(Self { text: canonical(&nodes, false), body: Body::Literal(text) });
        }
        edges::settle_stars(&mut nodes, true, true);
        edges::check(&nodes)?;
        // `a/**` holds everything below its matches already.
        let subtree = trailing_slash && nodes.last() != Some(&Node::GlobStar);
        Ok(Self { text: canonical(&nodes, subtree), body: Body::Glob { nodes, subtree } })
    }

    /// The canonical text, which reads back as the same pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The path that it names, if it is one without wildcards.
    pub fn path(&self) -> Option<&str> {
        match &self.body {
            Body::Literal(path) => Some(path),
            _ => None,
        }
    }

    /// Whether it is `res:NAME`.
    pub fn is_resource(&self) -> bool {
        matches!(self.body, Body::Resource(_))
    }

    /// Whether it is a path without wildcards.
    pub fn is_literal(&self) -> bool {
        matches!(self.body, Body::Literal(_))
    }

    /// The leading segments without wildcards, joined by `/`; the whole text of a literal or a
    /// resource. Two patterns can overlap only if the prefix of one is that of the other, or names
    /// a directory above it, or is empty.
    pub fn prefix(&self, case: Case) -> String {
        let prefix = match &self.body {
            Body::Resource(text) | Body::Literal(text) => text.clone(),
            Body::Glob { nodes, .. } => {
                let segments = nodes.split(|node| *node == Node::Slash);
                segments.map_while(plain_text).collect::<Vec<_>>().join("/")
            }
        };
        match case {
            Case::Sensitive => prefix,
            Case::Insensitive => prefix.to_ascii_lowercase(),
        }
    }

    /// Makes it ready for questions.
    pub fn compile(&self, case: Case) -> Compiled {
        Compiled::new(self.body.clone(), case)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn check_written(input: &str) -> Result<(), PatternFault> {
    if input.is_empty() {
        return Err(invalid("it is empty; the whole project is written `**`".into()));
    }
    check_length(input, "long")
}

fn check_text(input: &str) -> Result<(), PatternFault> {
    check_written(input)?;
    match input.char_indices().find(|(_, letter)| letter.is_control()) {
        Some((at, _)) => Err(invalid(format!("there is a control character at byte {at}"))),
        None => Ok(()),
    }
}

fn check_length(text: &str, how: &str) -> Result<(), PatternFault> {
    if text.len() > MAX_BYTES {
        let why = format!("it is {} bytes {how}, the limit is {MAX_BYTES}", text.len());
        return Err(invalid(why));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), PatternFault> {
    if name.is_empty() || name.len() > MAX_NAME {
        let why = format!("the name of a resource has 1 to {MAX_NAME} characters");
        return Err(invalid(why));
    }
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    match name.char_indices().find(|(at, _)| !allowed(name.as_bytes()[*at])) {
        Some((at, letter)) => Err(invalid(format!(
            "`{letter}` at byte {} is not allowed in the name of a resource, \
             which is made of letters, digits, `.`, `_`, `-` and `:`",
            RESOURCE.len() + at
        ))),
        None => Ok(()),
    }
}
