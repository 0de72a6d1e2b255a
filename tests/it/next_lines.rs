//! Every line of `next` runs as it is printed, in the shell in which the command before it was typed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::bus::{Bus, RELAY, Run, minutes, run};
use crate::terminal::text;

/// How somebody says which agent and which project is meant.
struct Shell<'a> {
    bus: &'a Bus,
    folder: PathBuf,
    flags: Vec<String>,
    variables: Vec<(&'static str, String)>,
    /// The first word of every line that was followed, after `relay`.
    followed: std::cell::RefCell<Vec<String>>,
}

impl<'a> Shell<'a> {
    fn new(bus: &'a Bus, folder: PathBuf, flags: &[&str], variables: &[(&'static str, &str)]) -> Self {
        Shell {
            bus,
            folder,
            flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            variables: variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
            followed: std::cell::RefCell::default(),
        }
    }

    /// The four ways of naming: by flags and by variables, inside the repository and outside of it.
    fn all(bus: &'a Bus, outside: &'a Path, key: &'a str) -> [Self; 4] {
        [
            Shell::new(bus, bus.repo(), &["--agent"], &[]),
            Shell::new(bus, outside.to_owned(), &["--project", key, "--agent"], &[]),
            Shell::new(bus, bus.repo(), &[], &[("RELAY_AGENT", "")]),
            Shell::new(bus, outside.to_owned(), &[], &[("RELAY_PROJECT", key), ("RELAY_AGENT", "")]),
        ]
    }

    fn environment(&self, command: &mut Command, agent: &str) {
        self.bus.environment(command);
        command.current_dir(&self.folder);
        for (name, value) in &self.variables {
            command.env(name, if value.is_empty() { agent } else { value });
        }
    }

    /// A command in the name of an agent, or of nobody yet.
    #[track_caller]
    fn relay(&self, agent: &str, args: &[&str]) -> Run {
        let mut command = self.bus.command();
        self.environment(&mut command, agent);
        let flags = self.flags.iter().filter(|flag| !agent.is_empty() || *flag != "--agent");
        command.arg("--json").args(flags);
        if !agent.is_empty() && self.flags.last().is_some_and(|flag| flag == "--agent") {
            command.arg(agent);
        }
        command.args(args);
        run(command)
    }

    /// Types every line of `next`, in order.
    #[track_caller]
    fn follow(&self, agent: &str, answer: &Run) -> Vec<String> {
        let lines: Vec<String> = answer.json()["next"].as_array().unwrap().iter().map(text).collect();
        let mut typed = String::new();
        for line in &lines {
            if line.starts_with("export ") {
                typed = format!("{line}; ");
                continue;
            }
            self.type_line(agent, &format!("{typed}{line}")).success();
            self.followed.borrow_mut().push(line.split(' ').nth(1).unwrap().to_owned());
        }
        lines
    }

    /// A command, and then every line that its answer proposes.
    #[track_caller]
    fn say(&self, agent: &str, args: &[&str]) -> Vec<String> {
        self.follow(agent, &self.relay(agent, args).success())
    }

    fn type_line(&self, agent: &str, line: &str) -> Run {
        let programs = Path::new(RELAY).parent().unwrap().to_str().unwrap();
        let mut command = Command::new("sh");
        self.environment(&mut command, agent);
        command
            .args(["-c", line])
            .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A command that reads no text has gone without it.
        let _ = child.stdin.take().unwrap().write_all(b"a text");
        Run::new(line.to_owned(), &child.wait_with_output().unwrap())
    }
}

fn send<'a>(to: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["send", "--to", to, "--body", "b"], rest].concat()
}

/// Every command that proposes something, in a situation in which it does.
fn story(shell: &Shell<'_>) {
    for agent in ["BlueLake", "RedForest", "GreenHill"] {
        shell.say(agent, &["start"]);
    }
    shell.say("BlueLake", &["prepare", "--thread", "bd-1"]);
    shell.say("BlueLake", &send("RedForest,GreenHill", &["--thread", "bd-1", "--subject", "Login token"]));
    let drift = shell.say("BlueLake", &send("@thread", &["--thread", "bd-1", "--subject", "Lunch on Friday"]));
    assert_eq!(drift.len(), 1);
    let off_thread = shell.say("BlueLake", &send("RedForest", &["--subject", "Login", "--ack-required"]));
    assert_eq!(off_thread.len(), 1);
    assert!(shell.say("RedForest", &["start"]).len() > 1);
    shell.say("BlueLake", &send("RedForest", &["--thread", "bd-1", "--ack-required"]));
    assert_eq!(shell.say("RedForest", &["poll", "--all", "--limit", "100"]).len(), 1);
    assert_eq!(shell.say("RedForest", &["poll", "--limit", "1"]).len(), 1);
    consent(shell);
    claims(shell);
    retry(shell);
    newcomers(shell);
}

fn consent(shell: &Shell<'_>) {
    shell.say("GoldDune", &["start"]);
    shell.say("GoldDune", &["policy", "contacts_only"]);
    let asked = shell.relay("BlueLake", &["link", "--target", "GoldDune"]).success();
    assert!(!shell.say("GoldDune", &["start"]).is_empty());
    assert_eq!(shell.follow("BlueLake", &asked).len(), 1, "answered by now, so that nobody waits");
}

fn claims(shell: &Shell<'_>) {
    let long = format!("{}/**", "long-name/".repeat(40));
    for pattern in ["src/**", "./-x", &long] {
        shell.say("RedForest", &["reserve", pattern]);
        assert_eq!(shell.say("BlueLake", &["reserve", pattern]).len(), 1, "{pattern}");
    }
    shell.bus.advance(minutes(11));
    assert_eq!(shell.say("BlueLake", &["reserve", "src/b.rs"]).len(), 1);
}

fn retry(shell: &Shell<'_>) {
    shell.say("BlueLake", &["retire"]);
    shell.relay("BlueLake", &send("RedForest", &["--subject", "Login"])).fails("AGENT_RETIRED");
    shell.say("BlueLake", &["start"]);
    assert_eq!(shell.say("BlueLake", &["recover", "AGENT_RETIRED", "--retry"]).len(), 1);
}

/// Nobody is named before the first line of `next`.
fn newcomers(shell: &Shell<'_>) {
    for args in [["start"].as_slice(), &["prepare", "--thread", "bd-9"]] {
        let lines = shell.say("", args);
        assert!(lines[0].starts_with("export RELAY_AGENT=") && lines.len() > 1, "{lines:?}");
    }
}

#[test]
fn every_line_of_a_long_story_runs_as_printed() {
    for way in 0..4 {
        let bus = Bus::new();
        let (outside, key) = (bus.path(""), bus.key());
        let shell = &Shell::all(&bus, &outside, &key)[way];
        story(shell);
        let mut verbs = shell.followed.borrow().clone();
        verbs.sort();
        verbs.dedup();
        assert_eq!(verbs, ["ack", "link", "poll", "prepare", "release", "reserve", "send"], "way {way}");
    }
}

#[test]
fn a_new_topic_for_a_thread_goes_to_those_whom_the_thread_was() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    let shell = Shell::new(&bus, bus.repo(), &["--agent"], &[]);
    shell.say("BlueLake", &send("RedForest,GreenHill", &["--thread", "bd-1", "--subject", "Login token"]));
    let lines = shell.say("BlueLake", &send("@thread", &["--thread", "bd-1", "--subject", "Lunch"]));
    let to = lines[0].split(' ').nth(3).unwrap();
    let mut names: Vec<&str> = to.split(',').collect();
    names.sort_unstable();
    assert_eq!(names, ["GreenHill", "RedForest"], "{lines:?}");
    let thread = bus.relay("", ["thread", "NEW_THREAD"]).success().result();
    let mut recipients: Vec<String> =
        thread["messages"][0]["recipients"].as_array().unwrap().iter().map(|row: &Value| text(&row["name"])).collect();
    recipients.sort();
    assert_eq!(recipients, ["GreenHill", "RedForest"]);
}

#[test]
fn a_request_from_another_project_is_accepted_as_printed() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::create_dir(bus.path("an other")).unwrap();
    let other = bus.path("an other").to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &other]).success();
    let outside = bus.path("");
    let there = Shell::new(&bus, outside, &["--project", &other, "--agent"], &[]);
    let asked = there.relay("RedForest", &["link", "--target", &format!("BlueLake@{}", bus.key())]).success();
    let here = Shell::new(&bus, bus.repo(), &["--agent"], &[]);
    assert_eq!(here.say("BlueLake", &["start"]).len(), 1);
    assert_eq!(there.follow("RedForest", &asked).len(), 1);
    let links = bus.relay("BlueLake", ["link", "--list"]).success().result();
    assert_eq!(links["links"][0]["state"], "accepted");
}
