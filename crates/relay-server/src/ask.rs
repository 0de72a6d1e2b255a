//! A request on its way through the server, and its answer.

use std::sync::Arc;

use relay_core::domain::name::AgentName;
use relay_core::domain::time::Timestamp;
use relay_core::error::Refusal;
use relay_core::playbook::Setting;
use relay_core::store::Result;
use relay_core::verbs::{Afterwards, Caller, Done, Outcome, Request, recover};
use relay_core::wire::v1::{self, Failure};
use serde_json::Value;

use crate::desk::Desk;
use crate::quota::{self, Quota};

/// What is asked, by whom, and where.
#[derive(Debug, Clone)]
pub struct Ask {
    pub request: Request,
    /// The command or tool that makes it: its help is the help that is needed.
    pub command: String,
    pub said: Said,
    pub caller: Caller,
}

/// What the caller said beside the request, in its own words.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub project: Option<String>,
    /// The project is known from elsewhere: what is proposed next need not repeat it.
    pub project_is_known: bool,
    pub agent: Option<String>,
    pub key: Option<String>,
}

impl Said {
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
    pub project: Option<String>,
    /// `RELAY_AGENT`.
    pub agent: Option<String>,
    /// The harness's session.
    pub session: Option<String>,
    /// How much it may ask for, where others are served too.
    pub quota: Option<Arc<Quota>>,
}

impl Origin {
    /// Answers a request, unless this one asks too much.
    pub async fn admit(&self, desk: &Arc<Desk>, ask: Ask) -> Answer {
        let refuse = |refusal: &Refusal| Answer::refused(&ask.command, &ask.said, refusal, desk.now());
        let Some(quota) = &self.quota else { return desk.ask(ask).await };
        if let Err(refusal) = quota.ask() {
            return refuse(&refusal);
        }
        if ask.request.waits_for().is_none() {
            return desk.ask(ask).await;
        }
        match quota.place() {
            Some(_place) => desk.ask(ask).await,
            None => refuse(&quota::too_many_wait()),
        }
    }

    /// Who a call speaks for, as far as it says so itself. No name makes it the human.
    pub fn caller(&self, said: &Said) -> Result<Caller> {
        let name = |text: &Option<String>| text.as_deref().map(AgentName::parse).transpose();
        let named = name(&said.agent)?;
        Ok(Caller {
            credential: self.credential.clone(),
            // A name that is said wins, so a bad variable does not matter then.
            variable: if named.is_some() { None } else { name(&self.agent)? },
            named,
            session: self.session.clone(),
            human: false,
        })
    }

    /// The human, who has shown the credential for that.
    pub fn human(&self) -> Caller {
        Caller { credential: self.credential.clone(), human: true, ..Caller::default() }
    }
}

/// The answer, and what is to be done once it was written out.
#[derive(Debug)]
pub struct Answer {
    pub body: Body,
    pub at: Timestamp,
    /// What becomes true when the caller has it.
    pub afterwards: Option<Afterwards>,
}

/// One of the two shapes that an answer has.
#[derive(Debug)]
pub enum Body {
    Done(Box<Done>),
    Failed(Box<Failure>),
}

impl Answer {
    pub fn done(mut done: Done, at: Timestamp) -> Self {
        let afterwards = done.afterwards.take();
        Answer { body: Body::Done(Box::new(done)), at, afterwards }
    }

    pub fn failed(failure: Failure, at: Timestamp) -> Self {
        Answer { body: Body::Failed(Box::new(failure)), at, afterwards: None }
    }

    /// The answer to what never reached a store.
    pub fn refused(command: &str, said: &Said, refusal: &Refusal, at: Timestamp) -> Self {
        let is_name = |name: &String| AgentName::parse(name).is_ok();
        let setting = Setting {
            project: said.project.clone(),
            // A step with a name that is none would fail like the request did.
            agent: said.agent.clone().filter(is_name),
            verb: Some(command.to_owned()),
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
