//! Commands that move a checkout: they change what others have in front of them, or throw away what they have not committed.

use std::path::{Path, PathBuf};

/// What moves HEAD, the index or the files of a work tree.
const MOVERS: [&str; 7] = ["checkout", "switch", "stash", "reset", "rebase", "clean", "restore"];
/// Words after a mover that leave everything where it is.
const HARMLESS: [(&str, &str); 5] =
    [("stash", "list"), ("stash", "show"), ("clean", "-n"), ("clean", "--dry-run"), ("rebase", "--show-current-patch")];
/// Programs that run the command which follows them.
const CARRIERS: [&str; 7] = ["sudo", "command", "env", "time", "exec", "nohup", "nice"];
/// What git itself takes with a value, before the name of its command.
const WITH_VALUE: [&str; 6] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];

/// The folder in which a command line moves a checkout, if it does. It is read as a shell would read it as far as words and the
/// commands among them go; what a script or a variable hides is not seen.
pub fn moved(command: &str, cwd: &Path) -> Option<PathBuf> {
    let mut folder = cwd.to_owned();
    for words in commands(command) {
        if let [program, target] = words.as_slice()
            && program == "cd"
        {
            folder = folder.join(target);
            continue;
        }
        if let Some(there) = moves(&words) {
            return Some(there.map_or_else(|| folder.clone(), |there| folder.join(there)));
        }
    }
    None
}

/// Whether these words are a git command that moves a checkout; with the folder that `-C` names.
fn moves(words: &[String]) -> Option<Option<&str>> {
    let is_assignment =
        |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'));
    let mut rest = words.iter().map(String::as_str).skip_while(|word| is_assignment(word) || CARRIERS.contains(word));
    let program = rest.next()?;
    if program.rsplit('/').next() != Some("git") {
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
    let next = rest.next().unwrap_or_default();
    let is_harmless = HARMLESS.contains(&(verb, next)) || next == "--help" || next == "-h";
    (MOVERS.contains(&verb) && !is_harmless).then_some(folder)
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
            ("git status", None),
            ("git stash list", None),
            ("git clean -n", None),
            ("git checkout --help", None),
            ("git commit -m 'git checkout main'", None),
            ("echo git checkout main", None),
            ("grep -r 'git reset' .", None),
            ("git log --oneline; ls", None),
            ("git", None),
            ("git -C", None),
            ("", None),
            ("'unclosed git stash", None),
            ("gitk checkout", None),
        ] {
            assert_eq!(moved(command, Path::new("/repo")), folder.map(PathBuf::from), "{command}");
        }
    }
}
