//! Whether a program was seen to honour what relay answers, in which version, and whether it is a newer one that is here.

use std::process::Command;

use serde::Serialize;

use super::{Checkup, Problem, Time};
use crate::environment::on_the_path;
use crate::init::Agent;
use crate::process::{self, Tried};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Honoured {
    /// The program was run, and did what the answer said.
    Seen,
    /// So it was, but an older one than is here.
    SeenInOlder,
    /// Only its documentation says so.
    Unproven,
}

/// Programs that were asked for their versions, all at once: some take a second to say it.
pub struct Versions(Vec<(Agent, Tried)>);

impl Versions {
    pub fn ask(agents: impl Iterator<Item = Agent>) -> Self {
        let asked = agents.filter_map(|agent| {
            let program = agent.traces().programs.iter().find_map(|name| on_the_path(name))?;
            let mut command: Command = process::new(program);
            command.arg("--version").current_dir("/");
            Some((agent, process::try_out(&mut command, "").ok()?))
        });
        Versions(asked.collect())
    }

    /// Adds what they said. Whoever says nothing in time has no version.
    pub fn told(self, looked: &mut [Checkup], time: Time<'_>) {
        for (agent, tried) in self.0 {
            let output = tried.result(|| time.is_over());
            let version = output.and_then(|output| version(&String::from_utf8_lossy(&output.stdout)));
            if let Some(checkup) = looked.iter_mut().find(|checkup| checkup.name == agent) {
                compare(checkup, version);
            }
        }
    }
}

fn compare(checkup: &mut Checkup, version: Option<String>) {
    if let (Some(seen), Some(version)) = (checkup.seen_with, &version)
        && numbers(version) > numbers(seen)
    {
        checkup.honoured = Honoured::SeenInOlder;
        checkup.problems.push(Problem::note(format!("its answers were seen to count with {seen}; here is {version}")));
    }
    checkup.version = version;
}

/// The first word that is a version, whatever stands around it.
fn version(said: &str) -> Option<String> {
    let words = said.split_whitespace().map(|word| word.trim_start_matches('v').trim_end_matches(['.', ',']));
    let is_version = |word: &&str| word.contains('.') && word.starts_with(|letter: char| letter.is_ascii_digit());
    words.into_iter().find(is_version).map(str::to_owned)
}

fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(['.', '-', '+']);
    parts.map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_in_what_programs_say_of_themselves() {
        for (said, expected) in [
            ("2.1.325 (Claude Code)\n", Some("2.1.325")),
            ("codex-cli 0.166.0\n", Some("0.166.0")),
            ("GitHub Copilot CLI 1.0.102.\n", Some("1.0.102")),
            ("v1.18.33\n", Some("1.18.33")),
            ("1.120.0\n0123abcd\nx64\n", Some("1.120.0")),
            ("an error\n", None),
            ("", None),
        ] {
            assert_eq!(version(said).as_deref(), expected, "{said:?}");
        }
        assert!(numbers("2.1.326") > numbers("2.1.325") && numbers("2.10.0") > numbers("2.9.9"));
        assert!(numbers("0.166.0-beta.1") <= numbers("0.166.0"));
    }
}
