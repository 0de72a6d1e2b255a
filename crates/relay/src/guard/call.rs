//! Whether a text that somebody wrote, a shell script or the file of a program that runs hooks, calls the guard. What only speaks
//! of it, a comment or a line that prints it, would leave a repository without a guard that says it has one.

use std::path::Path;

use super::Hook;

/// What may stand before a command and leaves it one.
const BEFORE: [&str; 16] =
    ["!", "-", "-c", "=", "bash", "command", "do", "elif", "else", "env", "exec", "if", "sh", "then", "time", "while"];

/// The words under which those programs have a command; under others they have names and descriptions.
const KEYS: [&str; 3] = ["entry", "run", "script"];

pub fn is_called_in(text: &[u8], hook: Hook) -> bool {
    // Whatever stands in quotes is read as if it did not: a path, a variable, or a command for another shell.
    let text = String::from_utf8_lossy(text).replace(['"', '\''], "");
    text.lines()
        .any(|line| without_comment(line).split([';', '|', '&', '(', ')', '`', ',']).any(|one| is_call(one, hook)))
}

fn is_call(command: &str, hook: Hook) -> bool {
    let is_key = |word: &str| KEYS.contains(&word.trim_end_matches([':', '=']));
    let is_value = |word: &str| word.split_once('=').is_some_and(|(name, _)| !name.contains('/'));
    let words = command.split_whitespace().map(|word| word.trim_matches(['{', '}'])).filter(|word| !word.is_empty());
    let mut words = words.skip_while(|word| BEFORE.contains(word) || is_key(word) || is_value(word));
    words.next().is_some_and(is_relay) && words.next() == Some("guard") && words.next() == Some(hook.as_str())
}

/// By its name, by its path, or by a variable that is called after it.
fn is_relay(word: &str) -> bool {
    let name = Path::new(word).file_name().unwrap_or_default().to_string_lossy();
    name.trim_start_matches(['$', '{']).eq_ignore_ascii_case("relay")
}

/// In shells and in YAML alike, a comment begins where a word would.
fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(is_called_in(text.as_bytes(), Hook::PreCommit), expected, "{text}");
        assert!(!is_called_in(text.as_bytes(), Hook::PrePush), "{text}");
    }

    #[test]
    fn a_call_is_found_in_scripts_and_in_the_files_of_programs_that_run_hooks() {
        for text in [
            "#!/bin/sh\nrelay guard pre-commit\n",
            "exec relay guard pre-commit \"$@\"",
            "make lint && /opt/relay/bin/relay guard pre-commit || exit $?",
            "if command -v relay >/dev/null 2>&1; then relay guard pre-commit \"$@\" || exit $?; fi",
            "\"$RELAY\" guard pre-commit # the guard",
            "RELAY_HOME=/x relay guard pre-commit",
            "      run: command -v relay >/dev/null || exit 0; relay guard pre-commit",
            "      run: relay guard pre-commit",
            "      entry: sh -c 'command -v relay >/dev/null || exit 0; exec relay guard pre-commit'",
            "[pre-commit.commands.relay]\nrun = \"relay guard pre-commit\"",
            "{\"pre-commit\": {\"jobs\": [\n{\"run\": \"relay guard pre-commit\"}, 1]}}",
            "'/opt/relay/bin/relay' guard pre-commit",
            "\"${RELAY}\" guard pre-commit",
            "{ relay guard pre-commit; }",
        ] {
            check(text, true);
        }
    }

    #[test]
    fn what_only_speaks_of_it_is_no_call() {
        for text in [
            "# TODO: relay guard pre-commit",
            "make lint  # then relay guard pre-commit",
            "echo relay guard pre-commit",
            "echo 'relay guard pre-commit'",
            "printf '%s\\n' \"relay guard pre-commit\"",
            "      name: relay guard pre-commit",
            "other guard pre-commit",
            "relay guard pre-commits",
            "relay check; guard pre-commit",
        ] {
            check(text, false);
        }
    }
}
