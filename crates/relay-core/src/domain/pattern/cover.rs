//! Decides whether one automaton accepts every path that another accepts.
//!
//! The question is hard in general, so the search gives up beyond a limit and then answers no:
//! a missed cover costs a redundant claim, never a conflict.

use std::collections::HashMap;
use std::rc::Rc;

use regex_automata::nfa::thompson::State;
use regex_automata::util::alphabet::Unit;
use regex_automata::util::primitives::StateID;

use super::bytes::ByteSet;
use super::nfa::{Nfa, each_branch};
use super::universe::{Place, ascii_suffices};
use super::walk::{Walk, accepts};

/// How many combinations of states are looked at.
const MAX_VISITS: usize = 50_000;
/// How many numbers the sets of states may hold: one or two megabytes.
const MAX_NUMBERS: usize = 1 << 18;

/// The number of a set of states.
type SetId = usize;

struct Search<'a> {
    outer: &'a Nfa,
    inner: &'a Nfa,
    ascii: bool,
    walk: Walk<'a>,
    /// The sets of states that `outer` may be in. The lazy DFA of the library knows them too, but
    /// promises nothing about any of its states except the latest.
    sets: Vec<Rc<[StateID]>>,
    index: HashMap<Rc<[StateID]>, SetId>,
    /// The set that each set leads to by each class of bytes.
    table: HashMap<(SetId, u8), SetId>,
    numbers: usize,
    /// For each state of `inner` and set of `outer`, the places not to be visited at again.
    seen: HashMap<(StateID, SetId), u16>,
    pending: Vec<(StateID, SetId, Place)>,
}

/// Looks for a valid path that `inner` accepts and `outer` does not.
pub(super) fn covers(outer: &Nfa, inner: &Nfa) -> bool {
    let mut search = Search {
        outer,
        inner,
        ascii: ascii_suffices(&[inner], &[outer]),
        walk: Walk::new(outer),
        sets: Vec::new(),
        index: HashMap::new(),
        table: HashMap::new(),
        numbers: 0,
        seen: HashMap::new(),
        pending: Vec::new(),
    };
    let start = search.walk.start();
    let start = search.number(start);
    search.add(inner.start(), start, Place::Start);
    for _ in 0..MAX_VISITS {
        let Some((inner, outer, place)) = search.pending.pop() else {
            return true;
        };
        if search.numbers > MAX_NUMBERS || search.expand(inner, outer, place) {
            return false;
        }
    }
    false
}

impl Search<'_> {
    /// Adds what a combination leads to; true if it is a path that only `inner` accepts.
    fn expand(&mut self, inner: StateID, outer: SetId, place: Place) -> bool {
        let state = self.inner.state(inner);
        each_branch(state, |branch| self.add(branch, outer, place));
        let (set, next) = self.inner.read(inner);
        self.read(*set, next, outer, place);
        matches!(state, State::Match { .. }) && place == Place::Inner && !accepts(self.outer, &self.sets[outer])
    }

    fn read(&mut self, set: ByteSet, next: StateID, outer: SetId, place: Place) {
        let classes = self.outer.graph.byte_classes();
        let high = if self.ascii { &[] } else { place.high_moves() };
        for (bytes, place) in place.ascii_moves().iter().chain(high) {
            let ranges = set.and(*bytes).ranges();
            let letters = ranges.flat_map(|(low, high)| classes.representatives(low..=high));
            for byte in letters.filter_map(Unit::as_u8) {
                let target = self.step(outer, classes.get(byte), byte);
                self.add(next, target, *place);
            }
        }
    }

    fn step(&mut self, from: SetId, class: u8, byte: u8) -> SetId {
        if let Some(known) = self.table.get(&(from, class)) {
            return *known;
        }
        let mut next = Vec::new();
        self.walk.step(&self.sets[from], byte, &mut next);
        let next = self.number(next);
        self.table.insert((from, class), next);
        next
    }

    fn number(&mut self, mut states: Vec<StateID>) -> SetId {
        states.sort_unstable();
        let set: Rc<[StateID]> = states.into();
        let fresh = self.sets.len();
        let id = *self.index.entry(Rc::clone(&set)).or_insert(fresh);
        if id == fresh {
            self.numbers += 2 * set.len() + self.outer.graph.byte_classes().alphabet_len();
            self.sets.push(set);
        }
        id
    }

    fn add(&mut self, inner: StateID, outer: SetId, place: Place) {
        let seen = self.seen.entry((inner, outer)).or_default();
        if *seen & place.bit() == 0 {
            *seen |= place.dominated();
            self.pending.push((inner, outer, place));
        }
    }
}
