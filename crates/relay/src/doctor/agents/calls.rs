//! What doctor runs of a file that may have come with a repository: a plain call of relay, and no relay that the repository
//! brought along. Whatever else stands there is for its program to run, once its user has said so.

use std::path::{Path, PathBuf};

use relay_core::domain::shell;

use crate::environment;
use crate::environment::on_the_path;
use crate::init::{Line, Place};

/// What `init` puts behind a call, for programs that mind how a hook ends.
const BEHIND: [&str; 4] = ["", " 2>/dev/null", " || true", " 2>/dev/null || true"];

/// Whether it calls `relay hook` and nothing else.
pub fn is_plain(line: &Line) -> bool {
    let program = line.program().unwrap_or_default();
    let call = [program.as_str(), "hook"];
    match line {
        Line::Words(words) => *words == call,
        Line::Shell(line) => {
            let line = line.strip_prefix("exec ").unwrap_or(line);
            line.strip_prefix(&shell::line(&call)).is_some_and(|behind| BEHIND.contains(&behind))
        }
    }
}

/// Where a program is that a file names, seen from where it is run.
pub fn place_of(program: &str, here: &Place) -> Option<PathBuf> {
    let path = if program.contains('/') { Some(here.root.join(program)) } else { on_the_path(program) };
    path.filter(|path| path.is_file())
}

/// Whether it is the machine's, and nothing that the project brought along, not even a link; or this very program.
pub fn is_of_the_machine(program: &Path, here: &Place) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let own = environment::own_program().ok().and_then(|own| real(&own));
    let (folder, file) = (program.parent().and_then(real), real(program));
    let is_outside = |path: &PathBuf| !path.starts_with(&here.root) && !path.starts_with(here.project.as_str());
    file.is_some() && file == own || [folder, file].iter().all(|path| path.as_ref().is_some_and(is_outside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_call_of_relay_is_run() {
        let check =
            |line: &str, expected: bool| assert_eq!(is_plain(&Line::Shell(line.to_owned())), expected, "{line}");
        check("relay hook", true);
        check("/opt/relay/relay hook || true", true);
        check("exec relay hook 2>/dev/null", true);
        check("'/opt/with space/relay' hook", true);
        check("relay hook; touch x", false);
        check("relay hook && touch x", false);
        check("relay hook || touch x", false);
        check("relay hook > x", false);
        check("relay hook\ntouch x", false);
        check("`touch x`/relay hook", false);
        check("$(touch${IFS}x)/relay hook", false);
        check("relay hook --idle", false);
        check("", false);
        let words = |words: &[&str]| Line::Words(words.iter().map(|word| (*word).to_owned()).collect());
        assert!(is_plain(&words(&["relay", "hook"])));
        assert!(!is_plain(&words(&["relay", "hook", "more"])) && !is_plain(&words(&[])));
    }
}
