//! What the program lends to its server: the words of the command line, its sentences, and the commands that it runs.

use std::sync::LazyLock;
use std::time::Duration;

use clap::Parser;
use relay_core::domain::name::ProjectKey;
use relay_core::domain::time::{Span, Timestamp};
use relay_core::error::Code;
use relay_core::installation::{Installation, Question};
use relay_core::playbook::{Condition, Escalation, Step};
use relay_core::store::{Clock, Result};
use relay_core::verbs::{Caller, Outcome, Request};
use relay_server::{Answer, Body, Front, Speech, Tool};
use relay_store::Home;
use relay_store::repository::User;
use relay_store::sqlite::Sqlite;
use serde_json::{Map, Value};

use crate::app::App;
use crate::cli::{self, Cli, tools};
use crate::clock::SystemClock;
use crate::hook::sessions;
use crate::installation::Here;
use crate::output::Output;
use crate::{environment, human, process, render};

pub struct Served {
    /// What stands for the owner of the stores.
    pub owner: String,
}

impl Front for Served {
    fn tools(&self) -> &[Tool] {
        static TOLD: LazyLock<Vec<Tool>> =
            LazyLock::new(|| tools::TOOLS.iter().map(|tool| tool.told.clone()).collect());
        &TOLD
    }

    fn request(&self, tool: &str, arguments: Map<String, Value>) -> Result<Request> {
        let known = tools::find(tool).ok_or_else(|| Code::InputInvalid.refuse(format!("there is no tool {tool:?}")))?;
        tools::request(known, &arguments)
    }

    fn text(&self, answer: &Answer, speech: Speech, boundary: &str) -> String {
        match &answer.body {
            Body::Done(done) => render::done(done, answer.at, speech, boundary),
            Body::Failed(failure) => render::failure(failure, speech),
        }
    }

    fn clock(&self) -> Box<dyn Clock + Send + Sync> {
        Box::new(SystemClock::new())
    }

    fn installation(&self, home: &Home, project: &ProjectKey, caller: &Caller) -> Box<dyn Installation> {
        let here = Here { home: home.clone(), project: project.clone(), output: Output { json: true } };
        let credential = caller.credential.clone();
        Box::new(Lent { here, is_owner: credential == self.owner, credential })
    }

    fn user(&self) -> User {
        environment::user()
    }

    fn is_human(&self, shown: &str) -> Result<()> {
        human::is_shown(&environment::home()?, shown)
    }

    fn session(&self, said: Option<&str>) -> Option<String> {
        let home = environment::home().ok()?;
        said.map(|session| sessions::canonical(&home, session.to_owned())).or_else(|| sessions::around(&home))
    }

    fn drain(&self, project: &ProjectKey) {
        if let (false, Ok(program)) = (environment::drains_later(), environment::own_program()) {
            let drains = process::leave_behind(&program, &["drain", "--background", "--project", project.as_str()]);
            drains.into_iter().for_each(process::reap);
        }
    }

    fn drain_at_once(&self, projects: &[ProjectKey], time: Duration) {
        if let (false, Ok(program)) = (environment::drains_later(), environment::own_program()) {
            let drains = projects.iter().map(|project| vec!["drain", "--wait", "--project", project.as_str()]);
            process::run_for_a_while(&program, &drains.collect::<Vec<_>>(), time);
        }
    }

    fn clean_up(&self, store: &Sqlite, gate_wait: Span, outcome: &mut Outcome) {
        cli::clean_up_after(store, gate_wait, outcome);
    }

    fn log(&self, line: &str) {
        Output { json: true }.complain(&format!("{line}\n"));
    }

    #[cfg(feature = "test-doors")]
    fn has_fixtures(&self) -> bool {
        environment::test_fixtures()
    }
}

/// The machine around a store, for somebody who reaches it through the server. A command runs as the owner of the stores, so
/// whoever is not that one has its steps taken in its own name instead, and an operator's command not at all.
struct Lent {
    here: Here,
    is_owner: bool,
    credential: String,
}

impl Installation for Lent {
    fn folder(&self) -> String {
        self.here.folder()
    }

    fn run(&self, argv: &[String]) -> Result<Value> {
        if self.is_owner {
            return self.here.run(argv);
        }
        let parsed = Cli::try_parse_from(argv).map_err(|fault| Code::Internal.refuse(fault.to_string()))?;
        let Some(request) = parsed.request() else {
            let text = "this step is for the owner of the stores; `relay send --to human` asks the person in charge";
            return Err(Code::Unauthorized.refuse(text).with("served", true));
        };
        App::new(parsed.globals).run_for(&self.credential, &request?)
    }

    fn show(&self, _: &[Step]) {}

    fn agrees(&self, _: &Step) -> bool {
        false
    }

    fn holds(&self, condition: &Condition) -> Result<bool> {
        self.here.holds(condition)
    }

    fn note(&self, escalation: &Escalation, at: Timestamp) -> Option<String> {
        self.here.note(escalation, at)
    }

    fn questions(&self) -> Vec<Question> {
        self.here.questions()
    }

    fn settle(&self, case: &str) {
        self.here.settle(case);
    }

    fn tries(&self, cause: &str, since: Timestamp) -> usize {
        self.here.tries(cause, since)
    }

    fn note_try(&self, cause: &str, at: Timestamp) {
        self.here.note_try(cause, at);
    }

    fn forget_tries(&self, cause: &str, at: Timestamp) {
        self.here.forget_tries(cause, at);
    }
}
