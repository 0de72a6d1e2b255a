//! Follows an automaton through all of its states at once.
//!
//! It costs a bounded amount of work per byte, and unlike a lazy DFA it tells which states are left.

use regex_automata::nfa::thompson::State;
use regex_automata::util::primitives::StateID;

use super::nfa::{Nfa, each_branch};

pub(super) struct Walk<'a> {
    nfa: &'a Nfa,
    /// The last round in which each state was reached.
    reached: Vec<u32>,
    round: u32,
}

impl<'a> Walk<'a> {
    pub fn new(nfa: &'a Nfa) -> Self {
        Self { nfa, reached: vec![0; nfa.len()], round: 0 }
    }

    /// The states that read or accept, once all of `bytes` are read.
    pub fn run(mut self, bytes: &[u8]) -> Vec<StateID> {
        let (mut states, mut next) = (self.start(), Vec::with_capacity(self.nfa.len()));
        for byte in bytes {
            if states.is_empty() {
                break;
            }
            self.step(&states, *byte, &mut next);
            std::mem::swap(&mut states, &mut next);
        }
        states
    }

    pub fn start(&mut self) -> Vec<StateID> {
        let mut states = Vec::with_capacity(self.nfa.len());
        self.round += 1;
        self.reach(self.nfa.start(), &mut states);
        states
    }

    /// Replaces `next` by the states after reading `byte` in one of `states`.
    pub fn step(&mut self, states: &[StateID], byte: u8, next: &mut Vec<StateID>) {
        next.clear();
        self.round += 1;
        for id in states {
            let (set, target) = self.nfa.read(*id);
            if set.contains(byte) {
                self.reach(target, next);
            }
        }
    }

    /// Adds `id`, or what it leads to without reading. No chain of such states is long.
    fn reach(&mut self, id: StateID, states: &mut Vec<StateID>) {
        if std::mem::replace(&mut self.reached[id.as_usize()], self.round) == self.round {
            return;
        }
        let state = self.nfa.state(id);
        if state.is_epsilon() {
            each_branch(state, |branch| self.reach(branch, states));
        } else {
            states.push(id);
        }
    }
}

/// Whether one of `states` accepts.
pub(super) fn accepts(nfa: &Nfa, states: &[StateID]) -> bool {
    states.iter().any(|id| matches!(nfa.state(*id), State::Match { .. }))
}
