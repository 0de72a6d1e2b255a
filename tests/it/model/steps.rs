//! What can happen next. A step names things by small numbers ("the third message"), so that it shrinks well; the model
//! turns it into a request for what is there at that moment.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use relay_core::domain::agent::Policy;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{Address, AgentName, ThreadId};
use relay_core::domain::time::Span;
use relay_core::verbs::{Request, ack, leave, link, policy, poll, prepare, release, reserve, send, standing, start};

use super::paths::{PATTERNS, WRONG};
use super::state::{AGENTS, Call, DAY, HOUR, MINUTE, Model, Number, Standing, Time, Who};

const THREADS: [&str; 4] = ["bd-1", "bd-2", "BD-1", "bd-3"];

#[derive(Clone, Debug)]
pub enum Step {
    Advance(Time),
    Ask {
        who: usize,
        key: Option<usize>,
        what: Wish,
    },
    /// A remembered request of somebody, once more.
    Again(usize),
}

#[derive(Clone, Debug)]
pub enum Wish {
    Start { session: Option<usize>, take_over: bool, path: Option<usize>, parent: Option<usize> },
    Standing { action: standing::Action, target: Option<usize> },
    Policy(Policy),
    Link { target: usize, act: Act, ttl: Option<Time> },
    Send(Letter),
    Poll { limit: Option<usize>, after: Option<usize>, thread: Option<usize>, urgent: bool, all: bool, read: bool },
    Ack { messages: Vec<usize>, read: bool },
    Reserve { patterns: Vec<usize>, shared: bool, if_free: bool, ttl: Option<Time>, reason: Option<usize> },
    Release(Giving),
    Prepare(usize),
    Leave(usize),
}

#[derive(Clone, Copy, Debug)]
pub enum Act {
    Ask,
    Accept,
    Block,
    Revoke,
}

#[derive(Clone, Debug)]
pub struct Letter {
    to: Vec<usize>,
    cc: Vec<usize>,
    bcc: Vec<usize>,
    thread: Option<usize>,
    reply_to: Option<usize>,
    subject: bool,
    urgent: bool,
    ack_required: bool,
    hold: bool,
    no_recover: bool,
}

#[derive(Clone, Debug)]
pub enum Giving {
    Pattern(usize),
    Id(usize),
    All,
    Reason { thread: usize, done: bool },
    Renew { pattern: Option<usize>, ttl: Time },
    TakePattern(usize),
    TakeId(usize),
}

/// The next step. Whoever is not here, or went quiet, is likely to start.
pub fn next(model: &Model) -> BoxedStrategy<Step> {
    let is_here = |who: &&Who| model.agent(who).is_some_and(|agent| model.standing(agent) == Standing::Active);
    let absent: Vec<usize> = (0..AGENTS.len()).filter(|index| !is_here(&&AGENTS[*index])).collect();
    let here: Vec<usize> = (0..AGENTS.len()).filter(|index| is_here(&&AGENTS[*index])).collect();
    let starters = if absent.is_empty() { (0..AGENTS.len()).collect() } else { absent.clone() };
    // Mostly somebody who may act, now and then somebody who may not.
    let anybody = if here.is_empty() { (0..AGENTS.len()).collect() } else { here };
    let who = prop_oneof![12 => proptest::sample::select(anybody), 1 => 0..AGENTS.len()];
    let key = || weighted(0.15, 0..6_usize);
    let ask = (who, key(), wish()).prop_map(|(who, key, what)| Step::Ask { who, key, what });
    let arrive = (proptest::sample::select(starters), key(), arrival());
    prop_oneof![
        30 => ask,
        1 + 4 * u32::try_from(absent.len()).unwrap() => arrive.prop_map(|(who, key, what)| Step::Ask { who, key, what }),
        5 => time().prop_map(Step::Advance),
        2 => (0..64_usize).prop_map(Step::Again),
    ]
    .boxed()
}

fn time() -> impl Strategy<Value = Time> {
    prop_oneof![
        6 => (1..9_i64).prop_map(|count| count * MINUTE),
        6 => (11..70_i64).prop_map(|count| count * MINUTE),
        2 => (1..26_i64).prop_map(|count| count * HOUR),
        1 => (2..9_i64).prop_map(|count| count * DAY),
    ]
}

fn arrival() -> impl Strategy<Value = Wish> {
    let parts =
        (weighted(0.2, 0..2_usize), any::<bool>(), weighted(0.2, 0..PATTERNS.len()), weighted(0.2, 0..AGENTS.len()));
    parts.prop_map(|(session, take_over, path, parent)| Wish::Start { session, take_over, path, parent })
}

fn wish() -> impl Strategy<Value = Wish> {
    let action = prop_oneof![
        1 => Just(standing::Action::Retire),
        1 => Just(standing::Action::Suspend),
        3 => Just(standing::Action::Reinstate)
    ];
    let policies = prop_oneof![
        2 => Just(Policy::Open),
        3 => Just(Policy::Auto),
        4 => Just(Policy::ContactsOnly),
        1 => Just(Policy::BlockAll)
    ];
    let act = prop_oneof![
        4 => Just(Act::Ask),
        4 => Just(Act::Accept),
        1 => Just(Act::Block),
        3 => Just(Act::Revoke)
    ];
    let link_ttl = weighted(0.3, proptest::sample::select(vec![30_000, HOUR, 2 * DAY, 30 * DAY]));
    let ack = (vec(0..40_usize, 1..3), any::<bool>());
    prop_oneof![
        2 => (action, weighted(0.7, 0..AGENTS.len())).prop_map(|(action, target)| Wish::Standing { action, target }),
        3 => policies.prop_map(Wish::Policy),
        5 => (0..AGENTS.len(), act, link_ttl).prop_map(|(target, act, ttl)| Wish::Link { target, act, ttl }),
        14 => letter().prop_map(Wish::Send),
        8 => polling(),
        4 => ack.prop_map(|(messages, read)| Wish::Ack { messages, read }),
        8 => reserving(),
        6 => giving().prop_map(Wish::Release),
        2 => (0..THREADS.len()).prop_map(Wish::Prepare),
        1 => (0..THREADS.len()).prop_map(Wish::Leave),
        1 => arrival(),
    ]
}

/// Names by number: the agents, then the groups, the human and somebody whom nobody knows.
const NAMES: [&str; 8] = ["Ann", "Bob", "Cyd", "Dee", "@thread", "@all", "human", "Zoe"];

fn names(most: usize) -> impl Strategy<Value = Vec<usize>> {
    let one = prop_oneof![20 => 0..AGENTS.len(), 2 => 4..6_usize, 1 => 6..NAMES.len()];
    vec(one, 0..=most)
}

fn letter() -> impl Strategy<Value = Letter> {
    let to = prop_oneof![4 => names(1), 2 => names(3)];
    let copies = prop_oneof![8 => Just(Vec::new()), 1 => names(2)];
    let blind = prop_oneof![8 => Just(Vec::new()), 1 => names(2)];
    let place = (weighted(0.6, 0..THREADS.len()), weighted(0.4, 0..40_usize), weighted(0.8, Just(())));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), weighted(0.2, Just(())));
    (to, copies, blind, place, flags).prop_map(|(to, cc, bcc, place, flags)| Letter {
        to,
        cc,
        bcc,
        thread: place.0.filter(|_| place.1.is_none() || flags.0 && flags.1),
        reply_to: place.1,
        subject: place.2.is_some(),
        urgent: flags.0,
        ack_required: flags.1,
        hold: flags.2,
        no_recover: flags.3.is_some(),
    })
}

fn polling() -> impl Strategy<Value = Wish> {
    let limit = weighted(0.4, prop_oneof![1 => Just(0_usize), 8 => 1..4_usize, 1 => Just(101)]);
    let rest = (weighted(0.2, 0..40_usize), weighted(0.1, 0..THREADS.len()), weighted(0.1, Just(())));
    (limit, rest, any::<bool>(), weighted(0.2, Just(()))).prop_map(|(limit, (after, thread, urgent), read, all)| {
        Wish::Poll { limit, after, thread, urgent: urgent.is_some(), all: all.is_some(), read }
    })
}

fn reserving() -> impl Strategy<Value = Wish> {
    let one = prop_oneof![40 => 0..PATTERNS.len(), 1 => PATTERNS.len()..PATTERNS.len() + WRONG.len()];
    let ttls = proptest::sample::select(vec![MINUTE - 1_000, MINUTE, 20 * MINUTE, 3 * HOUR, 24 * HOUR, 25 * HOUR]);
    let flags = (weighted(0.35, Just(())), weighted(0.2, Just(())));
    (vec(one, 1..4), flags, weighted(0.4, ttls), weighted(0.3, 0..THREADS.len())).prop_map(
        |(patterns, (shared, if_free), ttl, reason)| Wish::Reserve {
            patterns,
            shared: shared.is_some(),
            if_free: if_free.is_some(),
            ttl,
            reason,
        },
    )
}

fn giving() -> impl Strategy<Value = Giving> {
    let ttl = prop_oneof![Just(30 * MINUTE), Just(2 * HOUR), Just(0)];
    let reason = (0..THREADS.len(), any::<bool>());
    prop_oneof![
        3 => (0..PATTERNS.len()).prop_map(Giving::Pattern),
        2 => (0..40_usize).prop_map(Giving::Id),
        1 => Just(Giving::All),
        2 => reason.prop_map(|(thread, done)| Giving::Reason { thread, done }),
        2 => (weighted(0.5, 0..PATTERNS.len()), ttl).prop_map(|(pattern, ttl)| Giving::Renew { pattern, ttl }),
        3 => (0..PATTERNS.len()).prop_map(Giving::TakePattern),
        3 => (0..40_usize).prop_map(Giving::TakeId),
    ]
}

/// The request that a step means now; none when only time goes by, or nothing is remembered.
pub fn call(model: &Model, step: &Step) -> Option<Call> {
    match step {
        Step::Advance(_) => None,
        Step::Again(index) => {
            let count = model.answers.len();
            let ((who, key), (request, _)) = model.answers.iter().nth(index.checked_rem(count)?)?;
            Some(Call { who, key: Some(key.clone()), request: request.clone() })
        }
        Step::Ask { who, key, what } => {
            let key = key.map(|key| format!("key-{key}"));
            Some(Call { who: AGENTS[*who], key, request: request(model, AGENTS[*who], what) })
        }
    }
}

fn request(model: &Model, who: Who, what: &Wish) -> Request {
    let name = |index: usize| AgentName::parse(AGENTS[index]).unwrap();
    match what {
        Wish::Start { session, take_over, path, parent } => Request::Start(start::Input {
            session: session.map(|session| format!("session-{session}")),
            take_over: *take_over,
            path: path.iter().map(|path| PATTERNS[*path].to_owned()).collect(),
            // Only `register` names a parent, and it takes nothing else.
            parent: parent.filter(|_| path.is_none() && session.is_none() && !take_over).map(name),
            ..start::Input::default()
        }),
        Wish::Standing { action, target } => {
            let target = target.or((*action != standing::Action::Retire).then_some(0));
            Request::Standing(standing::Input { action: *action, name: target.map(name) })
        }
        Wish::Policy(policy) => Request::Policy(policy::Input { policy: *policy }),
        Wish::Link { target, act, ttl } => Request::Link(link::Input {
            target: Some(Address::parse(AGENTS[*target])),
            ttl: ttl.map(Span::millis),
            accept: matches!(act, Act::Accept),
            block: matches!(act, Act::Block),
            revoke: matches!(act, Act::Revoke),
            ..link::Input::default()
        }),
        Wish::Send(letter) => Request::Send(sending(model, letter)),
        Wish::Poll { limit, after, thread: about, urgent, all, read } => Request::Poll(poll::Input {
            limit: *limit,
            after: after.map(|after| cursor(model, who, after)),
            thread: about.map(thread),
            urgent: *urgent,
            all: *all,
            read: *read,
            ..poll::Input::default()
        }),
        Wish::Ack { messages, read } => {
            Request::Ack(ack::Input { ids: messages.iter().map(|index| message(model, *index)).collect(), read: *read })
        }
        Wish::Reserve { patterns, shared, if_free, ttl, reason } => Request::Reserve(reserve::Input {
            patterns: patterns.iter().map(|index| pattern(*index)).collect(),
            ttl: ttl.map(Span::millis),
            shared: *shared,
            reason: reason.map(thread),
            if_free: *if_free,
            wait: None,
        }),
        Wish::Release(giving) => Request::Release(releasing(model, giving)),
        Wish::Prepare(index) => {
            Request::Prepare(prepare::Input { thread: thread(*index), limit: None, start: start::Input::default() })
        }
        Wish::Leave(index) => Request::Leave(leave::Input { thread: thread(*index) }),
    }
}

fn sending(model: &Model, letter: &Letter) -> send::Input {
    let addresses = |names: &[usize]| names.iter().map(|index| Address::parse(NAMES[*index])).collect();
    send::Input {
        to: addresses(&letter.to),
        cc: addresses(&letter.cc),
        bcc: addresses(&letter.bcc),
        subject: letter.subject.then(|| "The login".to_owned()),
        body: "text".to_owned(),
        thread: letter.thread.map(thread),
        reply_to: letter.reply_to.map(|index| message(model, index)),
        importance: if letter.urgent { Importance::Urgent } else { Importance::Normal },
        ack_required: letter.ack_required,
        ack_within: None,
        hold: letter.hold,
        no_recover: letter.no_recover,
    }
}

fn releasing(model: &Model, giving: &Giving) -> release::Input {
    let none = release::Input::default();
    let taking = release::Input { force: true, why: Some("the holder is gone".to_owned()), ..none.clone() };
    match giving {
        Giving::Pattern(index) => release::Input { patterns: vec![claimed(model, *index)], ..none },
        Giving::Id(index) => release::Input { id: vec![claim(model, *index)], ..none },
        Giving::All => release::Input { all: true, ..none },
        Giving::Reason { thread: index, done } => release::Input { reason: Some(thread(*index)), done: *done, ..none },
        Giving::Renew { pattern: wanted, ttl } => release::Input {
            patterns: wanted.iter().map(|index| claimed(model, *index)).collect(),
            renew: Some(Span::millis(*ttl)),
            ..none
        },
        Giving::TakePattern(index) => release::Input { patterns: vec![claimed(model, *index)], ..taking },
        Giving::TakeId(index) => release::Input { id: vec![claim(model, *index)], ..taking },
    }
}

fn thread(index: usize) -> ThreadId {
    ThreadId::parse(THREADS[index]).unwrap()
}

fn pattern(index: usize) -> String {
    PATTERNS.into_iter().chain(WRONG.map(|(text, _)| text)).nth(index).unwrap().to_owned()
}

/// The pattern of a live claim, or any.
fn claimed(model: &Model, index: usize) -> String {
    model.live().nth(index).map_or_else(|| pattern(index), |claim| claim.pattern.clone())
}

/// The newest messages come first; a number past all of them is no message.
fn message(model: &Model, index: usize) -> Number {
    model.messages.iter().rev().nth(index / 3).map_or(1_000_000, |message| message.id)
}

/// The same for claims, the live ones before the others.
fn claim(model: &Model, index: usize) -> Number {
    let live = model.live().map(|claim| claim.id);
    let all = live.chain(model.claims.iter().rev().map(|claim| claim.id));
    all.into_iter().nth(index).unwrap_or(1_000_000)
}

fn cursor(model: &Model, who: Who, index: usize) -> Number {
    model.inbox(who).iter().rev().nth(index).map_or(0, |(by, _, _)| *by)
}
