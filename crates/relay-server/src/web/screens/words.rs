//! Ages and numbers as people read them, and texts as parts of addresses. The script says ages in the same words.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use relay_core::domain::time::{Rough, Timestamp};

/// What stands for itself in an address.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A text as one part of an address. A part of dots alone would be taken for a way up, and its dots cannot be written out.
pub fn part(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

/// As much of a text as says what it is about.
pub fn beginning(text: &str) -> String {
    const MOST: usize = 400;
    match text.trim().char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.trim()[..end].trim_end()),
        None => text.trim().to_owned(),
    }
}

/// How long until or since, rounded to the largest unit that says enough.
pub fn age(at: Timestamp, now: Timestamp) -> String {
    let size = match at.since(now).roughly() {
        Rough::Seconds(0..5) => return "just now".to_owned(),
        Rough::Seconds(seconds) => format!("{seconds} s"),
        Rough::Minutes(minutes) => format!("{minutes} min"),
        Rough::Hours(hours) => format!("{hours} h"),
        Rough::Days(days) => format!("{days} days"),
    };
    if at > now { format!("in {size}") } else { format!("{size} ago") }
}

/// `2026-11-16 09:55:04 UTC`.
pub fn moment(at: Timestamp) -> String {
    at.to_the_second().replace('T', " ").replace('Z', " UTC")
}

/// The time of day of an instant; the whole of one that has none.
pub fn clock(at: Timestamp) -> String {
    let text = at.to_the_second();
    let time = text.split_once('T').map(|(_, time)| time.trim_end_matches('Z').to_owned());
    time.unwrap_or(text)
}

/// The day of an instant, as the addresses of the page name it.
pub fn day(at: Timestamp) -> String {
    let text = at.to_the_second();
    text.split_once('T').map_or(text.clone(), |(day, _)| day.to_owned())
}

pub fn counted(count: &str, word: &str) -> String {
    if count == "1" { format!("1 {word}") } else { format!("{count} {word}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relay_core::domain::time::Span;

    fn check(seconds: i64, expected: &str) {
        let now = Timestamp::from_millis(1_794_823_000_000);
        assert_eq!(age(now.plus(Span::seconds(seconds)), now), expected, "{seconds}");
    }

    #[test]
    fn an_age_says_as_much_as_is_needed() {
        for (seconds, expected) in [
            (0, "just now"),
            (4, "just now"),
            (-4, "just now"),
            (-5, "5 s ago"),
            (59, "in 59 s"),
            (60, "in 1 min"),
            (-3_540, "59 min ago"),
            (-3_600, "1 h ago"),
            (47 * 3_600, "in 47 h"),
            (48 * 3_600, "in 2 days"),
            (-400 * 86_400, "400 days ago"),
        ] {
            check(seconds, expected);
        }
    }

    #[test]
    fn a_beginning_is_whole_or_says_that_it_is_not() {
        assert_eq!(beginning("  Which one?\n\n- a\n"), "Which one?\n\n- a");
        assert_eq!(beginning(&"é".repeat(400)), "é".repeat(400));
        assert_eq!(beginning(&"é".repeat(401)), format!("{}…", "é".repeat(400)));
    }

    #[test]
    fn a_part_of_an_address_stays_one_part() {
        for (text, expected) in [
            ("bd-101", "bd-101"),
            ("a/b?c#d", "a%2Fb%3Fc%23d"),
            ("\"><script>", "%22%3E%3Cscript%3E"),
            ("Blue@/srv/repo", "Blue%40%2Fsrv%2Frepo"),
            ("é &=+", "%C3%A9%20%26%3D%2B"),
        ] {
            assert_eq!(part(text), expected);
        }
    }

    #[test]
    fn an_instant_is_written_for_people() {
        let at = Timestamp::from_millis(1_794_823_000_000);
        assert_eq!(moment(at), "2026-11-16 09:56:40 UTC");
        assert_eq!(clock(at), "09:56:40");
        assert_eq!(day(at), "2026-11-16");
    }
}
