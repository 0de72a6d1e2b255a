//! The desk: answers requests from the stores of this machine, for everybody whom one process serves.
//!
//! Reading is done by many at once. Writing to one project is done by one thread, which takes what waits together and syncs
//! it once. What waits holds neither a thread nor a store.

mod alone;
mod guarded;
mod job;
mod late;
mod paths;
mod pending;
mod room;
mod rooms;
mod turns;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::plain::escape_line;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::{Code, Kind, Refusal};
use relay_core::store::{Clock, Result};
use relay_core::verbs::Request;
use relay_store::Home;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ask::{Answer, Ask, Body, Said};
use crate::front::Front;
use job::{Begun, Job};
pub use late::Late;
use paths::Paths;
use pending::Pending;
pub use room::Heard;
use rooms::Rooms;
use turns::Turns;
use writer::Verdict;

/// How many read at the same time, each with a store that stays open for the next: opening one takes longer than most reads.
const READERS: usize = 8;
/// How many run on their own at the same time, each with a thread and a store for it.
const ALONE: usize = 16;

/// How long the archives have to get what they lack when the server goes away.
const DRAINING: Duration = Duration::from_secs(2);

/// A claim of more patterns than this is compared for itself: what may take long is not done where others wait for it.
const FEW: usize = 8;

/// Everything that serving needs, whoever is served.
pub struct Desk {
    front: Arc<dyn Front>,
    clock: Box<dyn Clock + Send + Sync>,
    root: PathBuf,
    limits: Limits,
    paths: Paths,
    rooms: Rooms,
    /// Once the server goes away nobody waits any longer.
    closing: CancellationToken,
    /// Those who are being answered.
    asked: TaskTracker,
    pending: Arc<Pending>,
    reading: Turns,
    alone: Turns,
}

/// How a request reaches its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// It changes nothing that others wait for.
    Reads,
    /// One transaction of one project.
    Writes,
    /// It may wait, concern two projects, look at many files, or run other commands.
    Alone,
}

fn way(request: &Request) -> Way {
    match request {
        _ if may_take_long(request) => Way::Alone,
        // Nobody who reads waits for a glance at files.
        Request::Look(input) if input.trees => Way::Alone,
        Request::Look(_) | Request::Poll(_) | Request::Check(_) => Way::Reads,
        Request::Reserve(input) if input.patterns.len() > FEW => Way::Alone,
        _ => Way::Writes,
    }
}

/// Whether it waits for something, looks at files for as long as that takes, or runs other commands that may.
pub fn may_take_long(request: &Request) -> bool {
    let looks_at_files = matches!(request, Request::Check(input) if input.trees);
    let runs_others = matches!(request, Request::Recover(_) | Request::Redact(_) | Request::Hook(_));
    request.waits_for().is_some() || looks_at_files || runs_others
}

impl Desk {
    pub fn new(front: Arc<dyn Front>, root: PathBuf, limits: Limits) -> Arc<Self> {
        let clock = front.clock();
        Arc::new(Desk {
            front,
            clock,
            root,
            limits,
            paths: Paths::default(),
            rooms: Rooms::default(),
            closing: CancellationToken::new(),
            asked: TaskTracker::new(),
            pending: Arc::default(),
            reading: Turns::of(READERS),
            alone: Turns::of(ALONE),
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

    fn resolve(&self, project: Option<&str>) -> Result<ProjectKey> {
        match project {
            Some(path) => self.paths.find(path, self.monotonic()),
            None => Err(Code::ProjectUnresolved.refuse("no project is named; say `project`, the absolute path of it")),
        }
    }

    /// Time that only goes forward.
    pub fn monotonic(&self) -> Span {
        self.clock.monotonic()
    }

    fn home(&self) -> Home {
        Home::new(self.root.clone(), self.limits.clone(), self.now().millis())
    }

    /// Answers one request.
    pub async fn ask(self: &Arc<Self>, ask: Ask) -> Answer {
        let (verb, since) = (ask.request.verb(), self.clock.monotonic());
        let (command, said, key) = (ask.command.clone(), ask.said.clone(), ask.key.clone());
        let answered = self.answer(ask).await;
        let refuse = |refusal| Answer::refused(&command, &said, Some(&key), &refusal, self.now());
        let answer = answered.unwrap_or_else(refuse);
        measured(verb, &answer, self.clock.monotonic().as_millis() - since.as_millis());
        self.log(&said, &answer);
        answer
    }

    async fn answer(self: &Arc<Self>, ask: Ask) -> Result<Answer> {
        let turn = if way(&ask.request) == Way::Reads { Some(self.reading.take().await?) } else { None };
        let known = ask.said.place.clone();
        let known = known.or_else(|| self.paths.known(ask.said.project.as_ref()?, self.monotonic()));
        // What only joins a queue, and needs to look nowhere, is there sooner than a thread that does so for it.
        let is_quick = known.is_some() && way(&ask.request) == Way::Writes && !ask.request.looks_ahead();
        let desk = self.clone();
        let begin = move || {
            let (command, said) = (ask.command.clone(), ask.said.clone());
            let project = known.map_or_else(|| desk.resolve(said.project.as_deref()), Ok);
            let job = match project.and_then(|project| Job::open(&desk, ask, &project)) {
                Ok(job) => job,
                // It came to no store: there is nothing that a key could settle.
                Err(refusal) => {
                    return Ok(Ok(Begun::Answered(Answer::refused(&command, &said, None, &refusal, desk.now()))));
                }
            };
            // Most callers have nothing on its way, and need no second thread.
            if desk.pending.is_settled(&job.name()) { job.begin().map(Ok) } else { Ok(Err((job, turn))) }
        };
        let begun = match if is_quick { begin()? } else { blocking(begin).await?? } {
            Ok(begun) => begun,
            Err((too_early, turn)) => {
                self.pending.settled(&too_early.name()).await;
                blocking(move || {
                    let _turn = turn;
                    too_early.begin()
                })
                .await??
            }
        };
        match begun {
            Begun::Answered(answer) => Ok(answer),
            Begun::Queued(verdict) => self.verdict(verdict).await,
            Begun::Alone(job) => alone::ask(self, job).await,
        }
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

    /// Nobody waits from now on; what has begun goes on to its end.
    pub fn close(&self) {
        self.closing.cancel();
        self.asked.close();
    }

    /// Waits until everybody has an answer, after it was closed.
    pub async fn answered(&self) {
        self.asked.wait().await;
    }

    /// Gives the archives what they lack, after everybody was answered. What takes longer is left behind.
    pub async fn drain(&self) {
        let written: Vec<ProjectKey> = self.rooms.written();
        let front = self.front.clone();
        let _ = blocking(move || front.drain_at_once(&written, DRAINING)).await;
    }

    /// Waits until the server goes away.
    pub async fn closed(&self) {
        self.closing.cancelled().await;
    }

    async fn verdict(self: &Arc<Self>, verdict: oneshot::Receiver<Verdict>) -> Result<Answer> {
        match verdict.await.map_err(|_| broke())? {
            Verdict::Answered(answer) => Ok(answer),
            Verdict::Alone(job) => alone::ask(self, job).await,
        }
    }

    /// Wakes whenever something was committed in a project, also by another process.
    pub async fn watch(self: &Arc<Self>, project: Option<&str>) -> Result<Heard> {
        let (desk, project) = (self.clone(), project.map(str::to_owned));
        let project = blocking(move || desk.resolve(project.as_deref())).await??;
        self.watch_in(project).await
    }

    /// The same for a project that is known by its key.
    pub async fn watch_in(self: &Arc<Self>, project: ProjectKey) -> Result<Heard> {
        let desk = self.clone();
        blocking(move || desk.rooms.enter(&desk, &project, None, None)?.listen()).await?
    }

    /// Every project of this machine, by key, with the name of its folder.
    pub async fn projects(self: &Arc<Self>) -> Result<Vec<(ProjectKey, String)>> {
        let desk = self.clone();
        blocking(move || desk.home().places()).await?
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

/// What a thread that may block says; a panic is a fault of ours, and everybody else is served on.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|_| broke())
}

fn broke() -> Refusal {
    Code::Internal.refuse("the request could not be carried out")
}
