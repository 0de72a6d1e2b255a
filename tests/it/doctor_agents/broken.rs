//! Every way in which what was set up does not work, or must not be tried.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::{agent, agents, command, edit, finds, look, problems, program, relay, set_up, write};
use crate::bus::run;
use crate::init::ALL;

/// Whether a process that was killed is gone, or only nobody has taken note of its end.
fn ends(pid: &str) -> bool {
    let is_over = || {
        let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(['Z', 'X']) || rest.is_empty())
    };
    (0..100_000).any(|_| is_over())
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
