//! What programs were told by their users: to trust, or to leave hooks alone.

use std::fs;

use serde_json::{Value, json};

use super::{agent, command, edit, finds, look, problems, set_up, write};
use crate::bus::{Bus, run};
use crate::init::ALL;
use crate::init_real::prepared;
use crate::outside::codex_told as told;

#[test]
fn switches_that_turn_hooks_off_are_found_where_they_are() {
    let bus = set_up(ALL);
    let off = |place: &str, agent: &str, file: &str, text: &str, switch: &str| {
        let path = bus.path(place).join(file);
        let before = fs::read_to_string(&path).ok();
        match &before {
            Some(before) if file.ends_with(".json") => {
                let mut said: Value = serde_json::from_str(before).unwrap();
                let more: Value = serde_json::from_str(text).unwrap();
                said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                fs::write(&path, said.to_string()).unwrap();
            }
            Some(before) => fs::write(&path, format!("{before}\n{text}")).unwrap(),
            None => write(path.clone(), text),
        }
        let said =
            format!("runs no hooks of relay's: {switch} in {} turns them off -> take {switch} out of ", path.display());
        finds(&bus, agent, ["off", "answered"], 2, &said);
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
    };
    let all = r#"{"disableAllHooks": true}"#;
    off("", "claude", ".claude/settings.json", all, "disableAllHooks");
    off("repo", "claude", ".claude/settings.local.json", all, "disableAllHooks");
    off("repo", "claude", ".claude/settings.json", all, "disableAllHooks");
    off("", "copilot", ".copilot/settings.json", all, "disableAllHooks");
    off("repo", "copilot", ".github/copilot/settings.json", all, "disableAllHooks");
    off("", "gemini", ".gemini/settings.json", r#"{"hooksConfig": {"enabled": false}}"#, "hooksConfig.enabled");
    off(
        "repo",
        "gemini",
        ".gemini/settings.json",
        r#"{"hooksConfig": {"disabled": ["relay"]}}"#,
        "hooksConfig.disabled",
    );
    off("", "codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks");
    off("repo", "codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks");
    look(&bus).success();
}

#[test]
fn codex_trusts_what_its_own_hash_says_and_doctor_computes_the_same() {
    let (bus, home) = prepared("codex");
    let config = home.join(".codex/config.toml");
    let looked = |text: &str| {
        write(config.clone(), text);
        let mut command = command(&bus, &bus.repo(), &["doctor", "--agents"]);
        command.env("HOME", &home);
        let run = run(command);
        (run.status, agent(&run, "codex"))
    };
    let trusted = |text: &str| looked(text).1["trusted"].as_str().unwrap().to_owned();
    assert_eq!(trusted(""), "untrusted");
    let folder = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", bus.key());
    let (status, codex) = looked(&folder);
    assert_eq!((status, &codex["trusted"]), (0, &json!("untrusted")), "it waits for the user");
    assert!(problems(&codex).contains("Codex skips 8 of relay's 8 hooks until you trust them"), "{}", problems(&codex));
    let listed = |bus: &Bus| {
        told(bus, "hooks/list", &json!({"cwds": [bus.key()]}))["data"][0]["hooks"].as_array().unwrap().clone()
    };
    let state = |hook: &Value| {
        let text = |name: &str| hook[name].as_str().unwrap().to_owned();
        format!("[hooks.state.\"{}\"]\ntrusted_hash = \"{}\"\n", text("key"), text("currentHash"))
    };
    let hooks = listed(&bus);
    let all = folder.clone() + &hooks.iter().map(state).collect::<String>();
    assert_eq!(trusted(&all), "trusted");
    assert!(listed(&bus).iter().all(|hook| hook["trustStatus"] == "trusted"), "Codex says so too");
    let others = folder.clone() + &hooks[1..].iter().map(state).collect::<String>();
    assert_eq!(trusted(&others), "untrusted");
    assert_eq!(trusted(&all.replacen("sha256:", "sha256:0", 1)), "changed");
    // What the hook says is in its hash.
    edit(&bus, ".codex/hooks.json", |text| text.replacen("\"timeout\": 10", "\"timeout\": 11", 1));
    assert_eq!(trusted(&all), "changed");
    assert_eq!(listed(&bus).iter().filter(|hook| hook["trustStatus"] == "modified").count(), 1);
    let off = all.replacen("trusted_hash", "enabled = false\ntrusted_hash", 1);
    assert_eq!(looked(&off).1["registered"], "off");
}

#[test]
fn trust_is_read_from_the_files_in_which_the_programs_note_it() {
    let bus = set_up("claude,gemini,copilot");
    let (key, above) = (bus.key(), fs::canonicalize(bus.path("")).unwrap());
    let above = above.to_str().unwrap();
    let trusted = |name: &str| agent(&look(&bus).success(), name)["trusted"].as_str().unwrap().to_owned();
    let note = |file: &str, said: Value| write(bus.path(file), &said.to_string());
    note(".claude.json", json!({"projects": {above: {"hasTrustDialogAccepted": true}}}));
    assert_eq!(trusted("claude"), "untrusted");
    note(".claude.json", json!({"projects": {&key: {"hasTrustDialogAccepted": true}}}));
    assert_eq!(trusted("claude"), "untrusted", "the server is not approved");
    note("repo/.claude/settings.local.json", json!({"enabledMcpjsonServers": ["relay"]}));
    assert_eq!(trusted("claude"), "trusted");
    note(".claude/settings.json", json!({"disabledMcpjsonServers": ["relay"]}));
    assert_eq!(trusted("claude"), "untrusted");
    for (rules, expected) in [
        (json!({&key: "TRUST_FOLDER"}), "trusted"),
        (json!({above: "TRUST_FOLDER"}), "trusted"),
        (json!({above: "TRUST_FOLDER", &key: "DO_NOT_TRUST"}), "untrusted"),
        (json!({format!("{above}/home"): "TRUST_PARENT"}), "trusted"),
        (json!({format!("{above}/home"): "TRUST_FOLDER"}), "untrusted"),
    ] {
        note(".gemini/trustedFolders.json", rules.clone());
        assert_eq!(trusted("gemini"), expected, "{rules}");
    }
    note(".gemini/settings.json", json!({"security": {"folderTrust": {"enabled": false}}}));
    assert_eq!(trusted("gemini"), "trusted");
    write(bus.path(".copilot/config.json"), &format!("// kept by the program\n{{\"trustedFolders\": [\"{key}\"]}}"));
    assert_eq!(trusted("copilot"), "trusted");
    note(".copilot/config.json", json!({"trustedFolders": [format!("{key}/below")]}));
    assert_eq!(trusted("copilot"), "untrusted");
}
