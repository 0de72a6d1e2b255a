//! A request on its way through the server, and its answer.

use std::path::PathBuf;
use std::sync::Arc;

use relay_core::domain::name::{AgentName, ProjectKey};
use relay_core::domain::time::Timestamp;
use relay_core::error::Refusal;
use relay_core::playbook::Setting;
use relay_core::store::Result;
use relay_core::verbs::{Caller, Done, Key, Outcome, Request, recover};
use relay_core::wire::v1::{self, Failure};
use relay_store::SystemRandom;
use serde_json::Value;

use crate::desk::{self, Desk, Late};
use crate::quota::{self, Pass};

/// What is asked, by whom, and where.
#[derive(Debug, Clone)]
pub struct Ask {
    pub request: Request,
    /// The command or tool that makes it: its help is the help that is needed.
    pub command: String,
    pub said: Said,
    pub caller: Caller,
    pub key: Key,
    /// It is looked at and not asked: nothing of it is kept, not even that it failed.
    pub is_glance: bool,
}

impl Ask {
    /// Who asks, as it says so itself; none where only the store knows.
    pub fn who(&self) -> Option<String> {
        let agent = self.caller.named.as_ref().or(self.caller.variable.as_ref()).map(AgentName::key);
        agent.or_else(|| self.caller.session.as_ref().map(|session| format!("session {session}")))
    }

    pub fn refuse(&self, refusal: &Refusal, at: Timestamp) -> Answer {
        Answer::refused(&self.command, &self.said, Some(&self.key), refusal, at)
    }
}

/// What the caller said beside the request, in its own words.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub project: Option<String>,
    /// The very project, where it was found among the stores: no path has to lead to it.
    pub place: Option<ProjectKey>,
    /// The project is known from elsewhere: what is proposed next need not repeat it.
    pub project_is_known: bool,
    /// From where the caller sees the repository, beside the project itself.
    pub seen_from: Vec<PathBuf>,
    pub agent: Option<String>,
    pub key: Option<String>,
    /// The caller's program made it, and the caller did not choose it.
    pub key_is_made: bool,
}

impl Said {
    pub fn key(&self) -> Result<Key> {
        let key = Key::said(self.key.as_deref(), &SystemRandom)?;
        Ok(Key { chosen: key.chosen && !self.key_is_made, ..key })
    }

    /// Adds to what is proposed next what the caller had to say for this request.
    pub fn repeat(&self, done: &mut Done) {
        done.repeat(self.project.as_deref().filter(|_| !self.project_is_known), self.agent.as_deref());
    }
}

/// What is known of a caller before it says anything: from its token, or from the environment of a process that serves it
/// alone.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    pub credential: String,
    /// It is not the owner of the stores.
    pub separate: bool,
    pub project: Option<String>,
    /// `RELAY_AGENT`.
    pub agent: Option<String>,
    /// The harness's session.
    pub session: Option<String>,
    /// What lets it in, where others are served too.
    pub pass: Option<Pass>,
}

impl Origin {
    /// Answers a request, unless this one asks too much.
    pub async fn admit(&self, desk: &Arc<Desk>, ask: Ask) -> Answer {
        let Some(pass) = &self.pass else { return desk.ask(ask).await };
        if let Some(refusal) = &pass.too_fast {
            return ask.refuse(refusal, desk.now());
        }
        if !desk::may_take_long(&ask.request) {
            return desk.ask(ask).await;
        }
        let Some(_place) = pass.place() else { return ask.refuse(&quota::too_many_wait(), desk.now()) };
        let asked = ask.clone();
        let answer = desk.ask(ask).await;
        // It may have been long.
        if pass.was_revoked() { asked.refuse(&quota::revoked(), desk.now()) } else { answer }
    }

    /// Who a call speaks for, as far as it says so itself. No name makes it the human.
    pub fn caller(&self, said: &Said) -> Result<Caller> {
        let (named, variable) = (said.agent.as_deref(), self.agent.as_deref());
        let caller = Caller::said(self.credential.clone(), named, variable, self.session.clone())?;
        Ok(Caller { separate: self.separate, ..caller })
    }

    /// The human, who has shown the credential for that.
    pub fn human(&self) -> Caller {
        Caller::human(self.credential.clone())
    }
}

/// The answer, and what is to be done once it was written out.
#[derive(Debug)]
pub struct Answer {
    pub body: Body,
    pub at: Timestamp,
    /// What becomes true when the caller has it.
    pub late: Option<Box<Late>>,
}

/// One of the two shapes that an answer has.
#[derive(Debug)]
pub enum Body {
    Done(Box<Done>),
    Failed(Box<Failure>),
}

impl Answer {
    pub fn done(done: Done, at: Timestamp, late: Option<Box<Late>>) -> Self {
        Answer { body: Body::Done(Box::new(done)), at, late }
    }

    pub fn failed(failure: Failure, at: Timestamp) -> Self {
        Answer { body: Body::Failed(Box::new(failure)), at, late: None }
    }

    /// The answer to what never reached a store, or of which nobody knows whether it did.
    pub fn refused(command: &str, said: &Said, key: Option<&Key>, refusal: &Refusal, at: Timestamp) -> Self {
        let is_name = |name: &String| AgentName::parse(name).is_ok();
        let setting = Setting {
            project: said.project.clone(),
            // A step with a name that is none would fail like the request did.
            agent: said.agent.clone().filter(is_name),
            verb: Some(command.to_owned()),
            key: key.map(|key| key.text.clone()),
            ..Setting::default()
        };
        Answer::failed(recover::failure_outside(command, refusal, &setting), at)
    }

    pub fn is_ok(&self) -> bool {
        matches!(self.body, Body::Done(_))
    }

    /// Exactly the line that `--json` prints.
    pub fn line(&self) -> String {
        match &self.body {
            Body::Done(done) => serde_json::to_string(&envelope(done)),
            Body::Failed(failure) => serde_json::to_string(failure),
        }
        .unwrap_or_default()
    }

    /// The same as a value.
    pub fn json(&self) -> Value {
        match &self.body {
            Body::Done(done) => serde_json::to_value(envelope(done)),
            Body::Failed(failure) => serde_json::to_value(failure),
        }
        .unwrap_or_default()
    }
}

fn envelope(done: &Done) -> v1::Answer<&Outcome> {
    v1::Answer::new(done.verb, &done.outcome, done.signals.clone(), done.next.clone())
}
