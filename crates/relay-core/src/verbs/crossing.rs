//! What concerns two projects. Each project decides and commits alone; what the other one has yet to learn is noted in
//! the same transaction, and completed by a later command if this process dies on the way.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::post::Posted;
use super::recipients::LeftOut;
use super::writing::Who;
use super::{Ctx, Key, ack, link, moved, send};
use crate::domain::event::Number;
use crate::domain::name::{Address, AgentName, Party, ProjectKey};
use crate::domain::nearest::nearest;
use crate::error::{Code, Kind, Refusal};
use crate::store::{Crossing, Errand, Facts, Result, Store};

/// No process has this number.
const NOBODY: u32 = 0;

/// What is to be done in the other project, as a guest there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "errand", rename_all = "snake_case")]
pub(super) enum Task {
    /// The other project decides first; then this one keeps the sender's copy.
    Send(Box<send::Outgoing>),
    /// The other project records the request first; then this one keeps a copy.
    Ask(link::Input),
    /// Decided here; the other project is told.
    TellLink(link::Tidings),
    TellAck {
        ids: Vec<Number>,
    },
    /// This project was moved; the other one knows its agents by the old path.
    TellMove {
        from: ProjectKey,
    },
}

/// The project that an address names, if it is not this one.
pub(super) fn other_project(ctx: &Ctx<'_>, address: &Address) -> Result<Option<ProjectKey>> {
    let Some(text) = &address.project else {
        return Ok(None);
    };
    let found = ctx.bus.find(text)?;
    match found.as_slice() {
        [one] if *one == ctx.project => Ok(None),
        [one] => Ok(Some(one.clone())),
        [] => Err(Code::RecipientNotFound
            .refuse(format!("there is no project {text:?} on this bus, so {address} cannot be reached"))
            .with(
                "recipients",
                serde_json::json!([{"name": address.to_string(), "code": Code::RecipientNotFound.as_str()}]),
            )),
        several => {
            let full: Vec<String> = several.iter().map(|project| format!("{}@{project}", address.name)).collect();
            Err(Code::RecipientNotFound
                .refuse(format!("{text:?} names several projects; write {}", full.join(" or ")))
                .with("nearest", serde_json::json!(full)))
        }
    }
}

/// A view of the other project, for the same caller as a guest.
pub(super) fn as_guest<T>(
    ctx: &Ctx<'_>,
    project: &ProjectKey,
    key: &str,
    visit: impl FnOnce(&Ctx<'_>) -> Result<T>,
) -> Result<T> {
    let (now, store) = open(ctx, project)?;
    let guest = Ctx {
        store: &*store,
        bus: ctx.bus,
        repository: ctx.repository,
        installation: ctx.installation,
        clock: ctx.clock,
        random: ctx.random,
        limits: ctx.limits,
        project: now,
        caller: ctx.caller.clone(),
        key: Key { text: key.to_owned(), chosen: true },
        now: ctx.now,
        pid: ctx.pid,
    };
    visit(&guest)
}

fn open(ctx: &Ctx<'_>, project: &ProjectKey) -> Result<(ProjectKey, Box<dyn Store>)> {
    ctx.bus
        .open(project)?
        .ok_or_else(|| Code::RecipientNotFound.refuse(format!("the project {project} is no longer on this bus")))
}

/// This project's agent as the other project writes it.
pub(super) fn guest_party(ctx: &Ctx<'_>, name: &AgentName) -> Party {
    Party::Elsewhere(name.clone(), ctx.project.clone())
}

pub(super) fn note(ctx: &Ctx<'_>, key: &str, project: &ProjectKey, actor: &Party, task: &Task) -> Result<Crossing> {
    let errand = serde_json::to_string(task).map_err(super::writing::internal)?;
    Ok(Crossing { key: key.to_owned(), project: project.clone(), actor: actor.clone(), pid: ctx.pid, errand })
}

/// Whether something waits whose process is gone.
pub(super) fn any_abandoned(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<bool> {
    Ok(facts.crossings()?.iter().any(|crossing| is_abandoned(ctx, crossing)))
}

fn is_abandoned(ctx: &Ctx<'_>, crossing: &Crossing) -> bool {
    crossing.pid != ctx.pid && !ctx.store.presence().process_lives(crossing.pid)
}

/// Completes what dead processes left. What cannot be completed now stays for the next command.
pub(super) fn settle(ctx: &Ctx<'_>) {
    let noted = take_over(ctx).unwrap_or_default();
    carry_all(ctx, &noted);
}

/// The same on a visit, which ends before the request does.
pub(super) fn settle_as_guest(ctx: &Ctx<'_>) {
    let noted = take_over(ctx).unwrap_or_default();
    carry_all(ctx, &noted);
    let is_one = |left: &Crossing, (taken, _): &(Crossing, Task)| left.key == taken.key && left.actor == taken.actor;
    let_go_of(ctx, |left| noted.iter().any(|taken| is_one(left, taken)));
}

fn carry_all(ctx: &Ctx<'_>, noted: &[(Crossing, Task)]) {
    let (moves, others): (Vec<_>, Vec<_>) = noted.iter().partition(|(_, task)| matches!(task, Task::TellMove { .. }));
    // Who knows this project by an old path would not find what its agents did there, and who is busy is waited for once.
    let mut closed = Vec::new();
    for (crossing, task) in moves.iter().chain(&others) {
        if closed.contains(&&crossing.project) || !is_there(ctx, &crossing.project) {
            continue;
        }
        let Err(refusal) = carry(ctx, crossing, task) else { continue };
        let may_go_later = matches!(refusal.code.kind(), Kind::Busy | Kind::Damaged);
        if may_go_later || matches!(task, Task::TellMove { .. }) {
            closed.push(&crossing.project);
        } else {
            let _ = drop_noted(ctx, &crossing.actor, &crossing.key);
        }
    }
}

/// A project that is not there just now may come back.
fn is_there(ctx: &Ctx<'_>, project: &ProjectKey) -> bool {
    matches!(ctx.bus.open(project), Ok(Some(_)))
}

/// Takes what dead processes left into this one's hands: until the end of the request neither another process nor a step of its own
/// finds it abandoned. What is for projects that are not there stays where it is, and costs no more than a look.
fn take_over(ctx: &Ctx<'_>) -> Result<Vec<(Crossing, Task)>> {
    let noted = ctx.store.read()?.crossings()?;
    let mut projects: Vec<&ProjectKey> = Vec::new();
    for crossing in noted.iter().filter(|crossing| is_abandoned(ctx, crossing)) {
        if !projects.contains(&&crossing.project) {
            projects.push(&crossing.project);
        }
    }
    projects.retain(|project| is_there(ctx, project));
    if projects.is_empty() {
        return Ok(Vec::new());
    }
    let mut tx = ctx.store.begin(Errand { verb: "settle", agent: "", wait: ctx.limits.gate_wait, durable: false })?;
    let mut taken = Vec::new();
    for crossing in tx.crossings()? {
        if is_abandoned(ctx, &crossing)
            && projects.contains(&&crossing.project)
            && let Ok(task) = serde_json::from_str(&crossing.errand)
        {
            let crossing = Crossing { pid: ctx.pid, ..crossing };
            tx.note_crossing(&crossing)?;
            taken.push((crossing, task));
        }
    }
    tx.commit()?;
    Ok(taken)
}

/// At the end of a request: what it could not complete is nobody's again. Its process may live on and serve others, of whom
/// the next one tries again.
pub(super) fn let_go(ctx: &Ctx<'_>) {
    let_go_of(ctx, |_| true);
}

fn let_go_of(ctx: &Ctx<'_>, is_meant: impl Fn(&Crossing) -> bool) {
    let is_held = |crossing: &Crossing| crossing.pid == ctx.pid && is_meant(crossing);
    let noted = ctx.store.read().and_then(|facts| facts.crossings()).unwrap_or_default();
    if noted.iter().any(is_held) {
        // What cannot be given back now is found abandoned when this process has ended.
        let _ = give_back(ctx, is_held);
    }
}

fn give_back(ctx: &Ctx<'_>, is_held: impl Fn(&Crossing) -> bool) -> Result<()> {
    let mut tx = ctx.store.begin(Errand { verb: "settle", agent: "", wait: ctx.limits.gate_wait, durable: false })?;
    for crossing in tx.crossings()?.into_iter().filter(is_held) {
        tx.note_crossing(&Crossing { pid: NOBODY, ..crossing })?;
    }
    tx.commit()
}

/// Runs one task to its end and forgets it.
fn carry(ctx: &Ctx<'_>, crossing: &Crossing, task: &Task) -> Result<()> {
    let ctx = &ctx.step(&crossing.key);
    let (project, key) = (&crossing.project, crossing.key.as_str());
    match (task, crossing.actor.agent()) {
        (Task::TellMove { from }, _) => moved::tell_one(ctx, crossing, from),
        (_, None) => Err(Code::Internal.refuse("a note that is nobody's")),
        (Task::Send(outgoing), Some(name)) => match first_answer::<(Posted, Vec<LeftOut>)>(ctx, crossing, name)? {
            Some((posted, _)) => {
                let who = Who::Absent(name.clone());
                send::keep_copy(ctx, who, (name, project), outgoing, &posted, None).map(|_| ())
            }
            None => drop_noted(ctx, &crossing.actor, key),
        },
        (Task::Ask(input), Some(name)) => match first_answer::<String>(ctx, crossing, name)? {
            Some(theirs) => {
                link::keep_copy(ctx, Who::Absent(name.clone()), (name, project), input, &theirs).map(|_| ())
            }
            None => drop_noted(ctx, &crossing.actor, key),
        },
        (Task::TellLink(tidings), Some(name)) => tell_link(ctx, name, project, key, tidings),
        (Task::TellAck { ids }, Some(name)) => tell_ack(ctx, name, project, key, ids),
    }
}

/// What the other project answered under this key before the process died, if it came that far.
fn first_answer<T: DeserializeOwned>(ctx: &Ctx<'_>, crossing: &Crossing, name: &AgentName) -> Result<Option<T>> {
    let (_, store) = open(ctx, &crossing.project)?;
    let scope = guest_party(ctx, name).to_string();
    let Some(first) = store.read()?.remembered(&scope, &crossing.key)? else {
        return Ok(None);
    };
    store.settle(ctx.limits.gate_wait)?;
    let (answer, _, _): (T, serde_json::Value, serde_json::Value) =
        serde_json::from_str(&first.answer).map_err(super::writing::internal)?;
    Ok(Some(answer))
}

/// Tells the other project of a decision about a link.
pub(super) fn tell_link(
    ctx: &Ctx<'_>,
    name: &AgentName,
    project: &ProjectKey,
    key: &str,
    tidings: &link::Tidings,
) -> Result<()> {
    as_guest(ctx, project, key, |guest| {
        link::decide_as_guest(guest, &guest_party(ctx, name), &tidings.input, tidings.closed)
    })?;
    drop_noted(ctx, &Party::Agent(name.clone()), key)
}

/// Tells the sender's project that its message was acknowledged.
pub(super) fn tell_ack(ctx: &Ctx<'_>, name: &AgentName, project: &ProjectKey, key: &str, ids: &[Number]) -> Result<()> {
    as_guest(ctx, project, key, |guest| ack::note_remote(guest, &guest_party(ctx, name), &ctx.project, ids))?;
    drop_noted(ctx, &Party::Agent(name.clone()), key)
}

pub(super) fn drop_noted(ctx: &Ctx<'_>, actor: &Party, key: &str) -> Result<()> {
    let mut tx = ctx.store.begin(Errand { verb: "settle", agent: "", wait: ctx.limits.gate_wait, durable: false })?;
    tx.drop_crossing(actor, key)?;
    tx.commit()
}

/// The other project refused what was noted here: nothing happened, unless it cannot say so. A note that cannot be
/// dropped now is dropped by the next command, which finds no answer there.
pub(super) fn refused_there(ctx: &Ctx<'_>, name: &AgentName, refusal: Refusal) -> Refusal {
    if refusal.code != Code::StoreIo {
        let _ = drop_noted(ctx, &Party::Agent(name.clone()), &ctx.key.text);
    }
    refusal
}

/// The other project has committed and this one could not. Any other class would say that nothing happened; the note
/// stays, and the next command completes what is missing here.
pub(super) fn half_done(ctx: &Ctx<'_>, project: &ProjectKey, cause: &Refusal) -> Refusal {
    let again = format!("the same request with --idempotency-key {} completes it", ctx.key.text);
    Code::StoreIo
        .refuse(format!("{project} has recorded it, but this project could not keep its copy ({cause}); {again}"))
        .with("other", project.as_str())
}

/// The agent that an address of another project means there.
pub(super) fn find_agent(facts: &dyn Facts, address: &Address, project: &ProjectKey) -> Result<AgentName> {
    if let Ok(name) = AgentName::parse(&address.name)
        && let Some(agent) = facts.agent(&name)?
    {
        return Ok(agent.name);
    }
    let agents = facts.agents()?;
    let near: Vec<String> = nearest(&address.name, agents.iter().map(|agent| agent.name.as_str()))
        .into_iter()
        .map(|name| format!("{name}@{project}"))
        .collect();
    Err(Code::RecipientNotFound.refuse(format!("there is no agent {address}")).with("nearest", serde_json::json!(near)))
}
