//! A marked block in a Markdown file. What stands around it is somebody else's.

use std::ops::Range;

use super::Fault;

const BEGIN: &str = "<!-- relay:begin -->";
const END: &str = "<!-- relay:end -->";

#[derive(Debug, Clone)]
pub struct Block {
    text: String,
    /// Words that say the same where somebody uses them: then no block is needed.
    unless: Vec<&'static str>,
}

impl Block {
    pub fn new(text: &str) -> Self {
        Block { text: text.trim().to_owned(), unless: Vec::new() }
    }

    #[must_use]
    pub fn unless(self, words: &[&'static str]) -> Self {
        Block { unless: words.to_vec(), ..self }
    }

    pub fn put(&self, text: &str) -> Result<String, Fault> {
        let without = self.take(text)?;
        let mut words = without.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ':', ')']));
        if words.any(|word| self.unless.contains(&word)) {
            return Ok(without);
        }
        let newline = newline(text);
        let block = format!("{BEGIN}\n{}\n{END}\n", self.text).replace('\n', newline);
        if let Some(place) = blocks(text)?.first() {
            // The first stays where it is; more of them came by merging.
            let rest = self.take(&text[place.end..])?;
            return Ok(format!("{}{block}{rest}", &text[..place.start]));
        }
        let gap = match text {
            "" => "",
            text if text.ends_with('\n') => newline,
            _ => &newline.repeat(2),
        };
        Ok(format!("{text}{gap}{block}"))
    }

    /// The empty line that parted it from what stood before it goes with it, where nothing follows.
    pub fn take(&self, text: &str) -> Result<String, Fault> {
        let mut left = text.to_owned();
        for place in blocks(text)?.into_iter().rev() {
            left.replace_range(place.clone(), "");
            let newline = newline(text);
            if place.start == left.len() && left.ends_with(&newline.repeat(2)) {
                left.truncate(left.len() - newline.len());
            }
        }
        Ok(left)
    }
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// Where blocks stand, each with the end of its last line.
fn blocks(text: &str) -> Result<Vec<Range<usize>>, Fault> {
    let (mut found, mut begun, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        match line.trim() {
            BEGIN if begun.is_some() => return Err("has a relay block that begins twice".to_owned()),
            BEGIN => begun = Some(at),
            END => {
                let start = begun.take().ok_or("has a relay block that ends without a beginning")?;
                found.push(start..at + line.len());
            }
            _ => {}
        }
        at += line.len();
    }
    match begun {
        Some(_) => Err(format!("has a relay block without its end, {END}")),
        None => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Block {
        Block::new("new\nwords\n")
    }

    const OURS: &str = "<!-- relay:begin -->\nnew\nwords\n<!-- relay:end -->\n";

    /// What comes of putting it in; taking it out again gives `back`.
    #[track_caller]
    fn check(text: &str, expected: &str, back: &str) {
        let put = block().put(text).unwrap_or_else(|fault| panic!("{text:?} {fault}"));
        assert_eq!(put, expected.replace("OURS", OURS));
        assert_eq!(block().put(&put), Ok(put.clone()), "twice");
        assert_eq!(block().take(&put).as_deref(), Ok(back));
    }

    #[test]
    fn a_block_is_put_behind_what_is_there_and_taken_out_again() {
        check("", "OURS", "");
        check("# Title\n", "# Title\n\nOURS", "# Title\n");
        check("# Title\n\n", "# Title\n\n\nOURS", "# Title\n\n");
        check("no end", "no end\n\nOURS", "no end\n");
        let returns = OURS.replace('\n', "\r\n");
        check("# Title\r\n", &format!("# Title\r\n\r\n{returns}"), "# Title\r\n");
    }

    #[test]
    fn an_older_block_is_replaced_where_it_stands() {
        let old = "<!-- relay:begin -->\nold\n<!-- relay:end -->\n";
        check(&format!("a\n\n{old}\nb\n"), "a\n\nOURS\nb\n", "a\n\n\nb\n");
        check(&format!("{old}b\n"), "OURSb\n", "b\n");
        check(&format!("a\n{old}b\n{old}"), "a\nOURSb\n", "a\nb\n");
        check(&format!("a\n{}", old.trim_end()), "a\nOURS", "a\n");
    }

    #[test]
    fn a_block_without_an_end_is_nobodys_to_mend() {
        for text in [BEGIN, END, &format!("{BEGIN}\n{BEGIN}\n{END}\n")] {
            assert!(block().put(text).is_err() && block().take(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_somebody_says_in_their_own_words_is_not_said_again() {
        let block = block().unless(&["@AGENTS.md"]);
        assert_eq!(block.put("Read this:\n@AGENTS.md\n").as_deref(), Ok("Read this:\n@AGENTS.md\n"));
        assert_eq!(block.put(&format!("@AGENTS.md\n\n{OURS}")).as_deref(), Ok("@AGENTS.md\n"));
        assert_eq!(block.put("See @AGENTS.md, all of it.\n").as_deref(), Ok("See @AGENTS.md, all of it.\n"));
        assert!(block.put("Not `@AGENTS.md`\n").is_ok_and(|put| put.contains(BEGIN)));
    }
}
