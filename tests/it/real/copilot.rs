//! Copilot CLI.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Program, TASK, call, scenes};
use crate::bus::Bus;
use crate::outside;

const COPILOT: Program = Program { word: "copilot", prepare, command, resume, edit, shell, tool };

fn prepare(bus: &Bus) {
    let home = bus.path("user/.copilot");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("config.json"), json!({"trustedFolders": [bus.key()]}).to_string()).unwrap();
}

fn command(bus: &Bus) -> Command {
    let mut command = outside::copilot(bus);
    command.env("COPILOT_OFFLINE", "true").env("COPILOT_AUTO_UPDATE", "false");
    command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", outside::MODEL));
    command.env("COPILOT_PROVIDER_API_KEY", "none").env("COPILOT_MODEL", "claude-sonnet-5");
    command.args(["-p", TASK, "--allow-all"]);
    command
}

fn resume(bus: &Bus) -> Command {
    let mut command = command(bus);
    command.arg("--continue");
    command
}

fn edit(path: &Path) -> Vec<Value> {
    vec![call("edit", json!({"path": path, "old_str": "line", "new_str": "mine"}))]
}

fn shell(command: &str) -> Value {
    call("bash", json!({"command": command, "description": "a command"}))
}

fn tool(name: &str, arguments: Value) -> Value {
    call(&format!("relay-{name}"), arguments)
}

#[test]
fn copilot_cli_has_claims_on_what_it_changes() {
    scenes::claims_what_it_changes(&COPILOT);
}

#[test]
fn copilot_cli_is_told_what_it_should_know_and_speaks_as_one() {
    scenes::is_told_and_speaks(&COPILOT);
}

#[test]
fn copilot_cli_does_not_write_what_is_denied() {
    scenes::is_denied(&COPILOT);
}

#[test]
fn copilot_cli_goes_on_as_the_agent_that_it_was() {
    scenes::resumes(&COPILOT);
}

#[test]
fn copilot_clis_subagents_are_children() {
    scenes::has_children(&COPILOT, |task| {
        let kind = "general-purpose";
        call("task", json!({"description": "b", "prompt": task, "agent_type": kind, "name": "b", "mode": "sync"}))
    });
}

#[test]
fn copilot_cli_works_without_relay() {
    scenes::works_without_relay(&COPILOT);
}
