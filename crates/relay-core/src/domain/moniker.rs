//! Names for agents that bring none: an adjective and a noun, such as `BlueLake`.
//!
//! People say these names aloud and agents type them, so the words are plain and friendly, and a
//! word that a listener might well spell otherwise is left out (hence no `Hare`, `Peak`, `Harbor`).

/// Sorted, so that a double entry is seen at once.
const ADJECTIVES: &[&str] = &[
    "Agile", "Amber", "Ample", "Apt", "Azure", "Blue", "Brave", "Bright", "Brisk", "Bronze", "Calm", "Careful",
    "Cheerful", "Civil", "Clean", "Clear", "Clever", "Cosmic", "Crimson", "Crisp", "Curious", "Daring", "Deep",
    "Eager", "Early", "Fancy", "Fast", "Fond", "Fresh", "Friendly", "Gentle", "Glad", "Golden", "Grand", "Green",
    "Happy", "Honest", "Humble", "Indigo", "Ivory", "Jolly", "Keen", "Kind", "Lively", "Lucky", "Magenta", "Mellow",
    "Merry", "Mighty", "Modest", "Neat", "Nimble", "Noble", "Olive", "Orange", "Patient", "Placid", "Polite", "Proud",
    "Purple", "Quick", "Quiet", "Rapid", "Red", "Ruby", "Scarlet", "Serene", "Sharp", "Silent", "Silver", "Simple",
    "Smooth", "Snowy", "Solid", "Spry", "Steady", "Sturdy", "Sunny", "Swift", "Tidy", "Tranquil", "True", "Velvet",
    "Violet", "Vivid", "Warm", "Wise", "Witty", "Yellow", "Young", "Zesty",
];

/// Sorted, as above.
const NOUNS: &[&str] = &[
    "Acorn", "Anchor", "Aspen", "Badger", "Bamboo", "Basin", "Beacon", "Birch", "Bison", "Bridge", "Brook", "Cabin",
    "Canyon", "Castle", "Cavern", "Cliff", "Cloud", "Clover", "Comet", "Condor", "Cove", "Cricket", "Dolphin", "Dune",
    "Eagle", "Elm", "Ember", "Falcon", "Feather", "Field", "Finch", "Forest", "Fox", "Galaxy", "Garden", "Glacier",
    "Glen", "Grove", "Hawk", "Heron", "Hill", "Island", "Jaguar", "Juniper", "Lagoon", "Lake", "Lantern", "Lark",
    "Leopard", "Lion", "Lotus", "Maple", "Marsh", "Meadow", "Meteor", "Moon", "Mountain", "Oak", "Ocean", "Orchard",
    "Osprey", "Otter", "Owl", "Panda", "Pebble", "Pelican", "Penguin", "Planet", "Prairie", "Puffin", "Rabbit",
    "Raven", "Ridge", "River", "Robin", "Sparrow", "Spring", "Squirrel", "Stone", "Summit", "Swan", "Thunder", "Tiger",
    "Tulip", "Tundra", "Valley", "Walnut", "Willow", "Wolf", "Zebra",
];

/// How many names there are.
pub const COUNT: u64 = ADJECTIVES.len() as u64 * NOUNS.len() as u64;

/// The name that belongs to a random number; equal numbers give equal names.
#[must_use]
pub fn moniker(random: u64) -> String {
    // The remainder is far below `usize::MAX`, so nothing is cut off.
    let index = (random % COUNT) as usize;
    let adjective = ADJECTIVES[index / NOUNS.len()];
    let noun = NOUNS[index % NOUNS.len()];
    format!("{adjective}{noun}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn is_capitalised_word(word: &str) -> bool {
        let (first, rest) = word.split_at(1);
        let small = |b: u8| b.is_ascii_lowercase();
        first.bytes().all(|b| b.is_ascii_uppercase()) && !rest.is_empty() && rest.bytes().all(small)
    }

    #[track_caller]
    fn check(random: u64, expected: &str) {
        assert_eq!(moniker(random), expected, "{random}");
    }

    #[test]
    fn the_number_runs_through_the_nouns_first_and_wraps_around() {
        check(0, "AgileAcorn");
        check(1, "AgileAnchor");
        check(NOUNS.len() as u64, "AmberAcorn");
        check(COUNT - 1, "ZestyZebra");
        check(COUNT, "AgileAcorn");
        check(COUNT + 1, "AgileAnchor");
    }

    #[test]
    fn every_word_is_short_plain_and_capitalised() {
        for word in ADJECTIVES.iter().chain(NOUNS) {
            assert!(is_capitalised_word(word), "{word}");
            assert!((3..=9).contains(&word.len()), "{word}");
        }
    }

    #[test]
    fn the_lists_are_sorted_unique_and_long_enough() {
        for list in [ADJECTIVES, NOUNS] {
            assert!(list.is_sorted_by(|a, b| a < b));
            assert!(list.len() >= 64);
        }
        assert_eq!(COUNT, (ADJECTIVES.len() * NOUNS.len()) as u64);
    }

    #[test]
    fn every_name_is_an_adjective_and_a_noun() {
        for name in (0..COUNT).map(moniker) {
            let second = name.rfind(|c: char| c.is_ascii_uppercase()).unwrap_or(0);
            let (adjective, noun) = name.split_at(second);
            assert!(second > 0, "{name}");
            assert!(is_capitalised_word(adjective), "{name}");
            assert!(is_capitalised_word(noun), "{name}");
        }
    }

    #[test]
    fn no_two_names_are_equal_even_without_regard_to_case() {
        let names: BTreeSet<String> = (0..COUNT).map(|n| moniker(n).to_lowercase()).collect();
        assert_eq!(names.len() as u64, COUNT);
    }

    #[test]
    fn the_greatest_number_has_a_name_too() {
        assert_eq!(moniker(u64::MAX), moniker(u64::MAX % COUNT));
    }
}
