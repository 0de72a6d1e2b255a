//! The verbs against a small model of them: thousands of random steps, and after each one the answer, the events and the
//! whole state must be what the model says.
//!
//! `state.rs` is the model, `verbs.rs`, `mail.rs`, `links.rs` and `claims.rs` are its rules, `paths.rs` decides overlap by
//! brute force, `steps.rs` says what can happen next, `drive.rs` has the ways to the real thing, `check.rs` compares.

mod check;
mod claims;
mod drive;
mod links;
mod mail;
mod paths;
mod state;
mod steps;
mod verbs;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};
use relay_core::domain::name::ThreadId;
use relay_core::verbs::{Request, poll};

use crate::bus::EPOCH;
use drive::{Binary, Driver, InProcess};
use state::{Call, Expected, Model};
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
            Some(call) => model.call(call).map_err(|refused| refused.code),
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

static STEPS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

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
            match (real.driver.call(call), &expected.answer) {
                (Ok(actual), Ok(expected)) => {
                    check::answer(&actual, expected)
                        .unwrap_or_else(|fault| panic!("{call:?}\nanswered {actual}\nresult{fault}"));
                    check::examples(&actual);
                }
                (Err(code), Err(expected)) => assert_eq!(code, *expected, "{call:?}"),
                (actual, expected) => panic!("{call:?}\nanswered {actual:?}\nexpected {expected:?}"),
            }
            show_again(&real.driver, call, model);
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
            assert_eq!(real.driver.differences(), Vec::<String>::new());
        }
    }

    fn teardown(real: Real<D>, model: Model) {
        check::everything(&*real.driver.store().read().unwrap(), &model);
        assert_eq!(real.driver.differences(), Vec::<String>::new());
    }
}

/// Noting what was shown gives up after 50 ms of contention, which a busy machine can make of nothing; then it is shown
/// again. So it is asked for again until it is noted, by a poll that shows no more than the request did.
fn show_again(driver: &impl Driver, call: &Call, model: &Model) {
    if model.last.as_ref().and_then(|last| last.kinds.last().copied()) != Some("mail_surfaced") {
        return;
    }
    let tip = || driver.store().read().unwrap().tip().unwrap().number;
    let nothing = poll::Input { thread: ThreadId::parse("no-such-thread").ok(), ..poll::Input::default() };
    let request = match &call.request {
        Request::Poll(input) => Request::Poll(input.clone()),
        _ => Request::Poll(nothing),
    };
    while tip() + 1 == model.tip {
        driver.call(&Call { request: request.clone(), ..call.clone() }).unwrap();
    }
}

/// Runs sequences of steps until at least `wanted` requests were made, and returns how many were.
fn run<D: Driver + 'static>(wanted: usize, longest: usize, counter: &'static AtomicUsize) -> usize {
    let seed = std::env::var("RELAY_MODEL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_115);
    let factor: usize = std::env::var("RELAY_MODEL_TIMES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
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
            counter.fetch_add(steps.iter().filter(|step| !matches!(step, Step::Advance(_))).count(), Ordering::Relaxed);
            Compared::<D>::test_sequential(config.clone(), model, steps, seen);
            Ok(())
        });
        if let Err(fault) = outcome {
            panic!("seed {}: {fault}", seed + round);
        }
        if counter.load(Ordering::Relaxed) >= wanted * factor {
            break;
        }
    }
    counter.load(Ordering::Relaxed)
}

#[test]
fn ten_thousand_random_steps_come_out_as_the_model_says() {
    let steps = run::<InProcess>(10_000, 300, &STEPS[0]);
    println!("{steps} steps against the model, in process");
    assert!(steps >= 10_000);
}

#[test]
fn five_hundred_random_steps_through_the_binary_come_out_as_the_model_says() {
    let steps = run::<Binary>(500, 150, &STEPS[1]);
    println!("{steps} steps against the model, through the binary");
    assert!(steps >= 500);
}
