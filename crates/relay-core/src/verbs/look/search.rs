//! Search over everything: messages by their words, and by what they are called agents, threads and claims.

use serde::Serialize;

use super::{Looking, Outcome, RECENT, agent_shape};
use crate::domain::event::Number;
use crate::domain::name::ThreadId;
use crate::domain::reservation::Reservation;
use crate::domain::words::Words;
use crate::error::Code;
use crate::store::{NEWEST, Result};
use crate::verbs::prepare;
use crate::wire::v1::{AgentShape, ClaimShape, MessageShape, ThreadShape};

const SEARCHED: usize = 32;
const SEARCHED_BYTES: usize = 1_000;

/// So many of each kind stand beside the messages.
const BESIDE: usize = 10;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Search {
    pub found: Vec<MessageShape>,
    /// Older ones are found before this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Number>,
    /// Whose name, program, model or task has all the words; like what follows, on the first page alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentShape>,
    /// Whose id has all the words, of those that something happened in of late.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadShape>,
    /// Whose pattern, holder or reason has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ClaimShape>,
}

pub(super) fn look(looking: &Looking<'_>, words: &[String], before: Option<Number>) -> Result<Outcome> {
    let words = wanted(words)?;
    let (found, next) = messages(looking, &words.join(" "), before)?;
    let mut search = Search { found, before: next, ..Search::default() };
    if before.is_none() {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        search.agents = agents(looking, &words)?;
        search.threads = threads(looking, &words)?;
        search.reservations = claims(looking, &words)?;
    }
    Ok(Outcome::Search(Box::new(search)))
}

/// The words of a search, each once. What they cost grows with how many there are, and nobody looks for a hundred.
fn wanted(words: &[String]) -> Result<Vec<&str>> {
    let mut wanted: Vec<&str> =
        words.iter().flat_map(|word| word.split(|c: char| c.is_whitespace() || c == '\0')).collect();
    wanted.retain(|word| !word.is_empty());
    wanted.sort_unstable();
    wanted.dedup();
    let bytes: usize = wanted.iter().map(|word| word.len()).sum();
    match wanted.len() {
        0 => Err(Code::InputInvalid.refuse("say what to search for")),
        1..=SEARCHED if bytes <= SEARCHED_BYTES => Ok(wanted),
        count => Err(Code::InputInvalid.refuse(format!(
            "a search is at most {SEARCHED} words of {SEARCHED_BYTES} bytes in all, not {count} of {bytes}"
        ))),
    }
}

fn messages(looking: &Looking<'_>, words: &str, before: Option<Number>) -> Result<(Vec<MessageShape>, Option<Number>)> {
    let marks = Words::of(words);
    let (mut found, mut before) = (Vec::new(), before.unwrap_or(NEWEST));
    // What the viewer does not see is not counted: the page is filled with what comes before it.
    while found.len() <= looking.limit {
        let ids = looking.facts.search(words, before, looking.limit + 1)?;
        let Some(last) = ids.last() else { break };
        before = *last;
        for id in ids {
            let Some(message) = looking.facts.message(id)?.filter(|message| looking.viewer.sees(message)) else {
                continue;
            };
            let excerpt = message.body.as_deref().and_then(|body| marks.excerpt(body));
            found.push(MessageShape { excerpt, ..looking.shape(&message, false) });
        }
    }
    let more = found.len() > looking.limit;
    found.truncate(looking.limit);
    let next = found.last().map(|message| message.id).filter(|_| more);
    Ok((found, next))
}

/// Whether each word, in small letters, is a part of one of the texts: a path or a name is looked for by any piece of it.
fn has_all(words: &[String], texts: &[Option<&str>]) -> bool {
    let texts: Vec<String> = texts.iter().flatten().map(|text| text.to_lowercase()).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word.as_str())))
}

fn agents(looking: &Looking<'_>, words: &[String]) -> Result<Vec<AgentShape>> {
    let mut agents = looking.facts.agents()?;
    agents.retain(|agent| {
        let about = [agent.program.as_deref(), agent.model.as_deref(), agent.task.as_deref()];
        has_all(words, &[&[Some(agent.name.as_str())], &about[..]].concat())
    });
    let mut agents: Vec<AgentShape> = agents.iter().map(|agent| agent_shape(looking.ctx, agent)).collect();
    super::now::sort(&mut agents);
    agents.truncate(BESIDE);
    Ok(agents)
}

fn threads(looking: &Looking<'_>, words: &[String]) -> Result<Vec<ThreadShape>> {
    let mut known = looking.facts.threads("", NEWEST, RECENT)?;
    known.retain(|thread| has_all(words, &[Some(thread.id.as_str())]));
    // One that nothing happened in for long is found by its whole id.
    if let ([word], true) = (words, known.is_empty())
        && let Ok(id) = ThreadId::parse(word)
    {
        known.extend(looking.facts.thread(&id)?);
    }
    let mut threads = Vec::new();
    for thread in known {
        threads.extend(prepare::thread_shape(looking.ctx, looking.facts, thread, &looking.viewer)?);
        if threads.len() == BESIDE {
            break;
        }
    }
    Ok(threads)
}

fn claims(looking: &Looking<'_>, words: &[String]) -> Result<Vec<ClaimShape>> {
    let claims = looking.facts.claims()?;
    let is_wanted = |claim: &&Reservation| {
        let reason = claim.reason.as_ref().map(ThreadId::as_str);
        claim.is_live(looking.ctx.now)
            && has_all(words, &[Some(claim.pattern.as_str()), Some(claim.holder.as_str()), reason])
    };
    Ok(claims.iter().filter(is_wanted).take(BESIDE).map(ClaimShape::from).collect())
}
