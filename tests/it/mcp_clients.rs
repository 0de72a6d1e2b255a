//! Clients that others wrote, over both transports: what agents really come with. Each script in `tests/clients` walks through
//! what relay offers and prints what it saw; all of them see the same.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};
use crate::listening::Server;
use crate::mcp::{BEFORE, CURRENT};
use crate::outside;

const TOOLS: [&str; 10] = ["start", "prepare", "reserve", "release", "send", "poll", "ack", "link", "look", "recover"];

/// How a client reaches the server.
enum Way {
    Http,
    Pipe,
}

/// Walks through relay with a client, which comes to speak this revision.
#[track_caller]
fn walk(way: &Way, revision: &str, client: impl FnOnce(&Bus) -> Command) {
    let bus = Bus::new();
    let mut client = client(&bus);
    let server = matches!(way, Way::Http).then(|| Server::of_the_project(&bus));
    match &server {
        Some(server) => client.args(["http", &server.mcp(), &server.token]),
        None => client.args(["stdio", RELAY, &bus.key()]),
    };
    let run = run(client).success();
    let expected = json!({
        "tools": TOOLS,
        "updated": "relay://inbox/RedForest",
        "mail": [{"from": "BlueLake", "subject": "Login", "body": "Is it *you*?"}],
        "acked": [true],
        "refused": [true, "RECIPIENT_NOT_FOUND"],
        "agents": ["BlueLake", "RedForest"],
        "prompt": "Begin work on bd-1",
        "template": "relay://inbox/{agent}{?project}",
        "completed": ["RedForest"],
        "server": "relay",
        "revision": revision,
    });
    assert_eq!(run.json(), expected);
}

fn python(bus: &Bus) -> Command {
    let mut command = outside::python(bus);
    command.arg(outside::scripts().join("client.py"));
    command
}

/// The script comes through the standard input: what it imports is looked for where it runs.
fn typescript(which: &str) -> impl FnOnce(&Bus) -> Command {
    move |bus| {
        let mut command = outside::node(bus);
        command.args(["--input-type=module", "-", which]);
        command.stdin(File::open(outside::scripts().join("client.mjs")).unwrap());
        command
    }
}

#[test]
fn the_python_client_walks_over_http() {
    walk(&Way::Http, CURRENT, python);
}

#[test]
fn the_python_client_walks_over_a_pipe() {
    walk(&Way::Pipe, CURRENT, python);
}

#[test]
fn the_typescript_client_walks_over_http_in_the_revision_before() {
    walk(&Way::Http, BEFORE, typescript("client"));
}

#[test]
fn the_typescript_client_walks_over_http_in_the_current_revision() {
    walk(&Way::Http, CURRENT, typescript("client-auto"));
}

#[test]
fn the_typescript_client_walks_over_a_pipe_in_the_current_revision() {
    walk(&Way::Pipe, CURRENT, typescript("client-auto"));
}

#[test]
fn the_first_typescript_sdk_walks_over_a_pipe() {
    walk(&Way::Pipe, BEFORE, typescript("sdk"));
}

/// The names of the tools that the inspector is shown. It finds nothing in their schemas that some client cannot take.
fn inspected(bus: &Bus, target: &[&str]) -> Vec<String> {
    let mut inspector = outside::node(bus);
    inspector.arg("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js");
    inspector.args(["--cli", "--method", "tools/list", "--strict"]).args(target);
    let run = run(inspector).success();
    let list: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|fault| panic!("{fault}: {}", run.stdout));
    list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_inspector_lists_the_tools_over_both_transports() {
    let bus = Bus::new();
    let server = Server::of_the_project(&bus);
    let authorization = format!("Authorization: Bearer {}", server.token);
    assert_eq!(
        inspected(&bus, &["--transport", "http", "--header", &authorization, "--server-url", &server.mcp()]),
        TOOLS
    );
    assert_eq!(inspected(&bus, &["--cwd", &bus.key(), "--transport", "stdio", RELAY, "mcp"]), TOOLS);
}

/// What a harness says about the servers that its settings name, where it reaches nothing but this machine.
fn asked(server: &Server<'_>, mut command: Command, home: &Path) -> Run {
    command.env("HOME", home).env("NO_COLOR", "1");
    run(server.beside(&command)).success()
}

/// Whether the line about a server says that it is connected.
#[track_caller]
fn is_connected(run: &Run, name: &str) -> bool {
    let said = format!("{}{}", run.stdout, run.stderr);
    let line = said.lines().find(|line| line.contains(&format!("{name}: ")));
    let line = line.unwrap_or_else(|| panic!("nothing is said about {name}: {said}"));
    line.contains("Connected")
}

#[test]
fn claude_code_connects_over_both_transports() {
    let bus = Bus::new();
    let server = Server::apart(&bus);
    let home = bus.path("claude");
    std::fs::create_dir(&home).unwrap();
    let authorization = format!("Bearer {}", server.token);
    let settings = json!({"mcpServers": {
        "relay-pipe": {"type": "stdio", "command": RELAY, "args": ["mcp"]},
        "relay-http": {"type": "http", "url": server.mcp(), "headers": {"Authorization": authorization}},
        "stranger": {"type": "http", "url": server.mcp(), "headers": {"Authorization": "Bearer nobody"}},
        "broken": {"type": "stdio", "command": "false", "args": []},
    }});
    std::fs::write(home.join(".claude.json"), settings.to_string()).unwrap();
    let mut claude = outside::claude(&bus);
    claude.args(["mcp", "list"]);
    let run = asked(&server, claude, &home);
    for (name, connects) in [("relay-pipe", true), ("relay-http", true), ("stranger", false), ("broken", false)] {
        assert_eq!(is_connected(&run, name), connects, "{name}: {}", run.stdout);
    }
}

#[test]
fn gemini_cli_connects_over_both_transports() {
    let bus = Bus::new();
    let server = Server::apart(&bus);
    let home = bus.path("gemini");
    let folder = home.join(".gemini");
    std::fs::create_dir_all(&folder).unwrap();
    let authorization = format!("Bearer {}", server.token);
    // It gives a server only what its settings name.
    let environment = json!({"RELAY_HOME": bus.home(), "RELAY_DRAIN": "later"});
    let settings = json!({"mcpServers": {
        "relay-pipe": {"command": RELAY, "args": ["mcp"], "env": environment},
        "relay-http": {"httpUrl": server.mcp(), "headers": {"Authorization": authorization}},
        "broken": {"command": "false"},
    }});
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    std::fs::write(folder.join("trustedFolders.json"), json!({bus.key(): "TRUST_FOLDER"}).to_string()).unwrap();
    let mut gemini = outside::gemini(&bus);
    gemini.args(["mcp", "list"]).current_dir(bus.repo());
    let run = asked(&server, gemini, &home);
    for (name, connects) in [("relay-pipe", true), ("relay-http", true), ("broken", false)] {
        assert_eq!(is_connected(&run, name), connects, "{name}: {}", run.stdout);
    }
}
