//! A file that is all relay's. Its last line says so, and of what: one that somebody has edited since is theirs.

use relay_core::domain::event::hex;
use sha2::{Digest, Sha256};

use super::Fault;
use super::gap::{Gap, How};

const SAYS: &str = "written by `relay init`, as long as the rest is ";

#[derive(Debug, Clone)]
pub struct Whole {
    text: String,
    /// What makes a line a comment in such a file: before and after it.
    comment: (&'static str, &'static str),
}

/// Whose a file is.
#[derive(Debug, PartialEq, Eq)]
enum Owner {
    Nobody,
    Relay,
    /// It was relay's until somebody edited it.
    Editor,
    Other,
}

impl Whole {
    pub fn markdown(text: &str) -> Self {
        Whole { text: text.to_owned(), comment: ("<!-- ", " -->") }
    }

    pub fn script(text: &str) -> Self {
        Whole { text: text.to_owned(), comment: ("// ", "") }
    }

    fn written(&self) -> String {
        let (before, after) = self.comment;
        format!("{}{before}{SAYS}{}{after}\n", self.text, digest(&self.text))
    }

    pub fn put(&self, text: &str) -> Result<String, Fault> {
        match owner(text) {
            Owner::Nobody => Ok(self.written()),
            // Line ends that a checkout changed are no reason to write it anew.
            Owner::Relay if text.replace("\r\n", "\n") == self.written() => Ok(text.to_owned()),
            Owner::Relay => Ok(self.written()),
            Owner::Editor => {
                Err("was written by relay and has been edited since; move it away to have relay's own".to_owned())
            }
            Owner::Other => Err("is there already, and is not relay's".to_owned()),
        }
    }

    pub fn gap(&self, text: &str) -> Option<Gap> {
        let how = match owner(text) {
            Owner::Nobody => How::Missing,
            _ if text.replace("\r\n", "\n") == self.written() => return None,
            _ => How::Different,
        };
        Some(Gap { how, what: "relay's own text".to_owned(), is_vital: self.is_script() })
    }

    /// Whether a program runs it; the others are only read.
    pub fn is_script(&self) -> bool {
        self.comment.1.is_empty()
    }

    /// Nothing, where it is relay's; what is somebody's is left to them.
    pub fn take(&self, text: &str) -> Result<String, Fault> {
        match owner(text) {
            Owner::Nobody | Owner::Relay => Ok(String::new()),
            Owner::Editor => Err("was written by relay and has been edited since; it is yours to delete".to_owned()),
            Owner::Other => Ok(text.to_owned()),
        }
    }
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))[..12].to_owned()
}

fn owner(text: &str) -> Owner {
    if text.trim().is_empty() {
        return Owner::Nobody;
    }
    let text = text.replace("\r\n", "\n");
    let Some((rest, said)) = text.find(SAYS).map(|at| {
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        (&text[..line], &text[at + SAYS.len()..])
    }) else {
        return Owner::Other;
    };
    let (said, behind) = said.split_once('\n').unwrap_or((said, ""));
    if behind.is_empty() && said.starts_with(&digest(rest)) { Owner::Relay } else { Owner::Editor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_relays_until_somebody_edits_it() {
        let (old, new) = (Whole::script("old()\n"), Whole::script("new()\n"));
        let written = old.put("").unwrap_or_default();
        assert_eq!(old.put(&written), Ok(written.clone()));
        assert_eq!(new.put(&written).as_ref(), Ok(&new.written()), "an older one is replaced");
        assert_eq!(new.take(&written).as_deref(), Ok(""));
        let returns = written.replace('\n', "\r\n");
        assert_eq!(old.put(&returns), Ok(returns.clone()), "a checkout may change the ends of lines");
        for edited in [written.replace("old", "mine"), format!("{written}more()\n"), format!("first()\n{written}")] {
            assert!(new.put(&edited).is_err() && new.take(&edited).is_err(), "{edited}");
        }
        assert!(new.put("somebody's()\n").is_err());
        assert_eq!(new.take("somebody's()\n").as_deref(), Ok("somebody's()\n"));
    }
}
