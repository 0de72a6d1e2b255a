//! Whether something is true now that a playbook says must be.

use super::super::actor::{self, Actor};
use super::super::{Ctx, lag, prepare, wait};
use crate::domain::agent::Standing;
use crate::domain::contact::{Link, LinkState};
use crate::domain::event::Number;
use crate::domain::message::Message;
use crate::domain::name::{Address, AgentName, Party, ThreadId};
use crate::domain::time::Timestamp;
use crate::playbook::{Condition, State};
use crate::store::{Facts, Result};

/// From when on what happened counts: since the request failed, and since the recovery began.
#[derive(Clone, Copy, Debug)]
pub struct Since {
    pub at: Timestamp,
    /// None where the store did not say.
    pub tip: Option<Number>,
}

/// What cannot be looked at is not known to be true.
pub fn holds(ctx: &Ctx<'_>, since: Since, condition: &Condition) -> bool {
    let ctx = ctx.step_with_own_key();
    let found = match condition {
        Condition::Archive(State::Current) => current(&ctx, since),
        Condition::Noted(_)
        | Condition::Archive(_)
        | Condition::Store(_)
        | Condition::Server(_)
        | Condition::Credential(_) => ctx.installation.holds(condition),
        on_the_bus => match ctx.store.read() {
            Ok(facts) => Look { ctx: &ctx, since, facts: &*facts }.at(on_the_bus),
            // A step may have made the store, or put another in its place.
            Err(refusal) => match ctx.bus.open(&ctx.project) {
                Ok(Some((_, store))) => {
                    let ctx = Ctx { store: &*store, ..ctx };
                    store.read().and_then(|facts| Look { ctx: &ctx, since, facts: &*facts }.at(on_the_bus))
                }
                _ => Err(refusal),
            },
        },
    };
    found.unwrap_or(false)
}

/// Whether a question was put and waits for its answer.
pub fn is_unanswered(ctx: &Ctx<'_>, condition: Option<&Condition>) -> bool {
    match condition {
        Some(Condition::Asks(thread)) => {
            let since = Since { at: ctx.now, tip: None };
            let facts = ctx.store.read();
            facts.and_then(|facts| Look { ctx, since, facts: &*facts }.is_owed(thread)).unwrap_or(false)
        }
        Some(noted @ Condition::Noted(_)) => ctx.installation.holds(noted).unwrap_or(false),
        _ => false,
    }
}

/// The archive has what the store had when the recovery began; what came since is not what was missing.
fn current(ctx: &Ctx<'_>, since: Since) -> Result<bool> {
    let Some((_, store)) = ctx.bus.open(&ctx.project)? else { return Ok(false) };
    lag::is_current(&*store, since.tip)
}

struct Look<'a> {
    ctx: &'a Ctx<'a>,
    since: Since,
    facts: &'a dyn Facts,
}

impl Look<'_> {
    fn at(&self, condition: &Condition) -> Result<bool> {
        Ok(match condition {
            Condition::Active(name) => {
                let agent = self.facts.agent(&AgentName::parse(name)?)?;
                agent.is_some_and(|agent| actor::state(self.ctx, &agent) == Standing::Active)
            }
            Condition::Acting(_) => self.me().is_ok(),
            Condition::Bound { agent, session } => {
                self.facts.agent(&AgentName::parse(agent)?)?.is_some_and(|agent| agent.is_bound_to(session))
            }
            Condition::Asked(name) => {
                let me = self.me()?.party();
                match self.link(name)? {
                    (Some(link), Some(LinkState::Requested)) => link.from == me,
                    (_, state) => state == Some(LinkState::Accepted),
                }
            }
            Condition::Linked(name) => self.link(name)?.1 == Some(LinkState::Accepted),
            Condition::Unblocked(name) => {
                let me = self.me()?.party();
                !self.link(name)?.0.is_some_and(|link| link.is_blocked_by(&me))
            }
            Condition::Held { patterns, shared } => self.holds_all(patterns, *shared)?,
            Condition::Thread(thread) => {
                let (viewer, _) = actor::viewer(self.ctx, self.facts)?;
                prepare::thread_view(self.ctx, self.facts, &ThreadId::parse(thread)?, &viewer, None, 0)?.is_some()
            }
            Condition::Written { to, thread } => {
                let to = actor::addressed(self.ctx, self.facts, &Address::parse(to))?;
                self.wrote(thread, |message| message.sent_at >= self.since.at && message.delivery_to(&to).is_some())?
            }
            // A question that was asked since, and answered, need not be asked again.
            Condition::Asks(thread) => {
                let is_it = |message: &Message| {
                    message.sent_at >= self.since.at && message.delivery_to(&Party::Human).is_some()
                };
                self.is_owed(thread)? || self.wrote(thread, is_it)?
            }
            Condition::Apart(names) => {
                let me = self.me()?.party();
                let address = |name: &String| actor::addressed(self.ctx, self.facts, &Address::parse(name));
                let others: Vec<Party> = names.iter().map(address).collect::<Result<_>>()?;
                !wait::is_awaited(self.ctx, &me, others.into_iter().filter(|other| *other != me).collect())
            }
            Condition::Noted(_)
            | Condition::Archive(_)
            | Condition::Store(_)
            | Condition::Server(_)
            | Condition::Credential(_) => false,
        })
    }

    fn me(&self) -> Result<Actor> {
        actor::acting(self.ctx, self.facts)
    }

    fn link(&self, name: &str) -> Result<(Option<Link>, Option<LinkState>)> {
        let other = actor::addressed(self.ctx, self.facts, &Address::parse(name))?;
        let link = self.facts.link(&self.me()?.party(), &other)?;
        let state = link.as_ref().map(|link| link.state(self.ctx.now));
        Ok((link, state))
    }

    fn holds_all(&self, patterns: &[String], shared: bool) -> Result<bool> {
        let me = self.me()?;
        let Some(agent) = me.agent() else { return Ok(false) };
        for pattern in patterns {
            let claims = self.facts.claims_on(&agent.name, pattern)?;
            if !claims.iter().any(|claim| claim.is_live(self.ctx.now) && (claim.exclusive || shared)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the caller has lately written such a message in a thread. What others write there does not push it out.
    fn wrote(&self, thread: &str, is_it: impl Fn(&Message) -> bool) -> Result<bool> {
        let (me, thread) = (self.me()?.party(), ThreadId::parse(thread)?);
        let own = self.facts.outbox(&me, self.ctx.limits.page)?;
        Ok(own.iter().any(|message| message.thread.same_as(&thread) && is_it(message)))
    }

    /// A question of the caller that the human has yet to answer.
    fn is_owed(&self, thread: &str) -> Result<bool> {
        let (me, thread) = (self.me()?.party(), ThreadId::parse(thread)?);
        let owed = self.facts.acks_owed(&Party::Human, self.ctx.limits.unread)?;
        Ok(owed.iter().any(|message| message.from == me && message.thread.same_as(&thread)))
    }
}
