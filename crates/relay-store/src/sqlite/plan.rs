//! The proof that reading does not grow with the history: every question of the contract is asked once, and the plan of
//! each statement is looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use relay_core::domain::event::Twin;
use relay_core::domain::limits::Limits;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::Timestamp;
use relay_core::store::{EventQuery, Facts, InboxQuery, NEWEST, Result, Store};
use rusqlite::Connection;

use crate::Home;

/// What may be walked from end to end, word for word: tables of a few rows, and what is asked for as a whole.
const WALKED: [&str; 10] = [
    "SCAN a",
    "SCAN crossings",
    // The messages that one receipt is about.
    "SCAN j VIRTUAL TABLE INDEX 3:",
    "SCAN h USING INDEX threads_by_activity",
    "SCAN r USING INDEX claims_by_expiry",
    "SCAN temp.fresh VIRTUAL TABLE INDEX 192:M2<",
    "SCAN search VIRTUAL TABLE INDEX 192:M2<",
    "SCAN threads",
    // What is owed by everybody, and the contacts of all.
    "SCAN deliveries USING COVERING INDEX acks_owed",
    "SCAN links USING COVERING INDEX links_of_asked",
];

pub(super) fn check(connection: &Connection, sql: &str) {
    assert_eq!(walks(connection, sql), [""; 0], "in {sql}");
}

/// What a statement walks from end to end though it must not.
fn walks(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let plan: Vec<String> =
        statement.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<rusqlite::Result<_>>().unwrap();
    let of_a_result = |line: &str| line.starts_with("SCAN (") || line.ends_with("CONSTANT ROW");
    let is_walk = |line: &&String| line.starts_with("SCAN") && !of_a_result(line) && !WALKED.contains(&line.as_str());
    plan.iter().filter(is_walk).cloned().collect()
}

#[test]
fn a_walk_through_the_history_is_noticed() -> Result<()> {
    let root = tempfile::tempdir().unwrap();
    let store =
        Home::new(root.path().join("home"), Limits::default(), 0).open_or_create(&ProjectKey::resolved("/p"))?;
    for (sql, expected) in [
        ("SELECT number FROM events WHERE kind = 'x'", &["SCAN events"] as &[&str]),
        ("SELECT number FROM events ORDER BY number DESC LIMIT 1", &["SCAN events"]),
        ("SELECT text FROM texts", &["SCAN texts"]),
        ("SELECT number FROM events WHERE number > 7 AND kind = 'x'", &[]),
    ] {
        assert_eq!(walks(&store.connection, sql), expected, "{sql}");
    }
    Ok(())
}

#[test]
fn every_question_is_answered_from_an_index() -> Result<()> {
    let root = tempfile::tempdir().unwrap();
    let store =
        Home::new(root.path().join("home"), Limits::default(), 0).open_or_create(&ProjectKey::resolved("/p"))?;
    let facts = store.read()?;
    let (name, other) = (AgentName::parse("BlueLake")?, Party::Human);
    let me = Party::Agent(name.clone());
    let (thread, now) = (ThreadId::parse("t-1")?, Timestamp::from_millis(0));
    everybody(&*facts, &name, &thread)?;
    mail(&*facts, &me, &other, &thread, now)?;
    claims(&*facts, &name, &thread, now)?;
    facts.link(&me, &other)?;
    facts.links_of(&me)?;
    facts.links(NEWEST, 100)?;
    facts.events(&EventQuery::between(7, 100))?;
    facts.events(&EventQuery { kinds: &["message_sent"], actor: Some("BlueLake"), ..EventQuery::between(7, 100) })?;
    facts.events(&EventQuery { thread: Some(&thread), since: Some(now), ..EventQuery::between(7, 100) })?;
    facts.texts(7)?;
    facts.remembered("bluelake", "key")?;
    facts.kept_failure("bluelake", "key")?;
    facts.kept_failures("bluelake")?;
    facts.crossings()?;
    Ok(())
}

fn everybody(facts: &dyn Facts, name: &AgentName, thread: &ThreadId) -> Result<()> {
    facts.tip()?;
    facts.agent(name)?;
    facts.agent_of_session("session")?;
    facts.agents()?;
    facts.thread(thread)?;
    facts.threads("b", NEWEST, 100)?;
    facts.open_threads()?;
    facts.members(thread)?;
    facts.is_member(thread, &Party::Human)?;
    Ok(())
}

fn mail(facts: &dyn Facts, me: &Party, other: &Party, thread: &ThreadId, now: Timestamp) -> Result<()> {
    facts.thread_messages(thread, NEWEST, 100)?;
    facts.thread_messages_after(thread, 7, 100)?;
    facts.thread_messages_until(thread, now, 100)?;
    facts.message(7)?;
    facts.envelope(7)?;
    facts.message_of_twin(&Twin { project: ProjectKey::resolved("/q"), number: 7 })?;
    let narrow = [(None, None, false), (Some(thread), None, false), (None, Some(other), false), (None, None, true)];
    for (thread, from, urgent) in narrow {
        for (with_read, never_surfaced) in [(false, false), (true, false), (false, true)] {
            let (after, limit, bodies) = (7, 100, true);
            facts.inbox(&InboxQuery {
                recipient: me,
                after,
                thread,
                from,
                urgent,
                with_read,
                never_surfaced,
                limit,
                bodies,
            })?;
        }
    }
    facts.unread(me, 100)?;
    facts.outbox(me, 100)?;
    facts.acks_owed(me, 100)?;
    facts.acks_awaited(me, 100)?;
    facts.acks_waiting(100)?;
    facts.acks_counted()?;
    facts.traffic(7)?;
    facts.same_text(me, "subject", "body", now, now)?;
    facts.newest_from(me, other, 7)?;
    facts.wrote_since(me, other, now)?;
    facts.held(me, other)?;
    facts.held_of(me)?;
    facts.search("word", NEWEST, 100)?;
    Ok(())
}

fn claims(facts: &dyn Facts, name: &AgentName, thread: &ThreadId, now: Timestamp) -> Result<()> {
    facts.claims()?;
    facts.claims_of(name)?;
    facts.claims_on(name, "src/**")?;
    facts.count_claims(name, now)?;
    facts.claims_to_renew(name, now)?;
    facts.claims_for(thread)?;
    facts.claim(7)?;
    facts.claims_near(&["src/auth", "docs"])?;
    facts.claims_near(&[""])?;
    facts.pairs(name, now, 100)?;
    facts.share_a_path(name, name, now)?;
    facts.told(name)?;
    facts.taker(7, name)?;
    facts.taken_on(name, "src")?;
    Ok(())
}
