//! `recover`: shows a class's playbook with real values, and makes a kept failed request again (I12).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::actor;
use super::writing::{Told, random_key};
use super::{Ctx, Done, Outcome as Any, Request};
use crate::domain::limits::FAILURES_KEPT_FOR;
use crate::domain::time::Span;
use crate::error::{Code, Refusal, Refused};
use crate::playbook::{self, Setting, Step};
use crate::store::{Errand, Facts, KeptFailure, Result};
use crate::wire::v1::{Failed, Failure, Signal, SignalCode};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    pub code: Code,
    #[serde(default)]
    pub set: Vec<String>,
    #[serde(default)]
    pub yes: bool,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub retry: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    pub code: Code,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retried>,
}

/// The request that was made again, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Retried {
    pub verb: String,
    pub result: Value,
}

/// The classes that `send` heals by itself.
const HEALED: [Code; 2] = [Code::ContactRequired, Code::StoreBusy];

/// Whether a request heals itself from what it was refused with.
pub fn heals(request: &Request, refusal: &Refusal) -> bool {
    matches!(request, Request::Send(input) if !input.no_recover) && HEALED.contains(&refusal.code)
}

/// How long an answer waits for the gate to forget what it has settled.
const FORGETTING_PATIENCE: Span = Span::millis(50);

/// Tries, runs the steps of the playbook if all of them may run unattended, and tries once more.
pub(super) fn healing<T>(
    ctx: &Ctx<'_>,
    request: &Request,
    allowed: bool,
    attempt: impl Fn(&Ctx<'_>, Option<Signal>) -> Result<Told<T>>,
) -> Result<Told<T>> {
    let refusal = match attempt(ctx, None) {
        Err(refusal) if allowed && HEALED.contains(&refusal.code) => refusal,
        other => return other,
    };
    let steps = steps_out(ctx, &refusal, Some(ctx.key.text.clone()));
    if !steps.iter().all(|step| step.unattended) {
        return Err(refusal);
    }
    let mut taken = Vec::new();
    for step in steps.iter().filter(|step| step.tool.as_deref() != Some("recover")) {
        if let (Some(tool), Some(args)) = (&step.tool, &step.args) {
            let key = random_key(ctx.random.bytes());
            super::run(&ctx.step(&key), &Request::from_tool(tool, args)?)?;
            taken.push(step.why.clone());
        }
    }
    let what = if taken.is_empty() { "waited for the store".to_owned() } else { taken.join("; ") };
    let text = format!("{} on the first try of {}; {what}", refusal.code, request.verb());
    // The signal is part of the answer that is remembered, so the second try brings it along.
    attempt(&ctx.step_with_own_key(), Some(Signal::new(SignalCode::Recovered, text)))
}

fn steps_out(ctx: &Ctx<'_>, refused: &Refused, kept: Option<String>) -> Vec<Step> {
    playbook::steps(&playbook::playbook(refused.code), refused, &setting(ctx, kept))
}

fn setting(ctx: &Ctx<'_>, kept: Option<String>) -> Setting {
    let caller = &ctx.caller;
    let agent = if caller.human {
        Some("human".to_owned())
    } else {
        caller.named.as_ref().or(caller.variable.as_ref()).map(ToString::to_string)
    };
    let agent = agent.or_else(|| {
        let facts = ctx.store.read().ok()?;
        actor::meant(ctx, &*facts).ok().flatten().map(|name| name.to_string())
    });
    Setting { project: Some(ctx.project.to_string()), agent, kept, key: Some(ctx.key.text.clone()), verb: None }
}

/// The answer to a failed request: the class, the values and the steps. The request is kept where it can be; one that was
/// made again and failed again is kept again, as what it failed with now.
pub fn failure(ctx: &Ctx<'_>, request: &Request, refusal: &Refusal) -> Failure {
    failure_of(ctx, request, request.verb(), refusal)
}

/// The same for a request that was made by another command than its verb: that one's help is the help that is needed.
pub fn failure_of(ctx: &Ctx<'_>, request: &Request, command: &str, refusal: &Refusal) -> Failure {
    if let Some((key, made_again)) = made_again(ctx, request) {
        return Failure { verb: request.verb().to_owned(), ..failure(&ctx.step(&key), &made_again, refusal) };
    }
    let kept = keep(ctx, request, refusal);
    let setting = Setting { verb: Some(command.to_owned()), ..setting(ctx, kept.then(|| ctx.key.text.clone())) };
    let steps = playbook::steps(&playbook::playbook(refusal.code), refusal, &setting);
    Failure {
        relay: 1,
        ok: false,
        verb: request.verb().to_owned(),
        error: failed(refusal, Some(ctx.key.text.clone()), steps),
    }
}

/// The kept request behind a `recover --retry`, with its key.
fn made_again(ctx: &Ctx<'_>, request: &Request) -> Option<(String, Request)> {
    let Request::Recover(input) = request else { return None };
    let (key, failure) = if input.retry && !input.dry_run { kept(ctx, input).ok()? } else { return None };
    Some((key?, serde_json::from_str(&failure?.request).ok()?))
}

/// The same where there is no project to speak of.
pub fn failure_outside(verb: &str, refusal: &Refusal, setting: &Setting) -> Failure {
    let steps = playbook::steps(&playbook::playbook(refusal.code), refusal, setting);
    Failure { relay: 1, ok: false, verb: verb.to_owned(), error: failed(refusal, None, steps) }
}

fn failed(refusal: &Refusal, idempotency_key: Option<String>, playbook: Vec<Step>) -> Failed {
    Failed {
        code: refusal.code,
        kind: refusal.code.kind(),
        message: refusal.message.clone(),
        retryable: refusal.code.is_retryable(),
        idempotency_key,
        details: refusal.details.clone(),
        playbook,
    }
}

/// Keeps a request whose playbook ends in making it again. Best effort: an error about an error helps nobody.
fn keep(ctx: &Ctx<'_>, request: &Request, refusal: &Refusal) -> bool {
    let store_is_well = !refusal.code.as_str().starts_with("STORE_");
    if !store_is_well || !playbook::playbook(refusal.code).retry || matches!(request, Request::Recover(_)) {
        return false;
    }
    let attempt = || -> Result<()> {
        let scope = scope(ctx, &*ctx.store.read()?)?;
        let failure = KeptFailure {
            code: refusal.code.as_str().to_owned(),
            at: ctx.now,
            request: serde_json::to_string(request).map_err(super::writing::internal)?,
            details: serde_json::to_string(&refusal.details).map_err(super::writing::internal)?,
        };
        let mut tx =
            ctx.store.begin(Errand { verb: "keep", agent: &scope, wait: ctx.limits.gate_wait, durable: false })?;
        tx.keep_failure(&scope, &ctx.key.text, &failure)?;
        tx.commit()
    };
    attempt().is_ok()
}

/// Under which name failures are kept: the name meant, registered or not.
fn scope(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<String> {
    if ctx.caller.human {
        return Ok("human".to_owned());
    }
    Ok(actor::meant(ctx, facts)?.map_or_else(|| NOBODY.to_owned(), |name| name.key()))
}

pub fn run(ctx: &Ctx<'_>, input: &Input) -> Result<Done> {
    if input.retry == input.dry_run {
        return Err(Code::InputInvalid.refuse(format!(
            "say `relay recover {} --dry-run` to see the steps, or `--retry` to make the kept request again; whole playbooks do not run by themselves yet",
            input.code
        )));
    }
    let (key, kept) = kept(ctx, input)?;
    if input.dry_run {
        return dry_run(ctx, input, key, kept);
    }
    let Some(failure) = kept else {
        return Err(Code::InputInvalid.refuse(format!(
            "no failed request with {} is kept for you{}; make the request itself again",
            input.code,
            key.map(|key| format!(" under {key:?}")).unwrap_or_default()
        )));
    };
    retry(ctx, input, &key.unwrap_or_default(), &failure)
}

/// Whose failures are kept where no agent was named.
const NOBODY: &str = "";

/// The kept failure that is meant: by its key, or the newest of this class. What failed in nobody's name is made again by
/// whoever brings its key.
fn kept(ctx: &Ctx<'_>, input: &Input) -> Result<(Option<String>, Option<KeptFailure>)> {
    let facts = ctx.store.read()?;
    let scope = scope(ctx, &*facts)?;
    let fresh =
        |failure: &KeptFailure| ctx.now.since(failure.at) <= FAILURES_KEPT_FOR && failure.code == input.code.as_str();
    if ctx.key.chosen {
        let failure = match facts.kept_failure(&scope, &ctx.key.text)? {
            Some(failure) => Some(failure),
            None => facts.kept_failure(NOBODY, &ctx.key.text)?,
        };
        return Ok((Some(ctx.key.text.clone()), failure.filter(fresh)));
    }
    let newest = facts.kept_failures(&scope)?.into_iter().find(|(_, failure)| fresh(failure));
    Ok(newest.map_or((None, None), |(key, failure)| (Some(key), Some(failure))))
}

fn dry_run(ctx: &Ctx<'_>, input: &Input, key: Option<String>, kept: Option<KeptFailure>) -> Result<Done> {
    let mut details: Map<String, Value> = match &kept {
        Some(failure) => serde_json::from_str(&failure.details).map_err(super::writing::internal)?,
        None => Map::new(),
    };
    for setting in &input.set {
        let (name, value) = setting
            .split_once('=')
            .ok_or_else(|| Code::InputInvalid.refuse(format!("{setting:?} is not NAME=VALUE")))?;
        let list = value.split(',').map(Value::from).collect::<Vec<_>>();
        let is_list = playbook::playbook(input.code).step.iter().any(|step| step.each.as_deref() == Some(name));
        details.insert(name.to_owned(), if is_list { Value::Array(list) } else { Value::from(value) });
    }
    let refused = Refused { code: input.code, message: String::new(), details };
    let steps = steps_out(ctx, &refused, kept.and(key));
    Ok(done(input.code, steps, None, Vec::new(), Vec::new()))
}

/// The kept request once more, with its own key; forgotten when it succeeds.
fn retry(ctx: &Ctx<'_>, input: &Input, key: &str, failure: &KeptFailure) -> Result<Done> {
    let request: Request = serde_json::from_str(&failure.request).map_err(super::writing::internal)?;
    let inner = super::run(&ctx.step(key), &request)?;
    let _ = forget(ctx, key);
    let result = serde_json::to_value(&inner.outcome).map_err(super::writing::internal)?;
    let retried = Retried { verb: inner.verb.to_owned(), result };
    let mut done = done(input.code, Vec::new(), Some(retried), inner.signals, inner.next);
    done.afterwards = inner.afterwards;
    Ok(done)
}

/// Best effort: the request has succeeded, and made once more under its key it would only be answered as before.
fn forget(ctx: &Ctx<'_>, key: &str) -> Result<()> {
    let scope = scope(ctx, &*ctx.store.read()?)?;
    let errand = Errand { verb: "recover", agent: &scope, wait: FORGETTING_PATIENCE, durable: false };
    let mut tx = ctx.store.begin(errand)?;
    tx.forget_failure(&scope, key)?;
    tx.forget_failure(NOBODY, key)?;
    tx.commit()
}

fn done(code: Code, steps: Vec<Step>, retried: Option<Retried>, signals: Vec<Signal>, next: Vec<String>) -> Done {
    Done::new("recover", Told { outcome: Outcome { code, steps, retried }, signals, next }, Any::Recover)
}
