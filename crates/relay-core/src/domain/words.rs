//! Words in a text, as a search compares them: runs of letters and digits, without regard to case.

use std::collections::HashSet;

/// Letters of the text before the first word that was found, and letters in all, that an excerpt has at most.
const BEFORE: usize = 60;
const EXCERPT: usize = 180;

/// What is looked for.
pub struct Words(HashSet<String>);

impl Words {
    pub fn of(text: &str) -> Self {
        Words(runs(text).filter(|run| is_word(run)).map(str::to_lowercase).collect())
    }

    fn has(&self, run: &str) -> bool {
        self.0.contains(&run.to_lowercase())
    }

    /// A text in pieces, each with whether it was looked for.
    pub fn mark<'a>(&self, text: &'a str) -> impl Iterator<Item = (bool, &'a str)> {
        runs(text).map(|run| (self.has(run), run))
    }

    /// One line of what stands around the first of the words, where the text has one.
    pub fn excerpt(&self, text: &str) -> Option<String> {
        let at: usize = self.mark(text).take_while(|(is_wanted, _)| !is_wanted).map(|(_, run)| run.len()).sum();
        let (before, rest) = text.split_at_checked(at).filter(|(_, rest)| !rest.is_empty())?;
        let from = last(before, BEFORE);
        let head = if from > 0 { "…" } else { "" };
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let upto = rest.char_indices().nth(EXCERPT - before[from..].chars().count()).map_or(rest.len(), |(at, _)| at);
        let tail = if upto < rest.len() { "…" } else { "" };
        Some(format!("{head}{}{tail}", line(&text[from..at + upto])))
    }
}

/// Where the last so many letters of a text begin, and no word in two.
fn last(text: &str, letters: usize) -> usize {
    let Some((at, _)) = text.char_indices().rev().nth(letters) else { return 0 };
    let word = text[at..].find(char::is_whitespace);
    at + word.unwrap_or(0)
}

/// A text as words and what stands between them.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let is_letter = rest.chars().next()?.is_alphanumeric();
        let end = rest.find(|c: char| c.is_alphanumeric() != is_letter).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        Some(run)
    })
}

fn is_word(run: &str) -> bool {
    run.chars().next().is_some_and(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_whole_and_in_any_case() {
        let marked = |words: &str, text: &str| {
            let words = Words::of(words);
            words.mark(text).filter(|(is_wanted, _)| *is_wanted).map(|(_, run)| run.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(marked("EXPIRE early!", "Sessions expire too early"), ["expire", "early"]);
        assert_eq!(marked("src/auth.rs", "see src/auth.rs"), ["src", "auth", "rs"]);
        assert_eq!(marked("expir", "Sessions expire"), Vec::<String>::new());
        assert_eq!(marked("", "Sessions"), Vec::<String>::new());
    }

    #[test]
    fn an_excerpt_is_a_line_around_the_first_word_that_was_found() {
        let excerpt = |words: &str, text: &str| Words::of(words).excerpt(text);
        assert_eq!(excerpt("token", "The\n  token\tis gone").as_deref(), Some("The token is gone"));
        assert_eq!(excerpt("tok", "The token"), None);
        let long = format!("{} token {}", "word ".repeat(100), "é漢😀 ".repeat(100));
        let found = excerpt("token", &long).unwrap_or_default();
        assert!(found.starts_with("…word") && found.ends_with('…') && found.contains(" token é漢😀"), "{found}");
        assert!(found.chars().count() <= EXCERPT + 2, "{found}");
        let one = format!("{} token", "x".repeat(1_000));
        assert_eq!(excerpt("token", &one).as_deref(), Some("…token"));
    }
}
