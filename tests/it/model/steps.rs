//! What can happen next. A step names things by small numbers ("the third message"), so that it shrinks well; the model
//! turns it into a request for what is there at that moment.

use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use relay_core::domain::agent::Policy;
use relay_core::domain::message::Importance;
use relay_core::domain::name::{Address, AgentName, ThreadId};
use relay_core::domain::time::Span;
use relay_core::verbs::{Request, ack, leave, link, policy, poll, prepare, release, reserve, send, standing, start};

use super::paths::{PATTERNS, WRONG};
use super::state::{AGENTS, Call, Claim, DAY, HOUR, LinkState, MINUTE, Model, Number, Standing, Time, Who};

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
    /// A step of the playbook of the last refusal.
    WayOut(usize),
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
    let who = prop_oneof![12 => select(anybody), 1 => 0..AGENTS.len()];
    let key = || weighted(0.15, 0..6_usize);
    let ask = (who, key(), wish()).prop_map(|(who, key, what)| Step::Ask { who, key, what });
    let arrive = (select(starters), key(), arrival());
    prop_oneof![
        30 => ask,
        1 + 4 * u32::try_from(absent.len()).unwrap() => arrive.prop_map(|(who, key, what)| Step::Ask { who, key, what }),
        5 => time().prop_map(Step::Advance),
        2 => (0..64_usize).prop_map(Step::Again),
        if model.failed.is_some() { 12 } else { 1 } => (0..64_usize).prop_map(Step::WayOut),
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
    let session = (weighted(0.2, 0..2_usize), weighted(0.3, Just(())));
    let rest = (weighted(0.2, 0..PATTERNS.len()), weighted(0.2, 0..AGENTS.len()));
    (session, rest).prop_map(|((session, take_over), (path, parent))| Wish::Start {
        session,
        take_over: take_over.is_some(),
        path,
        parent,
    })
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
    let link_ttl = weighted(0.3, select(vec![30_000, HOUR, HOUR, 2 * DAY, 2 * DAY, 30 * DAY]));
    let ack = (vec(0..40_usize, 1..3), any::<bool>());
    prop_oneof![
        2 => (action, weighted(0.7, 0..AGENTS.len())).prop_map(|(action, target)| Wish::Standing { action, target }),
        3 => policies.prop_map(Wish::Policy),
        6 => (0..AGENTS.len(), act, link_ttl).prop_map(|(target, act, ttl)| Wish::Link { target, act, ttl }),
        14 => letter().prop_map(Wish::Send),
        6 => polling(),
        4 => ack.prop_map(|(messages, read)| Wish::Ack { messages, read }),
        8 => reserving(),
        8 => giving().prop_map(Wish::Release),
        2 => (0..THREADS.len()).prop_map(Wish::Prepare),
        1 => (0..THREADS.len()).prop_map(Wish::Leave),
        1 => arrival(),
    ]
}

/// Names by number, seen from the sender: the three others, oneself, the groups, the human, and somebody whom nobody knows.
const SELF: usize = 3;
const GROUPS: [&str; 4] = ["@thread", "@all", "human", "Zoe"];

fn name(who: Who, index: usize) -> &'static str {
    let me = AGENTS.iter().position(|agent| *agent == who).unwrap();
    if index <= SELF { AGENTS[(me + 1 + index) % AGENTS.len()] } else { GROUPS[index - SELF - 1] }
}

/// Some of the others, and now and then somebody special or one twice.
fn names(fewest: usize, most: usize) -> impl Strategy<Value = Vec<usize>> {
    let others = subsequence(vec![0, 1, 2], fewest..=most);
    let extra = prop_oneof![
        20 => Just(None),
        2 => Just(Some(SELF + 1)),
        2 => Just(Some(SELF + 2)),
        1 => (0..SELF + 1 + GROUPS.len()).prop_map(Some)
    ];
    (others, extra).prop_map(|(mut names, extra)| {
        names.extend(extra);
        names
    })
}

fn letter() -> impl Strategy<Value = Letter> {
    let to = prop_oneof![5 => names(1, 1), 2 => names(1, 3), 2 => names(0, 0)];
    let copies = || prop_oneof![12 => Just(Vec::new()), 1 => names(1, 2)];
    let (copies, blind) = (copies(), copies());
    let place = (weighted(0.6, 0..THREADS.len()), weighted(0.3, 0..40_usize), weighted(0.9, Just(())));
    let flags = (weighted(0.2, Just(())), weighted(0.4, Just(())), any::<bool>(), weighted(0.2, Just(())));
    (to, copies, blind, place, flags).prop_map(|(to, cc, bcc, place, flags)| Letter {
        to,
        cc,
        bcc,
        thread: place.0.filter(|_| place.1.is_none() || flags.0.is_some()),
        reply_to: place.1,
        subject: place.2.is_some(),
        urgent: flags.0.is_some(),
        ack_required: flags.1.is_some(),
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
    let ttls = select(vec![
        MINUTE - 1_000,
        MINUTE,
        20 * MINUTE,
        20 * MINUTE,
        3 * HOUR,
        3 * HOUR,
        24 * HOUR,
        24 * HOUR,
        25 * HOUR,
    ]);
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
    let ttl = prop_oneof![4 => Just(30 * MINUTE), 4 => Just(2 * HOUR), 1 => Just(0)];
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
        Step::WayOut(index) => model.way_out(*index),
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
    let agent = |name: Who| AgentName::parse(name).unwrap();
    match what {
        Wish::Start { session, take_over, path, parent } => Request::Start(start::Input {
            session: session.map(|session| format!("session-{session}")),
            take_over: *take_over,
            path: path.iter().map(|path| PATTERNS[*path].to_owned()).collect(),
            // Only `register` names a parent, and it takes nothing else.
            parent: parent
                .filter(|_| path.is_none() && session.is_none() && !take_over)
                .map(|index| agent(AGENTS[index])),
            ..start::Input::default()
        }),
        Wish::Standing { action, target } => {
            let suspended = model.agents.iter().filter(|agent| agent.standing == Standing::Suspended);
            let suspended: Vec<Who> = suspended.map(|agent| agent.name).collect();
            let target = match action {
                standing::Action::Reinstate => Some(pick(&suspended, target.unwrap_or(0)).unwrap_or(AGENTS[0])),
                standing::Action::Suspend => Some(AGENTS[target.unwrap_or(0)]),
                standing::Action::Retire => target.map(|index| AGENTS[index]),
            };
            Request::Standing(standing::Input { action: *action, name: target.map(agent) })
        }
        Wish::Policy(policy) => Request::Policy(policy::Input { policy: *policy }),
        Wish::Link { target, act, ttl } => Request::Link(link::Input {
            target: Some(Address::parse(counterpart(model, who, *target, *act))),
            ttl: ttl.map(Span::millis),
            accept: matches!(act, Act::Accept),
            block: matches!(act, Act::Block),
            revoke: matches!(act, Act::Revoke),
            ..link::Input::default()
        }),
        Wish::Send(letter) => Request::Send(sending(model, who, letter)),
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
            let inbox: Vec<Number> = model.inbox(who).iter().rev().map(|(_, message, _)| message.id).collect();
            // Every fifth is any message, not one's own.
            let own = |index: usize| pick(&inbox, index).filter(|_| !index.is_multiple_of(5));
            let ids = messages.iter().map(|index| own(*index).unwrap_or_else(|| message(model, *index))).collect();
            Request::Ack(ack::Input { ids, read: *read })
        }
        Wish::Reserve { patterns, shared, if_free, ttl, reason } => Request::Reserve(reserve::Input {
            patterns: patterns.iter().map(|index| pattern(*index)).collect(),
            ttl: ttl.map(Span::millis),
            shared: *shared,
            reason: reason.map(thread),
            if_free: *if_free,
            wait: None,
        }),
        Wish::Release(giving) => Request::Release(releasing(model, who, giving)),
        Wish::Prepare(index) => {
            Request::Prepare(prepare::Input { thread: thread(*index), limit: None, start: start::Input::default() })
        }
        Wish::Leave(index) => Request::Leave(leave::Input { thread: thread(*index) }),
    }
}

/// Whom a decision about a link concerns: an answer mostly somebody who asked.
fn counterpart(model: &Model, who: Who, index: usize, act: Act) -> Who {
    let asks = |other: &&Who| {
        let link = model.link(who, other);
        link.is_some_and(|link| link.from == **other && model.link_state(link) == LinkState::Requested)
    };
    let asking: Vec<Who> = AGENTS.iter().filter(asks).copied().collect();
    match act {
        Act::Accept => pick(&asking, index).unwrap_or(name(who, index)),
        _ => name(who, index),
    }
}

fn sending(model: &Model, who: Who, letter: &Letter) -> send::Input {
    let addresses = |names: &[usize]| names.iter().map(|index| Address::parse(name(who, *index))).collect();
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

fn releasing(model: &Model, who: Who, giving: &Giving) -> release::Input {
    let (own, others): (Vec<&Claim>, Vec<&Claim>) = model.live().partition(|claim| claim.holder == who);
    let id = |claims: &[&Claim], index: usize| pick(claims, index).map_or(index as Number, |claim| claim.id);
    let text = |claims: &[&Claim], index: usize| {
        vec![pick(claims, index).map_or_else(|| pattern(index % PATTERNS.len()), |claim| claim.pattern.clone())]
    };
    let none = release::Input::default();
    let taking = release::Input { force: true, why: Some("the holder is gone".to_owned()), ..none.clone() };
    match giving {
        Giving::Pattern(index) => release::Input { patterns: text(&own, *index), ..none },
        Giving::Id(index) => release::Input { id: vec![id(&own, *index)], ..none },
        Giving::All => release::Input { all: true, ..none },
        Giving::Reason { thread: index, done } => release::Input { reason: Some(thread(*index)), done: *done, ..none },
        Giving::Renew { pattern, ttl } => release::Input {
            patterns: pattern.map(|index| text(&own, index)).unwrap_or_default(),
            renew: Some(Span::millis(*ttl)),
            ..none
        },
        Giving::TakePattern(index) => release::Input { patterns: text(&others, *index), ..taking },
        Giving::TakeId(index) => release::Input { id: vec![id(&others, *index)], ..taking },
    }
}

fn thread(index: usize) -> ThreadId {
    ThreadId::parse(THREADS[index]).unwrap()
}

fn pattern(index: usize) -> String {
    PATTERNS.into_iter().chain(WRONG.map(|(text, _)| text)).nth(index).unwrap().to_owned()
}

/// One of these; now and then none, for what is not there.
fn pick<T: Copy>(all: &[T], index: usize) -> Option<T> {
    if index >= 38 { None } else { all.get(index.checked_rem(all.len())?).copied() }
}

/// Any message, rather a new one, or a number that is none.
fn message(model: &Model, index: usize) -> Number {
    let newest: Vec<Number> = model.messages.iter().rev().take(12).map(|message| message.id).collect();
    pick(&newest, index).unwrap_or(1_000_000)
}

fn cursor(model: &Model, who: Who, index: usize) -> Number {
    model.inbox(who).iter().rev().nth(index).map_or(0, |(by, _, _)| *by)
}
