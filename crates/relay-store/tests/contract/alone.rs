//! Everything around a store that a verb may use, where there is nothing: no other project, no repository, no machine. Time is
//! what the test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use relay_core::domain::limits::Limits;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::pattern::Case;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::installation::{Installation, Question};
use relay_core::playbook::{Condition, Escalation, Step};
use relay_core::store::{Bus, Change, Clock, Repository, Result, Store, Wait};
use relay_core::verbs::{self, Begun, Caller, Ctx, Done, Key, Request, Waiting};
use relay_store::SystemRandom;
use serde_json::{Value, json};

use super::{NOW, Place, name, register, write};

/// A project in such surroundings, with three agents.
pub struct Alone<'a> {
    pub place: &'a dyn Place,
    pub now: AtomicI64,
    /// The time that only goes forward.
    pub ran: AtomicI64,
    /// By how much it does so whenever it is read.
    pub pace: AtomicI64,
}

impl<'a> Alone<'a> {
    /// RedForest takes mail from its contacts only, and holds `src`.
    pub fn new(place: &'a dyn Place) -> Self {
        write(&*place.open(), |tx| {
            for agent in ["BlueLake", "RedForest", "GreenHill"] {
                register(tx, agent);
            }
        });
        let alone = Alone { place, now: AtomicI64::new(NOW.millis()), ran: AtomicI64::new(0), pace: AtomicI64::new(0) };
        alone.run("RedForest", "policy", &json!({"policy": "contacts_only"}));
        alone.run("RedForest", "reserve", &json!({"patterns": ["src"], "ttl": "1h"}));
        alone
    }

    /// Both kinds of time.
    pub fn pass(&self, time: Span) {
        self.now.fetch_add(time.as_millis(), Ordering::Relaxed);
        self.ran.fetch_add(time.as_millis(), Ordering::Relaxed);
    }

    /// A context of its own: with others of the same caller it shares the project and the clock.
    pub fn with<T>(&self, agent: &str, key: &str, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
        self.with_caller(Caller { credential: "uid:1".into(), named: Some(name(agent)), ..Caller::default() }, key, act)
    }

    pub fn with_caller<T>(&self, caller: Caller, key: &str, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
        let (store, limits) = (self.place.open(), Limits::default());
        act(&Ctx {
            store: &*store,
            bus: self,
            repository: self,
            installation: self,
            clock: self,
            random: &SystemRandom,
            limits: &limits,
            project: ProjectKey::resolved("/srv/app"),
            caller,
            key: Key { text: key.to_owned(), chosen: false },
            now: self.now(),
            pid: std::process::id(),
        })
    }

    pub fn run(&self, agent: &str, verb: &str, args: &Value) -> Done {
        self.run_as(agent, &format!("{agent} {verb} {args}"), &request(verb, args))
    }

    pub fn run_as(&self, agent: &str, key: &str, asked: &Request) -> Done {
        self.with(agent, key, |ctx| verbs::run(ctx, asked).unwrap())
    }

    pub fn begin(&self, agent: &str, key: &str, asked: &Request) -> Result<Begun> {
        self.with(agent, key, |ctx| verbs::begin(ctx, asked))
    }

    /// Begins what has to wait.
    pub fn wait(&self, agent: &str, verb: &str, args: &Value) -> Waiting {
        match self.begin(agent, &format!("{agent} waits"), &request(verb, args)).unwrap() {
            Begun::Waits(waiting) => waiting,
            Begun::Done(done) => panic!("nothing to wait for: {done:?}"),
        }
    }

    pub fn look(&self, agent: &str, waiting: &mut Waiting) -> Result<Option<Done>> {
        self.with(agent, "another key", |ctx| waiting.look(ctx))
    }

    pub fn patience(&self, waiting: &Waiting) -> Span {
        self.with("BlueLake", "another key", |ctx| waiting.patience(ctx.clock))
    }

    pub fn waits(&self) -> Vec<Wait> {
        self.place.open().presence().waits()
    }
}

pub fn request(verb: &str, args: &Value) -> Request {
    Request::from_tool(verb, args.as_object().unwrap()).unwrap()
}

pub fn result(done: &Done) -> Value {
    serde_json::to_value(&done.outcome).unwrap()
}

impl Clock for Alone<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Span {
        Span::millis(self.ran.fetch_add(self.pace.load(Ordering::Relaxed), Ordering::Relaxed))
    }
}

impl Bus for Alone<'_> {
    fn open(&self, _: &ProjectKey) -> Result<Option<(ProjectKey, Box<dyn Store>)>> {
        Ok(None)
    }

    fn find(&self, _: &str) -> Result<Vec<ProjectKey>> {
        Ok(Vec::new())
    }
}

impl Repository for Alone<'_> {
    fn roots(&self) -> Vec<String> {
        vec!["/srv/app".into()]
    }

    fn case(&self) -> Case {
        Case::Sensitive
    }

    fn is_file(&self, _: &str) -> bool {
        true
    }

    fn tracked(&self) -> Option<Arc<[String]>> {
        None
    }

    fn last_change(&self, path: &str, _: u32) -> Result<Change> {
        Err(Code::InputInvalid.refuse(format!("{path} has no history")))
    }
}

impl Installation for Alone<'_> {
    fn folder(&self) -> String {
        self.place.address()
    }

    fn run(&self, argv: &[String]) -> Result<Value> {
        Err(Code::Internal.refuse(format!("nothing runs {argv:?}")))
    }

    fn show(&self, _: &[Step]) {}

    fn agrees(&self, _: &Step) -> bool {
        false
    }

    fn holds(&self, _: &Condition) -> Result<bool> {
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
