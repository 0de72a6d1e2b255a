//! Claude Code.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Program, TASK, call, scenes};
use crate::bus::Bus;
use crate::outside;

const CLAUDE: Program = Program { word: "claude", prepare, command, resume, edit, shell, tool };

fn prepare(bus: &Bus) {
    let trust = json!({"hasCompletedOnboarding": true, "projects": {bus.key(): {"hasTrustDialogAccepted": true}}});
    fs::write(bus.path("user/.claude.json"), trust.to_string()).unwrap();
}

fn command(bus: &Bus) -> Command {
    let mut command = outside::claude(bus);
    command.env("ANTHROPIC_BASE_URL", outside::MODEL).env("ANTHROPIC_API_KEY", "none");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.args(["-p", TASK, "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Agent,mcp__relay"]);
    command
}

fn resume(bus: &Bus) -> Command {
    let mut command = command(bus);
    command.arg("--continue");
    command
}

/// It writes over nothing that it has not read.
fn edit(path: &Path) -> Vec<Value> {
    let read = call("Read", json!({"file_path": path}));
    vec![read, call("Write", json!({"file_path": path, "content": "mine\n"}))]
}

fn shell(command: &str) -> Value {
    call("Bash", json!({"command": command}))
}

fn tool(name: &str, arguments: Value) -> Value {
    call(&format!("mcp__relay__{name}"), arguments)
}

#[test]
fn claude_code_has_claims_on_what_it_changes() {
    scenes::claims_what_it_changes(&CLAUDE);
}

#[test]
fn claude_code_is_told_what_it_should_know_and_speaks_as_one() {
    scenes::is_told_and_speaks(&CLAUDE);
}

#[test]
fn claude_code_does_not_write_what_is_denied() {
    scenes::is_denied(&CLAUDE);
}

#[test]
fn claude_code_goes_on_as_the_agent_that_it_was() {
    scenes::resumes(&CLAUDE);
}

#[test]
fn claude_codes_subagents_are_children() {
    scenes::has_children(&CLAUDE, |task| {
        let kind = "general-purpose";
        call("Agent", json!({"description": "b", "prompt": task, "subagent_type": kind, "run_in_background": false}))
    });
}

#[test]
fn claude_code_works_without_relay() {
    scenes::works_without_relay(&CLAUDE);
}
