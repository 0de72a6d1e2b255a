//! Instants and lengths of time, in whole milliseconds.
//!
//! An instant is written as RFC 3339 in UTC; a length is read and written as people say it: `90s`, `10m`, `2h`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How far an event's time may lie ahead of now before it is no longer believed.
pub const BELIEVABLE_AHEAD: Span = Span::minutes(5);

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    pub const fn millis(self) -> i64 {
        self.0
    }

    pub const fn plus(self, span: Span) -> Self {
        Timestamp(self.0.saturating_add(span.0))
    }

    pub const fn minus(self, span: Span) -> Self {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; negative when it is before.
    pub const fn since(self, earlier: Timestamp) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Reads an instant as people name one: how long ago (`2h`), a date (its first moment), or an RFC 3339 time. Without an
    /// offset it is UTC.
    pub fn read(text: &str, now: Timestamp) -> Result<Self, MomentFault> {
        if let Ok(ago) = text.parse::<Span>() {
            return Ok(now.minus(ago));
        }
        let utc = |time: jiff::civil::DateTime| time.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp());
        let instant = text.parse::<jiff::Timestamp>().or_else(|_| text.parse::<jiff::civil::DateTime>().and_then(utc));
        instant.map(|instant| Timestamp(instant.as_millisecond())).map_err(|_| MomentFault(text.to_owned()))
    }

    /// Whether an event with this time can be believed at `now`: a clock that jumped may have written any time.
    pub fn is_believable(self, now: Timestamp) -> bool {
        self <= now.plus(BELIEVABLE_AHEAD)
    }
}

impl Timestamp {
    /// For people, to whom a fraction of a second says nothing.
    pub fn to_the_second(self) -> String {
        match jiff::Timestamp::from_second(self.0.div_euclid(1_000)) {
            Ok(instant) => format!("{instant:.0}"),
            Err(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if let Some(millis) = text.strip_suffix("ms").and_then(|digits| digits.parse().ok()) {
            return Ok(Timestamp(millis));
        }
        let instant: jiff::Timestamp = text.parse().map_err(de::Error::custom)?;
        Ok(Timestamp(instant.as_millisecond()))
    }
}

/// The text names no instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no time; write how long ago as 90s, 10m or 2h, or a time as 2026-11-15 or 2026-11-15T09:30:00Z")]
pub struct MomentFault(pub String);

/// How long something is, as people say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rough {
    Seconds(u64),
    Minutes(u64),
    Hours(u64),
    Days(u64),
}

const fn rounded(millis: u64, unit: u64) -> u64 {
    (millis + unit / 2) / unit
}

/// A length of time; may be negative, so that a caller's `-5m` is refused by the rule that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

impl Span {
    pub const fn millis(millis: i64) -> Self {
        Span(millis)
    }

    pub const fn seconds(seconds: i64) -> Self {
        Span(seconds * 1_000)
    }

    pub const fn minutes(minutes: i64) -> Self {
        Span::seconds(minutes * 60)
    }

    pub const fn hours(hours: i64) -> Self {
        Span::minutes(hours * 60)
    }

    pub const fn days(days: i64) -> Self {
        Span::hours(days * 24)
    }

    /// In the largest unit that says enough, rounded, whichever way it goes.
    pub const fn roughly(self) -> Rough {
        let millis = self.0.unsigned_abs();
        let (seconds, minutes) = (rounded(millis, 1_000), rounded(millis, 60_000));
        let hours = rounded(millis, 3_600_000);
        match (seconds, minutes, hours) {
            (0..60, _, _) => Rough::Seconds(seconds),
            (_, 0..60, _) => Rough::Minutes(minutes),
            (_, _, 0..48) => Rough::Hours(hours),
            _ => Rough::Days(rounded(millis, 86_400_000)),
        }
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// For waiting: a negative length is no wait at all.
    pub fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(u64::try_from(self.0).unwrap_or(0))
    }
}

/// The text is not a length of time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration; write it as 90s, 10m or 2h")]
pub struct SpanFault(pub String);

impl FromStr for Span {
    type Err = SpanFault;

    fn from_str(text: &str) -> Result<Self, SpanFault> {
        let fault = || SpanFault(text.to_owned());
        let (sign, rest) = match text.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, text),
        };
        let digits_end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, unit) = rest.split_at(digits_end);
        let count: i64 = digits.parse().map_err(|_| fault())?;
        let unit_millis = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "" if count == 0 => 0,
            _ => return Err(fault()),
        };
        count.checked_mul(sign * unit_millis).map(Span).ok_or_else(fault)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(i64, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // The largest unit that loses nothing, so that what is shown can be typed again.
        let (millis, unit) = UNITS.iter().find(|(millis, _)| self.0 % millis == 0).unwrap_or(&UNITS[4]);
        write!(f, "{}{unit}", self.0 / millis)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_span(text: &str, millis: Option<i64>) {
        assert_eq!(text.parse::<Span>().ok().map(Span::as_millis), millis, "{text}");
    }

    #[test]
    fn durations_read_as_people_say_them() {
        check_span("90s", Some(90_000));
        check_span("10m", Some(600_000));
        check_span("2h", Some(7_200_000));
        check_span("1d", Some(86_400_000));
        check_span("50ms", Some(50));
        check_span("0", Some(0));
        check_span("0s", Some(0));
        check_span("-5m", Some(-300_000));
        check_span("90", None);
        check_span("", None);
        check_span("-", None);
        check_span("soon", None);
        check_span("1.5h", None);
        check_span("1h30m", None);
        check_span("99999999999999999999s", None);
        check_span("9223372036854775807h", None);
    }

    #[test]
    fn a_shown_duration_can_be_typed_again() {
        for millis in [0, 1, 50, 1_000, 90_000, 60_000, 600_000, 7_200_000, 86_400_000, -300_000, 61_001] {
            assert_eq!(Span(millis).to_string().parse(), Ok(Span(millis)));
        }
        assert_eq!(Span::hours(1).to_string(), "1h");
        assert_eq!(Span::seconds(90).to_string(), "90s");
    }

    #[test]
    fn an_instant_is_written_in_utc_with_milliseconds() {
        let instant = Timestamp(1_794_700_800_007);
        assert_eq!(instant.to_string(), "2026-11-15T00:00:00.007Z");
        let json = serde_json::to_string(&instant).unwrap_or_default();
        assert_eq!(serde_json::from_str::<Timestamp>(&json).ok(), Some(instant));
    }

    #[test]
    fn an_instant_reads_as_people_name_one() {
        let check = |text: &str, expected: Option<&str>| {
            let read = Timestamp::read(text, Timestamp(1_794_700_800_007)).ok();
            assert_eq!(read.map(|time| time.to_string()).as_deref(), expected, "{text}");
        };
        check("2h", Some("2026-11-14T22:00:00.007Z"));
        check("0", Some("2026-11-15T00:00:00.007Z"));
        check("2026-11-14", Some("2026-11-14T00:00:00.000Z"));
        check("2026-11-14T09:30:00Z", Some("2026-11-14T09:30:00.000Z"));
        check("2026-11-14T09:30:00+02:00", Some("2026-11-14T07:30:00.000Z"));
        check("2026-11-14T09:30", Some("2026-11-14T09:30:00.000Z"));
        check("2026-11-14 09:30:00", Some("2026-11-14T09:30:00.000Z"));
        check("2026-13-14", None);
        check("yesterday", None);
        check("", None);
    }

    #[test]
    fn a_time_far_ahead_is_not_believed() {
        let now = Timestamp(1_000_000_000);
        assert!(now.plus(Span::minutes(5)).is_believable(now));
        assert!(!now.plus(Span::millis(5 * 60_000 + 1)).is_believable(now));
    }

    #[test]
    fn an_instant_and_a_length_are_their_milliseconds() {
        assert_eq!(Timestamp::from_millis(1_794_700_800_007).millis(), 1_794_700_800_007);
        assert_eq!((Span::days(2), Span::hours(2).as_millis()), (Span::hours(48), 7_200_000));
        assert_eq!(Span::seconds(90).to_std(), std::time::Duration::from_secs(90));
        assert_eq!(Span::millis(-1).to_std(), std::time::Duration::ZERO, "a negative length is no wait");
    }
}
