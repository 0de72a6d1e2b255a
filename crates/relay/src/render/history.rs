//! What `look` and `recover` show.

use std::fmt::Write;

use owo_colors::OwoColorize;
use relay_core::domain::plain::escape_line;
use relay_core::verbs::look::{Outcome, Status};
use relay_core::verbs::recover;
use relay_core::wire::v1::{AgentShape, EventShape, MessageShape};
use serde_json::Value;

use super::{Page, count, mail, relative, state, steps, table};

pub fn look(outcome: &Outcome, page: &Page<'_>) -> String {
    match outcome {
        Outcome::Message { message } => with_recipients(message, page),
        Outcome::Thread(view) => {
            let mut text = state::thread_line(&view.thread, false);
            state::thread_body(&mut text, &view.participants, &view.acks_owed, &view.reservations, page);
            view.messages.iter().for_each(|message| text.push_str(&mail::message(message, page)));
            text
        }
        Outcome::Threads { threads } if threads.is_empty() => "No threads yet.\n".to_owned(),
        Outcome::Threads { threads } => {
            let row = |thread: &relay_core::wire::v1::ThreadShape| {
                let subject = thread.subject.as_deref().map(escape_line).unwrap_or_default();
                let done = if thread.done { "done" } else { "open" };
                vec![
                    thread.id.clone(),
                    done.to_owned(),
                    thread.messages.to_string(),
                    relative(thread.last_at, page.now),
                    subject,
                ]
            };
            table(&["thread", "state", "messages", "last", "subject"], threads.iter().map(row).collect())
        }
        Outcome::Agents { agents } => self::agents(agents, page),
        Outcome::Reservations { reservations, .. } if reservations.is_empty() => {
            "Nobody holds anything there.\n".to_owned()
        }
        Outcome::Reservations { reservations, total } => {
            let more = total - reservations.len();
            let rest = if more > 0 { format!("… and {more} more\n") } else { String::new() };
            format!("{}{rest}", state::claims(reservations, page))
        }
        Outcome::Contacts { links } => state::links(links, page),
        Outcome::Outbox { outbox } if outbox.is_empty() => "You sent nothing yet.\n".to_owned(),
        Outcome::Outbox { outbox } => outbox.iter().map(|message| with_recipients(message, page)).collect(),
        Outcome::Events { events, .. } => events.iter().map(event).collect(),
        Outcome::Search { found } if found.is_empty() => "Nothing found.\n".to_owned(),
        Outcome::Search { found } => found.iter().map(|message| mail::message(message, page)).collect(),
        Outcome::Status(status) => self::status(status, page),
        Outcome::Debt { debt } if debt.is_empty() => "No debt: nothing stale, contested or overdue.\n".to_owned(),
        Outcome::Debt { debt } => debt
            .iter()
            .map(|item| format!("{} {}\n  {}\n", item.kind.yellow(), escape_line(&item.text), item.pay.cyan()))
            .collect(),
        Outcome::Playbook(playbook) => {
            let head = format!(
                "{} (exit status {}): {}\n",
                playbook.code.to_string().bold(),
                playbook.exit_status,
                playbook.symptom
            );
            format!("{head}{}", steps(&playbook.playbook))
        }
    }
}

fn with_recipients(message: &MessageShape, page: &Page<'_>) -> String {
    let mut text = mail::message(message, page);
    for recipient in &message.recipients {
        let state = serde_json::to_value(recipient.state)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        let _ = writeln!(text, "  {} {}: {state}", recipient.kind.as_str(), recipient.name);
    }
    text
}

fn agents(agents: &[AgentShape], page: &Page<'_>) -> String {
    if agents.is_empty() {
        return "Nobody is registered yet.\n".to_owned();
    }
    let row = |agent: &AgentShape| {
        let life = if agent.alive { "alive" } else { "silent" };
        let state = if agent.state == "active" { life } else { &agent.state };
        let task = agent.task.as_deref().map(escape_line).unwrap_or_default();
        vec![
            agent.name.clone(),
            state.to_owned(),
            agent.seen_at.map(|at| relative(at, page.now)).unwrap_or_default(),
            agent.policy.clone().unwrap_or_default(),
            agent.program.as_deref().map(escape_line).unwrap_or_default(),
            agent.thread.clone().unwrap_or_default(),
            task,
        ]
    };
    table(&["agent", "state", "seen", "policy", "program", "thread", "task"], agents.iter().map(row).collect())
}

fn status(status: &Status, page: &Page<'_>) -> String {
    let mut text = format!("{} at event #{}\n", status.project.bold(), status.tip);
    text.push_str(&agents(&status.agents, page));
    let _ =
        writeln!(text, "{}, {}.", count(status.live_claims, "live claim"), count(status.open_threads, "open thread"));
    if status.archive.behind > 0 {
        let _ = writeln!(text, "The archive is at #{}.", status.archive.number);
    }
    if status.contacts_waiting > 0 {
        let _ = writeln!(text, "{} for contact not answered yet.", count(status.contacts_waiting, "request"));
    }
    if status.debt > 0 {
        let _ = writeln!(text, "{} of coordination debt: `relay look debt`.", count(status.debt, "item"));
    }
    if let Some(unread) = status.unread {
        let _ = writeln!(text, "You have {}.", count(unread, "unread message"));
    }
    for pair in &status.contested {
        let example = pair.example.as_deref().map(escape_line).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {} and {} ({}) share {example}",
            "contested".yellow(),
            escape_line(&pair.pattern),
            escape_line(&pair.overlaps),
            pair.holder
        );
    }
    if !status.for_the_human.is_empty() {
        let _ = writeln!(text, "{}", "For the human:".bold());
        status.for_the_human.iter().for_each(|message| text.push_str(&mail::message(message, page)));
    }
    text
}

/// One line of the history: who did what.
fn event(event: &EventShape) -> String {
    let word = |name: &str| match event.data.get(name) {
        Some(Value::String(text)) => escape_line(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let numbers = |name: &str| match event.data.get(name) {
        Some(Value::Array(numbers)) => numbers
            .iter()
            .map(|number| format!("#{}", number.as_u64().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" "),
        _ => String::new(),
    };
    let what = match event.kind.as_str() {
        "project_opened" => format!("opened the project {}", word("path")),
        "project_moved" => format!("moved the project to {}", word("to")),
        "other_project_moved" => format!("noted that {} is now {}", word("from"), word("to")),
        "agent_registered" => "registered".to_owned(),
        "agent_resumed" => "resumed".to_owned(),
        "agent_suspended" => format!("suspended {}", word("agent")),
        "agent_reinstated" => format!("let {} act again", word("agent")),
        "agent_retired" => format!("retired {}", word("agent")),
        "policy_set" => format!("chose policy {}", word("policy")),
        "thread_prepared" => format!("joined {}", word("thread")),
        "thread_left" => format!("left {}", word("thread")),
        "thread_closed" => format!("closed {}", word("thread")),
        "message_sent" => format!("wrote to {} in {}", recipients(&event.data), word("thread")),
        "held_lapsed" => format!("gave up delivering #{} to {}", word("message"), word("recipient")),
        "mail_surfaced" if numbers("messages").is_empty() => "was told of contested claims".to_owned(),
        "mail_surfaced" => format!("was shown {}", numbers("messages")),
        "mail_read" => format!("read {}", numbers("messages")),
        "mail_acked" => format!("acknowledged {}", numbers("messages")),
        "reservation_granted" => {
            let conflicts = numbers("conflicts");
            let contested = if conflicts.is_empty() { String::new() } else { format!(", against {conflicts}") };
            format!("reserved {} until {}{contested}", word("pattern"), word("expires_at"))
        }
        "reservation_renewed" => "renewed claims".to_owned(),
        "reservation_released" => format!("released {}", numbers("claims")),
        "reservation_taken" => format!("took #{} over from {}: {}", word("id"), word("from"), word("why")),
        "link_requested" => format!("asked {} for contact", word("to")),
        "link_accepted" => format!("accepted contact #{}", word("link")),
        "link_blocked" => format!("blocked {}", word("other")),
        "link_revoked" => format!("revoked contact #{}", word("link")),
        other => other.to_owned(),
    };
    format!(
        "{} {} {} {what}\n",
        format!("#{}", event.number).bold(),
        event.at.to_string().dimmed(),
        event.actor.green()
    )
}

fn recipients(data: &Value) -> String {
    let names = data["recipients"].as_array().map(|recipients| {
        recipients.iter().filter_map(|recipient| recipient["party"].as_str()).collect::<Vec<_>>().join(", ")
    });
    names.unwrap_or_default()
}

pub fn recover(outcome: &recover::Outcome) -> String {
    match &outcome.retried {
        Some(retried) => format!("Made the failed {} again, and it went through.\n", retried.verb),
        None => format!("The way out of {}:\n{}", outcome.code.to_string().bold(), steps(&outcome.steps)),
    }
}
