//! The circuit breaker: the same recovery for the same cause is not run again and again.

use std::cell::Cell;

use super::super::Ctx;
use super::plan::Plan;
use crate::domain::event::text_hash;
use crate::domain::time::Span;
use crate::error::{Code, Refusal};
use crate::playbook::Step;
use crate::store::Result;

/// So many times within so long.
const TRIES: usize = 3;
const WITHIN: Span = Span::minutes(10);

/// A recovery that may run. It counts once it does something: to look at what it would do is no try.
pub struct Attempt {
    cause: String,
    is_counted: Cell<bool>,
}

impl Attempt {
    /// Refuses what was tried too often. The cause is what is not true yet: once the world has changed it is another one.
    pub fn admitted(ctx: &Ctx<'_>, plan: &Plan) -> Result<Attempt> {
        let (cause, is_open) = cause(ctx, plan);
        // Where nothing but the request is left to be made, that says itself whether it still fails.
        if is_open || plan.kept.is_none() {
            admit(ctx, plan, &cause)?;
        }
        Ok(Attempt { cause, is_counted: Cell::new(false) })
    }

    /// It takes a step now, or makes the request again.
    pub fn counts(&self, ctx: &Ctx<'_>) {
        if !self.is_counted.replace(true) {
            ctx.installation.note_try(&self.cause, ctx.now);
        }
    }

    /// It helped: what was tried before does not count, and the questions about it are settled.
    pub fn helped(&self, ctx: &Ctx<'_>, steps: &[Step]) {
        ctx.installation.forget_tries(&self.cause, ctx.now);
        for escalation in steps.iter().filter_map(|step| step.escalation.as_ref()).filter(|asked| asked.beside) {
            ctx.installation.settle(&escalation.case);
        }
    }
}

fn admit(ctx: &Ctx<'_>, plan: &Plan, cause: &str) -> Result<()> {
    let since = ctx.now.minus(WITHIN);
    if ctx.installation.tries(cause, since) >= TRIES {
        let text = format!(
            "{} was recovered from {TRIES} times within {WITHIN} and did not go away; a person must look at it",
            plan.code
        );
        return Err(exhausted(plan.code, text));
    }
    Ok(())
}

/// That a playbook did not help.
pub fn exhausted(code: Code, text: String) -> Refusal {
    let refusal = Code::RecoveryExhausted.refuse(text).with("code", code.as_str());
    if nobody_can_write(code) { refusal.with("beside", true) } else { refusal }
}

/// Where the store is the problem, or who acts is, no mail about that can be sent.
pub fn nobody_can_write(code: Code) -> bool {
    let is_who = matches!(
        code,
        Code::AgentNotRegistered
            | Code::AgentNameInvalid
            | Code::AgentNameTaken
            | Code::AgentRetired
            | Code::AgentSuspended
            | Code::IdentityMismatch
            | Code::Unauthorized
            | Code::ProjectUnresolved
            | Code::ProjectKeyInvalid
    );
    is_who || code.is_about_the_store()
}

/// What it is about, and whether something of it is not true yet. What others try is no try of this credential's.
fn cause(ctx: &Ctx<'_>, plan: &Plan) -> (String, bool) {
    let open = plan.steps.iter().filter(|step| !step.is_retry).filter(|step| !plan.holds(ctx, step));
    let open: Vec<String> = open.map(|step| format!("{} {}", step.why, step.run.join(" "))).collect();
    // Where nothing is left to do, it is the request itself that fails.
    let key = plan.kept.as_ref().filter(|_| open.is_empty()).map(|(key, _)| key.as_str()).unwrap_or_default();
    let who = ctx.caller.named.as_ref().or(ctx.caller.variable.as_ref()).map(ToString::to_string).unwrap_or_default();
    let whose = &ctx.caller.credential;
    (text_hash(&[], &format!("{}\n{whose}\n{who}\n{key}\n{}", plan.code, open.join("\n"))).0, !open.is_empty())
}
