//! A pattern made ready for questions: does it match, does it overlap, does it cover.
//!
//! Literals and resources are answered from their text; automata are built when first needed.

use std::sync::{Mutex, OnceLock, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};

use super::nfa::Nfa;
use super::overlap::{Side, common_path, witness};
use super::syntax::literal_nodes;
use super::universe::{Place, is_path};
use super::walk::{Walk, accepts};
use super::{Body, Case, cover};

/// A pattern in the letter case that its project's file system asks for.
#[derive(Debug)]
pub struct Compiled {
    body: Body,
    case: Case,
    nfa: OnceLock<Nfa>,
    dfa: OnceLock<(DFA, Mutex<Cache>)>,
}

impl Compiled {
    pub(super) fn new(body: Body, case: Case) -> Self {
        Self { body, case, nfa: OnceLock::new(), dfa: OnceLock::new() }
    }

    /// Whether the pattern matches `path`, relative to the project root and with `/`. False for a
    /// text that is not a clean relative path, and always false for a resource.
    pub fn matches(&self, path: &str) -> bool {
        match &self.body {
            Body::Resource(_) => false,
            Body::Literal(text) => is_path(path) && self.is_at_or_above(text, path),
            Body::Glob { .. } => is_path(path) && self.glob_matches(path),
        }
    }

    /// A path that both patterns match, if there is any. For two equal resources it is their text.
    pub fn overlap(&self, other: &Self) -> Option<String> {
        match (&self.body, &other.body) {
            (Body::Resource(one), Body::Resource(two)) => (one == two).then(|| one.clone()),
            (Body::Resource(_), _) | (_, Body::Resource(_)) => None,
            _ if self.case != other.case => common_path(self.nfa(), other.nfa()),
            (Body::Literal(one), Body::Literal(two)) => {
                let (upper, lower) = if one.len() <= two.len() { (one, two) } else { (two, one) };
                self.is_at_or_above(upper, lower).then(|| lower.clone())
            }
            (Body::Literal(text), _) => other.overlap_below(text),
            (_, Body::Literal(text)) => self.overlap_below(text),
            _ => common_path(self.nfa(), other.nfa()),
        }
        .map(|path| self.friendlier(other, path))
    }

    /// Whether every path that `inner` matches is matched by this pattern. The answer may be false
    /// for a pair of patterns that is too complex to decide.
    pub fn covers(&self, inner: &Self) -> bool {
        match (&self.body, &inner.body) {
            (Body::Resource(one), Body::Resource(two)) => one == two,
            (Body::Resource(_), _) | (_, Body::Resource(_)) => false,
            _ if self.case == inner.case && self.body == inner.body => true,
            (Body::Literal(one), Body::Literal(two)) if self.case == inner.case => self.is_at_or_above(one, two),
            _ => cover::covers(self.nfa(), inner.nfa()),
        }
    }

    fn is_at_or_above(&self, upper: &str, lower: &str) -> bool {
        let Some((start, rest)) = lower.as_bytes().split_at_checked(upper.len()) else {
            return false;
        };
        let same = match self.case {
            Case::Sensitive => start == upper.as_bytes(),
            Case::Insensitive => start.eq_ignore_ascii_case(upper.as_bytes()),
        };
        same && matches!(rest.first(), None | Some(b'/'))
    }

    fn glob_matches(&self, path: &str) -> bool {
        let (dfa, cache) = self.dfa.get_or_init(|| lazy_dfa(self.nfa()));
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        match dfa.try_search_fwd(&mut cache, &Input::new(path).anchored(Anchored::Yes)) {
            Ok(longest) => longest.is_some_and(|end| end.offset() == path.len()),
            Err(_) => accepts(self.nfa(), &Walk::new(self.nfa()).run(path.as_bytes())),
        }
    }

    /// The overlap of this glob with a literal: the literal itself, or else a path below it, which
    /// only the states that survive the literal's text and a `/` can lead to.
    fn overlap_below(&self, literal: &str) -> Option<String> {
        if self.glob_matches(literal) {
            return Some(literal.to_owned());
        }
        let (nfa, anything) = (self.nfa(), Nfa::anything());
        let below = format!("{literal}/");
        let starts = Walk::new(nfa).run(below.as_bytes());
        let left = Side { nfa, starts: &starts };
        let right = Side { nfa: anything, starts: &[anything.start()] };
        witness(left, right, Place::Start).map(|rest| below + &rest)
    }

    /// A hidden file is a puzzling example where `a.rs` would do as well as `.rs`.
    fn friendlier(&self, other: &Self, path: String) -> String {
        let mut named = path.replace("/.", "/a.");
        if named.starts_with('.') {
            named.insert(0, 'a');
        }
        if self.matches(&named) && other.matches(&named) { named } else { path }
    }

    fn nfa(&self) -> &Nfa {
        self.nfa.get_or_init(|| match &self.body {
            Body::Resource(text) | Body::Literal(text) => Nfa::new(&literal_nodes(text), true, self.case),
            Body::Glob { nodes, subtree } => Nfa::new(nodes, *subtree, self.case),
        })
    }
}

fn lazy_dfa(nfa: &Nfa) -> (DFA, Mutex<Cache>) {
    let config = DFA::config()
        // The longest match is wanted, not the one that the order of alternatives prefers.
        .match_kind(MatchKind::All)
        // A pattern that needs a new state every few bytes is faster without a DFA, and gives up.
        .minimum_cache_clear_count(Some(0))
        .minimum_bytes_per_state(Some(10))
        .skip_cache_capacity_check(true);
    let dfa = DFA::builder().configure(config).build_from_nfa(nfa.graph.clone());
    let dfa = dfa.expect("without look-around and with room for a few states every automaton is supported");
    let cache = Mutex::new(dfa.create_cache());
    (dfa, cache)
}
