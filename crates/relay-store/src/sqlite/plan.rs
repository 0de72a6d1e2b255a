//! The proof that reading does not grow with the history: every question of the contract is asked once, and the plan of
//! each statement is looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use relay_core::domain::event::Twin;
use relay_core::domain::limits::Limits;
use relay_core::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use relay_core::domain::time::Timestamp;
use relay_core::store::{Facts, InboxQuery, Result, Store};
use rusqlite::Connection;

use crate::Home;

/// What may be walked from end to end: tables of a few rows, the newest event, and what is asked for as a whole.
const WALKED: [&str; 8] = [
    "SCAN a",
    "SCAN crossings",
    "SCAN events",
    "SCAN h USING INDEX threads_by_activity",
    "SCAN r USING INDEX claims_by_expiry",
    "SCAN temp.fresh VIRTUAL TABLE",
    "SCAN search VIRTUAL TABLE",
    "SCAN threads",
];

pub(super) fn check(connection: &Connection, sql: &str) {
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let plan: Vec<String> =
        statement.raw_query().mapped(|row| row.get::<_, String>(3)).collect::<rusqlite::Result<_>>().unwrap();
    for line in plan.iter().filter(|line| line.starts_with("SCAN")) {
        let of_a_result = line.starts_with("SCAN (") || line.ends_with("CONSTANT ROW");
        assert!(of_a_result || WALKED.iter().any(|known| line.starts_with(known)), "{line}\nin {sql}\n{plan:#?}");
    }
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
    facts.events(7, 100)?;
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
    facts.threads(100)?;
    facts.open_threads()?;
    facts.members(thread)?;
    facts.is_member(thread, &Party::Human)?;
    Ok(())
}

fn mail(facts: &dyn Facts, me: &Party, other: &Party, thread: &ThreadId, now: Timestamp) -> Result<()> {
    facts.thread_messages(thread, 100)?;
    facts.message(7)?;
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
    facts.sent_since(me, now)?;
    facts.wrote_since(me, other, now)?;
    facts.held(me, other)?;
    facts.held_of(me)?;
    facts.search("word", 100)?;
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
    facts.pairs(name)?;
    facts.told(name)?;
    facts.taker(7, name)?;
    Ok(())
}
