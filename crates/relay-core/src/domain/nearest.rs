//! "Did you mean …?" for names that nobody bears.

use std::collections::BTreeSet;

/// A longer list would no longer be a hint.
const MOST: usize = 3;

/// How a known name relates to the wanted one. The order of the variants is the order of trust.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Same,
    Completion,
    Typo(usize),
}

/// At most three of the `known` names that somebody who typed `wanted` probably meant, best first.
#[must_use]
pub fn nearest<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    // The set sorts by likeness, then by the alphabet, and drops names that are given twice.
    let candidates: BTreeSet<(Likeness, String, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            Some((likeness(&wanted, &lower)?, lower, name))
        })
        .collect();
    let names = candidates.into_iter().map(|(_, _, name)| name.to_owned());
    names.take(MOST).collect()
}

/// The question that ends a sentence about a name that nobody bears; nothing where none is near.
#[must_use]
pub fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; did you mean {}?", near.join(" or ")) }
}

fn likeness(wanted: &str, known: &str) -> Option<Likeness> {
    // Every name begins with the empty one, but that is no reason to propose it.
    if wanted.is_empty() {
        None
    } else if wanted == known {
        Some(Likeness::Same)
    } else if known.starts_with(wanted) {
        Some(Likeness::Completion)
    } else {
        typos(wanted, known).map(Likeness::Typo)
    }
}

fn typos(wanted: &str, known: &str) -> Option<usize> {
    let (typed, meant) = (wanted.chars().count(), known.chars().count());
    let tolerated = (typed / 3).max(2);
    // The difference in length is a lower bound, and spares the costly comparison.
    if typed.abs_diff(meant) > tolerated {
        return None;
    }
    let distance = strsim::damerau_levenshtein(wanted, known);
    // As many edits as letters means that the two have nothing in common.
    (distance <= tolerated && distance < typed.max(meant)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(wanted: &str, known: &[&str], expected: &[&str]) {
        let found = nearest(wanted, known.iter().copied());
        assert_eq!(found, expected, "{wanted:?} among {known:?}");
    }

    #[test]
    fn a_name_in_other_case_is_the_best_guess() {
        check("bluelake", &["BlueLakes", "BlueLake"], &["BlueLake", "BlueLakes"]);
        check("BLUELAKE", &["bluelake"], &["bluelake"]);
        check("Über", &["über"], &["über"]);
    }

    #[test]
    fn the_name_itself_comes_first() {
        check("send", &["sent", "send", "sender"], &["send", "sender", "sent"]);
    }

    #[test]
    fn a_beginning_is_completed_however_long_the_rest() {
        check("blue", &["BlueMountain", "RedLake"], &["BlueMountain"]);
        check("b", &["BlueMountain", "RedLake"], &["BlueMountain"]);
    }

    #[test]
    fn a_completion_comes_before_a_typo() {
        check("rea", &["rem", "readiness"], &["readiness", "rem"]);
    }

    #[test]
    fn a_typo_is_forgiven() {
        check("RedForst", &["RedForest", "BlueLake"], &["RedForest"]);
        check("RedFroest", &["RedForest"], &["RedForest"]);
        check("RedForestt", &["RedForest"], &["RedForest"]);
        check("RadForest", &["RedForest"], &["RedForest"]);
        check("inobx", &["inbox", "send"], &["inbox"]);
        check("lake", &["Blakes", "Blakesx"], &["Blakes"]);
    }

    #[test]
    fn fewer_typos_come_first() {
        check("sand", &["bend", "send"], &["send", "bend"]);
        check("claim", &["calm", "clam", "clime"], &["clam", "calm", "clime"]);
    }

    #[test]
    fn a_swap_of_neighbours_is_one_typo() {
        check("abdc", &["abxy", "abcd"], &["abcd", "abxy"]);
    }

    #[test]
    fn a_long_name_tolerates_more_typos() {
        check("abcdefghi", &["abcdefxyz"], &["abcdefxyz"]);
        check("abcdefgh", &["abcdexyz"], &[]);
        check("abcdefghijkl", &["abcdefghwxyz"], &["abcdefghwxyz"]);
    }

    #[test]
    fn something_else_is_not_proposed() {
        check("inbox", &["release", "reserve"], &[]);
        check("xy", &["ab"], &[]);
        check("x", &["a", "bc"], &[]);
    }

    #[test]
    fn nothing_typed_or_nothing_known_gives_nothing() {
        check("", &["a", "send"], &[]);
        check("send", &[], &[]);
        check("send", &[""], &[]);
    }

    #[test]
    fn ties_are_in_alphabetical_order_whatever_the_order_given() {
        check("xat", &["cat", "Bat", "rat"], &["Bat", "cat", "rat"]);
        check("re", &["Reply", "release", "read"], &["read", "release", "Reply"]);
        check("ab", &["AB", "ab", "Ab"], &["AB", "Ab", "ab"]);
    }

    #[test]
    fn no_more_than_three_are_proposed() {
        check("re", &["red", "rec", "reb", "rea"], &["rea", "reb", "rec"]);
    }

    #[test]
    fn a_name_given_twice_is_proposed_once() {
        check("sned", &["send", "send"], &["send"]);
    }

    #[test]
    fn length_is_counted_in_characters_not_bytes() {
        check("日本語", &["日本人"], &["日本人"]);
        check("äöü", &["äöß"], &["äöß"]);
        check("äöüäöü", &["äöüxyz"], &[]);
    }
}
