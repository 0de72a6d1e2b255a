//! A link between two projects: what one of them decides, the other is asked or told.

use serde::{Deserialize, Serialize};

use super::{Input, Outcome, closed, decide, find, outcome, refused, request};
use crate::domain::agent::Standing;
use crate::domain::contact::LinkState;
use crate::domain::name::{Address, AgentName, Party, ProjectKey};
use crate::domain::routing::{self, Barrier};
use crate::store::Result;
use crate::verbs::Ctx;
use crate::verbs::crossing::{self, Task};
use crate::verbs::writing::{self, Told, Who, Writing, write, write_as};

/// A decision as the other project is told of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::verbs) struct Tidings {
    #[serde(flatten)]
    pub input: Input,
    /// What keeps mail from the one who decided, although there is a link now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Barrier>,
}

/// A link with somebody of another project. A request is decided there first; an answer is decided here first.
pub(super) fn across(ctx: &Ctx<'_>, input: &Input, project: &ProjectKey) -> Result<Told<Outcome>> {
    let is_request = !(input.accept || input.block || input.revoke);
    let target = input.target.clone().unwrap_or_else(|| Address::parse(""));
    let name = crossing::as_guest(ctx, project, &ctx.key.text, |guest| {
        crossing::find_agent(&*guest.store.read()?, &target, project)
    })?;
    if is_request {
        return ask_across(ctx, input, &name, project);
    }
    let told = write(ctx, "link", input, |writing| {
        let me = writing.actor.must_be_agent("link across projects")?.name.clone();
        let link = decide(writing, &Party::Elsewhere(name.clone(), project.clone()), input)?;
        note_tidings(writing, &me, &name, project, input)?;
        Ok(outcome(writing, &link))
    })?;
    tell(ctx);
    Ok(told)
}

/// Notes that the project of `other` is yet to be told what was decided for `me` here.
pub(super) fn note_tidings(
    writing: &mut Writing<'_>,
    me: &AgentName,
    other: &AgentName,
    project: &ProjectKey,
    input: &Input,
) -> Result<()> {
    let ctx = writing.ctx;
    let target = Some(Address { name: other.to_string(), project: None });
    // A number means something in this project only.
    let input = Input { target, id: None, ..input.clone() };
    let closed = closed(writing, &Party::Agent(me.clone()))?;
    let task = Task::TellLink(Tidings { input, closed });
    // The key of the note is not that of the request, which the other project may know.
    let key = format!("{} {other}@{project}", tidings(ctx));
    let noted = crossing::note(ctx, &key, project, &Party::Agent(me.clone()), &task)?;
    writing.note_crossing(&noted)
}

fn tidings(ctx: &Ctx<'_>) -> String {
    format!("{} tells", ctx.key.text)
}

/// Carries what this request noted. A failure costs nothing: the next command carries it.
pub(super) fn tell(ctx: &Ctx<'_>) {
    let noted = ctx.store.read().and_then(|facts| facts.crossings()).unwrap_or_default();
    for crossing in noted.iter().filter(|crossing| crossing.key.starts_with(&tidings(ctx))) {
        if let (Some(name), Ok(Task::TellLink(tidings))) =
            (crossing.actor.agent(), serde_json::from_str(&crossing.errand))
        {
            let _ = crossing::tell_link(ctx, name, &crossing.project, &crossing.key, &tidings);
        }
    }
}

/// The other project decides and commits first; then this one keeps its copy.
fn ask_across(ctx: &Ctx<'_>, input: &Input, there: &AgentName, project: &ProjectKey) -> Result<Told<Outcome>> {
    let mut writing = writing::open(ctx, "link", Who::Registered)?;
    let agent = writing.actor.must_be_agent("link across projects")?.clone();
    if writing.tx.remembered(&writing.actor.scope(), &ctx.key.text)?.is_some() {
        drop(writing);
        return writing::again(ctx, "link", input);
    }
    let (me, other) = (Party::Agent(agent.name.clone()), Party::Elsewhere(there.clone(), project.clone()));
    // What this project would not copy is not asked for there.
    let existing = writing.tx.link(&me, &other)?;
    if existing.as_ref().is_some_and(|link| link.state(ctx.now) == LinkState::Blocked) {
        return Err(refused(&me, &other, Barrier::Blocked, existing.as_ref()));
    }
    writing.tx.note_crossing(&crossing::note(ctx, &ctx.key.text, project, &me, &Task::Ask(input.clone()))?)?;
    writing.tx.commit()?;
    let party = crossing::guest_party(ctx, &agent.name);
    let asked = crossing::as_guest(ctx, project, &ctx.key.text, |guest| {
        decide_as_guest(guest, &party, input, routing::closed(Standing::Active, agent.policy))
    });
    let theirs = asked.map_err(|refusal| crossing::refused_there(ctx, &agent.name, refusal))?;
    keep_copy(ctx, Who::LetThrough(Box::new(agent.clone())), (&agent.name, project), input, &theirs)
        .map_err(|refusal| crossing::half_done(ctx, project, &refusal))
}

/// This project's copy of a request that the other one has recorded, for the agent that it named.
pub(in crate::verbs) fn keep_copy(
    ctx: &Ctx<'_>,
    who: Who<'_>,
    (name, project): (&AgentName, &ProjectKey),
    input: &Input,
    theirs: &str,
) -> Result<Told<Outcome>> {
    write_as(&ctx.step_with_own_key(), "link", who, input, |writing| {
        let there = AgentName::parse(theirs)?;
        let link = request(writing, &Party::Elsewhere(there, project.clone()), input.why.as_deref(), input.ttl)?;
        writing.drop_crossing(&Party::Agent(name.clone()), &ctx.key.text)?;
        Ok(outcome(writing, &link))
    })
}

/// The other half of a decision, made in this project by a guest. Returns the name of the agent that it concerns.
pub(in crate::verbs) fn decide_as_guest(
    guest: &Ctx<'_>,
    party: &Party,
    input: &Input,
    closed: Option<Barrier>,
) -> Result<String> {
    let told = write_as(guest, "link", Who::Guest(party.clone()), input, |writing| {
        writing.guest_is_closed = closed;
        let target = find(&*writing.tx, input.target.as_ref())?;
        decide(writing, &Party::Agent(target.clone()), input)?;
        Ok(target.to_string())
    })?;
    Ok(told.outcome)
}
