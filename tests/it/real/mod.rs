//! The coding agents themselves, with the hooks and the server that `relay init` gave them: what reaches their model, and what
//! becomes of the files. The model is a script, in a network that has nothing else in it.

mod scenes;

mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, run};
use crate::outside;

/// What the user says. Requests that hold it are the session's own.
pub const TASK: &str = "do the task";

/// How one program is run without an account, and how its model calls tools.
pub struct Program {
    /// As `init --only` calls it.
    pub word: &'static str,
    /// Makes a home for it in which it asks the script, and trusts the project.
    pub prepare: fn(&Bus),
    /// Has it do what the user says.
    pub command: fn(&Bus) -> Command,
    /// Has it go on with the session before.
    pub resume: fn(&Bus) -> Command,
    /// Writes `mine` into a file that holds `line`.
    pub edit: fn(&Path) -> Vec<Value>,
    pub shell: fn(&str) -> Value,
    /// Calls a tool of relay's server.
    pub tool: fn(&str, Value) -> Value,
}

/// A call of a tool, as the script has it.
pub fn call(tool: &str, input: impl Into<Value>) -> Value {
    json!({"tool": tool, "input": input.into()})
}

/// A project that was set up for a program, with RedForest in it too.
pub struct Play {
    pub bus: Bus,
    program: &'static Program,
}

/// What a run came to.
pub struct Done {
    /// What the model was asked, each time with everything that was said before.
    pub requests: Vec<String>,
}

impl Done {
    /// Everything that the model was told in the end.
    pub fn told(&self) -> &str {
        self.requests.last().unwrap()
    }
}

impl Play {
    pub fn of(program: &'static Program) -> Self {
        Play::set_up_by(program, RELAY)
    }

    /// The same, set up by another copy of relay.
    pub fn set_up_by(program: &'static Program, relay: impl AsRef<Path>) -> Self {
        let bus = Bus::with(&["RedForest"]);
        // Not every program lets its server know of the clock that the test holds.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        bus.set_clock(i64::try_from(now).unwrap());
        bus.track(&["src/a.rs", "src/b.rs"]);
        let mut init = Command::new(relay.as_ref());
        bus.environment(&mut init);
        init.args(["init", "--only", program.word]);
        run(init).success();
        fs::create_dir(bus.path("user")).unwrap();
        (program.prepare)(&bus);
        Play { bus, program }
    }

    /// The calls that edit a file.
    pub fn edit(&self, path: &str) -> Vec<Value> {
        (self.program.edit)(&Path::new(&self.bus.key()).join(path))
    }

    pub fn shell(&self, command: &str) -> Vec<Value> {
        vec![(self.program.shell)(command)]
    }

    pub fn tool(&self, name: &str, arguments: Value) -> Vec<Value> {
        vec![(self.program.tool)(name, arguments)]
    }

    pub fn runs(&self, turns: &[Value]) -> Done {
        self.performs(&(self.program.command)(&self.bus), &json!([{"hears": TASK, "turns": turns}]))
    }

    pub fn resumes(&self, turns: &[Value]) -> Done {
        self.performs(&(self.program.resume)(&self.bus), &json!([{"hears": TASK, "turns": turns}]))
    }

    /// A run in which a subagent hears a task of its own.
    pub fn runs_with(&self, turns: &[Value], task: &str, of_subagent: &[Value]) -> Done {
        let script = json!([{"hears": TASK, "turns": turns}, {"hears": task, "turns": of_subagent}]);
        self.performs(&(self.program.command)(&self.bus), &script)
    }

    fn performs(&self, command: &Command, script: &Value) -> Done {
        let (script_file, requests) = (self.bus.path("script.json"), self.bus.path("requests.jsonl"));
        fs::write(&script_file, script.to_string()).unwrap();
        fs::write(&requests, "").unwrap();
        let mut model = outside::node(&self.bus);
        model.arg(outside::scripts().join("model.mjs")).args([&script_file, &requests]);
        model.arg(command.get_program()).args(command.get_args());
        model.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let run = run(outside::alone(&self.bus, &model)).success();
        let asked = fs::read_to_string(&requests).unwrap();
        let asked = asked.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].clone());
        // Programs also ask for titles and the like, and offer no tools then.
        let is_told = |body: &Value| body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let requests: Vec<String> =
            asked.filter(is_told).map(|body| body.to_string()).filter(|body| body.contains(TASK)).collect();
        assert!(!requests.is_empty(), "the model was asked nothing: {run:?}");
        Done { requests }
    }

    pub fn holds(&self, path: &str) -> String {
        fs::read_to_string(self.bus.repo().join(path)).unwrap()
    }

    /// The agent that the session is.
    pub fn agent(&self) -> String {
        let agents = self.bus.relay("RedForest", ["agents"]).success().result();
        let name = |agent: &Value| agent["name"].as_str().unwrap().to_owned();
        let is_it = |agent: &&Value| name(agent) != "RedForest" && agent.get("parent").is_none_or(Value::is_null);
        let found: Vec<String> = agents["agents"].as_array().unwrap().iter().filter(is_it).map(name).collect();
        assert_eq!(found.len(), 1, "a session is one agent: {agents}");
        found[0].clone()
    }
}

/// A command of relay's in the shell, in the environment of the model.
pub fn relay(arguments: &str) -> String {
    format!("{RELAY} --json {arguments}")
}

/// The same turns, of which the first comes after something else has happened.
pub fn after(meanwhile: &str, mut turns: Vec<Value>) -> Vec<Value> {
    turns[0]["meanwhile"] = meanwhile.into();
    turns
}
