//! The ten verbs as tools for models: the same arguments as on the command line, under the same names, become the same requests.

use std::sync::LazyLock;

use relay_core::error::Code;
use relay_core::store::Result;
use relay_core::verbs::Request;
use relay_server::Effect;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Asks, ack, link, look, poll, prepare, recover, release, reserve, send, start};

/// What every tool takes beside its own arguments.
pub const COMMON: [&str; 3] = ["project", "agent", "idempotency_key"];

/// One verb as a tool.
pub struct Tool {
    pub told: relay_server::Tool,
    parse: fn(&Map<String, Value>) -> serde_json::Result<Result<Request>>,
}

/// In the order in which they are needed. What `take_over` does to another session makes `start` and `prepare` more than
/// additions, though they mostly are.
pub static TOOLS: LazyLock<[Tool; 10]> = LazyLock::new(|| {
    [
        tool::<start::Args>("start", START, Effect::Ends),
        tool::<prepare::Args>("prepare", PREPARE, Effect::Ends),
        tool::<reserve::Args>("reserve", RESERVE, Effect::Adds),
        tool::<release::Args>("release", RELEASE, Effect::Ends),
        tool::<send::Args>("send", SEND, Effect::Adds),
        tool::<poll::Args>("poll", POLL, Effect::Adds),
        tool::<ack::Args>("ack", ACK, Effect::AddsOnce),
        tool::<link::Args>("link", LINK, Effect::Ends),
        tool::<look::Args>("look", LOOK, Effect::Reads),
        tool::<recover::Args>("recover", RECOVER, Effect::Ends),
    ]
});

const START: &str = "Call this first. Registers or resumes you as an agent and returns your situation: unread mail, owed acks, claims, what to do next. Pass the returned agent name as `agent` from then on";
const PREPARE: &str = "Begin a task: joins its thread (the ticket id) and returns the digest. Starts you first where needed, so one call is enough";
const RESERVE: &str = "Claim paths before you edit them. Always granted, as a signal to others; read `conflicts` and talk to the holder. With if_free nothing is claimed where somebody holds a part";
const RELEASE: &str = "Give claims back when done (reason + done also closes the thread), narrow or renew them, or take one from a dead holder";
const SEND: &str = "Send a message to agents, into a thread or as a reply. All recipients get it or none. `human` asks the person in charge";
const POLL: &str =
    "Read your inbox; wait blocks until something arrives. Reading consumes nothing: ack what you have dealt with";
const ACK: &str = "Acknowledge messages you have dealt with; senders wait for it";
const LINK: &str = "Ask another agent for contact, or accept, block or revoke it. Only needed where send says so, or across projects (NAME@/abs/path)";
const LOOK: &str = "Look something up: who holds a path, a thread, the history, the status. Changes nothing";
const RECOVER: &str = "After an error: run its playbook and make the failed request again";

fn tool<A: Asks + DeserializeOwned + JsonSchema>(name: &'static str, about: &'static str, effect: Effect) -> Tool {
    let parse = |arguments: &Map<String, Value>| A::deserialize(arguments).map(|args| args.request());
    let schema = slim(&SchemaGenerator::default().into_root_schema_for::<A>());
    Tool { told: relay_server::Tool { name, about, effect, schema }, parse }
}

/// What a model is told of a tool's arguments: names, types, choices, and a hint where the name does not say enough. The rest of
/// what is derived is for programs, and a model pays for each byte of it in every conversation.
fn slim(schema: &Schema) -> Map<String, Value> {
    let mut properties = Map::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        properties.insert(name.clone(), slim_property(property));
    }
    for name in COMMON {
        properties.insert(name.to_owned(), json!({"type": "string"}));
    }
    let mut slim = Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), properties.into())]);
    slim.extend(schema.get("required").map(|required| ("required".to_owned(), required.clone())));
    slim
}

fn slim_property(property: &Value) -> Value {
    let mut slim = Map::new();
    // `null` says no more than leaving it out.
    let kind = property.get("type").map(|kind| match kind {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default(),
        kind => kind.clone(),
    });
    slim.extend(kind.map(|kind| ("type".to_owned(), kind)));
    slim.extend(property.get("enum").map(|choices| ("enum".to_owned(), choices.clone())));
    slim.extend(property.get("items").map(|items| ("items".to_owned(), slim_property(items))));
    slim.extend(property.get("hint").map(|hint| ("description".to_owned(), hint.clone())));
    Value::Object(slim)
}

pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.told.name == name)
}

/// The names of a tool's arguments.
pub fn takes(tool: &Tool) -> String {
    let properties = tool.told.schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The request that a call of a tool means. What a tool does not take is named, and so is what it lacks.
pub fn request(tool: &Tool, arguments: &Map<String, Value>) -> Result<Request> {
    let refuse = |text: String| Code::InputInvalid.refuse(text);
    let properties = tool.told.schema.get("properties").and_then(Value::as_object);
    let is_known = |name: &&String| properties.is_some_and(|known| known.contains_key(*name));
    if let Some(unknown) = arguments.keys().find(|name| !is_known(name)) {
        return Err(refuse(format!("{} takes no {unknown:?}; it takes {}", tool.told.name, takes(tool))));
    }
    (tool.parse)(arguments)
        .map_err(|fault| refuse(format!("{}: {}", tool.told.name, wrong(tool, arguments, &fault))))?
}

/// What is wrong with the arguments: the one without which there would be another fault, or none, is not what it should be.
fn wrong(tool: &Tool, arguments: &Map<String, Value>, fault: &serde_json::Error) -> String {
    let fault = fault.to_string();
    let is_it = |(name, _): &(&String, &Value)| {
        let mut others = arguments.clone();
        others.remove(*name);
        (tool.parse)(&others).err().is_none_or(|other| other.to_string() != fault)
    };
    let Some((name, value)) = arguments.iter().find(is_it) else { return fault };
    let property = &tool.told.schema["properties"][name];
    let kind = |of: &Value| {
        if of["type"] == "integer" {
            "a number"
        } else if of["type"] == "boolean" {
            "true or false"
        } else {
            "a text"
        }
    };
    let kind = property
        .get("items")
        .map_or_else(|| kind(property).to_owned(), |items| format!("a list, each {}", kind(items)));
    format!("{name:?} is {kind}, not {}", told(value))
}

/// What was given, as far as one line has room for it.
fn told(value: &Value) -> String {
    match value {
        Value::Array(_) => "this list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.chars().count() > 40 => "this text".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use relay_core::error::Refusal;
    use relay_core::verbs::look;

    use super::super::Cli;
    use super::*;

    fn find(name: &str) -> &'static Tool {
        super::find(name).unwrap_or_else(|| panic!("there is no tool {name}"))
    }

    fn called(name: &str, arguments: Value) -> Result<Request> {
        let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
        request(find(name), &arguments)
    }

    /// The same, typed.
    fn typed(line: &[&str]) -> Request {
        let cli = Cli::try_parse_from(line).unwrap_or_else(|fault| panic!("{fault}"));
        cli.request()
            .unwrap_or_else(|| panic!("{line:?} asks for nothing"))
            .unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    #[test]
    fn a_tool_takes_what_its_command_takes() {
        // What a person alone says, what is said in another place, and what only a terminal needs.
        const LESS: [&str; 9] =
            ["json", "body_file", "command", "yes", "oneline", "help", "version", "id of link", "parent"];
        let mut cli = Cli::command();
        cli.build();
        for Tool { told, .. } in TOOLS.iter() {
            let command = cli.find_subcommand(told.name).unwrap_or_else(|| panic!("there is no command {}", told.name));
            let name = |argument: &clap::Arg| {
                argument.get_long().map_or(argument.get_id().as_str(), |long| long).replace('-', "_")
            };
            let is_less = |name: &String| {
                LESS.contains(&name.as_str()) || LESS.contains(&format!("{name} of {}", told.name).as_str())
            };
            let mut typed: Vec<String> = command.get_arguments().map(name).filter(|name| !is_less(name)).collect();
            let mut called: Vec<String> =
                told.schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            typed.sort();
            called.sort();
            assert_eq!(called, typed, "{}", told.name);
        }
    }

    #[test]
    fn a_call_is_the_same_request_as_the_command() {
        let check = |name: &str, arguments: Value, line: &[&str]| {
            let called =
                called(name, arguments.clone()).unwrap_or_else(|refusal| panic!("{name} {arguments}: {refusal}"));
            assert_eq!(called, typed(&[&["relay", name], line].concat()), "{name} {arguments}");
        };
        check("start", json!({}), &[]);
        check(
            "start",
            json!({"program": "p", "path": ["a", "b"], "take_over": true}),
            &["--program", "p", "--path", "a", "--path", "b", "--take-over"],
        );
        check(
            "prepare",
            json!({"thread": "bd-1", "limit": 5, "task": "t"}),
            &["--thread", "bd-1", "--limit", "5", "--task", "t"],
        );
        check(
            "reserve",
            json!({"patterns": ["src/**"], "ttl": "2h", "if_free": true, "wait": "5m"}),
            &["src/**", "--ttl", "2h", "--if-free", "--wait", "5m"],
        );
        check("reserve", json!({"patterns": "src/**"}), &["src/**"]);
        check(
            "release",
            json!({"id": [7, "#8"], "force": true, "why": "w"}),
            &["--id", "7", "--id", "8", "--force", "--why", "w"],
        );
        check(
            "send",
            json!({"to": ["A1", "B1"], "body": "b", "importance": "high", "reply_to": 9}),
            &["--to", "A1,B1", "--body", "b", "--importance", "high", "--reply-to", "9"],
        );
        check(
            "poll",
            json!({"after": 7, "bodies": true, "wait": "10m", "from": "A1"}),
            &["--after", "7", "--bodies", "--wait", "10m", "--from", "A1"],
        );
        check("ack", json!({"ids": [1, 2], "read": true}), &["1", "2", "--read"]);
        check("ack", json!({"ids": 1}), &["1"]);
        check("link", json!({"target": "A1@/x", "accept": true}), &["--target", "A1@/x", "--accept"]);
        check("look", json!({"what": ["thread", "bd-1"]}), &["thread", "bd-1"]);
        check("look", json!({"what": "search login token", "limit": 3}), &["search", "login", "token", "--limit", "3"]);
        check(
            "look",
            json!({"what": ["events"], "kind": ["message_sent"], "since": "2h"}),
            &["events", "--kind", "message_sent", "--since", "2h"],
        );
        check(
            "recover",
            json!({"code": "STORE_BUSY", "set": ["a=b"], "dry_run": true}),
            &["STORE_BUSY", "--set", "a=b", "--dry-run"],
        );
    }

    #[test]
    fn a_body_is_exact_whatever_it_says() {
        for body in ["-", "--all", "", "a\nb"] {
            match called("send", json!({"to": ["A1"], "body": body})) {
                Ok(Request::Send(input)) => assert_eq!(input.body, body),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn what_is_wrong_with_a_call_is_named_in_its_class() {
        let check = |name: &str, arguments: Value, code: Code, named: &str| {
            let refusal: Refusal = called(name, arguments.clone()).expect_err(name);
            assert!(refusal.code == code && refusal.message.contains(named), "{name} {arguments}: {refusal}");
        };
        check("send", json!({"to": ["A1"], "body": "b", "attach": 1}), Code::InputInvalid, "\"attach\"");
        check("recover", json!({"code": "STORE_BUSY", "yes": true}), Code::InputInvalid, "\"yes\"");
        check("send", json!({"to": ["A1"]}), Code::InputInvalid, "body");
        check("ack", json!({}), Code::InputInvalid, "ids");
        check("ack", json!({"ids": [-1]}), Code::InputInvalid, "-1");
        check(
            "ack",
            json!({"ids": [{"n": 1}]}),
            Code::InputInvalid,
            r#"ack: "ids" is a list, each a number, not this list"#,
        );
        check("poll", json!({"bodies": "yes"}), Code::InputInvalid, r#"poll: "bodies" is true or false, not "yes""#);
        check(
            "poll",
            json!({"all": true, "read": 1, "limit": 5}),
            Code::InputInvalid,
            r#""read" is true or false, not 1"#,
        );
        check("send", json!({"to": ["A1"], "body": 7}), Code::InputInvalid, r#""body" is a text, not 7"#);
        check(
            "send",
            json!({"to": {"a": 1}, "body": "b"}),
            Code::InputInvalid,
            r#""to" is a list, each a text, not an object"#,
        );
        check(
            "prepare",
            json!({"thread": ["bd-1"], "task": "t"}),
            Code::InputInvalid,
            r#""thread" is a text, not this list"#,
        );
        check("poll", json!({"from": false}), Code::InputInvalid, r#""from" is a text, not false"#);
        check("prepare", json!({"thread": "a b"}), Code::ThreadIdInvalid, "a b");
        check("reserve", json!({"patterns": ["a"], "ttl": "soon"}), Code::InputInvalid, "soon");
    }

    #[test]
    fn what_is_slimmed_keeps_what_a_model_needs() {
        let send = &find("send").told.schema;
        assert_eq!(
            send["properties"]["to"],
            json!({"type": "array", "items": {"type": "string"}, "description": "names, @thread, @all or human"})
        );
        assert_eq!(
            send["properties"]["importance"],
            json!({"type": "string", "enum": ["low", "normal", "high", "urgent"]})
        );
        assert_eq!(send["properties"]["ack_required"], json!({"type": "boolean"}));
        assert_eq!(send["properties"]["reply_to"]["type"], "integer");
        assert_eq!(find("ack").told.schema["required"], json!(["ids"]));
        let text =
            serde_json::to_string(&TOOLS.iter().map(|tool| &tool.told.schema).collect::<Vec<_>>()).unwrap_or_default();
        for noise in ["$schema", "title", "null", "format", "minimum", "default", "$ref", "hint"] {
            assert!(!text.contains(&format!("\"{noise}\"")), "{noise} is left in {text}");
        }
    }

    #[test]
    fn a_sentence_is_words() {
        match called("look", json!({"what": "message 128"})) {
            Ok(Request::Look(look::Input { what, .. })) => assert_eq!(what, ["message", "128"]),
            other => panic!("{other:?}"),
        }
    }
}
