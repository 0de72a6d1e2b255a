//! What one credential left is not another's, whatever name that says.

use relay_core::domain::name::AgentName;
use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::{self, Caller, Done, recover};
use serde_json::{Value, json};

use super::alone::{Alone, request, result};
use super::{each, name};

/// The owner of the stores, to whom BlueLake belongs, or somebody with a credential of its own.
fn caller(is_owner: bool, named: Option<AgentName>) -> Caller {
    let credential = if is_owner { "uid:1" } else { "token:guest" };
    Caller { credential: credential.to_owned(), separate: !is_owner, named, ..Caller::default() }
}

fn run(alone: &Alone<'_>, is_owner: bool, agent: Option<&str>, verb: &str, args: &Value) -> Result<Done> {
    alone.with_caller(caller(is_owner, agent.map(name)), "key", |ctx| verbs::run(ctx, &request(verb, args)))
}

fn code(outcome: Result<Done>) -> Option<Code> {
    outcome.err().map(|refusal| refusal.code)
}

#[test]
fn a_failure_is_kept_for_the_credential_that_met_it() {
    each(|place| {
        let alone = Alone::new(place);
        let refusal = Code::WaitTimeout.refuse("not free in time").with("patterns", json!(["src/a.rs"]));
        let failed = request("reserve", &json!({"patterns": ["src/a.rs"]}));
        for agent in [Some("BlueLake"), None] {
            let named = agent.map(name);
            alone.with_caller(caller(false, named), "key", |ctx| recover::failure(ctx, &failed, &refusal));
        }
        let retry = json!({"code": "WAIT_TIMEOUT", "retry": true});
        assert_eq!(code(run(&alone, true, Some("BlueLake"), "recover", &retry)), Some(Code::InputInvalid));
        assert_eq!(code(run(&alone, false, Some("BlueLake"), "recover", &retry)), Some(Code::IdentityMismatch));
    });
}

#[test]
fn an_answer_to_whoever_starts_is_for_its_own_credential() {
    each(|place| {
        let alone = Alone::new(place);
        let start = |is_owner: bool, agent: Option<&str>| run(&alone, is_owner, agent, "start", &json!({}));
        let nameless = |is_owner: bool| result(&start(is_owner, None).unwrap())["agent"]["name"].clone();
        let (own, theirs) = (nameless(true), nameless(false));
        assert_ne!(own, theirs);
        assert_eq!((nameless(true), nameless(false)), (own, theirs));
        start(true, Some("BlueLake")).unwrap();
        assert_eq!(code(start(false, Some("BlueLake"))), Some(Code::AgentNameTaken));
        let sub = json!({"parent": "BlueLake"});
        assert_eq!(code(run(&alone, false, Some("Helper"), "start", &sub)), Some(Code::IdentityMismatch));
        run(&alone, true, Some("Helper"), "start", &sub).unwrap();
    });
}
