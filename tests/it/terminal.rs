//! What agents and people do with answers: run a printed step, type a line of `next`, wait in a process of their own,
//! look at the history.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::bus::{Bus, RELAY, Run, run};

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(5);

impl Bus {
    /// A step of a playbook exactly as printed, from a folder that is in no project and in nobody's name.
    #[track_caller]
    pub fn step(&self, step: &Value) -> Run {
        let argv: Vec<&str> = step["run"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        assert_eq!(argv[0], "relay", "{step}");
        let mut command = self.command();
        command.args(&argv[1..]).current_dir(self.path(""));
        run(command)
    }

    /// A line of `next` as an agent types it into its shell, with the text for `--body -`.
    pub fn type_line(&self, agent: &str, line: &str, text: &str) -> Run {
        let programs = Path::new(RELAY).parent().unwrap().to_str().unwrap().to_owned();
        let mut command = Command::new("sh");
        self.environment(&mut command);
        command
            .args(["-c", line])
            .env("PATH", format!("{programs}:{}", std::env::var("PATH").unwrap()))
            .env("RELAY_AGENT", agent)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Run::new(line.to_owned(), &child.wait_with_output().unwrap())
    }

    /// The binary with these variables and in the name of nobody in particular.
    pub fn with_variables(&self, variables: &[(&str, &str)], args: &[&str]) -> Run {
        let mut command = self.args("", args);
        command.envs(variables.iter().copied());
        run(command)
    }

    /// The number of the newest event. Looking as nobody touches nobody's presence.
    pub fn tip(&self) -> u64 {
        self.relay("", ["status"]).success().result()["tip"].as_u64().unwrap()
    }

    /// The history after a number.
    pub fn events(&self, after: u64) -> Vec<Value> {
        let mut events = Vec::new();
        let mut cursor = after;
        loop {
            let page = self.relay("", ["look", "events", "--after", &cursor.to_string()]).success().result();
            let found = page["events"].as_array().unwrap();
            if found.is_empty() {
                return events;
            }
            events.extend(found.iter().cloned());
            cursor = page["cursor"].as_u64().unwrap();
        }
    }

    /// The kinds of the events after a number.
    pub fn kinds(&self, after: u64) -> Vec<String> {
        self.events(after).iter().map(|event| text(&event["kind"])).collect()
    }

    /// The numbers of an agent's unread mail.
    pub fn inbox(&self, agent: &str) -> Vec<u64> {
        ids(&self.relay(agent, ["poll"]).success().result()["messages"])
    }

    /// Starts a command that is expected to wait.
    pub fn spawn(&self, agent: &str, args: &[&str]) -> Waiter {
        start(self.args(agent, args))
    }

    /// The same, returning once the process has announced that it waits.
    #[track_caller]
    pub fn waiting(&self, agent: &str, args: &[&str]) -> Waiter {
        self.until_it_waits(self.spawn(agent, args))
    }

    /// The same with these variables and in the name of nobody in particular.
    #[track_caller]
    pub fn waiting_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Waiter {
        let mut command = self.args("", args);
        command.envs(variables.iter().copied());
        self.until_it_waits(start(command))
    }

    #[track_caller]
    fn until_it_waits(&self, waiter: Waiter) -> Waiter {
        let presence = self.store().join("presence");
        waiter.until(|pid| {
            let name = format!("{pid}-");
            std::fs::read_dir(&presence).unwrap().filter_map(Result::ok).any(|entry| {
                let file = entry.file_name().into_string().unwrap();
                file.starts_with(&name) && file.ends_with(".live")
            })
        })
    }
}

fn start(mut command: Command) -> Waiter {
    let line = format!("{command:?}");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Waiter { child: Some(child), line }
}

/// A process that waits. It does not outlive the test.
pub struct Waiter {
    child: Option<Child>,
    line: String,
}

impl Waiter {
    /// Returns once this is so of the process.
    #[track_caller]
    pub fn until(mut self, is_so: impl Fn(u32) -> bool) -> Self {
        while !is_so(self.child.as_ref().unwrap().id()) {
            if self.has_ended() {
                panic!("ended too soon: {:?}", self.finish());
            }
            std::thread::park_timeout(LOOK);
        }
        self
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Waits for its end; how often the process wrote, as far as was seen.
    pub fn writes_until_end(&mut self) -> u64 {
        let counts = format!("/proc/{}/io", self.child.as_ref().unwrap().id());
        let mut writes = 0;
        while !self.has_ended() {
            let text = std::fs::read_to_string(&counts).unwrap_or_default();
            let seen = text.lines().find_map(|line| line.strip_prefix("syscw: ")).and_then(|count| count.parse().ok());
            writes = seen.unwrap_or(writes);
            std::thread::park_timeout(LOOK);
        }
        writes
    }

    /// Ends the process the hard way.
    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits for its answer.
    pub fn finish(mut self) -> Run {
        let output = self.child.take().unwrap().wait_with_output().unwrap();
        Run::new(self.line.clone(), &output)
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A string of an answer.
#[track_caller]
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// The ids of a list in an answer.
#[track_caller]
pub fn ids(list: &Value) -> Vec<u64> {
    column(list, "id").iter().map(|id| id.as_u64().unwrap()).collect()
}

/// One field of every row of a list in an answer.
#[track_caller]
pub fn column(list: &Value, field: &str) -> Vec<Value> {
    list.as_array().unwrap_or_else(|| panic!("{list} is no list")).iter().map(|row| row[field].clone()).collect()
}

/// An answer without how much room the store takes, which depends on when its log was folded in.
#[track_caller]
pub fn without_size(line: &str) -> String {
    let mut answer: Value = serde_json::from_str(line).unwrap();
    if let Some(now) = answer.pointer_mut("/result/now") {
        now.as_object_mut().unwrap().remove("store").unwrap();
    }
    answer.to_string()
}
