//! The way out of the last refusal, as its playbook says: a step that somebody takes, or the request once more.

use relay_core::error::Code;
use relay_core::playbook::{self, Setting};
use relay_core::verbs::{Request, recover};
use serde_json::{Value, json};

use super::state::{Call, DAY, Model, Outcome, Refused, Standing, Time, known};

/// What was refused last, and when.
#[derive(Clone, Debug)]
pub struct Failed {
    pub call: Call,
    pub refused: Refused,
    pub at: Time,
}

/// Classes whose requests are kept, to be made again.
const KEPT: [&str; 8] = [
    "AGENT_NOT_REGISTERED",
    "AGENT_RETIRED",
    "AGENT_SUSPENDED",
    "THREAD_NOT_FOUND",
    "CONTACT_REQUIRED",
    "CONTACT_PENDING",
    "FILE_RESERVATION_CONFLICT",
    "HOLDER_ALIVE",
];

impl Model {
    /// Notes what a call came to. A failed request is kept while others go on, and forgotten once it was made again and
    /// succeeded; one that failed again is kept again, as itself.
    pub fn note(&mut self, call: &Call, outcome: &Outcome<Value>) {
        let made_again = matches!(call.request, Request::Recover(_));
        match outcome {
            Err(refused) => {
                let call = self.failed.take().filter(|_| made_again).map_or_else(|| call.clone(), |failed| failed.call);
                self.failed = Some(Failed { call, refused: refused.clone(), at: self.now });
            }
            Ok(_) if made_again => self.failed = None,
            Ok(_) => {}
        }
    }

    /// `recover CODE --retry`: the request itself decides.
    pub fn recover(&mut self, input: &recover::Input) -> Outcome<Value> {
        let failed = self.failed.clone().unwrap();
        let result = self.call(&failed.call)?;
        let retried = json!({"verb": failed.call.request.verb(), "result": result});
        Ok(json!({"code": input.code.as_str(), "state": "recovered", "retried": retried}))
    }

    /// A step out of the last refusal that can be taken now, by its number; the last is the request itself.
    pub fn way_out(&self, index: usize) -> Option<Call> {
        let failed = self.failed.as_ref()?;
        let mut ways = self.steps(failed);
        if KEPT.contains(&failed.refused.code) && self.now - failed.at <= DAY {
            let code = Code::parse(failed.refused.code).unwrap();
            let input =
                recover::Input { code, set: Vec::new(), yes: false, dry_run: false, retry: true, escalate: false };
            ways.push(Call { who: failed.call.who, key: None, request: Request::Recover(input) });
        }
        let index = index.checked_rem(ways.len())?;
        Some(ways.swap_remove(index))
    }

    /// The tool calls of the playbook, with the values that the model knows; those that wait for somebody are left out.
    fn steps(&self, failed: &Failed) -> Vec<Call> {
        let Failed { call, refused, .. } = failed;
        let code = Code::parse(refused.code).unwrap();
        let refusal = code.refuse("");
        let standing = self.agent(call.who).map(|agent| self.standing(agent));
        let refusal = match (refused.code, &call.request) {
            ("AGENT_NOT_REGISTERED", _) if standing.is_none() => refusal.with("name", call.who),
            ("AGENT_RETIRED", _) if standing == Some(Standing::Retired) => refusal.with("name", call.who),
            ("CONTACT_REQUIRED", _) => refusal.with("ask", json!(refused.ask)),
            ("LINK_NOT_FOUND", Request::Link(input)) => {
                refusal.with("name", input.target.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            ("THREAD_NOT_FOUND", Request::Leave(input)) => refusal.with("thread", input.thread.as_str()),
            _ => return Vec::new(),
        };
        let setting = Setting { agent: Some(call.who.to_owned()), ..Setting::default() };
        let steps = playbook::steps(&playbook::playbook(code), &refusal, &setting);
        let taken = steps.iter().filter(|step| !step.is_retry && step.escalation.is_none());
        taken
            .filter_map(|step| {
                let (tool, args) = (step.tool.as_ref()?, step.args.as_ref()?);
                let who = args.get("agent").and_then(Value::as_str).and_then(known)?;
                Some(Call { who, key: None, request: Request::from_tool(tool, args).unwrap() })
            })
            .collect()
    }
}
