//! The verbs: a file each, with its input, its outcome and its story. A story reads, decides by the pure rules of the
//! domain, appends events and commits.

mod actor;
mod broad;
mod clash;
mod contested;
mod crossing;
mod post;
mod recipients;
mod takeover;
mod wanted;
mod writing;

pub mod ack;
pub mod check;
pub mod debt;
pub mod export;
pub mod hook;
pub mod lag;
pub mod leave;
pub mod link;
pub mod look;
pub mod moved;
pub mod policy;
pub mod poll;
pub mod prepare;
pub mod recover;
pub mod redact;
pub mod release;
pub mod reserve;
pub mod send;
pub mod standing;
pub mod start;
pub mod wait;

use serde::{Deserialize, Serialize};

use crate::domain::agent::Agent;
use crate::domain::limits::{Limits, SESSION_BYTES, WHY_BYTES};
use crate::domain::name::{AgentName, HUMAN, ProjectKey};
use crate::domain::pattern::Pattern;
use crate::domain::shell;
use crate::domain::time::{Span, Timestamp};
use crate::error::Code;
use crate::installation::Installation;
use crate::store::{Bus, Clock, Random, Repository, Result, Store};
use crate::wire::v1::Signal;

pub use actor::Actor;
pub use poll::Afterwards;
pub use wait::Waiting;

/// Everything a verb may use.
pub struct Ctx<'a> {
    pub store: &'a dyn Store,
    pub bus: &'a dyn Bus,
    pub repository: &'a dyn Repository,
    pub installation: &'a dyn Installation,
    pub clock: &'a dyn Clock,
    pub random: &'a dyn Random,
    pub limits: &'a Limits,
    pub project: ProjectKey,
    pub caller: Caller,
    pub key: Key,
    /// Read once per request.
    pub now: Timestamp,
    pub pid: u32,
}

/// Who calls, before anybody looked whether that is true.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// What reached the bus; an agent belongs to the one that registered it.
    pub credential: String,
    /// It reached a server with a credential of its own, and is not the owner of the stores.
    pub separate: bool,
    /// `--agent`.
    pub named: Option<AgentName>,
    /// `RELAY_AGENT`.
    pub variable: Option<AgentName>,
    /// The harness's session.
    pub session: Option<String>,
    /// The caller holds the human's credential and asked to act as the human.
    pub human: bool,
}

impl Caller {
    /// An agent of this credential's: as it is named, or else as `RELAY_AGENT` says.
    pub fn said(
        credential: String,
        named: Option<&str>,
        variable: Option<&str>,
        session: Option<String>,
    ) -> Result<Self> {
        let named = named.map(AgentName::parse).transpose()?;
        // A name that is said wins, so a bad variable does not matter then.
        let variable = variable.filter(|_| named.is_none());
        if variable == Some(HUMAN) {
            let text = "RELAY_AGENT, or over HTTP the header Relay-Agent, is `human`; the human is named on the command line, \
                        with `--agent human`";
            return Err(Code::AgentNameInvalid.refuse(text));
        }
        let variable = variable.map(AgentName::parse).transpose()?;
        Ok(Caller { credential, named, variable, session, ..Caller::default() })
    }

    /// The human, who has shown the credential for that.
    pub fn human(credential: String) -> Self {
        Caller { credential, human: true, ..Caller::default() }
    }
}

/// The idempotency key of a request.
#[derive(Clone, Debug)]
pub struct Key {
    pub text: String,
    /// Chosen by the caller, who may come back with it.
    pub chosen: bool,
}

impl Key {
    /// The one that the caller chose, or else one that nobody has used.
    pub fn said(text: Option<&str>, random: &dyn Random) -> Result<Self> {
        match text {
            Some(text) if text.is_empty() || text.len() > 200 || text.chars().any(char::is_control) => {
                Err(Code::InputInvalid
                    .refuse("an idempotency key is 1 to 200 bytes of text without control characters"))
            }
            Some(text) => Ok(Key { text: text.to_owned(), chosen: true }),
            None => Ok(Key { text: crate::domain::event::hex(&random.bytes()), chosen: false }),
        }
    }
}

/// A request as every front makes it, and as a failed one is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case")]
pub enum Request {
    Start(start::Input),
    Prepare(prepare::Input),
    Reserve(reserve::Input),
    Release(release::Input),
    Link(link::Input),
    Send(send::Input),
    Poll(poll::Input),
    Ack(ack::Input),
    Look(look::Input),
    Recover(recover::Input),
    Policy(policy::Input),
    Standing(standing::Input),
    Leave(leave::Input),
    Redact(redact::Input),
    Check(check::Input),
    Hook(hook::Input),
}

impl Request {
    pub fn verb(&self) -> &'static str {
        match self {
            Request::Start(_) => "start",
            Request::Prepare(_) => "prepare",
            Request::Reserve(_) => "reserve",
            Request::Release(_) => "release",
            Request::Link(_) => "link",
            Request::Send(_) => "send",
            Request::Poll(_) => "poll",
            Request::Ack(_) => "ack",
            Request::Look(_) => "look",
            Request::Recover(_) => "recover",
            Request::Policy(_) => "policy",
            Request::Standing(input) => input.action.verb(),
            Request::Leave(_) => "leave",
            Request::Redact(_) => "redact",
            Request::Check(_) => "check",
            Request::Hook(_) => "hook",
        }
    }

    /// Whether a first request of this kind makes the project's store.
    pub fn begins_a_project(&self) -> bool {
        match self {
            // Somebody's subagent finds the project made by its parent.
            Request::Start(input) => input.parent.is_none(),
            other => matches!(other, Request::Prepare(_)),
        }
    }

    /// The patterns that it claims.
    fn claims(&self) -> &[String] {
        match self {
            Request::Reserve(input) => &input.patterns,
            Request::Start(input) => &input.path,
            Request::Prepare(input) => &input.start.path,
            _ => &[],
        }
    }

    /// Whether the repository has something to say about it.
    pub fn looks_ahead(&self) -> bool {
        !self.claims().is_empty()
    }

    /// How long it waits for something to happen, where it does.
    pub fn waits_for(&self) -> Option<Span> {
        match self {
            Request::Reserve(input) => input.wait,
            Request::Link(input) => input.wait,
            Request::Poll(input) => input.wait,
            _ => None,
        }
    }

    /// From a playbook's step: the verb and its arguments.
    pub fn from_tool(tool: &str, args: &serde_json::Map<String, serde_json::Value>) -> Result<Self> {
        let mut tagged = args.clone();
        tagged.insert("verb".to_owned(), tool.into());
        serde_json::from_value(tagged.into())
            .map_err(|fault| Code::InputInvalid.refuse(format!("{tool} does not take these arguments: {fault}")))
    }
}

/// What can be said against a request before its project is opened: a first request that is refused leaves no store
/// behind.
pub fn check(request: &Request, caller: &Caller, limits: &Limits, repository: &dyn Repository) -> Result<()> {
    check_session(caller.session.as_deref())?;
    match request {
        Request::Start(input) => start::check(caller, limits, repository, input),
        Request::Prepare(input) => prepare::check(caller, limits, repository, input),
        _ => Ok(()),
    }
}

/// Reads of the repository what a claim will want to know of it, so that it is known when the gate is taken.
pub fn look_ahead(request: &Request, repository: &dyn Repository) {
    if !request.looks_ahead() {
        return;
    }
    let roots = repository.roots();
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    for pattern in request.claims().iter().filter_map(|text| Pattern::parse(text, &roots).ok()) {
        broad::breadth(repository, &pattern);
    }
}

/// The outcome of each verb, serialised as the `result` of its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    Start(Box<start::Outcome>),
    Prepare(Box<prepare::Outcome>),
    Reserve(reserve::Outcome),
    Release(release::Outcome),
    Link(link::Outcome),
    Send(send::Outcome),
    Poll(poll::Outcome),
    Ack(ack::Outcome),
    Look(look::Outcome),
    Recover(recover::Outcome),
    Policy(policy::Outcome),
    Standing(standing::Outcome),
    Leave(leave::Outcome),
    Redact(redact::Outcome),
    Check(check::Outcome),
    Hook(hook::Outcome),
}

/// A verb that went well.
#[derive(Debug)]
pub struct Done {
    pub verb: &'static str,
    pub outcome: Outcome,
    pub signals: Vec<Signal>,
    pub next: Vec<String>,
    /// What the front commits after it has written the answer out.
    pub afterwards: Option<Afterwards>,
}

impl Done {
    fn new<T>(verb: &'static str, told: writing::Told<T>, wrap: impl FnOnce(T) -> Outcome) -> Self {
        Done { verb, outcome: wrap(told.outcome), signals: told.signals, next: told.next, afterwards: None }
    }

    /// What is proposed next is run from where this was said: it repeats what that said of project and agent.
    pub fn repeat(&mut self, project: Option<&str>, agent: Option<&str>) {
        for (flag, said) in [("--project", project), ("--agent", agent)] {
            let Some(said) = said else { continue };
            let says_it = format!(" {flag} ");
            for line in self.next.iter_mut().filter(|line| line.starts_with("relay ") && !line.contains(&says_it)) {
                *line = format!("{line} {}", shell::line(&[flag, said]));
            }
        }
    }
}

/// What a request comes to at first: an answer, or a wait for one.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is handed on at once")]
pub enum Begun {
    Done(Done),
    Waits(Waiting),
}

/// Begins any request; every front comes through here. One that has to wait is handed back instead of blocking: whoever
/// takes it watches the store, and then looks at once, whenever something was committed, and when its patience is over.
pub fn begin(ctx: &Ctx<'_>, request: &Request) -> Result<Begun> {
    let begun = tell(ctx, request);
    crossing::let_go(ctx);
    begun
}

fn tell(ctx: &Ctx<'_>, request: &Request) -> Result<Begun> {
    let done = match request {
        Request::Reserve(input) => return reserve::begin(ctx, input),
        Request::Link(input) => return link::begin(ctx, input),
        Request::Poll(input) => return poll::begin(ctx, input),
        Request::Recover(input) => return recover::begin(ctx, input),
        Request::Start(input) => start::run(ctx, input),
        Request::Prepare(input) => prepare::run(ctx, input),
        Request::Release(input) => release::run(ctx, input),
        Request::Send(input) => send::run(ctx, input),
        Request::Ack(input) => ack::run(ctx, input),
        Request::Look(input) => look::run(ctx, input),
        Request::Policy(input) => policy::run(ctx, input),
        Request::Standing(input) => standing::run(ctx, input),
        Request::Leave(input) => leave::run(ctx, input),
        Request::Redact(input) => redact::run(ctx, input),
        Request::Check(input) => check::run(ctx, input),
        Request::Hook(input) => hook::run(ctx, input),
    };
    done.map(Begun::Done)
}

/// Runs any request to its end, blocking while it waits.
pub fn run(ctx: &Ctx<'_>, request: &Request) -> Result<Done> {
    match begin(ctx, request)? {
        Begun::Done(done) => Ok(done),
        Begun::Waits(waiting) => waiting.finish(ctx),
    }
}

/// A reason is a sentence, where one is given.
fn check_why(why: Option<&str>) -> Result<()> {
    if why.is_some_and(|why| why.trim().is_empty() || why.len() > WHY_BYTES) {
        return Err(Code::InputInvalid.refuse(format!("a reason why is a sentence of 1 to {WHY_BYTES} bytes")));
    }
    Ok(())
}

/// A session is the harness's word for it, whoever brings it; a start writes it into the history.
fn check_session(session: Option<&str>) -> Result<()> {
    let is_word = |session: &str| {
        !session.trim().is_empty() && session.len() <= SESSION_BYTES && !session.chars().any(char::is_control)
    };
    if session.is_none_or(is_word) {
        return Ok(());
    }
    let text = format!("--session, or the harness's, is 1 to {SESSION_BYTES} bytes of text without control characters");
    Err(Code::InputInvalid.refuse(text))
}

/// The party that a call speaks for, for fronts that keep a process running in its name.
pub fn acting_party(ctx: &Ctx<'_>, facts: &dyn crate::store::Facts) -> Result<crate::domain::name::Party> {
    actor::acting(ctx, facts).map(|actor| actor.party())
}

impl Ctx<'_> {
    /// Whether the credential behind this call is the one that registered the agent.
    pub(crate) fn owns(&self, agent: &Agent) -> bool {
        agent.credential == self.caller.credential
    }

    /// The same caller with a fresh look at the clock and another key: for the steps of a playbook.
    pub(crate) fn step(&self, key: &str) -> Ctx<'_> {
        self.later(Key { text: key.to_owned(), chosen: true })
    }

    /// The same request again, later: the same key and a fresh look at the clock.
    pub(crate) fn step_with_own_key(&self) -> Ctx<'_> {
        self.later(self.key.clone())
    }

    /// The same caller with a fresh look at the clock, for the request of this key.
    fn later(&self, key: Key) -> Ctx<'_> {
        Ctx {
            caller: self.caller.clone(),
            project: self.project.clone(),
            key,
            now: self.clock.now(),
            store: self.store,
            bus: self.bus,
            repository: self.repository,
            installation: self.installation,
            clock: self.clock,
            random: self.random,
            limits: self.limits,
            pid: self.pid,
        }
    }
}
