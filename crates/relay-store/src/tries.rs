//! Which recoveries were tried, beside a store: a line each, and a line where one helped. It may be deleted. Where the first
//! place takes nothing, the next does.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use relay_core::domain::time::{Span, Timestamp};

use crate::filesystem::private_file;

/// Beyond this size the lines that no longer count are left out.
const LONG: u64 = 64 * 1024;
const COUNTS_FOR: Span = Span::hours(1);

/// How often this was tried since then and since it last helped. A time ahead of now counts: nobody gets more tries by
/// turning the clock.
pub fn count(places: &[PathBuf], cause: &str, since: Timestamp) -> usize {
    let mut count = 0;
    for (at, what) in lines(places) {
        if what.strip_prefix('-') == Some(cause) {
            count = 0;
        } else if what == cause && at >= since.millis() {
            count += 1;
        }
    }
    count
}

pub fn note(places: &[PathBuf], cause: &str, at: Timestamp) {
    append(places, &format!("{} {cause}\n", at.millis()));
    for place in places.iter().filter(|place| fs::metadata(place).is_ok_and(|file| file.len() > LONG)) {
        shorten(place, at);
    }
}

pub fn forget(places: &[PathBuf], cause: &str, at: Timestamp) {
    append(places, &format!("{} -{cause}\n", at.millis()));
}

/// Best effort: a recovery is not kept from running by what counts it.
fn append(places: &[PathBuf], line: &str) {
    // One write at the end; two at once may lose a line, and a try more is no harm.
    let written = |place: &&PathBuf| {
        let file = private_file(place);
        file.and_then(|mut file| file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(line.as_bytes()))).is_ok()
    };
    let _ = places.iter().find(written);
}

fn lines(places: &[PathBuf]) -> Vec<(i64, String)> {
    let text: String = places.iter().map(|place| fs::read_to_string(place).unwrap_or_default()).collect();
    let parse = |line: &str| {
        let (at, what) = line.split_once(' ')?;
        Some((at.parse().ok()?, what.to_owned()))
    };
    text.lines().filter_map(parse).collect()
}

fn shorten(place: &Path, now: Timestamp) {
    let since = now.minus(COUNTS_FOR).millis();
    let all = lines(&[place.to_owned()]);
    let kept: String = all.iter().filter(|(at, _)| *at >= since).map(|(at, what)| format!("{at} {what}\n")).collect();
    let new = place.with_extension("new");
    let written =
        private_file(&new).and_then(|mut file| file.set_len(0).and_then(|()| file.write_all(kept.as_bytes())));
    let _ = written.and_then(|()| fs::rename(&new, place));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_count_until_one_helps_or_their_time_is_over() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let at = |minutes: i64| Timestamp::from_millis(1_794_700_800_000 + minutes * 60_000);
        let places = [folder.path().join("gone/tries"), folder.path().join("tries")];
        let counted = |since: i64| count(&places, "a", at(since));
        note(&places, "a", at(0));
        note(&places, "b", at(1));
        note(&places, "a", at(5));
        assert_eq!((counted(0), counted(1), counted(6)), (2, 1, 0));
        forget(&places, "b", at(6));
        assert_eq!(counted(0), 2);
        forget(&places, "a", at(6));
        note(&places, "a", at(7));
        assert_eq!(counted(0), 1);
    }

    #[test]
    fn the_file_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap_or_else(|fault| panic!("{fault}"));
        let long = "x".repeat(1_000);
        let places = [folder.path().join("tries")];
        for minute in 0..200 {
            note(&places, &long, Timestamp::from_millis(minute * 60_000));
        }
        assert!(fs::metadata(&places[0]).is_ok_and(|file| file.len() <= LONG + 2_000));
        assert_eq!(count(&places, &long, Timestamp::from_millis(190 * 60_000)), 10);
    }
}
