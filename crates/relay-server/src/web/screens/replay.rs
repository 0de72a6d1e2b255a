//! A day, event by event, with the claims as they were held at each.

use askama::Template;
use relay_core::domain::event::Number;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::look::{Branch, Day, Drawn, draw};
use relay_core::wire::v1::{ClaimShape, EventShape};

use super::events::Told;
use super::tree::Tree;
use super::{filters, text, words};
use crate::web::frame::Frame;

/// As many claims and folders as are drawn.
const ROOM: usize = 120;
/// The height of the highest bar.
const HEIGHT: u64 = 72;

/// One event of a day.
pub struct Moment<'a> {
    pub at: Number,
    /// Those around it, the oldest first.
    pub events: &'a [EventShape],
    /// What was held after it, which of that was contested, and how much there was with what is not shown.
    pub claims: &'a [ClaimShape],
    pub contested: &'a [Number],
    pub total: usize,
}

#[derive(Template)]
#[template(path = "replay.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    day: &'a Day,
    earlier: Option<String>,
    later: Option<String>,
    /// The first event of the day and the last.
    ends: Option<(Number, Number)>,
    at: Number,
    /// When the event of the moment happened.
    then: Option<Timestamp>,
    bars: Vec<Bar>,
    spoken: String,
    moment: Option<&'a Moment<'a>>,
    events: Vec<Told<'a>>,
    branch: Branch,
}

/// An hour.
struct Bar {
    x: usize,
    y: u64,
    height: u64,
    title: String,
}

/// There is no moment on a day without events.
pub fn page(frame: &Frame<'_>, day: &Day, moment: Option<&Moment<'_>>) -> String {
    let at = moment.map_or(0, |moment| moment.at);
    let told = |event| Told { is_chosen: true, ..Told::of(event) };
    let events = moment.iter().flat_map(|moment| moment.events);
    let spoken = (0..).zip(&day.hours).filter(|(_, count)| **count > 0);
    text(&Screen {
        frame,
        day,
        earlier: day.earlier.map(words::day),
        later: day.later.map(words::day),
        ends: day.first.zip(day.last),
        at,
        then: moment.and_then(|moment| moment.events.iter().find(|event| event.number == at)).map(|event| event.at),
        bars: bars(&day.hours),
        spoken: spoken.map(|(hour, count): (usize, _)| format!("{count} at {hour}")).collect::<Vec<_>>().join(", "),
        events: events.map(|event| if event.number == at { told(event) } else { Told::of(event) }).collect(),
        branch: moment.map(grown).unwrap_or_default(),
        moment,
    })
}

fn bars(hours: &[Number]) -> Vec<Bar> {
    let most = hours.iter().copied().max().unwrap_or(0).max(1);
    let bar = |(hour, count): (usize, &Number)| {
        let height = if *count == 0 { 0 } else { (count * HEIGHT / most).max(2) };
        let title = format!("{}, {hour}:00 to {}:00", words::counted(&count.to_string(), "event"), hour + 1);
        Bar { x: hour * 30 + 2, y: HEIGHT + 4 - height, height, title }
    };
    hours.iter().enumerate().map(bar).collect()
}

/// Who was silent then is not told by the history alone.
fn grown(moment: &Moment<'_>) -> Branch {
    let drawn = |claim| Drawn { claim, contested: moment.contested.contains(&claim.id), silent: false };
    draw(&moment.claims.iter().map(drawn).collect::<Vec<_>>(), ROOM)
}

impl Screen<'_> {
    /// The events before and after the one that is shown, where the day has them.
    fn beside(&self) -> (Option<Number>, Option<Number>) {
        let is_of_day = |number: &Number| self.ends.is_some_and(|(first, last)| (first..=last).contains(number));
        (self.at.checked_sub(1).filter(is_of_day), self.at.checked_add(1).filter(is_of_day))
    }

    fn tree(&self) -> Tree<'_> {
        Tree { frame: self.frame, branch: &self.branch, acts: false, then: self.then }
    }
}
