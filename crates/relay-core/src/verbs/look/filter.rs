//! Which events are wanted: what a caller says of them, read once and asked of each.

use std::cell::RefCell;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::{actor, wanted};
use super::Looking;
use crate::domain::event::{Event, Happened, Number};
use crate::domain::name::{Address, AgentName, Party, ThreadId};
use crate::domain::nearest::{did_you_mean, nearest};
use crate::domain::pattern::{Case, Compiled, Pattern};
use crate::domain::reservation::Reservation;
use crate::domain::time::Timestamp;
use crate::error::{Code, Refusal};
use crate::store::{EventQuery, Facts, Result};

/// The kinds of events that claims come and go by.
pub(in crate::verbs) const CLAIMS: [&str; 4] =
    ["reservation_granted", "reservation_renewed", "reservation_released", "reservation_taken"];

/// Which events are wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFilter {
    pub kind: Vec<String>,
    pub by: Option<String>,
    /// Those of a thread: its mail with the receipts, its members, and the claims made for it.
    pub thread: Option<String>,
    /// Those of claims that share a path with this one.
    pub path: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
}

/// The same, understood.
pub(in crate::verbs) struct Sieve<'a> {
    facts: &'a dyn Facts,
    kinds: Vec<&'static str>,
    by: Option<String>,
    pub thread: Option<ThreadId>,
    path: Option<Touching>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl<'a> Sieve<'a> {
    pub fn new(looking: &'a Looking<'_>, filter: &EventFilter) -> Result<Self> {
        let time = |text: &Option<String>| -> Result<Option<Timestamp>> {
            Ok(text.as_deref().map(|text| Timestamp::read(text, looking.ctx.now)).transpose()?)
        };
        let mut kinds = filter.kind.iter().map(|text| kind(text)).collect::<Result<Vec<_>>>()?;
        let path = filter.path.as_deref().map(|path| Touching::new(looking, path)).transpose()?;
        if path.is_some() {
            let wanted = if kinds.is_empty() { CLAIMS.to_vec() } else { kinds };
            kinds = wanted.into_iter().filter(|kind| CLAIMS.contains(kind)).collect();
            if kinds.is_empty() {
                return Err(Code::InputInvalid.refuse(format!(
                    "a path is about claims, and the kinds of their events are {}",
                    CLAIMS.join(", ")
                )));
            }
        }
        Ok(Sieve {
            facts: looking.facts,
            kinds,
            by: filter.by.as_deref().map(|by| actor_of(looking, by)).transpose()?.map(|by| by.to_string()),
            thread: filter.thread.as_deref().map(ThreadId::parse).transpose()?,
            path,
            since: time(&filter.since)?,
            until: time(&filter.until)?,
        })
    }

    /// What the store can tell from an event's own line; somebody of a project that moved stands there by another name.
    pub fn query(&self, after: Number, up_to: Number, nobody_moved: bool) -> EventQuery<'_> {
        let actor = self.by.as_deref().filter(|by| nobody_moved || !by.contains('@'));
        let thread = self.thread.as_ref();
        EventQuery { after, up_to, kinds: &self.kinds, actor, thread, since: self.since, until: self.until }
    }

    pub fn is_by(&self, actor: &Party) -> bool {
        self.by.as_ref().is_none_or(|by| actor.to_string().eq_ignore_ascii_case(by))
    }

    /// Asked of what the viewer is shown, so that nothing else tells what is in a thread.
    pub fn takes(&self, what: &Happened) -> Result<bool> {
        let touches = |claim: &Reservation| self.path.as_ref().is_none_or(|path| path.touches(&claim.pattern));
        let is_for = |claim: &Reservation| self.is_of(claim.reason.as_ref());
        let any = |ids: &[Number]| -> Result<bool> {
            for id in ids {
                if self.facts.claim(*id)?.is_some_and(|claim| touches(&claim) && is_for(&claim)) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match what {
            Happened::ReservationGranted { pattern, reason, .. } => {
                Ok(self.is_of(reason.as_ref()) && self.path.as_ref().is_none_or(|path| path.touches(pattern)))
            }
            _ if self.thread.is_none() && self.path.is_none() => Ok(true),
            Happened::ReservationRenewed { claims, .. } => {
                any(&claims.iter().map(|renewal| renewal.id).collect::<Vec<_>>())
            }
            Happened::ReservationReleased { claims, .. } => any(claims),
            Happened::ReservationTaken { id, .. } => any(&[*id]),
            Happened::ThreadPrepared { thread, .. }
            | Happened::ThreadLeft { thread, .. }
            | Happened::ThreadClosed { thread, .. }
            | Happened::MessageSent { thread, .. } => Ok(self.is_of(Some(thread))),
            Happened::MailSurfaced { messages, .. }
            | Happened::MailRead { messages, .. }
            | Happened::MailAcked { messages, .. } => self.is_mail_of(messages),
            Happened::HeldLapsed { message, .. } => self.is_mail_of(&[*message]),
            _ => Ok(false),
        }
    }

    fn is_of(&self, thread: Option<&ThreadId>) -> bool {
        self.thread.as_ref().is_none_or(|wanted| thread.is_some_and(|thread| thread.same_as(wanted)))
    }

    fn is_mail_of(&self, messages: &[Number]) -> Result<bool> {
        for id in messages {
            if self.facts.envelope(*id)?.is_some_and(|message| self.is_of(Some(&message.thread))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether most events pass: then what is not shown need not be read.
    pub fn is_open(&self) -> bool {
        self.kinds.is_empty()
            && self.by.is_none()
            && self.thread.is_none()
            && self.since.is_none()
            && self.until.is_none()
    }
}

/// A kind by its name; several are written with commas.
fn kind(text: &str) -> Result<&'static str> {
    let known = Happened::KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(text));
    known.ok_or_else(|| unknown_kind(text))
}

fn unknown_kind(text: &str) -> Refusal {
    let near = nearest(text, Happened::KINDS);
    let meant = did_you_mean(&near);
    Code::InputInvalid
        .refuse(format!("{text:?} is no kind of event{meant}; the kinds are {}", Happened::KINDS.join(", ")))
}

/// Who is meant by a name. A project that was here once may be gone, and what its agents did is still on record.
fn actor_of(looking: &Looking<'_>, text: &str) -> Result<Party> {
    let address = Address::parse(text);
    if let Some(path) = &address.project {
        let mut projects = looking.facts.neighbours()?.into_iter();
        if let Some(project) = projects.find(|project| project.as_str() == path) {
            return Ok(Party::Elsewhere(AgentName::parse(&address.name)?, project));
        }
    }
    actor::addressed(looking.ctx, looking.facts, &address)
}

/// A path, and which patterns share one with it; each is compared once.
pub(super) struct Touching {
    compiled: Compiled,
    case: Case,
    known: RefCell<HashMap<String, bool>>,
}

impl Touching {
    pub fn new(looking: &Looking<'_>, path: &str) -> Result<Self> {
        let roots = looking.ctx.repository.roots();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let case = looking.ctx.repository.case();
        let compiled = wanted::parse(looking.ctx.limits, path, &roots)?.compile(case);
        Ok(Touching { compiled, case, known: RefCell::default() })
    }

    /// A pattern that this relay cannot read is not said to match.
    pub fn touches(&self, pattern: &str) -> bool {
        let compare = || {
            Pattern::from_canonical(pattern)
                .is_ok_and(|pattern| pattern.compile(self.case).overlap(&self.compiled).is_some())
        };
        *self.known.borrow_mut().entry(pattern.to_owned()).or_insert_with(compare)
    }
}

/// The event as the projections know everybody now: by the newest path of a project that moved.
pub(in crate::verbs) fn followed(
    mut event: Event,
    moves: &[(Number, crate::domain::name::ProjectKey, crate::domain::name::ProjectKey)],
) -> Event {
    for (_, from, to) in moves.iter().filter(|(number, ..)| *number > event.number) {
        event.payload.actor.follow(from, to);
        event.payload.what.follow(from, to);
    }
    event
}
