//! Makes a pattern relative to the project root: `.`, `..`, doubled slashes and absolute roots.
//!
//! Cleaning is lexical and looks only at the top level; [`super::edges`] refuses what would need
//! it inside a brace.

use super::syntax::{Node, literal_nodes, plain_text};
use super::{PatternFault, invalid, read};

pub(super) struct Cleaned {
    pub nodes: Vec<Node>,
    /// The pattern was written with a `/` at its end.
    pub trailing_slash: bool,
}

type Segment = Vec<Node>;

/// Reads and cleans a path pattern.
pub(super) fn relative(input: &str, roots: &[&str]) -> Result<Cleaned, PatternFault> {
    // A root may hold characters that are special in a pattern; typed as it is, it means itself.
    let root = raw_root(input, roots).unwrap_or_default();
    let mut nodes = literal_nodes(root);
    nodes.extend(read::read(input, root.len())?);
    let raw: Vec<Segment> = nodes.split(|node| *node == Node::Slash).map(<[Node]>::to_vec).collect();
    let trailing_slash = raw.last().is_some_and(|last| is_directory_end(last));
    let segments = resolve_dots(raw, input)?;
    if segments.is_empty() {
        return Err(invalid("it leaves no path; the whole project is written `**`".into()));
    }
    let segments = strip_root(segments, input, roots)?;
    Ok(Cleaned { nodes: segments.join(&Node::Slash), trailing_slash })
}

/// The longest root that starts `input` literally, at a segment's end.
fn raw_root<'a>(input: &str, roots: &[&'a str]) -> Option<&'a str> {
    let starts = |root: &&&str| {
        let rest = input.strip_prefix(**root);
        root.starts_with('/') && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    roots.iter().filter(starts).max_by_key(|root| root.len()).copied()
}

fn is_directory_end(segment: &[Node]) -> bool {
    matches!(plain_text(segment).as_deref(), Some("" | "." | ".."))
}

fn resolve_dots(raw: Vec<Segment>, input: &str) -> Result<Vec<Segment>, PatternFault> {
    let mut segments: Vec<Segment> = Vec::new();
    for segment in raw {
        match plain_text(&segment).as_deref() {
            Some("" | ".") => {}
            Some("..") => climb(&mut segments, input)?,
            _ => segments.push(segment),
        }
    }
    Ok(segments)
}

fn climb(segments: &mut Vec<Segment>, input: &str) -> Result<(), PatternFault> {
    if segments.iter().any(|segment| plain_text(segment).is_none()) {
        let why = "`..` after a wildcard cannot be resolved, write the path without it";
        return Err(invalid(why.into()));
    }
    // Above `/` there is only `/` again; above the project there is something we must not name.
    if segments.pop().is_none() && !input.starts_with('/') {
        return Err(outside(input));
    }
    Ok(())
}

fn strip_root(mut segments: Vec<Segment>, input: &str, roots: &[&str]) -> Result<Vec<Segment>, PatternFault> {
    if !input.starts_with('/') {
        return Ok(segments);
    }
    let depths = roots.iter().filter_map(|root| depth_within(&segments, root));
    let depth = depths.max().ok_or_else(|| outside(input))?;
    segments.drain(..depth);
    if segments.is_empty() {
        return Err(invalid("it is the project root, which is written `**`".into()));
    }
    Ok(segments)
}

/// How many segments `root` takes up at the start of an absolute path inside it.
fn depth_within(segments: &[Segment], root: &str) -> Option<usize> {
    let names: Vec<&str> = root.strip_prefix('/')?.split('/').filter(|name| !name.is_empty()).collect();
    let start = segments.get(..names.len())?;
    let same = |(segment, name): (&Segment, &&str)| plain_text(segment).as_deref() == Some(*name);
    start.iter().zip(&names).all(same).then_some(names.len())
}

fn outside(input: &str) -> PatternFault {
    PatternFault::Outside { path: input.to_owned() }
}
