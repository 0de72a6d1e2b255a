//! Reading: the contract's questions as SQL. Every one is answered from an index; where several would do, the one that
//! does not grow with the history is named.

use std::collections::BTreeSet;

use relay_core::domain::agent::Agent;
use relay_core::domain::contact::Link;
use relay_core::domain::event::{Event, Number, Told, Twin, hex};
use relay_core::domain::limits::DUPLICATE_AMONG;
use relay_core::domain::message::Message;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::pattern;
use relay_core::domain::reservation::Reservation;
use relay_core::domain::thread::Thread;
use relay_core::domain::time::Timestamp;
use relay_core::store::{Crossing, EventQuery, Facts, InboxQuery, KeptFailure, Pair, Remembered, Result, Tip, Traffic};
use rusqlite::{OptionalExtension, Params, Row, params};

use super::rows::{self, AGENT, CLAIM, CLAIM_COLUMNS, DELIVERIES, LINK, MESSAGE, THREAD};
use super::view::View;

impl View<'_> {
    pub(super) fn all<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        #[cfg(test)]
        super::plan::check(self.connection, sql);
        let collect = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(sql)?.query_map(values, |row| read(row))?.collect()
        };
        collect().map_err(|fault| self.refuse(&fault))
    }

    pub(super) fn one<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>> {
        #[cfg(test)]
        super::plan::check(self.connection, sql);
        let get = || -> rusqlite::Result<Option<T>> {
            self.connection.prepare_cached(sql)?.query_row(values, |row| read(row)).optional()
        };
        get().map_err(|fault| self.refuse(&fault))
    }

    fn text(&self, number: Number, field: &str) -> Result<Option<String>> {
        self.one("SELECT text FROM texts WHERE event = ?1 AND field = ?2", params![number, field], |row| row.get(0))
    }

    /// An envelope with its deliveries and, where wanted, its body.
    fn complete(&self, mut message: Message, body: bool) -> Result<Message> {
        message.deliveries = self.all(DELIVERIES, [message.id], rows::delivery)?;
        if body {
            message.body = self.text(message.id, "body")?;
        }
        Ok(message)
    }

    fn messages(&self, tail: &str, values: impl Params, bodies: bool) -> Result<Vec<Message>> {
        let envelopes = self.all(&format!("{MESSAGE} {tail}"), values, rows::message)?;
        envelopes.into_iter().map(|message| self.complete(message, bodies)).collect()
    }

    fn claims_where(&self, condition: &str, values: impl Params) -> Result<Vec<Reservation>> {
        self.all(
            // The plus keeps the planner from walking all claims there ever were in the order of their ids.
            &format!("SELECT {CLAIM} FROM reservations r WHERE r.ended = 0 AND {condition} ORDER BY +r.id"),
            values,
            rows::claim,
        )
    }
}

/// A number as the store counts.
fn bound(number: Number) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Facts for View<'_> {
    fn tip(&self) -> Result<Tip> {
        let sql = "SELECT number, at, hash FROM events WHERE number = (SELECT max(number) FROM events)";
        let tip = self.one(sql, [], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?)))?;
        let project = self.project.to_owned();
        Ok(match tip {
            Some((number, at, hash)) => Tip { project, number, at: Some(Timestamp::from_millis(at)), hash: hex(&hash) },
            None => Tip { project, number: 0, at: None, hash: String::new() },
        })
    }

    fn agent(&self, name: &AgentName) -> Result<Option<Agent>> {
        self.one(&format!("{AGENT} WHERE a.name = ?1"), [name.as_str()], rows::agent)
    }

    fn agent_of_session(&self, session: &str) -> Result<Option<Agent>> {
        self.one(
            &format!("{AGENT} WHERE a.name = (SELECT agent FROM sessions WHERE session = ?1)"),
            [session],
            rows::agent,
        )
    }

    fn agents(&self) -> Result<Vec<Agent>> {
        self.all(&format!("{AGENT} ORDER BY a.number"), [], rows::agent)
    }

    fn thread(&self, id: &ThreadId) -> Result<Option<Thread>> {
        self.one(&format!("{THREAD} WHERE h.id = ?1"), [id.as_str()], rows::thread)
    }

    fn threads(&self, beginning: &str, before: Number, limit: usize) -> Result<Vec<Thread>> {
        self.all(
            &format!(
                "{THREAD} WHERE h.last_number < ?2 AND substr(h.id, 1, length(?1)) = ?1 COLLATE NOCASE
                 ORDER BY h.last_number DESC LIMIT ?3"
            ),
            params![beginning, bound(before), limit],
            rows::thread,
        )
    }

    fn open_threads(&self) -> Result<usize> {
        Ok(self.one("SELECT count(*) FROM threads WHERE done = 0", [], |row| row.get(0))?.unwrap_or(0))
    }

    fn members(&self, thread: &ThreadId) -> Result<Vec<Party>> {
        self.all("SELECT party FROM members WHERE thread = ?1", [thread.as_str()], |row| rows::party(row, 0))
    }

    fn is_member(&self, thread: &ThreadId, party: &Party) -> Result<bool> {
        let found = self.one(
            "SELECT 1 FROM members WHERE thread = ?1 AND party = ?2",
            params![thread.as_str(), party.to_string()],
            |_| Ok(()),
        )?;
        Ok(found.is_some())
    }

    fn thread_messages(&self, thread: &ThreadId, before: Number, limit: usize) -> Result<Vec<Message>> {
        let mut last = self.messages(
            "WHERE m.thread = ?1 AND m.number < ?2 ORDER BY m.number DESC LIMIT ?3",
            params![thread.as_str(), bound(before), limit],
            false,
        )?;
        last.reverse();
        Ok(last)
    }

    fn subjects(&self, thread: &ThreadId) -> Result<Vec<(Number, String)>> {
        let sql = "SELECT m.number, t.text FROM messages m JOIN texts t ON t.event = m.number AND t.field = 'subject'
            WHERE m.thread = ?1 ORDER BY m.number";
        self.all(sql, [thread.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    fn thread_messages_after(&self, thread: &ThreadId, after: Number, limit: usize) -> Result<Vec<Message>> {
        self.messages(
            "WHERE m.thread = ?1 AND m.number > ?2 ORDER BY m.number LIMIT ?3",
            params![thread.as_str(), after, limit],
            true,
        )
    }

    fn thread_messages_until(&self, thread: &ThreadId, until: Timestamp, limit: usize) -> Result<Vec<Message>> {
        let mut last = self.messages(
            "WHERE m.thread = ?1 AND m.sent_at <= ?2 ORDER BY m.number DESC LIMIT ?3",
            params![thread.as_str(), until.millis(), limit],
            false,
        )?;
        last.reverse();
        Ok(last)
    }

    fn message(&self, id: Number) -> Result<Option<Message>> {
        let Ok(id) = i64::try_from(id) else { return Ok(None) };
        Ok(self.messages("WHERE m.number = ?1", [id], true)?.pop())
    }

    fn envelope(&self, id: Number) -> Result<Option<Message>> {
        let Ok(id) = i64::try_from(id) else { return Ok(None) };
        Ok(self.messages("WHERE m.number = ?1", [id], false)?.pop())
    }

    fn message_of_twin(&self, twin: &Twin) -> Result<Option<Message>> {
        let tail = "WHERE m.twin_project = ?1 AND m.twin_number = ?2";
        Ok(self.messages(tail, params![twin.project.as_str(), twin.number], false)?.pop())
    }

    fn inbox(&self, query: &InboxQuery<'_>) -> Result<Vec<Message>> {
        let numbers = self.inbox_numbers(query)?;
        let mut messages = Vec::new();
        for number in numbers {
            for envelope in self.all(&format!("{MESSAGE} WHERE m.number = ?1"), [number], rows::message)? {
                messages.push(self.complete(envelope, query.bodies)?);
            }
        }
        Ok(messages)
    }

    fn unread(&self, recipient: &Party, most: usize) -> Result<usize> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM deliveries INDEXED BY inbox_unread
            WHERE recipient = ?1 AND delivered_by IS NOT NULL AND read_at IS NULL LIMIT ?2)";
        Ok(self.one(sql, params![recipient.to_string(), most], |row| row.get(0))?.unwrap_or(0))
    }

    fn outbox(&self, sender: &Party, limit: usize) -> Result<Vec<Message>> {
        self.messages("WHERE m.sender = ?1 ORDER BY m.number DESC LIMIT ?2", params![sender.to_string(), limit], false)
    }

    fn acks_owed(&self, party: &Party, limit: usize) -> Result<Vec<Message>> {
        let tail = "WHERE m.number IN (SELECT message FROM deliveries INDEXED BY acks_owed WHERE recipient = ?1 AND ack_due IS NOT NULL AND acked_at IS NULL
            ORDER BY message LIMIT ?2) ORDER BY m.number";
        self.messages(tail, params![party.to_string(), limit], false)
    }

    fn acks_awaited(&self, sender: &Party, limit: usize) -> Result<Vec<Message>> {
        let tail = "WHERE m.number IN (SELECT message FROM deliveries INDEXED BY acks_awaited WHERE sender = ?1 AND ack_due IS NOT NULL AND acked_at IS NULL
            ORDER BY message LIMIT ?2) ORDER BY m.number";
        self.messages(tail, params![sender.to_string(), limit], false)
    }

    fn acks_waiting(&self, limit: usize) -> Result<Vec<(Number, Party)>> {
        let sql = "SELECT message, recipient FROM deliveries INDEXED BY acks_owed
            WHERE ack_due IS NOT NULL AND acked_at IS NULL ORDER BY message LIMIT ?1";
        self.all(sql, [limit], |row| Ok((row.get(0)?, rows::party(row, 1)?)))
    }

    fn acks_counted(&self) -> Result<Vec<(Party, usize)>> {
        let sql = "SELECT recipient, count(*) FROM deliveries INDEXED BY acks_owed
            WHERE ack_due IS NOT NULL AND acked_at IS NULL GROUP BY recipient";
        self.all(sql, [], |row| Ok((rows::party(row, 0)?, row.get(1)?)))
    }

    fn traffic(&self, after: Number) -> Result<Vec<Traffic>> {
        // The pluses keep the planner from walking all correspondence there ever was in the order of its parties.
        let sql = "SELECT sender, recipient, line = 'bcc', count(*), max(message) FROM deliveries
            WHERE message > ?1 GROUP BY +sender, +recipient, 3";
        self.all(sql, [bound(after)], |row| {
            let (from, to) = (rows::party(row, 0)?, rows::party(row, 1)?);
            Ok(Traffic { from, to, blind: row.get(2)?, messages: row.get(3)?, newest: row.get(4)? })
        })
    }

    fn same_text(
        &self,
        sender: &Party,
        subject: &str,
        body: &str,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Number>> {
        // Lengths differ mostly, and are known without reading the texts.
        let sql = "SELECT m.number, m.sent_at, CASE WHEN EXISTS (SELECT 1 FROM texts b WHERE b.event = m.number AND b.field = 'body'
                AND octet_length(b.text) = octet_length(?3) AND b.text = ?3)
            THEN EXISTS (SELECT 1 FROM texts s WHERE s.event = m.number AND s.field = 'subject' AND s.text = ?2) END
            FROM messages m WHERE m.sender = ?1 ORDER BY m.number DESC LIMIT ?4";
        #[cfg(test)]
        super::plan::check(self.connection, sql);
        let find = || -> rusqlite::Result<Option<Number>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut newest_first = statement.query(params![sender.to_string(), subject, body, DUPLICATE_AMONG])?;
            while let Some(row) = newest_first.next()? {
                let at = Timestamp::from_millis(row.get(1)?);
                if at < since || !at.is_believable(now) {
                    break;
                }
                if row.get::<_, Option<bool>>(2)? == Some(true) {
                    return row.get(0).map(Some);
                }
            }
            Ok(None)
        };
        find().map_err(|fault| self.refuse(&fault))
    }

    fn newest_from(&self, sender: &Party, recipient: &Party, limit: usize) -> Result<Vec<Number>> {
        let sql = "SELECT message FROM deliveries INDEXED BY correspondence
            WHERE sender = ?1 AND recipient = ?2 AND delivered_by IS NOT NULL ORDER BY message DESC LIMIT ?3";
        self.all(sql, params![sender.to_string(), recipient.to_string(), limit], |row| row.get(0))
    }

    fn wrote_since(&self, sender: &Party, recipient: &Party, since: Timestamp) -> Result<bool> {
        let sql = "SELECT m.sent_at FROM deliveries d INDEXED BY correspondence JOIN messages m ON m.number = d.message
            WHERE d.sender = ?1 AND d.recipient = ?2 AND d.delivered_by IS NOT NULL ORDER BY d.message DESC LIMIT 1";
        let last: Option<i64> = self.one(sql, params![sender.to_string(), recipient.to_string()], |row| row.get(0))?;
        Ok(last.is_some_and(|at| at >= since.millis()))
    }

    fn held(&self, sender: &Party, recipient: &Party) -> Result<Vec<Number>> {
        let sql = "SELECT message FROM deliveries INDEXED BY held
            WHERE sender = ?1 AND recipient = ?2 AND delivered_by IS NULL AND lapsed = 0 ORDER BY message";
        self.all(sql, params![sender.to_string(), recipient.to_string()], |row| row.get(0))
    }

    fn held_of(&self, sender: &Party) -> Result<Vec<(Number, Party)>> {
        let sql = "SELECT message, recipient FROM deliveries INDEXED BY held
            WHERE sender = ?1 AND delivered_by IS NULL AND lapsed = 0 ORDER BY message";
        self.all(sql, [sender.to_string()], |row| Ok((row.get(0)?, rows::party(row, 1)?)))
    }

    fn search(&self, words: &str, before: Number, limit: usize) -> Result<Vec<Number>> {
        self.search_words(words, before, limit)
    }

    fn claims(&self) -> Result<Vec<Reservation>> {
        self.claims_where("1", [])
    }

    fn claims_of(&self, holder: &AgentName) -> Result<Vec<Reservation>> {
        self.claims_where("r.holder = ?1", [holder.as_str()])
    }

    fn claims_on(&self, holder: &AgentName, pattern: &str) -> Result<Vec<Reservation>> {
        let mut claims = self.claims_where("r.holder = ?1 AND r.pattern = ?2", params![holder.as_str(), pattern])?;
        claims.sort_by_key(|claim| claim.expires_at);
        Ok(claims)
    }

    fn count_claims(&self, holder: &AgentName, now: Timestamp) -> Result<usize> {
        let sql = "SELECT count(*) FROM reservations WHERE ended = 0 AND holder = ?1 AND expires_at > ?2";
        Ok(self.one(sql, params![holder.as_str(), now.millis()], |row| row.get(0))?.unwrap_or(0))
    }

    fn claims_to_renew(&self, holder: &AgentName, now: Timestamp) -> Result<Vec<Reservation>> {
        self.claims_where("r.holder = ?1 AND r.renew_at < ?2", params![holder.as_str(), now.millis()])
    }

    fn claims_for(&self, reason: &ThreadId) -> Result<Vec<Reservation>> {
        self.claims_where("r.reason IS NOT NULL AND r.reason = ?1", [reason.as_str()])
    }

    fn claim(&self, id: Number) -> Result<Option<Reservation>> {
        let Ok(id) = i64::try_from(id) else { return Ok(None) };
        self.one(&format!("SELECT {CLAIM} FROM reservations r WHERE r.id = ?1"), [id], rows::claim)
    }

    fn claims_near(&self, prefixes: &[&str]) -> Result<Vec<Reservation>> {
        if prefixes.contains(&"") {
            return self.claims();
        }
        let prefixes: BTreeSet<&str> = prefixes.iter().copied().collect();
        let above: BTreeSet<&str> = prefixes.iter().flat_map(|prefix| pattern::at_or_above(prefix)).collect();
        let mut near = Vec::new();
        for prefix in above {
            near.extend(self.claims_where("r.prefix = ?1", [prefix])?);
        }
        // What lies under a prefix lies under those above it as well.
        let has_upper =
            |prefix: &str| pattern::at_or_above(prefix).any(|upper| upper != prefix && prefixes.contains(upper));
        for prefix in prefixes.iter().filter(|prefix| !has_upper(prefix)) {
            near.extend(
                self.claims_where("r.prefix >= ?1 AND r.prefix < ?2", <[String; 2]>::from(pattern::below(prefix)))?,
            );
        }
        near.sort_by_key(|claim| claim.id);
        near.dedup_by_key(|claim| claim.id);
        Ok(near)
    }

    fn pairs(&self, holder: &AgentName, now: Timestamp, limit: usize) -> Result<Vec<Pair>> {
        let sql = pairs_where(
            "p.holder = ?1 AND o.holder <> p.holder AND (r.exclusive OR o.exclusive)
             AND r.expires_at > ?2 AND o.expires_at > ?2 ORDER BY p.one, p.other LIMIT ?3",
        );
        self.all(&sql, params![holder.as_str(), now.millis(), limit], pair)
    }

    fn share_a_path(&self, one: &AgentName, other: &AgentName, now: Timestamp) -> Result<bool> {
        let sql = pairs_where("p.holder = ?1 AND o.holder = ?2");
        let pairs: Vec<Pair> = self.all(&sql, [one.as_str(), other.as_str()], pair)?;
        Ok(pairs.iter().any(|(mine, theirs)| mine.is_live(now) && theirs.is_live(now)))
    }

    fn told(&self, agent: &AgentName) -> Result<Vec<Told>> {
        self.all("SELECT mine, theirs, mark FROM told WHERE agent = ?1", [agent.as_str()], |row| {
            Ok(Told { mine: row.get(0)?, theirs: row.get(1)?, mark: row.get(2)? })
        })
    }

    fn taker(&self, id: Number, holder: &AgentName) -> Result<Option<Party>> {
        let sql = "SELECT by_party FROM takeovers WHERE reservation = ?1 AND from_agent = ?2 ORDER BY generation DESC LIMIT 1";
        self.one(sql, params![id, holder.as_str()], |row| rows::party(row, 0))
    }

    fn taken_on(&self, holder: &AgentName, pattern: &str) -> Result<Option<(Number, Party)>> {
        let sql = "SELECT t.reservation, t.by_party FROM takeovers t CROSS JOIN reservations r ON r.id = t.reservation
            WHERE t.from_agent = ?1 AND r.pattern = ?2 ORDER BY t.reservation DESC, t.generation DESC LIMIT 1";
        self.one(sql, params![holder.as_str(), pattern], |row| Ok((row.get(0)?, rows::party(row, 1)?)))
    }

    fn link(&self, one: &Party, other: &Party) -> Result<Option<Link>> {
        let sql = format!(
            "{LINK} WHERE l.id = (SELECT max(id) FROM (SELECT id FROM links WHERE asker = ?1 AND asked = ?2
             UNION ALL SELECT id FROM links WHERE asker = ?2 AND asked = ?1))"
        );
        self.one(&sql, params![one.to_string(), other.to_string()], rows::link)
    }

    fn links_of(&self, party: &Party) -> Result<Vec<Link>> {
        // Only the newest between two parties counts; the older ones are history.
        let sql = format!(
            "{LINK} WHERE l.id IN (SELECT max(id) FROM (SELECT id, asked AS party FROM links WHERE asker = ?1
             UNION ALL SELECT id, asker FROM links WHERE asked = ?1) GROUP BY party) ORDER BY l.id"
        );
        self.all(&sql, [party.to_string()], rows::link)
    }

    fn links(&self, before: Number, limit: usize) -> Result<Vec<Link>> {
        let sql = format!(
            "{LINK} WHERE l.id IN (SELECT max(id) FROM links GROUP BY min(asker, asked), max(asker, asked)) AND l.id < ?1
             ORDER BY l.id DESC LIMIT ?2"
        );
        self.all(&sql, params![bound(before), limit], rows::link)
    }

    fn neighbours(&self) -> Result<Vec<ProjectKey>> {
        let sql = "SELECT substr(asker, instr(asker, '@') + 1) FROM links WHERE instr(asker, '@') > 0
            UNION SELECT substr(asked, instr(asked, '@') + 1) FROM links WHERE instr(asked, '@') > 0
            UNION SELECT project FROM crossings";
        self.all(sql, [], |row| row.get::<_, String>(0).map(ProjectKey::resolved))
    }

    fn moves(&self) -> Result<Vec<(Number, ProjectKey, ProjectKey)>> {
        let project = |row: &Row<'_>, column| row.get::<_, String>(column).map(ProjectKey::resolved);
        let sql = "SELECT number, from_project, to_project FROM moves ORDER BY number";
        self.all(sql, [], |row| Ok((row.get(0)?, project(row, 1)?, project(row, 2)?)))
    }

    fn events(&self, query: &EventQuery<'_>) -> Result<Vec<Event>> {
        let [after, up_to] = [query.after, query.up_to].map(bound);
        let kinds = (!query.kinds.is_empty()).then(|| format!(",{},", query.kinds.join(",")));
        let [since, until] = [query.since, query.until].map(|time| time.map(Timestamp::millis));
        self.all(
            "SELECT number, payload, hash FROM events WHERE number > ?1 AND number <= ?2
             AND (?3 IS NULL OR instr(?3, ',' || kind || ',') > 0) AND (?4 IS NULL OR actor = ?4 COLLATE NOCASE)
             AND (?5 IS NULL OR at >= ?5) AND (?6 IS NULL OR at <= ?6) AND (?7 IS NULL OR CASE
                WHEN kind = 'message_sent' THEN
                    EXISTS (SELECT 1 FROM messages m WHERE m.number = events.number AND m.thread = ?7)
                WHEN kind IN ('mail_surfaced', 'mail_read', 'mail_acked') THEN
                    EXISTS (SELECT 1 FROM json_each(payload, '$.messages') j CROSS JOIN messages m
                        WHERE m.number = j.value AND m.thread = ?7)
                ELSE 1 END) ORDER BY number",
            params![after, up_to, kinds, query.actor, since, until, query.thread.map(ThreadId::as_str)],
            rows::event,
        )
    }

    fn texts(&self, number: Number) -> Result<Vec<(String, String)>> {
        self.all("SELECT field, text FROM texts WHERE event = ?1 ORDER BY field", [number], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    fn remembered(&self, actor: &str, key: &str) -> Result<Option<Remembered>> {
        let sql = "SELECT verb, salt, request, answer, number FROM answers WHERE actor = ?1 AND key = ?2";
        self.one(sql, [actor, key], |row| {
            let (verb, salt, request) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Remembered { verb, salt, request, answer: row.get(3)?, number: row.get(4)? })
        })
    }

    fn kept_failure(&self, actor: &str, key: &str) -> Result<Option<KeptFailure>> {
        let sql = "SELECT code, at, request, details FROM failed_requests WHERE actor = ?1 AND key = ?2";
        self.one(sql, [actor, key], |row| kept(row, 0))
    }

    fn kept_failures(&self, actor: &str) -> Result<Vec<(String, KeptFailure)>> {
        let sql = "SELECT key, code, at, request, details FROM failed_requests WHERE actor = ?1 ORDER BY ordinal DESC";
        self.all(sql, [actor], |row| Ok((row.get(0)?, kept(row, 1)?)))
    }

    fn crossings(&self) -> Result<Vec<Crossing>> {
        self.all("SELECT key, project, actor, pid, errand FROM crossings", [], |row| {
            Ok(Crossing {
                key: row.get(0)?,
                project: ProjectKey::resolved(row.get::<_, String>(1)?),
                actor: rows::party(row, 2)?,
                pid: row.get(3)?,
                errand: row.get(4)?,
            })
        })
    }
}

fn kept(row: &Row<'_>, first: usize) -> rusqlite::Result<KeptFailure> {
    Ok(KeptFailure {
        code: row.get(first)?,
        at: Timestamp::from_millis(row.get(first + 1)?),
        request: row.get(first + 2)?,
        details: row.get(first + 3)?,
    })
}

fn pairs_where(condition: &str) -> String {
    let theirs = CLAIM.replace("r.", "o.");
    format!(
        "SELECT {CLAIM}, {theirs} FROM overlaps p JOIN reservations r ON r.id = p.one JOIN reservations o ON o.id = p.other
         WHERE {condition}"
    )
}

fn pair(row: &Row<'_>) -> rusqlite::Result<Pair> {
    Ok((rows::claim(row)?, rows::claim_at(row, CLAIM_COLUMNS)?))
}
