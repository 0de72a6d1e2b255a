//! What `send` does about an error by itself.

use super::super::writing::{Told, random_key};
use super::super::{Ctx, Request};
use super::failure::setting;
use crate::error::{Code, Refusal};
use crate::playbook;
use crate::store::Result;
use crate::wire::v1::{Signal, SignalCode};

/// The classes that `send` heals by itself.
const HEALED: [Code; 2] = [Code::ContactRequired, Code::StoreBusy];

/// Whether a request heals itself from what it was refused with.
pub fn heals(request: &Request, refusal: &Refusal) -> bool {
    matches!(request, Request::Send(input) if !input.no_recover) && HEALED.contains(&refusal.code)
}

/// Tries, runs the steps of the playbook if all of them may run unattended, and tries once more.
pub(in crate::verbs) fn healing<T>(
    ctx: &Ctx<'_>,
    request: &Request,
    allowed: bool,
    attempt: impl Fn(&Ctx<'_>, Option<Signal>) -> Result<Told<T>>,
) -> Result<Told<T>> {
    let refusal = match attempt(ctx, None) {
        Err(refusal) if allowed && HEALED.contains(&refusal.code) => refusal,
        other => return other,
    };
    let setting = setting(ctx, Some(ctx.key.text.clone()));
    let steps = playbook::steps(&playbook::playbook(refusal.code), &refusal, &setting);
    if !steps.iter().all(|step| step.unattended) {
        return Err(refusal);
    }
    let mut taken = Vec::new();
    for step in steps.iter().filter(|step| !step.is_retry) {
        if let (Some(tool), Some(args)) = (&step.tool, &step.args) {
            let key = random_key(ctx.random.bytes());
            super::super::run(&ctx.step(&key), &Request::from_tool(tool, args)?)?;
            taken.extend(step.after.clone());
        }
    }
    let what = if taken.is_empty() { "the store was waited for".to_owned() } else { taken.join(", ") };
    let text = format!("{} on the first try of {}: {what}, and the second went through", refusal.code, request.verb());
    // The signal is part of the answer that is remembered, so the second try brings it along.
    attempt(&ctx.step_with_own_key(), Some(Signal::new(SignalCode::Recovered, text)))
}
