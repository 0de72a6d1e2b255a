//! What the protocol needs from the outside, as contracts in prose. Each sentence is a promise that every
//! implementation keeps and that a test holds it to.

use std::path::Path;

use crate::domain::agent::Agent;
use crate::domain::contact::Link;
use crate::domain::event::{Event, Happened, Number, Text, Told, Twin};
use crate::domain::message::Message;
use crate::domain::name::{AgentName, Party, ProjectKey, ThreadId};
use crate::domain::pattern::Case;
use crate::domain::reservation::Reservation;
use crate::domain::thread::Thread;
use crate::domain::time::{Span, Timestamp};
use crate::domain::worktree::{Changed, Head, Seen, Unseen, WorkTree};
use crate::error::Refusal;

pub type Result<T> = std::result::Result<T, Refusal>;

/// The store of one project.
pub trait Store {
    /// Waits for this writer's turn, at most `errand.wait` (`STORE_BUSY`, naming the holder), then sees the newest
    /// committed state; nobody else writes until the transaction ends. Dropping it undoes everything.
    fn begin(&self, errand: Errand<'_>) -> Result<Box<dyn Tx + '_>>;

    /// A view of the newest committed state. It never waits for a writer, and does not change while it is held.
    fn read(&self) -> Result<Box<dyn Facts + '_>>;

    /// Makes everything that can be read now survive anything: also what a process committed that died before its sync,
    /// and that whoever comes after it sees all the same.
    fn sync(&self) -> Result<()>;

    /// The same where a sync may have failed, after which the next one proves nothing: what was committed is written a second
    /// time. Waits for this caller's turn like a writer.
    fn settle(&self, wait: Span) -> Result<()>;

    fn presence(&self) -> &dyn Presence;

    /// A watch that was armed before it is returned: a commit after this call wakes it, also one of another process.
    fn watch(&self) -> Result<Box<dyn Watch>>;

    /// The last event that the git archive has; 0 when it has none.
    fn archived(&self) -> Result<Number>;

    /// How much room it takes, as far as that can be told at a glance.
    fn size(&self) -> Size;
}

/// The room that a store takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Size {
    pub bytes: u64,
    /// What was written and is not folded into it yet.
    pub log_bytes: u64,
}

/// Why somebody takes the gate; shown to those who wait for it.
#[derive(Clone, Copy, Debug)]
pub struct Errand<'a> {
    pub verb: &'a str,
    pub agent: &'a str,
    pub wait: Span,
    /// False only for what may be lost in a power cut: surfaced, read, kept failures.
    pub durable: bool,
}

/// One writing verb.
pub trait Tx: Facts {
    /// Gives the event the next number, chains it, keeps its texts beside it and brings every projection up to date.
    fn append(
        &mut self,
        at: Timestamp,
        actor: &Party,
        key: Option<&str>,
        what: Happened,
        texts: Vec<Text>,
    ) -> Result<Number>;

    /// Remembers the answer to a request for ever.
    fn remember(&mut self, actor: &str, key: &str, answer: &Remembered) -> Result<()>;

    /// Keeps a failed request: the newest twenty of an agent, outside the history. Whatever failed more than a day before goes.
    fn keep_failure(&mut self, actor: &str, key: &str, failure: &KeptFailure) -> Result<()>;
    fn forget_failure(&mut self, actor: &str, key: &str) -> Result<()>;

    /// Notes something that another project is yet to be told, or to be asked about: one per actor and key.
    fn note_crossing(&mut self, crossing: &Crossing) -> Result<()>;
    fn drop_crossing(&mut self, actor: &Party, key: &str) -> Result<()>;

    /// After it returns, everything in the transaction survives anything (`durable` errands), or a process death.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A remembered answer. It holds ids and names, never a message's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    /// Empty where only the key is known any more.
    pub verb: String,
    /// Salts the digest of the request, so that an erased text cannot be guessed from it.
    pub salt: [u8; 16],
    /// Empty where its texts were erased.
    pub request: String,
    pub answer: String,
    /// The newest event when it was given; of an answer that is lost, the event that used the key.
    pub number: Number,
}

impl Remembered {
    /// Why nobody can tell any more whether another request is the same. Its key stays used: nothing is done twice, and
    /// nothing that is new is taken for it.
    pub fn is_beyond_compare(&self) -> Option<&'static str> {
        if self.verb.is_empty() {
            Some("was used before the store was rebuilt, and its answer is lost")
        } else if self.request.is_empty() {
            Some("belongs to a request whose texts were erased")
        } else {
            None
        }
    }
}

/// A failed request that can be run again.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptFailure {
    pub code: String,
    pub at: Timestamp,
    pub request: String,
    pub details: String,
}

/// One step of something that concerns two projects, kept until the other one has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    pub key: String,
    /// The other project.
    pub project: ProjectKey,
    pub actor: Party,
    /// The process that carries it; while that lives nobody else does.
    pub pid: u32,
    pub errand: String,
}

/// Which mail of an inbox is wanted.
#[derive(Clone, Debug)]
pub struct InboxQuery<'a> {
    pub recipient: &'a Party,
    /// Only mail delivered by a later event than this.
    pub after: Number,
    pub thread: Option<&'a ThreadId>,
    pub from: Option<&'a Party>,
    pub urgent: bool,
    pub with_read: bool,
    pub never_surfaced: bool,
    pub limit: usize,
    pub bodies: bool,
}

impl<'a> InboxQuery<'a> {
    /// Everything unread, without the texts.
    pub fn unread(recipient: &'a Party, limit: usize) -> Self {
        InboxQuery {
            recipient,
            after: 0,
            thread: None,
            from: None,
            urgent: false,
            with_read: false,
            never_surfaced: false,
            limit,
            bodies: false,
        }
    }
}

/// Which events are wanted, of which stretch of the history.
#[derive(Clone, Copy, Debug)]
pub struct EventQuery<'a> {
    /// Only events with a higher number than this.
    pub after: Number,
    /// Only events with this number or a lower one.
    pub up_to: Number,
    /// Only events of these kinds; of every kind when there are none.
    pub kinds: &'a [&'a str],
    /// Only events of this actor, as its name is written; without regard to case.
    pub actor: Option<&'a str>,
    /// Without the messages of other threads, and their receipts; what else happened is not left out.
    pub thread: Option<&'a ThreadId>,
    /// Only events with this time or a later one.
    pub since: Option<Timestamp>,
    /// Only events with this time or an earlier one.
    pub until: Option<Timestamp>,
}

impl EventQuery<'_> {
    /// Everything between two numbers, the second included.
    pub fn between(after: Number, up_to: Number) -> Self {
        EventQuery { after, up_to, kinds: &[], actor: None, thread: None, since: None, until: None }
    }
}

/// Mail from one to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub from: Party,
    pub to: Party,
    pub blind: bool,
    pub messages: usize,
    pub newest: Number,
}

/// Before no number at all.
pub const NEWEST: Number = Number::MAX;

/// A pair of live claims that share a path: (mine, theirs).
pub type Pair = (Reservation, Reservation);

/// Reading. Names and ids are found without regard to case.
pub trait Facts {
    /// The stable id of the project, whatever its path, and its newest event's number and time.
    fn tip(&self) -> Result<Tip>;

    fn agent(&self, name: &AgentName) -> Result<Option<Agent>>;
    fn agent_of_session(&self, session: &str) -> Result<Option<Agent>>;
    /// In the order of registration.
    fn agents(&self) -> Result<Vec<Agent>>;

    fn thread(&self, id: &ThreadId) -> Result<Option<Thread>>;
    /// Those whose id begins so, without regard to case, and whose newest event is an earlier one than `before`: the most
    /// recently active first.
    fn threads(&self, beginning: &str, before: Number, limit: usize) -> Result<Vec<Thread>>;
    /// How many threads are not done.
    fn open_threads(&self) -> Result<usize>;
    fn members(&self, thread: &ThreadId) -> Result<Vec<Party>>;
    fn is_member(&self, thread: &ThreadId, party: &Party) -> Result<bool>;
    /// The last `limit` messages before a number, without their bodies, oldest first.
    fn thread_messages(&self, thread: &ThreadId, before: Number, limit: usize) -> Result<Vec<Message>>;
    /// The subjects of a thread's messages, in order; those that were erased are left out.
    fn subjects(&self, thread: &ThreadId) -> Result<Vec<(Number, String)>>;
    /// The first `limit` messages after a number, with their bodies, oldest first.
    fn thread_messages_after(&self, thread: &ThreadId, after: Number, limit: usize) -> Result<Vec<Message>>;
    /// The last `limit` messages that were sent at this time or before, without their bodies, oldest first.
    fn thread_messages_until(&self, thread: &ThreadId, until: Timestamp, limit: usize) -> Result<Vec<Message>>;

    fn message(&self, id: Number) -> Result<Option<Message>>;
    /// The same without its body, which may be long: for those who look at who and where, not at what.
    fn envelope(&self, id: Number) -> Result<Option<Message>>;
    /// This project's copy of a message that another project knows under its own number, without its body.
    fn message_of_twin(&self, twin: &Twin) -> Result<Option<Message>>;
    /// Oldest delivery first. Mail that one event delivered is never split over two pages.
    fn inbox(&self, query: &InboxQuery<'_>) -> Result<Vec<Message>>;
    /// Counts no further than `most`.
    fn unread(&self, recipient: &Party, most: usize) -> Result<usize>;
    /// Newest first.
    fn outbox(&self, sender: &Party, limit: usize) -> Result<Vec<Message>>;
    /// Messages that `party` has yet to acknowledge, oldest first.
    fn acks_owed(&self, party: &Party, limit: usize) -> Result<Vec<Message>>;
    /// Messages of `sender` that somebody has yet to acknowledge, oldest first.
    fn acks_awaited(&self, sender: &Party, limit: usize) -> Result<Vec<Message>>;
    /// Whatever somebody has yet to acknowledge, and who; oldest first.
    fn acks_waiting(&self, limit: usize) -> Result<Vec<(Number, Party)>>;
    /// How many messages each has yet to acknowledge.
    fn acks_counted(&self) -> Result<Vec<(Party, usize)>>;
    /// Who wrote to whom after an event: how many messages, and the newest of them. Blind copies are told apart.
    fn traffic(&self, after: Number) -> Result<Vec<Traffic>>;
    /// The newest message of `sender` with exactly this subject and body. It looks back no further than to the first
    /// message from before `since`, or from a clock too far ahead of `now` to be believed, and no further than
    /// `DUPLICATE_AMONG` messages.
    fn same_text(
        &self,
        sender: &Party,
        subject: &str,
        body: &str,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Number>>;
    /// The newest messages of `sender` that `recipient` got, newest first.
    fn newest_from(&self, sender: &Party, recipient: &Party, limit: usize) -> Result<Vec<Number>>;
    fn wrote_since(&self, sender: &Party, recipient: &Party, since: Timestamp) -> Result<bool>;
    /// Messages of `sender` that wait for `recipient`'s consent.
    fn held(&self, sender: &Party, recipient: &Party) -> Result<Vec<Number>>;
    /// Everything of `sender` that waits for somebody's consent.
    fn held_of(&self, sender: &Party) -> Result<Vec<(Number, Party)>>;
    /// The messages before a number that have all the words, newest first.
    fn search(&self, words: &str, before: Number, limit: usize) -> Result<Vec<Number>>;

    /// Claims that are neither released nor long expired; callers ask `is_live`.
    fn claims(&self) -> Result<Vec<Reservation>>;
    fn claims_of(&self, holder: &AgentName) -> Result<Vec<Reservation>>;
    /// The holder's claims on exactly this pattern, the one that lives longest last; a takeover can make it two.
    fn claims_on(&self, holder: &AgentName, pattern: &str) -> Result<Vec<Reservation>>;
    fn count_claims(&self, holder: &AgentName, now: Timestamp) -> Result<usize>;
    /// The holder's claims in the second half of their time.
    fn claims_to_renew(&self, holder: &AgentName, now: Timestamp) -> Result<Vec<Reservation>>;
    fn claims_for(&self, reason: &ThreadId) -> Result<Vec<Reservation>>;
    fn claim(&self, id: Number) -> Result<Option<Reservation>>;
    /// All claims that could share a path with a pattern of one of these literal prefixes, and perhaps others; each once,
    /// in the order of their ids. However many prefixes there are, a claim is read no more than twice.
    fn claims_near(&self, prefixes: &[&str]) -> Result<Vec<Reservation>>;
    /// The first `limit` pairs of claims that share a path, one of them held by `holder` and the other by somebody else, of which
    /// one is exclusive and neither has expired by then; and perhaps others.
    fn pairs(&self, holder: &AgentName, now: Timestamp, limit: usize) -> Result<Vec<Pair>>;
    /// Whether the two hold live claims that share a path.
    fn share_a_path(&self, one: &AgentName, other: &AgentName, now: Timestamp) -> Result<bool>;
    fn told(&self, agent: &AgentName) -> Result<Vec<Told>>;
    /// Who took this claim from `holder`, if somebody did.
    fn taker(&self, id: Number, holder: &AgentName) -> Result<Option<Party>>;
    /// The newest claim on exactly this pattern that somebody took from `holder`, and who did.
    fn taken_on(&self, holder: &AgentName, pattern: &str) -> Result<Option<(Number, Party)>>;

    /// The newest link between the two, whoever asked.
    fn link(&self, one: &Party, other: &Party) -> Result<Option<Link>>;
    fn links_of(&self, party: &Party) -> Result<Vec<Link>>;
    /// The newest link between any two, those before a number, newest first.
    fn links(&self, before: Number, limit: usize) -> Result<Vec<Link>>;

    /// The other projects that some agent here has had to do with, by their newest known paths.
    fn neighbours(&self) -> Result<Vec<ProjectKey>>;
    /// The moves of other projects that this one was told of: the event, from where and to where; oldest first.
    fn moves(&self) -> Result<Vec<(Number, ProjectKey, ProjectKey)>>;

    /// The events of a stretch of the history, in order. The work is bounded by the stretch, whatever is wanted of it.
    fn events(&self, query: &EventQuery<'_>) -> Result<Vec<Event>>;
    /// The texts kept beside an event, by field; an erased one is absent.
    fn texts(&self, number: Number) -> Result<Vec<(String, String)>>;

    fn remembered(&self, actor: &str, key: &str) -> Result<Option<Remembered>>;
    fn kept_failure(&self, actor: &str, key: &str) -> Result<Option<KeptFailure>>;
    /// The newest first, with their keys.
    fn kept_failures(&self, actor: &str) -> Result<Vec<(String, KeptFailure)>>;
    fn crossings(&self) -> Result<Vec<Crossing>>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Tip {
    pub project: String,
    pub number: Number,
    pub at: Option<Timestamp>,
    pub hash: String,
}

/// Who is here, and who waits for whom. Beside the history, never synced, and gone with the process it speaks of.
pub trait Presence {
    fn seen(&self, agent: &AgentName) -> Option<Timestamp>;
    fn touch(&self, agent: &AgentName, now: Timestamp);
    /// Whether a process that announced itself with `enter` still runs for this agent, or the harness that it was last noted
    /// to be in.
    fn has_process(&self, agent: &AgentName) -> bool;
    /// Notes where the agent's session runs. What its harness writes down there is a sign of life too, and counts as seen.
    fn note(&self, agent: &AgentName, harness: &Harness);
    /// Forgets when the agent was seen, and where: it has left.
    fn forget(&self, agent: &AgentName);
    /// Whether the process runs. A number that another process took over counts as running.
    fn process_lives(&self, pid: u32) -> bool;
    /// Announces this process until the guard is dropped or the process dies, however it dies.
    fn enter(&self, wait: &Wait) -> Result<Box<dyn Guard>>;
    /// The announcements of all living processes, oldest first.
    fn waits(&self) -> Vec<Wait>;
    /// Those of them that are of one verb; the others cost nothing.
    fn waits_of(&self, verb: &str) -> Vec<Wait>;
}

/// Where a session runs. The number of a process means nothing on another machine, nor after this one has started anew.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Harness {
    pub machine: String,
    pub pid: u32,
    /// When the process began, as the system counts it: another one may have its number by now.
    pub began: u64,
    /// Where the harness writes down what is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

/// An announced process: what it runs for and, if it waits, for whom.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Wait {
    pub agent: Party,
    pub verb: String,
    pub pid: u32,
    /// Orders waiters: first come, first served.
    pub ticket: u64,
    pub for_whom: Vec<Party>,
    pub patterns: Vec<String>,
}

/// An announcement that stands. It goes with whatever waits, to whichever thread looks next.
pub trait Guard: Send {
    /// Replaces what was announced; ticket and verb stay.
    fn update(&mut self, wait: &Wait);
}

pub trait Watch {
    /// Blocks until something was committed or the time is over.
    fn wait(&mut self, at_most: Span) -> Result<()>;
}

/// The other projects on this bus.
pub trait Bus {
    /// Opens an existing project's store; `None` when relay knows no such project. A path that a moved project had
    /// leads to it, unless another project is there now; the path that it has now comes with it.
    fn open(&self, project: &ProjectKey) -> Result<Option<(ProjectKey, Box<dyn Store>)>>;
    /// The known projects that a caller may mean by an absolute path, or by the last part of one; failing that, those
    /// that had such a path.
    fn find(&self, text: &str) -> Result<Vec<ProjectKey>>;
}

/// What relay reads from the repository around the project. It never writes there, and nothing that is configured there
/// runs: no filter, merge or diff driver, no hook, no fsmonitor. Paths are from the project root, as text: a name that is
/// no UTF-8 cannot be claimed, and is not told. Whoever looks at work trees says how long that may take, and is told
/// when it took longer; what cannot be read is not known, and never an error. A project need not be in a repository, and
/// then has no work trees.
pub trait Repository {
    /// The project root first, then its other worktrees.
    fn roots(&self) -> Vec<String>;
    fn case(&self) -> Case;
    /// Whether this path of the project is a file: such a claim is narrow, and nothing needs to be counted.
    fn is_file(&self, path: &str) -> bool;
    /// Tracked paths, sorted; `None` outside a repository and above 50,000 files.
    fn tracked(&self) -> Option<std::sync::Arc<[String]>>;
    /// The commit that last changed a line, counted from 1 as the working tree has it. A path of another worktree is looked
    /// for in what that one has checked out, and so is a relative path by whoever is in there. `INPUT_INVALID` where no
    /// commit can be named, `PATTERN_OUTSIDE_PROJECT` for a path that is not of the project.
    fn last_change(&self, path: &str, line: u32) -> Result<Change>;

    /// The work trees, the main one first; a bare repository has none of its own. A project that is a folder inside a
    /// repository has the one around it.
    fn work_trees(&self) -> Vec<WorkTree> {
        Vec::new()
    }
    /// What the work tree of this root has checked out, from two small files; none where there is none.
    fn head(&self, _root: &str) -> Option<Head> {
        None
    }
    /// What is not committed there, sorted by path: staged, not staged, untracked; never what is ignored. A rename is two
    /// paths, a submodule is one, and so is a repository inside; another work tree of the same repository is none.
    /// A file that only a filter could compare counts as modified once it differs from what git noted of it.
    fn changes(&self, _root: &str, _patience: Span) -> Seen<Vec<Changed>> {
        Err(Unseen::Nowhere)
    }
    /// The paths whose content in the index differs from that in HEAD, sorted: what a commit made now would change. Of
    /// a merge those that differ from everything that is merged; the rest was committed there. git commits from another
    /// index now and then; whoever knows which one names it.
    fn staged(&self, _root: &str, _index: Option<&Path>, _patience: Span) -> Seen<Vec<String>> {
        Err(Unseen::Nowhere)
    }
    /// The paths that differ between two commits, sorted; the new one may be the full name of a ref. Without an old one, or
    /// with one that is not here: those that were changed in the commits which no remote-tracking branch has.
    fn between(&self, _old: Option<&str>, _new: &str, _patience: Span) -> Seen<Vec<String>> {
        Err(Unseen::Nowhere)
    }
    /// The paths that commits changed which HEAD has there and which were made at this time or later, each with its newest
    /// one. git counts whole seconds, and so a commit of the same second is among them.
    fn committed(&self, _root: &str, _since: Timestamp, _patience: Span) -> Seen<Vec<(String, Timestamp)>> {
        Err(Unseen::Nowhere)
    }
    /// The paths, sorted, in which two work trees would conflict if they were merged now: HEAD with HEAD, each with the
    /// changes to what it tracks on top, and with those untracked files that the other one has too.
    fn conflicts(&self, _one: &str, _other: &str, _patience: Span) -> Seen<Vec<String>> {
        Err(Unseen::Nowhere)
    }
}

/// The last change of a line.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Change {
    /// From the project root.
    pub path: String,
    /// The path that the file had when the line was changed; none when that lay outside the project.
    #[serde(skip)]
    pub path_then: Option<String>,
    /// In the working tree.
    pub line: u32,
    /// The same line in HEAD.
    pub committed_line: u32,
    pub commit: String,
    pub author: String,
    pub at: Timestamp,
    pub subject: String,
    /// The line reads otherwise in the working tree.
    pub edited: bool,
}

pub trait Clock {
    fn now(&self) -> Timestamp;
    /// Time that only ever goes forward, for deadlines.
    fn monotonic(&self) -> Span;
}

pub trait Random {
    fn bytes(&self) -> [u8; 16];
}
