//! OpenCode.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Program, TASK, call, scenes};
use crate::bus::Bus;
use crate::outside;

const OPENCODE: Program = Program { word: "opencode", prepare, command, resume, edit, shell, tool };

fn prepare(bus: &Bus) {
    let home = bus.path("user/.config/opencode");
    fs::create_dir_all(&home).unwrap();
    let options = json!({"baseURL": format!("{}/v1", outside::MODEL), "apiKey": "none"});
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"script": {}}});
    let settings = json!({"model": "script/script", "small_model": "script/script", "provider": {"script": provider}});
    fs::write(home.join("opencode.json"), settings.to_string()).unwrap();
    // It asks for packages when it starts; that there are none is known at once.
    fs::write(bus.path("user/.npmrc"), "fetch-retries=0\n").unwrap();
}

fn command(bus: &Bus) -> Command {
    let mut command = outside::opencode(bus);
    command.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
    command.args(["run", TASK]);
    command
}

fn resume(bus: &Bus) -> Command {
    let mut command = command(bus);
    command.arg("--continue");
    command
}

/// It writes over nothing that it has not read.
fn edit(path: &Path) -> Vec<Value> {
    let read = call("read", json!({"filePath": path}));
    vec![read, call("write", json!({"filePath": path, "content": "mine\n"}))]
}

fn shell(command: &str) -> Value {
    call("bash", json!({"command": command}))
}

fn tool(name: &str, arguments: Value) -> Value {
    call(&format!("relay_{name}"), arguments)
}

#[test]
fn opencode_has_claims_on_what_it_changes() {
    scenes::claims_what_it_changes(&OPENCODE);
}

#[test]
fn opencode_is_told_what_it_should_know_and_speaks_as_one() {
    scenes::is_told_and_speaks(&OPENCODE);
}

#[test]
fn opencode_does_not_write_what_is_denied() {
    scenes::is_denied(&OPENCODE);
}

#[test]
fn opencode_goes_on_as_the_agent_that_it_was() {
    scenes::resumes(&OPENCODE);
}

#[test]
fn opencodes_subagents_are_children() {
    scenes::has_children(&OPENCODE, |task| {
        call("task", json!({"description": "b", "prompt": task, "subagent_type": "general"}))
    });
}
