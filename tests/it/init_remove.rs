//! The way back from `relay init`: every file as it was, or without relay's part where somebody has edited it since.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::bus::{Bus, RELAY, run};
use crate::init::{ALL, actions, every_action, init, parsed, read, set_up, tree, write, zoo};

#[test]
fn all_seven_are_set_up_from_nothing_and_taken_out_again() {
    let bus = Bus::new();
    let before = tree(&bus.repo());
    let result = set_up(&bus, &["--only", ALL]);
    assert!(every_action(&result).iter().all(|action| action == "created"), "{result:#}");
    assert_eq!(result["relay"], fs::canonicalize(RELAY).unwrap().to_str().unwrap());
    let relay = result["relay"].as_str().unwrap();
    assert_eq!(parsed(&bus, ".mcp.json")["mcpServers"]["relay"]["command"], relay);
    assert_eq!(parsed(&bus, "opencode.json")["mcp"]["relay"]["command"], json!([relay, "mcp"]));
    assert_eq!(parsed(&bus, ".vscode/mcp.json")["servers"]["relay"]["type"], "stdio");
    let stop = &parsed(&bus, ".claude/settings.json")["hooks"]["Stop"][0]["hooks"];
    assert_eq!(stop[0]["command"], format!("{relay} hook"));
    assert_eq!((&stop[1]["command"], &stop[1]["asyncRewake"]), (&json!(format!("{relay} hook --idle")), &json!(true)));
    assert!(read(&bus, ".codex/config.toml").contains("[mcp_servers.relay]"));
    assert!(read(&bus, ".opencode/plugins/relay.js").contains(&format!("const RELAY = \"{relay}\";")));
    assert_eq!(read(&bus, "CLAUDE.md").lines().nth(1), Some("@AGENTS.md"));
    assert!(read(&bus, "AGENTS.md").lines().count() <= 15);
    assert!(read(&bus, ".agents/skills/relay/SKILL.md").starts_with("---\nname: relay\n"));
    let removed = set_up(&bus, &["--remove"]);
    assert!(every_action(&removed).iter().all(|action| action == "removed"), "{removed:#}");
    assert_eq!(tree(&bus.repo()), before);
    assert_eq!(set_up(&bus, &["--remove"])["agents"], json!([]), "twice is fine");
}

#[test]
fn files_that_are_there_keep_all_that_is_in_them_and_come_back_byte_for_byte() {
    let bus = Bus::new();
    zoo(&bus);
    let before = tree(&bus.repo());
    let first = set_up(&bus, &["--only", ALL]);
    let with = tree(&bus.repo());
    for (path, words) in [
        (".mcp.json", ["\r\n\t\t\"other\": { \"command\": \"o\" }", "\r\n\t\t\"relay\": {\r\n"]),
        (
            ".claude/settings.json",
            ["    // ours\n", "{ \"hooks\": [{ \"type\": \"command\", \"command\": \"./done.sh\" }] }"],
        ),
        (".codex/config.toml", ["  \"/a\", # one\r\n  \"/", "# the end\r\n\r\n[mcp_servers.relay]\r\n"]),
        (".gemini/settings.json", ["\u{feff}{", "[\"NOTES.md\", \"AGENTS.md\"]"]),
        (".cursor/hooks.json", ["{ \"command\": \"./x\" }", "hook\""]),
        ("opencode.jsonc", ["/* all */ {\n", "// none yet\n"]),
        ("AGENTS.md", ["# Rules\r\n\r\nBe kind.\r\n", "<!-- relay:end -->\r\n"]),
    ] {
        let text = read(&bus, path);
        assert!(words.iter().all(|word| text.contains(word)), "{path}: {text}");
    }
    assert_eq!(
        actions(&first, "opencode")["opencode.jsonc"],
        "changed",
        "the one that is there, not another beside it"
    );
    let again = set_up(&bus, &["--only", ALL]);
    assert!(every_action(&again).iter().all(|action| action == "unchanged"), "{again:#}");
    assert_eq!(tree(&bus.repo()), with, "running it again changes nothing");
    let copies = tree(&bus.store().join("init"));
    set_up(&bus, &["--only", ALL]);
    assert_eq!(tree(&bus.store().join("init")), copies, "and keeps no new copy");
    let removed = set_up(&bus, &["--remove"]);
    assert!(
        every_action(&removed).iter().all(|action| ["restored", "removed"].contains(&action.as_str())),
        "{removed:#}"
    );
    assert_eq!(tree(&bus.repo()), before);
}

#[test]
fn what_somebody_edited_since_stays_when_relay_goes() {
    let bus = Bus::new();
    zoo(&bus);
    set_up(&bus, &["--only", ALL]);
    let edit = |path: &str, from: &str, to: &str| write(&bus, path, &read(&bus, path).replacen(from, to, 1));
    edit(".mcp.json", "\"o\"", "\"mine\"");
    edit(".claude/settings.json", "\"model\": \"x\"", "\"model\": /* better */ \"y\"");
    edit(".codex/config.toml", "model = \"x\"", "model = \"y\"");
    edit("AGENTS.md", "Be kind.", "Be kind. Be quick.");
    edit(".cursor/mcp.json", "{\n  \"mcpServers\": {", "{\n  \"mcpServers\": {\n    \"new\": {},");
    let removed = set_up(&bus, &["--remove"]);
    assert_eq!(actions(&removed, "claude")[".claude/settings.json"], "changed");
    assert_eq!(actions(&removed, "opencode")["opencode.jsonc"], "restored");
    assert_eq!(
        read(&bus, ".mcp.json"),
        "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": { \"command\": \"mine\" }\r\n\t}\r\n}\r\n"
    );
    let claude = read(&bus, ".claude/settings.json");
    assert!(claude.contains("\"model\": /* better */ \"y\"") && claude.contains("./done.sh"), "{claude}");
    assert_eq!(read(&bus, "AGENTS.md"), "# Rules\r\n\r\nBe kind. Be quick.\r\n");
    assert_eq!(read(&bus, ".cursor/mcp.json"), "{\n  \"mcpServers\": {\n    \"new\": {}\n  }\n}");
    assert!(read(&bus, ".codex/config.toml").contains("model = \"y\"\r\n"));
    let left: Vec<String> =
        tree(&bus.repo()).into_values().flatten().map(|text| String::from_utf8(text).unwrap()).collect();
    assert!(!left.iter().any(|text| text.contains("relay")), "{left:#?}");
}

#[test]
fn what_an_older_relay_wrote_is_brought_up_to_date_and_still_goes_as_it_came() {
    let bus = Bus::new();
    write(&bus, "AGENTS.md", "# Rules\n");
    set_up(&bus, &["--only", "claude,opencode"]);
    // As if another release had written it: other words, another place of the program, an event more.
    let store = bus.store().join("init/manifest.json");
    let hash = |text: &str| {
        use sha2::{Digest, Sha256};
        relay_core::domain::event::hex(&Sha256::digest(text.as_bytes()))
    };
    let mut manifest = fs::read_to_string(&store).unwrap();
    for (path, from, to) in [
        ("AGENTS.md", "## Working beside other agents: relay", "## Old words"),
        (".mcp.json", "\"command\": \"", "\"command\": \"/old"),
        (
            ".claude/settings.json",
            "\"SessionStart\": [",
            "\"PreCompact\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"relay hook\" }] }],\n    \"SessionStart\": [",
        ),
    ] {
        let (new, old) = (read(&bus, path), read(&bus, path).replacen(from, to, 1));
        assert_ne!(new, old, "{path}");
        manifest = manifest.replace(&hash(&new), &hash(&old));
        write(&bus, path, &old);
    }
    fs::write(&store, manifest).unwrap();
    let result = set_up(&bus, &["--only", "claude,opencode"]);
    for path in ["AGENTS.md", ".mcp.json", ".claude/settings.json"] {
        assert_eq!(actions(&result, "claude")[path], "changed", "{path}");
    }
    assert!(!read(&bus, "AGENTS.md").contains("Old words") && !read(&bus, ".mcp.json").contains("/old"));
    assert!(parsed(&bus, ".claude/settings.json")["hooks"].get("PreCompact").is_none());
    set_up(&bus, &["--remove"]);
    assert_eq!(read(&bus, "AGENTS.md"), "# Rules\n");
    assert_eq!(tree(&bus.repo()).len(), 1);
}

#[test]
fn what_was_made_by_one_that_was_killed_goes_too() {
    let bus = Bus::new();
    let mut killed = crate::init::command(&bus, &bus.repo(), &["--only", "opencode"]);
    // The first file needs none.
    killed.env("FAILPOINTS", "init-after-folders=1*off->return");
    assert_ne!(run(killed).status, 0);
    assert!(bus.repo().join(".opencode/plugins").is_dir());
    set_up(&bus, &["--remove"]);
    assert!(!bus.repo().join(".opencode").exists());
}

#[test]
fn a_clone_that_came_with_relay_in_it_is_rid_of_it_too() {
    let bus = Bus::new();
    write(&bus, "AGENTS.md", "# Rules\n");
    set_up(&bus, &["--only", "claude,codex"]);
    fs::remove_dir_all(bus.home()).unwrap();
    let again = set_up(&bus, &["--only", "claude"]);
    assert!(every_action(&again).iter().all(|action| action == "unchanged"), "{again:#}");
    let removed = set_up(&bus, &["--remove", "--only", "codex"]);
    assert_eq!(actions(&removed, "codex")["AGENTS.md"], "unchanged", "Claude Code needs it: {removed:#}");
    assert!(!bus.repo().join(".codex/hooks.json").exists());
    set_up(&bus, &["--remove"]);
    assert_eq!(read(&bus, "AGENTS.md"), "# Rules\n");
    assert!(tree(&bus.repo()).values().flatten().count() == 1, "{:#?}", tree(&bus.repo()));
}

#[test]
fn a_skill_that_somebody_wrote_or_edited_is_theirs() {
    let bus = Bus::new();
    write(&bus, ".claude/skills/relay/SKILL.md", "mine\n");
    let run = init(&bus, &bus.repo(), &["--only", "claude,codex"]);
    assert_eq!(actions(&run.result(), "claude")[".claude/skills/relay/SKILL.md"], "failed");
    let path = ".agents/skills/relay/SKILL.md";
    write(&bus, path, &format!("{}more\n", read(&bus, path)));
    let run = init(&bus, &bus.repo(), &["--remove"]);
    assert_eq!((run.status, actions(&run.result(), "codex")[path].as_str()), (2, "failed"));
    assert!(read(&bus, path).ends_with("more\n") && read(&bus, ".claude/skills/relay/SKILL.md") == "mine\n");
}

#[test]
fn what_agents_share_stays_until_the_last_of_them_goes() {
    let bus = Bus::new();
    set_up(&bus, &["--only", "codex,gemini,copilot"]);
    set_up(&bus, &["--only", "claude"]);
    let removed = set_up(&bus, &["--remove", "--only", "copilot"]);
    let copilot = actions(&removed, "copilot");
    assert_eq!((copilot[".mcp.json"].as_str(), copilot[".github/hooks/relay.json"].as_str()), ("unchanged", "removed"));
    let claude = actions(&set_up(&bus, &["--remove", "--only", "claude"]), "claude");
    assert_eq!((claude[".mcp.json"].as_str(), claude["AGENTS.md"].as_str()), ("removed", "unchanged"));
    set_up(&bus, &["--remove", "--only", "codex,gemini"]);
    assert!(tree(&bus.repo()).is_empty(), "{:#?}", tree(&bus.repo()));
}

#[test]
fn a_project_that_moved_can_still_be_rid_of_relay() {
    let bus = Bus::new();
    write(&bus, "AGENTS.md", "# Rules");
    set_up(&bus, &["--only", "claude"]);
    let (old, new) = (bus.key(), bus.path("elsewhere"));
    fs::rename(bus.repo(), &new).unwrap();
    let mut moved = bus.args("", ["project", "move", &old, new.to_str().unwrap()]);
    run(std::mem::replace(moved.current_dir(&new), std::process::Command::new("true"))).success();
    init(&bus, &new, &["--remove"]).success();
    assert_eq!(tree(&new), BTreeMap::from([(PathBuf::from("AGENTS.md"), Some(b"# Rules".to_vec()))]));
}
