//! What stands in each pane, line by line. What others wrote is escaped; what matters is said by a word as well as by a colour.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use relay_core::domain::plain::escape_line;
use relay_core::domain::shell;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::debt::DebtItem;
use relay_core::verbs::look::{AckShape, Busy};
use relay_core::wire::v1::{AgentShape, MessageShape};

use super::look::Seen;
use super::state::Pane;
use crate::render::now::{answer, due, reply, unread, waiting, work};
use crate::render::tree::{self, What};
use crate::render::{count, relative};

/// How words are set off, with colours or without.
#[derive(Clone, Copy)]
pub struct Paint {
    pub colour: bool,
}

impl Paint {
    fn word(self, text: impl Into<String>, colour: Color) -> Span<'static> {
        let style = if self.colour { Style::new().fg(colour) } else { Style::new().add_modifier(Modifier::BOLD) };
        Span::styled(text.into(), style)
    }
}

pub fn strong(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

pub fn faint(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::DIM))
}

pub fn lines(pane: Pane, seen: &Seen, now: Timestamp, paint: Paint) -> Vec<Line<'static>> {
    match pane {
        Pane::Decide => decide(seen, now, paint),
        Pane::Agents => agents(seen, now, paint),
        Pane::Claims => claims(seen, now, paint),
        Pane::Owed => owed(seen, now, paint),
    }
}

/// Where a person looks first.
pub fn first(seen: &Seen) -> Pane {
    if total(Pane::Decide, seen) > 0 { Pane::Decide } else { Pane::Agents }
}

/// How many things a pane is about.
pub fn total(pane: Pane, seen: &Seen) -> usize {
    let (status, now) = (&seen.status, &seen.now);
    match pane {
        Pane::Decide => status.decisions(),
        Pane::Agents => status.agents.len(),
        Pane::Claims => status.live_claims,
        Pane::Owed => now.acks_total + now.waits.len() + debt(seen).count(),
    }
}

fn decide(seen: &Seen, now: Timestamp, paint: Paint) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    for mail in &seen.status.for_the_human {
        lines.push(letter(mail, now, paint));
        lines.push(faint(format!("  {}", shell::line(&reply(&mail.id.to_string())))).into());
    }
    for request in &seen.now.requests {
        let why = request.why.as_deref().map(|why| format!(": {}", escape_line(why))).unwrap_or_default();
        lines.push(Line::from(vec![
            paint.word("contact ", Color::Magenta),
            Span::raw(format!("{} asks {}{why}", request.from, request.to)),
        ]));
        let answer = shell::line(&answer(request, &request.id.to_string()));
        lines.push(faint(format!("  {answer}")).into());
    }
    for question in &seen.status.questions {
        let said = if question.text.is_empty() { &question.case } else { &question.text };
        lines.push(Line::from(vec![paint.word("question ", Color::Magenta), Span::raw(escape_line(said))]));
    }
    or_nothing(lines, "Nobody waits for a person.")
}

fn letter(mail: &MessageShape, now: Timestamp, paint: Paint) -> Line<'static> {
    let subject = mail.subject.as_deref().map_or_else(|| "(redacted)".to_owned(), escape_line);
    let mut words = vec![
        paint.word(format!("#{} ", mail.id), Color::Magenta),
        Span::raw(format!("{}, {}", mail.from, relative(mail.sent_at, now))),
    ];
    match mail.ack_due {
        Some(due) if due < now => words.push(paint.word(", overdue", Color::Red)),
        Some(due) => words.push(Span::raw(format!(", answer due {}", relative(due, now)))),
        None => {}
    }
    words.extend([Span::raw(": "), strong(subject)]);
    words.into()
}

fn agents(seen: &Seen, now: Timestamp, paint: Paint) -> Vec<Line<'static>> {
    let agents = &seen.status.agents;
    let longest = |of: fn(&AgentShape) -> &str| agents.iter().map(|agent| of(agent).len()).max().unwrap_or(0).min(24);
    let widths = (longest(|agent| &agent.name), longest(AgentShape::standing));
    let mut lines = Vec::new();
    for (agent, busy) in agents.iter().zip(&seen.now.busy) {
        lines.push(agent_line(agent, widths, now, paint));
        let at = busy_with(busy, seen, paint);
        if !at.is_empty() {
            lines.push(std::iter::once(Span::raw("  ")).chain(at).collect());
        }
    }
    or_nothing(lines, "Nobody is here yet: `relay start` registers an agent.")
}

fn agent_line(agent: &AgentShape, (names, states): (usize, usize), now: Timestamp, paint: Paint) -> Line<'static> {
    let state = agent.standing();
    let colour = match state {
        "alive" => Color::Green,
        "silent" => Color::Yellow,
        _ => Color::Red,
    };
    let at = agent.seen_at.map(|at| relative(at, now)).unwrap_or_default();
    Line::from(vec![
        strong(format!("{:<names$} ", agent.name)),
        paint.word(format!("{state:<states$} "), colour),
        Span::raw(format!("{at:<8} ")),
        faint(work(agent)),
    ])
}

/// What an agent has on its hands; nothing where there is nothing to say.
fn busy_with(busy: &Busy, seen: &Seen, paint: Paint) -> Vec<Span<'static>> {
    let mut words = Vec::new();
    let mut said = Vec::new();
    if busy.claims > 0 {
        said.push(Span::raw(count(busy.claims, "claim")));
    }
    if busy.contested > 0 {
        said.extend([
            Span::raw(" ("),
            paint.word(format!("{} contested", busy.contested), Color::Yellow),
            Span::raw(")"),
        ]);
    }
    if busy.owes > 0 {
        words.push(Span::raw(format!("owes {}", count(busy.owes, "ack"))));
    }
    let unread = unread(busy);
    if !unread.is_empty() {
        words.push(Span::raw(format!("{unread} unread")));
    }
    for wait in seen.now.waits.iter().filter(|wait| wait.who == busy.agent) {
        words.push(paint.word(format!("waits for {}", wait.for_whom.join(", ")), Color::Cyan));
    }
    for word in words {
        if !said.is_empty() {
            said.push(Span::raw(", "));
        }
        said.push(word);
    }
    said
}

fn claims(seen: &Seen, now: Timestamp, paint: Paint) -> Vec<Line<'static>> {
    let line = |row: tree::Row<'_>| {
        let mut words = vec![faint(row.rails)];
        match row.what {
            What::Folder(folder) => words.push(strong(tree::folder(folder))),
            What::Claim(leaf) => {
                words.push(Span::raw(format!("{} ", escape_line(&leaf.name))));
                if leaf.contested {
                    words.push(paint.word("contested ", Color::Yellow));
                }
                words.push(faint(tree::holding(leaf, now)));
            }
            What::More(claims) => words.push(faint(format!("… and {}", count(claims, "more claim")))),
        }
        Line::from(words)
    };
    or_nothing(tree::rows(&seen.now.tree).into_iter().map(line).collect(), "Nobody holds anything.")
}

fn owed(seen: &Seen, now: Timestamp, paint: Paint) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = seen.now.acks.iter().map(|ack| ack_line(ack, now, paint)).collect();
    let unseen = seen.now.acks_total.saturating_sub(seen.now.acks.len());
    if unseen > 0 {
        lines.push(faint(format!("… and {unseen} more acks")).into());
    }
    lines.extend(
        seen.now.waits.iter().map(|wait| Line::from(vec![paint.word("waits ", Color::Cyan), Span::raw(waiting(wait))])),
    );
    lines.extend(debt(seen).map(|item| {
        Line::from(vec![paint.word(format!("{} ", item.words()), Color::Yellow), Span::raw(escape_line(&item.text))])
    }));
    or_nothing(lines, "Nobody owes an ack or waits for anybody, and there is no debt.")
}

/// What is owed beside acks, which are shown anyway, and decisions, which have a pane of their own.
fn debt(seen: &Seen) -> impl Iterator<Item = &DebtItem> {
    seen.now.debt.iter().filter(|item| item.kind != "ack_overdue")
}

fn ack_line(ack: &AckShape, now: Timestamp, paint: Paint) -> Line<'static> {
    let subject = ack.subject.as_deref().map(|subject| format!(": {}", escape_line(subject))).unwrap_or_default();
    let due = due(ack, now);
    let due = if ack.overdue { paint.word(due, Color::Red) } else { Span::raw(format!("due {due}")) };
    Line::from(vec![
        Span::raw(format!("ack #{} {} owes {}, asked {}, ", ack.message, ack.by, ack.from, relative(ack.since, now))),
        due,
        faint(format!("  {}{subject}", ack.thread)),
    ])
}

fn or_nothing(lines: Vec<Line<'static>>, nothing: &str) -> Vec<Line<'static>> {
    if lines.is_empty() { vec![faint(nothing.to_owned()).into()] } else { lines }
}
