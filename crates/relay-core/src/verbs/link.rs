//! `link`: asks for contact and, where policy allows, completes it; accepts, blocks, revokes, lists.

mod across;

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::crossing;
use super::wait::{self, Look, Waiter, Waiting};
use super::writing::{self, Told, Writing, write};
use super::{Begun, Ctx, Done, Outcome as Any, check_why, post, recipients};
use crate::domain::agent::{Policy, Standing};
use crate::domain::contact::{self, Asked, Decided, Door, GivenUp, Link, LinkState, Side};
use crate::domain::event::{Happened, Number};
use crate::domain::limits::{LINK_TTL_DEFAULT, LINK_TTL_MAX, TTL_MIN};
use crate::domain::name::{Address, AgentName, Party};
use crate::domain::routing::{self, Barrier};
use crate::domain::shell;
use crate::domain::time::Span;
use crate::error::{Code, Refusal};
use crate::store::{Facts, Guard, Result};
use crate::wire::v1::LinkShape;
pub(super) use across::{Tidings, decide_as_guest, keep_copy};
use across::{across, note_tidings, tell};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    pub target: Option<Address>,
    pub why: Option<String>,
    pub ttl: Option<Span>,
    pub accept: bool,
    pub block: bool,
    pub revoke: bool,
    pub list: bool,
    /// The request that the human answers, where several wait for the same agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkShape>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<Vec<LinkShape>>,
}

pub fn begin(ctx: &Ctx<'_>, input: &Input) -> Result<Begun> {
    check(ctx, input)?;
    if input.list {
        return list(ctx).map(Begun::Done);
    }
    let target = input
        .target
        .as_ref()
        .ok_or_else(|| Code::InputInvalid.refuse("name somebody as the target, or ask for the list"))?;
    if target.is_human() {
        return Err(Code::InputInvalid.refuse("the human needs no link: everybody may write to the human"));
    }
    // How long the caller waits is no part of what it asks for.
    let asked = Input { wait: None, ..input.clone() };
    let told = match crossing::other_project(ctx, target)? {
        Some(project) => across(ctx, &asked, &project)?,
        None => {
            let told = write(ctx, "link", &asked, |writing| here(writing, &asked))?;
            if ctx.caller.human {
                tell(ctx);
            }
            told
        }
    };
    match (input.wait, &told.outcome.link) {
        (Some(time), Some(asked)) if asked.state == LinkState::Requested => {
            let asker = Asker::enter(ctx, asked.clone(), told)?;
            Ok(Begun::Waits(Waiting::new(ctx, time, asker)))
        }
        _ => Ok(Begun::Done(Done::new("link", told, Any::Link))),
    }
}

fn check(ctx: &Ctx<'_>, input: &Input) -> Result<()> {
    let actions = [input.accept, input.block, input.revoke, input.list].iter().filter(|chosen| **chosen).count();
    if actions > 1 {
        return Err(Code::InputInvalid.refuse("--accept, --block, --revoke and --list exclude each other"));
    }
    if input.id.is_some() && !(ctx.caller.human && (input.accept || input.block)) {
        return Err(Code::InputInvalid.refuse(
            "--id is how the human picks the request to --accept or --block; an agent names the asker with --target",
        ));
    }
    if let Some(ttl) = input.ttl
        && !(TTL_MIN..=LINK_TTL_MAX).contains(&ttl)
    {
        return Err(Code::TtlOutOfRange
            .refuse(format!("a link lives 60s to 365d, not {ttl}"))
            .with("ttl", ttl.to_string()));
    }
    check_why(input.why.as_deref())
}

fn list(ctx: &Ctx<'_>) -> Result<Done> {
    let facts = ctx.store.read()?;
    let actor = actor::acting(ctx, &*facts)?;
    let links = links(ctx, &*facts, &actor.party())?;
    let told = Told {
        outcome: Outcome { link: None, links: Some(links) },
        signals: writing::signals_for(ctx, &*facts, &actor)?,
        next: Vec::new(),
    };
    Ok(Done::new("link", told, Any::Link))
}

/// The links of an agent; for the human, who has none, every request that waits in the project.
pub(super) fn links(ctx: &Ctx<'_>, facts: &dyn Facts, party: &Party) -> Result<Vec<LinkShape>> {
    let mut links = facts.links_of(party)?;
    if *party == Party::Human {
        for agent in facts.agents()? {
            links.extend(pending_for(facts, &Party::Agent(agent.name), ctx.now)?);
        }
    }
    Ok(links.iter().map(|link| LinkShape::of(link, ctx.now)).collect())
}

/// A link inside this project.
fn here(writing: &mut Writing<'_>, input: &Input) -> Result<Outcome> {
    let target = find(&*writing.tx, input.target.as_ref())?;
    let me = writing.actor.party();
    if me.is(&target) {
        return Err(Code::InputInvalid.refuse(format!("{me} needs no link with itself")));
    }
    let link = decide(writing, &Party::Agent(target), input)?;
    Ok(outcome(writing, &link))
}

fn outcome(writing: &mut Writing<'_>, link: &Link) -> Outcome {
    let shape = LinkShape::of(link, writing.ctx.now);
    if shape.state == LinkState::Requested && link.from == writing.actor.party() {
        let target = link.to.to_string();
        writing.next.push(shell::line(&["relay", "link", "--target", &target, "--wait", "10m"]));
    }
    // A reason is free text and a remembered answer holds none.
    Outcome { link: Some(LinkShape { why: None, ..shape }), links: None }
}

fn find(facts: &dyn Facts, target: Option<&Address>) -> Result<AgentName> {
    let text = target.map(|address| address.name.as_str()).unwrap_or_default();
    if let Ok(name) = AgentName::parse(text)
        && let Some(agent) = facts.agent(&name)?
    {
        return Ok(agent.name);
    }
    Err(actor::unknown(facts, Code::RecipientNotFound, text)?)
}

/// What the actor decides about its link with `other`, wherever that one lives.
fn decide(writing: &mut Writing<'_>, other: &Party, input: &Input) -> Result<Link> {
    if writing.actor.party() == Party::Human {
        return decide_for(writing, other, input);
    }
    if input.accept {
        accept(writing, other)
    } else if input.block {
        let me = writing.actor.party();
        block(writing, &me, other)
    } else if input.revoke {
        revoke(writing, other)
    } else {
        request(writing, other, input.why.as_deref(), input.ttl)
    }
}

/// The human answers a request that waits for an agent, and asks for nothing.
fn decide_for(writing: &mut Writing<'_>, agent: &Party, input: &Input) -> Result<Link> {
    if !(input.accept || input.block) {
        return Err(Code::InputInvalid.refuse(
            "the human is outside policies: only --accept and --block, of a request to the agent named, make sense",
        ));
    }
    let link = the_one(writing, agent, input)?;
    if let (Party::Elsewhere(asker, project), Party::Agent(asked)) = (&link.from, &link.to) {
        note_tidings(writing, asked, asker, project, input)?;
    }
    if input.accept { complete(writing, &link, &Party::Human, false) } else { block(writing, &link.to, &link.from) }
}

/// The request that the human means: the only one, or the one of this number.
fn the_one(writing: &Writing<'_>, agent: &Party, input: &Input) -> Result<Link> {
    let mut waiting = pending_for(&*writing.tx, agent, writing.ctx.now)?;
    // Without a name in its details no step proposes to ask: the human does not.
    let none = |what: &str| Code::LinkNotFound.refuse(format!("no request{what} for contact waits for {agent}"));
    if let Some(id) = input.id {
        let found = waiting.into_iter().find(|link| link.id == id);
        return found.ok_or_else(|| none(&format!(" #{id}")));
    }
    match waiting.len() {
        0 => Err(none("")),
        1 => Ok(waiting.remove(0)),
        count => {
            let answer = if input.accept { "--accept" } else { "--block" };
            let (target, project) = (agent.to_string(), writing.ctx.project.to_string());
            let line = |link: &Link| {
                let id = link.id.to_string();
                shell::line(&[
                    "relay",
                    "link",
                    "--target",
                    &target,
                    "--id",
                    &id,
                    answer,
                    "--agent",
                    "human",
                    "--project",
                    &project,
                ])
            };
            let rows: Vec<String> =
                waiting.iter().map(|link| format!("#{} from {}: {}", link.id, link.from, line(link))).collect();
            let shapes: Vec<_> = waiting
                .iter()
                .map(|link| serde_json::json!({"id": link.id, "from": link.from.to_string(), "run": line(link)}))
                .collect();
            Err(Code::InputInvalid
                .refuse(format!("{count} requests wait for {agent}; answer one of them: {}", rows.join("; ")))
                .with("waiting", shapes))
        }
    }
}

pub(super) fn pending_for(facts: &dyn Facts, agent: &Party, now: crate::domain::time::Timestamp) -> Result<Vec<Link>> {
    Ok(facts
        .links_of(agent)?
        .into_iter()
        .filter(|link| link.to == *agent && link.state(now) == LinkState::Requested)
        .collect())
}

/// Asks for contact; the recipient's policy may consent at once.
pub(super) fn request(writing: &mut Writing<'_>, other: &Party, why: Option<&str>, ttl: Option<Span>) -> Result<Link> {
    let me = writing.actor.party();
    let existing = writing.tx.link(&me, other)?;
    let door = match other.agent().map(|name| writing.tx.agent(name)).transpose()?.flatten() {
        Some(agent) => Door {
            standing: actor::state(writing.ctx, &agent),
            policy: agent.policy,
            same_project: !matches!(me, Party::Elsewhere(..)),
        },
        // The other project has decided already; this is the copy.
        None => Door { standing: Standing::Active, policy: Policy::ContactsOnly, same_project: false },
    };
    let asked = contact::ask(existing.as_ref(), &me, door, writing.ctx.now);
    match (asked, existing) {
        (Asked::Refused(barrier), existing) => {
            let other = Party::try_from(recipients::qualified(writing, other.to_string()))?;
            Err(refused(&me, &other, barrier, existing.as_ref()))
        }
        (Asked::Standing | Asked::StillWaits, Some(link)) => Ok(link),
        (Asked::AcceptsTheirs, Some(link)) => complete(writing, &link, &me, false),
        (Asked::AcceptedByPolicy, _) => {
            let link = ask(writing, &me, other, why, ttl)?;
            complete(writing, &link, other, true)
        }
        _ => ask(writing, &me, other, why, ttl),
    }
}

/// This project's copy of a request that held mail made in the other one.
pub(super) fn copy_request(writing: &mut Writing<'_>, other: &Party) -> Result<()> {
    let me = writing.actor.party();
    let state = writing.tx.link(&me, other)?.map(|link| link.state(writing.ctx.now));
    if !matches!(state, Some(LinkState::Requested | LinkState::Accepted | LinkState::Blocked)) {
        ask(writing, &me, other, None, None)?;
    }
    Ok(())
}

fn refused(me: &Party, other: &Party, barrier: Barrier, link: Option<&Link>) -> Refusal {
    let own = link.is_some_and(|link| link.is_blocked_by(me));
    let message = match barrier {
        Barrier::Blocked if own => format!("you block {other}; lift it with --revoke first"),
        Barrier::Blocked => format!("{other} takes no contact from {me}"),
        closed => format!("{other} {}", closed.tell()),
    };
    let own_blocks = if own { vec![other.to_string()] } else { Vec::new() };
    Code::ContactBlocked.refuse(message).with("blocked", vec![other.to_string()]).with("own_blocks", own_blocks).with(
        "recipients",
        serde_json::json!([{"name": other.to_string(), "code": Code::ContactBlocked.as_str(), "reason": barrier.as_str()}]),
    )
}

fn ask(writing: &mut Writing<'_>, me: &Party, other: &Party, why: Option<&str>, ttl: Option<Span>) -> Result<Link> {
    let ttl = ttl.unwrap_or(LINK_TTL_DEFAULT);
    let texts: Vec<_> = why.map(|why| writing.text("why", why)).into_iter().collect();
    let what = Happened::LinkRequested {
        from: me.clone(),
        to: other.clone(),
        why: texts.first().map(crate::domain::event::Text::hash),
        ttl_ms: ttl.as_millis(),
        expires_at: writing.ctx.now.plus(ttl),
    };
    writing.append(what, texts)?;
    current(writing, me, other)
}

/// Accepts a request. What either side holds for the other is delivered by this very event, unless it is for somebody
/// whom no link opens: then it is given up, and its sender is told.
fn complete(writing: &mut Writing<'_>, link: &Link, by: &Party, by_policy: bool) -> Result<Link> {
    let (mut delivers, mut given_up) = (Vec::new(), Vec::new());
    // Its own request lapsed meanwhile: an accepted link is mutual, so nothing need wait any longer.
    for (sender, recipient) in [(&link.from, &link.to), (&link.to, &link.from)] {
        let held = writing.tx.held(sender, recipient)?;
        if held.is_empty() {
            continue;
        }
        match closed(writing, recipient)? {
            None => delivers.extend(held),
            Some(barrier) => given_up.extend(held.into_iter().map(|message| (message, sender, recipient, barrier))),
        }
    }
    let life = link.expires_at.since(link.requested_at);
    let what = Happened::LinkAccepted {
        link: link.id,
        by: by.clone(),
        by_policy,
        expires_at: writing.ctx.now.plus(life),
        delivers,
    };
    writing.append(what, Vec::new())?;
    for (message, sender, recipient, barrier) in given_up {
        post::give_up(writing, message, sender, recipient, GivenUp::Closed(barrier))?;
    }
    current(writing, &link.from, &link.to)
}

/// What keeps mail from somebody whatever the link says. Of a guest, its own project has said it; of anybody else there,
/// that project decides when it is told.
fn closed(writing: &Writing<'_>, recipient: &Party) -> Result<Option<Barrier>> {
    if *recipient == writing.actor.party() && matches!(writing.actor, Actor::Guest(_)) {
        return Ok(writing.guest_is_closed);
    }
    let agent = recipient.agent().map(|name| writing.tx.agent(name)).transpose()?.flatten();
    Ok(agent.and_then(|agent| routing::closed(actor::state(writing.ctx, &agent), agent.policy)))
}

fn accept(writing: &mut Writing<'_>, other: &Party) -> Result<Link> {
    let me = writing.actor.party();
    let link = existing(writing, &me, other)?;
    match link.state(writing.ctx.now) {
        LinkState::Accepted => Ok(link),
        LinkState::Requested if link.to == me => complete(writing, &link, &me, false),
        LinkState::Blocked if !link.is_blocked_by(&me) => Err(refused(&me, other, Barrier::Blocked, Some(&link))),
        _ => Err(not_found(format!("{other} has not asked {me} for contact"), other)),
    }
}

/// `me` blocks the other, by its own hand or by the human's.
fn block(writing: &mut Writing<'_>, me: &Party, other: &Party) -> Result<Link> {
    let existing = writing.tx.link(me, other)?;
    if let Some(link) = &existing
        && link.is_blocked_by(me)
    {
        return Ok(link.clone());
    }
    let link = existing.map(|link| link.id);
    writing.append(Happened::LinkBlocked { link, by: me.clone(), other: other.clone() }, Vec::new())?;
    give_up_between(writing, me, other, GivenUp::Blocked)?;
    current(writing, me, other)
}

/// What `me` decided ends the waiting of all held mail between the two.
fn give_up_between(writing: &mut Writing<'_>, me: &Party, other: &Party, why: fn(Side) -> GivenUp) -> Result<()> {
    for (sender, recipient, side) in [(other, me, Side::Recipient), (me, other, Side::Sender)] {
        for message in writing.tx.held(sender, recipient)? {
            post::give_up(writing, message, sender, recipient, why(side))?;
        }
    }
    Ok(())
}

/// Takes back one's own block, or the link.
fn revoke(writing: &mut Writing<'_>, other: &Party) -> Result<Link> {
    let me = writing.actor.party();
    let link = existing(writing, &me, other)?;
    let blocks = link.is_blocked_by(&me);
    if !blocks && link.decided == Decided::Revoked {
        return Ok(link);
    }
    writing.append(Happened::LinkRevoked { link: link.id, by: me.clone() }, Vec::new())?;
    give_up_between(writing, &me, other, GivenUp::Revoked)?;
    current(writing, &me, other)
}

fn existing(writing: &Writing<'_>, me: &Party, other: &Party) -> Result<Link> {
    writing.tx.link(me, other)?.ok_or_else(|| not_found(format!("there is no link between {me} and {other}"), other))
}

fn current(writing: &Writing<'_>, me: &Party, other: &Party) -> Result<Link> {
    writing.tx.link(me, other)?.ok_or_else(|| Code::Internal.refuse("a link that was just written is not there"))
}

fn not_found(message: String, other: &Party) -> Refusal {
    Code::LinkNotFound.refuse(message).with("name", other.to_string())
}

/// Somebody who waits for the other side's answer.
struct Asker {
    from: Party,
    to: Party,
    asked: LinkShape,
    told: Told<Outcome>,
    _announced: Box<dyn Guard>,
}

impl Asker {
    fn enter(ctx: &Ctx<'_>, asked: LinkShape, told: Told<Outcome>) -> Result<Self> {
        let (from, to) = (Party::try_from(asked.from.clone())?, Party::try_from(asked.to.clone())?);
        let announcement = wait::announcement(ctx, "link", from.clone(), vec![to.clone()], Vec::new());
        let (announced, _) = wait::enter(ctx, &announcement)?;
        Ok(Asker { from, to, asked, told, _announced: announced })
    }
}

impl Waiter for Asker {
    fn look(&mut self, ctx: &Ctx<'_>) -> Result<Look> {
        let (from, to) = (&self.from, &self.to);
        let link = ctx.store.read()?.link(from, to)?;
        let Some(link) = link.filter(|link| link.state(ctx.now) != LinkState::Requested) else {
            return Ok(Look::NotYet { again_at: Some(self.asked.expires_at) });
        };
        match link.state(ctx.now) {
            LinkState::Accepted => {
                let shape = LinkShape { why: None, ..LinkShape::of(&link, ctx.now) };
                // What was proposed was to wait for this.
                let outcome = Outcome { link: Some(shape), links: None };
                let told = Told { outcome, signals: self.told.signals.clone(), next: Vec::new() };
                Ok(Look::Ready(Done::new("link", told, Any::Link)))
            }
            LinkState::Blocked => Err(refused(from, to, Barrier::Blocked, Some(&link))),
            _ => Err(not_found(format!("the request to {to} ended without an answer"), to)),
        }
    }

    fn in_vain(&self, _: &Ctx<'_>, time: Span) -> Result<Done> {
        let (to, id) = (&self.to, self.asked.id);
        Err(Code::WaitTimeout
            .refuse(format!("{to} did not answer within {time}; the request #{id} still waits"))
            .with("name", to.to_string())
            .with("id", id))
    }
}
