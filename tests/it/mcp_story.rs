//! One story of three agents, told once on the command line and once through MCP: the same answers, and the same history event
//! for event. A step of a playbook is taken as it is printed, in the form that the way of telling has.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use crate::bus::{Bus, minutes, run};
use crate::listening::Server;
use crate::mcp::{BEFORE, CURRENT, Client};

/// How often the history is looked at before it is too short for good.
const LOOKS: usize = 1_000;

/// A way of telling it.
trait Way {
    /// What the agent's request is answered.
    fn request(&mut self, agent: &str, tool: &str, arguments: Value) -> Value;

    /// The same for a step that a playbook printed.
    fn step(&mut self, step: &Value) -> Value;
}

/// Words that a person would type.
struct CommandLine<'a>(&'a Bus);

impl Way for CommandLine<'_> {
    fn request(&mut self, agent: &str, tool: &str, arguments: Value) -> Value {
        self.0.relay(agent, [&[tool.to_owned()][..], &words(&arguments)].concat()).json()
    }

    fn step(&mut self, step: &Value) -> Value {
        let printed = step["run"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        let mut command = self.0.command();
        command.arg("--json").args(printed.skip(1));
        run(command).json()
    }
}

/// A tool's arguments as the command line has them: long flags, and what stands there without one.
fn words(arguments: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut words = Vec::new();
    for (name, value) in arguments.as_object().unwrap() {
        let values: Vec<String> =
            value.as_array().map_or_else(|| vec![text(value)], |values| values.iter().map(text).collect());
        let flag = format!("--{}", name.replace('_', "-"));
        match (name.as_str(), value) {
            ("patterns" | "ids" | "what", _) => words.extend(values),
            (_, Value::Bool(true)) => words.push(flag),
            _ => words.extend(values.into_iter().flat_map(|value| [flag.clone(), value])),
        }
    }
    words
}

/// A client for each agent, as its harness has one.
struct Tools<'a> {
    connect: Box<dyn Fn() -> Client + 'a>,
    clients: HashMap<String, Client>,
}

impl Way for Tools<'_> {
    fn request(&mut self, agent: &str, tool: &str, mut arguments: Value) -> Value {
        arguments["agent"] = json!(agent);
        let client = self.clients.entry(agent.to_owned()).or_insert_with(&self.connect);
        client.call(tool, &arguments)
    }

    fn step(&mut self, step: &Value) -> Value {
        let client = self.clients.values_mut().next().unwrap();
        client.call(step["tool"].as_str().unwrap(), &step["args"])
    }
}

/// A telling: its answers, and how long the history was after each of them.
struct Telling<'a> {
    bus: &'a Bus,
    way: Box<dyn Way + 'a>,
    answers: Vec<Value>,
    lengths: Vec<usize>,
    /// The lengths of the telling before, if there was one.
    known: Option<Vec<usize>>,
}

impl<'a> Telling<'a> {
    fn new(bus: &'a Bus, way: impl Way + 'a, known: Option<Vec<usize>>) -> Self {
        Telling { bus, way: Box::new(way), answers: Vec::new(), lengths: Vec::new(), known }
    }

    fn request(&mut self, agent: &str, tool: &str, arguments: Value) -> Value {
        let answer = self.way.request(agent, tool, arguments);
        self.note(answer)
    }

    /// Does what an error says, step by step.
    fn recover(&mut self, error: &Value) -> Value {
        let steps = error["error"]["playbook"].as_array().unwrap().clone();
        assert!(!steps.is_empty(), "{error:#}");
        let mut last = Value::Null;
        for step in &steps {
            let answer = self.way.step(step);
            assert_eq!(answer["ok"], true, "{step:#}: {answer:#}");
            last = self.note(answer);
        }
        last
    }

    fn note(&mut self, answer: Value) -> Value {
        self.lengths.push(self.settled());
        self.answers.push(masked(&answer, self.bus));
        self.bus.advance(minutes(1));
        answer
    }

    /// How long the history is once all of it is there: that mail was shown is written down after the answer, and the next
    /// request must not overtake it.
    fn settled(&self) -> usize {
        let step = self.lengths.len();
        let wanted = self.known.as_ref().and_then(|known| known.get(step)).copied().unwrap_or_default();
        let mut lengths = (0..LOOKS).map(|_| history(self.bus).len());
        lengths
            .find(|length| *length >= wanted)
            .unwrap_or_else(|| panic!("request {step} wrote less than it does here: {:#?}", history(self.bus)))
    }
}

fn history(bus: &Bus) -> Vec<Value> {
    let shown = bus.relay("", ["look", "events", "--after", "0"]).success().result();
    shown["events"].as_array().unwrap().iter().map(|event| masked(event, bus)).collect()
}

/// Without what differs between two projects: where it is, and what was drawn at random.
fn masked(value: &Value, bus: &Bus) -> Value {
    let is_random = |text: &str| text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit());
    match value {
        Value::String(text) if is_random(text) => json!("RANDOM"),
        Value::String(text) => json!(text.replace(&bus.key(), "/abs/repo")),
        Value::Array(values) => values.iter().map(|value| masked(value, bus)).collect(),
        Value::Object(fields) => {
            // Only the command line looks at the work trees for a status, and at everything at once: who was seen last comes first.
            let fields = fields.iter().filter(|(name, _)| !["work", "now"].contains(&name.as_str()));
            let mut masked: Map<_, _> = fields.map(|(name, value)| (name.clone(), masked(value, bus))).collect();
            if let Some(Value::Array(agents)) = masked.get_mut("agents") {
                agents.sort_by_key(|agent| agent["name"].to_string());
            }
            masked.into()
        }
        other => other.clone(),
    }
}

/// Three agents share a repository: two want the same file, one is met for the first time, one is asked twice.
fn tell(telling: &mut Telling<'_>) {
    let (blue, red, green) = ("BlueLake", "RedForest", "GreenHill");
    telling.request(blue, "start", json!({"program": "claude-code", "model": "opus", "task": "Fix the login"}));
    telling.request(red, "prepare", json!({"thread": "bd-1", "program": "codex"}));
    telling.request(green, "start", json!({"path": ["docs/**"]}));

    telling.request(blue, "prepare", json!({"thread": "bd-1"}));
    telling.request(blue, "reserve", json!({"patterns": ["src/**", "res:dev-db"], "reason": "bd-1"}));
    let contested = telling.request(red, "reserve", json!({"patterns": ["src/auth.rs"], "ttl": "30m"}));
    assert_eq!(contested["result"]["conflicts"][0]["holder"], blue, "{contested:#}");
    let refused = telling.request(green, "reserve", json!({"patterns": ["src/auth.rs"], "if_free": true}));
    assert_eq!(refused["error"]["code"], "FILE_RESERVATION_CONFLICT", "{refused:#}");

    let letter = json!({"to": [green], "thread": "bd-1", "subject": "Login", "body": "Will you *test* it?"});
    let healed = telling.request(red, "send", letter);
    assert_eq!(healed["signals"][0]["code"], "RECOVERED", "{healed:#}");

    let stranger = json!({"to": [blue], "thread": "bd-3", "subject": "Docs", "body": "Mine", "no_recover": true});
    let refused = telling.request(green, "send", stranger);
    assert_eq!(refused["error"]["code"], "CONTACT_REQUIRED", "{refused:#}");
    let sent = telling.recover(&refused);
    assert_eq!(sent["result"]["retried"]["result"]["message"]["thread"], "bd-3", "{sent:#}");

    telling.request(green, "link", json!({"target": red, "revoke": true}));
    let letter =
        json!({"to": [green], "thread": "bd-2", "subject": "Docs", "body": "Later?", "ack_within": "2h", "hold": true});
    let held = telling.request(red, "send", letter);
    assert_eq!(held["result"]["message"]["recipients"][0]["state"], "held", "{held:#}");
    telling.request(green, "link", json!({"target": red, "accept": true}));

    let mail = telling.request(green, "poll", json!({"bodies": true}));
    let mail = mail["result"]["messages"].as_array().unwrap().clone();
    assert_eq!(mail.len(), 2, "{mail:#?}");
    telling.request(green, "ack", json!({"ids": [mail[0]["id"], mail[1]["id"]]}));
    telling.request(green, "send", json!({"reply_to": mail[1]["id"], "body": "Yes, tomorrow"}));
    telling.request(red, "poll", json!({"from": green, "read": true}));
    telling.request(blue, "poll", json!({"limit": 5}));

    telling.request(blue, "release", json!({"reason": "bd-1", "done": true}));
    telling.request(red, "release", json!({"all": true}));
    let nobody = telling.request("GoldOwl", "reserve", json!({"patterns": ["src/auth.rs"]}));
    assert_eq!(nobody["error"]["code"], "AGENT_NOT_REGISTERED", "{nobody:#}");
    telling.recover(&nobody);
    telling.request(green, "look", json!({"what": ["status"]}));
}

#[test]
fn a_story_through_tools_is_the_same_as_on_the_command_line() {
    let typed = Bus::new();
    let mut first = Telling::new(&typed, CommandLine(&typed), None);
    tell(&mut first);
    let typed = history(&typed);
    assert!(typed.len() > 30, "the story is too short: {}", typed.len());
    for revision in [CURRENT, BEFORE] {
        let called = Bus::new();
        is_the_same(&first, &typed, &called, revision, || Client::over_pipe(&called, revision));
        let called = Bus::new();
        std::fs::create_dir_all(called.home()).unwrap();
        let server = Server::of_the_project(&called);
        is_the_same(&first, &typed, &called, revision, || Client::over_http(&server, revision));
    }
}

fn is_the_same(first: &Telling<'_>, typed: &[Value], called: &Bus, revision: &str, connect: impl Fn() -> Client) {
    let tools = Tools { connect: Box::new(connect), clients: HashMap::new() };
    let mut second = Telling::new(called, tools, Some(first.lengths.clone()));
    tell(&mut second);
    for (typed, called) in first.answers.iter().zip(&second.answers) {
        assert_eq!(typed, called, "{revision}");
    }
    let called = history(called);
    for (typed, called) in typed.iter().zip(&called) {
        assert_eq!(typed, called, "{revision}");
    }
    assert_eq!(typed.len(), called.len(), "{revision}");
}
