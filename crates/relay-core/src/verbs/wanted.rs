//! What a request wants to claim: read, compiled and compared before the gate is taken, since whether two patterns
//! share a path does not depend on the store.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Ctx;
use super::broad::{self, Breadth};
use crate::domain::limits::Limits;
use crate::domain::pattern::{ByPrefix, Case, Compiled, Pattern, PatternFault};
use crate::error::{Code, Refusal};
use crate::store::Result;

/// The claims that one request wants, each pattern once.
pub(super) struct Wanted {
    pub claims: Vec<Claim>,
    by_prefix: ByPrefix<usize>,
    case: Case,
    /// What is known of other patterns; nothing of it is compared again under the gate.
    met: RefCell<HashMap<String, Arc<[Met]>>>,
}

/// One wanted claim.
pub(super) struct Claim {
    pub pattern: Pattern,
    pub prefix: String,
    pub breadth: Option<Breadth>,
    /// The earlier ones of the same request that share a path with it.
    pub siblings: Vec<usize>,
    compiled: Compiled,
}

/// A wanted claim that shares a path with some other pattern.
pub(super) struct Met {
    pub wanted: usize,
    /// A path that both match.
    pub example: String,
}

/// Reads a pattern; a refusal names it.
pub(super) fn parse(limits: &Limits, text: &str, roots: &[&str]) -> Result<Pattern> {
    let invalid = |why: String| Code::PatternInvalid.refuse(format!("{text:?} is no pattern: {why}"));
    let pattern = Pattern::parse(text, roots).map_err(|fault| {
        let refusal = match fault {
            PatternFault::Invalid { why } => invalid(why),
            outside => Refusal::from(outside),
        };
        refusal.with("pattern", text)
    })?;
    let (length, limit) = (pattern.as_str().len(), limits.pattern_bytes);
    if length > limit {
        return Err(invalid(format!("it is {length} bytes long, the limit is {limit}")).with("pattern", text));
    }
    Ok(pattern)
}

/// Reads all patterns of a request.
pub(super) fn parse_all(limits: &Limits, texts: &[String], roots: &[String]) -> Result<Vec<Pattern>> {
    let (count, limit) = (texts.len(), limits.patterns);
    if count > limit {
        return Err(Code::InputInvalid.refuse(format!(
            "{count} patterns are named; at most {limit} fit into one request: name a folder above them, or ask several times"
        )));
    }
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    texts.iter().map(|text| parse(limits, text, &roots)).collect()
}

impl Wanted {
    /// Reads the patterns and looks at everything that can be known about them without the gate.
    pub fn new(ctx: &Ctx<'_>, texts: &[String]) -> Result<Self> {
        let patterns = parse_all(ctx.limits, texts, &ctx.repository.roots())?;
        let mut wanted = Wanted::of(patterns, ctx.repository.case());
        for claim in &mut wanted.claims {
            claim.breadth = broad::breadth(ctx.repository, &claim.pattern);
        }
        if !wanted.claims.is_empty() {
            let facts = ctx.store.read()?;
            facts
                .claims_near(&wanted.prefixes())?
                .iter()
                .try_for_each(|other| wanted.meets(&other.pattern).map(drop))?;
        }
        Ok(wanted)
    }

    /// These very paths. One that is not of the project is left out.
    pub fn of_paths(ctx: &Ctx<'_>, paths: &[String]) -> Self {
        let roots = ctx.repository.roots();
        let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
        let patterns = paths.iter().filter_map(|path| Pattern::of_path(path, &roots).ok()).collect();
        Wanted::of(patterns, ctx.repository.case())
    }

    fn of(patterns: Vec<Pattern>, case: Case) -> Self {
        let mut wanted =
            Wanted { claims: Vec::new(), by_prefix: ByPrefix::default(), case, met: RefCell::new(HashMap::new()) };
        let mut known = HashSet::new();
        for pattern in patterns.into_iter().filter(|pattern| known.insert(pattern.clone())) {
            let (compiled, prefix) = (pattern.compile(case), pattern.prefix(case));
            let mut siblings = wanted.by_prefix.near(&prefix);
            siblings.retain(|earlier| wanted.claims[*earlier].compiled.overlap(&compiled).is_some());
            wanted.by_prefix.insert(&prefix, wanted.claims.len());
            wanted.claims.push(Claim { pattern, prefix, breadth: None, siblings, compiled });
        }
        wanted
    }

    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    pub fn prefixes(&self) -> Vec<&str> {
        self.claims.iter().map(|claim| claim.prefix.as_str()).collect()
    }

    pub fn texts(&self) -> Vec<String> {
        self.claims.iter().map(|claim| claim.pattern.as_str().to_owned()).collect()
    }

    /// The wanted claims that share a path with a canonical pattern, in order. Asked again, it compares nothing.
    pub fn meets(&self, theirs: &str) -> Result<Arc<[Met]>> {
        if let Some(known) = self.met.borrow().get(theirs) {
            return Ok(Arc::clone(known));
        }
        let pattern = Pattern::from_canonical(theirs)?;
        let compiled = pattern.compile(self.case);
        let near = self.by_prefix.near(&pattern.prefix(self.case)).into_iter();
        let met: Arc<[Met]> = near
            .filter_map(|wanted| Some(Met { wanted, example: self.claims[wanted].compiled.overlap(&compiled)? }))
            .collect();
        self.met.borrow_mut().insert(theirs.to_owned(), Arc::clone(&met));
        Ok(met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERNS: [&str; 11] = [
        "src/**",
        "src/a.rs",
        "docs",
        "src/a.rs",
        "**/*.rs",
        "docs/x/y",
        "src/b/*.md",
        "res:db",
        "res:db",
        "lib/a.rs",
        "**",
    ];

    fn read(texts: &[&str]) -> Vec<Pattern> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        parse_all(&Limits::default(), &texts, &[]).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    #[test]
    fn siblings_are_what_a_comparison_of_all_pairs_finds() {
        let wanted = Wanted::of(read(&PATTERNS), Case::Sensitive);
        assert_eq!(wanted.claims.len(), PATTERNS.len() - 2, "each pattern once");
        for (index, claim) in wanted.claims.iter().enumerate() {
            let overlaps = |earlier: &usize| wanted.claims[*earlier].compiled.overlap(&claim.compiled).is_some();
            assert_eq!(claim.siblings, (0..index).filter(overlaps).collect::<Vec<_>>(), "{}", claim.pattern);
        }
        assert_eq!(wanted.claims.last().map(|claim| claim.siblings.len()), Some(7), "all but the resource");
    }

    #[test]
    fn the_same_pattern_is_compared_once() -> Result<()> {
        let wanted = Wanted::of(read(&PATTERNS), Case::Sensitive);
        let met = |text: &str| -> Result<Vec<String>> {
            Ok(wanted.meets(text)?.iter().map(|met| wanted.claims[met.wanted].pattern.to_string()).collect())
        };
        assert_eq!(met("src/b/c.md")?, ["src/**", "**/*.rs", "src/b/*.md", "**"]);
        assert_eq!(met("res:db")?, ["res:db"]);
        assert_eq!(met("res:db-2")?, [""; 0]);
        assert!(Arc::ptr_eq(&wanted.meets("src/b/c.md")?, &wanted.meets("src/b/c.md")?));
        Ok(())
    }

    #[test]
    fn a_request_names_so_many_patterns_and_no_more() {
        let texts: Vec<String> = (0..5).map(|index| format!("src/{index}.rs")).collect();
        let limits = Limits { patterns: 4, ..Limits::default() };
        let refusal = parse_all(&limits, &texts, &[]).err().map(|refusal| (refusal.code, refusal.message.clone()));
        let message =
            "5 patterns are named; at most 4 fit into one request: name a folder above them, or ask several times";
        assert_eq!(refusal, Some((Code::InputInvalid, message.to_owned())));
        assert!(parse_all(&limits, &texts[..4], &[]).is_ok());
    }
}
