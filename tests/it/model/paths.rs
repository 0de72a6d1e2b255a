//! Patterns by brute force: a few patterns, a few paths, and a matcher that tries everything. It shares nothing with the
//! automaton that it is compared with.

use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Patterns whose canonical text is what stands here.
pub const PATTERNS: [&str; 14] =
    ["a", "a/b", "a/b/c", "b", "a/*", "*/b", "?", "**", "a/**", "**/c", "[ab]/c", "{a,b}/c", "a/*/", "res:db"];

/// What is no pattern of the project, and the class that says so.
pub const WRONG: [(&str, &str); 2] = [("[", "PATTERN_INVALID"), ("../x", "PATTERN_OUTSIDE_PROJECT")];

const NAMES: [&str; 4] = ["a", "b", "c", "xx"];

/// Every path of one to three segments. For each two of the patterns that share a path at all, one of these is it.
fn universe() -> Vec<String> {
    let mut paths: Vec<String> = NAMES.iter().map(ToString::to_string).collect();
    let mut level = paths.clone();
    for _ in 0..2 {
        level = level.iter().flat_map(|path| NAMES.iter().map(move |name| format!("{path}/{name}"))).collect();
        paths.extend(level.clone());
    }
    paths
}

/// Every two of the patterns that share a path, tried out once.
static MEETING: LazyLock<BTreeSet<(&str, &str)>> = LazyLock::new(|| {
    let universe = universe();
    let meet = |one: &str, other: &str| {
        let is_resource = one.starts_with("res:") || other.starts_with("res:");
        if is_resource { one == other } else { universe.iter().any(|path| matches(one, path) && matches(other, path)) }
    };
    let pairs = PATTERNS.into_iter().flat_map(|one| PATTERNS.into_iter().map(move |other| (one, other)));
    pairs.filter(|(one, other)| meet(one, other)).collect()
});

pub fn overlap(one: &str, other: &str) -> bool {
    let meeting: &BTreeSet<(&str, &str)> = &MEETING;
    meeting.contains(&(one, other))
}

pub fn matches(pattern: &str, path: &str) -> bool {
    if pattern.starts_with("res:") {
        return pattern == path;
    }
    alternatives(pattern).iter().any(|single| {
        let is_plain = !pattern.contains(['*', '?', '[', '{']);
        let covers_below = is_plain || single.ends_with('/');
        let segments: Vec<&str> = single.trim_end_matches('/').split('/').collect();
        let path: Vec<&str> = path.split('/').collect();
        let ends = if covers_below { 1..=path.len() } else { path.len()..=path.len() };
        ends.into_iter().any(|end| segments_match(&segments, &path[..end]))
    })
}

/// `{a,b}` written out; one pair of braces is enough here.
fn alternatives(pattern: &str) -> Vec<String> {
    match (pattern.find('{'), pattern.find('}')) {
        (Some(open), Some(close)) => pattern[open + 1..close]
            .split(',')
            .map(|choice| format!("{}{choice}{}", &pattern[..open], &pattern[close + 1..]))
            .collect(),
        _ => vec![pattern.to_owned()],
    }
}

fn segments_match(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", [])), Some(_)) => true,
        (Some((&"**", rest)), _) if !rest.is_empty() => {
            (0..=path.len()).any(|skip| segments_match(rest, &path[skip..]))
        }
        (Some((first, rest)), Some((name, below))) => {
            segment_matches(first.as_bytes(), name.as_bytes()) && segments_match(rest, below)
        }
        _ => false,
    }
}

fn segment_matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|skip| segment_matches(rest, &name[skip..])),
        Some((b'?', rest)) => !name.is_empty() && segment_matches(rest, &name[1..]),
        Some((b'[', rest)) => {
            let close = rest.iter().position(|byte| *byte == b']').unwrap();
            !name.is_empty() && rest[..close].contains(&name[0]) && segment_matches(&rest[close + 1..], &name[1..])
        }
        Some((byte, rest)) => name.first() == Some(byte) && segment_matches(rest, &name[1..]),
    }
}

#[test]
fn the_oracle_and_the_automaton_agree_on_every_pair() {
    use relay_core::domain::pattern::{Case, Pattern};
    let compiled = PATTERNS.map(|text| {
        let pattern = Pattern::parse(text, &["/repo"]).unwrap();
        assert_eq!(pattern.as_str(), text, "the model takes patterns in their canonical form");
        pattern.compile(Case::Sensitive)
    });
    for (one, mine) in PATTERNS.iter().zip(&compiled) {
        for (other, theirs) in PATTERNS.iter().zip(&compiled) {
            assert_eq!(mine.overlap(theirs).is_some(), overlap(one, other), "{one} and {other}");
        }
    }
}
