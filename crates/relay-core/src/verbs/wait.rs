//! Waiting: a request that has nothing to answer yet is put down, and taken up again for a look. Between two looks it holds
//! neither a thread nor the store: only its announcement stands, in presence.

mod ring;

use std::ops::ControlFlow;

use super::{Begun, Ctx, Done, Key, crossing};
use crate::domain::name::Party;
use crate::domain::time::{Span, Timestamp};
use crate::store::{Clock, Result, Wait};

pub(super) use ring::{change, enter, is_awaited};

/// A waiter looks again after this long even when nothing woke it.
const SAFETY_LOOK: Span = Span::seconds(30);
/// Whoever is late looks again after this long: a moment that has come must not make a busy loop.
const SHORTEST_PAUSE: Span = Span::millis(1);

/// A request that waits for something to happen. It borrows nothing of the context that it began with: a look may be made
/// with another one, of the same caller in the same project and by the same clock. An answer or a refusal ends it; dropping
/// it gives it up, and its announcement goes with it.
pub struct Waiting {
    waiter: Box<dyn Waiter>,
    /// The key that the request began with, whatever later contexts say.
    key: Key,
    time: Span,
    deadline: Deadline,
    /// When time alone may change something.
    again_at: Option<Timestamp>,
    ending: Option<Ending>,
}

/// What a verb looks for while it waits. The context of each look has the key of the request and the time of the look.
pub(super) trait Waiter: Send {
    fn look(&mut self, ctx: &Ctx<'_>) -> Result<Look>;
    /// The answer when all the time that it had is over.
    fn in_vain(&self, ctx: &Ctx<'_>, time: Span) -> Result<Done>;
}

#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is handed on at once")]
pub(super) enum Look {
    Ready(Done),
    /// Nothing yet; time alone may change that at `again_at`.
    NotYet {
        again_at: Option<Timestamp>,
    },
}

/// What a request makes of the end of the one that it made again.
type Ending = Box<dyn FnOnce(&Ctx<'_>, Result<Done>) -> Result<Done> + Send>;

impl Waiting {
    /// Its first look is due at once: after the verb itself had looked, the wait had yet to be announced.
    pub(super) fn new(ctx: &Ctx<'_>, time: Span, waiter: impl Waiter + 'static) -> Self {
        let (key, deadline, again_at) = (ctx.key.clone(), Deadline::after(ctx, time), Some(ctx.clock.now()));
        Waiting { waiter: Box::new(waiter), key, time, deadline, again_at, ending: None }
    }

    /// One look. None: not yet. At the deadline the answer is that of the deadline: ok and empty for `poll`, `WAIT_TIMEOUT`
    /// for `reserve` and `link`.
    pub fn look(&mut self, ctx: &Ctx<'_>) -> Result<Option<Done>> {
        let ended = self.ended(&ctx.later(self.key.clone())).transpose();
        let ended = ended.map(|ended| end(self.ending.take(), ctx, ended)).transpose();
        crossing::let_go(ctx);
        ended
    }

    fn ended(&mut self, ctx: &Ctx<'_>) -> Result<Option<Done>> {
        match self.waiter.look(ctx)? {
            Look::Ready(done) => Ok(Some(done)),
            Look::NotYet { .. } if self.deadline.is_over(ctx.clock) => self.waiter.in_vain(ctx, self.time).map(Some),
            Look::NotYet { again_at } => {
                self.again_at = again_at;
                Ok(None)
            }
        }
    }

    /// How long it may be left alone if nothing wakes it: until time alone may change something, the deadline, or the
    /// safety look.
    pub fn patience(&self, clock: &dyn Clock) -> Span {
        let now = clock.now();
        patience(self.deadline.left(clock), self.again_at.map(|at| at.since(now)))
    }

    /// Whoever looks has no more time for it: the next look is the last.
    pub fn cut_short(&mut self, clock: &dyn Clock) {
        // What it says is how long it has waited, not how long it meant to.
        self.time = Span::millis(self.time.as_millis() - self.deadline.left(clock).as_millis());
        self.deadline = Deadline(Span::millis(i64::MIN));
    }

    /// Blocks until it has ended: for a front that has nothing else to do.
    pub(super) fn finish(mut self, ctx: &Ctx<'_>) -> Result<Done> {
        until(ctx, || {
            Ok(match self.look(ctx)? {
                Some(done) => ControlFlow::Break(done),
                None => ControlFlow::Continue(self.patience(ctx.clock)),
            })
        })
    }
}

fn patience(left: Span, until_again: Option<Span>) -> Span {
    let until_again = until_again.map_or(SAFETY_LOOK, |span| span.max(SHORTEST_PAUSE));
    left.min(until_again).min(SAFETY_LOOK)
}

/// Goes on with what a request came to, at once or when its wait has ended.
pub(super) fn then(
    ctx: &Ctx<'_>,
    begun: Result<Begun>,
    go_on: impl FnOnce(&Ctx<'_>, Result<Done>) -> Result<Done> + Send + 'static,
) -> Result<Begun> {
    let ended = match begun {
        Ok(Begun::Waits(waiting)) => {
            let (key, first) = (ctx.key.clone(), waiting.ending);
            let ending: Ending = Box::new(|ctx, ended| go_on(&ctx.later(key), end(first, ctx, ended)));
            return Ok(Begun::Waits(Waiting { ending: Some(ending), ..waiting }));
        }
        Ok(Begun::Done(done)) => Ok(done),
        Err(refusal) => Err(refusal),
    };
    go_on(ctx, ended).map(Begun::Done)
}

fn end(ending: Option<Ending>, ctx: &Ctx<'_>, ended: Result<Done>) -> Result<Done> {
    match ending {
        Some(go_on) => go_on(ctx, ended),
        None => ended,
    }
}

pub fn announcement(ctx: &Ctx<'_>, verb: &str, agent: Party, for_whom: Vec<Party>, patterns: Vec<String>) -> Wait {
    Wait { agent, verb: verb.to_owned(), pid: ctx.pid, ticket: 0, for_whom, patterns }
}

/// A moment in the time that only ever goes forward.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Span);

impl Deadline {
    pub fn after(ctx: &Ctx<'_>, time: Span) -> Self {
        Deadline(Span::millis(ctx.clock.monotonic().as_millis().saturating_add(time.as_millis().max(0))))
    }

    pub fn left(self, clock: &dyn Clock) -> Span {
        Span::millis(self.0.as_millis().saturating_sub(clock.monotonic().as_millis()).max(0))
    }

    fn is_over(self, clock: &dyn Clock) -> bool {
        self.left(clock) == Span::millis(0)
    }
}

/// Blocks until a look breaks it off; one that does not says how long it may be until the next. The watch is armed before
/// the first look: nothing is missed.
fn until<T>(ctx: &Ctx<'_>, mut look: impl FnMut() -> Result<ControlFlow<T, Span>>) -> Result<T> {
    let mut watch = ctx.store.watch()?;
    loop {
        match look()? {
            ControlFlow::Break(found) => return Ok(found),
            ControlFlow::Continue(patience) => watch.wait(patience)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_owned_and_may_go_to_another_thread() {
        fn check<T: Send + 'static>() {}
        check::<Waiting>();
        check::<Begun>();
    }

    #[test]
    fn a_wait_is_left_alone_until_whatever_comes_first() {
        let check = |left: i64, until_again: Option<i64>, expected: i64| {
            let found = patience(Span::millis(left), until_again.map(Span::millis));
            assert_eq!(found, Span::millis(expected), "{left} {until_again:?}");
        };
        check(600_000, None, 30_000);
        check(600_000, Some(2_000), 2_000);
        check(600_000, Some(90_000), 30_000);
        check(1_500, Some(2_000), 1_500);
        check(1_500, None, 1_500);
        check(600_000, Some(0), 1);
        check(600_000, Some(-5_000), 1);
        check(0, Some(2_000), 0);
        check(0, None, 0);
    }
}
