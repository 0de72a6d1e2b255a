//! A request with everything that answering it needs, on whichever thread that is done.

use std::path::PathBuf;
use std::sync::Arc;

use relay_core::domain::name::ProjectKey;
use relay_core::store::{Bus, Result, Store};
use relay_core::verbs::{self, Ctx, Done, recover};
use relay_store::sqlite::Sqlite;
use relay_store::{SystemRandom, repository};
use tokio::sync::oneshot;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::pending::Name;
use super::room::Room;
use super::writer::{self, Verdict};
use super::{Desk, Late, Way, way};
use crate::ask::{Answer, Ask};

/// How far a request has come.
pub enum Begun {
    Answered(Answer),
    Queued(oneshot::Receiver<Verdict>),
    Alone(Arc<Job>),
}

pub struct Job {
    pub desk: Arc<Desk>,
    pub room: Arc<Room>,
    pub ask: Ask,
    files: repository::Files,
    /// The server does not go away before it is done, whether or not anybody still waits for the answer.
    _asked: TaskTrackerToken,
}

impl Job {
    /// Looks whether it can be asked at all, and at what a claim needs to know of the repository: nobody should wait for that
    /// at the gate.
    pub fn open(desk: &Arc<Desk>, ask: Ask, project: &ProjectKey) -> Result<Arc<Job>> {
        let asked = desk.asked.token();
        let named = ask.said.project.as_ref().map(PathBuf::from);
        let files = repository::Files::new(project)
            .seen_from(named.into_iter().chain(ask.said.seen_from.clone()))
            .of_user(desk.front.user());
        verbs::check(&ask.request, &ask.caller, &desk.limits, &files)?;
        verbs::look_ahead(&ask.request, &files);
        let room = desk.rooms.enter(desk, project, Some(&ask.request), ask.caller.named.as_ref())?;
        Ok(Arc::new(Job { desk: desk.clone(), room, ask, files, _asked: asked }))
    }

    /// Whom it is asked for.
    pub fn name(&self) -> Name {
        (self.room.project().clone(), self.ask.who())
    }

    /// Goes the way of its kind.
    pub fn begin(self: Arc<Self>) -> Result<Begun> {
        match way(&self.ask.request) {
            Way::Reads => self.on_its_own(|_, ctx| self.run(ctx)).map(Begun::Answered),
            Way::Writes => writer::ask(self).map(Begun::Queued),
            Way::Alone => Ok(Begun::Alone(self)),
        }
    }

    /// With this store, and whichever way there is to the other projects.
    pub fn with<T>(&self, store: &dyn Store, bus: &dyn Bus, tell: impl FnOnce(&Ctx<'_>) -> T) -> T {
        let home = self.desk.home();
        let installation = self.desk.front.installation(&home, self.room.project(), &self.ask.caller);
        tell(&Ctx {
            store,
            bus,
            repository: &self.files,
            installation: &*installation,
            clock: &*self.desk.clock,
            random: &SystemRandom,
            limits: &self.desk.limits,
            project: self.room.project().clone(),
            caller: self.ask.caller.clone(),
            key: self.ask.key.clone(),
            now: self.desk.clock.now(),
            pid: rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs(),
        })
    }

    /// Runs it to its end.
    pub fn run(self: &Arc<Self>, ctx: &Ctx<'_>) -> Answer {
        self.answer(ctx, verbs::run(ctx, &self.ask.request))
    }

    pub fn answer(self: &Arc<Self>, ctx: &Ctx<'_>, outcome: Result<Done>) -> Answer {
        match outcome {
            Ok(mut done) => {
                self.ask.said.repeat(&mut done);
                let late = done.afterwards.take().map(|afterwards| Box::new(Late::new(self, afterwards)));
                Answer::done(done, ctx.now, late)
            }
            Err(refusal) if self.ask.is_glance => self.ask.refuse(&refusal, ctx.now),
            Err(refusal) => {
                Answer::failed(recover::failure_of(ctx, &self.ask.request, &self.ask.command, &refusal), ctx.now)
            }
        }
    }

    /// With a store for itself, as a command of its own would.
    pub fn on_its_own<T>(&self, tell: impl FnOnce(&Sqlite, &Ctx<'_>) -> T) -> Result<T> {
        let store = self.room.store()?;
        let told = self.with(&*store, &self.desk.home(), |ctx| tell(&store, ctx));
        store.keep();
        Ok(told)
    }
}
