//! Gemini CLI.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Program, TASK, call, scenes};
use crate::bus::Bus;
use crate::outside;

const GEMINI: Program = Program { word: "gemini", prepare, command, resume, edit, shell, tool };

fn prepare(bus: &Bus) {
    let home = bus.path("user/.gemini");
    fs::create_dir(&home).unwrap();
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    fs::write(home.join("settings.json"), settings.to_string()).unwrap();
    fs::write(home.join("trustedFolders.json"), json!({bus.key(): "TRUST_FOLDER"}).to_string()).unwrap();
}

fn command(bus: &Bus) -> Command {
    let mut command = outside::gemini(bus);
    command.env("GOOGLE_GEMINI_BASE_URL", outside::MODEL).env("GEMINI_API_KEY", "none");
    command.args(["-p", TASK, "--approval-mode", "yolo", "-m", "gemini-2.5-pro"]);
    command
}

fn resume(bus: &Bus) -> Command {
    let mut command = command(bus);
    command.args(["-r", "latest"]);
    command
}

fn edit(path: &Path) -> Vec<Value> {
    vec![call("write_file", json!({"file_path": path, "content": "mine\n"}))]
}

fn shell(command: &str) -> Value {
    call("run_shell_command", json!({"command": command, "description": "a command"}))
}

fn tool(name: &str, arguments: Value) -> Value {
    call(&format!("mcp_relay_{name}"), arguments)
}

#[test]
fn gemini_cli_has_claims_on_what_it_changes() {
    scenes::claims_what_it_changes(&GEMINI);
}

#[test]
fn gemini_cli_is_told_what_it_should_know_and_speaks_as_one() {
    scenes::is_told_and_speaks(&GEMINI);
}

#[test]
fn gemini_cli_does_not_write_what_is_denied() {
    scenes::is_denied(&GEMINI);
}

#[test]
fn gemini_cli_works_without_relay() {
    scenes::works_without_relay(&GEMINI);
}
