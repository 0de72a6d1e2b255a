//! I1: all who cooperate use the same absolute project key, and the same path is the same bus.

use std::path::Path;

use crate::bus::{Bus, Run, run};
use crate::terminal::{column, text};

/// `start` from a folder, with or without a given project.
fn start_from(bus: &Bus, folder: &Path, given: Option<&str>) -> Run {
    let mut command = bus.args("BlueLake", ["start"]);
    command.current_dir(folder);
    if let Some(path) = given {
        command.args(["--project", path]);
    }
    run(command)
}

#[track_caller]
fn check_found(bus: &Bus, folder: &Path, expected: &str) {
    assert_eq!(text(&start_from(bus, folder, None).success().result()["project"]["key"]), expected, "{folder:?}");
}

#[track_caller]
fn check_given(bus: &Bus, given: &str, expected: &str) {
    let outside = bus.path("");
    assert_eq!(text(&start_from(bus, &outside, Some(given)).success().result()["project"]["key"]), expected, "{given}");
    let variable = bus.with_variables(&[("RELAY_PROJECT", given)], &["start", "--agent", "BlueLake"]);
    assert_eq!(text(&variable.success().result()["project"]["key"]), expected, "RELAY_PROJECT={given}");
}

fn canonical(path: &Path) -> String {
    std::fs::canonicalize(path).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn the_repository_around_the_working_directory_is_the_project() {
    let bus = Bus::new();
    std::fs::create_dir_all(bus.repo().join("crates/core")).unwrap();
    check_found(&bus, &bus.repo(), &bus.key());
    check_found(&bus, &bus.repo().join("crates/core"), &bus.key());
}

#[test]
fn a_path_is_cleaned_before_it_names_a_project() {
    let bus = Bus::new();
    std::fs::create_dir(bus.repo().join("src")).unwrap();
    std::os::unix::fs::symlink(bus.repo(), bus.path("link")).unwrap();
    let key = bus.key();
    let (parent, _) = key.rsplit_once('/').unwrap();
    for spelling in [
        key.clone(),
        format!("{key}/"),
        format!("{key}//"),
        format!("/{key}"),
        format!("{parent}//repo"),
        format!("{parent}/./repo/."),
        format!("{key}/src/.."),
        format!("{parent}/link"),
        format!("{parent}/link/src/../"),
    ] {
        check_given(&bus, &spelling, &key);
    }
    check_found(&bus, &bus.path("link"), &key);
}

#[test]
fn the_same_path_is_the_same_bus_however_it_was_reached() {
    let bus = Bus::new();
    std::os::unix::fs::symlink(bus.repo(), bus.path("link")).unwrap();
    bus.relay("BlueLake", ["start"]).success();
    let link = bus.path("link");
    bus.relay("RedForest", ["start", "--project", link.to_str().unwrap()]).success();
    bus.relay("RedForest", ["policy", "open"]).success();
    let id = bus.send("BlueLake", "RedForest", "bd-1", "Login");
    assert_eq!(bus.inbox("RedForest"), [id]);
    let listed = bus.relay("", ["project", "list"]).success().result();
    assert_eq!(column(&listed["projects"], "key"), [bus.key()]);
}

#[test]
fn a_given_project_wins_over_the_variable_and_the_variable_over_the_working_directory() {
    let bus = Bus::new();
    for name in ["given", "variable"] {
        std::fs::create_dir(bus.path(name)).unwrap();
    }
    let (given, variable) = (canonical(&bus.path("given")), canonical(&bus.path("variable")));
    let check = |args: &[&str], variable: &str, expected: &str| {
        let answer = bus.with_variables(&[("RELAY_PROJECT", variable)], args).success().result();
        assert_eq!(text(&answer["project"]["key"]), expected);
    };
    check(&["start", "--project", &given], &variable, &given);
    check(&["start"], &variable, &variable);
    // An empty variable is as good as none.
    check(&["start"], "", &bus.key());
}

#[test]
fn a_linked_worktree_is_the_main_worktrees_project_whether_given_or_found() {
    let bus = Bus::new();
    bus.track(&["src/a.rs"]);
    bus.git(&["worktree", "add", "-q", "../tree"]);
    bus.git(&["worktree", "add", "-q", "../moved"]);
    bus.git(&["worktree", "move", "../moved", "../deeper"]);
    for tree in ["tree", "deeper"] {
        let root = bus.path(tree);
        check_found(&bus, &root, &bus.key());
        check_found(&bus, &root.join("src"), &bus.key());
        check_given(&bus, root.to_str().unwrap(), &bus.key());
    }
}

#[test]
fn a_dot_git_that_is_no_file_or_no_path_leads_nowhere() {
    let bus = Bus::new();
    let (pipe, long) = (bus.path("pipe"), bus.path("long"));
    for folder in [&pipe, &long] {
        std::fs::create_dir(folder).unwrap();
    }
    // Nobody ever writes into it.
    assert!(std::process::Command::new("mkfifo").arg(pipe.join(".git")).status().unwrap().success());
    bus.track(&["src/a.rs"]);
    bus.git(&["worktree", "add", "-q", "../tree"]);
    let line = std::fs::read_to_string(bus.path("tree").join(".git")).unwrap();
    std::fs::write(long.join(".git"), format!("{line}{}", "\n".repeat(64 * 1024))).unwrap();
    for folder in [pipe, long] {
        check_found(&bus, &folder, &canonical(&folder));
        check_given(&bus, folder.to_str().unwrap(), &canonical(&folder));
    }
}

#[test]
fn a_file_is_the_same_claim_from_every_worktree() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.track(&["src/a.rs"]);
    bus.git(&["worktree", "add", "-q", "../tree"]);
    bus.relay("BlueLake", ["reserve", "src/a.rs"]).success();
    let inside_tree = bus.path("tree").join("src/a.rs");
    let mut command = bus.args("RedForest", ["reserve", inside_tree.to_str().unwrap()]);
    command.current_dir(bus.path("tree"));
    let answer = run(command).success().result();
    assert_eq!(answer["granted"][0]["pattern"], "src/a.rs");
    assert_eq!(answer["conflicts"][0]["holder"], "BlueLake");
}

#[test]
fn a_bare_repository_stands_for_all_its_worktrees() {
    let bus = Bus::new();
    bus.track(&["src/a.rs"]);
    for bare in ["bare.git", "hub/.git"] {
        let path = bus.path(bare);
        bus.git(&["clone", "-q", "--bare", ".", path.to_str().unwrap()]);
        let tree = bus.path(&format!("{}-tree", bare.replace('/', "-")));
        bus.git_in(&path, &["worktree", "add", "-q", tree.to_str().unwrap()]);
        let expected = canonical(&path);
        check_found(&bus, &tree.join("src"), &expected);
        check_given(&bus, tree.to_str().unwrap(), &expected);
        check_given(&bus, path.to_str().unwrap(), &expected);
        check_found(&bus, &path, &expected);
    }
}

#[test]
fn a_submodule_is_a_repository_of_its_own_and_so_are_its_worktrees() {
    let bus = Bus::new();
    bus.track(&["src/a.rs"]);
    let source = bus.repo();
    let outer = bus.path("outer");
    std::fs::create_dir(&outer).unwrap();
    bus.git_in(&outer, &["init", "-q", "-b", "main"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source.to_str().unwrap(), "inner"];
    bus.git_in(&outer, &add);
    let inner = outer.join("inner");
    let tree = bus.path("inner-tree");
    bus.git_in(&inner, &["worktree", "add", "-q", tree.to_str().unwrap()]);
    check_found(&bus, &inner, &canonical(&inner));
    check_given(&bus, inner.to_str().unwrap(), &canonical(&inner));
    check_found(&bus, &tree, &canonical(&inner));
    check_given(&bus, tree.to_str().unwrap(), &canonical(&inner));
}

#[test]
fn a_given_subdirectory_stays_its_own_project_and_a_found_one_does_not() {
    let bus = Bus::new();
    bus.track(&["crates/core/a.rs"]);
    bus.git(&["worktree", "add", "-q", "../tree"]);
    for folder in [bus.repo().join("crates/core"), bus.path("tree").join("crates/core")] {
        check_given(&bus, folder.to_str().unwrap(), &canonical(&folder));
        check_found(&bus, &folder, &bus.key());
    }
}

#[test]
fn a_given_folder_needs_no_repository() {
    let bus = Bus::new();
    std::fs::create_dir(bus.path("plain")).unwrap();
    let plain = bus.path("plain");
    check_given(&bus, plain.to_str().unwrap(), &canonical(&plain));
}

#[test]
fn without_a_given_project_and_outside_every_repository_there_is_none() {
    let bus = Bus::new();
    let error = start_from(&bus, &bus.path(""), None).fails("PROJECT_UNRESOLVED").error();
    assert!(!error["playbook"].as_array().unwrap().is_empty());
    assert!(!bus.home().exists());
}

#[test]
fn a_path_that_names_no_folder_is_refused_and_leaves_nothing_behind() {
    let bus = Bus::new();
    std::fs::write(bus.path("file"), "").unwrap();
    std::os::unix::fs::symlink(bus.path("nowhere"), bus.path("dangling")).unwrap();
    let under = |name: &str| bus.path(name).to_str().unwrap().to_owned();
    for path in ["", "repo", "./repo", &under("missing"), &under("file"), &under("dangling")] {
        start_from(&bus, &bus.path(""), Some(path)).fails("PROJECT_KEY_INVALID");
    }
    assert!(!bus.home().exists());
}

#[test]
fn a_moved_repository_takes_its_history_with_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let (old, before) = (bus.key(), bus.events(0));
    std::fs::rename(bus.repo(), bus.path("new-home")).unwrap();
    std::fs::create_dir(bus.repo()).unwrap();
    let new = canonical(&bus.path("new-home"));
    let moved = bus.relay("", ["project", "move", &format!("{old}/"), &new]).success().result();
    assert_eq!((text(&moved["from"]), text(&moved["to"])), (old.clone(), new.clone()));

    let log = bus.relay("", ["look", "events", "--after", "0", "--project", &new]).success().result();
    let log = log["events"].as_array().unwrap();
    assert_eq!(log[..before.len()], before[..]);
    assert_eq!(log[before.len()]["kind"], "project_moved");
    let held = bus.relay("", ["reservations", "--project", &new]).success().result();
    assert_eq!(held["reservations"][0]["holder"], "BlueLake");
    bus.relay("BlueLake", ["release", "--all", "--project", &new]).success();
    bus.relay("BlueLake", ["release", "--all", "--project", &old]).fails("AGENT_NOT_REGISTERED");
    let listed = bus.relay("", ["project", "list"]).success().result();
    assert_eq!(column(&listed["projects"], "key"), [new]);
}

#[test]
fn a_move_needs_a_history_to_move_and_a_place_without_one() {
    let bus = Bus::with(&["BlueLake"]);
    let missing = bus.path("missing").to_str().unwrap().to_owned();
    std::fs::create_dir(bus.path("other")).unwrap();
    let other = canonical(&bus.path("other"));
    bus.relay("RedForest", ["start", "--project", &other]).success();
    let before = bus.events(0);
    for (old, new) in [(&missing, &bus.key()), (&bus.key(), &other), (&bus.key(), &missing), (&"repo".into(), &other)] {
        bus.relay("", ["project", "move", old, new]).fails("PROJECT_KEY_INVALID");
    }
    assert_eq!(bus.events(0), before);
}
