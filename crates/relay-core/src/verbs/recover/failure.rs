//! The answer to a failed request, and the requests that are kept to be made again.

use super::super::actor;
use super::super::{Ctx, Request};
use super::{Input, holds};
use crate::domain::limits::FAILURES_KEPT_FOR;
use crate::domain::name::HUMAN;
use crate::domain::time::Span;
use crate::error::{Code, Refusal};
use crate::playbook::{self, Setting, Step, Taken};
use crate::store::{Errand, Facts, KeptFailure, Result};
use crate::wire::v1::{Failed, Failure};

/// How long an answer waits for the gate to forget what it has settled.
const FORGETTING_PATIENCE: Span = Span::millis(50);

/// The answer to a failed request: the class, the values and the steps. The request is kept where it can be; one that was
/// made again and failed again is kept again, as what it failed with now.
pub fn failure(ctx: &Ctx<'_>, request: &Request, refusal: &Refusal) -> Failure {
    failure_of(ctx, request, request.verb(), refusal)
}

/// The same for a request that was made by another command than its verb: that one's help is the help that is needed.
pub fn failure_of(ctx: &Ctx<'_>, request: &Request, command: &str, refusal: &Refusal) -> Failure {
    if refusal.code != Code::RecoveryExhausted
        && let Some((key, made_again)) = made_again(ctx, request)
    {
        return Failure { verb: request.verb().to_owned(), ..failure(&ctx.step(&key), &made_again, refusal) };
    }
    let kept = keep(ctx, request, refusal);
    let setting = Setting { verb: Some(command.to_owned()), ..setting(ctx, kept.then(|| ctx.key.text.clone())) };
    let mut steps = playbook::steps(&playbook::playbook(refusal.code), refusal, &setting);
    if refusal.code == Code::RecoveryExhausted {
        // Whoever is told to ask is told that it was asked.
        let is_asked = |step: &Step| holds::is_unanswered(ctx, step.condition.as_ref());
        steps.iter_mut().filter(|step| is_asked(step)).for_each(|step| step.state = Some(Taken::Already));
    }
    Failure {
        relay: 1,
        ok: false,
        verb: request.verb().to_owned(),
        error: failed(refusal, Some(ctx.key.text.clone()), steps),
    }
}

/// The kept request that a `recover` made again, with its key.
fn made_again(ctx: &Ctx<'_>, request: &Request) -> Option<(String, Request)> {
    let Request::Recover(input) = request else { return None };
    let (key, failure) = if input.dry_run || input.escalate { return None } else { kept(ctx, input).ok()?? };
    Some((key, serde_json::from_str(&failure.request).ok()?))
}

/// The same where there is no project to speak of.
pub fn failure_outside(verb: &str, refusal: &Refusal, setting: &Setting) -> Failure {
    let steps = playbook::steps(&playbook::playbook(refusal.code), refusal, setting);
    Failure { relay: 1, ok: false, verb: verb.to_owned(), error: failed(refusal, setting.key.clone(), steps) }
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
    let playbook = playbook::playbook(refusal.code);
    // Also for its values alone: `recover` fills the steps with them.
    let is_of_use = playbook::retries(&playbook, &refusal.details) || !playbook.names().is_empty();
    if !refusal.code.is_kept() || !is_of_use || matches!(request, Request::Recover(_)) {
        return false;
    }
    let attempt = || -> Result<()> {
        let Whose { scope, name } = whose(ctx, &*ctx.store.read()?)?;
        let failure = KeptFailure {
            code: refusal.code.as_str().to_owned(),
            at: ctx.now,
            request: serde_json::to_string(request).map_err(super::super::writing::internal)?,
            details: serde_json::to_string(&refusal.details).map_err(super::super::writing::internal)?,
        };
        let mut tx =
            ctx.store.begin(Errand { verb: "keep", agent: &name, wait: ctx.limits.gate_wait, durable: false })?;
        tx.keep_failure(&scope, &ctx.key.text, &failure)?;
        tx.commit()
    };
    attempt().is_ok()
}

/// Whose failures are meant.
struct Whose {
    scope: String,
    name: String,
}

/// Failures are kept under the name meant, registered or not, and for the credential that said it: a request that somebody
/// else made in the same name is neither shown nor made again.
fn whose(ctx: &Ctx<'_>, facts: &dyn Facts) -> Result<Whose> {
    if ctx.caller.human {
        return Ok(Whose { scope: HUMAN.to_owned(), name: HUMAN.to_owned() });
    }
    let name = actor::meant(ctx, facts)?.map(|name| name.key()).unwrap_or_default();
    Ok(Whose { scope: scope(ctx, &name), name })
}

fn scope(ctx: &Ctx<'_>, name: &str) -> String {
    format!("{} {name}", ctx.caller.credential)
}

/// Whose failures are kept where no agent was named.
fn nobody(ctx: &Ctx<'_>) -> String {
    scope(ctx, "")
}

/// The kept failure that is meant: by its key, or the newest of this class. What failed in nobody's name is made again by
/// whoever of the same credential brings its key.
pub(super) fn kept(ctx: &Ctx<'_>, input: &Input) -> Result<Option<(String, KeptFailure)>> {
    let facts = ctx.store.read()?;
    let Whose { scope, .. } = whose(ctx, &*facts)?;
    let fresh =
        |failure: &KeptFailure| ctx.now.since(failure.at) <= FAILURES_KEPT_FOR && failure.code == input.code.as_str();
    if ctx.key.chosen {
        let failure = match facts.kept_failure(&scope, &ctx.key.text)? {
            Some(failure) => Some(failure),
            None => facts.kept_failure(&nobody(ctx), &ctx.key.text)?,
        };
        return Ok(failure.filter(fresh).map(|failure| (ctx.key.text.clone(), failure)));
    }
    Ok(facts.kept_failures(&scope)?.into_iter().find(|(_, failure)| fresh(failure)))
}

/// Best effort: the request has succeeded, and made once more under its key it would only be answered as before.
pub(super) fn forget(ctx: &Ctx<'_>, key: &str) -> Result<()> {
    let Whose { scope, name } = whose(ctx, &*ctx.store.read()?)?;
    let errand = Errand { verb: "recover", agent: &name, wait: FORGETTING_PATIENCE, durable: false };
    let mut tx = ctx.store.begin(errand)?;
    tx.forget_failure(&scope, key)?;
    tx.forget_failure(&nobody(ctx), key)?;
    tx.commit()
}

pub(super) fn setting(ctx: &Ctx<'_>, kept: Option<String>) -> Setting {
    let caller = &ctx.caller;
    let agent = if caller.human {
        Some(HUMAN.to_owned())
    } else {
        caller.named.as_ref().or(caller.variable.as_ref()).map(ToString::to_string)
    };
    let agent = agent.or_else(|| {
        let facts = ctx.store.read().ok()?;
        actor::meant(ctx, &*facts).ok().flatten().map(|name| name.to_string())
    });
    Setting { project: Some(ctx.project.to_string()), agent, kept, key: Some(ctx.key.text.clone()), verb: None }
}
