//! Patterns against independent oracles: a backtracking matcher that expands braces, git's
//! wildmatch, and the enumeration of a small universe of paths.
#![allow(clippy::unwrap_used)]

use std::sync::LazyLock;

use gix_glob::wildmatch;
use proptest::prelude::*;
use relay_core::domain::pattern::{Case, Compiled, MAX_BYTES, Pattern};

/// The reference matcher: slow, recursive, and sharing no idea with the automata.
mod reference {
    #[derive(Clone, Debug, PartialEq)]
    enum Token {
        Slash,
        Byte(u8),
        Any,
        Star,
        Deep,
        Set {
            members: Vec<u8>,
            negated: bool,
        },
        Group(Vec<Vec<Token>>),
        /// The edges of a group, kept while it is expanded.
        Open,
        Close,
    }

    #[derive(Debug)]
    pub struct Matcher {
        /// The segments of each expansion.
        expansions: Vec<Vec<Vec<Token>>>,
        subtree: bool,
    }

    impl Matcher {
        /// Understands the syntax that `small_pattern` generates.
        pub fn new(text: &str) -> Self {
            let (tokens, _) = sequence(text.as_bytes(), 0);
            let expansions = expand(&tokens).iter().map(|flat| segments(flat)).collect();
            let literal = !text.contains(['*', '?', '[', '{']);
            Self { expansions, subtree: literal || text.ends_with('/') }
        }

        pub fn matches(&self, path: &str) -> bool {
            let path: Vec<&[u8]> = path.split('/').map(str::as_bytes).collect();
            self.expansions.iter().any(|expansion| whole(expansion, &path, self.subtree))
        }
    }

    fn sequence(text: &[u8], mut at: usize) -> (Vec<Token>, usize) {
        let mut tokens = Vec::new();
        while at < text.len() && !b",}".contains(&text[at]) {
            let (token, next) = match text[at] {
                b'/' => (Token::Slash, at + 1),
                b'?' => (Token::Any, at + 1),
                b'*' if text.get(at + 1) == Some(&b'*') => {
                    let run = text[at..].iter().take_while(|byte| **byte == b'*').count();
                    (Token::Deep, at + run)
                }
                b'*' => (Token::Star, at + 1),
                b'[' => set(text, at),
                b'{' => group(text, at),
                byte => (Token::Byte(byte), at + 1),
            };
            tokens.push(token);
            at = next;
        }
        (tokens, at)
    }

    fn set(text: &[u8], at: usize) -> (Token, usize) {
        let end = at + text[at..].iter().position(|byte| *byte == b']').unwrap();
        let negated = text[at + 1] == b'!';
        let members = text[at + 1 + usize::from(negated)..end].to_vec();
        (Token::Set { members, negated }, end + 1)
    }

    fn group(text: &[u8], mut at: usize) -> (Token, usize) {
        let mut alternatives = Vec::new();
        while text[at] != b'}' {
            let (tokens, end) = sequence(text, at + 1);
            alternatives.push(tokens);
            at = end;
        }
        (Token::Group(alternatives), at + 1)
    }

    fn expand(tokens: &[Token]) -> Vec<Vec<Token>> {
        let Some((first, rest)) = tokens.split_first() else {
            return vec![Vec::new()];
        };
        let heads: Vec<Vec<Token>> = match first {
            Token::Group(alternatives) => alternatives
                .iter()
                .flat_map(|alternative| expand(alternative))
                .map(|flat| [vec![Token::Open], flat, vec![Token::Close]].concat())
                .collect(),
            other => vec![vec![other.clone()]],
        };
        let tails = expand(rest);
        let join = |head: &Vec<Token>| -> Vec<Vec<Token>> {
            tails.iter().map(|tail| [head.clone(), tail.clone()].concat()).collect()
        };
        heads.iter().flat_map(join).collect()
    }

    /// Demotes `**` that is not a whole segment, drops the edges, and splits at slashes.
    fn segments(flat: &[Token]) -> Vec<Vec<Token>> {
        let is_end = |token: Option<&Token>| matches!(token, None | Some(Token::Slash));
        let settled = flat.iter().enumerate().map(|(at, token)| {
            let left = flat[..at].iter().rev().find(|token| **token != Token::Open);
            let right = flat[at + 1..].iter().find(|token| **token != Token::Close);
            let whole = is_end(left) && is_end(right);
            if *token == Token::Deep && !whole { Token::Star } else { token.clone() }
        });
        let settled: Vec<Token> = settled.filter(|token| !matches!(token, Token::Open | Token::Close)).collect();
        let split = settled.split(|token| *token == Token::Slash).map(<[Token]>::to_vec);
        split.filter(|segment| !segment.is_empty()).collect()
    }

    fn whole(pattern: &[Vec<Token>], path: &[&[u8]], subtree: bool) -> bool {
        match pattern.split_first() {
            None => path.is_empty() || subtree,
            Some((first, rest)) if *first == [Token::Deep] => {
                let least = usize::from(rest.is_empty());
                (least..=path.len()).any(|skip| whole(rest, &path[skip..], subtree))
            }
            Some((first, rest)) => {
                path.split_first().is_some_and(|(name, below)| segment(first, name) && whole(rest, below, subtree))
            }
        }
    }

    fn segment(pattern: &[Token], name: &[u8]) -> bool {
        let Some((first, rest)) = pattern.split_first() else {
            return name.is_empty();
        };
        if *first == Token::Star {
            return (0..=name.len()).any(|skip| segment(rest, &name[skip..]));
        }
        name.split_first().is_some_and(|(byte, below)| one(first, *byte) && segment(rest, below))
    }

    fn one(token: &Token, byte: u8) -> bool {
        match token {
            Token::Byte(expected) => *expected == byte,
            Token::Set { members, negated } => members.contains(&byte) != *negated,
            token => *token == Token::Any,
        }
    }
}

/// All names of one to `longest` of the `letters`.
fn names(letters: &[&str], longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let level: Vec<String> =
            all[from..].iter().flat_map(|start| letters.iter().map(move |letter| format!("{start}{letter}"))).collect();
        from = all.len();
        all.extend(level);
    }
    all.retain(|name| !matches!(name.as_str(), "" | "." | ".."));
    all
}

fn below(starts: &[String], names: &[String]) -> Vec<String> {
    starts.iter().flat_map(|start| names.iter().map(move |name| format!("{start}/{name}"))).collect()
}

/// Paths over the letters of `small_pattern`, and one letter that no pattern names.
static UNIVERSE: LazyLock<Vec<String>> = LazyLock::new(|| {
    let long = names(&["a", "b", ".", "é", "c"], 2);
    let short = names(&["a", "b", "é"], 1);
    let pairs = below(&long, &long);
    let triples = below(&below(&short, &short), &short);
    [long, pairs, triples].concat()
});

/// Patterns over few letters, so that they often meet, with nested braces that hold slashes.
fn small_pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec!["a", "a", "b", "b", ".", "é", "?", "*", "*", "**", "[ab]", "[!a]", "[é.]"]);
    let name = prop::collection::vec(atom, 1..4).prop_map(|atoms| atoms.concat());
    let segment = prop_oneof![3 => name, 1 => Just("**".to_owned())];
    let path = prop::collection::vec(segment, 1..4).prop_map(|names| names.join("/"));
    let braced = path.prop_recursive(2, 12, 3, |inner| {
        let edge = prop::sample::select(vec!["", "", "", "/"]);
        let full = (edge.clone(), inner.clone(), edge).prop_map(|(l, text, r)| l.to_owned() + &text + r);
        let alternative = prop_oneof![6 => full, 1 => Just(String::new())];
        let group =
            prop::collection::vec(alternative, 2..4).prop_map(|alternatives| format!("{{{}}}", alternatives.join(",")));
        let glue = prop::sample::select(vec!["/", "/", ""]);
        (prop::option::of(inner.clone()), glue.clone(), group, glue, prop::option::of(inner)).prop_map(
            |(left, one, group, two, right)| {
                let left = left.map(|text| text + one).unwrap_or_default();
                let right = right.map(|text| two.to_owned() + &text).unwrap_or_default();
                left + &group + &right
            },
        )
    });
    (braced, prop::sample::select(vec!["", "", "", "/"])).prop_map(|(text, end)| text + end)
}

/// A generated pattern that is valid and that cleaning leaves alone, with its reference.
#[derive(Debug)]
struct Small {
    pattern: Pattern,
    compiled: Compiled,
    reference: reference::Matcher,
}

fn small() -> impl Strategy<Value = Small> {
    small_pattern().prop_filter_map("not a clean pattern", |text| {
        let clean = text.split('/').all(|segment| !matches!(segment, "." | ".."));
        let pattern = Pattern::parse(&text, &[]).ok().filter(|_| clean)?;
        let compiled = pattern.compile(Case::Sensitive);
        Some(Small { pattern, compiled, reference: reference::Matcher::new(&text) })
    })
}

/// Names without braces or slashes, for which a few letters decide whether one covers the other.
fn small_name() -> impl Strategy<Value = Pattern> {
    let atom = prop::sample::select(vec!["a", "b", ".", "?", "*", "[ab]", "[!a]"]);
    let name = prop::collection::vec(atom, 1..4).prop_map(|atoms| atoms.concat());
    name.prop_filter_map("not one name with a wildcard", |text| {
        let pattern = Pattern::parse(&text, &[]).ok()?;
        (!pattern.is_literal() && pattern.as_str() != "**").then_some(pattern)
    })
}

/// Patterns without braces that exercise brackets, escapes and stars; most of them are valid.
fn git_pattern() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec!["a", "B", "1", ".", "-", "]", "é", r"\*", r"\[", r"\a"]);
    let wild = prop::sample::select(vec!["*", "**", "***", "?", "[[:alpha:]]", "[![:upper:]1]"]);
    let member = prop::sample::select(vec![
        "a",
        "B",
        "1",
        "-",
        "]",
        "[",
        ".",
        "^",
        "!",
        r"\]",
        r"\\",
        "/",
        "a-c",
        "[:digit:]",
        "é",
    ]);
    let bracket = prop::collection::vec(member, 1..4).prop_map(|members| format!("[{}]", members.concat()));
    let atom = prop_oneof![3 => plain.prop_map(str::to_owned), 3 => wild.prop_map(str::to_owned), 2 => bracket];
    let segment = prop::collection::vec(atom, 1..4).prop_map(|atoms| atoms.concat());
    prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"))
}

static GIT_PATHS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let long = names(&["a", "B", "1", ".", "-", "]", "[", "*", "^", "é", r"\"], 2);
    let short = names(&["a", "B", "1", "]"], 1);
    let pairs = [below(&long, &short), below(&short, &long)].concat();
    let triples = below(&below(&short, &short), &short);
    [long, pairs, triples].concat()
});

fn is_at_or_above(upper: &str, lower: &str) -> bool {
    let rest = lower.strip_prefix(upper);
    upper.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Texts dense in the characters that mean something.
fn any_text() -> impl Strategy<Value = String> {
    let dense = r"[a./*?\[\]{},\\!^:é-]{0,24}";
    prop_oneof![3 => dense, 1 => r"(/r/p/|res:|\./|\.\./)[a./*{},]{0,8}", 1 => ".{0,40}"]
}

proptest! {
    // What is drawn is often no clean pattern: the more cases, the more of that.
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        max_local_rejects: u32::MAX,
        max_global_rejects: u32::MAX,
        ..Default::default()
    })]

    #[test]
    fn matching_agrees_with_the_expansion_of_braces(small in small()) {
        for path in UNIVERSE.iter() {
            let expected = small.reference.matches(path);
            prop_assert_eq!(small.compiled.matches(path), expected, "{}", path);
        }
    }

    #[test]
    fn overlap_agrees_with_enumeration_and_its_witness_is_real(one in small(), two in small()) {
        let witness = one.compiled.overlap(&two.compiled);
        let both = |path: &str| one.reference.matches(path) && two.reference.matches(path);
        match &witness {
            Some(path) => prop_assert!(both(path), "`{}` is not in both", path),
            None => prop_assert_eq!(UNIVERSE.iter().find(|path| both(path)), None),
        }
        prop_assert_eq!(witness.is_some(), two.compiled.overlap(&one.compiled).is_some());
    }

    #[test]
    fn patterns_overlap_only_if_the_prefix_of_one_is_above_the_other(one in small(), two in small()) {
        let overlap = one.compiled.overlap(&two.compiled);
        let (left, right) = (one.pattern.prefix(Case::Sensitive), two.pattern.prefix(Case::Sensitive));
        let related = is_at_or_above(&left, &right) || is_at_or_above(&right, &left);
        prop_assert!(overlap.is_none() || related, "{:?} with `{}` and `{}`", overlap, left, right);
    }

    #[test]
    fn a_cover_has_no_counterexample(outer in small(), inner in small()) {
        if outer.compiled.covers(&inner.compiled) {
            let escapes = |path: &&String| inner.reference.matches(path) && !outer.reference.matches(path);
            prop_assert_eq!(UNIVERSE.iter().find(escapes), None);
        }
    }

    #[test]
    fn a_choice_covers_each_of_its_alternatives(one in small_name(), two in small_name()) {
        let choice = Pattern::parse(&format!("{{{one},{two}}}"), &[]).unwrap();
        let choice = choice.compile(Case::Sensitive);
        prop_assert!(choice.covers(&one.compile(Case::Sensitive)));
        prop_assert!(choice.covers(&two.compile(Case::Sensitive)));
    }

    #[test]
    fn cover_of_single_names_is_exact(outer in small_name(), inner in small_name()) {
        let (outer, inner) = (outer.compile(Case::Sensitive), inner.compile(Case::Sensitive));
        let universe = names(&["a", "b", ".", "c"], 5);
        let escapes = universe.iter().find(|path| inner.matches(path) && !outer.matches(path));
        prop_assert_eq!(outer.covers(&inner), escapes.is_none(), "{:?}", escapes);
    }

    #[test]
    fn cover_of_literals_is_the_tree_below(outer in "[ab]{1,2}(/[ab]){0,2}", inner in "[ab]{1,2}(/[ab]){0,2}") {
        let compile = |text: &str| Pattern::parse(text, &[]).unwrap().compile(Case::Sensitive);
        let (one, two) = (compile(&outer), compile(&inner));
        prop_assert_eq!(one.covers(&two), is_at_or_above(&outer, &inner));
        prop_assert_eq!(one.overlap(&two).is_some(), one.covers(&two) || two.covers(&one));
    }

    #[test]
    fn matching_agrees_with_git(text in git_pattern()) {
        let clean = text.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
        let pattern = Pattern::parse(&text, &[]);
        prop_assume!(clean && pattern.as_ref().is_ok_and(|pattern| !pattern.is_literal()));
        let compiled = pattern.unwrap().compile(Case::Sensitive);
        for path in GIT_PATHS.iter() {
            let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL;
            let expected = gix_glob::wildmatch(text.as_str().into(), path.as_str().into(), mode);
            prop_assert_eq!(compiled.matches(path), expected, "{}", path);
        }
    }

    #[test]
    fn matching_without_case_agrees_with_git(text in git_pattern()) {
        let clean = text.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
        let pattern = Pattern::parse(&text, &[]);
        // The oracle folds the ends of a range rather than its members, and so goes astray between
        // a letter and anything that is not a letter of the same case.
        let mixed = text.replace("a-c", "").contains('-');
        prop_assume!(clean && !mixed && pattern.as_ref().is_ok_and(|pattern| !pattern.is_literal()));
        let compiled = pattern.unwrap().compile(Case::Insensitive);
        for path in GIT_PATHS.iter() {
            let mode = wildmatch::Mode::NO_MATCH_SLASH_LITERAL | wildmatch::Mode::IGNORE_CASE;
            let expected = gix_glob::wildmatch(text.as_str().into(), path.as_str().into(), mode);
            prop_assert_eq!(compiled.matches(path), expected, "{}", path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn whatever_parses_is_a_fixed_point_and_matches_something(text in any_text()) {
        let Ok(pattern) = Pattern::parse(&text, &["/r/p", "/r"]) else { return Ok(()) };
        prop_assert!(pattern.as_str().len() <= MAX_BYTES);
        prop_assert_eq!(Pattern::parse(pattern.as_str(), &[]), Ok(pattern.clone()));
        prop_assert_eq!(Pattern::from_canonical(pattern.as_str()), Ok(pattern.clone()));
        let everything = Pattern::parse("**", &[]).unwrap().compile(Case::Sensitive);
        let compiled = pattern.compile(Case::Sensitive);
        let witness = everything.overlap(&compiled);
        prop_assert_eq!(witness.is_some(), !pattern.is_resource());
        prop_assert!(witness.is_none_or(|path| compiled.matches(&path)));
        prop_assert_eq!(everything.covers(&compiled), !pattern.is_resource());
    }
}
