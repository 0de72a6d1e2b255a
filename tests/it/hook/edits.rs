//! What an edit meets, and what it leaves claimed.

use super::agent::{Agent, claims};
use super::identity::known;
use crate::bus::{Bus, hours, minutes};

/// Two sessions, one of each program, that have begun.
fn pair(bus: &Bus) -> (Agent<'_>, Agent<'_>) {
    let (one, two) = (Agent::claude(bus, "one"), Agent::codex(bus, "two"));
    one.starts();
    two.starts();
    (one, two)
}

fn configure(bus: &Bus, text: &str) {
    std::fs::write(bus.home().join("config.toml"), text).unwrap();
}

#[test]
fn an_edit_is_claimed_and_another_agent_is_told_of_it_before_it_edits_the_same() {
    let bus = known();
    let (one, two) = pair(&bus);
    let (name, other) = (one.name(), two.name());
    let (before, after) = one.edits("src/a.rs", "one\n");
    before.silent();
    after.unwrap().silent();
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
    let said = two.before_edit("src/a.rs");
    let context = said.context();
    assert_eq!(said.denied(), None);
    for part in [
        &format!("src/a.rs: {name} holds src/a.rs"),
        "ends in 45m",
        &format!("relay send --to {name} --subject 'src/a.rs: may I?' --body TEXT --agent {other}"),
        &format!("relay reserve src/a.rs --if-free --wait 10m --agent {other}"),
    ] {
        assert!(context.contains(part), "{part}: {context}");
    }
    two.before_edit("src/a.rs").silent();
    one.before_edit("src/a.rs").silent();
}

#[test]
fn a_claim_for_a_thread_is_told_with_its_thread_and_an_edit_of_it_is_contested_on_both_sides() {
    let bus = known();
    let (one, two) = pair(&bus);
    let (name, other) = (one.name(), two.name());
    bus.relay(&name, ["reserve", "src/**", "--reason", "bd-1"]).success();
    let (before, after) = two.edits("src/b.rs", "two\n");
    assert!(before.context().contains(&format!("{name} holds src/** for bd-1")), "{}", before.context());
    assert!(
        before.context().contains(&format!("relay send --to {name} --thread bd-1 --body TEXT")),
        "{}",
        before.context()
    );
    after.unwrap().silent();
    let told = one.hears_the_user();
    assert!(told.context().contains(&format!("src/b.rs of {other}")), "{}", told.context());
    one.hears_the_user().silent();
}

#[test]
fn by_configuration_an_edit_is_denied_or_asked_about_and_the_reason_says_the_way_out() {
    let bus = known();
    let (one, two) = pair(&bus);
    let name = one.name();
    one.edits("src/a.rs", "one\n");
    configure(&bus, "[hooks]\nedit = \"deny\"\n");
    for _ in 0..2 {
        let (before, after) = two.edits("src/a.rs", "two\n");
        assert!(before.denied().unwrap().contains(&format!("relay send --to {name}")));
        assert!(after.is_none());
    }
    assert_eq!(std::fs::read_to_string(bus.repo().join("src/a.rs")).unwrap(), "one\n");
    configure(&bus, "[hooks]\nedit = \"ask\"\n");
    assert!(two.before_edit("src/a.rs").denied().is_some(), "Codex cannot ask");
    let three = Agent::claude(&bus, "three");
    assert!(three.before_edit("src/a.rs").asks().unwrap().contains(&name));
    configure(&bus, &format!("[hooks]\nedit = \"deny\"\n[project.{:?}.hooks]\nedit = \"warn\"\n", bus.key()));
    assert_eq!(two.before_edit("src/a.rs").denied(), None, "this project says otherwise");
}

#[test]
fn a_dead_or_expired_holder_is_in_nobodys_way() {
    let bus = known();
    configure(&bus, "[hooks]\nedit = \"deny\"\n");
    let (one, two) = (Agent { is_gone: true, ..Agent::claude(&bus, "one") }, Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    bus.relay(&one.name(), ["reserve", "src/a.rs", "--ttl", "1h"]).success();
    assert!(two.before_edit("src/a.rs").denied().is_some());
    bus.advance(minutes(11));
    assert_eq!(two.before_edit("src/a.rs").denied(), None, "nobody has seen it for ten minutes");
    let alive = Agent::claude(&bus, "three");
    alive.starts();
    bus.relay(&alive.name(), ["reserve", "src/b.rs", "--ttl", "1h"]).success();
    bus.advance(minutes(50));
    assert!(two.before_edit("src/b.rs").denied().is_some(), "its process runs");
    bus.advance(hours(1));
    assert_eq!(two.before_edit("src/b.rs").denied(), None, "its claim is over");
}

#[test]
fn what_a_shell_command_changed_is_claimed_and_nothing_else() {
    let bus = known();
    let (one, two) = pair(&bus);
    let (name, other) = (one.name(), two.name());
    std::fs::write(bus.repo().join("docs/a.md"), "the user's own\n").unwrap();
    two.edits("src/b.rs", "two\n");
    let (_, after) =
        one.runs("printf one > src/a.rs; printf new > src/new.rs; mkdir -p 'odd [dir]'; printf x > 'odd [dir]/{x}.rs'");
    after.unwrap().silent();
    let expected = [
        format!("{other} src/b.rs"),
        format!("{name} odd \\[dir]/\\{{x}}.rs"),
        format!("{name} src/a.rs"),
        format!("{name} src/new.rs"),
    ];
    assert_eq!(claims(&bus), expected);
    one.runs("git status >/dev/null").1.unwrap().silent();
    assert_eq!(claims(&bus), expected);
    one.runs("rm src/a.rs docs/a.md").1.unwrap();
    assert!(claims(&bus).contains(&format!("{name} docs/a.md")), "what it deleted it changed");
}

#[test]
fn what_changed_while_two_commands_ran_is_claimed_by_neither_and_both_are_told() {
    let bus = known();
    let (one, two) = pair(&bus);
    one.before_shell("make all");
    two.before_shell("make docs");
    one.shell("printf x > src/a.rs");
    let said = one.after_shell("make all");
    assert!(said.context().contains("DIRTY_OUTSIDE_CLAIM: src/a.rs"), "{}", said.context());
    assert!(said.context().contains(&format!("relay reserve src/a.rs --agent {}", one.name())), "{}", said.context());
    assert!(two.after_shell("make docs").context().contains("DIRTY_OUTSIDE_CLAIM: src/a.rs"));
    assert_eq!(claims(&bus), [""; 0]);
}

#[test]
fn what_is_under_ones_own_claim_is_not_claimed_again_and_is_renewed_by_activity() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    bus.relay(&name, ["reserve", "src/**", "--ttl", "20m"]).success();
    one.edits("src/a.rs", "one\n");
    assert_eq!(claims(&bus), [format!("{name} src/**")]);
    bus.advance(minutes(15));
    one.edits("src/a.rs", "two\n");
    bus.advance(minutes(15));
    assert_eq!(claims(&bus), [format!("{name} src/**")], "it was renewed");
}

#[test]
fn a_claim_of_a_hook_goes_when_its_file_is_clean_again_and_others_when_the_session_ends() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    one.edits("src/a.rs", "one\n");
    one.edits("src/b.rs", "two\n");
    bus.relay(&name, ["reserve", "docs"]).success();
    one.runs("git add src/a.rs && git commit -q -m one");
    assert!(one.stops().goes_on().unwrap().contains("docs"), "what it asked for itself it is reminded of");
    assert_eq!(claims(&bus), [format!("{name} src/b.rs"), format!("{name} docs")]);
    one.ends().silent();
    assert_eq!(claims(&bus), [""; 0]);
}

#[test]
fn a_patch_of_several_files_is_met_and_claimed_in_each_of_them() {
    let bus = known();
    let (one, two) = pair(&bus);
    let (name, other) = (one.name(), two.name());
    one.edits("src/b.rs", "one\n");
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/moved.rs\n@@\n-line\n+l\n*** Delete File: src/b.rs\n*** Add File: src/new.rs\n+x\n*** End Patch\n";
    let call =
        serde_json::json!({"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "call_9"});
    let before = two.tells("PreToolUse", &call);
    assert!(before.context().contains(&format!("src/b.rs: {name} holds")), "{}", before.context());
    two.tells("PostToolUse", &call);
    let mut expected = vec![format!("{name} src/b.rs")];
    expected.extend(["src/a.rs", "src/moved.rs", "src/b.rs", "src/new.rs"].map(|path| format!("{other} {path}")));
    let mut found = claims(&bus);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn a_patch_that_goes_through_the_shell_is_met_before_and_claimed_at_the_latest_when_the_turn_ends() {
    let bus = known();
    let (one, two) = pair(&bus);
    let other = two.name();
    one.edits("src/a.rs", "one\n");
    let command =
        "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: src/a.rs\n@@\n-one\n+two\n*** End Patch\nEOF\n";
    assert!(two.before_shell(command).context().contains("src/a.rs"), "the program tells no end of it");
    two.shell("printf two > src/a.rs");
    two.stops();
    assert!(claims(&bus).contains(&format!("{other} src/a.rs")), "{:?}", claims(&bus));
}

#[test]
fn what_lies_outside_the_project_is_nobodys() {
    let bus = known();
    let (one, _) = pair(&bus);
    let path = bus.path("elsewhere.txt");
    let (before, after) = one.edits(path.to_str().unwrap(), "x\n");
    before.silent();
    after.unwrap().silent();
    assert_eq!(claims(&bus), [""; 0]);
}

#[test]
fn an_edit_that_failed_is_not_claimed_and_a_command_that_failed_is_looked_at() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    let tell = |event: &str, tool: &str, input: serde_json::Value| {
        let mut call = serde_json::json!({"tool_name": tool, "tool_input": input, "tool_use_id": "call_7"});
        if event == "PostToolUseFailure" {
            call["error"] = "Exit code 1".into();
        }
        one.tells(event, &call);
    };
    let edit = serde_json::json!({"file_path": bus.repo().join("src/a.rs")});
    tell("PreToolUse", "Edit", edit.clone());
    tell("PostToolUseFailure", "Edit", edit);
    assert_eq!(claims(&bus), [""; 0]);
    let make = serde_json::json!({"command": "make"});
    tell("PreToolUse", "Bash", make.clone());
    one.shell("printf half > src/b.rs");
    tell("PostToolUseFailure", "Bash", make);
    assert_eq!(claims(&bus), [format!("{name} src/b.rs")]);
}

#[test]
fn a_folder_without_git_has_edits_too() {
    let bus = Bus::new();
    std::fs::remove_dir_all(bus.repo().join(".git")).unwrap();
    bus.relay("Other", ["start", "--project", &bus.key()]).success();
    bus.relay("Other", ["reserve", "a.rs", "--project", &bus.key()]).success();
    let one = Agent::claude(&bus, "one");
    let call = serde_json::json!({"tool_name": "Edit", "tool_input": {"file_path": bus.repo().join("a.rs")}, "tool_use_id": "1"});
    let mut command = one.command(&[]);
    command.env("RELAY_PROJECT", bus.key());
    let said = one.tells_with(command, "PreToolUse", &call);
    assert!(said.context().contains("Other holds a.rs"), "{}", said.context());
}

#[test]
fn a_claim_that_the_agent_asked_for_since_is_its_own_and_stays() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    one.edits("src/a.rs", "one\n");
    bus.relay(&name, ["reserve", "src/a.rs", "--ttl", "4h", "--reason", "bd-1"]).success();
    one.runs("git commit -q -m one src/a.rs");
    assert!(one.stops().goes_on().unwrap().contains("src/a.rs for bd-1"), "and it is reminded of it");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
}

#[test]
fn what_git_does_not_know_and_what_lies_in_another_work_tree_is_not_given_back_for_being_clean() {
    let bus = known();
    std::fs::write(bus.repo().join(".gitignore"), "*.env\n").unwrap();
    bus.git(&["add", "-A"]);
    bus.git(&["commit", "-q", "-m", "ignore"]);
    let tree = bus.path("tree");
    bus.git(&["worktree", "add", "-q", "-b", "other", tree.to_str().unwrap()]);
    let (one, _) = pair(&bus);
    let name = one.name();
    one.edits("my.env", "secret\n");
    one.edits(std::fs::canonicalize(&tree).unwrap().join("src/b.rs").to_str().unwrap(), "there\n");
    one.stops();
    assert_eq!(claims(&bus), [format!("{name} my.env"), format!("{name} src/b.rs")]);
}

#[test]
fn work_that_is_not_committed_is_claimed_again_after_its_claim_ran_out() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    one.edits("src/a.rs", "one\n");
    bus.advance(hours(2));
    assert_eq!(claims(&bus), [""; 0]);
    one.hears_the_user();
    one.runs("ls");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
}

#[test]
fn what_others_or_a_person_deleted_is_not_the_doing_of_the_next_command() {
    let bus = known();
    let (one, two) = pair(&bus);
    std::fs::remove_file(bus.repo().join("docs/a.md")).unwrap();
    let patch = "*** Begin Patch\n*** Delete File: src/b.rs\n*** End Patch\n";
    let call =
        serde_json::json!({"tool_name": "apply_patch", "tool_input": {"command": patch}, "tool_use_id": "call_9"});
    two.tells("PreToolUse", &call);
    std::fs::remove_file(bus.repo().join("src/b.rs")).unwrap();
    two.tells("PostToolUse", &call);
    one.runs("ls").1.unwrap().silent();
    assert_eq!(claims(&bus), [format!("{} src/b.rs", two.name())]);
}

#[test]
fn a_command_that_changes_very_many_files_claims_some_and_says_so() {
    let bus = known();
    let (one, _) = pair(&bus);
    let (_, after) = one.runs("mkdir gen && cd gen && for n in $(seq 1201); do : > f$n; done");
    assert!(after.unwrap().context().contains("DIRTY_OUTSIDE_CLAIM"));
    assert_eq!(bus.relay("", ["reservations"]).success().result()["total"], 200);
}

#[test]
fn commands_of_one_session_side_by_side_are_each_looked_at() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    let tell = |event: &str, id: &str| {
        one.tells(
            event,
            &serde_json::json!({"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": id}),
        );
    };
    tell("PreToolUse", "a");
    tell("PreToolUse", "b");
    one.shell("printf x > src/a.rs");
    tell("PostToolUse", "a");
    one.shell("printf x > src/b.rs");
    tell("PostToolUse", "b");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs"), format!("{name} src/b.rs")]);
}

#[test]
fn a_command_that_was_refused_or_whose_session_ended_poisons_nothing() {
    let bus = known();
    let (one, two) = pair(&bus);
    two.before_shell("make");
    two.ends();
    one.before_shell("rm -rf everything");
    std::fs::write(bus.repo().join("docs/a.md"), "a person's\n").unwrap();
    one.hears_the_user();
    one.runs("printf x > src/a.rs").1.unwrap().silent();
    assert_eq!(claims(&bus), [format!("{} src/a.rs", one.name())]);
}

#[test]
fn what_could_not_be_claimed_for_a_busy_store_is_claimed_with_the_next_command() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    one.before_shell("make");
    one.shell("printf x > src/a.rs");
    let gate = std::fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    one.after_shell("make");
    assert_eq!(claims(&bus), [""; 0]);
    drop(gate);
    one.runs("ls");
    one.stops();
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
}

#[test]
fn a_link_to_a_file_is_that_file_too() {
    let bus = known();
    std::os::unix::fs::symlink("a.rs", bus.repo().join("src/link.rs")).unwrap();
    let (one, two) = pair(&bus);
    bus.relay(&one.name(), ["reserve", "src/a.rs"]).success();
    assert!(two.before_edit("src/link.rs").context().contains("src/a.rs"));
}

#[test]
fn an_agent_that_went_elsewhere_is_still_met_where_it_edits() {
    let bus = known();
    let (one, two) = pair(&bus);
    bus.relay(&one.name(), ["reserve", "src/a.rs"]).success();
    let elsewhere = Agent { cwd: bus.path(""), ..Agent::codex(&bus, "two") };
    let said = elsewhere.before_edit(bus.repo().join("src/a.rs").to_str().unwrap());
    assert!(said.context().contains(&one.name()), "{}", said.context());
    assert_eq!(elsewhere.name(), two.name());
}

#[test]
fn what_git_was_too_slow_to_tell_is_claimed_with_the_next_command_or_at_the_end_of_the_turn() {
    let bus = known();
    let (one, _) = pair(&bus);
    let name = one.name();
    let hasty = |command: &str, id: &str| {
        let call = serde_json::json!({"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": id});
        one.tells("PreToolUse", &call);
        one.shell(command);
        let mut after = one.command(&[]);
        after.env("RELAY_TEST_PATIENCE", "0");
        one.tells_with(after, "PostToolUse", &call);
    };
    hasty("printf x > src/a.rs", "a");
    assert_eq!(claims(&bus), [""; 0]);
    one.runs("ls");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
    hasty("printf x > src/b.rs", "b");
    hasty("ls", "c");
    one.runs("ls");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")], "after two looks in vain nobody pays for every command");
    one.stops();
    assert_eq!(claims(&bus), [format!("{name} src/a.rs"), format!("{name} src/b.rs")]);
}

#[test]
fn where_git_is_too_slow_to_tell_what_lies_open_everything_that_others_hold_is_named() {
    let bus = known();
    let (one, two) = pair(&bus);
    one.edits("src/a.rs", "one\n");
    let call = serde_json::json!({"tool_name": "Bash", "tool_input": {"command": "git stash"}, "tool_use_id": "a"});
    let mut before = two.command(&[]);
    before.env("RELAY_TEST_PATIENCE", "0");
    let said = two.tells_with(before, "PreToolUse", &call);
    assert!(said.context().contains("src/a.rs"), "{}", said.context());
}
