//! How much something is, as people say it: the same words on a terminal and on the page.

/// In the unit that it is short in, rounded down.
pub fn told(bytes: u64) -> String {
    const UNITS: [&str; 3] = ["KB", "MB", "GB"];
    if bytes < 1_000 {
        return format!("{bytes} bytes");
    }
    let (mut tenths, mut unit) = (bytes / 100, 0);
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    if tenths < 100 {
        format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
    } else {
        format!("{} {}", tenths / 10, UNITS[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_unit_that_it_is_short_in() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 KB"),
            (64_512, "64 KB"),
            (999_999, "999 KB"),
            (1_000_000, "1.0 MB"),
            (2_340_000_000, "2.3 GB"),
            (9_900_000_000_000, "9900 GB"),
        ] {
            assert_eq!(told(bytes), expected);
        }
    }
}
