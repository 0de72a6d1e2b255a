//! The whole screen, from what was seen, what the keys chose and the time: nothing else decides what is drawn.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Timestamp;

use super::look::Seen;
use super::panes::{self, Paint, faint, strong};
use super::state::{Pane, State};
use crate::render::count;
use crate::render::now::{archive, store};

/// From this many columns and rows on all panes are seen at once.
const WIDE: (u16, u16) = (100, 20);

const KEYS: &str = "q quit  Tab pane  ↑↓ PgUp PgDn scroll  r look now  ? help";
const HELP: [&str; 8] = [
    "q, Esc, Ctrl-C   leave",
    "Tab, Shift-Tab   the next pane, the one before",
    "↑ ↓, k j         a line up or down",
    "PgUp, PgDn       a page up or down",
    "Home, End        the first line, the last",
    "r                look again at once",
    "Ctrl-Z           put aside; `fg` comes back",
    "?                this help",
];

pub fn draw(frame: &mut Frame<'_>, seen: &Seen, state: &mut State, now: Timestamp) {
    let area = frame.area();
    let trouble = u16::from(state.trouble.is_some());
    let rows = [Constraint::Length(1), Constraint::Min(0), Constraint::Length(trouble), Constraint::Length(2)];
    let [head, body, complaint, foot] = Layout::vertical(rows).areas(area);
    cut(frame, header(seen), head);
    if area.width >= WIDE.0 && area.height >= WIDE.1 {
        wide(frame, body, seen, state, now);
    } else {
        narrow(frame, body, seen, state, now);
    }
    if let Some(text) = &state.trouble {
        let text = format!("This is older, and it is tried again: {}", escape_line(text));
        cut(frame, Span::styled(text, Style::new().add_modifier(Modifier::REVERSED)).into(), complaint);
    }
    for (line, row) in [health(seen), faint(KEYS).into()].into_iter().zip(foot.rows()) {
        cut(frame, line, row);
    }
    if state.help {
        help(frame, area);
    }
}

/// What matters most stands first, where it is not cut off.
fn header(seen: &Seen) -> Line<'static> {
    let agents = &seen.status.agents;
    let of = |word: &str| agents.iter().filter(|agent| agent.standing() == word).count();
    let overdue = seen.now.acks.iter().filter(|ack| ack.overdue).count();
    let (decide, pairs) = (panes::total(Pane::Decide, seen), seen.status.contested_total);
    let pressing = [
        (decide, format!("{decide} to decide")),
        (overdue, format!("{overdue} overdue")),
        (pairs, count(pairs, "contested pair")),
    ];
    let mut said: Vec<String> =
        pressing.into_iter().filter(|(number, _)| *number > 0).map(|(_, words)| words).collect();
    said.extend([format!("{} alive", of("alive")), format!("{} silent", of("silent"))]);
    said.push(count(seen.status.live_claims, "claim"));
    let place = format!(" in {} at #{}", escape_line(&seen.status.project), seen.status.tip);
    Line::from(vec![strong(said.join(", ")), Span::raw(place)])
}

fn health(seen: &Seen) -> Line<'static> {
    let retired = if seen.now.retired > 0 { format!("; {} retired", seen.now.retired) } else { String::new() };
    let threads = count(seen.status.open_threads, "open thread");
    faint(format!("{}. {}. {threads}{retired}.", archive(&seen.status), store(&seen.now))).into()
}

/// Agents and decisions beside the tree, and below what is owed.
fn wide(frame: &mut Frame<'_>, area: Rect, seen: &Seen, state: &mut State, now: Timestamp) {
    let owed = (height(Pane::Owed, seen, state, now)).min(area.height / 3);
    let [upper, below] = Layout::vertical([Constraint::Min(0), Constraint::Length(owed)]).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Percentage(52), Constraint::Min(0)]).areas(upper);
    let decide = height(Pane::Decide, seen, state, now).min(left.height / 3);
    let [decisions, agents] = Layout::vertical([Constraint::Length(decide), Constraint::Min(0)]).areas(left);
    for (pane, area) in Pane::ALL.into_iter().zip([decisions, agents, right, below]) {
        self::pane(frame, area, pane, seen, state, now);
    }
}

/// What a pane would take with its frame.
fn height(pane: Pane, seen: &Seen, state: &State, now: Timestamp) -> u16 {
    let lines = panes::lines(pane, seen, now, Paint { colour: state.colour }).len();
    u16::try_from(lines + 2).unwrap_or(u16::MAX)
}

/// One pane, and the names of all above it.
fn narrow(frame: &mut Frame<'_>, area: Rect, seen: &Seen, state: &mut State, now: Timestamp) {
    let [names, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let mut words = Vec::new();
    for pane in Pane::ALL {
        let name = format!(" {} {} ", pane.name(), panes::total(pane, seen));
        let chosen = Style::new().add_modifier(Modifier::REVERSED);
        words.push(if pane == state.pane { Span::styled(name, chosen) } else { Span::raw(name) });
    }
    frame.render_widget(Line::from(words), names);
    pane(frame, body, state.pane, seen, state, now);
}

fn pane(frame: &mut Frame<'_>, area: Rect, pane: Pane, seen: &Seen, state: &mut State, now: Timestamp) {
    let lines = panes::lines(pane, seen, now, Paint { colour: state.colour });
    let is_chosen = pane == state.pane;
    let room = usize::from(area.height.saturating_sub(2));
    if is_chosen {
        state.room = room.max(1);
    }
    let first = &mut state.scroll[pane as usize];
    *first = (*first).min(lines.len().saturating_sub(room));
    let below = lines.len().saturating_sub(*first + room);
    let edge = Style::new().add_modifier(if is_chosen { Modifier::BOLD } else { Modifier::DIM });
    let title = format!(" {} {} ", pane.name(), panes::total(pane, seen));
    let mut block = Block::bordered().border_style(edge).title(if is_chosen { strong(title) } else { title.into() });
    if below > 0 || *first > 0 {
        let above = if *first > 0 { format!("{first} above, ") } else { String::new() };
        block = block.title_bottom(Line::from(format!(" {above}{below} below ")).right_aligned());
    }
    let inner = block.inner(area);
    frame.render_widget(block, area);
    for (line, row) in lines.into_iter().skip(*first).zip(inner.rows()) {
        cut(frame, line, row);
    }
}

/// One line; where it is longer than its row, that can be seen.
fn cut(frame: &mut Frame<'_>, line: Line<'_>, row: Rect) {
    let is_longer = line.width() > usize::from(row.width);
    frame.render_widget(line, row);
    if let Some(last) = row.columns().next_back().filter(|_| is_longer) {
        frame.render_widget("…", last);
    }
}

fn help(frame: &mut Frame<'_>, area: Rect) {
    let [row] =
        Layout::vertical([Constraint::Length(HELP.len() as u16 + 2)]).flex(ratatui::layout::Flex::Center).areas(area);
    let [place] = Layout::horizontal([Constraint::Length(54)]).flex(ratatui::layout::Flex::Center).areas(row);
    frame.render_widget(Clear, place);
    let lines: Vec<Line<'_>> = HELP.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(" Keys ")), place);
}
