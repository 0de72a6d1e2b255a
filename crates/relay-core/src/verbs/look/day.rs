//! The stretch of the history that a day is. Numbers give the order and clocks may jump, so a day begins with the first event
//! that a search by halves finds for it: what lies between two numbers is shown whole, whatever times stand there.

use serde::{Deserialize, Serialize};

use super::{Looking, Outcome};
use crate::domain::event::Number;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::store::{EventQuery, Result};

const HOUR: Span = Span::seconds(3_600);

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Day {
    /// As it was asked for.
    pub day: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// The first event of the day and the last; none where nothing happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<Number>,
    /// How many events each hour has.
    pub hours: Vec<Number>,
    /// When the last event before this day happened, and the first after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<Timestamp>,
}

pub(super) fn look(looking: &Looking<'_>, text: &str) -> Result<Outcome> {
    let from = begin(text)?;
    let tip = looking.facts.tip()?.number;
    // How many events came before each hour of the day.
    let counts: Vec<Number> = (0..=24)
        .map(|hour| before(looking, from.plus(Span::millis(HOUR.as_millis() * hour)), tip))
        .collect::<Result<_>>()?;
    let (start, end) = (counts[0], counts[24]);
    let has_any = end > start;
    Ok(Outcome::Day(Box::new(Day {
        day: text.to_owned(),
        from,
        to: from.plus(Span::millis(HOUR.as_millis() * 24)),
        first: has_any.then_some(start + 1),
        last: has_any.then_some(end),
        hours: counts.windows(2).map(|hour| hour[1].saturating_sub(hour[0])).collect(),
        earlier: if start > 0 { time_of(looking, start)? } else { None },
        later: if end < tip { time_of(looking, end + 1)? } else { None },
    })))
}

fn begin(text: &str) -> Result<Timestamp> {
    let is_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let parsed = Timestamp::read(text, Timestamp::from_millis(0)).ok().filter(|_| is_date);
    parsed.ok_or_else(|| Code::InputInvalid.refuse(format!("{text:?} is no day; write it as 2026-11-15")))
}

/// How many events came before this moment.
fn before(looking: &Looking<'_>, moment: Timestamp, tip: Number) -> Result<Number> {
    let (mut low, mut high) = (0, tip);
    while low < high {
        let middle = low + (high - low) / 2;
        if time_of(looking, middle + 1)?.is_some_and(|at| at < moment) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn time_of(looking: &Looking<'_>, number: Number) -> Result<Option<Timestamp>> {
    let found = looking.facts.events(&EventQuery::between(number - 1, number))?;
    Ok(found.first().map(|event| event.payload.at))
}
