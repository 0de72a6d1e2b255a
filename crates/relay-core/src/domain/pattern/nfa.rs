//! The automaton of a pattern: a Thompson NFA over the bytes of a path, linear in the pattern.
//!
//! It need only be right about valid paths: it may accept `a//b` or `a/`, which
//! [`super::universe`] keeps out of every question that is asked of it.

use std::sync::LazyLock;

use regex_automata::nfa::thompson::{self, NFA, State, Transition};
use regex_automata::util::primitives::StateID;

use super::Case;
use super::bytes::ByteSet;
use super::syntax::Node;

#[derive(Debug)]
pub(super) struct Nfa {
    pub graph: NFA,
    /// The bytes that each state reads, often none, and where they lead. The library keeps them as
    /// a list of ranges, from which a search could not pick the most readable byte at once.
    reads: Vec<(ByteSet, StateID)>,
}

impl Nfa {
    /// Builds the automaton of `nodes`; with `subtree` it also accepts everything below a match.
    pub fn new(nodes: &[Node], subtree: bool, case: Case) -> Self {
        let graph = Builder { graph: thompson::Builder::new(), case }.build(nodes, subtree);
        let reads = graph.states().iter().map(reads).collect();
        Self { graph, reads }
    }

    /// The automaton that accepts every path.
    pub fn anything() -> &'static Self {
        static ANYTHING: LazyLock<Nfa> = LazyLock::new(|| Nfa::new(&[Node::GlobStar], false, Case::Sensitive));
        &ANYTHING
    }

    pub fn start(&self) -> StateID {
        self.graph.start_anchored()
    }

    pub fn len(&self) -> usize {
        self.reads.len()
    }

    pub fn state(&self, id: StateID) -> &State {
        self.graph.state(id)
    }

    /// The bytes that the state reads, and where they lead.
    pub fn read(&self, id: StateID) -> (&ByteSet, StateID) {
        let (set, next) = &self.reads[id.as_usize()];
        (set, *next)
    }

    /// The sets on its edges.
    pub fn sets(&self) -> impl Iterator<Item = ByteSet> {
        self.reads.iter().map(|(set, _)| *set)
    }
}

/// Calls `visit` for every state that `state` continues at without reading.
pub(super) fn each_branch(state: &State, mut visit: impl FnMut(StateID)) {
    match state {
        State::BinaryUnion { alt1, alt2 } => {
            visit(*alt1);
            visit(*alt2);
        }
        State::Union { alternates } => alternates.iter().for_each(|id| visit(*id)),
        // [`Builder`] makes no other states that continue without reading.
        _ => {}
    }
}

fn reads(state: &State) -> (ByteSet, StateID) {
    let transitions = match state {
        State::ByteRange { trans } => std::slice::from_ref(trans),
        State::Sparse(sparse) => &*sparse.transitions,
        _ => &[],
    };
    // The ranges of one state all lead to the same place, see [`Builder::byte`].
    transitions.iter().fold((ByteSet::EMPTY, StateID::ZERO), |(set, _), range| {
        (set.or(ByteSet::range(range.start, range.end)), range.next)
    })
}

/// Why no step of the construction fails.
const SMALL: &str = "`MAX_BYTES` keeps a pattern far below the limits of the library";

/// Where to continue, by what was written just before. A `/` after a `/` adds nothing: that is how
/// `a/{**,b}/c` matches `a/c`, and how doubled slashes that alternatives produce collapse.
#[derive(Clone, Copy, PartialEq)]
struct Entry {
    after_text: StateID,
    after_slash: StateID,
}

impl Entry {
    fn both(state: StateID) -> Self {
        Self { after_text: state, after_slash: state }
    }
}

struct Builder {
    graph: thompson::Builder,
    case: Case,
}

impl Builder {
    fn build(mut self, nodes: &[Node], subtree: bool) -> NFA {
        self.graph.start_pattern().expect(SMALL);
        let end = self.end(subtree);
        let start = self.sequence(nodes, end).after_slash;
        self.graph.finish_pattern(start).expect(SMALL);
        self.graph.build(start, start).expect(SMALL)
    }

    fn end(&mut self, subtree: bool) -> Entry {
        let accept = self.graph.add_match().expect(SMALL);
        if !subtree {
            return Entry::both(accept);
        }
        let below = self.repeat(ByteSet::ALL, accept);
        let slash = self.byte(ByteSet::one(b'/'), below);
        Entry { after_text: self.union([accept, slash]), after_slash: accept }
    }

    /// Builds from the back, so that every state is made after the states it leads to.
    fn sequence(&mut self, nodes: &[Node], end: Entry) -> Entry {
        nodes.iter().rev().fold(end, |next, node| self.node(node, next))
    }

    fn node(&mut self, node: &Node, next: Entry) -> Entry {
        match node {
            Node::Slash => Entry { after_text: self.byte(ByteSet::one(b'/'), next.after_slash), ..next },
            Node::Char(letter) => Entry::both(self.letter(*letter, next.after_text)),
            Node::AnyByte => Entry::both(self.byte(ByteSet::NOT_SLASH, next.after_text)),
            Node::Class(class) => Entry::both(self.byte(class.bytes(self.case), next.after_text)),
            Node::Star => Entry::both(self.repeat(ByteSet::NOT_SLASH, next.after_text)),
            Node::GlobStar => self.segments(next),
            Node::Group(alternatives) => self.group(alternatives, next),
        }
    }

    /// `**` always stands after a `/` or at the start. It reads nothing and leaves things as they
    /// were, or reads something and the next `/` must then be read as well.
    fn segments(&mut self, next: Entry) -> Entry {
        let more = self.repeat(ByteSet::ALL, next.after_text);
        let some = self.byte(ByteSet::ALL, more);
        Entry::both(self.union([next.after_slash, some]))
    }

    fn group(&mut self, alternatives: &[Vec<Node>], next: Entry) -> Entry {
        let entries: Vec<Entry> = alternatives.iter().map(|nodes| self.sequence(nodes, next)).collect();
        let after_text = self.union(entries.iter().map(|entry| entry.after_text));
        if entries.iter().all(|entry| *entry == Entry::both(entry.after_text)) {
            return Entry::both(after_text);
        }
        let after_slash = self.union(entries.iter().map(|entry| entry.after_slash));
        Entry { after_text, after_slash }
    }

    fn letter(&mut self, letter: char, next: StateID) -> StateID {
        let folds = self.case == Case::Insensitive;
        letter.encode_utf8(&mut [0; 4]).bytes().rev().fold(next, |next, byte| {
            let set = ByteSet::one(byte);
            self.byte(if folds { set.fold_case() } else { set }, next)
        })
    }

    /// Any number of bytes of `set`.
    fn repeat(&mut self, set: ByteSet, next: StateID) -> StateID {
        let head = self.union([]);
        for branch in [self.byte(set, head), next] {
            self.graph.patch(head, branch).expect(SMALL);
        }
        head
    }

    fn byte(&mut self, set: ByteSet, next: StateID) -> StateID {
        let ranges = set.ranges().map(|(start, end)| Transition { start, end, next });
        self.graph.add_sparse(ranges.collect()).expect(SMALL)
    }

    fn union(&mut self, branches: impl IntoIterator<Item = StateID>) -> StateID {
        self.graph.add_union(branches.into_iter().collect()).expect(SMALL)
    }
}
