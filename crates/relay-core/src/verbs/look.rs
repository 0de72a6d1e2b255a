//! `look`: every read, under one rule of who may see what.

mod asked;
mod day;
pub(super) mod events;
pub(super) mod filter;
mod line;
mod now;
mod past;
mod search;
mod status;
mod traffic;
mod tree;

use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::debt::DebtItem;
use super::prepare::{self, ThreadView};
use super::writing::{Told, signals_for};
use super::{Ctx, Done, Outcome as Any, contested, crossing, link, poll};
use crate::domain::agent::Agent;
use crate::domain::event::Number;
use crate::domain::message::Message;
use crate::domain::name::{Address, AgentName, Party, ProjectKey, ThreadId};
use crate::domain::nearest::{did_you_mean, nearest};
use crate::domain::pattern::Pattern;
use crate::domain::reservation::Reservation;
use crate::domain::time::Span;
use crate::domain::view::Viewer;
use crate::error::{Code, Kind, Refusal};
use crate::playbook as books;
use crate::playbook::{Setting, Step};
use crate::store::{Facts, NEWEST, Result};
use crate::wire::v1::{AgentShape, ClaimShape, LinkShape, MessageShape, ThreadShape};

pub use day::Day;
pub use events::{Events, Layout};
pub use filter::EventFilter;
pub use line::{HeldShape, Line};
pub use now::{AckShape, Busy, Now, WaitShape};
pub use search::Search;
pub use status::Status;
pub use traffic::{Pair, Traffic};
pub use tree::{Branch, Drawn, Leaf, draw};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Input {
    /// The noun, then what it needs: `["message", "7"]`, `["search", "two", "words"]`.
    pub what: Vec<String>,
    /// Of events and reservations: only those with a higher number.
    pub after: Option<Number>,
    /// Of what comes newest first, and of events: only what came before this number, the last of it.
    pub before: Option<Number>,
    /// Of reservations: as they were held after this event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Number>,
    pub limit: Option<usize>,
    /// Of the list of threads: only those whose id begins so.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub beginning: String,
    /// Of events: from the end of the history backwards, the newest first.
    pub newest: bool,
    #[serde(skip)]
    pub layout: Layout,
    /// Of the status: also what is changed in the work trees.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trees: bool,
    /// Of the status: everything that a person wants to see at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wide: bool,
    /// Of events from the end: a page that is not full after this time ends there, and says where to go on.
    #[serde(skip)]
    pub patience: Option<Span>,
    #[serde(flatten)]
    pub filter: EventFilter,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Message {
        message: MessageShape,
    },
    Thread(Box<ThreadView>),
    Threads {
        threads: Vec<ThreadShape>,
        /// There are older ones.
        #[serde(skip_serializing_if = "is_false")]
        more: bool,
        /// They are found before this number.
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<Number>,
    },
    Agents {
        agents: Vec<AgentShape>,
    },
    Reservations {
        reservations: Vec<ClaimShape>,
        /// Those of them that share a path with somebody else's, where one of the two is exclusive.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        contested: Vec<Number>,
        total: usize,
        /// Later ones are found after this number.
        #[serde(skip_serializing_if = "Option::is_none")]
        after: Option<Number>,
    },
    Contacts {
        links: Vec<LinkShape>,
        /// Older ones are found before this number.
        #[serde(skip_serializing_if = "Option::is_none")]
        before: Option<Number>,
    },
    Outbox {
        outbox: Vec<MessageShape>,
    },
    Events(Box<Events>),
    Line(Box<Line>),
    Search(Box<Search>),
    Traffic(Box<Traffic>),
    Day(Box<Day>),
    Status(Box<Status>),
    Debt {
        debt: Vec<DebtItem>,
    },
    Playbook(Box<PlaybookShape>),
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A class and the way out of it, with the details' names where no error gave their values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlaybookShape {
    pub code: Code,
    pub kind: Kind,
    pub exit_status: u8,
    pub retryable: bool,
    pub symptom: String,
    pub playbook: Vec<Step>,
}

/// What is shown newest first, a page at a time.
const PAGED: [&str; 4] = ["events", "thread", "search", "contacts"];

/// Among so many threads those are looked for whose id is near.
const RECENT: usize = 1_000;

impl Input {
    /// Such a look needs no project.
    pub fn is_about_a_playbook(&self) -> bool {
        self.is_about("playbook")
    }

    pub fn is_about_status(&self) -> bool {
        self.is_about("status")
    }

    fn is_about(&self, wanted: &str) -> bool {
        self.what.first().is_some_and(|noun| noun == wanted)
    }
}

/// One read under way.
pub(super) struct Looking<'a> {
    pub ctx: &'a Ctx<'a>,
    pub facts: &'a dyn Facts,
    pub viewer: Viewer,
    pub limit: usize,
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    let limit = input.limit.unwrap_or(ctx.limits.page);
    if !(1..=ctx.limits.page).contains(&limit) {
        return Err(Code::InputInvalid.refuse(format!("--limit is 1 to {}, not {limit}", ctx.limits.page)));
    }
    let (noun, rest) = input.what.split_first().ok_or_else(|| unknown_noun(""))?;
    if input.is_about_a_playbook() {
        return playbook(input);
    }
    let is_known = match noun.as_str() {
        "events" => true,
        "reservations" => EventFilter { by: None, ..input.filter.clone() } == EventFilter::default(),
        _ => input.filter == EventFilter::default(),
    };
    if !is_known {
        let text =
            format!("events can be filtered, and claims by their holder (--by), and `look {noun}` shows no events");
        return Err(Code::InputInvalid.refuse(text));
    }
    if input.before.is_some() && !PAGED.contains(&noun.as_str()) {
        let next = if noun == "reservations" { "; --after turns those of claims" } else { "" };
        let paged = PAGED.join(", ");
        return Err(Code::InputInvalid
            .refuse(format!("`look {noun}` has no pages that --before could turn{next}; it is for {paged}")));
    }
    let mut facts = ctx.store.read()?;
    let (viewer, actor) = actor::viewer(ctx, &*facts)?;
    if noun == "status" && actor.is_some() {
        // It counts the caller's mail, and the count is that of `poll`.
        drop(facts);
        poll::settle(ctx)?;
        facts = ctx.store.read()?;
    }
    let looking = Looking { ctx, facts: &*facts, viewer, limit };
    let outcome = looking.at(noun, rest, input, actor.as_ref())?;
    let mut signals = match &actor {
        Some(actor) => signals_for(ctx, &*facts, actor)?,
        None => Vec::new(),
    };
    if let Outcome::Status(status) = &outcome {
        signals.extend(status.archive.signal(&*facts, ctx.now)?);
    }
    if let Some(agent) = actor.as_ref().and_then(Actor::agent) {
        ctx.store.presence().touch(&agent.name, ctx.now);
    }
    Ok(Done::new("look", Told { outcome, signals, next: Vec::new() }, Any::Look))
}

/// A playbook is a text of this program: reading it needs no project.
pub fn playbook(input: &Input) -> Result<Done> {
    let outcome = playbook_of(one("playbook", input.what.get(1..).unwrap_or_default())?)?;
    Ok(Done::new("look", Told { outcome, signals: Vec::new(), next: Vec::new() }, Any::Look))
}

fn unknown_noun(noun: &str) -> Refusal {
    const NOUNS: &str = "message N, thread [T], agents, agent NAME, reservations [PATH], contacts, outbox, events, line PATH:N, search WORDS, status, debt, traffic, day DATE, playbook CODE";
    Code::InputInvalid.refuse(format!("there is nothing called {noun:?} to look at; there is {NOUNS}"))
}

/// The one argument of a noun.
fn one<'a>(noun: &str, rest: &'a [String]) -> Result<&'a str> {
    match rest {
        [argument] => Ok(argument),
        _ => Err(Code::InputInvalid.refuse(format!("`look {noun}` takes one argument, not {}", rest.len()))),
    }
}

pub fn parse_number(text: &str) -> Result<Number> {
    text.strip_prefix('#')
        .unwrap_or(text)
        .parse()
        .map_err(|_| Code::InputInvalid.refuse(format!("{text:?} is not a number; ids look like 128 or #128")))
}

impl Looking<'_> {
    fn at(&self, noun: &str, rest: &[String], input: &Input, actor: Option<&Actor>) -> Result<Outcome> {
        let takes_none = || {
            if rest.is_empty() {
                Ok(())
            } else {
                Err(Code::InputInvalid.refuse(format!("`look {noun}` takes no argument")))
            }
        };
        match noun {
            "message" => self.message(parse_number(one(noun, rest)?)?),
            "thread" if rest.is_empty() => self.threads(&input.beginning, input.before),
            "thread" => self.thread(&ThreadId::parse(one(noun, rest)?)?, input.before),
            "agents" => takes_none().and_then(|()| self.agents()),
            "agent" => self.agent(one(noun, rest)?),
            "reservations" if rest.is_empty() => self.reservations(None, input),
            "reservations" => self.reservations(Some(one(noun, rest)?), input),
            "contacts" => takes_none().and_then(|()| self.contacts(&own(actor, "has contacts")?, input.before)),
            "outbox" => takes_none().and_then(|()| self.outbox(&own(actor, "has an outbox")?)),
            "events" => takes_none().and_then(|()| events::look(self, input)),
            "line" => line::look(self, one(noun, rest)?),
            "search" => search::look(self, rest, input.before),
            "traffic" => takes_none().and_then(|()| traffic::look(self)),
            "day" => day::look(self, one(noun, rest)?),
            "status" => takes_none().and_then(|()| status::status(self, actor, input)),
            "debt" => takes_none().and_then(|()| status::debt(self).map(|debt| Outcome::Debt { debt })),
            _ => Err(unknown_noun(noun)),
        }
    }

    pub fn shape(&self, message: &Message, with_body: bool) -> MessageShape {
        MessageShape::of(message, &self.viewer, with_body)
    }

    fn message(&self, id: Number) -> Result<Outcome> {
        let found = self.facts.message(id)?.filter(|message| self.viewer.sees(message));
        let message = found.ok_or_else(|| {
            Code::MessageNotFound.refuse(format!("there is no message #{id} for you here")).with("id", id)
        })?;
        Ok(Outcome::Message { message: self.shape(&message, true) })
    }

    fn thread(&self, id: &ThreadId, before: Option<Number>) -> Result<Outcome> {
        match prepare::thread_view(self.ctx, self.facts, id, &self.viewer, before, self.limit)? {
            Some(view) => Ok(Outcome::Thread(Box::new(view))),
            None => Err(self.thread_not_found(id)?),
        }
    }

    /// That nobody here sees a thread of that id, with those that were probably meant.
    pub fn thread_not_found(&self, id: &ThreadId) -> Result<Refusal> {
        let known = self.facts.threads("", NEWEST, RECENT)?;
        let near = nearest(id.as_str(), known.iter().map(|thread| thread.id.as_str()));
        let mut seen = Vec::new();
        for near in near {
            if self.thread_view(&ThreadId::parse(&near)?, 0)?.is_some() {
                seen.push(near);
            }
        }
        let refusal = Code::ThreadNotFound.refuse(format!("there is no thread `{id}`{}", did_you_mean(&seen)));
        Ok(refusal.with("thread", id.as_str()).with("nearest", serde_json::json!(seen)))
    }

    /// What the viewer sees of a thread, with its last messages.
    pub fn thread_view(&self, id: &ThreadId, limit: usize) -> Result<Option<ThreadView>> {
        prepare::thread_view(self.ctx, self.facts, id, &self.viewer, None, limit)
    }

    fn threads(&self, beginning: &str, before: Option<Number>) -> Result<Outcome> {
        let mut found = self.facts.threads(beginning, before.unwrap_or(NEWEST), self.limit + 1)?;
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        let before = found.last().map(|thread| thread.last_number).filter(|_| more);
        let mut threads = Vec::new();
        for thread in found {
            threads.extend(prepare::thread_shape(self.ctx, self.facts, thread, &self.viewer)?);
        }
        Ok(Outcome::Threads { threads, more, before })
    }

    fn agents(&self) -> Result<Outcome> {
        let agents = self.facts.agents()?.iter().map(|agent| agent_shape(self.ctx, agent)).collect();
        Ok(Outcome::Agents { agents })
    }

    fn agent(&self, text: &str) -> Result<Outcome> {
        let address = Address::parse(text);
        if let Some(project) = crossing::other_project(self.ctx, &address)? {
            return agent_elsewhere(self.ctx, &address, &project);
        }
        Ok(Outcome::Agents { agents: vec![agent_shape(self.ctx, &self.known(&address.name)?)] })
    }

    fn known(&self, name: &str) -> Result<Agent> {
        match self.facts.agent(&AgentName::parse(name)?)? {
            Some(agent) => Ok(agent),
            None => Err(actor::unknown(self.facts, Code::RecipientNotFound, name)?),
        }
    }

    fn reservations(&self, path: Option<&str>, input: &Input) -> Result<Outcome> {
        let holder = input.filter.by.as_deref().map(|by| self.known(by)).transpose()?.map(|agent| agent.name);
        let (mut held, then) = match (path, input.at, &holder) {
            (_, Some(at), _) => past::claims(self, at, path).map(|(held, contested)| (held, Some(contested)))?,
            (Some(path), None, _) => (self.live(&self.holders_of(path)?), None),
            (None, None, Some(holder)) => (self.live(&self.facts.claims_of(holder)?), None),
            (None, None, None) => (self.live(&self.facts.claims()?), None),
        };
        held.retain(|claim| holder.as_ref().is_none_or(|holder| claim.holder == holder.as_str()));
        let after = input.after.unwrap_or(0);
        let total = held.len();
        let mut reservations: Vec<ClaimShape> = held.into_iter().filter(|claim| claim.id > after).collect();
        let more = reservations.len() > self.limit;
        reservations.truncate(self.limit);
        let contested = match then {
            Some(then) => reservations.iter().map(|claim| claim.id).filter(|id| then.contains(id)).collect(),
            None => contested::of(self.facts, &reservations, self.ctx.now)?,
        };
        let after = reservations.last().map(|claim| claim.id).filter(|_| more);
        Ok(Outcome::Reservations { reservations, contested, total, after })
    }

    fn live(&self, claims: &[Reservation]) -> Vec<ClaimShape> {
        claims.iter().filter(|claim| claim.is_live(self.ctx.now)).map(ClaimShape::from).collect()
    }

    /// The claims that share a path with this one.
    fn holders_of(&self, path: &str) -> Result<Vec<Reservation>> {
        let roots = self.ctx.repository.roots();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let case = self.ctx.repository.case();
        let pattern = super::wanted::parse(self.ctx.limits, path, &roots)?;
        let compiled = pattern.compile(case);
        let mut holders = Vec::new();
        for claim in self.facts.claims_near(&[&pattern.prefix(case)])? {
            if Pattern::from_canonical(&claim.pattern)?.compile(case).overlap(&compiled).is_some() {
                holders.push(claim);
            }
        }
        Ok(holders)
    }

    /// An agent sees its own; the human, who has none, all of the project's.
    fn contacts(&self, me: &Party, before: Option<Number>) -> Result<Outcome> {
        let before = before.unwrap_or(NEWEST);
        if *me != Party::Human {
            let mut links = link::links(self.ctx, self.facts, me)?;
            links.retain(|link| link.id < before);
            return Ok(Outcome::Contacts { links, before: None });
        }
        let mut found = self.facts.links(before, self.limit + 1)?;
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        let before = found.last().map(|link| link.id).filter(|_| more);
        let links = found.iter().map(|link| LinkShape::of(link, self.ctx.now)).collect();
        Ok(Outcome::Contacts { links, before })
    }

    fn outbox(&self, me: &Party) -> Result<Outcome> {
        let outbox = self.facts.outbox(me, self.limit)?.iter().map(|message| self.shape(message, false)).collect();
        Ok(Outcome::Outbox { outbox })
    }
}

fn agent_shape(ctx: &Ctx<'_>, agent: &Agent) -> AgentShape {
    let seen_at = actor::seen_at(ctx, agent);
    AgentShape::of(agent, agent.state(seen_at, ctx.now), actor::alive(ctx, agent), seen_at)
}

/// An agent of another project, as guests see it.
fn agent_elsewhere(ctx: &Ctx<'_>, address: &Address, project: &ProjectKey) -> Result<Outcome> {
    crossing::as_guest(ctx, project, &ctx.key.text, |there| {
        let facts = there.store.read()?;
        let name = crossing::find_agent(&*facts, address, project)?;
        let agent = facts.agent(&name)?.map(|agent| agent_shape(there, &agent).for_guests(project));
        Ok(Outcome::Agents { agents: agent.into_iter().collect() })
    })
}

/// The party whose own things are looked at.
fn own(actor: Option<&Actor>, what: &str) -> Result<Party> {
    match actor {
        Some(actor) => Ok(actor.party()),
        None => {
            Err(Code::AgentNotRegistered.refuse(format!("only an agent {what}: name one with --agent or RELAY_AGENT")))
        }
    }
}

fn playbook_of(text: &str) -> Result<Outcome> {
    let code = Code::parse(text).ok_or_else(|| {
        let near = nearest(text, Code::ALL.iter().map(|code| code.as_str()));
        Code::InputInvalid.refuse(format!("{text:?} is no error class{}", did_you_mean(&near)))
    })?;
    let playbook = books::playbook(code);
    let steps = books::outline(&playbook, code, &Setting::default());
    Ok(Outcome::Playbook(Box::new(PlaybookShape {
        code,
        kind: code.kind(),
        exit_status: code.kind().exit_status(),
        retryable: code.is_retryable(),
        symptom: playbook.symptom.clone(),
        playbook: steps,
    })))
}
