//! From events to projections. A replay of the history through this file gives the same tables again.

use relay_core::domain::delivery::Line;
use relay_core::domain::event::{Event, Happened, Number, Recipient, Renewal, Told};
use relay_core::domain::limits::TTL_MAX;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::reservation;
use relay_core::domain::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Params, Result, params};

use super::search;

/// Brings every projection up to date with one event.
pub(super) fn apply(connection: &Connection, event: &Event) -> Result<()> {
    let table = Table { connection, number: event.number, at: event.payload.at.millis() };
    if let Party::Agent(actor) = &event.payload.actor {
        table.run("UPDATE agents SET acted_at = ?2 WHERE name = ?1", params![actor.as_str(), table.at])?;
    }
    table.apply(&event.payload.what)
}

struct Table<'a> {
    connection: &'a Connection,
    number: Number,
    at: i64,
}

impl Table<'_> {
    fn run(&self, sql: &str, values: impl Params) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(values).map(|_| ())
    }

    fn apply(&self, what: &Happened) -> Result<()> {
        match what {
            Happened::ProjectOpened { project, path } => {
                self.run("INSERT INTO project (one, id, key) VALUES (1, ?1, ?2)", params![project, path.as_str()])
            }
            Happened::ProjectMoved { to, .. } => self.run("UPDATE project SET key = ?1", params![to.as_str()]),
            Happened::OtherProjectMoved { from, to } => self.other_moved(from, to),
            Happened::AgentRegistered { .. } | Happened::AgentResumed { .. } => self.identity(what),
            Happened::AgentSuspended { agent } => self.standing(agent, "suspended"),
            Happened::AgentReinstated { agent } => self.standing(agent, "active"),
            Happened::AgentRetired { agent } => self.standing(agent, "retired"),
            Happened::PolicySet { agent, policy } => {
                self.run("UPDATE agents SET policy = ?2 WHERE name = ?1", params![agent.as_str(), policy.as_str()])
            }
            Happened::ThreadPrepared { thread, agent } => {
                self.open_thread(thread)?;
                self.join(thread, &Party::Agent(agent.clone()))?;
                self.run("UPDATE agents SET thread = ?2 WHERE name = ?1", params![agent.as_str(), thread.as_str()])
            }
            Happened::ThreadLeft { thread, agent } => {
                self.run(
                    "DELETE FROM members WHERE thread = ?1 AND party = ?2",
                    params![thread.as_str(), agent.as_str()],
                )?;
                self.run(
                    "UPDATE agents SET thread = NULL WHERE name = ?1 AND thread = ?2",
                    params![agent.as_str(), thread.as_str()],
                )
            }
            Happened::ThreadClosed { thread, .. } => {
                self.run("UPDATE agents SET thread = NULL WHERE thread = ?1", params![thread.as_str()])?;
                self.run(
                    "UPDATE threads SET done = 1, last_at = ?2, last_number = ?3 WHERE id = ?1",
                    params![thread.as_str(), self.at, self.number],
                )
            }
            Happened::MessageSent { .. } => self.message(what),
            Happened::MessageRedacted { message, copies, .. } => self.redacted(*message, copies),
            Happened::HeldLapsed { message, recipient, .. } => self.run(
                "UPDATE deliveries SET lapsed = 1 WHERE message = ?1 AND recipient = ?2",
                params![message, recipient.to_string()],
            ),
            Happened::MailSurfaced { agent, messages, contested } => {
                self.receipts("UPDATE deliveries SET surfaced_at = coalesce(surfaced_at, ?3) WHERE message = ?1 AND recipient = ?2", agent, messages)?;
                contested.iter().try_for_each(|told| self.told(agent, told))
            }
            Happened::MailRead { agent, messages } => self.receipts(
                "UPDATE deliveries SET surfaced_at = coalesce(surfaced_at, ?3), read_at = coalesce(read_at, ?3)
                 WHERE message = ?1 AND recipient = ?2",
                agent,
                messages,
            ),
            Happened::MailAcked { agent, messages } => self.receipts(
                "UPDATE deliveries SET surfaced_at = coalesce(surfaced_at, ?3), read_at = coalesce(read_at, ?3),
                 acked_at = coalesce(acked_at, ?3) WHERE message = ?1 AND recipient = ?2",
                agent,
                messages,
            ),
            Happened::ReservationGranted { .. } => self.granted(what),
            Happened::ReservationRenewed { agent, claims } => {
                claims.iter().try_for_each(|claim| self.renewed(agent, claim))
            }
            Happened::ReservationReleased { claims, .. } => claims.iter().try_for_each(|id| self.end_claim(*id)),
            Happened::ReservationTaken { id, from, by, generation, expires_at, .. } => {
                self.taken(*id, from, by, *generation, *expires_at)
            }
            Happened::LinkRequested { .. }
            | Happened::LinkAccepted { .. }
            | Happened::LinkBlocked { .. }
            | Happened::LinkRevoked { .. } => self.link(what),
        }
    }

    /// The agents of the other project are known by its new path, also in what is kept beside the history.
    fn other_moved(&self, from: &ProjectKey, to: &ProjectKey) -> Result<()> {
        let paths = params![from.as_str(), to.as_str()];
        for (table, party) in [
            ("links", "asker"),
            ("links", "asked"),
            ("members", "party"),
            ("messages", "sender"),
            ("deliveries", "sender"),
            ("deliveries", "recipient"),
            ("answers", "actor"),
        ] {
            let at = format!("instr({party}, '@')");
            self.run(
                &format!(
                    "UPDATE OR REPLACE {table} SET {party} = substr({party}, 1, {at}) || ?2
                     WHERE {at} > 0 AND substr({party}, {at} + 1) = ?1"
                ),
                paths,
            )?;
        }
        self.run("UPDATE OR IGNORE messages SET twin_project = ?2 WHERE twin_project = ?1", paths)?;
        self.run("UPDATE crossings SET project = ?2 WHERE project = ?1", paths)?;
        self.run(
            "INSERT INTO moves (number, from_project, to_project) VALUES (?1, ?2, ?3)",
            params![self.number, from.as_str(), to.as_str()],
        )
    }

    /// The texts go, and with them everything beside the history that could still tell them: kept failed requests, and the
    /// digest by which the request is compared that sent them.
    fn redacted(&self, message: Number, copies: &[Number]) -> Result<()> {
        self.run("UPDATE messages SET redacted_by = ?2 WHERE number = ?1", params![message, self.number])?;
        self.run("DELETE FROM texts WHERE event = ?1", [message])?;
        self.run("DELETE FROM search WHERE rowid = ?1", [message])?;
        for copy in copies {
            self.run("UPDATE messages SET subject_redacted_by = ?2 WHERE number = ?1", params![copy, self.number])?;
            self.run("DELETE FROM texts WHERE event = ?1 AND field = 'subject'", [copy])?;
            search::without_subject(self.connection, *copy)?;
        }
        self.run(
            "UPDATE answers SET salt = zeroblob(16), request = '' WHERE EXISTS (SELECT 1 FROM events e JOIN messages m USING (number)
             WHERE e.number = ?1 AND e.key = answers.key AND m.sender = answers.actor COLLATE NOCASE)",
            [message],
        )?;
        self.run("DELETE FROM failed_requests", [])?;
        self.run("INSERT INTO cleanings (redaction, rewritten) VALUES (?1, 0)", [self.number])
    }

    fn identity(&self, what: &Happened) -> Result<()> {
        match what {
            Happened::AgentRegistered { agent, credential, program, model, task, session, parent, policy } => {
                self.run(
                    "INSERT INTO agents (name, number, credential, program, model, task_event, policy, session, parent, standing,
                     registered_at, acted_at, thread) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'active', ?10, ?10, NULL)",
                    params![
                        agent.as_str(),
                        self.number,
                        credential,
                        program,
                        model,
                        task.as_ref().map(|_| self.number),
                        policy.as_str(),
                        session,
                        parent.as_ref().map(AgentName::as_str),
                        self.at
                    ],
                )?;
                self.bind(agent, session.as_deref())
            }
            Happened::AgentResumed { agent, program, model, task, session, revived } => {
                self.run(
                    "UPDATE agents SET program = coalesce(?2, program), model = coalesce(?3, model), task_event = coalesce(?4, task_event),
                     session = coalesce(?5, session), standing = CASE WHEN ?6 THEN 'active' ELSE standing END WHERE name = ?1",
                    params![agent.as_str(), program, model, task.as_ref().map(|_| self.number), session, revived],
                )?;
                self.bind(agent, session.as_deref())
            }
            _ => Ok(()),
        }
    }

    fn bind(&self, agent: &AgentName, session: Option<&str>) -> Result<()> {
        match session {
            Some(session) => self.run(
                "INSERT OR REPLACE INTO sessions (session, agent) VALUES (?1, ?2)",
                params![session, agent.as_str()],
            ),
            None => Ok(()),
        }
    }

    fn standing(&self, agent: &AgentName, standing: &str) -> Result<()> {
        self.run("UPDATE agents SET standing = ?2 WHERE name = ?1", params![agent.as_str(), standing])
    }

    fn open_thread(&self, thread: &ThreadId) -> Result<()> {
        self.run(
            "INSERT INTO threads (id, first_message, done, opened_at, last_at, last_number, messages) VALUES (?1, NULL, 0, ?2, ?2, ?3, 0)
             ON CONFLICT (id) DO UPDATE SET last_at = ?2, last_number = ?3",
            params![thread.as_str(), self.at, self.number],
        )
    }

    fn join(&self, thread: &ThreadId, party: &Party) -> Result<()> {
        self.run(
            "INSERT OR IGNORE INTO members (thread, party) VALUES (?1, ?2)",
            params![thread.as_str(), party.to_string()],
        )
    }

    fn message(&self, what: &Happened) -> Result<()> {
        let Happened::MessageSent { thread, from, recipients, importance, ack_within_ms, reply_to, twin, .. } = what
        else {
            return Ok(());
        };
        self.open_thread(thread)?;
        self.run(
            "UPDATE threads SET first_message = coalesce(first_message, ?2), messages = messages + 1, done = 0 WHERE id = ?1",
            params![thread.as_str(), self.number],
        )?;
        self.run(
            "INSERT INTO messages (number, thread, sender, reply_to, importance, ack_within, sent_at, twin_project, twin_number)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                self.number,
                thread.as_str(),
                from.to_string(),
                reply_to,
                importance.as_str(),
                ack_within_ms,
                self.at,
                twin.as_ref().map(|twin| twin.project.as_str()),
                twin.as_ref().map(|twin| twin.number)
            ],
        )?;
        // A message that only blind recipients get must not show by its sender's membership either.
        let shows = recipients.iter().any(|recipient| recipient.line != Line::Bcc);
        if shows && *from != Party::Relay {
            self.join(thread, from)?;
        }
        for recipient in recipients {
            self.deliver(thread, from, recipient, *ack_within_ms)?;
        }
        search::catch_up(self.connection)
    }

    fn deliver(&self, thread: &ThreadId, from: &Party, recipient: &Recipient, ack_within: Option<i64>) -> Result<()> {
        let arrived = (!recipient.held).then_some(self.number);
        let arrived_at = arrived.map(|_| self.at);
        let due = arrived_at.zip(ack_within).map(|(at, within)| at + within);
        self.run(
            "INSERT INTO deliveries (message, recipient, line, sender, delivered_by, delivered_at, lapsed, ack_due)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)",
            params![
                self.number,
                recipient.party.to_string(),
                recipient.line.as_str(),
                from.to_string(),
                arrived,
                arrived_at,
                due
            ],
        )?;
        // A blind recipient in the list of members would no longer be blind; one who is held is not there yet.
        let is_visible = recipient.line != Line::Bcc && !recipient.held;
        if is_visible && *from != Party::Relay { self.join(thread, &recipient.party) } else { Ok(()) }
    }

    fn receipts(&self, sql: &str, party: &Party, messages: &[Number]) -> Result<()> {
        messages.iter().try_for_each(|message| self.run(sql, params![message, party.to_string(), self.at]))
    }

    fn told(&self, party: &Party, told: &Told) -> Result<()> {
        let Party::Agent(agent) = party else { return Ok(()) };
        if told.mark == reservation::ENDED {
            return self.run(
                "DELETE FROM told WHERE agent = ?1 AND mine = ?2 AND theirs = ?3",
                params![agent.as_str(), told.mine, told.theirs],
            );
        }
        self.run(
            "INSERT OR REPLACE INTO told (agent, mine, theirs, mark) VALUES (?1, ?2, ?3, ?4)",
            params![agent.as_str(), told.mine, told.theirs, told.mark],
        )
    }

    fn granted(&self, what: &Happened) -> Result<()> {
        let Happened::ReservationGranted {
            agent,
            pattern,
            prefix,
            exclusive,
            reason,
            ttl_ms,
            first_granted_at,
            expires_at,
            overlaps,
            conflicts,
        } = what
        else {
            return Ok(());
        };
        self.sweep()?;
        self.run(
            "INSERT INTO reservations (id, holder, pattern, prefix, exclusive, reason, ttl, first_granted_at, granted_at, expires_at,
             renew_at, generation, ended) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0, 0)",
            params![
                self.number,
                agent.as_str(),
                pattern,
                prefix,
                exclusive,
                reason.as_ref().map(ThreadId::as_str),
                ttl_ms,
                first_granted_at.millis(),
                self.at,
                expires_at.millis(),
                expires_at.millis() - ttl_ms / 2
            ],
        )?;
        for other in overlaps {
            self.run(
                "INSERT OR IGNORE INTO overlaps (one, other, holder) SELECT ?1, ?2, holder FROM reservations WHERE id = ?1
                 UNION ALL SELECT ?2, ?1, holder FROM reservations WHERE id = ?2",
                params![self.number, other],
            )?;
        }
        for other in conflicts {
            self.claimant_knows(agent, self.number, *exclusive, *other)?;
        }
        Ok(())
    }

    /// The answer told the claimant of this one; the other side learns of it from its own poll.
    fn claimant_knows(&self, agent: &AgentName, mine: Number, exclusive: bool, other: Number) -> Result<()> {
        let theirs = self
            .connection
            .prepare_cached("SELECT exclusive, generation FROM reservations WHERE id = ?1")?
            .query_row([other], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((theirs_exclusive, generation)) = theirs else { return Ok(()) };
        let mark = reservation::mark(exclusive, theirs_exclusive, generation);
        self.told(&Party::Agent(agent.clone()), &Told { mine, theirs: other, mark })
    }

    /// Claims that expired a day ago no longer stand in anybody's way: they leave the indexes.
    fn sweep(&self) -> Result<()> {
        let long_ago = self.at - TTL_MAX.as_millis();
        let mut expired =
            self.connection.prepare_cached("SELECT id FROM reservations WHERE ended = 0 AND expires_at < ?1")?;
        let ids: Vec<Number> = expired.query_map([long_ago], |row| row.get(0))?.collect::<Result<_>>()?;
        // Nobody ended it, so its holder has yet to hear that its contests are over.
        ids.into_iter().try_for_each(|id| self.withdraw(id))
    }

    fn end_claim(&self, id: Number) -> Result<()> {
        self.withdraw(id)?;
        // Whoever ended it knows; the other side is told by its own poll.
        self.run("DELETE FROM told WHERE mine = ?1", [id])
    }

    fn withdraw(&self, id: Number) -> Result<()> {
        self.run("UPDATE reservations SET ended = 1 WHERE id = ?1", [id])?;
        self.run("DELETE FROM overlaps WHERE other = ?1 AND one IN (SELECT other FROM overlaps WHERE one = ?1)", [id])?;
        self.run("DELETE FROM overlaps WHERE one = ?1", [id])
    }

    fn renewed(&self, agent: &AgentName, claim: &Renewal) -> Result<()> {
        for other in &claim.conflicts {
            self.claimant_knows(agent, claim.id, claim.exclusive, *other)?;
        }
        self.run(
            "UPDATE reservations SET ttl = ?2, granted_at = ?3, expires_at = ?4, renew_at = ?5, exclusive = ?6, reason = ?7 WHERE id = ?1",
            params![
                claim.id,
                claim.ttl_ms,
                self.at,
                claim.expires_at.millis(),
                claim.expires_at.millis() - claim.ttl_ms / 2,
                claim.exclusive,
                claim.reason.as_ref().map(ThreadId::as_str)
            ],
        )
    }

    fn taken(&self, id: Number, from: &AgentName, by: &Party, generation: u64, expires_at: Timestamp) -> Result<()> {
        self.run(
            "INSERT INTO takeovers (reservation, generation, from_agent, by_party) VALUES (?1, ?2, ?3, ?4)",
            params![id, generation, from.as_str(), by.to_string()],
        )?;
        let Party::Agent(by) = by else {
            return self.end_claim(id);
        };
        self.run(
            "UPDATE reservations SET holder = ?2, generation = ?3, first_granted_at = ?4, granted_at = ?4, expires_at = ?5,
             renew_at = ?5 - ttl / 2 WHERE id = ?1",
            params![id, by.as_str(), generation, self.at, expires_at.millis()],
        )?;
        self.run("UPDATE overlaps SET holder = ?2 WHERE one = ?1", params![id, by.as_str()])
    }

    fn link(&self, what: &Happened) -> Result<()> {
        match what {
            Happened::LinkRequested { from, to, expires_at, .. } => self.new_link(from, to, false, expires_at.millis()),
            Happened::LinkAccepted { link, by_policy, expires_at, delivers, .. } => {
                self.run(
                    "UPDATE links SET decided = 'accepted', by_policy = ?2, expires_at = ?3 WHERE id = ?1",
                    params![link, by_policy, expires_at.millis()],
                )?;
                delivers.iter().try_for_each(|message| self.release_held(*link, *message))
            }
            Happened::LinkBlocked { link: None, by, other } => self.new_link(by, other, true, self.at),
            Happened::LinkBlocked { link: Some(link), by, .. } => self.run(
                "UPDATE links SET asker_blocks = asker_blocks OR asker = ?2, asked_blocks = asked_blocks OR asked = ?2 WHERE id = ?1",
                params![link, by.to_string()],
            ),
            Happened::LinkRevoked { link, by } => self.run(
                "UPDATE links SET decided = 'revoked', asker_blocks = asker_blocks AND asker <> ?2, asked_blocks = asked_blocks AND asked <> ?2
                 WHERE id = ?1",
                params![link, by.to_string()],
            ),
            _ => Ok(()),
        }
    }

    fn new_link(&self, asker: &Party, asked: &Party, blocks: bool, expires_at: i64) -> Result<()> {
        self.run(
            "INSERT INTO links (id, asker, asked, decided, asker_blocks, asked_blocks, by_policy, requested_at, expires_at)
             VALUES (?1, ?2, ?3, 'requested', ?4, 0, 0, ?5, ?6)",
            params![self.number, asker.to_string(), asked.to_string(), blocks, self.at, expires_at],
        )
    }

    /// The acceptance delivers what one side held for the other.
    fn release_held(&self, link: Number, message: Number) -> Result<()> {
        self.run(
            "UPDATE deliveries SET delivered_by = ?3, delivered_at = ?4,
             ack_due = ?4 + (SELECT ack_within FROM messages WHERE number = ?1)
             WHERE message = ?1 AND delivered_by IS NULL
             AND recipient = (SELECT CASE deliveries.sender WHEN asker THEN asked ELSE asker END FROM links WHERE id = ?2)",
            params![message, link, self.number, self.at],
        )?;
        self.run(
            "INSERT OR IGNORE INTO members (thread, party) SELECT m.thread, d.recipient FROM messages m JOIN deliveries d ON d.message = m.number
             WHERE m.number = ?1 AND d.delivered_by = ?2 AND d.line <> 'bcc'",
            params![message, self.number],
        )
    }
}
