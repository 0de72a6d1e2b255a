//! Codex.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use super::{Program, TASK, call, scenes};
use crate::bus::Bus;
use crate::outside;

const CODEX: Program = Program { word: "codex", prepare, command, resume, edit, shell, tool };

fn prepare(bus: &Bus) {
    fs::create_dir(bus.path("user/.codex")).unwrap();
    let config = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"script\"\n\n[model_providers.script]\nname = \"script\"\nbase_url = \"{}/v1\"\n\
         wire_api = \"responses\"\nsupports_websockets = false\nrequest_max_retries = 0\n\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        outside::MODEL,
        bus.key()
    );
    fs::write(bus.path("user/.codex/config.toml"), config).unwrap();
    trust_hooks(bus);
}

/// Trusts the hooks as its own list of them does when the user chooses it.
fn trust_hooks(bus: &Bus) {
    let listed = outside::codex_told(bus, "hooks/list", &json!({"cwds": [bus.key()]}));
    let hooks = listed["data"][0]["hooks"].as_array().unwrap();
    let trusted =
        |hook: &Value| (hook["key"].as_str().unwrap().to_owned(), json!({"trusted_hash": hook["currentHash"]}));
    let trusted: Map<String, Value> = hooks.iter().map(trusted).collect();
    assert!(!trusted.is_empty(), "{listed}");
    let edit = json!({"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": trusted});
    outside::codex_told(bus, "config/batchWrite", &json!({"edits": [edit], "reloadUserConfig": true}));
}

fn exec(bus: &Bus) -> Command {
    let mut command = outside::codex(bus);
    command.args(["exec", "--sandbox", "workspace-write"]);
    // It gives a server nothing of its own environment that is not named.
    command.args(["-c", "mcp_servers.relay.env_vars=[\"RELAY_DRAIN\"]"]);
    command
}

fn command(bus: &Bus) -> Command {
    let mut command = exec(bus);
    command.arg(TASK);
    command
}

fn resume(bus: &Bus) -> Command {
    let mut command = exec(bus);
    command.args(["resume", "--last", TASK]);
    command
}

fn edit(path: &Path) -> Vec<Value> {
    let patch = format!("*** Begin Patch\n*** Update File: {}\n@@\n-line\n+mine\n*** End Patch", path.display());
    vec![call("apply_patch", patch)]
}

fn shell(command: &str) -> Value {
    call("exec_command", json!({"cmd": command}))
}

fn tool(name: &str, arguments: Value) -> Value {
    call(&format!("mcp__relay.{name}"), arguments)
}

#[test]
fn codex_has_claims_on_what_it_changes() {
    scenes::claims_what_it_changes(&CODEX);
}

#[test]
fn codex_is_told_what_it_should_know_and_speaks_as_one() {
    scenes::is_told_and_speaks(&CODEX);
}

#[test]
fn codex_does_not_write_what_is_denied() {
    scenes::is_denied(&CODEX);
}

#[test]
fn codex_goes_on_as_the_agent_that_it_was() {
    scenes::resumes(&CODEX);
}

#[test]
fn codex_works_without_relay() {
    scenes::works_without_relay(&CODEX);
}
