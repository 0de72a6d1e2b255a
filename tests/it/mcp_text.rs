//! What a model reads where its client shows it the text alone: what to do next as calls of tools, word for word those of the
//! structured answer. Whoever has a shell is told commands.

use serde_json::{Value, json};

use crate::bus::{Bus, letter, run};
use crate::listening::Server;
use crate::mcp::{BEFORE, CURRENT, Client};
use crate::terminal::text;

/// Both halves of a tool's answer.
fn call(client: &mut Client, tool: &str, arguments: &Value) -> (String, Value) {
    let result = client.ask("tools/call", json!({"name": tool, "arguments": arguments}));
    let result: Value = serde_json::from_str(&result).unwrap();
    (text(&result["content"][0]["text"]), result["structuredContent"].clone())
}

fn read(client: &mut Client, uri: &str) -> String {
    let result: Value = serde_json::from_str(&client.ask("resources/read", json!({"uri": uri}))).unwrap();
    text(&result["contents"][0]["text"])
}

/// What stands under `Next:`.
fn proposed(shown: &str) -> Vec<&str> {
    shown.lines().skip_while(|line| *line != "Next:").skip(1).map(str::trim).collect()
}

#[test]
fn what_to_do_next_is_told_as_calls_that_can_be_made() {
    for revision in [CURRENT, BEFORE] {
        let bus = Bus::with(&["RedForest"]);
        bus.relay("RedForest", ["reserve", "src/**"]).success();
        let mut client = Client::over_pipe(&bus, revision);
        let (shown, started) = call(&mut client, "start", &json!({}));
        let name = text(&started["result"]["agent"]["name"]);
        assert_eq!(started["next"][0], format!("export RELAY_AGENT={name}"), "the structure is the same everywhere");
        let expected = [format!("say agent \"{name}\" in every call"), r#"prepare {"thread":"THREAD"}"#.to_owned()];
        assert_eq!(proposed(&shown), expected, "{shown}");

        bus.relay("RedForest", ["policy", "open"]).success();
        let said = json!({"agent": name, "to": ["RedForest"], "thread": "bd-1", "subject": "s", "body": "b"});
        call(&mut client, "send", &said);
        let (shown, claimed) = call(&mut client, "reserve", &json!({"agent": name, "patterns": ["src/a.rs"]}));
        assert!(text(&claimed["next"][0]).starts_with("relay send --to RedForest"), "{claimed}");
        // It is a call: a tool that there is, with arguments that it takes.
        let (tool, arguments) = proposed(&shown)[0].split_once(' ').unwrap();
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        assert_eq!((tool, &arguments["body"], &arguments["agent"]), ("send", &json!("BODY"), &json!(name)), "{shown}");
        arguments["thread"] = json!("bd-1");
        assert_eq!(call(&mut client, tool, &arguments).1["ok"], true);
        assert!(!shown.contains("relay "), "{shown}");
    }
}

/// Each step of the text, of whatever way it came, beside the same step of the structure.
#[track_caller]
fn same_steps(shown: &str, steps: &Value) {
    let lines: Vec<&str> = shown.lines().map(str::trim).collect();
    for step in steps.as_array().unwrap().iter().filter(|step| step["tool"].is_string()) {
        let told = format!("{} {}", text(&step["tool"]), step["args"]);
        assert!(lines.contains(&told.as_str()), "{told}\n{shown}");
    }
    assert!(!lines.iter().any(|line| line.starts_with("relay ")), "{shown}");
}

#[test]
fn a_playbook_is_told_in_calls_and_in_sentences_that_name_calls() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let mut client = Client::over_pipe(&bus, CURRENT);
    let stranger = json!({"agent": "BlueLake", "to": ["RedForest"], "thread": "bd-1", "subject": "s", "body": "b", "no_recover": true});
    let (shown, failed) = call(&mut client, "send", &stranger);
    assert_eq!(failed["error"]["code"], "CONTACT_REQUIRED", "{failed}");
    same_steps(&shown, &failed["error"]["playbook"]);
    let (shown, planned) =
        call(&mut client, "recover", &json!({"agent": "BlueLake", "code": "CONTACT_REQUIRED", "dry_run": true}));
    same_steps(&shown, &planned["result"]["steps"]);
    let (shown, plan) = call(&mut client, "look", &json!({"what": ["playbook", "CONTACT_REQUIRED"]}));
    same_steps(&shown, &plan["result"]["playbook"]);
    assert_eq!(read(&mut client, "relay://playbook/CONTACT_REQUIRED"), shown);

    let nobody = json!({"agent": "BlueLake", "to": ["Nobody"], "thread": "bd-1", "subject": "s", "body": "b"});
    let (shown, _) = call(&mut client, "send", &nobody);
    assert!(shown.contains(r#"`look {"what":["agents"]}` shows who is there"#), "{shown}");
    // What only a person does, who has a shell, stays a command.
    let (shown, _) = call(&mut client, "look", &json!({"what": ["playbook", "ARCHIVE_DIVERGED"]}));
    assert!(shown.contains("in a shell: relay rebuild archive"), "{shown}");
}

#[test]
fn the_debt_is_paid_with_calls() {
    let bus = Bus::with(&["BlueLake"]);
    bus.track(&["src/a.rs"]);
    bus.relay("BlueLake", ["reserve", "**"]).success();
    let mut client = Client::over_pipe(&bus, CURRENT);
    let (shown, debt) = call(&mut client, "look", &json!({"what": ["debt"]}));
    assert!(text(&debt["result"]["debt"][0]["pay"]).starts_with("relay release"), "{debt}");
    assert!(shown.lines().any(|line| line.starts_with("  release {")) && !shown.contains("relay "), "{shown}");
    let (shown, _) = call(&mut client, "look", &json!({"what": ["status"]}));
    assert!(shown.contains(r#"`look {"what":["debt"]}`"#), "{shown}");
}

#[test]
fn whoever_has_a_shell_is_told_commands_by_a_server_too() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let typed = |agent: &str, args: &[&str]| {
        let mut command = bus.command();
        command.env("RELAY_URL", &server.url).env("RELAY_TOKEN", &server.token).args(["--agent", agent]).args(args);
        run(command)
    };
    let started = typed("BlueLake", &["start"]);
    assert!(started.stdout.contains("  relay prepare --thread THREAD"), "{started:?}");
    let refused = typed("BlueLake", &[letter("RedForest").as_slice(), &["--no-recover"]].concat());
    assert!(refused.stderr.contains("     relay link --target RedForest"), "{refused:?}");
}
