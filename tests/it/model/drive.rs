//! The two ways to the same verbs: inside this process, and through the binary.

use std::cell::Cell;
use std::sync::Arc;

use relay_core::domain::limits::Limits;
use relay_core::domain::name::{AgentName, ProjectKey};
use relay_core::domain::pattern::Case;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::installation::{Installation, Question};
use relay_core::playbook::{Condition, Escalation, Step};
use relay_core::store::{Clock, Random, Repository, Store};
use relay_core::verbs::{self, Caller, Ctx, Key, Request, recover, standing};
use relay_store::Home;
use relay_store::sqlite::Sqlite;
use relay_store::verify::Finding;
use serde_json::Value;
use tempfile::TempDir;

use super::Tally;
use super::state::{Call, Time};
use crate::bus::{Bus, EPOCH, findings};

/// Something that answers requests and keeps a store. A store of another kind is another driver.
pub trait Driver {
    fn new() -> Self;
    fn tally() -> &'static Tally;
    fn set_clock(&self, now: Time);
    /// The result, or the class of the refusal.
    fn call(&self, call: &Call) -> Result<Value, String>;
    fn store(&self) -> &dyn Store;
    /// What differs between the projections and a replay of the history.
    fn findings(&self) -> Vec<Finding>;
}

/// The verbs called directly: a clock that stands still, randomness from a seed, no repository.
pub struct InProcess {
    _root: TempDir,
    home: Home,
    store: Sqlite,
    project: ProjectKey,
    clock: Held,
    random: Seeded,
    limits: Limits,
}

struct Held(Cell<Time>);

impl Clock for Held {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.get())
    }

    fn monotonic(&self) -> Span {
        Span::millis(0)
    }
}

/// The numbers of splitmix64.
struct Seeded(Cell<u64>);

impl Random for Seeded {
    fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        for half in bytes.chunks_mut(8) {
            self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
            let mut number = self.0.get();
            number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            half.copy_from_slice(&(number ^ (number >> 31)).to_le_bytes());
        }
        bytes
    }
}

struct NoRepository;

impl Repository for NoRepository {
    fn roots(&self) -> Vec<String> {
        vec!["/model/repo".to_owned()]
    }

    fn case(&self) -> Case {
        Case::Sensitive
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn last_change(&self, _path: &str, _line: u32) -> relay_core::store::Result<relay_core::store::Change> {
        Err(relay_core::error::Code::InputInvalid.refuse("there is no repository"))
    }

    fn tracked(&self) -> Option<Arc<[String]>> {
        None
    }
}

/// Nothing around the store: no steps are run here.
struct Nothing;

impl Installation for Nothing {
    fn folder(&self) -> String {
        "/nonexistent".to_owned()
    }

    fn run(&self, argv: &[String]) -> relay_core::store::Result<Value> {
        panic!("the model takes no step by itself: {argv:?}")
    }

    fn show(&self, _: &[Step]) {}

    fn agrees(&self, _: &Step) -> bool {
        false
    }

    fn holds(&self, _: &Condition) -> relay_core::store::Result<bool> {
        Ok(false)
    }

    fn note(&self, _: &Escalation, _: Timestamp) -> Option<String> {
        None
    }

    fn questions(&self) -> Vec<Question> {
        Vec::new()
    }

    fn settle(&self, _: &str) {}

    fn tries(&self, _: &str, _: Timestamp) -> usize {
        0
    }

    fn note_try(&self, _: &str, _: Timestamp) {}

    fn forget_tries(&self, _: &str, _: Timestamp) {}
}

/// A folder in memory where there is one: thousands of commits wait for no disk.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

impl Driver for InProcess {
    fn new() -> Self {
        let (root, limits, project) = (folder(), Limits::default(), ProjectKey::resolved("/model/repo"));
        let home = Home::new(root.path().join("home"), limits.clone(), EPOCH);
        let store = home.open_or_create(&project).unwrap();
        InProcess {
            _root: root,
            home,
            store,
            project,
            clock: Held(Cell::new(EPOCH)),
            random: Seeded(Cell::new(1)),
            limits,
        }
    }

    fn tally() -> &'static Tally {
        static TALLY: Tally = Tally::new();
        &TALLY
    }

    fn set_clock(&self, now: Time) {
        self.clock.0.set(now);
    }

    fn call(&self, call: &Call) -> Result<Value, String> {
        let chosen = call.key.is_some();
        let text = call.key.clone().unwrap_or_else(|| relay_core::domain::event::hex(&self.random.bytes()));
        let ctx = Ctx {
            store: &self.store,
            bus: &self.home,
            repository: &NoRepository,
            installation: &Nothing,
            clock: &self.clock,
            random: &self.random,
            limits: &self.limits,
            project: self.project.clone(),
            caller: Caller {
                credential: "uid:1".to_owned(),
                named: Some(AgentName::parse(call.who).unwrap()),
                ..Caller::default()
            },
            key: Key { text, chosen },
            now: self.clock.now(),
            pid: std::process::id(),
        };
        match verbs::run(&ctx, &call.request) {
            Ok(done) => {
                if let Some(afterwards) = &done.afterwards {
                    // A process that another test starts holds a copy of our gate until it runs its own program. On a
                    // busy machine that outlasts the patience of surfacing, which then gives up, as it should.
                    let tip = || self.store.read().unwrap().tip().unwrap().number;
                    let before = tip();
                    let tries = std::iter::repeat_with(|| afterwards.commit(&ctx).unwrap());
                    assert!(tries.take(1_000).any(|()| tip() > before), "{call:?} surfaced nothing");
                }
                Ok(serde_json::to_value(&done.outcome).unwrap())
            }
            Err(refusal) => {
                // As a front does it: the failed request is kept, and must leave no trace in the history.
                let failure = recover::failure(&ctx, &call.request, &refusal);
                Err(failure.error.code.as_str().to_owned())
            }
        }
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn findings(&self) -> Vec<Finding> {
        findings(&self.home.folder(&self.project))
    }
}

/// The same through the command line.
pub struct Binary {
    bus: Bus,
    store: Sqlite,
    folder: std::path::PathBuf,
}

impl Driver for Binary {
    fn new() -> Self {
        let bus = Bus::new();
        let (home, project) = (Home::new(bus.home(), Limits::default(), EPOCH), ProjectKey::resolved(bus.key()));
        let store = home.open_or_create(&project).unwrap();
        Binary { folder: home.folder(&project), bus, store }
    }

    fn tally() -> &'static Tally {
        static TALLY: Tally = Tally::new();
        &TALLY
    }

    fn set_clock(&self, now: Time) {
        self.bus.set_clock(now);
    }

    fn call(&self, call: &Call) -> Result<Value, String> {
        let mut args = argv(&call.request);
        if let Some(key) = &call.key {
            args.extend(["--idempotency-key".to_owned(), key.clone()]);
        }
        // The model has no patience that ends; that of the breaker has tests of its own.
        let _ = std::fs::remove_file(self.folder.join("tries"));
        let run = self.bus.relay(call.who, &args);
        let answer = run.json();
        assert_eq!(answer["ok"] == true, run.status == 0, "{args:?}: {answer}");
        if answer["ok"] == true {
            return Ok(answer["result"].clone());
        }
        let code = answer["error"]["code"].as_str().unwrap().to_owned();
        run.fails(&code);
        Err(code)
    }

    fn store(&self) -> &dyn Store {
        &self.store
    }

    fn findings(&self) -> Vec<Finding> {
        findings(&self.folder)
    }
}

/// A request as somebody types it.
fn argv(request: &Request) -> Vec<String> {
    let mut line = Line(Vec::new());
    match request {
        Request::Start(input) if input.parent.is_some() => {
            line.word("register").maybe("--parent", input.parent.as_ref());
        }
        Request::Start(input) => {
            line.word("start").maybe("--session", input.session.as_ref()).flag("--take-over", input.take_over);
            line.each("--path", &input.path);
        }
        Request::Prepare(input) => {
            line.word("prepare").maybe("--thread", Some(&input.thread));
        }
        Request::Reserve(input) => {
            line.word("reserve").flag("--shared", input.shared).flag("--if-free", input.if_free);
            line.maybe("--ttl", input.ttl).maybe("--reason", input.reason.as_ref()).words(&input.patterns);
        }
        Request::Release(input) => {
            line.word("release").flag("--done", input.done).flag("--all", input.all).flag("--force", input.force);
            line.each("--id", &input.id).maybe("--reason", input.reason.as_ref()).maybe("--renew", input.renew);
            line.maybe("--why", input.why.as_ref()).words(&input.patterns);
        }
        Request::Link(input) => {
            line.word("link").maybe("--target", input.target.as_ref()).maybe("--ttl", input.ttl);
            line.flag("--accept", input.accept).flag("--block", input.block).flag("--revoke", input.revoke);
        }
        Request::Send(input) => {
            line.word("send").each("--to", &input.to).each("--cc", &input.cc).each("--bcc", &input.bcc);
            line.maybe("--subject", input.subject.as_ref()).maybe("--body", Some(&input.body));
            line.maybe("--thread", input.thread.as_ref()).maybe("--reply-to", input.reply_to);
            line.maybe("--importance", Some(input.importance.as_str())).flag("--ack-required", input.ack_required);
            line.flag("--hold", input.hold).flag("--no-recover", input.no_recover);
        }
        Request::Poll(input) => {
            line.word("poll").maybe("--limit", input.limit).maybe("--after", input.after);
            line.maybe("--thread", input.thread.as_ref()).flag("--urgent", input.urgent);
            line.flag("--all", input.all).flag("--read", input.read);
        }
        Request::Ack(input) => {
            line.word("ack").words(&input.ids).flag("--read", input.read);
        }
        Request::Policy(input) => {
            line.word("policy").word(input.policy.as_str());
        }
        Request::Standing(input) => {
            line.word(input.action.verb()).words(&input.name.iter().collect::<Vec<_>>());
            line.flag("--lift", input.action == standing::Action::Reinstate);
        }
        Request::Leave(input) => {
            line.word("leave").word(input.thread.as_str());
        }
        Request::Recover(input) => {
            line.word("recover").word(input.code.as_str()).flag("--retry", input.retry);
        }
        other => panic!("the model does not know {}", other.verb()),
    }
    line.0
}

struct Line(Vec<String>);

impl Line {
    fn word(&mut self, word: &str) -> &mut Self {
        self.0.push(word.to_owned());
        self
    }

    fn words<T: ToString>(&mut self, words: &[T]) -> &mut Self {
        self.0.extend(words.iter().map(ToString::to_string));
        self
    }

    fn flag(&mut self, flag: &str, given: bool) -> &mut Self {
        if given { self.word(flag) } else { self }
    }

    fn maybe<T: ToString>(&mut self, flag: &str, value: Option<T>) -> &mut Self {
        match value {
            Some(value) => self.word(flag).word(&value.to_string()),
            None => self,
        }
    }

    fn each<T: ToString>(&mut self, flag: &str, values: &[T]) -> &mut Self {
        values.iter().for_each(|value| {
            self.word(flag).word(&value.to_string());
        });
        self
    }
}
