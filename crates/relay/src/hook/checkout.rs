//! Commands that move a checkout: they change what others have in front of them, or throw away what they have not committed.

use std::path::{Path, PathBuf};

/// What moves HEAD, the index or the files of a work tree.
const MOVERS: [&str; 7] = ["checkout", "switch", "stash", "reset", "rebase", "clean", "restore"];
/// Words after a mover that leave everything where it is.
const HARMLESS: [(&str, &str); 9] = [
    ("stash", "list"),
    ("stash", "show"),
    ("stash", "create"),
    ("stash", "store"),
    ("stash", "drop"),
    ("clean", "--dry-run"),
    ("reset", "--soft"),
    ("restore", "--staged"),
    ("rebase", "--show-current-patch"),
];
/// What stands before a command and is none.
const BEFORE: [&str; 7] = ["!", "then", "do", "else", "elif", "if", "while"];
/// Programs that run the command which follows them.
const CARRIERS: [&str; 9] = ["sudo", "command", "env", "time", "exec", "nohup", "nice", "timeout", "xargs"];
/// Programs that run a command out of one word, after `-c`.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "zsh"];
/// What git itself takes with a value, before the name of its command.
const WITH_VALUE: [&str; 6] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// A move of a checkout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub folder: PathBuf,
    /// It touches these alone, from the folder; everything, where there are none.
    pub paths: Vec<String>,
}

/// The first move of a checkout in a command line, if there is one. It is read as a shell would read it as far as words and the
/// commands among them go; what a script or a variable hides is not seen.
pub fn moved(command: &str, cwd: &Path) -> Option<Move> {
    let mut folder = cwd.to_owned();
    for words in commands(command) {
        if let Some(target) = goes_to(&words) {
            folder = folder.join(target);
        } else if let Some(inner) = inner(&words) {
            if let Some(found) = moved(inner, &folder) {
                return Some(found);
            }
        } else if let Some((there, paths)) = moves(&words) {
            let folder = there.map_or_else(|| folder.clone(), |there| folder.join(there));
            return Some(Move { folder, paths });
        }
    }
    None
}

/// Where a command line works: where it goes first, or where it is.
pub fn folder(command: &str, cwd: &Path) -> PathBuf {
    let first = commands(command).into_iter().next();
    first.as_deref().and_then(goes_to).map_or_else(|| cwd.to_owned(), |target| cwd.join(target))
}

fn goes_to(words: &[String]) -> Option<&str> {
    match words {
        [program, target] if program == "cd" => Some(target),
        _ => None,
    }
}

/// The words of the program itself, past what stands before it.
fn program(words: &[String]) -> impl Iterator<Item = &str> {
    let is_assignment =
        |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let mut carried = false;
    words.iter().map(String::as_str).skip_while(move |word| {
        let is_carrier = CARRIERS.contains(word);
        carried |= is_carrier;
        let is_argument = carried && (word.starts_with('-') || word.starts_with(|first: char| first.is_ascii_digit()));
        is_carrier || is_argument || BEFORE.contains(word) || is_assignment(word)
    })
}

/// The command that a shell is given as one word.
fn inner(words: &[String]) -> Option<&str> {
    let mut rest = program(words);
    let is_shell = rest.next().is_some_and(|name| SHELLS.contains(&name.rsplit('/').next().unwrap_or(name)));
    if !is_shell {
        return None;
    }
    rest.find(|word| word.starts_with('-') && word.ends_with('c'))?;
    rest.next()
}

/// Whether these words are a git command that moves a checkout; with the folder that `-C` names, and the paths after `--`.
fn moves(words: &[String]) -> Option<(Option<&str>, Vec<String>)> {
    let mut rest = program(words);
    if rest.next()?.rsplit('/').next() != Some("git") {
        return None;
    }
    let (mut folder, mut verb) = (None, rest.next()?);
    while verb.starts_with('-') {
        if WITH_VALUE.contains(&verb) {
            let value = rest.next()?;
            folder = if verb == "-C" { Some(value) } else { folder };
        }
        verb = rest.next()?;
    }
    let rest: Vec<&str> = rest.collect();
    if !MOVERS.contains(&verb) || is_harmless(verb, &rest) {
        return None;
    }
    let mut paths = rest.iter().skip_while(|word| **word != "--").skip(1).map(|word| (*word).to_owned());
    let named = matches!(verb, "checkout" | "restore" | "stash" | "reset" | "clean");
    Some((folder, if named { paths.by_ref().collect() } else { Vec::new() }))
}

fn is_harmless(verb: &str, rest: &[&str]) -> bool {
    let first = rest.first().copied().unwrap_or_default();
    let is_short = |word: &&str| word.starts_with('-') && !word.starts_with("--");
    let only_shows = verb == "clean" && rest.iter().filter(|word| is_short(word)).any(|word| word.contains('n'));
    only_shows || HARMLESS.contains(&(verb, first)) || first == "--help" || first == "-h"
}

/// The simple commands of a command line, each as its words without their quotes.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut reading = Reading::default();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => reading.quote(letters.by_ref().take_while(|letter| *letter != '\'')),
            '"' => reading.double_quoted(&mut letters),
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(escaped) => reading.push(escaped),
            },
            ';' | '&' | '|' | '\n' | '(' | ')' | '{' | '}' | '`' => reading.end_command(),
            letter if letter.is_whitespace() => reading.end_word(),
            letter => reading.push(letter),
        }
    }
    reading.end_command();
    reading.commands
}

#[derive(Default)]
struct Reading {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
}

impl Reading {
    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    fn quote(&mut self, letters: impl Iterator<Item = char>) {
        self.word.get_or_insert_default().extend(letters);
    }

    fn double_quoted(&mut self, letters: &mut std::str::Chars<'_>) {
        self.word.get_or_insert_default();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => return,
                '\\' => letters.next().into_iter().for_each(|escaped| self.push(escaped)),
                letter => self.push(letter),
            }
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(words);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_moves_a_checkout_is_seen_and_no_other() {
        for (command, folder) in [
            ("git checkout main", Some("/repo")),
            ("git switch -c feature", Some("/repo")),
            ("git stash", Some("/repo")),
            ("git stash pop", Some("/repo")),
            ("git reset --hard HEAD~1", Some("/repo")),
            ("git rebase main", Some("/repo")),
            ("git clean -fd", Some("/repo")),
            ("git restore .", Some("/repo")),
            ("cargo test && git checkout -- src/a.rs", Some("/repo")),
            ("cd sub; git stash", Some("/repo/sub")),
            ("cd 'a b' && /usr/bin/git -c core.pager=cat reset", Some("/repo/a b")),
            ("git -C /other checkout x", Some("/other")),
            ("git --no-pager -C \"the tree\" switch x", Some("/repo/the tree")),
            ("GIT_PAGER=cat sudo git checkout x", Some("/repo")),
            ("(git stash)", Some("/repo")),
            ("echo $(git stash)", Some("/repo")),
            ("git \\\n  checkout x", Some("/repo")),
            ("if true; then git stash; fi", Some("/repo")),
            ("! git stash", Some("/repo")),
            ("timeout 5 git stash", Some("/repo")),
            ("bash -c \"cd sub && git stash\"", Some("/repo/sub")),
            ("/bin/sh -ec 'git reset --hard'", Some("/repo")),
            ("ls | xargs git checkout", Some("/repo")),
            ("git status", None),
            ("git stash list", None),
            ("git stash create", None),
            ("git reset --soft HEAD~1", None),
            ("git clean -n", None),
            ("git clean -nd", None),
            ("git checkout --help", None),
            ("git commit -m 'git checkout main'", None),
            ("echo git checkout main", None),
            ("bash script.sh git stash", None),
            ("grep -r 'git reset' .", None),
            ("git log --oneline; ls", None),
            ("git", None),
            ("git -C", None),
            ("", None),
            ("'unclosed git stash", None),
            ("gitk checkout", None),
        ] {
            let found = moved(command, Path::new("/repo")).map(|found| found.folder);
            assert_eq!(found, folder.map(PathBuf::from), "{command}");
        }
    }

    #[test]
    fn a_move_of_named_paths_touches_those_alone() {
        for (command, paths) in [
            ("git checkout -- src/a.rs 'b c'", &["src/a.rs", "b c"][..]),
            ("git checkout main -- src", &["src"]),
            ("git restore -- a", &["a"]),
            ("git checkout main", &[]),
            ("git rebase -- a", &[]),
        ] {
            assert_eq!(
                moved(command, Path::new("/repo")).map(|found| found.paths).unwrap_or_default(),
                paths,
                "{command}"
            );
        }
    }

    #[test]
    fn a_command_works_where_it_goes_first() {
        for (command, expected) in
            [("cd sub && make", "/repo/sub"), ("make", "/repo"), ("cd /other; ls", "/other"), ("", "/repo")]
        {
            assert_eq!(folder(command, Path::new("/repo")), PathBuf::from(expected), "{command}");
        }
    }
}
