//! Finds a shortest path that two automata both accept, by searching their product.
//!
//! A pair of states is visited a bounded number of times, so the cost is bounded by the product of
//! the two sizes, whatever the patterns are.

use regex_automata::nfa::thompson::State;
use regex_automata::util::primitives::StateID;

use super::bytes::ByteSet;
use super::nfa::{Nfa, each_branch};
use super::universe::{Place, ascii_suffices};

/// An automaton and the states it may be in at the start of the search.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub nfa: &'a Nfa,
    pub starts: &'a [StateID],
}

/// A shortest continuation from `place` that both sides accept and that completes a valid path.
pub(super) fn witness(left: Side<'_>, right: Side<'_>, place: Place) -> Option<String> {
    let search = |ascii| Search::new(left.nfa, right.nfa, ascii).run(left, right, place);
    // An ASCII example is the one to show, so it is looked for first.
    let bytes = search(true).or_else(|| {
        let complete = ascii_suffices(&[left.nfa, right.nfa], &[]);
        if complete { None } else { search(false) }
    })?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A shortest valid path that both automata accept.
pub(super) fn common_path(left: &Nfa, right: &Nfa) -> Option<String> {
    let left = Side { nfa: left, starts: &[left.start()] };
    let right = Side { nfa: right, starts: &[right.start()] };
    witness(left, right, Place::Start)
}

struct Search<'a> {
    left: &'a Nfa,
    right: &'a Nfa,
    ascii: bool,
    /// For each pair of states, the places it need not be visited at again.
    seen: Vec<u16>,
    /// The bytes read so far, as links to the byte before; the first entry stands for none.
    trail: Vec<(u32, u8)>,
    /// What is reachable with as many bytes as the current round, and with one more.
    current: Vec<Visit>,
    next: Vec<Visit>,
    /// What of the current round does not branch any further.
    ready: Vec<Visit>,
}

#[derive(Clone, Copy)]
struct Visit {
    left: StateID,
    right: StateID,
    place: Place,
    trail: u32,
}

impl<'a> Search<'a> {
    fn new(left: &'a Nfa, right: &'a Nfa, ascii: bool) -> Self {
        let seen = vec![0; left.len() * right.len()];
        // Most searches are short, and growing these would be a good part of their time.
        let (current, next, ready) = (Vec::with_capacity(32), Vec::with_capacity(32), Vec::with_capacity(32));
        let mut trail = Vec::with_capacity(32);
        trail.push((0, 0));
        Self { left, right, ascii, seen, trail, current, next, ready }
    }

    fn run(mut self, left: Side<'_>, right: Side<'_>, place: Place) -> Option<Vec<u8>> {
        for (left, right) in left.starts.iter().flat_map(|l| right.starts.iter().map(move |r| (*l, *r))) {
            self.stay(Visit { left, right, place, trail: 0 });
        }
        while !self.current.is_empty() {
            // All branches come before the first read: what only the next round sees must not keep
            // the current one from seeing it with a byte less.
            while let Some(visit) = self.current.pop() {
                self.branch(visit);
            }
            for at in 0..self.ready.len() {
                if self.advance(self.ready[at]) {
                    return Some(self.spell(self.ready[at].trail));
                }
            }
            self.ready.clear();
            std::mem::swap(&mut self.current, &mut self.next);
        }
        None
    }

    fn branch(&mut self, visit: Visit) {
        let (left, right) = (self.left.state(visit.left), self.right.state(visit.right));
        if left.is_epsilon() {
            each_branch(left, |left| self.stay(Visit { left, ..visit }));
        } else if right.is_epsilon() {
            each_branch(right, |right| self.stay(Visit { right, ..visit }));
        } else {
            self.ready.push(visit);
        }
    }

    /// Reads a byte on both sides, or tells that both accept.
    fn advance(&mut self, visit: Visit) -> bool {
        let (reads, left) = self.left.read(visit.left);
        let (others, right) = self.right.read(visit.right);
        self.read(reads.and(*others), Visit { left, right, ..visit });
        let states = (self.left.state(visit.left), self.right.state(visit.right));
        matches!(states, (State::Match { .. }, State::Match { .. })) && visit.place == Place::Inner
    }

    fn read(&mut self, common: ByteSet, target: Visit) {
        if common.is_empty() {
            return;
        }
        let high = if self.ascii { &[] } else { target.place.high_moves() };
        for (bytes, place) in target.place.ascii_moves().iter().chain(high) {
            let Some(byte) = common.and(*bytes).most_readable() else {
                continue;
            };
            let target = Visit { place: *place, ..target };
            if self.is_new(target) {
                // Fewer visits than a `u32` counts: two patterns of a few thousand states at most.
                let trail = self.trail.len() as u32;
                self.trail.push((target.trail, byte));
                self.next.push(Visit { trail, ..target });
            }
        }
    }

    fn stay(&mut self, visit: Visit) {
        if self.is_new(visit) {
            self.current.push(visit);
        }
    }

    fn is_new(&mut self, visit: Visit) -> bool {
        let pair = visit.left.as_usize() * self.right.len() + visit.right.as_usize();
        let fresh = self.seen[pair] & visit.place.bit() == 0;
        self.seen[pair] |= visit.place.dominated();
        fresh
    }

    fn spell(&self, mut link: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        while link != 0 {
            let (before, byte) = self.trail[link as usize];
            bytes.push(byte);
            link = before;
        }
        bytes.reverse();
        bytes
    }
}
