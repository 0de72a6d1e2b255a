//! OpenCode runs no command of relay's: its plugin does. So the plugin that is installed is loaded by node, and called as OpenCode
//! calls it.

use serde_json::{Value, json};

use super::Time;
use super::fire::{Firing, Shot, may_run};
use super::stage::{HOLDER, Stage};
use super::synthetic::FILE;
use crate::environment::on_the_path;
use crate::init::{self, Installed, Place};
use crate::process;

const PLUGIN: &str = ".opencode/plugins/relay.js";

/// Calls the plugin with a prompt and an edit, and tells what became of both.
const CALLER: &str = r#"
import { Relay } from "./plugin.mjs";
const { directory, file } = JSON.parse(process.argv[2]);
const client = { session: { get: async () => ({ data: {} }), promptAsync: async () => ({}) } };
const hooks = await Relay({ client, directory });
const sessionID = "ses_relay_doctor_try";
const output = { parts: [{ type: "text", text: "" }] };
await hooks["chat.message"]({ sessionID }, output);
const call = { tool: "write", sessionID, callID: "call_1" };
const denied = await hooks["tool.execute.before"](call, { args: { filePath: file, content: "x" } }).then(
  () => null,
  (fault) => fault.message,
);
console.log(JSON.stringify({ told: output.parts[0].text, denied }));
"#;

pub fn fire(installed: &Installed, here: &Place, stage: &Stage, time: Time<'_>) -> Shot {
    let shot = |fired, why: String| Shot { fired, why };
    // What is missing is said elsewhere.
    let text =
        installed.files.iter().find(|file| file.path == PLUGIN).map(|file| file.text.as_str()).unwrap_or_default();
    let Some(program) = program(text) else { return shot(Firing::NotFired, String::new()) };
    if let Err(shot) = may_run(&program, is_plain(text, &program), "plugin", here) {
        return shot;
    }
    let Some(node) = on_the_path("node") else {
        return shot(Firing::Unproven, "its plugin was not tried: there is no node to load it with".to_owned());
    };
    let written = [("plugin.mjs", text), ("caller.mjs", CALLER)]
        .iter()
        .try_for_each(|(name, text)| std::fs::write(stage.folder().join(name), text));
    let root = &installed.place.root;
    let told = json!({"directory": root.to_string_lossy(), "file": root.join(FILE).to_string_lossy()});
    let mut command = process::new(node);
    command.arg(stage.folder().join("caller.mjs")).arg(told.to_string());
    match written.and_then(|()| stage.run(&mut command, "", time)) {
        Ok(Some(output)) => judge(&output.stdout, &output.stderr),
        Ok(None) => shot(Firing::TimedOut, "its plugin gives no answer in time".to_owned()),
        Err(fault) => shot(Firing::Unproven, format!("its plugin was not tried: {fault}")),
    }
}

/// The program that the plugin calls, which `init` writes into one line of it.
fn program(plugin: &str) -> Option<String> {
    let line = plugin.lines().find_map(|line| line.strip_prefix("const RELAY = "))?;
    serde_json::from_str(line.trim_end().trim_end_matches(';')).ok()
}

/// Whether there is nothing in it that this relay would not have written, but for what its last line says of the rest.
fn is_plain(plugin: &str, program: &str) -> bool {
    let plugin = plugin.replace("\r\n", "\n");
    let last = plugin.strip_prefix(&init::plugin_for(program)).and_then(|last| last.strip_prefix("// "));
    last.is_some_and(|last| {
        last.trim_end_matches('\n').chars().all(|letter| letter == ' ' || letter.is_ascii_graphic())
    })
}

fn judge(stdout: &[u8], stderr: &[u8]) -> Shot {
    let shot = |fired, why: String| Shot { fired, why };
    let Ok(said) = serde_json::from_slice::<Value>(stdout) else {
        let fault = String::from_utf8_lossy(stderr);
        let line = fault.lines().find(|line| line.contains("Error")).unwrap_or("it says nothing").trim();
        return shot(Firing::Wrong, format!("its plugin cannot be loaded: {line}"));
    };
    let is_told = said["told"].as_str().is_some_and(|text| !text.is_empty());
    let is_denied = said["denied"].as_str().is_some_and(|text| text.contains(HOLDER));
    match (is_told, is_denied) {
        (true, true) => shot(Firing::Answered, String::new()),
        (_, false) => shot(Firing::NoAnswer, "its plugin lets an edit run that it should hold back".to_owned()),
        (false, true) => shot(Firing::NoAnswer, "its plugin tells nothing with a prompt".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plugin_of_this_relay_is_loaded_whatever_relay_it_calls() {
        let text = format!("{}// written by relay\n", init::plugin_for("/opt/a \"b\"/relay"));
        let program = program(&text).unwrap_or_default();
        assert_eq!(program, "/opt/a \"b\"/relay");
        assert!(is_plain(&text, &program) && is_plain(&text.replace('\n', "\r\n"), &program));
        for other in [
            format!("first();\n{text}"),
            format!("{text}last();\n"),
            text.replace("// written", "last(); // written"),
            text.replace("by relay", "by\u{2028}last()"),
            text.replace("by relay", "by\rlast()"),
            text.replace("SECONDS = 10", "SECONDS = 11"),
        ] {
            assert!(other != text && !is_plain(&other, &program), "{other}");
        }
    }
}
