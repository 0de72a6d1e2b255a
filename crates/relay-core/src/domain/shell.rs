//! Commands as a person would type them into a POSIX shell.
//!
//! The result is shown (in hints and next steps) and perhaps pasted; relay itself never runs it.

use std::fmt::Write;
use std::str::Chars;

/// One word, quoted only where a shell would otherwise read something else into it.
#[must_use]
pub fn quote(word: &str) -> String {
    if word.chars().any(breaks_display) {
        return escaped(word);
    }
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    // Nothing has a meaning between single quotes, so only they themselves have to leave them.
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A whole command, one line whatever its words contain.
#[must_use]
pub fn line<S: AsRef<str>>(argv: &[S]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote(word.as_ref())).collect();
    words.join(" ")
}

/// A flag with its value, as words of a command: one word where the value would pass for a flag itself.
#[must_use]
pub fn flag(flag: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') { vec![format!("{flag}={value}")] } else { vec![flag.to_owned(), value.to_owned()] }
}

/// The words of a line that [`line`] wrote; none where it could not have.
#[must_use]
pub fn words(line: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().push_str(&until_quote(&mut rest)?),
            '$' if rest.as_str().starts_with('\'') => word.get_or_insert_default().push_str(&spelled_out(&mut rest)?),
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

fn until_quote(rest: &mut Chars<'_>) -> Option<String> {
    let (quoted, after) = rest.as_str().split_once('\'')?;
    let quoted = quoted.to_owned();
    *rest = after.chars();
    Some(quoted)
}

/// What [`escaped`] wrote, from the quote behind its `$` on.
fn spelled_out(rest: &mut Chars<'_>) -> Option<String> {
    rest.next()?;
    let mut bytes = Vec::new();
    loop {
        match rest.next()? {
            '\'' => return String::from_utf8(bytes).ok(),
            '\\' => match rest.next()? {
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                c @ '0'..='7' => {
                    let digits: String = [c, rest.next()?, rest.next()?].iter().collect();
                    bytes.push(u8::from_str_radix(&digits, 8).ok()?);
                }
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            },
            c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

/// Bytes without a meaning to the shell in any place of a word; so neither `~` nor `#` is one.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte)
}

/// Control characters, line separators and the marks that reorder text: with them in it, a shown
/// line would not stay one line, or not look like what it does.
fn breaks_display(c: char) -> bool {
    let separates_or_reorders = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() || separates_or_reorders
}

fn escaped(word: &str) -> String {
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            '\\' | '\'' => out.extend(['\\', c]),
            c if breaks_display(c) => push_octal(&mut out, c),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// Octal, because three digits end by themselves; shells disagree on where `\x` ends.
fn push_octal(out: &mut String, c: char) {
    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
        // Writing to a `String` cannot fail.
        let _ = write!(out, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(word: &str, expected: &str) {
        assert_eq!(quote(word), expected, "{word:?}");
    }

    #[track_caller]
    fn check_line(argv: &[&str], expected: &str) {
        assert_eq!(line(argv), expected, "{argv:?}");
    }

    #[test]
    fn a_plain_word_stays_as_it_is() {
        check("relay", "relay");
        check("--to=BlueLake", "--to=BlueLake");
        check("src/a.b_c-d+e", "src/a.b_c-d+e");
        check("user@host:22,23%", "user@host:22,23%");
        check("0", "0");
        check("-", "-");
    }

    #[test]
    fn an_empty_word_stays_visible() {
        check("", "''");
    }

    #[test]
    fn a_word_with_spaces_is_quoted() {
        check("two words", "'two words'");
        check(" ", "' '");
    }

    #[test]
    fn what_the_shell_would_expand_is_quoted() {
        check("~", "'~'");
        check("~/notes", "'~/notes'");
        check("#1", "'#1'");
        check("$HOME", "'$HOME'");
        check("`id`", "'`id`'");
        check("$(id)", "'$(id)'");
        check("src/**", "'src/**'");
        check("a?", "'a?'");
        check("[ab]", "'[ab]'");
        check("{a}", "'{a}'");
        check("!!", "'!!'");
        check("^a", "'^a'");
    }

    #[test]
    fn operators_and_other_quotes_are_quoted() {
        check("a;b", "'a;b'");
        check("a&b", "'a&b'");
        check("a|b", "'a|b'");
        check("<a>", "'<a>'");
        check("\"a\"", "'\"a\"'");
        check("a\\b", "'a\\b'");
    }

    #[test]
    fn a_single_quote_leaves_the_quotes_for_a_moment() {
        check("it's", r"'it'\''s'");
        check("'", r"''\'''");
        check("''", r"''\'''\'''");
    }

    #[test]
    fn letters_beyond_ascii_are_quoted_but_readable() {
        check("café", "'café'");
        check("登录", "'登录'");
    }

    #[test]
    fn control_characters_are_spelled_out() {
        check("a\nb", r"$'a\nb'");
        check("\r\n", r"$'\r\n'");
        check("a\tb c", r"$'a\tb c'");
        check("\u{1b}[31m", r"$'\033[31m'");
        check("\u{7}1", r"$'\0071'");
        check("\u{0}", r"$'\000'");
        check("\u{7f}", r"$'\177'");
    }

    #[test]
    fn quotes_and_backslashes_are_escaped_beside_control_characters() {
        check("it's\n", r"$'it\'s\n'");
        check("a\\n\n", r"$'a\\n\n'");
        check("\"$x\"\n", "$'\"$x\"\\n'");
    }

    #[test]
    fn unicode_that_breaks_or_reorders_a_line_is_spelled_out() {
        check("\u{85}", r"$'\302\205'");
        check("a\u{2028}b", r"$'a\342\200\250b'");
        check("\u{202e}é", r"$'\342\200\256é'");
    }

    #[test]
    fn a_line_joins_its_quoted_words() {
        check_line(&[], "");
        check_line(&["relay"], "relay");
        check_line(&["relay", "send", "two words"], "relay send 'two words'");
        check_line(&["relay", "", "it's"], r"relay '' 'it'\''s'");
        check_line(&["echo", "a\nb", "#"], r"echo $'a\nb' '#'");
    }

    #[test]
    fn a_value_with_a_dash_before_it_stays_with_its_flag() {
        assert_eq!(flag("--why", "so"), ["--why", "so"]);
        assert_eq!(flag("--why", ""), ["--why", ""]);
        assert_eq!(flag("--why", "-x=y"), ["--why=-x=y"]);
    }

    #[test]
    fn a_line_reads_back_as_its_words() {
        let hostile = [
            "a",
            "",
            "two words",
            "it's",
            "'",
            "''",
            "a\\b",
            "$x",
            "$'x'",
            "\u{1b}[31m",
            "it's\n\\n",
            "\u{7}1",
            "\u{202e}é",
            "é",
        ];
        assert_eq!(words(&line(&hostile)), Some(hostile.map(str::to_owned).to_vec()));
        assert_eq!(words("relay ack 7"), Some(vec!["relay".to_owned(), "ack".to_owned(), "7".to_owned()]));
        assert_eq!(words(""), Some(Vec::new()));
        for unfinished in ["'a", "$'a", r"$'\0", "a\\"] {
            assert_eq!(words(unfinished), None, "{unfinished}");
        }
    }

    #[test]
    fn a_line_takes_owned_words_too() {
        assert_eq!(line(&["a b".to_owned(), "c".to_owned()]), "'a b' c");
    }
}
