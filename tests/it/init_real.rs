//! What `relay init` writes, read by the programs that it is written for, in a network of their own in which there is nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};
use crate::outside;

/// A project that was set up for one agent, and a home for that agent.
pub fn prepared(agent: &str) -> (Bus, PathBuf) {
    let bus = Bus::new();
    bus.relay("", ["init", "--only", agent]).success();
    let home = bus.path("user");
    fs::create_dir(&home).unwrap();
    (bus, home)
}

fn asked(bus: &Bus, mut command: Command, args: &[&str]) -> Run {
    command.args(args);
    run(outside::alone(bus, &command)).success()
}

fn said(run: &Run) -> String {
    format!("{}{}", run.stdout, run.stderr)
}

#[test]
fn claude_code_takes_the_server_and_the_hooks() {
    let (bus, home) = prepared("claude");
    let trust = json!({"projects": {bus.key(): {"hasTrustDialogAccepted": true}}});
    fs::write(home.join(".claude.json"), trust.to_string()).unwrap();
    let asked_of = |args: &[&str]| said(&asked(&bus, outside::claude(&bus), args));
    let listed = asked_of(&["mcp", "list"]);
    assert!(listed.contains("relay: ") && listed.contains("Pending approval"), "{listed}");
    let approval = bus.repo().join(".claude/settings.local.json");
    fs::write(&approval, json!({"enabledMcpjsonServers": ["relay"]}).to_string()).unwrap();
    let one = asked_of(&["mcp", "get", "relay"]);
    assert!(one.contains("Connected") && one.contains("Args: mcp"), "{one}");
    let sound = asked_of(&["doctor"]);
    assert!(!sound.contains("Invalid settings") && sound.contains("No installation issues found"), "{sound}");
    // It would say so.
    fs::write(&approval, json!({"hooks": {"NoSuchEvent": []}}).to_string()).unwrap();
    let unsound = asked_of(&["doctor"]);
    assert!(unsound.contains("NoSuchEvent"), "{unsound}");
}

#[test]
fn gemini_cli_takes_the_server_and_reads_its_settings() {
    let (bus, home) = prepared("gemini");
    fs::create_dir(home.join(".gemini")).unwrap();
    fs::write(home.join(".gemini/trustedFolders.json"), json!({bus.key(): "TRUST_FOLDER"}).to_string()).unwrap();
    let listed = said(&asked(&bus, outside::gemini(&bus), &["mcp", "list"]));
    let line = listed.lines().find(|line| line.contains("relay: ")).unwrap_or_else(|| panic!("{listed}"));
    assert!(line.contains("Connected"), "{listed}");
    assert!(!listed.contains("Invalid"), "{listed}");
    let skills = said(&asked(&bus, outside::gemini(&bus), &["skills", "list"]));
    assert!(skills.contains("relay"), "{skills}");
}

#[test]
fn codex_takes_the_server_and_the_hooks() {
    let (bus, home) = prepared("codex");
    fs::create_dir(home.join(".codex")).unwrap();
    let trust = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", bus.key());
    fs::write(home.join(".codex/config.toml"), trust).unwrap();
    let one = asked(&bus, outside::codex(&bus), &["mcp", "get", "relay"]).stdout;
    assert!(one.contains("enabled: true") && one.contains("args: mcp"), "{one}");
    let told = outside::codex_told(&bus, "hooks/list", &json!({"cwds": [bus.key()]}));
    let here = &told["data"][0];
    assert_eq!((&here["errors"], &here["warnings"]), (&json!([]), &json!([])), "{told:#}");
    let hooks = here["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 8, "{told:#}");
    let line = format!("{} hook", fs::canonicalize(RELAY).unwrap().display());
    assert!(hooks.iter().all(|hook| hook["command"] == line.as_str() && hook["enabled"] == true), "{told:#}");
}

#[test]
fn in_the_sandbox_of_codex_relay_writes_to_the_projects_store_and_nowhere_else() {
    let bus = Bus::beside_the_build();
    bus.relay("", ["init", "--only", "codex"]).success();
    fs::create_dir_all(bus.path("user/.codex")).unwrap();
    let trust = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", bus.key());
    fs::write(bus.path("user/.codex/config.toml"), trust).unwrap();
    let inside = |home: &Path, words: &[&str]| {
        let mut command = outside::codex(&bus);
        // The build may lie where everybody may write.
        let closed =
            ["sandbox_workspace_write.exclude_slash_tmp=true", "sandbox_workspace_write.exclude_tmpdir_env_var=true"];
        command.args(["sandbox", "-c", "sandbox_mode=\"workspace-write\"", "-c", closed[0], "-c", closed[1]]);
        command.arg("--").args(words);
        command.env("RELAY_HOME", home);
        run(outside::alone(&bus, &command))
    };
    let start = [RELAY, "start", "--json"];
    inside(&bus.home(), &start).success();
    inside(&bus.path("elsewhere"), &start).fails("STORE_READONLY");
    let config = bus.home().join("config.toml");
    assert_ne!(inside(&bus.home(), &["touch", config.to_str().unwrap()]).status, 0);
    assert!(!config.exists(), "what hooks and the guard do is not for a sandbox to say");
}

#[test]
fn opencode_takes_the_server_the_plugin_and_the_skill() {
    let (bus, _home) = prepared("opencode");
    let opencode = || {
        let mut command = outside::opencode(&bus);
        // It would look for packages again and again where there is no network.
        command.env("npm_config_fetch_retries", "0").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
        command
    };
    let listed = said(&asked(&bus, opencode(), &["mcp", "list"]));
    assert!(listed.contains("✓ relay") && listed.contains("connected"), "{listed}");
    let config: Value = serde_json::from_str(&asked(&bus, opencode(), &["debug", "config"]).stdout).unwrap();
    let plugin = format!("file://{}/.opencode/plugins/relay.js", bus.key());
    assert_eq!((&config["plugin"], &config["mcp"]["relay"]["type"]), (&json!([plugin]), &json!("local")), "{config:#}");
    let skills: Value = serde_json::from_str(&asked(&bus, opencode(), &["debug", "skill"]).stdout).unwrap();
    assert!(skills.as_array().unwrap().iter().any(|skill| skill["name"] == "relay"), "{skills:#}");
}

/// What the plugin does with an answer of relay's, or of whatever stands where relay should be, in a session that another
/// may have started.
fn plugged(answer: &str, parent: &[&str]) -> Value {
    let bus = Bus::new();
    bus.relay("", ["init", "--only", "opencode"]).success();
    let stand_in = bus.path("relay");
    fs::write(
        &stand_in,
        format!("#!/bin/sh\ncat > {0}\necho \"$*\" >> {0}.by\n{answer}\n", bus.path("asked").display()),
    )
    .unwrap();
    fs::set_permissions(&stand_in, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let plugin = fs::read_to_string(bus.repo().join(".opencode/plugins/relay.js")).unwrap();
    let relay = fs::canonicalize(RELAY).unwrap();
    fs::write(bus.path("plugin.mjs"), plugin.replace(relay.to_str().unwrap(), stand_in.to_str().unwrap())).unwrap();
    let script = r#"
        import { Relay } from "./plugin.mjs";
        const prompts = [];
        let prompted;
        const woken = new Promise((resolve) => (prompted = resolve));
        const client = {
            session: {
                get: async ({ path }) => ({ data: { id: path.id, parentID: process.argv[3] } }),
                promptAsync: async (prompt) => { prompts.push(prompt); prompted(); },
            },
        };
        const hooks = await Relay({ client, directory: process.cwd() });
        const call = { tool: "edit", sessionID: "ses_1", callID: "call_1" };
        let denied = null;
        await hooks["tool.execute.before"](call, { args: { filePath: "/x" } }).catch((fault) => (denied = fault.message));
        const output = { output: "done" };
        await hooks["tool.execute.after"]({ ...call, args: { filePath: "/x" } }, output);
        const parts = [{ type: "text", text: "hello" }];
        await hooks["chat.message"]({ sessionID: "ses_1", model: { providerID: "p", modelID: "m" } }, { parts });
        await hooks.event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } });
        if (process.argv[2] === "wakes") await woken;
        const shell = { env: {} };
        await hooks["shell.env"]({ cwd: "/", sessionID: "ses_1" }, shell);
        console.log(JSON.stringify({ denied, output: output.output, text: parts[0].text, prompts, ...shell.env }));
    "#;
    fs::write(bus.path("drive.mjs"), script).unwrap();
    let mut node = outside::node(&bus);
    node.arg(bus.path("drive.mjs")).current_dir(bus.path(""));
    // It ends when everything that it started has ended.
    node.arg(if answer.contains("prompt") && parent.is_empty() { "wakes" } else { "rests" }).args(parent);
    let mut done = run(node).success().json();
    assert_eq!(done["RELAY_SESSION"], *parent.first().unwrap_or(&"ses_1"), "a subagent speaks as its parent");
    done["calls"] = fs::read_to_string(bus.path("asked.by")).unwrap_or_default().lines().collect();
    done["asked"] =
        serde_json::from_str(&fs::read_to_string(bus.path("asked")).unwrap_or_default()).unwrap_or_default();
    done
}

#[test]
fn the_plugin_applies_what_relay_answers() {
    let context = plugged(r#"echo '{"context":"mail"}'"#, &[]);
    assert_eq!((&context["denied"], &context["output"]), (&Value::Null, &json!("done\n\nmail")));
    assert_eq!(context["text"], "hello\n\nmail");
    let deny = plugged(r#"echo '{"deny":"held by BlueLake"}'"#, &[]);
    assert_eq!(deny["denied"], "held by BlueLake");
    let prompt = plugged(r#"echo '{"prompt":"you have mail"}'"#, &[]);
    let body = json!([{"path": {"id": "ses_1"}, "body": {"parts": [{"type": "text", "text": "you have mail"}]}}]);
    assert_eq!(prompt["prompts"], body);
    let asked = &prompt["asked"];
    assert_eq!(
        (&asked["relay_plugin"], &asked["version"], &asked["session_id"]),
        (&json!("opencode"), &json!(1), &json!("ses_1"))
    );
    assert_eq!((&asked["hook_event_name"], &asked["model"]), (&json!("session.idle"), &json!("p/m")));
}

#[test]
fn the_plugin_waits_for_something_to_wake_an_idle_session_with_but_no_subagents() {
    let later = r#"case "$*" in *--idle*) echo '{"prompt":"later"}';; *) echo '{}';; esac"#;
    let main = plugged(later, &[]);
    assert_eq!(main["prompts"][0]["body"]["parts"][0]["text"], "later", "{main}");
    let child = plugged(later, &["ses_0"]);
    assert_eq!((&child["prompts"], &child["asked"]["parent_session_id"]), (&json!([]), &json!("ses_0")), "{child}");
    assert!(!child["calls"].as_array().unwrap().iter().any(|call| call == "hook --idle"), "{child}");
}

#[test]
fn the_plugin_is_never_in_the_way() {
    for broken in ["echo nonsense", "exit 2", "echo '[1]'; exit 1", "kill -9 $$", "echo null", ""] {
        let done = plugged(broken, &[]);
        let expected = json!({"denied": null, "output": "done", "text": "hello", "prompts": []});
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(done[name], *value, "{broken}: {done}");
        }
    }
}
