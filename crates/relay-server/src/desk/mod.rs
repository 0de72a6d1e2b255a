//! The desk: answers requests from the stores of this machine, for everybody whom one process serves.
//!
//! Reading is done by many at once. Writing to one project is done by one thread, which takes what waits together and syncs
//! it once. What waits holds neither a thread nor a store.

mod alone;
mod guarded;
mod job;
mod pending;
mod room;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::Timestamp;
use relay_core::error::{Code, Kind, Refusal};
use relay_core::store::{Clock, Result};
use relay_core::verbs::{Afterwards, Request};
use relay_store::{Home, repository};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ask::{Answer, Ask, Body, Said};
use crate::front::Front;
use job::{Begun, Job};
use pending::{Mark, Pending};
use room::Room;
use writer::Verdict;

/// How many read at the same time, each with a store that stays open for the next: opening one takes longer than most reads.
pub(crate) const READERS: usize = 8;

/// Everything that serving needs, whoever is served.
pub struct Desk {
    front: Arc<dyn Front>,
    clock: Box<dyn Clock + Send + Sync>,
    root: PathBuf,
    limits: Limits,
    rooms: Mutex<HashMap<ProjectKey, Arc<Room>>>,
    /// Once the server goes away nobody waits any longer.
    closing: CancellationToken,
    /// Those who are being answered.
    asked: TaskTracker,
    pending: Arc<Pending>,
}

/// What is left to do for an answer. One that is dropped was never written out, and the mail is shown again.
pub struct Late {
    desk: Arc<Desk>,
    ask: Ask,
    afterwards: Afterwards,
    mark: Mark,
}

impl Late {
    /// The answer is out. Whoever asked is not told how this ends: at worst the mail is shown again.
    pub fn commit(self) {
        let Late { desk, ask, afterwards, mark } = self;
        tokio::spawn(async move {
            let noted = move || Job::open(&desk, ask).map(|job| writer::written(job, afterwards, mark));
            let _ = blocking(noted).await;
        });
    }
}

/// How a request reaches its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It changes nothing that others wait for.
    Reads,
    /// One transaction of one project.
    Writes,
    /// It may wait, concern two projects, or run other commands.
    Alone,
}

fn way(request: &Request) -> Way {
    match request {
        _ if request.waits_for().is_some() => Way::Alone,
        Request::Look(_) | Request::Poll(_) => Way::Reads,
        Request::Recover(_) | Request::Redact(_) => Way::Alone,
        _ => Way::Writes,
    }
}

impl Desk {
    pub fn new(front: Arc<dyn Front>, root: PathBuf, limits: Limits) -> Arc<Self> {
        let clock = front.clock();
        Arc::new(Desk {
            front,
            clock,
            root,
            limits,
            rooms: Mutex::new(HashMap::new()),
            closing: CancellationToken::new(),
            asked: TaskTracker::new(),
            pending: Arc::default(),
        })
    }

    pub fn front(&self) -> &dyn Front {
        &*self.front
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn home(&self) -> Home {
        Home::new(self.root.clone(), self.limits.clone(), self.now().millis())
    }

    /// Answers one request.
    pub async fn ask(self: &Arc<Self>, ask: Ask) -> Answer {
        let _asked = self.asked.token();
        self.pending.settled(&ask).await;
        let (command, said) = (ask.command.clone(), ask.said.clone());
        let (verb, since) = (ask.request.verb(), self.clock.monotonic());
        let is_quick = way(&ask.request) == Way::Writes && !ask.request.looks_ahead();
        let desk = self.clone();
        let begin = move || Job::open(&desk, ask).and_then(Job::begin);
        // What only joins a queue is there sooner than a thread that does so for it.
        let begun = if is_quick { Ok(begin()) } else { blocking(begin).await };
        let answered = match begun {
            Ok(Ok(Begun::Answered(answer))) => Ok(answer),
            Ok(Ok(Begun::Queued(verdict))) => self.verdict(verdict).await,
            Ok(Ok(Begun::Alone(job))) => alone::ask(self, *job).await,
            Ok(Err(refusal)) | Err(refusal) => Err(refusal),
        };
        let answer = answered.unwrap_or_else(|refusal| Answer::refused(&command, &said, &refusal, self.now()));
        let took = self.clock.monotonic().as_millis() - since.as_millis();
        measured(verb, &answer, took);
        self.log(&said, &answer);
        answer
    }

    /// What no caller can mend is said to whoever looks after the server too.
    fn log(&self, said: &Said, answer: &Answer) {
        let Body::Failed(failure) = &answer.body else { return };
        let error = &failure.error;
        let is_of_the_disk = matches!(error.code, Code::StoreIo | Code::StoreFull | Code::StoreReadonly);
        if is_of_the_disk || matches!(error.kind, Kind::Damaged | Kind::Internal) {
            let project = said.project.as_deref().unwrap_or("-");
            let line = format!("{} {} {project} {}: {}", answer.at, failure.verb, error.code, error.message);
            self.front.log(&escape_line(&line));
        }
    }

    /// Waits until everybody has an answer, after it was closed.
    pub async fn answered(&self) {
        self.asked.wait().await;
    }

    /// Waits until the server goes away.
    pub async fn closed(&self) {
        self.closing.cancelled().await;
    }

    async fn verdict(self: &Arc<Self>, verdict: oneshot::Receiver<Verdict>) -> Result<Answer> {
        match verdict.await.map_err(|_| broke())? {
            Verdict::Answered(answer) => Ok(answer),
            Verdict::Alone(job) => alone::ask(self, *job).await,
        }
    }

    /// Keeps what becomes true once the answer was written out.
    pub fn late(self: &Arc<Self>, ask: Ask, afterwards: Afterwards) -> Late {
        let mark = self.pending.mark(&ask);
        Late { desk: self.clone(), ask, afterwards, mark }
    }

    /// Wakes whenever something was committed in a project, also by another process.
    pub async fn watch(self: &Arc<Self>, project: Option<&str>) -> Result<tokio::sync::watch::Receiver<u64>> {
        let (desk, project) = (self.clone(), project.map(str::to_owned));
        let room = blocking(move || resolve(project.as_deref()).map(|project| desk.room(&project))).await??;
        room.listen()
    }

    fn room(self: &Arc<Self>, project: &ProjectKey) -> Arc<Room> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.entry(project.clone()).or_insert_with(|| Room::new(self, project)).clone()
    }

    /// Nobody waits from now on; what has begun goes on to its end. Then the archives get what they lack.
    pub fn close(&self) {
        self.closing.cancel();
        self.asked.close();
        let rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.values().filter(|room| room.has_written()).for_each(|room| self.front.drain(room.project()));
    }
}

/// For whoever looks after the server; nothing of what was said.
#[expect(clippy::cast_precision_loss, reason = "milliseconds of a request")]
fn measured(verb: &'static str, answer: &Answer, millis: i64) {
    let outcome = match &answer.body {
        Body::Done(_) => "ok",
        Body::Failed(failure) => failure.error.code.as_str(),
    };
    metrics::counter!("relay_requests_total", "verb" => verb, "outcome" => outcome).increment(1);
    metrics::histogram!("relay_request_seconds", "verb" => verb).record(millis as f64 / 1_000.0);
}

/// The project that a text names.
fn resolve(project: Option<&str>) -> Result<ProjectKey> {
    match project {
        Some(path) => repository::resolve(path.as_ref()),
        None => Err(Code::ProjectUnresolved.refuse("no project is named; say `project`, the absolute path of it")),
    }
}

/// What a thread that may block says; a panic is a fault of ours, and everybody else is served on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| broke())
}

fn broke() -> Refusal {
    Code::Internal.refuse("the request could not be carried out")
}
