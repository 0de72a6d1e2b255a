//! Whether a pattern claims too much: coordination debt from the first minute (I8).

use std::sync::Arc;

use crate::domain::pattern::{Case, Pattern};
use crate::store::Repository;

const SHARE: usize = 4;
const FEWEST: usize = 20;

/// How many tracked files a broad pattern takes, of how many. None for a narrow one.
///
/// Looks at the repository, so it is asked before the gate is taken.
pub(super) fn breadth(repository: &dyn Repository, pattern: &Pattern) -> Option<Breadth> {
    // Most claims name a file; then nothing needs to be listed.
    if pattern.is_literal() && repository.is_file(&pattern.prefix(repository.case())) {
        return None;
    }
    Looked::at(repository).breadth(pattern)
}

/// A repository whose files were listed once, for whoever asks about many patterns.
pub(super) struct Looked {
    tracked: Option<Arc<[String]>>,
    case: Case,
}

impl Looked {
    pub fn at(repository: &dyn Repository) -> Self {
        Looked { tracked: repository.tracked(), case: repository.case() }
    }

    pub fn breadth(&self, pattern: &Pattern) -> Option<Breadth> {
        if pattern.is_resource() {
            return None;
        }
        if pattern.as_str() == "**" {
            return Some(Breadth::Everything);
        }
        let tracked = self.tracked.as_ref()?;
        let near = under(tracked, &pattern.prefix(self.case));
        // Counting stops being useful where even everything under the prefix is few.
        if near.len() < FEWEST || near.len() * SHARE < tracked.len() {
            return None;
        }
        let compiled = pattern.compile(self.case);
        let taken = near.iter().filter(|path| compiled.matches(path)).count();
        (taken >= FEWEST && taken * SHARE >= tracked.len()).then_some(Breadth::Files { taken, of: tracked.len() })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Breadth {
    Everything,
    Files { taken: usize, of: usize },
}

/// The paths under a folder, of a sorted list. All of them where the list's case may differ from the prefix's.
fn under<'a>(tracked: &'a [String], prefix: &str) -> &'a [String] {
    let start = tracked.partition_point(|path| path.as_str() < prefix);
    let end = start + tracked[start..].partition_point(|path| path.starts_with(prefix));
    if start == end { tracked } else { &tracked[start..end] }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Files(Option<Arc<[String]>>);

    impl Repository for Files {
        fn roots(&self) -> Vec<String> {
            vec!["/r".into()]
        }
        fn case(&self) -> Case {
            Case::Sensitive
        }
        fn is_file(&self, path: &str) -> bool {
            path.ends_with(".rs")
        }
        fn last_change(&self, _path: &str, _line: u32) -> crate::store::Result<crate::store::Change> {
            Err(crate::error::Code::InputInvalid.refuse("there is no repository"))
        }

        fn tracked(&self) -> Option<Arc<[String]>> {
            self.0.clone()
        }
    }

    fn files(folders: &[(&str, usize)]) -> Files {
        let mut paths: Vec<String> = folders
            .iter()
            .flat_map(|(folder, count)| (0..*count).map(move |n| format!("{folder}/{n:03}.rs")))
            .collect();
        paths.sort();
        Files(Some(paths.into()))
    }

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
    fn check(files: &Files, pattern: &str, expected: Option<Breadth>) {
        let pattern = Pattern::parse(pattern, &["/r"]).unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(breadth(files, &pattern), expected, "{}", pattern.as_str());
    }

    #[test]
    fn a_quarter_of_the_files_and_at_least_twenty_is_broad() {
        let repository = files(&[("a", 20), ("b", 60)]);
        check(&repository, "a", Some(Breadth::Files { taken: 20, of: 80 }));
        check(&repository, "a/0*", Some(Breadth::Files { taken: 20, of: 80 }));
        check(&repository, "a/00*", None);
        check(&repository, "*/*", Some(Breadth::Files { taken: 80, of: 80 }));
        check(&files(&[("a", 20), ("b", 61)]), "a", None);
        check(&files(&[("a", 19), ("b", 1)]), "a", None);
        check(&files(&[("a", 19), ("b", 1)]), "*/*", Some(Breadth::Files { taken: 20, of: 20 }));
    }

    #[test]
    fn everything_is_broad_even_where_nothing_is_tracked() {
        check(&Files(None), "**", Some(Breadth::Everything));
        check(&Files(None), "src/**", None);
        check(&files(&[("a", 1)]), "res:db", None);
    }
}
