//! `relay demo`: it plays, it quotes, it leaves nothing behind, and it notices every verb that is broken.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::bus::{RELAY, Run, run};

/// The demo in a folder that is no project, with the caller's variables set to what would mislead it.
fn demo(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(RELAY);
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap())
        .env("HOME", folder)
        .env("TMPDIR", folder)
        .env("RELAY_HOME", "relative and wrong")
        .env("RELAY_PROJECT", "/nowhere")
        .env("RELAY_AGENT", "-")
        .env("RELAY_SESSION", "mine")
        .env("GIT_DIR", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere/index")
        .env("GIT_CONFIG_GLOBAL", folder.join("gitconfig"))
        .arg("demo")
        .args(arguments)
        .current_dir(folder);
    // A configuration of the caller's that would break every call of git.
    std::fs::write(folder.join("gitconfig"), "[core]\n\tbare = nonsense\n").unwrap();
    std::fs::write(folder.join(".gitconfig"), "[core]\n\tbare = nonsense\n").unwrap();
    command
}

fn broken(verb: &str) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), &["--json"]);
    command.env("RELAY_TEST_BREAK", verb);
    let run = run(command);
    left_nothing(folder.path());
    run
}

/// Only what the test itself put there.
fn left_nothing(folder: &Path) {
    let mut left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".gitconfig", "gitconfig"]);
}

fn lines(step: &Value) -> Vec<&str> {
    step["said"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect()
}

/// Every text and number of an answer.
fn values(answer: &Value, into: &mut Vec<String>) {
    match answer {
        Value::Array(list) => list.iter().for_each(|value| values(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| values(value, into)),
        Value::String(text) => into.push(text.clone()),
        Value::Null => {}
        other => into.push(other.to_string()),
    }
}

#[test]
fn the_demo_plays_all_verbs_and_every_line_quotes_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(demo(folder.path(), &["--json"])).success().result();
    left_nothing(folder.path());
    let steps = result["steps"].as_array().unwrap();
    let mut played: Vec<&str> = Vec::new();
    for step in steps {
        played.extend(step["answer"]["verb"].as_str());
        let mut quotable = Vec::new();
        values(&step["answer"], &mut quotable);
        let said = lines(step);
        assert!(!said.is_empty(), "{step}");
        for line in said {
            let is_quote =
                line.is_empty() || quotable.iter().any(|value| !value.is_empty() && line.contains(value.as_str()));
            assert!(is_quote, "{line:?} quotes nothing of {step}");
        }
    }
    for verb in VERBS {
        assert!(played.contains(&verb), "{verb} is not played: {played:?}");
    }
    let agents: std::collections::BTreeSet<&str> = steps.iter().map(|step| step["agent"].as_str().unwrap()).collect();
    for agent in ["BlueLake", "GoldOwl", "RedForest", "Claude", "Codex", "anybody"] {
        assert!(agents.contains(agent), "{agent} is not among {agents:?}");
    }
    let refused: Vec<&Value> = steps.iter().filter(|step| step["exit_status"] != 0).collect();
    let codes: Vec<&str> = refused.iter().map(|step| step["answer"]["error"]["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["CONTACT_REQUIRED", "CONTACT_BLOCKED"]);
    assert!(refused.iter().all(|step| step["exit_status"] == 4));
}

/// The end is in git, where it needs no relay: the log, and a message as a file.
#[test]
fn the_demo_ends_in_a_plain_clone_of_the_archive() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), &["--json"]);
    // Whoever drains by itself would outlive the demo.
    command.env("RELAY_DRAIN", "now");
    let result = run(command).success().result();
    left_nothing(folder.path());
    let steps = result["steps"].as_array().unwrap();
    let [.., drained, log, letter] = steps.as_slice() else { panic!("{steps:?}") };
    let number = drained["answer"]["result"]["archive"]["number"].as_u64().unwrap();
    let commits = lines(log);
    assert_eq!(log["run"], serde_json::json!(["git", "log", "--oneline", "--no-decorate"]));
    assert!(commits.len() > 3, "{commits:?}");
    let newest = commits[0].split_once(' ').unwrap().1;
    assert!(newest.contains(&format!("#{number}")), "{newest} is not the last of {number}");
    let letter = lines(letter);
    for line in
        ["thread: \"login-42\"", "from: \"RedForest\"", "to: [\"BlueLake\"]", "I need ten minutes in session.rs."]
    {
        assert!(letter.contains(&line), "{line:?} is missing from {letter:#?}");
    }
}

#[test]
fn the_demo_is_told_in_plain_lines_where_no_terminal_shows_colours() {
    let folder = tempfile::tempdir().unwrap();
    let told = run(demo(folder.path(), &[])).success();
    left_nothing(folder.path());
    assert!(!told.stdout.contains('\u{1b}'), "{}", told.stdout);
    for line in ["relay reserve 'src/auth/**' --reason login-42", "had been waiting, and wakes up with #", "RECOVERED"]
    {
        assert!(told.stdout.contains(line), "{line:?} is missing from\n{}", told.stdout);
    }
    assert_eq!(told.stderr, "");
}

const VERBS: [&str; 11] =
    ["start", "prepare", "reserve", "link", "send", "poll", "ack", "release", "look", "recover", "policy"];

#[test]
fn a_verb_that_fails_fails_the_demo() {
    for verb in VERBS {
        let run = broken(verb).fails("INTERNAL");
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("expected a success") && message.contains("broken by a test"), "{verb}: {message}");
    }
}

#[test]
fn a_verb_that_answers_with_nothing_fails_the_demo() {
    for verb in VERBS {
        let run = broken(&format!("{verb}:hollow")).fails("INTERNAL");
        let message = run.error()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("expected a value at /"), "{verb}: {message}");
    }
}

#[test]
fn the_second_act_shows_what_is_lost_without_relay_and_that_nothing_is_lost_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let result = run(demo(folder.path(), &["--json"])).success().result();
    let shown = result["steps"].as_array().unwrap().iter().filter(|step| step["run"][0] == "cat");
    let shown: Vec<&Value> = shown.map(|step| &step["answer"]["output"]).collect();
    let both = serde_json::json!(["demo", "a line by Claude", "a line by Codex"]);
    assert_eq!(shown, [&serde_json::json!(["demo", "a line by Codex"]), &both]);
}

#[test]
fn a_hook_that_says_nothing_fails_the_demo() {
    let run = broken("hook").fails("INTERNAL");
    assert!(run.error()["message"].as_str().unwrap().contains("relay hook"), "{run:?}");
}

#[test]
fn without_git_the_demo_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = demo(folder.path(), &["--json"]);
    command.env("PATH", folder.path());
    let run = run(command).fails("ARCHIVE_UNAVAILABLE");
    assert_eq!(run.status, 6);
    assert!(run.error()["message"].as_str().unwrap().contains("the demo needs git"), "{run:?}");
    left_nothing(folder.path());
}
