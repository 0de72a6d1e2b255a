//! Who talks to whom, as a picture and in numbers.

use std::collections::HashMap;
use std::f64::consts::TAU;

use askama::Template;
use relay_core::verbs::look::{Pair, Traffic};

use super::{filters, text, words};
use crate::web::frame::Frame;

/// As many parties as fit on the circle.
const NODES: usize = 24;
const CENTRE: (f64, f64) = (320.0, 260.0);
const RADIUS: f64 = 160.0;
/// Longer names are cut in the picture; the table has them whole.
const LABEL: usize = 16;

#[derive(Template)]
#[template(path = "talk.html")]
struct Screen<'a> {
    frame: &'a Frame<'a>,
    traffic: &'a Traffic,
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge>,
    /// How many parties are not drawn.
    unseen: usize,
}

struct Node<'a> {
    name: &'a str,
    label: String,
    title: String,
    x: i64,
    y: i64,
    r: i64,
    text_x: i64,
    text_y: i64,
    anchor: &'static str,
}

struct Edge {
    path: String,
    tip: String,
    width: String,
    title: String,
}

pub fn page(frame: &Frame<'_>, traffic: &Traffic) -> String {
    let counts = counts(&traffic.traffic);
    let drawn = &counts[..counts.len().min(NODES)];
    let places: HashMap<&str, (f64, f64)> =
        drawn.iter().enumerate().map(|(index, (name, _))| (*name, place(index, drawn.len(), RADIUS))).collect();
    text(&Screen {
        frame,
        traffic,
        nodes: nodes(drawn),
        edges: edges(&traffic.traffic, &places),
        unseen: counts.len() - drawn.len(),
    })
}

/// How much each has written and was written, the busiest first.
fn counts(pairs: &[Pair]) -> Vec<(&str, usize)> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for pair in pairs {
        *counts.entry(&pair.from).or_default() += pair.messages;
        *counts.entry(&pair.to).or_default() += pair.messages;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|one, other| (other.1, one.0).cmp(&(one.1, other.0)));
    counts
}

fn place(index: usize, of: usize, radius: f64) -> (f64, f64) {
    let angle = TAU * index as f64 / of as f64 - TAU / 4.0;
    (CENTRE.0 + radius * angle.cos(), CENTRE.1 + radius * angle.sin())
}

fn nodes<'a>(counts: &[(&'a str, usize)]) -> Vec<Node<'a>> {
    let most = counts.first().map_or(1, |(_, count)| *count).max(1);
    let node = |(index, (name, count)): (usize, &(&'a str, usize))| {
        let (x, y) = place(index, counts.len(), RADIUS);
        let r = 5.0 + 9.0 * (*count as f64 / most as f64).sqrt();
        let (text_x, text_y) = place(index, counts.len(), RADIUS + r + 8.0);
        let anchor = match text_x - CENTRE.0 {
            aside if aside > 20.0 => "start",
            aside if aside < -20.0 => "end",
            _ => "middle",
        };
        // A name above or below its circle stands clear of it.
        let text_y = text_y + 4.0 + if anchor == "middle" { (text_y - CENTRE.1).signum() * 6.0 } else { 0.0 };
        Node {
            name,
            label: shortened(name),
            title: format!("{name}: {}", words::counted(&count.to_string(), "message")),
            x: x.round() as i64,
            y: y.round() as i64,
            r: r.round() as i64,
            text_x: text_x.round() as i64,
            text_y: text_y.round() as i64,
            anchor,
        }
    };
    counts.iter().enumerate().map(node).collect()
}

fn shortened(name: &str) -> String {
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    if name.chars().count() <= LABEL {
        return name.to_owned();
    }
    name.chars().take(LABEL - 1).chain(['…']).collect()
}

fn edges(pairs: &[Pair], places: &HashMap<&str, (f64, f64)>) -> Vec<Edge> {
    let most = pairs.iter().map(|pair| pair.messages).max().unwrap_or(1).max(1);
    let edge = |pair: &Pair| {
        let (from, to) = (places.get(pair.from.as_str())?, places.get(pair.to.as_str())?);
        let share = (pair.messages as f64 / most as f64).sqrt();
        Some(bent(*from, *to, share, &pair.title()))
    };
    pairs.iter().filter(|pair| pair.from != pair.to).filter_map(edge).collect()
}

/// A line that bends, so that the two ways between two parties are seen apart, and the tip at its end.
fn bent(from: (f64, f64), to: (f64, f64), share: f64, title: &str) -> Edge {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1.0);
    let (middle_x, middle_y) = ((from.0 + to.0) / 2.0 - dy * 0.14, (from.1 + to.1) / 2.0 + dx * 0.14);
    let (tx, ty) = (to.0 - middle_x, to.1 - middle_y);
    let reach = tx.hypot(ty).max(1.0);
    let (tx, ty) = (tx / reach, ty / reach);
    // It ends before the circle that it leads to.
    let gap = 17.0_f64.min(length / 4.0);
    let (x, y) = (to.0 - tx * gap, to.1 - ty * gap);
    let (size, half) = (7.0 + 3.0 * share, 3.5 + 1.5 * share);
    let (back_x, back_y) = (x - tx * size, y - ty * size);
    Edge {
        path: format!("M{:.0} {:.0}Q{middle_x:.0} {middle_y:.0} {back_x:.0} {back_y:.0}", from.0, from.1),
        tip: format!(
            "M{x:.1} {y:.1}L{:.1} {:.1}L{:.1} {:.1}Z",
            back_x - ty * half,
            back_y + tx * half,
            back_x + ty * half,
            back_y - tx * half
        ),
        width: format!("{:.1}", 1.0 + 4.0 * share),
        title: title.to_owned(),
    }
}

trait Title {
    fn title(&self) -> String;
}

impl Title for Pair {
    fn title(&self) -> String {
        format!("{} to {}: {}", self.from, self.to, words::counted(&self.messages.to_string(), "message"))
    }
}
