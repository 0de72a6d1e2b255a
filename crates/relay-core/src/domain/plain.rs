//! Text from others, made safe to show: what could steer a terminal or hide in a line is written out.

/// Marks that may stand on one letter. No language needs more, and a hundred paint over the lines around it.
const MARKS: usize = 6;

/// Escapes control, ANSI, bidirectional, zero-width and other invisible characters, and marks that are piled on one letter; line
/// breaks, of either kind, and tabs stay.
///
/// U+FE0F stays where it makes a symbol a picture, which is how people write ⚠️ and ✔️. Anywhere else, and the second in a row,
/// nobody sees it, and a text could be hidden in a row of them.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut before, mut marks) = (None, 0);
    for c in text.replace("\r\n", "\n").chars() {
        marks = if is_mark(c) { marks + 1 } else { 0 };
        if is_plain(c) && marks <= MARKS || c == '\u{fe0f}' && before.is_some_and(is_symbol) {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_unicode());
        }
        before = Some(c);
    }
    escaped
}

/// The same for something that must stay on one line.
pub fn escape_line(text: &str) -> String {
    escape(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// The same in a document: what Markdown would take for its own is marked as plain text.
pub fn markdown(text: &str) -> String {
    let mut marked = String::new();
    for c in escape_line(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!') {
            marked.push('\\');
        }
        marked.push(c);
    }
    marked
}

/// Whether a character only shows itself.
pub(crate) fn is_plain(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        c if c.is_control() => false,
        // Line breaks by another name, and what stands around annotations.
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' => false,
        // Everything that Unicode calls ignorable by default: fillers, joiners, directions, selectors, tags.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => false,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => false,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => false,
        '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => false,
        '\u{e0000}'..='\u{e0fff}' => false,
        _ => true,
    }
}

/// What is drawn above, below or through the letter before it.
fn is_mark(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}'
            | '\u{610}'..='\u{61a}' | '\u{64b}'..='\u{65f}' | '\u{670}' | '\u{6d6}'..='\u{6e4}'
            | '\u{730}'..='\u{74a}' | '\u{7eb}'..='\u{7f3}' | '\u{8d3}'..='\u{8ff}' | '\u{e31}'
            | '\u{e34}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{eb1}' | '\u{eb4}'..='\u{ecd}'
            | '\u{f18}'..='\u{f19}' | '\u{f35}'..='\u{f39}' | '\u{f71}'..='\u{f84}' | '\u{f86}'..='\u{fbc}'
            | '\u{102d}'..='\u{103e}' | '\u{135d}'..='\u{135f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
            | '\u{20d0}'..='\u{20ff}' | '\u{302a}'..='\u{302f}' | '\u{3099}'..='\u{309a}' | '\u{a66f}'..='\u{a672}'
            | '\u{a674}'..='\u{a67d}' | '\u{a8e0}'..='\u{a8f1}' | '\u{fe20}'..='\u{fe2f}'
    )
}

/// What a selector may make a picture. Digits are left out, though they are keys with one: among other digits it is not seen.
fn is_symbol(c: char) -> bool {
    let is_one_of_few = "\u{a9}\u{ae}\u{203c}\u{2049}\u{2122}\u{2139}\u{3030}\u{303d}\u{3297}\u{3299}".contains(c);
    is_one_of_few || matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(escape(text), expected, "{text:?}");
    }

    #[test]
    fn a_document_shows_a_text_as_it_was_written() {
        for (text, expected) in [
            ("Login: the API", "Login: the API"),
            ("# *not* a [heading](x)", "\\# \\*not\\* a \\[heading\\](x)"),
            ("<script>", "\\<script\\>"),
            ("two\nlines", "two\\\\nlines"),
            ("\u{1b}[31m", "\\\\u{1b}\\[31m"),
        ] {
            assert_eq!(markdown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_could_steer_a_terminal_is_written_out() {
        check("plain text\nwith é, 漢字 and 😀\t.", "plain text\nwith é, 漢字 and 😀\t.");
        check("\u{1b}[31mred", "\\u{1b}[31mred");
        check("a\rb", "a\\u{d}b");
        check("a\r\nb", "a\nb");
        check("\u{9b}31m", "\\u{9b}31m");
        check("\u{202e}evil", "\\u{202e}evil");
        check("zero\u{200b}width", "zero\\u{200b}width");
        check("\u{feff}bom", "\\u{feff}bom");
        check("tag\u{e0041}", "tag\\u{e0041}");
        check("nul\0", "nul\\u{0}");
    }

    /// The first and the last of each stretch that is not seen, and those beside it that are.
    #[test]
    fn what_nobody_sees_is_written_out() {
        for (first, last) in [
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfe00, 0xfe0f),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfffb),
            (0x1_bca0, 0x1_bca3),
            (0x1_d173, 0x1_d17a),
            (0xe_0000, 0xe_0fff),
        ] {
            let shown = |code: u32| escape(&format!("a{}", char::from_u32(code).unwrap_or('a')));
            for code in [first, last] {
                assert_eq!(shown(code), format!("a\\u{{{code:x}}}"));
            }
            for code in [first - 1, last + 1] {
                assert!(!shown(code).contains('\\'), "{code:x} is seen");
            }
        }
    }

    #[test]
    fn a_selector_stays_where_it_makes_a_picture() {
        for picture in ["⚠\u{fe0f} careful", "✔\u{fe0f}", "❤\u{fe0f}❤\u{fe0f}", "©\u{fe0f}", "🅰\u{fe0f}"] {
            check(picture, picture);
        }
        check("\u{fe0f}first", "\\u{fe0f}first");
        check("port 8\u{fe0f}080", "port 8\\u{fe0f}080");
        check("word\u{fe0f}", "word\\u{fe0f}");
        check("⚠\u{fe0f}\u{fe0f}\u{fe01}", "⚠\u{fe0f}\\u{fe0f}\\u{fe01}");
        check("⚠\u{fe0e}\u{e0100}", "⚠\\u{fe0e}\\u{e0100}");
    }

    #[test]
    fn a_letter_has_as_many_marks_as_a_language_gives_it() {
        check("Vie\u{302}\u{323}t \u{e17}\u{e35}\u{e48}", "Vie\u{302}\u{323}t \u{e17}\u{e35}\u{e48}");
        let most = format!("Z{}o", "\u{336}".repeat(MARKS));
        check(&most, &most);
        let piled = escape(&format!("Z{}o{}", "\u{336}".repeat(200), "\u{20e3}".repeat(3)));
        assert_eq!(piled.matches('\u{336}').count(), MARKS);
        assert_eq!(piled.matches("\\u{336}").count(), 200 - MARKS);
        assert!(piled.ends_with("o\u{20e3}\u{20e3}\u{20e3}"));
    }

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(escape_line("a\nb\tc"), "a\\nb\\tc");
    }
}
