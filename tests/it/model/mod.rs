//! The verbs against a small model of them: thousands of random steps, and after each one the answer, the events and the
//! whole state must be what the model says.
//!
//! `state.rs` is the model, `verbs.rs`, `mail.rs`, `links.rs` and `claims.rs` are its rules, `paths.rs` decides overlap by
//! brute force, `recovery.rs` knows the way out of a refusal, `steps.rs` says what can happen next, `drive.rs` has the ways to
//! the real thing, `check.rs` compares.

mod check;
mod claims;
mod drive;
mod links;
mod mail;
mod paths;
mod recovery;
mod state;
mod steps;
mod verbs;

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use relay_core::verbs::Request;

use crate::bus::EPOCH;
use crate::effort::{summary, times};
use drive::{Binary, Driver, InProcess};
use state::{Expected, Model};
use steps::Step;

impl ReferenceStateMachine for Model {
    type State = Model;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::new(EPOCH)).boxed()
    }

    fn transitions(state: &Model) -> BoxedStrategy<Step> {
        steps::next(state)
    }

    fn apply(mut model: Model, step: &Step) -> Model {
        model.kinds.clear();
        let (tip_before, call) = (model.tip, steps::call(&model, step));
        if let Step::Advance(time) = step {
            model.now += time;
        }
        let answer = match &call {
            Some(call) => {
                let outcome = model.call(call);
                model.note(call, &outcome);
                outcome.map_err(|refused| refused.code)
            }
            None => Ok(serde_json::Value::Null),
        };
        let kinds = model.kinds.clone();
        model.last = Some(Expected { call, answer, tip_before, kinds });
        model
    }
}

/// The real thing, driven in one of the ways.
struct Real<D> {
    driver: D,
    steps: usize,
}

struct Compared<D>(PhantomData<D>);

/// What happened while the real thing was driven in one of the ways.
struct Tally {
    steps: AtomicUsize,
    /// Requests that were made again, and what came of them.
    recovered: AtomicUsize,
    failed_again: AtomicUsize,
    /// Kinds of events and classes of refusals.
    seen: Mutex<BTreeSet<&'static str>>,
}

impl Tally {
    const fn new() -> Self {
        Tally {
            steps: AtomicUsize::new(0),
            recovered: AtomicUsize::new(0),
            failed_again: AtomicUsize::new(0),
            seen: Mutex::new(BTreeSet::new()),
        }
    }

    fn steps(&self) -> usize {
        self.steps.load(Ordering::Relaxed)
    }

    fn note(&self, expected: &Expected) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        let recovers = expected.call.as_ref().is_some_and(|call| matches!(call.request, Request::Recover(_)));
        if recovers {
            let count = if expected.answer.is_ok() { &self.recovered } else { &self.failed_again };
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.seen.lock().unwrap().extend(expected.kinds.iter().copied().chain(expected.answer.as_ref().err().copied()));
    }
}

/// How many steps lie between two looks at everything, and between two replays.
const LOOKS: usize = 10;
const REPLAYS: usize = 100;

impl<D: Driver + 'static> StateMachineTest for Compared<D> {
    type SystemUnderTest = Real<D>;
    type Reference = Model;

    fn init_test(_: &Model) -> Real<D> {
        Real { driver: D::new(), steps: 0 }
    }

    fn apply(mut real: Real<D>, model: &Model, _: Step) -> Real<D> {
        let expected = model.last.as_ref().unwrap();
        real.driver.set_clock(model.now);
        if let Some(call) = &expected.call {
            real.steps += 1;
            D::tally().note(expected);
            match (real.driver.call(call), &expected.answer) {
                (Ok(actual), Ok(expected)) => {
                    check::answer(&actual, expected)
                        .unwrap_or_else(|fault| panic!("{call:?}\nanswered {actual}\nresult{fault}"));
                    check::examples(&actual);
                }
                (Err(code), Err(expected)) => assert_eq!(code, *expected, "{call:?}"),
                (actual, expected) => panic!("{call:?}\nanswered {actual:?}\nexpected {expected:?}"),
            }
        }
        real
    }

    fn check_invariants(real: &Real<D>, model: &Model) {
        let Some(expected) = &model.last else { return };
        let store = real.driver.store();
        let facts = store.read().unwrap();
        check::history(&*facts, model);
        if expected.call.is_some() {
            check::state(store, &*facts, model);
        }
        if real.steps.is_multiple_of(LOOKS) {
            check::everything(&*facts, model);
        }
        drop(facts);
        if real.steps.is_multiple_of(REPLAYS) && expected.call.is_some() {
            assert_eq!(real.driver.findings(), []);
        }
    }

    fn teardown(real: Real<D>, model: Model) {
        check::everything(&*real.driver.store().read().unwrap(), &model);
        assert_eq!(real.driver.findings(), []);
    }
}

/// Runs sequences of steps until at least `wanted` requests were made.
fn run<D: Driver + 'static>(wanted: usize, longest: usize) {
    let seed = std::env::var("RELAY_MODEL_SEED").map_or(20_261_115, |seed| seed.parse::<u64>().unwrap());
    for round in 0.. {
        let config = Config {
            cases: 4,
            rng_seed: RngSeed::Fixed(seed + round),
            failure_persistence: None,
            max_shrink_iters: 1_500,
            ..Config::default()
        };
        let strategy = Model::sequential_strategy(1..=longest);
        let outcome = TestRunner::new(config.clone()).run(&strategy, |(model, steps, seen)| {
            Compared::<D>::test_sequential(config.clone(), model, steps, seen);
            Ok(())
        });
        if let Err(fault) = outcome {
            panic!("seed {}: {fault}", seed + round);
        }
        if D::tally().steps() >= times(wanted) {
            return;
        }
    }
}

/// Every event that a project of one machine can have, but for the opening and moving of projects.
const KINDS: [&str; 22] = [
    "agent_registered",
    "agent_resumed",
    "agent_suspended",
    "agent_reinstated",
    "agent_retired",
    "policy_set",
    "thread_prepared",
    "thread_left",
    "thread_closed",
    "message_sent",
    "held_lapsed",
    "mail_surfaced",
    "mail_read",
    "mail_acked",
    "reservation_granted",
    "reservation_renewed",
    "reservation_released",
    "reservation_taken",
    "link_requested",
    "link_accepted",
    "link_blocked",
    "link_revoked",
];

/// Every class by which these requests can be refused.
const CLASSES: [&str; 21] = [
    "AGENT_NOT_REGISTERED",
    "AGENT_NAME_TAKEN",
    "AGENT_RETIRED",
    "AGENT_SUSPENDED",
    "THREAD_MISMATCH",
    "THREAD_NOT_FOUND",
    "MESSAGE_NOT_FOUND",
    "NOT_A_RECIPIENT",
    "RECIPIENT_NOT_FOUND",
    "CONTACT_REQUIRED",
    "CONTACT_PENDING",
    "CONTACT_BLOCKED",
    "LINK_NOT_FOUND",
    "FILE_RESERVATION_CONFLICT",
    "RESERVATION_NOT_HELD",
    "HOLDER_ALIVE",
    "PATTERN_INVALID",
    "PATTERN_OUTSIDE_PROJECT",
    "TTL_OUT_OF_RANGE",
    "INPUT_INVALID",
    "IDEMPOTENCY_REUSED",
];

#[test]
fn ten_thousand_random_steps_come_out_as_the_model_says() {
    run::<InProcess>(10_000, 300);
    let tally = InProcess::tally();
    let (recovered, failed_again) =
        (tally.recovered.load(Ordering::Relaxed), tally.failed_again.load(Ordering::Relaxed));
    summary(&format!(
        "{} steps against the model, in process; {recovered} recoveries helped, {failed_again} did not",
        tally.steps()
    ));
    assert!(recovered > 20 && failed_again > 50, "{recovered} and {failed_again}");
    assert!(tally.steps() >= 10_000);
    let seen = tally.seen.lock().unwrap();
    let never: Vec<&str> = KINDS.into_iter().chain(CLASSES).filter(|what| !seen.contains(what)).collect();
    assert_eq!(never, Vec::<&str>::new(), "the steps must come by everything");
    assert_eq!(seen.len(), KINDS.len() + CLASSES.len(), "{seen:?}");
}

#[test]
fn five_hundred_random_steps_through_the_binary_come_out_as_the_model_says() {
    run::<Binary>(500, 150);
    summary(&format!("{} steps against the model, through the binary", Binary::tally().steps()));
    assert!(Binary::tally().steps() >= 500);
}
