//! A request that runs on its own, as a command of its own would: it waits, concerns two projects, or runs other commands.

use std::sync::Arc;

use relay_core::store::Result;
use relay_core::verbs::{self, Begun, Waiting};
use tokio::sync::oneshot;

use super::job::Job;
use super::{Desk, blocking, broke};
use crate::ask::Answer;

/// How far it came.
enum Stage {
    Answered(Answer),
    Waits(Box<Job>, Waiting),
}

pub async fn ask(desk: &Arc<Desk>, job: Job) -> Result<Answer> {
    let mut bell = job.room.listen()?;
    // Heard so far: whatever rings after the look that follows wakes.
    bell.mark_unchanged();
    let mut stage = thread(move || begin(Box::new(job))).await??;
    loop {
        let (job, mut waiting) = match stage {
            Stage::Answered(answer) => return Ok(answer),
            Stage::Waits(job, waiting) => (job, waiting),
        };
        tokio::select! {
            _ = bell.changed() => {}
            () = tokio::time::sleep(waiting.patience(&*desk.clock).to_std()) => {}
            () = desk.closing.cancelled() => waiting.cut_short(),
        }
        bell.mark_unchanged();
        stage = blocking(move || look(job, waiting)).await??;
    }
}

fn begin(job: Box<Job>) -> Result<Stage> {
    let begun = job.on_its_own(|ctx| match verbs::begin(ctx, &job.ask.request) {
        Ok(Begun::Waits(waiting)) => Err(waiting),
        Ok(Begun::Done(done)) => Ok(job.answer(ctx, Ok(done))),
        Err(refusal) => Ok(job.answer(ctx, Err(refusal))),
    })?;
    Ok(match begun {
        Ok(answer) => Stage::Answered(answer),
        Err(waiting) => Stage::Waits(job, waiting),
    })
}

fn look(job: Box<Job>, mut waiting: Waiting) -> Result<Stage> {
    let looked = job.on_its_own(|ctx| waiting.look(ctx).transpose().map(|outcome| job.answer(ctx, outcome)))?;
    Ok(match looked {
        Some(answer) => Stage::Answered(answer),
        None => Stage::Waits(job, waiting),
    })
}

/// In a thread that ends with it: what it leaves between two projects is then seen to be abandoned.
async fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (done, told) = oneshot::channel();
    let run = move || drop(done.send(work()));
    std::thread::Builder::new().name("relay-alone".to_owned()).spawn(run).map_err(|_| broke())?;
    told.await.map_err(|_| broke())
}
