//! `relay doctor --agents`: what `init` set up, tried out through the very files, on a bus that is thrown away.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::bus::{Bus, RELAY, Run, run};
use crate::init::{ALL, tree};
use crate::init_real::{prepared, told};
use crate::outside;

/// A machine that has none of the agents' programs, but a node.
fn command(bus: &Bus, folder: &Path, args: &[&str]) -> Command {
    let mut command = bus.args("", args);
    let path = format!("{}:{}", bus.path("bin").display(), outside::node_folder().display());
    command.env("PATH", path).current_dir(folder);
    command
}

fn look(bus: &Bus) -> Run {
    run(command(bus, &bus.repo(), &["doctor", "--agents"]))
}

fn set_up(only: &str) -> Bus {
    let bus = Bus::new();
    run(command(&bus, &bus.repo(), &["init", "--only", only])).success();
    bus
}

fn agents(run: &Run) -> Vec<Value> {
    run.result()["agents"].as_array().unwrap().clone()
}

fn agent(run: &Run, name: &str) -> Value {
    agents(run).into_iter().find(|agent| agent["name"] == name).unwrap()
}

/// The name, and the states that there are.
fn states(run: &Run) -> Vec<[String; 4]> {
    let word = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let state = |agent: &Value| ["name", "registered", "trusted", "fired"].map(|name| word(&agent[name]));
    agents(run).iter().map(state).collect()
}

fn problems(agent: &Value) -> String {
    let problem = |problem: &Value| {
        let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
        format!("{}: {} -> {}\n", text("severity"), text("text"), text("next"))
    };
    agent["problems"].as_array().unwrap().iter().map(problem).collect()
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn edit(bus: &Bus, path: &str, change: impl Fn(&str) -> String) {
    let path = bus.repo().join(path);
    let text = fs::read_to_string(&path).unwrap();
    let changed = change(&text);
    assert_ne!(changed, text, "{}", path.display());
    fs::write(path, changed).unwrap();
}

fn relay() -> String {
    fs::canonicalize(RELAY).unwrap().to_str().unwrap().to_owned()
}

/// A program of the machine's.
fn program(bus: &Bus, name: &str, script: &str) -> String {
    let path = bus.path("bin").join(name);
    write(path.clone(), &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Whether a process that was killed is gone, or only nobody has taken note of its end.
fn ends(pid: &str) -> bool {
    let is_over = || {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(['Z', 'X']) || rest.is_empty())
    };
    (0..100_000).any(|_| is_over())
}

#[test]
fn all_seven_are_registered_and_answer_and_nothing_of_it_is_left_anywhere() {
    let bus = set_up(ALL);
    bus.relay("BlueLake", ["start"]).success();
    let before = tree(&bus.path(""));
    let looked = look(&bus).success();
    assert_eq!(tree(&bus.path("")), before, "neither the bus nor a file of anybody's has changed");
    let expected = [
        ["claude", "registered", "unproven", "answered"],
        ["codex", "registered", "untrusted", "answered"],
        ["gemini", "registered", "untrusted", "answered"],
        ["cursor", "registered", "unproven", "answered"],
        ["opencode", "registered", "not_needed", "answered"],
        ["copilot", "registered", "untrusted", "answered"],
        ["vscode", "registered", "unproven", "answered"],
    ];
    assert_eq!(states(&looked), expected);
    let honoured = agents(&looked).iter().map(|agent| agent["honoured"].clone()).collect::<Vec<_>>();
    assert_eq!(honoured, ["seen", "seen", "seen", "unproven", "seen", "seen", "unproven"]);
    for agent in agents(&looked) {
        assert_eq!(agent["seen_with"].is_null(), agent["honoured"] == "unproven", "{agent:#}");
        assert!(!agent["wakes"].as_str().unwrap().is_empty() && agent.get("version").is_none(), "{agent:#}");
    }
    let mut shown = bus.command();
    shown.args(["doctor", "--agents"]).env("PATH", bus.path("bin"));
    let shown = run(shown).success().stdout;
    assert!(shown.contains("Claude Code  -        registered  unproven    answered  seen with 2.1.325"), "{shown}");
    assert!(shown.contains("unproven: from its documentation"), "{shown}");
    assert!(shown.contains("note: its plugin was not tried: there is no node"), "{shown}");
    let plain = bus.text("", ["doctor"]).success().stdout;
    assert!(plain.contains("VS Code; `relay doctor --agents` tries them out"), "{plain}");
}

#[test]
fn an_agent_that_is_not_set_up_is_no_fault_and_no_process_runs_for_it() {
    let bus = Bus::new();
    let log = bus.path("log");
    program(&bus, "claude", &format!("echo $* >> {}", log.display()));
    let looked = look(&bus).success();
    let words: Vec<&str> = ALL.split(',').collect();
    assert_eq!(
        states(&looked),
        words.iter().map(|word| [word, "not_set_up", "-", "-"].map(str::to_owned)).collect::<Vec<_>>()
    );
    assert!(!log.exists() && !bus.home().exists());
    let shown = bus.text("", ["doctor", "--agents"]).success().stdout;
    assert!(
        shown.starts_with("Not set up: Claude Code, ") && shown.contains(&format!("`relay init --only {ALL}`")),
        "{shown}"
    );
    assert!(!bus.text("", ["doctor"]).success().stdout.contains("--agents"));
    bus.relay("", ["doctor", "--agents", "--fix"]).fails("INPUT_INVALID");
}

/// With this done to a project that was set up, this is found of the agent, and this is the exit status.
#[track_caller]
fn finds(bus: &Bus, name: &str, expected: [&str; 2], status: i32, said: &str) {
    let looked = look(bus);
    let agent = agent(&looked, name);
    let found = [&agent["registered"], &agent["fired"]].map(|state| state.as_str().unwrap());
    assert_eq!((found, looked.status), (expected, status), "{agent:#}");
    assert!(problems(&agent).contains(said), "{}", problems(&agent));
}

#[test]
fn what_is_missing_or_not_relays_any_more_is_named_with_the_way_back() {
    let bus = set_up("claude,codex,gemini,opencode,copilot");
    write(bus.repo().join(".mcp.json"), "{}");
    for name in ["claude", "copilot"] {
        let said = format!("error: .mcp.json lacks mcpServers.relay -> relay init --only {name}\n");
        finds(&bus, name, ["incomplete", "answered"], 2, &said);
    }
    edit(&bus, ".codex/hooks.json", |text| text.replace("\"PreToolUse\"", "\"PreToolUses\""));
    finds(&bus, "codex", ["incomplete", "not_fired"], 2, "error: .codex/hooks.json lacks hooks.PreToolUse -> ");
    finds(&bus, "codex", ["incomplete", "not_fired"], 2, "warning: .codex/hooks.json still has hooks.PreToolUses -> ");
    edit(&bus, ".codex/config.toml", |text| text.replace("mcp_servers.relay", "mcp_servers.other"));
    finds(&bus, "codex", ["incomplete", "not_fired"], 2, "error: .codex/config.toml lacks mcp_servers.relay -> ");
    edit(&bus, ".gemini/settings.json", |text| text.replacen('{', "{{", 1));
    finds(&bus, "gemini", ["incomplete", "not_fired"], 2, "error: .gemini/settings.json is no JSON: ");
    fs::remove_file(bus.repo().join(".opencode/plugins/relay.js")).unwrap();
    finds(&bus, "opencode", ["incomplete", "not_fired"], 2, ".opencode/plugins/relay.js lacks relay's own text -> ");
    // Each is mended by what is told.
    write(bus.repo().join(".gemini/settings.json"), "{}");
    run(command(&bus, &bus.repo(), &["init", "--only", "claude,codex,gemini,opencode,copilot"])).success();
    let looked = look(&bus).success();
    for name in ["claude", "codex", "gemini", "opencode", "copilot"] {
        assert_eq!(
            (&agent(&looked, name)["registered"], &agent(&looked, name)["fired"]),
            (&json!("registered"), &json!("answered"))
        );
    }
}

#[test]
fn what_works_all_the_same_is_told_and_is_no_error() {
    let bus = set_up("claude,cursor,opencode");
    fs::remove_file(bus.repo().join("AGENTS.md")).unwrap();
    finds(&bus, "cursor", ["registered", "answered"], 0, "warning: AGENTS.md lacks relay's block -> ");
    edit(&bus, ".cursor/hooks.json", |text| text.replace("\"timeout\": 10", "\"timeout\": 11"));
    let said = "warning: .cursor/hooks.json has something else in hooks.sessionStart, ";
    finds(&bus, "cursor", ["different", "answered"], 0, said);
    // A hook may be called without a shell.
    edit(&bus, ".claude/settings.json", |text| {
        text.replace(&format!("\"{} hook\"", relay()), &format!("\"{}\", \"args\": [\"hook\"]", relay()))
    });
    finds(&bus, "claude", ["different", "answered"], 0, "warning: .claude/settings.json has something else");
}

#[test]
fn a_relay_that_is_gone_is_not_found_however_the_program_calls_it() {
    let bus = set_up(ALL);
    for path in [
        ".claude/settings.json",
        ".codex/hooks.json",
        ".gemini/settings.json",
        ".cursor/hooks.json",
        ".github/hooks/relay.json",
        ".opencode/plugins/relay.js",
    ] {
        edit(&bus, path, |text| text.replace(&relay(), "/nonexistent/relay"));
    }
    let looked = look(&bus);
    assert_eq!(looked.status, 2);
    for agent in agents(&looked) {
        assert_eq!((&agent["registered"], &agent["fired"]), (&json!("different"), &json!("not_found")), "{agent:#}");
        assert!(problems(&agent).contains("error: /nonexistent/relay, which its "), "{}", problems(&agent));
    }
    let next = "-> `relay init --only claude`, with the relay";
    assert!(problems(&agent(&looked, "vscode")).contains(next), "it runs the hooks of Claude Code");
    edit(&bus, ".cursor/hooks.json", |text| text.replace("/nonexistent/relay", "relay"));
    finds(&bus, "cursor", ["different", "not_found"], 2, "error: relay, which its hook calls, is not there");
}

#[test]
fn a_hook_that_says_nothing_or_something_else_does_not_pass() {
    let bus = set_up("claude,gemini,opencode");
    let stand_in = |script: &str| program(&bus, "relay", script);
    for path in [".claude/settings.json", ".gemini/settings.json", ".opencode/plugins/relay.js"] {
        edit(&bus, path, |text| text.replace(&relay(), bus.path("bin/relay").to_str().unwrap()));
    }
    stand_in("exit 0");
    finds(&bus, "claude", ["different", "no_answer"], 70, "error: its hook says nothing to SessionStart -> ");
    finds(&bus, "opencode", ["different", "no_answer"], 70, "error: its plugin lets an edit run");
    stand_in("echo '{}'");
    finds(&bus, "gemini", ["different", "no_answer"], 70, "error: its hook says nothing to SessionStart -> ");
    finds(
        &bus,
        "claude",
        ["different", "wrong"],
        70,
        "error: its hook answers SessionStart with what Claude Code does not take: ",
    );
    stand_in("echo hello; exit 3");
    finds(&bus, "gemini", ["different", "wrong"], 70, "\"hello\" and exit status: 3");
    // It answers the start of a session, and lets the edit run.
    stand_in(&format!(
        "case \"$(/bin/cat)\" in *SessionStart*) printf '%s' '{}';; esac",
        json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "x"}})
    ));
    finds(&bus, "claude", ["different", "no_answer"], 70, "error: its hook says nothing to PreToolUse -> ");
}

/// The files may have come with a repository that nobody trusts yet.
#[test]
fn nothing_is_run_but_plain_calls_of_a_relay_that_is_not_the_projects() {
    let bus = set_up("claude,cursor,opencode");
    let trap = bus.path("trap");
    let springs = format!("touch {}", trap.display());
    let set = |path: &str, old: &str, new: &str| {
        let before = fs::read_to_string(bus.repo().join(path)).unwrap();
        edit(&bus, path, |text| text.replace(old, new));
        before
    };
    let hook = format!("{} hook", relay());
    for line in [format!("{hook} ; {springs}"), format!("{hook} || {springs}"), format!("{hook} $({springs})")] {
        let before = set(".claude/settings.json", &hook, &line);
        finds(
            &bus,
            "claude",
            ["different", "foreign"],
            0,
            "warning: its hook does more than call relay, and was not run -> ",
        );
        fs::write(bus.repo().join(".claude/settings.json"), before).unwrap();
    }
    let own = bus.repo().join("bin/relay");
    write(own.clone(), &format!("#!/bin/sh\n{springs}\n"));
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    for name in [own.to_str().unwrap(), "bin/relay", "./bin/relay"] {
        let before = set(".cursor/hooks.json", &relay(), name);
        finds(&bus, "cursor", ["different", "foreign"], 0, "a program of the project's own, and was not run");
        fs::write(bus.repo().join(".cursor/hooks.json"), before).unwrap();
    }
    // A link of the project's own to a shell would run whatever file is called `hook`.
    fs::remove_file(&own).unwrap();
    std::os::unix::fs::symlink("/bin/sh", &own).unwrap();
    write(bus.repo().join("hook"), &springs);
    set(".cursor/hooks.json", &relay(), own.to_str().unwrap());
    finds(&bus, "cursor", ["different", "foreign"], 0, "a program of the project's own, and was not run");
    set(".opencode/plugins/relay.js", "const SECONDS = 10;", &format!("spawn('sh', ['-c', '{springs}']);"));
    finds(&bus, "opencode", ["different", "foreign"], 0, "warning: its plugin does more than call relay");
    assert!(!trap.exists());
}

#[test]
fn a_relay_that_breaks_is_told_with_the_trace_that_it_left() {
    let bus = set_up("claude");
    let mut broken = command(&bus, &bus.repo(), &["doctor", "--agents"]);
    broken.env("RELAY_TEST_BREAK", "hook");
    let looked = run(broken);
    let claude = agent(&looked, "claude");
    assert_eq!((&claude["fired"], looked.status), (&json!("no_answer"), 70));
    assert!(problems(&claude).contains("says nothing to SessionStart: relay broke"), "{}", problems(&claude));
    assert!(!bus.home().join("hooks").exists(), "the trace is not in the user's home");
}

#[test]
fn what_hangs_is_ended_and_what_comes_too_late_is_said_to_be_cut() {
    let bus = set_up("claude,codex,gemini,cursor,copilot");
    let log = bus.path("pids");
    let hangs = format!("echo $$ >> {}; exec /bin/sleep 600", log.display());
    program(&bus, "relay", &hangs);
    program(&bus, "codex", &hangs);
    for path in [
        ".claude/settings.json",
        ".codex/hooks.json",
        ".gemini/settings.json",
        ".cursor/hooks.json",
        ".github/hooks/relay.json",
    ] {
        edit(&bus, path, |text| text.replace(&relay(), bus.path("bin/relay").to_str().unwrap()));
    }
    let looked = look(&bus);
    let fired: Vec<Value> = agents(&looked).iter().map(|agent| agent["fired"].clone()).collect();
    assert_eq!(looked.status, 70);
    assert_eq!(fired[..3], ["timed_out", "timed_out", "timed_out"]);
    assert_eq!(fired[5], "not_fired", "{fired:?}");
    assert!(problems(&agent(&looked, "copilot")).contains("note: the time was over"));
    assert!(looked.result()["notes"][0].as_str().unwrap().starts_with("The time was over"), "{}", looked.stdout);
    assert!(agent(&looked, "codex").get("version").is_none());
    let pids = fs::read_to_string(log).unwrap();
    assert!(pids.lines().count() >= 4, "{pids}");
    assert!(pids.lines().all(ends), "{pids}");
}

#[test]
fn whoever_interrupts_it_finds_nothing_left_behind() {
    let bus = set_up("claude");
    let (log, temporary) = (bus.path("pid"), bus.path("tmp"));
    fs::create_dir(&temporary).unwrap();
    let hangs = program(&bus, "relay", &format!("echo $$ > {}; exec /bin/sleep 600", log.display()));
    edit(&bus, ".claude/settings.json", |text| text.replace(&relay(), &hangs));
    let mut command = command(&bus, &bus.repo(), &["doctor", "--agents"]);
    command.env("TMPDIR", &temporary).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut doctor = command.spawn().unwrap();
    while !fs::read_to_string(&log).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(doctor.try_wait().unwrap().is_none(), "it ended before it fired");
    }
    let pid = rustix::process::Pid::from_child(&doctor);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    doctor.wait().unwrap();
    assert_eq!(fs::read_dir(temporary).unwrap().count(), 0);
    assert!(ends(fs::read_to_string(log).unwrap().trim()));
}

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
    let home = fs::canonicalize(bus.path("")).unwrap();
    assert_eq!(home, bus.path("").canonicalize().unwrap());
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

#[test]
fn a_program_is_asked_for_its_version_and_for_nothing_else() {
    let bus = set_up("claude,codex,vscode");
    let log = bus.path("log");
    let says =
        |name: &str, text: &str| program(&bus, name, &format!("echo {name} $* >> {}; echo '{text}'", log.display()));
    says("claude", "2.2.0 (Claude Code)");
    says("codex", "codex-cli 0.166.0");
    says("code", "1.120.0");
    says("gemini", "0.99.0");
    let looked = look(&bus).success();
    let seen = |name: &str| {
        let agent = agent(&looked, name);
        [&agent["version"], &agent["honoured"]].map(|value| value.as_str().unwrap().to_owned())
    };
    assert_eq!(seen("claude"), ["2.2.0", "seen_in_older"]);
    assert!(
        problems(&agent(&looked, "claude"))
            .contains("note: its answers were seen to count with 2.1.325; here is 2.2.0")
    );
    assert_eq!(seen("codex"), ["0.166.0", "seen"]);
    assert_eq!(seen("vscode"), ["1.120.0", "unproven"]);
    let mut calls: Vec<String> = fs::read_to_string(log).unwrap().lines().map(str::to_owned).collect();
    calls.sort();
    assert_eq!(calls, ["claude --version", "code --version", "codex --version"]);
}

#[test]
fn a_linked_work_tree_has_its_own_files_but_for_codex() {
    let bus = Bus::new();
    bus.track(&["a.rs"]);
    let linked = bus.path("linked");
    bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let in_linked = |args: &[&str]| run(command(&bus, &linked, args));
    in_linked(&["init", "--only", "claude"]).success();
    run(command(&bus, &bus.repo(), &["init", "--only", "codex"])).success();
    let looked = in_linked(&["doctor", "--agents"]).success();
    let states: Vec<[String; 4]> = states(&looked).into_iter().filter(|state| state[1] != "not_set_up").collect();
    assert_eq!(
        states,
        [["claude", "registered", "unproven", "answered"], ["codex", "registered", "untrusted", "answered"]]
    );
    write(bus.repo().join(".codex/config.toml"), "");
    let said =
        format!(".codex/config.toml lacks mcp_servers.relay -> relay init --only codex --project {}\n", bus.key());
    let broken = in_linked(&["doctor", "--agents"]);
    assert!(problems(&agent(&broken, "codex")).contains(&said), "{}", problems(&agent(&broken, "codex")));
    assert_eq!(agent(&look(&bus), "claude")["registered"], "not_set_up", "that is another work tree");
}

#[test]
fn files_that_came_with_a_repository_count_and_those_of_others_do_not() {
    let bus = set_up("claude");
    fs::remove_dir_all(bus.home()).unwrap();
    write(bus.repo().join(".gemini/settings.json"), r#"{"context": {"fileName": ["AGENTS.md"]}}"#);
    write(bus.repo().join(".cursor/mcp.json"), "no JSON");
    let looked = look(&bus).success();
    let set_up: Vec<String> =
        states(&looked).into_iter().filter(|state| state[1] != "not_set_up").map(|state| state[0].clone()).collect();
    assert_eq!(set_up, ["claude"], "its .mcp.json is not Copilot's setup");
    assert_eq!(agent(&looked, "claude")["fired"], "answered");
    let notes = looked.result()["notes"].to_string();
    assert!(notes.contains("relay does not know") && notes.contains("`relay init`"), "{notes}");
    assert!(!bus.home().exists(), "a look makes no store");
}

#[test]
fn with_a_server_named_the_events_stay_on_this_machine() {
    let bus = set_up("claude");
    let mut away = command(&bus, &bus.repo(), &["doctor", "--agents"]);
    away.env("RELAY_URL", "http://127.0.0.1:9")
        .env("RELAY_TOKEN", "none")
        .env("RELAY_SESSION", "one")
        .env("RELAY_AGENT", "BlueLake");
    let looked = run(away).success();
    assert_eq!(agent(&looked, "claude")["fired"], "answered");
    let notes = looked.result()["notes"].to_string();
    assert!(notes.contains("RELAY_URL names a server; these events stayed on this machine"), "{notes}");
}
