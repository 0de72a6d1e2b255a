//! Where the project stands, as one printed page: what needs a decision first, then who does what, who holds what, and what is
//! owed. However large the project is, the page stays one that is read.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Timestamp;
use relay_core::domain::{shell, size};
use relay_core::verbs::look::{AckShape, Busy, Now, Status, WaitShape};
use relay_core::wire::v1::{AgentShape, LinkShape};

use super::tree::{self, What};
use super::{Page, count, mail, relative, speech, table};

/// How many rows of a kind are shown.
const AGENTS: usize = 30;
const ACKS: usize = 15;
const ITEMS: usize = 8;

pub fn page(status: &Status, now: &Now, page: &Page<'_>) -> String {
    let mut text = format!("{} at event #{}\n", status.project.bold(), status.tip);
    decisions(&mut text, status, now, page);
    agents(&mut text, status, now, page);
    claims(&mut text, status, now, page);
    acks(&mut text, now, page);
    waits(&mut text, now);
    debt(&mut text, now, page);
    health(&mut text, status, now, page);
    text
}

fn decisions(text: &mut String, status: &Status, now: &Now, page: &Page<'_>) {
    if status.for_the_human.is_empty() && now.requests.is_empty() && status.questions.is_empty() {
        return;
    }
    heading(text, "For a person to decide:");
    for message in status.for_the_human.iter().take(ITEMS) {
        text.push_str(&mail::message(message, page));
        let id = message.id.to_string();
        propose(text, status, &["relay", "message", &id, "--agent", "human"], page);
        propose(text, status, &reply(&id), page);
    }
    more(text, status.for_the_human_total, ITEMS, "relay poll --agent human", page);
    for request in now.requests.iter().take(ITEMS) {
        let why = request.why.as_deref().map(|why| format!(": {}", escape_line(why))).unwrap_or_default();
        let _ = writeln!(text, "{} asks {} for contact{why}", request.from.bold(), request.to.bold());
        propose(text, status, &answer(request, &request.id.to_string()), page);
    }
    more(text, now.requests.len(), ITEMS, "relay look contacts --agent human", page);
    for question in &status.questions {
        let said = if question.text.is_empty() { &question.case } else { &question.text };
        let _ = writeln!(text, "{} {} ({})", "for the human".yellow(), escape_line(said), escape_line(&question.path));
    }
}

/// How the human answers a message; what is said stands in the place of the last word.
pub fn reply(id: &str) -> [&str; 8] {
    ["relay", "send", "--agent", "human", "--reply-to", id, "--body", "TEXT"]
}

/// How the human answers a request for contact.
pub fn answer<'a>(request: &'a LinkShape, id: &'a str) -> [&'a str; 9] {
    ["relay", "link", "--target", &request.to, "--id", id, "--accept", "--agent", "human"]
}

fn propose(text: &mut String, status: &Status, words: &[&str], page: &Page<'_>) {
    let line = shell::line(&[words, &["--project", &status.project]].concat());
    let _ = writeln!(text, "  {}", speech::proposal(&line, page.speech).cyan());
}

fn agents(text: &mut String, status: &Status, now: &Now, page: &Page<'_>) {
    let retired = if now.retired > 0 { format!("; {} retired", now.retired) } else { String::new() };
    heading(text, &format!("Agents ({}{retired}):", status.agents.len()));
    if status.agents.is_empty() {
        let line = "Nobody is here yet: `relay start` registers an agent.";
        let _ = writeln!(text, "{}", speech::sentence(line, page.speech));
        return;
    }
    let shown: Vec<(&AgentShape, &Busy)> = status.agents.iter().zip(&now.busy).take(AGENTS).collect();
    let rows: Vec<[String; 7]> = shown.iter().map(|(agent, busy)| row(agent, busy, now, page)).collect();
    // Nobody needs a column in which nothing stands.
    let is_said = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..HEADER.len()).filter(is_said).collect();
    let header: Vec<&str> = columns.iter().map(|column| HEADER[*column]).collect();
    let cells = |row: &[String; 7]| columns.iter().map(|column| row[*column].clone()).collect();
    let drawn = table(&header, rows.iter().map(cells).collect());
    let nobody = [String::new()];
    let tasks: Vec<String> = shown.iter().map(|(agent, _)| work(agent)).collect();
    for (line, task) in drawn.lines().zip(nobody.iter().chain(&tasks)) {
        let _ = writeln!(text, "{line}");
        if !task.is_empty() {
            let _ = writeln!(text, "  {}", cut(task, 76).dimmed());
        }
    }
    more(text, status.agents.len(), AGENTS, "relay agents", page);
}

const HEADER: [&str; 7] = ["agent", "state", "seen", "claims", "owes", "unread", "waits for"];

fn row(agent: &AgentShape, busy: &Busy, now: &Now, page: &Page<'_>) -> [String; 7] {
    let waits = now.waits.iter().filter(|wait| wait.who == agent.name).flat_map(|wait| &wait.for_whom);
    [
        agent.name.clone(),
        agent.standing().to_owned(),
        agent.seen_at.map(|at| relative(at, page.now)).unwrap_or_default(),
        held(busy),
        if busy.owes == 0 { String::new() } else { count(busy.owes, "ack") },
        unread(busy),
        cut(&waits.map(String::as_str).collect::<Vec<_>>().join(", "), 24),
    ]
}

/// How many claims an agent has, and how many of them are contested.
fn held(busy: &Busy) -> String {
    match (busy.claims, busy.contested) {
        (0, _) => String::new(),
        (claims, 0) => claims.to_string(),
        (claims, contested) => format!("{claims} ({contested} contested)"),
    }
}

/// What an agent works with, where, and on what.
pub fn work(agent: &AgentShape) -> String {
    let mut said: Vec<String> = Vec::new();
    said.extend(agent.program.as_deref().map(escape_line));
    said.extend(agent.model.as_deref().map(|model| format!("({})", escape_line(model))));
    said.extend(agent.thread.as_ref().map(|thread| format!("in {thread}")));
    let place = said.join(" ");
    match (agent.task.as_deref().map(escape_line), place.is_empty()) {
        (Some(task), true) => task,
        (Some(task), false) => format!("{place}: {task}"),
        (None, _) => place,
    }
}

/// How much mail an agent has not read, where that is known and there is some.
pub fn unread(busy: &Busy) -> String {
    busy.unread_told().filter(|told| told != "0").unwrap_or_default()
}

/// Longer words are cut, so that a page stays one on a narrow screen.
fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn claims(text: &mut String, status: &Status, now: &Now, page: &Page<'_>) {
    let contested = match status.contested_total {
        0 => String::new(),
        pairs => format!(", {}", count(pairs, "contested pair")),
    };
    heading(text, &format!("Claims ({}{contested}):", status.live_claims));
    if status.live_claims == 0 {
        let _ = writeln!(text, "Nobody holds anything.");
    }
    for row in tree::rows(&now.tree) {
        let line = match row.what {
            What::Folder(folder) => tree::folder(folder).bold().to_string(),
            What::Claim(leaf) => {
                let mark = if leaf.contested { format!(" {}", "contested".yellow()) } else { String::new() };
                format!("{}{mark}  {}", escape_line(&leaf.name).bold(), tree::holding(leaf, page.now).dimmed())
            }
            What::More(claims) => format!("… and {}", count(claims, "more claim")),
        };
        let _ = writeln!(text, "{}{line}", row.rails.dimmed());
    }
}

fn acks(text: &mut String, now: &Now, page: &Page<'_>) {
    if now.acks.is_empty() {
        return;
    }
    heading(text, &format!("Acks that are owed ({}):", now.acks_total));
    let row = |ack: &AckShape| {
        let subject = ack.subject.as_deref().map(|subject| cut(&escape_line(subject), 16)).unwrap_or_default();
        let asked = relative(ack.since, page.now);
        vec![
            format!("#{}", ack.message),
            ack.by.clone(),
            ack.from.clone(),
            asked,
            due(ack, page.now),
            ack.thread.clone(),
            subject,
        ]
    };
    let header = ["ack", "by", "to", "asked", "due", "thread", "subject"];
    text.push_str(&table(&header, now.acks.iter().take(ACKS).map(row).collect()));
    let rest = now.acks_total.saturating_sub(ACKS.min(now.acks.len()));
    if rest > 0 {
        let _ = writeln!(text, "… and {rest} more");
    }
}

/// When an ack is due, or for how long it has been.
pub fn due(ack: &AckShape, now: Timestamp) -> String {
    let due = relative(ack.due, now);
    if ack.overdue { format!("overdue {}", due.trim_end_matches(" ago")) } else { due }
}

fn waits(text: &mut String, now: &Now) {
    if now.waits.is_empty() {
        return;
    }
    heading(text, "Waiting:");
    for wait in now.waits.iter().take(AGENTS) {
        let _ = writeln!(text, "{}", waiting(wait));
    }
    if now.waits.len() > AGENTS {
        let _ = writeln!(text, "… and {} more", now.waits.len() - AGENTS);
    }
}

/// Who waits for whom, and for what.
pub fn waiting(wait: &WaitShape) -> String {
    let patterns: Vec<String> = wait.patterns.iter().map(|pattern| escape_line(pattern)).collect();
    let what = match wait.verb.as_str() {
        "poll" => "to write".to_owned(),
        "link" => "to answer a contact request".to_owned(),
        _ if patterns.is_empty() => format!("({})", wait.verb),
        _ => format!("to give back {}", patterns.join(", ")),
    };
    format!("{} waits for {} {what}", wait.who, wait.for_whom.join(", "))
}

fn debt(text: &mut String, now: &Now, page: &Page<'_>) {
    if now.debt.is_empty() {
        return;
    }
    heading(text, &format!("Coordination debt ({}):", count(now.debt_total, "item")));
    for item in now.debt.iter().take(ITEMS) {
        let _ = writeln!(text, "{} {}", item.words().yellow(), escape_line(&item.text));
    }
    let rest = now.debt_total.saturating_sub(ITEMS);
    let more = if rest > 0 { format!("… and {rest} more; ") } else { String::new() };
    let line = format!("{more}`relay look debt` has what pays each.");
    let _ = writeln!(text, "{}", speech::sentence(&line, page.speech));
}

fn health(text: &mut String, status: &Status, now: &Now, page: &Page<'_>) {
    heading(text, "Health:");
    let _ = writeln!(text, "{}; {}.", store(now), count(status.open_threads, "open thread"));
    let _ = writeln!(text, "{}.", archive(status));
    if let Some(line) = status.work.as_ref().and_then(super::check::counted) {
        let _ = writeln!(text, "{}", speech::sentence(&line, page.speech));
    }
    if let Some(unread) = status.unread {
        let _ = writeln!(text, "You have {}.", count(unread, "unread message"));
    }
}

pub fn store(now: &Now) -> String {
    format!("The store takes {} and {} of log", size::told(now.store.bytes), size::told(now.store.log_bytes))
}

pub fn archive(status: &Status) -> String {
    let archive = &status.archive;
    match &archive.trouble {
        Some(trouble) => format!("The archive cannot be read: {}", escape_line(trouble)),
        None if archive.behind == 0 => "The archive has every event".to_owned(),
        None => format!("The archive is {} behind", count(archive.behind as usize, "event")),
    }
}

fn heading(text: &mut String, heading: &str) {
    let _ = writeln!(text, "\n{}", heading.bold());
}

/// That there are more than are shown, and where.
fn more(text: &mut String, total: usize, shown: usize, command: &str, page: &Page<'_>) {
    if total > shown {
        let line = format!("… and {} more: `{command}`", total - shown);
        let _ = writeln!(text, "{}", speech::sentence(&line, page.speech));
    }
}

#[cfg(test)]
mod tests {
    use relay_server::Speech;
    use serde_json::{Value, json};

    use super::*;

    fn story(agents: usize, acks: usize, waits: usize, debt: usize) -> Value {
        let names: Vec<String> = (0..agents).map(|number| format!("Agent{number:03}")).collect();
        let long = "a long description ".repeat(20);
        let agent =
            |name: &String| json!({"name": name, "state": "active", "alive": true, "program": "codex", "task": long});
        let busy = |name: &String| json!({"agent": name, "claims": 20, "contested": 1, "owes": 2, "unread": 100});
        let ack = json!({"message": 9, "thread": "bd-1", "subject": long, "from": "Agent001", "by": "Agent002",
            "since": "2026-11-15T00:00:00.000Z", "due": "2026-11-15T00:30:00.000Z", "overdue": true});
        let wait = json!({"who": "Agent003", "verb": "poll", "for_whom": ["Agent004"]});
        let item = json!({"kind": "stale_claim", "who": "Agent001", "text": "it is old", "pay": "relay release"});
        let message = json!({"id": 12, "thread": "bd-1", "from": "Agent001", "subject": "Which?", "importance": "normal",
            "ack_required": false, "sent_at": "2026-11-15T00:10:00.000Z", "read_at": null, "acked_at": null, "recipients": []});
        let link = json!({"id": 30, "state": "requested", "from": "Agent001", "to": "Agent002", "by_policy": false,
            "expires_at": "2026-11-20T00:00:00.000Z"});
        let pair = json!({"mine": 7, "pattern": "src/**", "id": 8, "holder": "Agent001", "overlaps": "src/a.rs", "exclusive": true,
            "example": "src/a.rs", "ended": false});
        json!({
            "project": "/srv/app", "tip": 42, "agents": names.iter().map(agent).collect::<Vec<_>>(), "live_claims": 10_000,
            "contested": vec![pair; 3], "contested_total": 3, "for_the_human_total": 100, "open_threads": 1, "contacts_waiting": 1, "debt": debt, "for_the_human": vec![message; 100],
            "archive": {"number": 42, "behind": 0},
            "now": {
                "busy": names.iter().map(busy).collect::<Vec<_>>(), "waits": vec![wait; waits],
                "tree": {"name": "", "path": "", "claims": 10_000, "contested": 3, "hidden": 9_990},
                "acks": vec![ack; acks.min(50)], "acks_total": acks, "requests": vec![link; 100],
                "debt": vec![item; debt.min(50)], "debt_total": debt, "retired": 7, "store": {"bytes": 1, "log_bytes": 1},
            },
        })
    }

    fn printed(story: Value) -> String {
        let status: Status = serde_json::from_value(story).unwrap_or_else(|fault| panic!("{fault}"));
        let now = status.now.clone().unwrap_or_else(|| panic!("nothing is told of now"));
        let at = Timestamp::from_millis(1_794_704_400_000);
        let text = page(&status, &now, &Page { now: at, boundary: "b", speech: Speech::Commands });
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn however_large_a_project_is_the_page_is_one_that_is_read() {
        let text = printed(story(500, 2_000, 200, 300));
        assert!(text.lines().count() < 200, "{}", text.lines().count());
        for said in [
            "Agents (500; 7 retired):",
            "… and 470 more: `relay agents`",
            "Claims (10000, 3 contested pairs):",
            "20 (1 contested)",
            "stale claim it is old",
            "relay send --agent human --reply-to 12 --body TEXT --project /srv/app",
            "└─ … and 9990 more claims",
            "Acks that are owed (2000):",
            "… and 1985 more",
            "… and 170 more",
            "Coordination debt (300 items):",
            "… and 292 more; `relay look debt` has what pays each.",
            "… and 92 more: `relay poll --agent human`",
            "… and 92 more: `relay look contacts --agent human`",
            "The archive has every event.",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }

    #[test]
    fn a_page_fits_on_a_narrow_screen() {
        let text = printed(story(3, 3, 3, 3));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}\n{text}");
        }
        assert!(text.contains("Agent002  Agent001  1h ago  overdue 30m  bd-1    a long descripti…"), "{text}");
    }
}
