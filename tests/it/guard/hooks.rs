//! Where the hooks go: twelve repositories, and not a byte of anybody else's is other after `remove` than before `install`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::yard::{commit, edit, git, guard, guarded, relay_in, script, snapshot, states, warned, yard};
use crate::bus::{Bus, RELAY, run};
use crate::privilege;

fn hooks(bus: &Bus) -> PathBuf {
    bus.repo().join(".git/hooks")
}

/// Installs, sees that git asks relay, removes, and compares; then removes once more.
#[track_caller]
fn check(bus: &Bus, folder: &Path, installed: [&str; 2]) {
    let before = snapshot(&bus.path("repo"));
    let run = guard(bus, folder, "install").success();
    assert_eq!(states(&run), installed, "{}", run.stdout);
    assert_eq!(states(&guard(bus, folder, "status").success()), installed);
    let there = snapshot(&bus.path("repo"));
    assert_eq!(states(&guard(bus, folder, "install").success()), installed, "again");
    assert!(snapshot(&bus.path("repo")) == there, "a second installation changes nothing");
    guard(bus, folder, "remove").success();
    assert_same(bus, &before);
    guard(bus, folder, "remove").success();
    assert_same(bus, &before);
}

#[track_caller]
fn assert_same(bus: &Bus, before: &std::collections::BTreeMap<PathBuf, super::yard::Kept>) {
    let after = snapshot(&bus.path("repo"));
    let paths: Vec<_> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(paths.is_empty(), "these are not as they were: {paths:?}");
}

/// Nothing is installed, nothing is changed, and the message says why.
#[track_caller]
fn refused(bus: &Bus, folder: &Path, why: &str) -> serde_json::Value {
    let before = snapshot(&bus.path("repo"));
    let error = guard(bus, folder, "install").fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    assert_same(bus, &before);
    error
}

#[test]
fn where_there_is_no_hook_relays_own_is_put() {
    let bus = yard();
    check(&bus, &bus.repo(), ["installed", "installed"]);
    // A template may have no folder for hooks at all.
    fs::remove_dir_all(hooks(&bus)).unwrap();
    check(&bus, &bus.repo(), ["installed", "installed"]);
    assert!(!hooks(&bus).exists());
    guard(&bus, &bus.repo().join("src"), "install").success();
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    assert!(warned(&git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success()));
    script(&hooks(&bus).join("post-commit"), "#!/bin/sh\n", 0o755);
    guard(&bus, &bus.repo(), "remove").success();
    assert!(hooks(&bus).join("post-commit").exists(), "the folder has something of another's in it");
}

#[test]
fn an_older_text_of_relays_own_is_brought_up_to_date() {
    let bus = yard();
    let before = snapshot(&bus.path("repo"));
    let body = "exec relay guard pre-commit\n";
    let digest: String = Sha256::digest(body.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let older = format!("#!/bin/sh\n# relay guard {digest}: as it was said in another version\n{body}");
    script(&hooks(&bus).join("pre-commit"), &older, 0o755);
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["installed", "missing"]);
    assert_eq!(states(&guard(&bus, &bus.repo(), "install").success()), ["installed", "installed"]);
    assert_ne!(fs::read_to_string(hooks(&bus).join("pre-commit")).unwrap(), older);
    // One that git ignores is made to run again.
    fs::set_permissions(hooks(&bus).join("pre-push"), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["installed", "not_executable"]);
    assert_eq!(states(&guard(&bus, &bus.repo(), "install").success()), ["installed", "installed"]);
    guard(&bus, &bus.repo(), "remove").success();
    assert_same(&bus, &before);
}

/// A hook of somebody else's that leaves a mark, with what it was told.
const FOREIGN: &str = "#!/bin/sh\necho ran >> ../marks\necho \"$@\" > ../words\ncat > ../said\n";

#[test]
fn a_foreign_hook_runs_first_and_hears_what_git_says() {
    let bus = yard();
    for hook in ["pre-commit", "pre-push"] {
        script(&hooks(&bus).join(hook), FOREIGN, 0o750);
    }
    check(&bus, &bus.repo(), ["chained", "chained"]);
    guard(&bus, &bus.repo(), "install").success();
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    let said = |name: &str| fs::read_to_string(bus.path(name)).unwrap();
    assert_eq!(said("marks"), "ran\n");
    assert!(warned(&git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success()));
    assert_eq!(said("marks"), "ran\nran\n");
    assert_eq!(said("words"), "origin ../remote.git\n");
    let head = git(&bus, &bus.repo(), "", &["rev-parse", "HEAD"]).stdout;
    assert_eq!(said("said"), format!("refs/heads/main {} refs/heads/main {}\n", head.trim(), "0".repeat(40)));
    // Nothing to push: git says nothing, and neither do we.
    git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success();
    assert_eq!(said("said"), "");
}

#[test]
fn what_a_foreign_hook_says_counts_before_relay_is_asked() {
    let bus = yard();
    script(&hooks(&bus).join("pre-commit"), "#!/bin/sh\nexit 7\n", 0o755);
    script(&hooks(&bus).join("pre-push"), "#!/bin/sh\nexit 7\n", 0o755);
    guard(&bus, &bus.repo(), "install").success();
    let run = commit(&bus, &bus.repo(), "BlueLake", "src/a.rs");
    assert!(run.status != 0 && !warned(&run), "{run:?}");
    git(&bus, &bus.repo(), "BlueLake", &["commit", "--no-verify", "-qm", "work"]).success();
    let run = git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]);
    assert!(run.status != 0 && !warned(&run), "{run:?}");
}

#[test]
fn a_link_to_a_hook_is_chained_as_a_link() {
    let bus = yard();
    script(&bus.repo().join("tools/hook"), FOREIGN, 0o755);
    symlink("../../tools/hook", hooks(&bus).join("pre-commit")).unwrap();
    check(&bus, &bus.repo(), ["chained", "installed"]);
    guard(&bus, &bus.repo(), "install").success();
    commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    assert_eq!(fs::read_to_string(bus.path("marks")).unwrap(), "ran\n");
}

#[test]
fn a_hook_that_git_ignores_is_kept_and_still_ignored() {
    let bus = yard();
    script(&hooks(&bus).join("pre-commit"), FOREIGN, 0o644);
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["not_executable", "missing"]);
    check(&bus, &bus.repo(), ["installed", "installed"]);
    let run = guard(&bus, &bus.repo(), "install").success();
    assert!(run.result()["hooks"][0]["note"].as_str().unwrap().contains("not executable"), "{}", run.stdout);
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    assert!(!bus.path("marks").exists());
}

#[test]
fn a_folder_for_all_repositories_is_not_written_to() {
    let bus = yard();
    let shared = bus.path("shared hooks");
    fs::create_dir(&shared).unwrap();
    for setting in [shared.to_str().unwrap(), "~/shared hooks"] {
        fs::write(bus.path("gitconfig"), format!("[core]\n\thooksPath = {setting}\n")).unwrap();
        let before = snapshot(&shared);
        let error = refused(&bus, &bus.repo(), "not this repository's alone");
        assert!(error["message"].as_str().unwrap().contains("gitconfig"), "{error}");
        assert_eq!(snapshot(&shared), before);
    }
    let error = refused(&bus, &bus.repo(), "shared hooks");
    for addition in error["details"]["add"].as_array().unwrap() {
        script(Path::new(addition["file"].as_str().unwrap()), addition["text"].as_str().unwrap(), 0o755);
    }
    assert_eq!(states(&guard(&bus, &bus.repo(), "install").success()), ["called", "called"]);
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    assert!(warned(&git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success()));
    super::yard::block(&bus);
    assert_ne!(commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").status, 0);
}

#[test]
fn a_folder_of_the_work_tree_is_everybodys() {
    let bus = yard();
    script(&bus.repo().join(".githooks/pre-commit"), FOREIGN, 0o755);
    git(&bus, &bus.repo(), "", &["config", "core.hooksPath", ".githooks"]).success();
    let error = refused(&bus, &bus.repo(), "not this repository's alone");
    // What is there already needs no first line.
    let additions = error["details"]["add"].as_array().unwrap();
    let begins = |add: &serde_json::Value| add["text"].as_str().unwrap().starts_with("#!/bin/sh\n");
    assert_eq!(additions.iter().map(begins).collect::<Vec<_>>(), [false, true], "{error}");
    // The same by a link.
    git(&bus, &bus.repo(), "", &["config", "--unset", "core.hooksPath"]).success();
    fs::remove_dir_all(hooks(&bus)).unwrap();
    symlink("../.githooks", hooks(&bus)).unwrap();
    refused(&bus, &bus.repo(), "not this repository's alone");
}

#[test]
fn a_folder_of_the_repositorys_own_is_its_own_wherever_it_is() {
    let bus = guarded();
    git(&bus, &bus.repo(), "", &["config", "core.hooksPath", ".git/others"]).success();
    let status = guard(&bus, &bus.repo(), "status").success();
    assert_eq!(states(&status), ["shadowed", "shadowed"], "{}", status.stdout);
    assert!(!warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    assert_eq!(states(&guard(&bus, &bus.repo(), "install").success()), ["installed", "installed"]);
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    guard(&bus, &bus.repo(), "remove").success();
    assert!(!bus.repo().join(".git/others").exists() && !hooks(&bus).join("pre-commit").exists());
}

#[test]
fn a_linked_worktree_has_the_hooks_of_its_repository() {
    let bus = yard();
    let linked = bus.path("linked");
    git(&bus, &bus.repo(), "", &["worktree", "add", "-q", linked.to_str().unwrap()]).success();
    let before = snapshot(&linked);
    check(&bus, &linked, ["installed", "installed"]);
    guard(&bus, &linked, "install").success();
    assert!(hooks(&bus).join("pre-commit").exists());
    assert_eq!(snapshot(&linked), before);
    for folder in [&linked, &bus.repo()] {
        assert!(warned(&commit(&bus, folder, "BlueLake", "src/a.rs").success()), "{}", folder.display());
    }
    // A configuration of the work tree's own.
    git(&bus, &bus.repo(), "", &["config", "extensions.worktreeConfig", "true"]).success();
    git(&bus, &linked, "", &["config", "--worktree", "core.hooksPath", "/nowhere"]).success();
    assert_eq!(states(&guard(&bus, &linked, "status").success()), ["shadowed", "shadowed"]);
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["installed", "installed"]);
}

#[test]
fn nothing_is_committed_in_a_bare_repository_but_in_its_worktrees() {
    let bus = yard();
    let (bare, tree) = (bus.path("bare.git"), bus.path("tree"));
    git(&bus, &bus.repo(), "", &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]).success();
    let before = snapshot(&bare);
    let error = guard(&bus, &bare, "install").fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains("bare"), "{error}");
    assert_eq!(snapshot(&bare), before);
    git(&bus, &bare, "", &["worktree", "add", "-q", tree.to_str().unwrap(), "main"]).success();
    guard(&bus, &tree, "install").success();
    assert!(bare.join("hooks/pre-commit").exists());
    // The bare repository is a project of its own.
    for agent in ["GreenHill", "RedForest"] {
        relay_in(&bus, &tree, agent, &["start"]).success();
    }
    relay_in(&bus, &tree, "RedForest", &["reserve", "src/**"]).success();
    assert!(warned(&commit(&bus, &tree, "GreenHill", "src/a.rs").success()));
}

#[test]
fn a_submodule_has_hooks_of_its_own() {
    let bus = yard();
    let origin = bus.path("origin");
    git(&bus, &bus.repo(), "", &["clone", "-q", ".", origin.to_str().unwrap()]).success();
    git(&bus, &bus.repo(), "", &["submodule", "--quiet", "add", origin.to_str().unwrap(), "part"]).success();
    let part = bus.repo().join("part");
    check(&bus, &part, ["installed", "installed"]);
    guard(&bus, &part, "install").success();
    assert!(bus.repo().join(".git/modules/part/hooks/pre-commit").exists());
    assert!(!hooks(&bus).join("pre-commit").exists());
    for agent in ["GreenHill", "RedForest"] {
        relay_in(&bus, &part, agent, &["start"]).success();
    }
    relay_in(&bus, &part, "RedForest", &["reserve", "src/**"]).success();
    assert!(warned(&commit(&bus, &part, "GreenHill", "src/a.rs").success()));
}

#[test]
fn a_folder_that_cannot_be_written_to_is_named() {
    let bus = yard();
    script(&hooks(&bus).join("pre-commit"), FOREIGN, 0o755);
    let program = privilege::binary_for_all(&bus.path("."));
    privilege::hand_over(&bus.repo());
    let before = snapshot(&bus.repo());
    fs::set_permissions(hooks(&bus), fs::Permissions::from_mode(0o555)).unwrap();
    let mut command = std::process::Command::new(program);
    bus.environment(&mut command);
    command.env("RELAY_HOME", bus.path("nobodys")).args(["--json", "guard", "install"]);
    let error = run(privilege::unprivileged(&command)).fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains(".git/hooks/pre-commit"), "{error}");
    fs::set_permissions(hooks(&bus), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(snapshot(&bus.repo()), before);
}

#[test]
fn a_hook_that_cannot_go_by_another_name_is_not_moved() {
    for text in [
        "#!/bin/sh\n. \"$(dirname \"$0\")/common.sh\"\n",
        "#!/usr/bin/env python3\nimport sys\nprint(sys.argv[0])\n",
        "\u{7f}ELF\0\0",
    ] {
        let bus = yard();
        script(&hooks(&bus).join("pre-push"), text, 0o755);
        let error = refused(&bus, &bus.repo(), "pre-push is somebody else's");
        let add = &error["details"]["add"];
        assert_eq!(add.as_array().unwrap().len(), 1, "{add}");
        assert!(add[0]["file"].as_str().unwrap().ends_with(".git/hooks/pre-push"), "{add}");
    }
}

#[test]
fn a_hook_that_calls_the_guard_itself_is_left_to_do_so() {
    let bus = yard();
    let path = hooks(&bus).join("pre-push");
    script(&path, "#!/bin/sh\n# goes by ${0##*/}\n", 0o755);
    let error = refused(&bus, &bus.repo(), "pre-push is somebody else's");
    let line = error["details"]["add"][0]["text"].as_str().unwrap().to_owned();
    fs::write(&path, format!("{}{line}", fs::read_to_string(&path).unwrap())).unwrap();
    check(&bus, &bus.repo(), ["installed", "called"]);
    guard(&bus, &bus.repo(), "install").success();
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
    let run = git(&bus, &bus.repo(), "BlueLake", &["push", "origin", "main"]).success();
    assert_eq!(run.stderr.matches(super::yard::HELD).count(), 1, "{run:?}");
}

#[test]
fn what_was_put_over_relays_hook_stays() {
    let bus = yard();
    let path = hooks(&bus).join("pre-commit");
    script(&path, FOREIGN, 0o755);
    guard(&bus, &bus.repo(), "install").success();
    fs::remove_file(&path).unwrap();
    script(&path, "#!/bin/sh\necho newer\n", 0o700);
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["foreign", "installed"]);
    let error = guard(&bus, &bus.repo(), "install").fails("INPUT_INVALID").error();
    assert!(error["message"].as_str().unwrap().contains("before-relay"), "{error}");
    let run = guard(&bus, &bus.repo(), "remove").success();
    assert!(run.result()["hooks"][0]["note"].as_str().unwrap().contains("stays"), "{}", run.stdout);
    assert_eq!(fs::read_to_string(&path).unwrap(), "#!/bin/sh\necho newer\n");
    assert_eq!(fs::read_to_string(hooks(&bus).join("pre-commit.before-relay")).unwrap(), FOREIGN);
    assert!(!hooks(&bus).join("pre-push").exists());
}

#[test]
fn relays_hook_with_lines_of_anothers_is_touched_by_nobody() {
    let bus = guarded();
    let path = hooks(&bus).join("pre-commit");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}make lint\n")).unwrap();
    let before = snapshot(&bus.repo());
    assert_eq!(states(&guard(&bus, &bus.repo(), "status").success()), ["changed", "installed"]);
    for word in ["install", "remove"] {
        let error = guard(&bus, &bus.repo(), word).fails("INPUT_INVALID").error();
        assert!(error["message"].as_str().unwrap().contains(".git/hooks/pre-commit"), "{error}");
        assert_eq!(snapshot(&bus.repo()), before);
    }
}

#[test]
fn an_installation_that_was_cut_off_is_finished_or_taken_back() {
    for word in ["install", "remove"] {
        let bus = yard();
        script(&hooks(&bus).join("pre-commit"), FOREIGN, 0o755);
        let before = snapshot(&bus.repo());
        // It has its second name, and relay's own hook is not there yet.
        fs::hard_link(hooks(&bus).join("pre-commit"), hooks(&bus).join("pre-commit.before-relay")).unwrap();
        let run = guard(&bus, &bus.repo(), word).success();
        if word == "install" {
            assert_eq!(states(&run), ["chained", "installed"]);
            guard(&bus, &bus.repo(), "remove").success();
        }
        assert_same(&bus, &before);
    }
    // Somebody took relay's hook away, and what was there before is left.
    let bus = yard();
    script(&hooks(&bus).join("pre-commit"), FOREIGN, 0o755);
    let before = snapshot(&bus.repo());
    guard(&bus, &bus.repo(), "install").success();
    fs::remove_file(hooks(&bus).join("pre-commit")).unwrap();
    guard(&bus, &bus.repo(), "install").fails("INPUT_INVALID");
    guard(&bus, &bus.repo(), "remove").success();
    assert_same(&bus, &before);
}

#[test]
fn the_script_calls_relay_by_its_name_where_that_finds_it() {
    let bus = yard();
    let text = || fs::read_to_string(hooks(&bus).join("pre-commit")).unwrap();
    guard(&bus, &bus.repo(), "install").success();
    assert!(text().contains(&format!("\n{RELAY} guard pre-commit \"$@\"\n")), "{}", text());
    let mut command = bus.args("", ["guard", "install"]);
    let programs = Path::new(RELAY).parent().unwrap();
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    run(command).success();
    assert!(text().contains("\nrelay guard pre-commit \"$@\"\n"), "{}", text());
    // Another one is found first.
    script(&bus.path("bin/relay"), "#!/bin/sh\n", 0o755);
    let mut command = bus.args("", ["guard", "install"]);
    command.env("PATH", format!("{}:{}:/usr/bin", bus.path("bin").display(), programs.display()));
    run(command).success();
    assert!(text().contains(&format!("\n{RELAY} guard pre-commit \"$@\"\n")), "{}", text());
}

#[test]
fn a_person_reads_what_was_installed_and_how_to_try_it() {
    let bus = yard();
    let said = bus.text("", ["guard", "install"]).success().stdout;
    for words in
        [".git/hooks/pre-commit", ".git/hooks/pre-push", "does not block", "config.toml", "git hook run pre-commit"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    edit(&bus.repo(), "src/a.rs");
    git(&bus, &bus.repo(), "", &["add", "-A"]).success();
    assert!(warned(&git(&bus, &bus.repo(), "BlueLake", &["hook", "run", "pre-commit"]).success()));
    script(&hooks(&bus).join("pre-push"), "#!/bin/sh\nexec \"$0.real\"\n", 0o755);
    let said = bus.text("", ["guard", "install"]).stderr;
    assert!(said.contains("\nif command -v relay") && said.contains(".git/hooks/pre-push"), "{said}");
}
