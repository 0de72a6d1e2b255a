//! Every class of the catalogue, from its cause to its end: a real cause through the real binary, the steps as they were
//! printed, word for word, and at the end the request succeeds or the question lies before a person. Before a step what it
//! says must be true is not true yet, and after it is.

mod agents;
mod archive;
mod breaker;
mod claims;
mod hostile;
mod input;
mod mail;
mod running;
mod served;
mod store;

use std::process::Command;

use relay_core::error::Code;
use relay_core::playbook::playbook;
use serde_json::Value;

use crate::bus::{Bus, Run, run};
use crate::terminal::text;

/// A row a class: its test. Where the cause arrives with later work, what that is.
macro_rules! table {
    ({ $($code:ident $file:ident :: $row:ident;)* } later { $($later:ident $work:literal;)* }) => {
        const ROWS: &[&str] = &[$(stringify!($code)),*];
        const LATER: &[(&str, &str)] = &[$((stringify!($later), $work)),*];

        #[allow(non_snake_case, reason = "a test is called like its class")]
        mod row {
            $(#[test]
            fn $code() {
                super::$file::$row(stringify!($code));
            })*
        }
    };
}

table! {
    {
        PROJECT_UNRESOLVED input::project_unresolved;
        PROJECT_KEY_INVALID input::project_key_invalid;
        AGENT_NOT_REGISTERED agents::not_registered;
        AGENT_NAME_INVALID agents::name_invalid;
        AGENT_NAME_TAKEN agents::name_taken;
        AGENT_RETIRED agents::retired;
        AGENT_SUSPENDED agents::suspended;
        IDENTITY_MISMATCH agents::mismatch;
        THREAD_ID_INVALID input::thread_id_invalid;
        THREAD_MISMATCH mail::thread_mismatch;
        THREAD_NOT_FOUND mail::thread_not_found;
        MESSAGE_NOT_FOUND mail::message_not_found;
        NOT_A_RECIPIENT mail::not_a_recipient;
        RECIPIENT_NOT_FOUND mail::recipient_not_found;
        CONTACT_REQUIRED mail::contact_required;
        CONTACT_PENDING mail::contact_pending;
        CONTACT_BLOCKED mail::contact_blocked;
        LINK_NOT_FOUND mail::link_not_found;
        FILE_RESERVATION_CONFLICT claims::conflict;
        RESERVATION_NOT_HELD claims::not_held;
        HOLDER_ALIVE claims::holder_alive;
        PATTERN_INVALID input::pattern_invalid;
        PATTERN_OUTSIDE_PROJECT input::pattern_outside;
        TTL_OUT_OF_RANGE input::ttl;
        INPUT_INVALID input::invalid;
        BODY_TOO_LARGE input::body_too_large;
        INBOX_FULL mail::inbox_full;
        IDEMPOTENCY_REUSED input::key_reused;
        WAIT_TIMEOUT claims::wait_timeout;
        WAIT_CYCLE claims::wait_cycle;
        STORE_BUSY store::busy;
        STORE_FULL store::full;
        STORE_READONLY store::readonly;
        STORE_IO store::io;
        STORE_DAMAGED store::damaged;
        STORE_TOO_NEW store::too_new;
        STORE_FOREIGN store::foreign;
        STORE_UNSUPPORTED store::unsupported;
        ARCHIVE_BEHIND archive::behind;
        ARCHIVE_DIVERGED archive::diverged;
        ARCHIVE_UNAVAILABLE archive::unavailable;
        UNAUTHORIZED agents::unauthorized;
        RECOVERY_EXHAUSTED breaker::exhausted;
        INTERNAL store::internal;
        RATE_LIMITED served::too_fast;
        STORE_UNREACHABLE served::unreachable;
    }
    later {}
}

#[test]
fn every_class_has_a_row_or_names_the_work_that_brings_its_cause() {
    let mut known: Vec<&str> = ROWS.iter().copied().chain(LATER.iter().map(|(code, _)| *code)).collect();
    let mut catalogue: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    known.sort_unstable();
    catalogue.sort_unstable();
    assert_eq!(known, catalogue);
    assert!(LATER.iter().all(|(_, work)| !work.is_empty()));
}

/// Whoever met the error, and how its commands reach the machine.
pub struct Way<'a> {
    pub bus: &'a Bus,
    pub agent: &'a str,
    /// What is done to a command before it runs: a namespace, a variable.
    pub around: &'a dyn Fn(Command) -> Command,
}

impl<'a> Way<'a> {
    pub fn new(bus: &'a Bus, agent: &'a str) -> Self {
        Way { bus, agent, around: &|command| command }
    }

    pub fn relay(&self, args: &[&str]) -> Run {
        run((self.around)(self.bus.args(self.agent, args)))
    }

    /// How far each step holds, as `recover --dry-run` sees it.
    fn states(&self, error: &Value) -> Vec<Value> {
        let code = text(&error["code"]);
        let mut args = vec!["recover".to_owned(), code.clone(), "--dry-run".to_owned()];
        if let Some(key) = error["idempotency_key"].as_str() {
            args.push(format!("--idempotency-key={key}"));
        }
        let names = playbook(Code::parse(&code).unwrap()).names();
        for (name, value) in error["details"].as_object().unwrap().iter().filter(|(name, _)| names.contains(*name)) {
            let words: Vec<String> = match value {
                Value::Array(values) => values.iter().map(text).collect(),
                Value::String(value) => vec![value.clone()],
                other => vec![other.to_string()],
            };
            if !words.is_empty() {
                args.push(format!("--set={name}={}", words.join(",")));
            }
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let steps = self.relay(&args).success().result()["steps"].clone();
        serde_json::from_value(steps).unwrap_or_default()
    }

    /// Whoever says no more than the class is shown the same commands as the error printed: of the newest failure, or of
    /// what can be known without one.
    #[track_caller]
    fn same_without_values(&self, error: &Value) {
        let plain = self.relay(&["recover", &text(&error["code"]), "--dry-run"]).success().result();
        let commands = |steps: &Value| -> Vec<Vec<String>> {
            let runs = steps.as_array().unwrap().iter().filter_map(|step| step["run"].as_array());
            let words = |run: &Vec<Value>| run.iter().map(text).filter(|word| !word.starts_with("path=")).collect();
            // A request that is not kept is made again by its maker.
            runs.map(words).filter(|words: &Vec<String>| !words.contains(&"--retry".to_owned())).collect()
        };
        assert_eq!(commands(&plain["steps"]), commands(&error["playbook"]), "{error}");
    }

    /// Takes every step as it was printed. `hand` is the rest of the world: it does what a sentence says, or what a step
    /// waits for; it is called before a command runs, and while one waits.
    #[track_caller]
    pub fn follow(&self, error: &Value, mut hand: impl FnMut(&Value)) {
        let steps = error["playbook"].as_array().unwrap();
        assert!(!steps.is_empty(), "{error}");
        if steps.iter().any(|step| step["run"].is_array()) && error["code"] != "RECOVERY_EXHAUSTED" {
            self.same_without_values(error);
        }
        for (index, step) in steps.iter().enumerate() {
            let state = |error: &Value| self.states(error)[index].clone();
            let is_checked = step["after"].is_string();
            if is_checked {
                let before = state(error);
                assert_eq!(before["state"], "to_do", "it was so before: {before}");
                assert_eq!(before["why"], step["why"], "the same steps");
            }
            let is_taken = if let Some(argv) = step["run"].as_array() {
                self.take(step, argv, &mut hand)
            } else {
                hand(step);
                true
            };
            if is_checked && is_taken {
                let after = state(error);
                assert_eq!(after["state"], "already", "it did not help: {after}");
            }
        }
    }

    /// Whether it went well; one whose file says to go on may fail.
    fn take(&self, step: &Value, argv: &[Value], hand: &mut impl FnMut(&Value)) -> bool {
        let words: Vec<String> = argv.iter().skip(1).map(text).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let waits = words.contains(&"10m");
        if waits {
            let waiter = self.bus.waiting("", &words);
            hand(step);
            waiter.finish().success();
            return true;
        }
        hand(step);
        let mut command = self.bus.command();
        command.args(words).current_dir(self.bus.path(""));
        let ran = run((self.around)(command));
        assert!(ran.status == 0 || step["fails"] == "go_on", "{step}\n{ran:?}");
        ran.status == 0
    }
}

/// What waits for the human in the project.
pub fn questions(bus: &Bus) -> Vec<Value> {
    let status = bus.relay("", ["status"]).success().result();
    status["for_the_human"].as_array().unwrap().clone()
}

/// A hand that does nothing: for steps that need nobody.
pub fn nobody(step: &Value) {
    assert!(step["run"].is_array(), "somebody must do this: {step}");
}
