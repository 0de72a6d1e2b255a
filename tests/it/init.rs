//! `relay init`: whom it finds, where it writes, and what it leaves alone. `init_remove.rs` has the way back.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};

pub const ALL: &str = "claude,codex,gemini,cursor,opencode,copilot,vscode";

/// A machine that has none of the programs: what is found is what a test puts there.
pub fn init(bus: &Bus, folder: &Path, args: &[&str]) -> Run {
    run(command(bus, folder, args))
}

pub fn command(bus: &Bus, folder: &Path, args: &[&str]) -> std::process::Command {
    let mut command = bus.args("", [&["init"], args].concat());
    command.env("PATH", bus.path("bin")).current_dir(folder);
    command
}

/// With relay's home in its usual place, so that nothing has to name it but what sandboxes go by.
fn init_at_home(bus: &Bus) -> Value {
    let mut command = command(bus, &bus.repo(), &["--only", ALL]);
    command.env_remove("RELAY_HOME");
    run(command).success().result()
}

pub fn set_up(bus: &Bus, args: &[&str]) -> Value {
    init(bus, &bus.repo(), args).success().result()
}

/// Every file of a folder, and every folder, without git's own.
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            let is_folder = fs::symlink_metadata(&path).unwrap().is_dir();
            found.insert(path.strip_prefix(root).unwrap().to_owned(), (!is_folder).then(|| fs::read(&path).unwrap()));
            if is_folder {
                open.push(path);
            }
        }
    }
    found
}

pub fn write(bus: &Bus, path: &str, text: &str) {
    let path = bus.repo().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub fn read(bus: &Bus, path: &str) -> String {
    fs::read_to_string(bus.repo().join(path)).unwrap()
}

pub fn parsed(bus: &Bus, path: &str) -> Value {
    serde_json::from_str(&read(bus, path)).unwrap()
}

/// What became of the files of an agent.
pub fn actions(result: &Value, agent: &str) -> BTreeMap<String, String> {
    let agents = result["agents"].as_array().unwrap();
    let agent = agents.iter().find(|found| found["name"] == agent).unwrap_or_else(|| panic!("{agent}: {result:#}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    agent["files"].as_array().unwrap().iter().map(|file| (text(&file["path"]), text(&file["action"]))).collect()
}

pub fn every_action(result: &Value) -> Vec<String> {
    let agents = result["agents"].as_array().unwrap().iter();
    agents.flat_map(|agent| actions(result, agent["name"].as_str().unwrap()).into_values()).collect()
}

/// Files as people have them: comments, tabs, both ends of lines, marks, no last new line, foreign hooks.
pub fn zoo(bus: &Bus) {
    write(bus, ".mcp.json", "{\r\n\t\"mcpServers\": {\r\n\t\t\"other\": { \"command\": \"o\" }\r\n\t}\r\n}\r\n");
    write(
        bus,
        ".claude/settings.json",
        "{\n    // ours\n    \"hooks\": {\n        \"Stop\": [\n            { \"hooks\": [{ \"type\": \"command\", \"command\": \"./done.sh\" }] }\n        ]\n    },\n    \"model\": \"x\",\n}\n",
    );
    write(
        bus,
        ".codex/config.toml",
        "# mine\r\nmodel = \"x\"\r\n\r\n[sandbox_workspace_write]\r\nwritable_roots = [\r\n  \"/a\", # one\r\n]\r\n# the end",
    );
    write(
        bus,
        ".codex/hooks.json",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"./lint\"}]}]}}",
    );
    write(bus, ".gemini/settings.json", "\u{feff}{ \"context\": { \"fileName\": \"NOTES.md\" } }");
    write(bus, ".cursor/mcp.json", "{}");
    write(bus, ".cursor/hooks.json", "{ \"version\": 1, \"hooks\": { \"stop\": [ { \"command\": \"./x\" } ] } }\n");
    write(bus, "opencode.jsonc", "/* all */ {\n  \"mcp\": {\n    // none yet\n  },\n}\n");
    write(bus, ".vscode/mcp.json", "{\n\t// servers\n\t\"servers\": {},\n\t\"inputs\": []\n}");
    write(bus, "AGENTS.md", "# Rules\r\n\r\nBe kind.");
    write(bus, "CLAUDE.md", "\n");
}

#[test]
fn copies_are_private_and_lie_beside_the_store() {
    let bus = Bus::new();
    zoo(&bus);
    let before = read(&bus, "AGENTS.md");
    set_up(&bus, &["--only", ALL]);
    let folder = bus.store().join("init");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.iter().all(|path| mode(path) == 0o600), "{files:?}");
    assert!(files.iter().any(|path| fs::read_to_string(path).is_ok_and(|text| text == before)));
    let manifest: Value = serde_json::from_str(&fs::read_to_string(folder.join("manifest.json")).unwrap()).unwrap();
    let entry = manifest["files"].as_array().unwrap().iter().find(|file| file["path"] == "AGENTS.md").unwrap();
    assert!(folder.join(entry["before"].as_str().unwrap()).is_file() && entry["after"].is_string(), "{entry}");
}

#[test]
fn a_dry_run_shows_a_diff_and_changes_nothing() {
    let bus = Bus::new();
    zoo(&bus);
    let before = tree(&bus.repo());
    let result = set_up(&bus, &["--only", ALL, "--dry-run"]);
    assert_eq!(tree(&bus.repo()), before);
    assert!(!bus.home().exists(), "not even a store is made");
    let files = result["agents"][0]["files"].as_array().unwrap();
    let diff = files.iter().find(|file| file["path"] == ".claude/settings.json").unwrap()["diff"].as_str().unwrap();
    assert!(diff.starts_with("--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ "), "{diff}");
    assert!(diff.contains("\n+        \"SessionStart\": ["), "{diff}");
    set_up(&bus, &["--only", ALL]);
    let with = tree(&bus.repo());
    let removal = set_up(&bus, &["--remove", "--dry-run"]);
    assert!(removal["agents"][0]["files"][0]["diff"].as_str().unwrap().contains("\n-"), "{removal:#}");
    assert_eq!(tree(&bus.repo()), with);
    let mut shown = command(&bus, &bus.repo(), &["--remove", "--dry-run"]);
    shown.args(["--project", &bus.key()]);
    assert_eq!(run(shown).success().result()["dry_run"], true);
}

/// Beside it lie the configuration, what hooks remember, tokens and the human's credential.
#[test]
fn a_sandbox_is_opened_for_the_projects_store_and_for_nothing_else() {
    let bus = Bus::new();
    let result = set_up(&bus, &["--only", "claude,codex,gemini"]);
    let store = bus.store();
    assert!(store.is_dir(), "a sandbox cannot open what is not there");
    let own = json!([store]);
    assert_eq!(parsed(&bus, ".claude/settings.local.json")["sandbox"]["filesystem"]["allowWrite"], own);
    assert_eq!(parsed(&bus, ".gemini/settings.json")["tools"]["sandboxAllowedPaths"], own);
    let line = format!("writable_roots = [{}]", json!(store));
    assert!(read(&bus, ".codex/config.toml").contains(&line), "{}", read(&bus, ".codex/config.toml"));
    for agent in result["agents"].as_array().unwrap() {
        let told = agent["next"].as_array().unwrap().iter().filter(|line| line.as_str().unwrap().contains("sandbox"));
        let told: Vec<&str> = told.map(|line| line.as_str().unwrap()).collect();
        assert!(told.len() == 1 && told[0].contains(store.to_str().unwrap()), "{agent:#}");
    }
}

#[test]
fn agents_are_found_by_program_by_what_they_keep_and_by_the_project() {
    let bus = Bus::new();
    let none = init(&bus, &bus.repo(), &[]).success();
    assert_eq!(none.result()["agents"], json!([]));
    assert!(none.json()["next"][0].as_str().unwrap().contains("--only claude,"), "{}", none.stdout);
    assert!(!bus.home().exists());
    fs::create_dir(bus.path("bin")).unwrap();
    symlink(RELAY, bus.path("bin/gemini")).unwrap();
    fs::write(bus.path("bin/codex"), "not a program").unwrap();
    fs::create_dir(bus.path(".claude")).unwrap();
    fs::create_dir(bus.repo().join(".cursor")).unwrap();
    let result = set_up(&bus, &[]);
    let found: Vec<(String, bool, String)> = result["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| {
            (
                agent["name"].as_str().unwrap().to_owned(),
                agent["detected"] == true,
                agent["because"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let claude = format!("there is {}", bus.path(".claude").display());
    let expected =
        [("claude", claude.as_str()), ("gemini", "`gemini` is a program here"), ("cursor", "the project has .cursor")];
    assert_eq!(found, expected.map(|(name, because)| (name.to_owned(), true, because.to_owned())));
    let named = set_up(&bus, &["--only", "opencode"]);
    assert_eq!((&named["agents"][0]["detected"], &named["agents"][0]["because"]), (&json!(false), &Value::Null));
}

#[test]
fn an_agent_that_there_is_not_is_refused_with_those_that_there_are() {
    let bus = Bus::new();
    let refused = init(&bus, &bus.repo(), &["--only", "claude,emacs"]).fails("INPUT_INVALID");
    let message = refused.error()["message"].as_str().unwrap().to_owned();
    assert!(ALL.split(',').all(|word| message.contains(word)) && message.contains("emacs"), "{message}");
    assert!(tree(&bus.repo()).is_empty() && !bus.home().exists());
}

#[test]
fn the_program_is_called_relay_where_that_is_this_program() {
    let bus = Bus::new();
    fs::create_dir(bus.path("bin")).unwrap();
    symlink(RELAY, bus.path("bin/relay")).unwrap();
    let result = set_up(&bus, &["--only", ALL]);
    assert_eq!(result["relay"], "relay");
    assert_eq!(parsed(&bus, ".codex/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["command"], "relay hook");
    assert_eq!(parsed(&bus, ".mcp.json")["mcpServers"]["relay"]["command"], "relay");
    let notes = init_at_home(&bus)["notes"].clone();
    let own = ".claude/settings.local.json, .codex/config.toml, .gemini/settings.json";
    let told = "Commit these files, and your team has relay too; not those with paths of this machine:";
    assert_eq!(notes, json!([format!("{told} {own}.")]));
    let elsewhere = Bus::new();
    let notes = set_up(&elsewhere, &["--only", "claude"])["notes"].clone();
    assert!(notes[0].as_str().unwrap().contains("a path of this machine"), "{notes}");
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone_and_the_others_are_done() {
    let bus = Bus::new();
    write(&bus, ".claude/settings.json", "{ broken");
    write(&bus, ".codex/config.toml", "a = = 1\n");
    write(&bus, ".codex/hooks.json", "{\"hooks\": {}, \"hooks\": {}}");
    fs::write(bus.repo().join("AGENTS.md"), [0xff, 0xfe, 0x00]).unwrap();
    let run = init(&bus, &bus.repo(), &["--only", "claude,codex"]);
    assert_eq!(run.status, 2, "{}", run.stdout);
    let result = run.result();
    let claude = actions(&result, "claude");
    assert_eq!((claude[".claude/settings.json"].as_str(), claude[".mcp.json"].as_str()), ("failed", "created"));
    assert_eq!(claude["AGENTS.md"], "failed");
    let codex = actions(&result, "codex");
    assert_eq!((codex[".codex/config.toml"].as_str(), codex[".codex/hooks.json"].as_str()), ("failed", "failed"));
    let files = result["agents"][0]["files"].as_array().unwrap();
    let settings = files.iter().find(|file| file["path"] == ".claude/settings.json").unwrap();
    assert!(settings["why"].as_str().unwrap().starts_with("is no JSON"), "{settings}");
    assert!(settings["by_hand"].as_str().unwrap().contains("\"PreToolUse\""), "{settings}");
    assert_eq!(read(&bus, ".claude/settings.json"), "{ broken");
    assert_eq!(read(&bus, ".codex/hooks.json"), "{\"hooks\": {}, \"hooks\": {}}");
    let removed = init(&bus, &bus.repo(), &["--remove"]);
    assert_eq!(actions(&removed.result(), "claude")[".mcp.json"], "removed");
    assert_eq!(read(&bus, ".codex/config.toml"), "a = = 1\n");
}

#[test]
fn a_file_that_may_not_be_written_is_left_alone() {
    let bus = Bus::new();
    write(&bus, ".mcp.json", "{}\n");
    fs::set_permissions(bus.repo().join(".mcp.json"), fs::Permissions::from_mode(0o444)).unwrap();
    let run = init(&bus, &bus.repo(), &["--only", "claude"]);
    assert_eq!((run.status, actions(&run.result(), "claude")[".mcp.json"].as_str()), (6, "failed"), "{}", run.stdout);
    assert_eq!(read(&bus, ".mcp.json"), "{}\n");
    set_up(&bus, &["--remove"]);
    assert_eq!(read(&bus, ".mcp.json"), "{}\n");
}

#[test]
fn modes_stay_as_they_are() {
    let bus = Bus::new();
    write(&bus, ".mcp.json", "{}\n");
    let mode = |path: &str| fs::metadata(bus.repo().join(path)).unwrap().permissions().mode() & 0o777;
    fs::set_permissions(bus.repo().join(".mcp.json"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(bus.repo(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut masked = std::process::Command::new("sh");
    let init = command(&bus, &bus.repo(), &["--only", "claude"]);
    masked.args(["-c", "umask 027; exec \"$0\" \"$@\""]).arg(init.get_program()).args(init.get_args());
    masked.env_clear().envs(init.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(bus.repo());
    masked.env("PATH", std::env::var_os("PATH").unwrap());
    run(masked).success();
    assert_eq!((mode(".mcp.json"), mode("AGENTS.md")), (0o640, 0o640), "a new one is as open as the umask says");
}

/// Root may give files away, as a test needs it to.
#[test]
fn the_owner_and_the_other_names_of_a_file_stay() {
    use std::os::unix::fs::MetadataExt;
    let bus = Bus::new();
    write(&bus, ".mcp.json", "{}\n");
    write(&bus, "AGENTS.md", "# Rules\n");
    fs::hard_link(bus.repo().join("AGENTS.md"), bus.repo().join("RULES.md")).unwrap();
    let owned = bus.repo().join(".mcp.json");
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&owned, Some(1234), Some(4321)).unwrap();
    }
    let owner = || fs::metadata(&owned).map(|metadata| (metadata.uid(), metadata.gid())).unwrap();
    let before = owner();
    set_up(&bus, &["--only", "claude"]);
    assert!(read(&bus, ".mcp.json").contains("relay") && owner() == before, "{:?}", owner());
    assert_eq!(read(&bus, "RULES.md"), read(&bus, "AGENTS.md"));
    assert!(read(&bus, "RULES.md").contains("relay:begin"));
    set_up(&bus, &["--remove"]);
    assert_eq!((read(&bus, "RULES.md").as_str(), read(&bus, ".mcp.json").as_str()), ("# Rules\n", "{}\n"));
    assert_eq!(owner(), before);
}

#[test]
fn links_are_followed_inside_the_project_and_not_out_of_it() {
    let bus = Bus::new();
    write(&bus, "docs/agents.md", "# Rules\n");
    symlink("docs/agents.md", bus.repo().join("AGENTS.md")).unwrap();
    symlink("AGENTS.md", bus.repo().join("CLAUDE.md")).unwrap();
    fs::create_dir(bus.path("outside")).unwrap();
    fs::write(bus.path("outside/mcp.json"), "{}").unwrap();
    symlink(bus.path("outside/mcp.json"), bus.repo().join(".mcp.json")).unwrap();
    symlink(bus.path("outside"), bus.repo().join(".codex")).unwrap();
    symlink("nowhere", bus.repo().join("opencode.json")).unwrap();
    let before = tree(&bus.repo().join("docs"));
    let run = init(&bus, &bus.repo(), &["--only", "claude,codex,opencode"]);
    assert_eq!(run.status, 2, "{}", run.stdout);
    let result = run.result();
    let claude = actions(&result, "claude");
    assert_eq!((claude["AGENTS.md"].as_str(), claude[".mcp.json"].as_str()), ("changed", "failed"));
    assert!(!claude.contains_key("CLAUDE.md"), "it is the same file");
    assert_eq!(actions(&result, "codex")[".codex/config.toml"], "failed");
    assert_eq!(actions(&result, "opencode")["opencode.json"], "failed");
    assert_eq!(read(&bus, "docs/agents.md").matches("relay:begin").count(), 1);
    assert!(bus.repo().join("AGENTS.md").is_symlink());
    assert_eq!(fs::read_dir(bus.path("outside")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(bus.path("outside/mcp.json")).unwrap(), "{}");
    init(&bus, &bus.repo(), &["--remove"]);
    assert_eq!(tree(&bus.repo().join("docs")), before);
    assert!(bus.repo().join("AGENTS.md").is_symlink());
}

#[test]
fn claude_code_is_not_told_twice_what_to_read() {
    let bus = Bus::new();
    write(&bus, "CLAUDE.md", "See the rules:\n@AGENTS.md\n");
    let result = set_up(&bus, &["--only", "claude"]);
    assert_eq!(actions(&result, "claude")["CLAUDE.md"], "unchanged");
    set_up(&bus, &["--remove"]);
    assert_eq!(read(&bus, "CLAUDE.md"), "See the rules:\n@AGENTS.md\n");
}

#[test]
fn vs_code_has_hooks_of_its_own_only_where_it_does_not_read_claude_codes() {
    let bus = Bus::new();
    let alone = set_up(&bus, &["--only", "vscode"]);
    assert_eq!(actions(&alone, "vscode")[".github/hooks/relay.json"], "created");
    let both = set_up(&bus, &["--only", "claude"]);
    assert_eq!(actions(&both, "vscode")[".github/hooks/relay.json"], "removed");
    let together = set_up(&bus, &["--only", "vscode"]);
    assert!(!actions(&together, "vscode").contains_key(".github/hooks/relay.json"));
    let next = together["agents"][0]["next"].as_array().unwrap();
    assert!(next.iter().any(|line| line.as_str().unwrap().contains(".claude/settings.json")), "{next:?}");
    let without = set_up(&bus, &["--remove", "--only", "claude"]);
    assert!(without["agents"][0]["next"][0].as_str().unwrap().contains("relay init --only vscode"), "{without:#}");
}

#[test]
fn a_linked_work_tree_has_its_own_files_and_says_so() {
    let bus = Bus::new();
    bus.track(&["a"]);
    bus.git(&["worktree", "add", "-q", "../linked"]);
    let linked = bus.path("linked");
    set_up(&bus, &["--only", "claude,codex"]);
    let result = init(&bus, &linked, &["--only", "claude,codex"]).success().result();
    assert_eq!((&result["project"], &result["root"]), (&json!(bus.key()), &json!(fs::canonicalize(&linked).unwrap())));
    assert!(result["notes"][0].as_str().unwrap().contains("linked work tree"), "{result:#}");
    assert!(linked.join(".claude/settings.json").exists());
    assert!(!linked.join(".codex").exists(), "Codex reads those of the main one");
    let next = result["agents"][1]["next"][0].as_str().unwrap();
    assert!(next.contains(&format!("relay init --only codex --project {}", bus.key())), "{next}");
    init(&bus, &linked, &["--remove"]).success();
    assert_eq!(tree(&linked).len(), 1);
    assert!(bus.repo().join(".claude/settings.json").exists(), "the main one keeps its own");
    assert!(bus.relay("", ["health"]).success().result()["store"]["events"].is_number(), "one project, one store");
}

#[test]
fn there_must_be_a_place_for_the_files() {
    let bus = Bus::new();
    fs::create_dir(bus.path("plain")).unwrap();
    init(&bus, &bus.path("plain"), &["--only", "claude"]).fails("PROJECT_UNRESOLVED");
    let named = fs::canonicalize(bus.path("plain")).unwrap();
    init(&bus, &bus.repo(), &["--only", "claude", "--project", named.to_str().unwrap()]).success();
    assert!(named.join(".mcp.json").exists() && tree(&bus.repo()).is_empty());
    bus.git(&["init", "-q", "--bare", "../bare.git"]);
    let refused = init(&bus, &bus.path("bare.git"), &["--only", "claude"]).fails("INPUT_INVALID");
    assert!(refused.stdout.contains("bare repository"), "{}", refused.stdout);
    assert!(!bus.path("bare.git/.mcp.json").exists());
}

#[test]
fn people_read_what_was_done_and_what_is_left_to_them() {
    let bus = Bus::new();
    let mut shown = bus.command();
    shown.env("PATH", bus.path("bin")).args(["init", "--only", "claude"]);
    let text = run(shown).success().stdout;
    for words in [
        "Claude Code (not found here)\n",
        "  created   .mcp.json\n",
        "  next: say yes when Claude Code asks",
        "relay init --remove",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    write(&bus, ".cursor/mcp.json", "{\n  \"a\": \"\u{1b}[31m\"\n}\n");
    let mut shown = bus.command();
    shown.env("PATH", bus.path("bin")).args(["init", "--only", "cursor", "--dry-run"]);
    let text = run(shown).success().stdout;
    assert!(text.contains("\n+  \"mcpServers\": {\n") && !text.contains('\u{1b}'), "{text}");
    fs::remove_dir_all(bus.repo().join(".cursor")).unwrap();
    let mut again = bus.command();
    again.env("PATH", bus.path("bin")).args(["init"]);
    let text = run(again).success().stdout;
    assert!(text.contains("Nothing to do") && !text.contains("next:"), "{text}");
}
#[test]
fn what_was_set_up_for_one_agent_does_not_look_like_another() {
    for agent in ALL.split(',') {
        let bus = Bus::new();
        set_up(&bus, &["--only", agent]);
        let again = set_up(&bus, &[]);
        let found: Vec<&str> =
            again["agents"].as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap()).collect();
        // VS Code has the same file as Copilot, so it is no sign of either.
        assert!(found == [agent] || (found.is_empty() && agent == "copilot"), "{agent}: {found:?}");
        assert!(every_action(&again).iter().all(|action| action == "unchanged"), "{agent}: {again:#}");
    }
}
