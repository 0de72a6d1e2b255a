//! The text of relay's hook, and how it is recognised: by a digest of itself, so that a text of any version is relay's own
//! exactly as long as nobody has changed it.

use relay_core::domain::event::hex;
use relay_core::domain::shell;
use sha2::{Digest, Sha256};

use super::Hook;

/// What the name of a hook that runs first ends in.
pub const BEFORE: &str = ".before-relay";

const MARK: &str = "# relay guard ";
const MADE: &str = "# The folder was made for it.";

/// What a hook of relay's is written for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub hook: Hook,
    /// The program as the script calls it.
    pub program: String,
    /// It runs the hook that was there before.
    pub chains: bool,
    /// The folder of hooks is there because of it.
    pub made_folder: bool,
}

/// Whose text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    Relay {
        made_folder: bool,
    },
    /// relay wrote it, and somebody has changed it since.
    Both,
    Another,
}

impl Script {
    pub fn text(&self) -> String {
        let body = self.body();
        let digest = digest(&body);
        format!(
            "#!/bin/sh\n{MARK}{digest}: tells whose claims git is about to go into; `relay guard remove` takes it away.\n{body}"
        )
    }

    fn body(&self) -> String {
        let (hook, program) = (self.hook.as_str(), shell::quote(&self.program));
        let mut lines: Vec<String> = Vec::new();
        if self.made_folder {
            lines.push(MADE.to_owned());
        }
        let reads = self.hook == Hook::PrePush && self.chains;
        if reads {
            // Both hooks read what git says of the refs; the dot keeps the last line's end.
            lines.push("refs=$(cat; echo .)".to_owned());
            lines.push("refs=${refs%.}".to_owned());
        }
        let said = if reads { "printf %s \"$refs\" 2>/dev/null | " } else { "" };
        if self.chains {
            lines.push(format!("before=$(dirname \"$0\")/{hook}{BEFORE}"));
            lines.push(format!("if [ -x \"$before\" ]; then {said}\"$before\" \"$@\" || exit $?; fi"));
        }
        lines.push(format!("command -v {program} >/dev/null 2>&1 || exit 0"));
        lines.push(format!("{said}{program} guard {hook} \"$@\""));
        lines.push("# Only 1 stops git: nothing that is wrong with relay itself does.".to_owned());
        lines.push("[ $? -ne 1 ]".to_owned());
        format!("{}\n", lines.join("\n"))
    }
}

fn digest(body: &str) -> String {
    hex(&Sha256::digest(body.as_bytes())[..8])
}

pub fn author(bytes: &[u8]) -> Author {
    let Some((digest_said, body)) = std::str::from_utf8(bytes).ok().and_then(split) else {
        let has_mark = bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes());
        return if has_mark { Author::Both } else { Author::Another };
    };
    if digest_said == digest(body) {
        Author::Relay { made_folder: body.lines().any(|line| line == MADE) }
    } else {
        Author::Both
    }
}

/// The digest in the second line, and what it is one of.
fn split(text: &str) -> Option<(&str, &str)> {
    let (mark, body) = text.strip_prefix("#!/bin/sh\n")?.split_once('\n')?;
    let (digest, _) = mark.strip_prefix(MARK)?.split_once(':')?;
    Some((digest, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(hook: Hook, program: &str, chains: bool, made_folder: bool) -> Script {
        Script { hook, program: program.to_owned(), chains, made_folder }
    }

    #[test]
    fn a_text_is_relays_own_until_somebody_changes_it() {
        for hook in Hook::ALL {
            for (chains, made_folder) in [(false, false), (true, false), (false, true)] {
                let text = script(hook, "/opt/my relay/relay", chains, made_folder).text();
                assert_eq!(author(text.as_bytes()), Author::Relay { made_folder }, "{text}");
                for changed in [format!("{text}make lint\n"), text.replace("ne 1", "ne 2"), format!("\n{text}")] {
                    assert_eq!(author(changed.as_bytes()), Author::Both, "{changed}");
                }
            }
        }
        for foreign in ["", "#!/bin/sh\n", "#!/bin/sh\n# relay\n", "\u{0}\u{1}", "#!/bin/sh\nrelay guard pre-commit\n"]
        {
            assert_eq!(author(foreign.as_bytes()), Author::Another, "{foreign:?}");
        }
    }

    #[test]
    fn a_text_of_any_version_is_recognised() {
        let body = "exec relay guard pre-commit\n";
        let older = format!("#!/bin/sh\n{MARK}{}: in other words\n{body}", digest(body));
        assert_eq!(author(older.as_bytes()), Author::Relay { made_folder: false });
    }

    #[test]
    fn a_program_whose_path_has_spaces_is_one_word() {
        let text = script(Hook::PreCommit, "/opt/it's here/relay", false, false).text();
        assert!(text.contains(r"'/opt/it'\''s here/relay' guard pre-commit"), "{text}");
    }
}
