//! Which patterns could share a path with another one, told from their literal prefixes: most pairs need no comparison.

use std::collections::BTreeMap;

/// Things by the literal prefixes of their patterns.
#[derive(Debug)]
pub struct ByPrefix<T> {
    things: BTreeMap<String, Vec<T>>,
}

impl<T> Default for ByPrefix<T> {
    fn default() -> Self {
        ByPrefix { things: BTreeMap::new() }
    }
}

impl<T: Copy + Ord> ByPrefix<T> {
    pub fn insert(&mut self, prefix: &str, thing: T) {
        self.things.entry(prefix.to_owned()).or_default().push(thing);
    }

    /// All things whose pattern could share a path with one of this prefix, and perhaps others, in order.
    pub fn near(&self, prefix: &str) -> Vec<T> {
        let mut near: Vec<T> = if prefix.is_empty() {
            self.things.values().flatten().copied().collect()
        } else {
            let above = at_or_above(prefix).filter_map(|prefix| self.things.get(prefix));
            let (from, to) = below(prefix);
            above.chain(self.things.range(from..to).map(|(_, things)| things)).flatten().copied().collect()
        };
        near.sort_unstable();
        near
    }
}

/// The prefix itself, the folders above it, and the project's root, which is empty.
pub fn at_or_above(prefix: &str) -> impl Iterator<Item = &str> {
    let folders = prefix.match_indices('/').map(|(end, _)| &prefix[..end]);
    let root = (!prefix.is_empty()).then_some("");
    root.into_iter().chain(folders).chain([prefix])
}

/// From where to before where everything under the prefix sorts: `0` follows `/`.
pub fn below(prefix: &str) -> (String, String) {
    (format!("{prefix}/"), format!("{prefix}0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::pattern::{Case, Pattern};

    const PATTERNS: [&str; 16] = [
        "src",
        "src/a.rs",
        "src/a.rs/x",
        "src/a",
        "src/a/**",
        "src/*.rs",
        "src-2",
        "src0",
        "src!",
        "**",
        "**/a.rs",
        "{src,doc}/a",
        "docs/**",
        "s*",
        "res:db",
        "res:db-2",
    ];

    fn prefix(text: &str) -> String {
        Pattern::parse(text, &[]).unwrap_or_else(|fault| panic!("{fault}")).prefix(Case::Sensitive)
    }

    fn of_all() -> ByPrefix<usize> {
        let mut all = ByPrefix::default();
        PATTERNS.iter().enumerate().for_each(|(index, text)| all.insert(&prefix(text), index));
        all
    }

    #[test]
    fn whoever_shares_a_path_is_near() {
        let (all, compiled) =
            (of_all(), PATTERNS.map(|text| Pattern::parse(text, &[]).map(|p| p.compile(Case::Sensitive))));
        for (text, one) in PATTERNS.iter().zip(&compiled) {
            let near = all.near(&prefix(text));
            for (index, other) in compiled.iter().enumerate() {
                let overlap = one.as_ref().ok().zip(other.as_ref().ok()).and_then(|(one, other)| one.overlap(other));
                assert!(overlap.is_none() || near.contains(&index), "{text} and {}: {overlap:?}", PATTERNS[index]);
            }
        }
    }

    #[test]
    fn whoever_begins_elsewhere_is_not_compared() {
        let all = of_all();
        let check = |text: &str, expected: &[&str]| {
            let near: Vec<&str> = all.near(&prefix(text)).into_iter().map(|index| PATTERNS[index]).collect();
            assert_eq!(near, expected, "{text}");
        };
        let anywhere = ["**", "**/a.rs", "{src,doc}/a", "s*"];
        check("lib/x.rs", &anywhere);
        check("docs/x", &["**", "**/a.rs", "{src,doc}/a", "docs/**", "s*"]);
        check("src-2/x", &["src-2", "**", "**/a.rs", "{src,doc}/a", "s*"]);
        check("src/a.rs", &["src", "src/a.rs", "src/a.rs/x", "src/*.rs", "**", "**/a.rs", "{src,doc}/a", "s*"]);
        check("*.rs", &PATTERNS);
    }
}
