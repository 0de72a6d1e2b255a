//! Text from others, made safe to show: what could steer a terminal or hide in a line is written out.

/// Escapes control, ANSI, bidirectional and zero-width characters; line breaks, of either kind, and tabs stay.
pub fn escape(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .map(|c| if is_plain(c) { c.to_string() } else { c.escape_unicode().to_string() })
        .collect()
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
        // Zero-width, directional and other invisible format characters.
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => false,
        '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => false,
        _ => true,
    }
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

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(escape_line("a\nb\tc"), "a\\nb\\tc");
    }
}
