//! The one who writes to a project for everybody whom this process serves. What waits at the same time goes into one
//! transaction, is synced once, and is answered after that: a savepoint each, so that one who is refused takes nobody along.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use relay_core::error::{Code, Refusal};
use relay_core::store::{self, Result};
use relay_core::verbs::{Afterwards, Request};
use relay_store::sqlite::{Sqlite, batch::Batch};
use tokio::sync::oneshot;

use super::broke;
use super::guarded::Guarded;
use super::job::Job;
use super::pending::Mark;
use super::room::Room;
use crate::ask::Answer;

/// As many as share one transaction, so that the first does not wait for ever.
const MOST: usize = 64;
/// How long one who is not alone waits for others before the sync that it would otherwise have to itself.
const GATHERING: Duration = Duration::from_micros(500);

/// What is to be written, and where the answer goes.
pub enum Errand {
    Ask(Arc<Job>, oneshot::Sender<Verdict>),
    /// What was shown, marked until it is noted.
    Written(Arc<Job>, Afterwards, #[expect(dead_code, reason = "it is dropped with the errand")] Mark),
}

/// What became of a request.
pub enum Verdict {
    Answered(Answer),
    /// Nothing happened: it has to run on its own.
    Alone(Arc<Job>),
}

/// Joins the queue; the verdict comes once it is on the disk.
pub fn ask(job: Arc<Job>) -> Result<oneshot::Receiver<Verdict>> {
    let (answer, answered) = oneshot::channel();
    let room = job.room.clone();
    room.enqueue(Errand::Ask(job, answer))?;
    Ok(answered)
}

pub fn written(job: Arc<Job>, afterwards: Afterwards, mark: Mark) {
    let room = job.room.clone();
    let _ = room.enqueue(Errand::Written(job, afterwards, mark));
}

/// Starts the writer of a room. It ends with the room.
pub fn hire(room: &Arc<Room>) -> Result<Sender<Errand>> {
    let (queue, errands) = channel();
    let room = Arc::downgrade(room);
    let thread = std::thread::Builder::new().name("relay-writer".to_owned());
    thread.spawn(move || work(&room, &errands)).map_err(|_| broke())?;
    Ok(queue)
}

fn work(room: &Weak<Room>, errands: &Receiver<Errand>) {
    let mut store = None;
    let mut had_company = false;
    while let Ok(first) = errands.recv() {
        // Whoever is in a room holds it, and so does every errand.
        let Some(room) = room.upgrade() else { return };
        let mut turn = Turn { waiting: vec![first], settled: Vec::new() };
        let taken = catch_unwind(AssertUnwindSafe(|| turn.take(&room, &mut store, errands, had_company)));
        had_company = taken.unwrap_or_else(|_| {
            store = None;
            turn.refuse(
                &Code::StoreIo.refuse("the server broke while it wrote; the same key settles what became of it"),
            );
            false
        });
    }
}

/// Those who share one transaction.
struct Turn {
    waiting: Vec<Errand>,
    settled: Vec<(Errand, Option<Answer>)>,
}

impl Turn {
    /// Returns whether there was more than one.
    fn take(&mut self, room: &Room, open: &mut Option<Sqlite>, errands: &Receiver<Errand>, had_company: bool) -> bool {
        let known = open.take().filter(|store| !store.was_replaced());
        let Ok(store) = known.map_or_else(|| room.open(), Ok) else {
            self.gather(errands);
            self.give_up();
            return false;
        };
        let errand = store::Errand { verb: "serve", agent: "", wait: room.gate_wait, durable: true };
        let written = match store.batch(errand) {
            Ok(batch) => self.write(batch, errands, had_company),
            Err(refusal) => {
                self.gather(errands);
                self.shut_out(&refusal);
                Ok(())
            }
        };
        let count = self.settled.len();
        metrics::histogram!("relay_batch_requests").record(u32::try_from(count).unwrap_or(u32::MAX));
        match written {
            Ok(()) => self.settled.drain(..).for_each(|(errand, answer)| errand.settle(answer)),
            // Nobody knows what is on the disk. Whoever asks again under the same key finds out, from a connection that has seen
            // nothing of this one.
            Err(refusal) if refusal.code == Code::StoreIo => {
                self.refuse(&refusal);
                return count > 1;
            }
            Err(_) => self.give_up(),
        }
        if store.tidy_between(room.gate_wait) {
            room.written(&store);
        }
        *open = Some(store);
        count > 1
    }

    /// Those who stand behind, too: where the way is closed to one, each would wait for all before it.
    fn gather(&mut self, errands: &Receiver<Errand>) {
        self.waiting.extend(errands.try_iter().take(MOST));
    }

    /// Nothing happened to anybody. Each on its own finds out why, and is told in its own words.
    fn give_up(&mut self) {
        self.settled.drain(..).for_each(|(errand, _)| errand.settle(None));
        self.waiting.drain(..).for_each(|errand| errand.settle(None));
    }

    /// The turn never came. All have waited for it; what heals that by itself goes on trying.
    fn shut_out(&mut self, refusal: &Refusal) {
        for errand in self.waiting.drain(..) {
            if errand.heals() { errand.settle(None) } else { errand.refuse(refusal) }
        }
    }

    fn refuse(&mut self, refusal: &Refusal) {
        self.settled.drain(..).for_each(|(errand, _)| errand.refuse(refusal));
        self.waiting.drain(..).for_each(|errand| errand.refuse(refusal));
    }

    fn write(&mut self, batch: Batch<'_>, errands: &Receiver<Errand>, had_company: bool) -> Result<()> {
        while self.settled.len() < MOST {
            let has_company = had_company || self.settled.len() > 1;
            let Some(errand) = self.waiting.pop().or_else(|| next(errands, has_company)) else { break };
            match errand.carry(&batch) {
                Ok(answer) => self.settled.push((errand, answer)),
                Err(refusal) => {
                    // It is among those to whom nothing happened.
                    self.waiting.push(errand);
                    return Err(refusal);
                }
            }
        }
        batch.commit()
    }
}

/// The next who waits. One who has company gathers a little: more of them may be on their way.
fn next(errands: &Receiver<Errand>, has_company: bool) -> Option<Errand> {
    if !has_company {
        return errands.try_recv().ok();
    }
    errands.recv_timeout(GATHERING).ok()
}

impl Errand {
    /// Does it inside the batch. No answer: it has to run on its own.
    fn carry(&self, batch: &Batch<'_>) -> Result<Option<Answer>> {
        let bus = Guarded::default();
        match self {
            Errand::Ask(job, _) => batch.request(|store| {
                let run = || job.with(store, &bus, |ctx| job.run(ctx));
                let answer = catch_unwind(AssertUnwindSafe(run)).ok().filter(|_| !bus.was_asked());
                let keeps = answer.is_some();
                (answer, keeps)
            }),
            Errand::Written(job, afterwards, _) => batch.request(|store| {
                let commit = || job.with(store, &bus, |ctx| afterwards.commit(ctx));
                let is_done = catch_unwind(AssertUnwindSafe(commit)).is_ok_and(|outcome| outcome.is_ok());
                (None, is_done)
            }),
        }
    }

    /// Whether a store that is busy makes it try again by itself.
    fn heals(&self) -> bool {
        matches!(self, Errand::Ask(job, _) if matches!(&job.ask.request, Request::Send(input) if !input.no_recover))
    }

    fn refuse(self, refusal: &Refusal) {
        if let Errand::Ask(job, _) = &self {
            let answer = job.ask.refuse(refusal, job.desk.now());
            self.settle(Some(answer));
        }
    }

    fn settle(self, answer: Option<Answer>) {
        // Whoever went away meanwhile finds the answer under its key.
        if let Errand::Ask(job, reply) = self {
            let _ = reply.send(answer.map_or(Verdict::Alone(job), Verdict::Answered));
        }
    }
}
