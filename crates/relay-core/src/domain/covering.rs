//! Which claims cover which paths. A claim on a folder covers what is in it; a claim on a resource covers no path.

use std::collections::{BTreeMap, BTreeSet};

use super::pattern::{Case, Pattern, PatternFault};
use super::reservation::Reservation;

/// The claims over each of some paths, and the paths under each of some claims.
#[derive(Debug)]
pub struct Covering<'a> {
    over: BTreeMap<&'a str, Vec<&'a Reservation>>,
}

impl<'a> Covering<'a> {
    /// Every claim is compared with those paths alone that begin as it does.
    pub fn new(
        claims: impl IntoIterator<Item = &'a Reservation>,
        paths: &BTreeSet<&'a str>,
        case: Case,
    ) -> Result<Self, PatternFault> {
        let sorted: Vec<&str> = paths.iter().copied().collect();
        let mut over: BTreeMap<&str, Vec<&Reservation>> = BTreeMap::new();
        for claim in claims {
            let pattern = Pattern::from_canonical(&claim.pattern)?;
            let compiled = pattern.compile(case);
            for path in beginning(&sorted, &pattern.prefix(case), case).iter().filter(|path| compiled.matches(path)) {
                over.entry(path).or_default().push(claim);
            }
        }
        Ok(Covering { over })
    }

    /// The claims over a path, in the order in which they were given.
    pub fn over(&self, path: &str) -> &[&'a Reservation] {
        self.over.get(path).map_or(&[], Vec::as_slice)
    }

    pub fn pairs(&self) -> impl Iterator<Item = (&'a str, &'a Reservation)> {
        self.over.iter().flat_map(|(path, claims)| claims.iter().map(|claim| (*path, *claim)))
    }
}

/// The paths that begin so, of a sorted list; all of them where letters of either case are the same.
fn beginning<'a, 'b>(sorted: &'a [&'b str], prefix: &str, case: Case) -> &'a [&'b str] {
    if case == Case::Insensitive {
        return sorted;
    }
    let start = sorted.partition_point(|path| *path < prefix);
    let end = start + sorted[start..].partition_point(|path| path.starts_with(prefix));
    &sorted[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::name::AgentName;
    use crate::domain::time::{Span, Timestamp};

    const NOW: Timestamp = Timestamp::from_millis(1_794_700_800_000);

    fn claim(id: u64, pattern: &str) -> Reservation {
        Reservation {
            id,
            holder: AgentName::parse("BlueLake").unwrap_or_else(|fault| panic!("{fault}")),
            pattern: pattern.to_owned(),
            exclusive: true,
            reason: None,
            ttl: Span::hours(1),
            first_granted_at: NOW,
            granted_at: NOW,
            expires_at: NOW.plus(Span::hours(1)),
            generation: 0,
            ended: false,
        }
    }

    fn check(patterns: &[&str], case: Case, rows: &[(&str, &[u64])]) {
        let claims: Vec<Reservation> = patterns.iter().zip(1..).map(|(pattern, id)| claim(id, pattern)).collect();
        let paths = rows.iter().map(|(path, _)| *path).collect();
        let covering = Covering::new(&claims, &paths, case).unwrap_or_else(|fault| panic!("{fault}"));
        for (path, expected) in rows {
            let ids: Vec<u64> = covering.over(path).iter().map(|claim| claim.id).collect();
            assert_eq!(ids, *expected, "{path}");
        }
        let pairs: usize = rows.iter().map(|(_, ids)| ids.len()).sum();
        assert_eq!(covering.pairs().count(), pairs);
    }

    #[test]
    fn a_path_is_under_every_claim_that_matches_it_and_under_no_other() {
        let patterns = ["src", "src/*.rs", "**/b.rs", "docs/**", "res:db", "src/a.rs", "**"];
        let rows: [(&str, &[u64]); 6] = [
            ("src/a.rs", &[1, 2, 6, 7]),
            ("src/b.rs", &[1, 2, 3, 7]),
            ("src-2/b.rs", &[3, 7]),
            ("docs/x/y", &[4, 7]),
            ("res:db", &[7]),
            ("src", &[1, 7]),
        ];
        check(&patterns, Case::Sensitive, &rows);
    }

    #[test]
    fn letters_of_either_case_are_the_same_where_the_repository_says_so() {
        check(&["SRC/a.rs", "src"], Case::Insensitive, &[("src/A.rs", &[1, 2]), ("docs/a.rs", &[])]);
        check(&["SRC/a.rs", "src"], Case::Sensitive, &[("src/A.rs", &[2]), ("docs/a.rs", &[])]);
    }
}
