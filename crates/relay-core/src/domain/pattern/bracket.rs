//! Reads one bracket expression, byte by byte and exactly as git's wildmatch does.
//!
//! Git lets a malformed expression match nothing; here it is a fault that names the problem.

use super::bytes::ByteSet;
use super::syntax::Class;
use super::{PatternFault, invalid};

struct Bracket<'a> {
    bytes: &'a [u8],
    open: usize,
    at: usize,
    members: ByteSet,
    /// The byte that a following `-` would make the start of a range.
    low: Option<u8>,
}

/// Reads the expression whose `[` is at byte `open`; returns it with the offset just past its `]`.
pub(super) fn read(text: &str, open: usize) -> Result<(Class, usize), PatternFault> {
    let bytes = text.as_bytes();
    let negated = matches!(bytes.get(open + 1), Some(b'!' | b'^'));
    let body = open + 1 + usize::from(negated);
    let (members, low) = (ByteSet::EMPTY, None);
    let mut bracket = Bracket { bytes, open, at: body, members, low };
    bracket.items(text)?;
    let sign = if negated { "!" } else { "" };
    let text = format!("[{sign}{}", &text[body..bracket.at]);
    Ok((Class { text, members: bracket.members, negated }, bracket.at))
}

impl Bracket<'_> {
    /// Reads up to and including the closing `]`, which in first position is a member instead.
    fn items(&mut self, text: &str) -> Result<(), PatternFault> {
        self.item(text)?;
        while self.peek() != Some(b']') {
            self.item(text)?;
        }
        self.at += 1;
        Ok(())
    }

    fn item(&mut self, text: &str) -> Result<(), PatternFault> {
        match (self.take()?, self.peek()) {
            (b'\\', _) => {
                let member = self.take()?;
                self.add(member);
            }
            (b'-', Some(next)) if self.low.is_some() && next != b']' => self.range()?,
            (b'[', Some(b':')) => self.posix_class(text)?,
            (member, _) => self.add(member),
        }
        Ok(())
    }

    fn range(&mut self) -> Result<(), PatternFault> {
        let dash = self.at - 1;
        let mut high = self.take()?;
        if high == b'\\' {
            high = self.take()?;
        }
        let set = self.low.take().map_or(ByteSet::EMPTY, |low| ByteSet::range(low, high));
        if set.is_empty() {
            return Err(invalid(format!("the range around the `-` at byte {dash} runs backwards")));
        }
        self.members = self.members.or(set);
        Ok(())
    }

    /// Reads the rest of `[:name:]` after its `[`.
    fn posix_class(&mut self, text: &str) -> Result<(), PatternFault> {
        let (start, name_at) = (self.at - 1, self.at + 1);
        let length = self.bytes[name_at..].iter().position(|byte| *byte == b']');
        let end = name_at + length.ok_or_else(|| self.unclosed())?;
        let Some(name) = text[name_at..end].strip_suffix(':') else {
            let why = format!("`[:` at byte {start} has no `:]`; escape the `[` if it is meant");
            return Err(invalid(why));
        };
        let set = posix_members(name)
            .ok_or_else(|| invalid(format!("`[:{name}:]` at byte {start} is not a known character class")))?;
        self.members = self.members.or(set);
        self.low = None;
        self.at = end + 1;
        Ok(())
    }

    fn add(&mut self, member: u8) {
        self.members = self.members.or(ByteSet::one(member));
        self.low = Some(member);
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Result<u8, PatternFault> {
        let byte = self.peek().ok_or_else(|| self.unclosed())?;
        self.at += 1;
        Ok(byte)
    }

    fn unclosed(&self) -> PatternFault {
        invalid(format!("`[` at byte {} is never closed", self.open))
    }
}

fn posix_members(name: &str) -> Option<ByteSet> {
    let holds: fn(&u8) -> bool = match name {
        "alnum" => u8::is_ascii_alphanumeric,
        "alpha" => u8::is_ascii_alphabetic,
        "blank" => |byte| matches!(byte, b' ' | b'\t'),
        "cntrl" => u8::is_ascii_control,
        "digit" => u8::is_ascii_digit,
        "graph" => u8::is_ascii_graphic,
        "lower" => u8::is_ascii_lowercase,
        "print" => |byte| matches!(byte, b' '..=b'~'),
        "punct" => u8::is_ascii_punctuation,
        // Git's own notion of a space leaves out the vertical tab and the form feed.
        "space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        "upper" => u8::is_ascii_uppercase,
        "xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    Some(ByteSet::from_predicate(|byte| holds(&byte)))
}
