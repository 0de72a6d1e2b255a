//! Which failure is meant, and the steps out of it.

use serde_json::{Map, Value};

use super::super::Ctx;
use super::super::writing::internal;
use super::holds::{self, Since};
use super::{Input, breaker, failure};
use crate::domain::time::Span;
use crate::error::{Code, Refused};
use crate::playbook::{self, Setting, Step};
use crate::store::{KeptFailure, Result};

/// Where it is not known when the request failed, what happened longer ago belongs to another one.
const LATELY: Span = Span::minutes(10);

pub struct Plan {
    pub code: Code,
    /// The request that failed, with its key.
    pub kept: Option<(String, KeptFailure)>,
    pub since: Since,
    pub steps: Vec<Step>,
}

impl Plan {
    /// Whether what must be true after a step is true.
    pub fn holds(&self, ctx: &Ctx<'_>, step: &Step) -> bool {
        step.condition.as_ref().is_some_and(|condition| holds::holds(ctx, self.since, condition))
    }

    /// From the kept failure, or from the values that were given; where the store does not answer, from these alone.
    pub fn of(ctx: &Ctx<'_>, input: &Input) -> Result<Plan> {
        let code = input.code;
        let playbook = playbook::playbook(code);
        let given = playbook::given(code, &playbook, &input.set)?;
        // Other values are another failure, unless its key says which one is meant.
        let (kept, met) = if given.is_empty() || ctx.key.chosen { kept(ctx, input)? } else { (None, Map::new()) };
        let mut details: Map<String, Value> = match &kept {
            Some((_, failure)) => serde_json::from_str(&failure.details).map_err(internal)?,
            None => met,
        };
        details.extend(given);
        derive(ctx, code, &mut details);
        let setting = setting(ctx, code, kept.as_ref().map(|(key, _)| key.clone()));
        let lacks = kept.is_none() && playbook::lacks(&playbook, &details);
        let steps = playbook::steps(&playbook, &Refused { code, message: String::new(), details }, &setting);
        let is_bare = lacks && steps.iter().all(|step| step.is_retry);
        let steps = if !is_bare {
            steps
        } else if input.dry_run {
            playbook::outline(&playbook, code, &setting)
        } else {
            let names = playbook.names().join(", ");
            let text = format!(
                "no failed request with {code} is kept for you; give its values with --set NAME=VALUE: {names}"
            );
            return Err(Code::InputInvalid.refuse(text));
        };
        let at = kept.as_ref().map_or_else(|| ctx.now.minus(LATELY), |(_, failure)| failure.at);
        let tip = ctx.store.read().and_then(|facts| facts.tip()).map(|tip| tip.number).ok();
        Ok(Plan { code, kept, since: Since { at, tip }, steps })
    }
}

type Known = (Option<(String, KeptFailure)>, Map<String, Value>);

/// The kept failure; where the store does not say, or it cannot be said whose failures are meant, what stands in the way of
/// that: the way out of it is a playbook too, and may be the one that is asked for.
fn kept(ctx: &Ctx<'_>, input: &Input) -> Result<Known> {
    match failure::kept(ctx, input) {
        Ok(kept) => Ok((kept, Map::new())),
        Err(refusal) if refusal.code == input.code => Ok((None, refusal.details.clone())),
        Err(refusal) if breaker::nobody_can_write(refusal.code) => Ok((None, Map::new())),
        Err(refusal) => Err(refusal),
    }
}

/// What follows from the class, for those who were not told.
fn derive(ctx: &Ctx<'_>, code: Code, details: &mut Map<String, Value>) {
    if code.is_about_the_store() && code.details().contains(&"path") && !details.contains_key("path") {
        let folder = ctx.installation.folder();
        let is_archives = code.as_str().starts_with("ARCHIVE_");
        let path = if is_archives { format!("{folder}/archive.git") } else { folder };
        details.insert("path".to_owned(), Value::from(path));
    }
    let named = ctx.caller.named.as_ref().or(ctx.caller.variable.as_ref());
    if let Some(name) = named.filter(|_| code == Code::AgentNotRegistered && !details.contains_key("name")) {
        details.insert("name".to_owned(), Value::from(name.as_str()));
    }
    let exhausted = details.get("code").and_then(Value::as_str).and_then(Code::parse);
    if code == Code::RecoveryExhausted && exhausted.is_some_and(breaker::nobody_can_write) {
        details.insert("beside".to_owned(), Value::from(true));
    }
}

/// The key of this very call is not that of the request which failed.
fn setting(ctx: &Ctx<'_>, code: Code, kept: Option<String>) -> Setting {
    let key = ctx.key.chosen.then(|| ctx.key.text.clone());
    let key = key.or_else(|| Some("KEY_THAT_ITS_ERROR_PRINTED".to_owned())).filter(|_| !code.is_kept());
    Setting { key, ..failure::setting(ctx, kept) }
}
