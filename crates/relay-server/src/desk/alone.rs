//! A request that runs on its own, as a command of its own would: it waits, concerns two projects, or runs other commands.

use std::sync::Arc;

use relay_core::store::Result;
use relay_core::verbs::{self, Begun, Waiting};
use relay_store::sqlite::Sqlite;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::job::Job;
use super::room::{DEAF, Heard};
use super::{Desk, blocking, broke, may_take_long};
use crate::ask::Answer;

/// How far it came.
enum Stage {
    Answered(Answer),
    Waits(Waiting),
}

pub async fn ask(desk: &Arc<Desk>, job: Arc<Job>) -> Result<Answer> {
    let (runtime, asked) = (Handle::current(), job.clone());
    let turn = desk.alone.take().await?;
    let (mut stage, mut bell) = thread(move || {
        let _turn = turn;
        let _inside = runtime.enter();
        // Heard before the first look: whatever rings after that wakes.
        let bell = if may_take_long(&asked.ask.request) { listen(&asked) } else { None };
        begin(&asked).map(|stage| (stage, bell))
    })
    .await??;
    loop {
        let mut waiting = match stage {
            Stage::Answered(answer) => return Ok(answer),
            Stage::Waits(waiting) => waiting,
        };
        let patience = waiting.patience(&*desk.clock).to_std();
        let patience = if bell.is_some() { patience } else { patience.min(DEAF) };
        tokio::select! {
            () = rings(&mut bell) => {}
            () = tokio::time::sleep(patience) => {}
            () = desk.closing.cancelled() => waiting.cut_short(&*desk.clock),
        }
        let asked = job.clone();
        (stage, bell) = blocking(move || {
            let bell = bell.or_else(|| listen(&asked));
            look(&asked, waiting).map(|stage| (stage, bell))
        })
        .await??;
    }
}

fn listen(job: &Job) -> Option<Heard> {
    let mut bell = job.room.listen().ok()?;
    bell.so_far();
    Some(bell)
}

/// Waits until something was written. A bell that has fallen silent is taken down.
async fn rings(bell: &mut Option<Heard>) {
    match bell {
        Some(heard) => {
            if !heard.rings().await {
                *bell = None;
            }
        }
        None => std::future::pending().await,
    }
}

fn begin(job: &Arc<Job>) -> Result<Stage> {
    job.on_its_own(|store, ctx| match verbs::begin(ctx, &job.ask.request) {
        Ok(Begun::Waits(waiting)) => Stage::Waits(waiting),
        Ok(Begun::Done(done)) => Stage::Answered(job.answer(ctx, Ok(cleaned(job, store, done)))),
        Err(refusal) => Stage::Answered(job.answer(ctx, Err(refusal))),
    })
}

fn look(job: &Arc<Job>, mut waiting: Waiting) -> Result<Stage> {
    job.on_its_own(|store, ctx| match waiting.look(ctx).transpose() {
        None => Stage::Waits(waiting),
        Some(outcome) => Stage::Answered(job.answer(ctx, outcome.map(|done| cleaned(job, store, done)))),
    })
}

/// Where texts were erased, nothing is left of them when the answer says so.
fn cleaned(job: &Job, store: &Sqlite, mut done: verbs::Done) -> verbs::Done {
    job.desk.front.clean_up(store, job.room.gate_wait, &mut done.outcome);
    done
}

/// In a thread that ends with it: what it leaves between two projects is then seen to be abandoned.
async fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (done, told) = oneshot::channel();
    let run = move || drop(done.send(work()));
    std::thread::Builder::new().name("relay-alone".to_owned()).spawn(run).map_err(|_| broke())?;
    told.await.map_err(|_| broke())
}
