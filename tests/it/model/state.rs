//! The model: what the bus is, in plain lists. It is written from the design and knows no store, no index and no
//! projection; every question is answered by looking at everything.

use std::collections::{BTreeMap, BTreeSet};

use relay_core::domain::agent::Policy;
use relay_core::domain::delivery::Line;
use relay_core::domain::time::Timestamp;
use relay_core::verbs::Request;
use serde_json::Value;

use super::paths;
use super::recovery::Failed;

/// An agent's name, `human` or `relay`.
pub type Who = &'static str;
pub type Number = u64;
/// Milliseconds.
pub type Time = i64;

pub const AGENTS: [Who; 4] = ["Ann", "Bob", "Cyd", "Dee"];
pub const HUMAN: Who = "human";
pub const RELAY: Who = "relay";

pub const MINUTE: Time = 60_000;
pub const HOUR: Time = 60 * MINUTE;
pub const DAY: Time = 24 * HOUR;

/// Why a request is refused: the class and, for `CONTACT_REQUIRED`, whom to ask and whether asking is enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub code: &'static str,
    pub ask: Vec<Who>,
    pub must_wait: bool,
}

impl From<&'static str> for Refused {
    fn from(code: &'static str) -> Self {
        Refused { code, ask: Vec::new(), must_wait: false }
    }
}

pub type Outcome<T> = Result<T, Refused>;

/// One request by one agent.
#[derive(Clone, Debug)]
pub struct Call {
    pub who: Who,
    pub key: Option<String>,
    pub request: Request,
}

/// What the last step should have come to.
#[derive(Clone, Debug)]
pub struct Expected {
    /// None when only time went by.
    pub call: Option<Call>,
    pub answer: Result<Value, &'static str>,
    pub tip_before: Number,
    /// The kinds of the events that it appended, in order.
    pub kinds: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Active,
    Suspended,
    Retired,
}

#[derive(Clone, Debug)]
pub struct Agent {
    pub name: Who,
    pub standing: Standing,
    pub policy: Policy,
    pub session: Option<String>,
    pub parent: Option<Who>,
    /// The thread it prepared last.
    pub thread: Option<String>,
    pub seen: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    Requested,
    Accepted,
    Revoked,
}

#[derive(Clone, Debug)]
pub struct Link {
    pub id: Number,
    pub from: Who,
    pub to: Who,
    pub decided: Decided,
    pub blockers: BTreeSet<Who>,
    pub asked_at: Time,
    pub expires: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    Requested,
    Accepted,
    Blocked,
    Revoked,
    Lapsed,
}

#[derive(Clone, Debug)]
pub struct Thread {
    /// As it was first written.
    pub id: String,
    pub members: BTreeSet<Who>,
    /// The message that set its subject.
    pub first: Option<Number>,
    pub messages: u64,
    pub done: bool,
}

#[derive(Clone, Debug)]
pub struct Message {
    pub id: Number,
    /// The key of its thread.
    pub thread: String,
    pub from: Who,
    pub urgent: bool,
    pub ack_required: bool,
    pub sent_at: Time,
    pub copies: Vec<Copy>,
}

/// One recipient's copy.
#[derive(Clone, Debug)]
pub struct Copy {
    pub to: Who,
    pub line: Line,
    /// The event that delivered it; none while it is held.
    pub by: Option<Number>,
    pub lapsed: bool,
    pub surfaced: Option<Time>,
    pub read: Option<Time>,
    pub acked: Option<Time>,
}

#[derive(Clone, Debug)]
pub struct Claim {
    pub id: Number,
    pub holder: Who,
    pub pattern: String,
    pub exclusive: bool,
    pub reason: Option<String>,
    pub ttl: Time,
    pub first: Time,
    pub expires: Time,
    pub generation: u64,
    pub released: bool,
}

#[derive(Clone, Debug)]
pub struct Model {
    pub now: Time,
    pub tip: Number,
    pub kinds: Vec<&'static str>,
    pub agents: Vec<Agent>,
    /// Whom each session speaks for when nobody is named.
    pub sessions: BTreeMap<String, Who>,
    pub links: Vec<Link>,
    pub threads: BTreeMap<String, Thread>,
    pub messages: Vec<Message>,
    pub claims: Vec<Claim>,
    /// What each side knows of a pair of claims: (side, mine, theirs).
    pub told: BTreeMap<(Who, Number, Number), String>,
    pub answers: BTreeMap<(Who, String), (Request, Value)>,
    /// What was refused last.
    pub failed: Option<Failed>,
    pub last: Option<Expected>,
}

impl Model {
    /// A project that was just opened: that is its first event.
    pub fn new(now: Time) -> Self {
        Model {
            now,
            tip: 1,
            kinds: Vec::new(),
            agents: Vec::new(),
            sessions: BTreeMap::new(),
            links: Vec::new(),
            threads: BTreeMap::new(),
            messages: Vec::new(),
            claims: Vec::new(),
            told: BTreeMap::new(),
            answers: BTreeMap::new(),
            failed: None,
            last: None,
        }
    }

    /// One event; an agent that acts is seen.
    pub fn event(&mut self, kind: &'static str, actor: Who) -> Number {
        self.tip += 1;
        self.kinds.push(kind);
        self.touch(actor);
        self.tip
    }

    pub fn touch(&mut self, who: Who) {
        let now = self.now;
        if let Some(agent) = self.agents.iter_mut().find(|agent| agent.name == who) {
            agent.seen = now;
        }
    }

    pub fn agent(&self, name: &str) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.name.eq_ignore_ascii_case(name))
    }

    pub fn agent_mut(&mut self, name: Who) -> &mut Agent {
        self.agents.iter_mut().find(|agent| agent.name == name).unwrap()
    }

    /// Whoever was not seen for a week has retired by itself.
    pub fn standing(&self, agent: &Agent) -> Standing {
        match agent.standing {
            Standing::Active if self.now - agent.seen > 7 * DAY => Standing::Retired,
            standing => standing,
        }
    }

    pub fn is_alive(&self, name: &str) -> bool {
        self.agent(name).is_some_and(|agent| self.now - agent.seen <= 10 * MINUTE)
    }

    pub fn link(&self, one: Who, other: Who) -> Option<&Link> {
        let joins = |link: &&Link| (link.from, link.to) == (one, other) || (link.from, link.to) == (other, one);
        self.links.iter().filter(joins).max_by_key(|link| link.id)
    }

    pub fn link_state(&self, link: &Link) -> LinkState {
        match link.decided {
            _ if !link.blockers.is_empty() => LinkState::Blocked,
            Decided::Revoked => LinkState::Revoked,
            _ if link.expires <= self.now => LinkState::Lapsed,
            Decided::Requested => LinkState::Requested,
            Decided::Accepted => LinkState::Accepted,
        }
    }

    pub fn message(&self, id: Number) -> Option<&Message> {
        self.messages.iter().find(|message| message.id == id)
    }

    /// Whether an agent may read a message: it wrote it, it got it, or somebody stands in the open.
    pub fn sees(&self, who: Who, message: &Message) -> bool {
        let shows = |copy: &Copy| copy.line != Line::Bcc || copy.to == who && copy.by.is_some();
        message.from == who || message.copies.iter().any(shows)
    }

    /// Delivered copies of one agent in the order of delivery: (delivering event, message, copy).
    pub fn inbox(&self, who: Who) -> Vec<(Number, &Message, &Copy)> {
        let mut inbox: Vec<(Number, &Message, &Copy)> = self
            .messages
            .iter()
            .flat_map(|message| message.copies.iter().map(move |copy| (message, copy)))
            .filter_map(|(message, copy)| Some((copy.by.filter(|_| copy.to == who)?, message, copy)))
            .collect();
        inbox.sort_by_key(|(by, message, _)| (*by, message.id));
        inbox
    }

    pub fn unread(&self, who: Who) -> usize {
        self.inbox(who).iter().filter(|(_, _, copy)| copy.read.is_none()).count()
    }

    /// Copies from one agent that wait for somebody's consent.
    pub fn held_of(&self, from: Who) -> Vec<(Number, Who)> {
        let mut held: Vec<(Number, Who)> = self
            .messages
            .iter()
            .filter(|message| message.from == from)
            .flat_map(|message| message.copies.iter().map(|copy| (message.id, copy)))
            .filter(|(_, copy)| copy.by.is_none() && !copy.lapsed)
            .map(|(id, copy)| (id, copy.to))
            .collect();
        held.sort_unstable();
        held
    }

    pub fn is_live(&self, claim: &Claim) -> bool {
        !claim.released && self.now < claim.expires
    }

    pub fn live(&self) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(|claim| self.is_live(claim))
    }

    /// One party towards others: a subagent and its parent.
    pub fn share_claims(&self, one: Who, other: Who) -> bool {
        let parent_of = |name: Who| self.agent(name).and_then(|agent| agent.parent);
        one == other || parent_of(one) == Some(other) || parent_of(other) == Some(one)
    }

    /// Pairs of live claims that share a path, seen from `who`, whatever their modes.
    pub fn pairs(&self, who: Who) -> Vec<(&Claim, &Claim)> {
        let mine = self.live().filter(|claim| claim.holder == who);
        let with_theirs = |mine| self.live().filter(move |claim| claim.holder != who).map(move |theirs| (mine, theirs));
        mine.flat_map(with_theirs).filter(|(mine, theirs)| paths::overlap(&mine.pattern, &theirs.pattern)).collect()
    }

    /// The pairs that contest each other.
    pub fn contests(&self, who: Who) -> Vec<(&Claim, &Claim)> {
        let contest = |(mine, theirs): &(&Claim, &Claim)| {
            (mine.exclusive || theirs.exclusive) && !self.share_claims(who, theirs.holder)
        };
        self.pairs(who).into_iter().filter(contest).collect()
    }
}

pub fn at(time: Time) -> String {
    Timestamp::from_millis(time).to_string()
}

/// The static spelling of a name that the model knows.
pub fn known(name: &str) -> Option<Who> {
    AGENTS.into_iter().chain([HUMAN]).find(|who| who.eq_ignore_ascii_case(name))
}
