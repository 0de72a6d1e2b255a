//! From rows to values.

use relay_core::domain::agent::{Agent, Policy, Standing};
use relay_core::domain::contact::{Decided, Link};
use relay_core::domain::delivery::{Delivery, Line};
use relay_core::domain::event::{Event, Twin, hex};
use relay_core::domain::message::{Importance, Message};
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::redaction::Redaction;
use relay_core::domain::reservation::Reservation;
use relay_core::domain::thread::Thread;
use relay_core::domain::time::{Span, Timestamp};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};

pub(super) fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A value that the store should never hold.
fn odd(column: usize, what: String) -> Error {
    Error::FromSqlConversionFailure(column, Type::Text, what.into())
}

fn word<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| odd(column, format!("{text:?} is no known word")))
}

fn time(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp::from_millis)
}

fn maybe_time(row: &Row<'_>, column: usize) -> Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

pub(super) fn name(row: &Row<'_>, column: usize) -> Result<AgentName> {
    word(row, column, |text| AgentName::parse(text).ok())
}

pub(super) fn party(row: &Row<'_>, column: usize) -> Result<Party> {
    word(row, column, |text| Party::try_from(text.to_owned()).ok())
}

fn thread_id(row: &Row<'_>, column: usize) -> Result<ThreadId> {
    word(row, column, |text| ThreadId::parse(text).ok())
}

fn maybe<T>(row: &Row<'_>, column: usize, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>> {
    match row.get::<_, Option<String>>(column)? {
        Some(_) => word(row, column, parse).map(Some),
        None => Ok(None),
    }
}

pub(super) const AGENT: &str = "SELECT a.name, a.credential, a.program, a.model, t.text, a.policy, a.session, a.parent, a.standing, a.registered_at,
    a.acted_at, a.thread FROM agents a LEFT JOIN texts t ON t.event = a.task_event AND t.field = 'task'";

pub(super) fn agent(row: &Row<'_>) -> Result<Agent> {
    Ok(Agent {
        name: name(row, 0)?,
        credential: row.get(1)?,
        program: row.get(2)?,
        model: row.get(3)?,
        task: row.get(4)?,
        policy: word(row, 5, Policy::parse)?,
        session: row.get(6)?,
        parent: maybe(row, 7, |text| AgentName::parse(text).ok())?,
        standing: word(row, 8, Standing::parse)?,
        registered_at: time(row, 9)?,
        acted_at: time(row, 10)?,
        thread: maybe(row, 11, |text| ThreadId::parse(text).ok())?,
    })
}

pub(super) const THREAD: &str =
    "SELECT h.id, h.first_message, t.text, h.done, h.opened_at, h.last_at, h.last_number, h.messages
    FROM threads h LEFT JOIN texts t ON t.event = h.first_message AND t.field = 'subject'";

pub(super) fn thread(row: &Row<'_>) -> Result<Thread> {
    Ok(Thread {
        id: thread_id(row, 0)?,
        first_message: row.get(1)?,
        subject: row.get(2)?,
        done: row.get(3)?,
        opened_at: time(row, 4)?,
        last_at: time(row, 5)?,
        last_number: row.get(6)?,
        messages: row.get(7)?,
    })
}

pub(super) const MESSAGE: &str =
    "SELECT m.number, m.thread, m.sender, s.text, m.importance, m.ack_within, m.reply_to, m.sent_at, m.twin_project,
    m.twin_number, m.redacted_by, e.actor, e.at, w.text FROM messages m LEFT JOIN texts s ON s.event = m.number AND s.field = 'subject'
    LEFT JOIN events e ON e.number = m.redacted_by LEFT JOIN texts w ON w.event = m.redacted_by AND w.field = 'why'";

/// The envelope; body and deliveries are read apart.
pub(super) fn message(row: &Row<'_>) -> Result<Message> {
    let twin = match (row.get::<_, Option<String>>(8)?, row.get::<_, Option<u64>>(9)?) {
        (Some(project), Some(number)) => Some(Twin { project: ProjectKey::resolved(project), number }),
        _ => None,
    };
    let redacted = match row.get(10)? {
        Some(number) => Some(Redaction { number, by: party(row, 11)?, at: time(row, 12)?, why: row.get(13)? }),
        None => None,
    };
    Ok(Message {
        id: row.get(0)?,
        thread: thread_id(row, 1)?,
        from: party(row, 2)?,
        subject: row.get(3)?,
        body: None,
        importance: word(row, 4, Importance::parse)?,
        ack_within: row.get::<_, Option<i64>>(5)?.map(Span::millis),
        reply_to: row.get(6)?,
        sent_at: time(row, 7)?,
        twin,
        redacted,
        deliveries: Vec::new(),
    })
}

pub(super) const DELIVERIES: &str =
    "SELECT message, recipient, line, delivered_by, delivered_at, lapsed, surfaced_at, read_at, acked_at
    FROM deliveries WHERE message = ?1 ORDER BY line = 'bcc', line = 'cc', recipient";

pub(super) fn delivery(row: &Row<'_>) -> Result<Delivery> {
    Ok(Delivery {
        message: row.get(0)?,
        recipient: party(row, 1)?,
        line: word(row, 2, Line::parse)?,
        delivered_by: row.get(3)?,
        delivered_at: maybe_time(row, 4)?,
        lapsed: row.get(5)?,
        surfaced_at: maybe_time(row, 6)?,
        read_at: maybe_time(row, 7)?,
        acked_at: maybe_time(row, 8)?,
    })
}

pub(super) const CLAIM: &str = "r.id, r.holder, r.pattern, r.exclusive, r.reason, r.ttl, r.first_granted_at, r.granted_at, r.expires_at, r.generation,
    r.ended";
pub(super) const CLAIM_COLUMNS: usize = 11;

pub(super) fn claim(row: &Row<'_>) -> Result<Reservation> {
    claim_at(row, 0)
}

/// A claim whose columns start at `first`.
pub(super) fn claim_at(row: &Row<'_>, first: usize) -> Result<Reservation> {
    Ok(Reservation {
        id: row.get(first)?,
        holder: name(row, first + 1)?,
        pattern: row.get(first + 2)?,
        exclusive: row.get(first + 3)?,
        reason: maybe(row, first + 4, |text| ThreadId::parse(text).ok())?,
        ttl: Span::millis(row.get(first + 5)?),
        first_granted_at: time(row, first + 6)?,
        granted_at: time(row, first + 7)?,
        expires_at: time(row, first + 8)?,
        generation: row.get(first + 9)?,
        ended: row.get(first + 10)?,
    })
}

pub(super) const LINK: &str = "SELECT l.id, l.asker, l.asked, l.decided, l.asker_blocks, l.asked_blocks, l.by_policy, l.requested_at, l.expires_at,
    t.text, coalesce((SELECT decided FROM (
        SELECT id, decided FROM links WHERE asker = l.asker AND asked = l.asked AND decided <> 'requested'
        UNION ALL SELECT id, decided FROM links WHERE asker = l.asked AND asked = l.asker AND decided <> 'requested'
    ) ORDER BY id DESC LIMIT 1) = 'revoked', 0) FROM links l LEFT JOIN texts t ON t.event = l.id AND t.field = 'why'";

pub(super) fn link(row: &Row<'_>) -> Result<Link> {
    Ok(Link {
        id: row.get(0)?,
        from: party(row, 1)?,
        to: party(row, 2)?,
        decided: word(row, 3, Decided::parse)?,
        from_blocks: row.get(4)?,
        to_blocks: row.get(5)?,
        by_policy: row.get(6)?,
        requested_at: time(row, 7)?,
        expires_at: time(row, 8)?,
        why: row.get(9)?,
        after_revoke: row.get(10)?,
    })
}

pub(super) fn event(row: &Row<'_>) -> Result<Event> {
    let payload: String = row.get(1)?;
    let hash: Vec<u8> = row.get(2)?;
    Ok(Event {
        number: row.get(0)?,
        payload: serde_json::from_str(&payload).map_err(|fault| odd(1, fault.to_string()))?,
        hash: hex(&hash),
    })
}
