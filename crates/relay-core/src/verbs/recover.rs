//! `recover`: runs the playbook of an error class with real values, looks after each step whether it helped, and makes the
//! failed request once more (I12).

mod breaker;
mod failure;
mod healing;
mod holds;
mod plan;

pub use failure::{failure, failure_of, failure_outside};
pub(super) use healing::healing;
pub use healing::heals;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::breaker::Attempt;
use self::plan::Plan;
use super::writing::{Told, internal};
use super::{Begun, Ctx, Done, Outcome as Any, Request, wait};
use crate::domain::limits::QUESTIONS_MAX;
use crate::domain::shell;
use crate::error::{Code, Refusal};
use crate::playbook::{self, Fails, Step, Taken, Who};
use crate::store::Result;

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
    #[serde(default)]
    pub escalate: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    pub code: Code,
    /// What it came to; none where nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// For whom it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<Who>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Where the question lies that was put beside the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retried: Option<Retried>,
}

/// What a recovery came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Every step holds, and the request was made again where it can be.
    Recovered,
    /// The human was asked; run it again when there is an answer.
    Escalated,
    /// The next step is for a person, or for whoever made the request.
    Waits,
}

/// The request that was made again, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Retried {
    pub verb: String,
    pub result: Value,
}

pub fn begin(ctx: &Ctx<'_>, input: &Input) -> Result<Begun> {
    if [input.dry_run, input.retry, input.escalate].iter().filter(|flag| **flag).count() > 1 {
        return Err(Code::InputInvalid.refuse("--dry-run, --retry and --escalate exclude each other"));
    }
    let plan = Plan::of(ctx, input)?;
    if input.dry_run {
        let steps = (0..plan.steps.len()).map(|index| looked_at(ctx, &plan, index)).collect();
        return Ok(Begun::Done(done(Outcome { steps, ..outcome(input.code) })));
    }
    if input.escalate {
        return escalate(ctx, &plan).map(Begun::Done);
    }
    if input.retry && plan.kept.is_none() {
        let key = if ctx.key.chosen { format!(" under {:?}", ctx.key.text) } else { String::new() };
        let text = format!("no failed request with {} is kept for you{key}; make the request itself again", input.code);
        return Err(Code::InputInvalid.refuse(text));
    }
    let attempt = Attempt::admitted(ctx, &plan)?;
    let with_a_yes = with_a_yes(ctx, input, &plan);
    let begun = if input.retry { retry(ctx, &plan, &attempt) } else { take(ctx, plan, input.yes, &attempt) };
    wait::then(ctx, begun, move |ctx, ended| Ok(concluded(ctx, ended?, &attempt, with_a_yes)))
}

/// A recovery that came to an end: what was tried is forgotten where it helped, and where a yes is missing it says so.
fn concluded(ctx: &Ctx<'_>, mut done: Done, attempt: &Attempt, with_a_yes: String) -> Done {
    if let Any::Recover(outcome) = &done.outcome {
        match outcome.state {
            Some(State::Recovered) => attempt.helped(ctx, &outcome.steps),
            // What is left is for whoever made the request; what the question was about is settled.
            Some(State::Waits) if outcome.steps.iter().all(is_settled) => attempt.helped(ctx, &outcome.steps),
            Some(State::Waits) if outcome.steps.iter().any(needs_a_yes) => done.next.push(with_a_yes),
            _ => {}
        }
    }
    done
}

/// It holds now, or there is nothing about it that could.
fn is_settled(step: &Step) -> bool {
    let holds = matches!(step.state, Some(Taken::Done | Taken::Already));
    holds || step.condition.is_none() || step.escalation.is_some() || step.fails == Fails::GoOn
}

fn needs_a_yes(step: &Step) -> bool {
    step.state == Some(Taken::Waits) && is_runnable(step)
}

/// A command that does its work whoever runs it.
fn is_runnable(step: &Step) -> bool {
    !step.run.is_empty() && step.who.is_none()
}

/// The same recovery, of the same failure and with the same values, by somebody who decides.
fn with_a_yes(ctx: &Ctx<'_>, input: &Input, plan: &Plan) -> String {
    let mut words = vec!["relay".to_owned(), "recover".to_owned(), input.code.to_string(), "--yes".to_owned()];
    words.extend(input.set.iter().flat_map(|value| shell::flag("--set", value)));
    let chosen = ctx.key.chosen.then_some(&ctx.key.text);
    let key = plan.kept.as_ref().map(|(key, _)| key).or(chosen);
    words.extend(key.into_iter().flat_map(|key| shell::flag("--idempotency-key", key)));
    shell::line(&words)
}

fn outcome(code: Code) -> Outcome {
    Outcome { code, state: None, waits_for: None, steps: Vec::new(), note: None, retried: None }
}

fn done(outcome: Outcome) -> Done {
    Done::new("recover", Told { outcome, signals: Vec::new(), next: Vec::new() }, Any::Recover)
}

/// A step, and whether it holds. Nobody is asked about what is settled: where a step after a question holds, so does it.
fn looked_at(ctx: &Ctx<'_>, plan: &Plan, index: usize) -> Step {
    let step = &plan.steps[index];
    let is_settled = || {
        let is_beside = step.escalation.as_ref().is_some_and(|escalation| escalation.beside);
        let mut later = plan.steps[index + 1..].iter().filter(|later| later.fails != Fails::GoOn);
        is_beside && later.any(|later| plan.holds(ctx, later))
    };
    let state = if plan.holds(ctx, step) || is_settled() { Taken::Already } else { Taken::ToDo };
    Step { state: Some(state), ..step.clone() }
}

/// Takes the steps in order, until one waits for somebody, asks the human, fails, or the request was made again.
fn take(ctx: &Ctx<'_>, mut plan: Plan, yes: bool, attempt: &Attempt) -> Result<Begun> {
    ctx.installation.show(&plan.steps);
    let (mut asked, mut offered) = (false, None);
    for index in 0..plan.steps.len() {
        let step = looked_at(ctx, &plan, index);
        if step.is_retry && plan.kept.is_some() && !asked {
            return made_again(ctx, plan, offered, attempt);
        }
        if step.state == Some(Taken::Already) {
            plan.steps[index] = step;
            continue;
        }
        // Whoever says yes decides, and need not be asked where there is something to decide.
        let decides = |later: &Step| !later.run.is_empty() && !later.is_retry;
        if yes && step.escalation.is_some() && plan.steps[index + 1..].iter().any(decides) {
            continue;
        }
        // What somebody would do has another way behind it, and a yes takes that one.
        if yes && step.run.is_empty() && step.fails == Fails::GoOn {
            continue;
        }
        if step.escalation.is_some() && !step.unattended && !yes {
            // To ask the human is another way, for when the rest does not help.
            offered.get_or_insert(index);
            continue;
        }
        // What follows a question waits for its answer.
        let may_run = is_runnable(&step) && (step.unattended || yes || (!asked && ctx.installation.agrees(&step)));
        if asked || !may_run {
            let state = if asked { State::Escalated } else { State::Waits };
            return Ok(Begun::Done(stopped(plan, index, state)));
        }
        attempt.counts(ctx);
        let failed = run_step(ctx, &mut plan, index);
        asked = step.escalation.is_some() && failed.is_none();
        match (failed, step.fails) {
            (None, _) | (Some(_), Fails::GoOn) => {}
            (Some(refusal), fails) => return Err(exhausted(ctx, &plan, index, &refusal, fails == Fails::Ask)),
        }
    }
    if let Some(index) = offered {
        return Ok(Begun::Done(stopped(plan, index, State::Waits)));
    }
    let state = if asked { State::Escalated } else { State::Recovered };
    Ok(Begun::Done(done(Outcome { state: Some(state), steps: plan.steps, ..outcome(plan.code) })))
}

/// Runs a step and looks whether it helped; what it failed with, if it did not.
fn run_step(ctx: &Ctx<'_>, plan: &mut Plan, index: usize) -> Option<Refusal> {
    let step = plan.steps[index].clone();
    let ran = ctx.installation.run(&step.run);
    let result = ran.as_ref().ok().cloned();
    let failed = ran.err().or_else(|| untrue(ctx, plan, &step));
    let taken = if failed.is_some() { Taken::Failed } else { Taken::Done };
    plan.steps[index] = Step { state: Some(taken), result, ..step };
    failed
}

/// What must be true after a step and is not.
fn untrue(ctx: &Ctx<'_>, plan: &Plan, step: &Step) -> Option<Refusal> {
    let condition = step.condition.as_ref().filter(|_| !plan.holds(ctx, step))?;
    Some(Code::RecoveryExhausted.refuse(format!("it ran, and still it is not so that {}", condition.tell())))
}

fn stopped(mut plan: Plan, index: usize, state: State) -> Done {
    let step = &mut plan.steps[index];
    step.state = Some(Taken::Waits);
    let who = step.who.unwrap_or(Who::Person);
    let waits_for = Some(if state == State::Escalated { Who::Person } else { who });
    done(Outcome { state: Some(state), waits_for, steps: plan.steps, ..outcome(plan.code) })
}

/// After the steps: the request once more.
fn made_again(ctx: &Ctx<'_>, plan: Plan, offered: Option<usize>, attempt: &Attempt) -> Result<Begun> {
    let begun = retry(ctx, &plan, attempt);
    wait::then(ctx, begun, move |ctx, made| came_of_it(ctx, plan, offered, made))
}

/// What the request fails with now has a way out of its own, unless it is the same.
fn came_of_it(ctx: &Ctx<'_>, mut plan: Plan, offered: Option<usize>, made: Result<Done>) -> Result<Done> {
    let index = plan.steps.len().saturating_sub(1);
    let mut done = match made {
        Err(refusal) if is_the_same(&plan, &refusal) => {
            // Whoever was asked has not answered yet; nobody is asked a second time.
            let is_open = |step: &Step| step.escalation.is_some() && holds::is_unanswered(ctx, step.condition.as_ref());
            let (state, at) = match (plan.steps.iter().position(is_open), offered) {
                (Some(at), _) => (State::Escalated, at),
                (None, Some(at)) => (State::Waits, at),
                (None, None) => return Err(exhausted(ctx, &plan, index, &refusal, false)),
            };
            plan.steps[index].state = Some(Taken::Failed);
            return Ok(stopped(plan, at, state));
        }
        other => other?,
    };
    plan.steps[index].state = Some(Taken::Done);
    if let Any::Recover(outcome) = &mut done.outcome {
        outcome.steps = plan.steps;
    }
    Ok(done)
}

/// The same class, and about the same things.
fn is_the_same(plan: &Plan, refusal: &Refusal) -> bool {
    let kept = plan.kept.as_ref().and_then(|(_, failure)| serde_json::from_str(&failure.details).ok());
    refusal.code == plan.code && kept.is_none_or(|kept: serde_json::Map<String, Value>| kept == refusal.details)
}

/// The kept request once more, with its own key. It may have to wait.
fn retry(ctx: &Ctx<'_>, plan: &Plan, attempt: &Attempt) -> Result<Begun> {
    attempt.counts(ctx);
    let Some((key, failure)) = &plan.kept else {
        return Err(Code::Internal.refuse("a request that is not kept cannot be made again"));
    };
    let request: Request = serde_json::from_str(&failure.request).map_err(internal)?;
    let (code, key) = (plan.code, key.clone());
    let begun = super::begin(&ctx.step(&key), &request);
    wait::then(ctx, begun, move |ctx, ended| retried(ctx, code, &key, ended?))
}

/// A request that succeeded this time is forgotten.
fn retried(ctx: &Ctx<'_>, code: Code, key: &str, inner: Done) -> Result<Done> {
    let _ = failure::forget(ctx, key);
    let result = serde_json::to_value(&inner.outcome).map_err(internal)?;
    let retried = Some(Retried { verb: inner.verb.to_owned(), result });
    let outcome = Outcome { state: Some(State::Recovered), retried, ..outcome(code) };
    let mut done = Done::new("recover", Told { outcome, signals: inner.signals, next: inner.next }, Any::Recover);
    done.afterwards = inner.afterwards;
    Ok(done)
}

/// The question of a playbook, beside the store: for those whom nobody on the bus would hear.
fn escalate(ctx: &Ctx<'_>, plan: &Plan) -> Result<Done> {
    let question = plan.steps.iter().find_map(|step| step.escalation.clone());
    let Some(escalation) = question else {
        return Err(Code::InputInvalid.refuse(format!("the playbook of {} asks nobody anything", plan.code)));
    };
    let asked = ctx.installation.questions();
    if asked.len() >= QUESTIONS_MAX && asked.iter().all(|question| question.case != escalation.case) {
        let text = format!("{} questions lie beside the store, and the human has enough to answer", asked.len());
        return Err(breaker::exhausted(plan.code, text));
    }
    let note = ctx.installation.note(&escalation, ctx.now);
    Ok(done(Outcome { state: Some(State::Escalated), note, ..outcome(plan.code) }))
}

/// That a playbook did not help, and who is asked now.
fn exhausted(ctx: &Ctx<'_>, plan: &Plan, index: usize, refusal: &Refusal, ask: bool) -> Refusal {
    let step = &plan.steps[index];
    let text = format!("step {} of {} ({}) did not help: {}", step.step, plan.code, step.why, refusal.message);
    let refusal = breaker::exhausted(plan.code, text);
    if !ask {
        return refusal;
    }
    let setting = failure::setting(ctx, None);
    let steps = playbook::steps(&playbook::playbook(refusal.code), &refusal, &setting);
    let questions = || steps.iter().filter(|step| step.escalation.is_some() && step.unattended);
    for step in questions().filter(|step| !plan.holds(ctx, step)) {
        // Where it cannot be asked by itself, the error's own playbook still says how.
        let _ = ctx.installation.run(&step.run);
    }
    let asked = if questions().any(|step| plan.holds(ctx, step)) { "; the person in charge was asked" } else { "" };
    breaker::exhausted(plan.code, format!("{}{asked}", refusal.message))
}
