//! What git says to `pre-push`: a line for each ref, with the commit that it has here and the one that it has there.

use std::io::{IsTerminal, Read};

use crate::environment;

/// More is said by nobody who pushes what a person could read about.
const MOST: u64 = 4 * 1024 * 1024;

/// One ref that is pushed. A ref that is deleted brings nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Pushed {
    pub new: String,
    /// What the other side has; none where it has nothing.
    pub old: Option<String>,
}

/// From the standard input, as git gives it, or else from what `pre-commit` makes of that before it calls on.
pub fn pushed() -> Vec<Pushed> {
    let mut said = Vec::new();
    let input = std::io::stdin();
    if !input.is_terminal() {
        let _ = input.lock().take(MOST).read_to_end(&mut said);
    }
    let pushed = read(&String::from_utf8_lossy(&said));
    if !pushed.is_empty() {
        return pushed;
    }
    environment::pre_commit_refs().map(|(new, old)| Pushed { new, old }).into_iter().collect()
}

fn read(said: &str) -> Vec<Pushed> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, new, _, old] = words.as_slice() else { return None };
        one(new, old)
    };
    said.lines().filter_map(line).collect()
}

fn one(new: &str, old: &str) -> Option<Pushed> {
    let is_none = |id: &str| id.bytes().all(|byte| byte == b'0');
    (!is_none(new)).then(|| Pushed { new: new.to_owned(), old: Some(old.to_owned()).filter(|old| !is_none(old)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_ref_and_a_deleted_one_brings_nothing() {
        let (one, two, none) = ("1".repeat(40), "2".repeat(40), "0".repeat(40));
        let pushed = |new: &str, old: Option<&str>| Pushed { new: new.to_owned(), old: old.map(str::to_owned) };
        let check = |said: String, expected: &[Pushed]| assert_eq!(read(&said), expected, "{said}");
        check(String::new(), &[]);
        check(format!("refs/heads/a {one} refs/heads/a {two}\n"), &[pushed(&one, Some(&two))]);
        check(format!("refs/heads/a {one} refs/heads/a {none}\n"), &[pushed(&one, None)]);
        check(format!("(delete) {none} refs/heads/a {two}\n"), &[]);
        check(format!("HEAD {one} a {none}\nx {two} b {one}"), &[pushed(&one, None), pushed(&two, Some(&one))]);
        check("\nnonsense\na b c\n".to_owned(), &[]);
    }
}
