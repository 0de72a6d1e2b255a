//! `relay check`: what is changed in the work trees, held against what is claimed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::bus::{Bus, Run, minutes};
use crate::listening::Server;
use crate::unchanged::refused;

/// BlueLake and RedForest, and a commit of some files.
fn bus() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.track(&["src/a.rs", "src/b.rs", "docs/c.md"]);
    bus.advance(minutes(1));
    bus
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn linked(bus: &Bus, name: &str) -> PathBuf {
    let folder = bus.path(name);
    bus.git(&["worktree", "add", "-q", "-b", name, folder.to_str().unwrap()]);
    std::fs::canonicalize(folder).unwrap()
}

fn check(bus: &Bus, agent: &str, paths: &[&str]) -> Run {
    let run = bus.relay(agent, [&["check"], paths].concat()).success();
    assert_eq!(run.result()["unseen"], serde_json::json!([]));
    run
}

/// One field of every row.
fn column(rows: &Value, field: &str) -> Vec<String> {
    rows.as_array().unwrap().iter().map(|row| row[field].as_str().unwrap().to_owned()).collect()
}

fn reserve(bus: &Bus, agent: &str, pattern: &str) -> u64 {
    bus.relay(agent, ["reserve", pattern]).success().result()["granted"][0]["id"].as_u64().unwrap()
}

#[test]
fn what_is_changed_under_no_claim_is_told_with_the_command_that_claims_it() {
    let bus = bus();
    write(&bus.repo(), "src/a.rs", "changed\n");
    write(&bus.repo(), "app/[id]/page.tsx", "new\n");
    std::fs::remove_file(bus.repo().join("docs/c.md")).unwrap();
    let run = check(&bus, "BlueLake", &[]);
    let found = run.result();
    assert_eq!(column(&found["outside"], "path"), ["app/[id]/page.tsx", "docs/c.md", "src/a.rs"]);
    assert_eq!(column(&found["outside"], "kind"), ["untracked", "deleted", "modified"]);
    assert_eq!(column(&found["outside"], "worktree"), [bus.key(), bus.key(), bus.key()]);
    assert_eq!(found["worktrees"][0]["changed"], 3);
    assert_eq!(found["worktrees"][0]["branch"], "main");
    assert_eq!(run.signals(), ["DIRTY_OUTSIDE_CLAIM"]);
    let next = run.json()["next"][0].as_str().unwrap().to_owned();
    assert_eq!(next, "relay reserve 'app/\\[id]/page.tsx' docs/c.md src/a.rs --agent BlueLake");
    bus.relay("BlueLake", ["reserve", "app/\\[id]/page.tsx", "docs/c.md", "src/a.rs"]).success();
    let found = check(&bus, "BlueLake", &[]);
    assert_eq!((found.result()["outside_total"].as_u64(), found.signals().len()), (Some(0), 0));
}

#[test]
fn what_is_changed_under_claims_of_others_names_them() {
    let bus = bus();
    let theirs = reserve(&bus, "RedForest", "src/**");
    write(&bus.repo(), "src/a.rs", "changed\n");
    let found = check(&bus, "BlueLake", &[]).result();
    let inside = &found["inside"][0];
    assert_eq!((inside["id"].as_u64(), &inside["holder"]), (Some(theirs), &"RedForest".into()));
    assert_eq!((&inside["pattern"], &inside["example"]), (&"src/**".into(), &"src/a.rs".into()));
    assert_eq!((&inside["worktree"], inside["silent"].as_bool()), (&bus.key().into(), Some(false)));
    assert_eq!((found["inside_total"].as_u64(), found["outside_total"].as_u64()), (Some(1), Some(0)));
    // Whose change it is cannot be seen: to the holder it is under a claim of its own.
    assert_eq!(check(&bus, "RedForest", &[]).result()["inside_total"], 0);
    // To nobody in particular, what several hold.
    assert_eq!(check(&bus, "", &[]).result()["inside_total"], 0);
    reserve(&bus, "BlueLake", "src/a.rs");
    assert_eq!(check(&bus, "BlueLake", &[]).result()["inside_total"], 0, "it is one's own too");
    assert_eq!(column(&check(&bus, "", &[]).result()["inside"], "holder"), ["RedForest", "BlueLake"]);
    // What has expired stands in nobody's way.
    bus.advance(minutes(61));
    let found = check(&bus, "BlueLake", &[]).result();
    assert_eq!((found["inside_total"].as_u64(), found["outside_total"].as_u64()), (Some(0), Some(1)));
}

#[test]
fn a_claim_that_nobody_used_is_told_until_something_is_changed_or_committed_under_it() {
    let bus = bus();
    reserve(&bus, "BlueLake", "src/a.rs");
    reserve(&bus, "RedForest", "docs/**");
    reserve(&bus, "RedForest", "res:database");
    let untouched = || column(&check(&bus, "", &[]).result()["untouched"], "pattern");
    assert_eq!(untouched(), ["src/a.rs", "docs/**"], "the commit is older than both");
    assert_eq!(column(&check(&bus, "", &["docs"]).result()["untouched"], "pattern"), ["docs/**"]);
    let side = linked(&bus, "side");
    write(&side, "docs/new.md", "new\n");
    assert_eq!(untouched(), ["src/a.rs"], "another work tree counts too");
    bus.advance(minutes(1));
    write(&bus.repo(), "src/a.rs", "changed\n");
    bus.git(&["commit", "-q", "-a", "-m", "a change"]);
    assert_eq!(untouched(), [""; 0], "it is committed, and nothing is changed any more");
}

#[test]
fn work_trees_that_would_conflict_are_told_with_the_files() {
    let bus = bus();
    let side = linked(&bus, "side");
    write(&bus.repo(), "src/a.rs", "ours\n");
    write(&bus.repo(), "src/b.rs", "ours\n");
    assert_eq!(check(&bus, "", &[]).result()["conflicts_total"], 0);
    write(&side, "src/a.rs", "theirs\n");
    bus.git_in(&side, &["commit", "-q", "-a", "-m", "theirs"]);
    write(&side, "docs/new.md", "theirs\n");
    write(&bus.repo(), "docs/new.md", "ours\n");
    let found = check(&bus, "", &[]).result();
    let conflict = &found["conflicts"][0];
    assert_eq!(conflict["paths"], serde_json::json!(["docs/new.md", "src/a.rs"]));
    assert_eq!((&conflict["one"]["branch"], &conflict["other"]["branch"]), (&"main".into(), &"side".into()));
    assert_eq!(conflict["other"]["root"], side.to_str().unwrap());
    assert_eq!(found["conflicts_total"], 1);
    let only = check(&bus, "", &["docs"]).result();
    assert_eq!(only["conflicts"][0]["paths"], serde_json::json!(["docs/new.md"]));
    // The same seen from the other one.
    let mut command = bus.args("", ["check"]);
    command.current_dir(&side);
    assert_eq!(crate::bus::run(command).success().result()["conflicts"], found["conflicts"]);
}

#[test]
fn only_what_is_named_is_told() {
    let bus = bus();
    write(&bus.repo(), "src/a.rs", "changed\n");
    write(&bus.repo(), "docs/c.md", "changed\n");
    let outside = |paths: &[&str]| column(&check(&bus, "BlueLake", paths).result()["outside"], "path");
    assert_eq!(outside(&["src"]), ["src/a.rs"]);
    assert_eq!(outside(&["src", "docs/c.md"]), ["docs/c.md", "src/a.rs"]);
    assert_eq!(outside(&[bus.repo().join("docs").to_str().unwrap()]), ["docs/c.md"]);
    assert_eq!(outside(&["s*"]), [""; 0], "the characters of a path mean themselves");
    refused(&bus, "BlueLake", &["check", "../elsewhere"], "PATTERN_OUTSIDE_PROJECT", &["../elsewhere"]);
    let key = ["check", "--idempotency-key", "k"];
    refused(&bus, "BlueLake", &key, "INPUT_INVALID", &["relay check", "--idempotency-key"]);
}

#[test]
fn what_was_not_seen_is_said() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::remove_dir_all(bus.repo().join(".git")).unwrap();
    bus.git(&["init", "-q", "--object-format=sha256"]);
    write(&bus.repo(), "a", "new\n");
    let found = bus.relay("BlueLake", ["check"]).success().result();
    assert_eq!((&found["unseen"][0]["what"], found["outside_total"].as_u64()), (&"changes".into(), Some(0)));
    assert!(found["worktrees"][0]["changed"].is_null(), "{found}");
    let told = bus.text("BlueLake", ["check"]).success().stdout;
    assert!(told.contains("not seen changes of"), "{told}");
    // Where there is no repository there is nothing to see.
    std::fs::remove_dir_all(bus.repo().join(".git")).unwrap();
    let mut command = bus.args("BlueLake", ["check", "--project", bus.repo().to_str().unwrap()]);
    command.current_dir("/");
    assert_eq!(crate::bus::run(command).success().result()["worktrees"], serde_json::json!([]));
}

#[test]
fn a_name_that_nobody_can_claim_is_told_all_the_same() {
    let bus = bus();
    reserve(&bus, "RedForest", "src/**");
    write(&bus.repo(), "src/a\nb", "new\n");
    write(&bus.repo(), "a\nb", "new\n");
    let run = check(&bus, "BlueLake", &[]);
    assert_eq!(column(&run.result()["inside"], "example"), ["src/a\nb"]);
    assert_eq!(column(&run.result()["outside"], "path"), ["a\nb"]);
    assert_eq!(run.json()["next"], serde_json::json!([]), "there is nothing that would claim it");
    let told = bus.text("BlueLake", ["check"]).success().stdout;
    assert!(!told.contains("a\nb"), "{told}");
}

#[test]
fn a_long_list_shows_fifty_and_the_total() {
    let bus = bus();
    for number in 0..60 {
        write(&bus.repo(), &format!("new/{number:02}"), "new\n");
    }
    let found = check(&bus, "BlueLake", &[]).result();
    assert_eq!((found["outside"].as_array().unwrap().len(), found["outside_total"].as_u64()), (50, Some(60)));
    let told = bus.text("BlueLake", ["check"]).success().stdout;
    assert!(told.contains("untracked new/00 in ") && told.contains("… and 10 more"), "{told}");
    assert!(told.contains("60 changed files are under no live claim, for example new/00"), "{told}");
}

#[test]
fn a_person_reads_where_and_whose() {
    let bus = bus();
    let side = linked(&bus, "side");
    let theirs = reserve(&bus, "RedForest", "src/**");
    reserve(&bus, "RedForest", "docs");
    write(&bus.repo(), "src/a.rs", "ours\n");
    write(&side, "src/a.rs", "theirs\n");
    let told = bus.text("BlueLake", ["check"]).success().stdout;
    for said in [
        format!("{} (main): 1 changed file", bus.key()),
        format!("src/a.rs in {}: RedForest holds src/** (#{theirs}, ends in 1h)", bus.key()),
        "Claimed, and nothing changed or committed since:".to_owned(),
        format!("conflict {} (main) and {} (side), if merged now:\n  src/a.rs\n", bus.key(), side.display()),
    ] {
        assert!(told.contains(&said), "{said:?} is not in {told}");
    }
}

#[test]
fn the_status_counts_the_same() {
    let bus = bus();
    reserve(&bus, "RedForest", "src");
    write(&bus.repo(), "src/a.rs", "changed\n");
    write(&bus.repo(), "notes.md", "new\n");
    // There may be too little time on a busy machine, and then that is said.
    let mut looks = (0..100).map(|_| bus.relay("BlueLake", ["status"]).success().result()["work"].clone());
    let seen = looks.find(|work| work["unseen"] == 0).unwrap();
    assert_eq!(seen, serde_json::json!({"outside": 1, "inside": 1, "unseen": 0}));
}

#[test]
fn a_server_looks_at_the_work_trees_too() {
    let bus = bus();
    write(&bus.repo(), "src/a.rs", "changed\n");
    let server = Server::start(&bus);
    let found = crate::bus::run(server.args("BlueLake", &["check"])).success().result();
    assert_eq!(column(&found["outside"], "path"), ["src/a.rs"]);
    let mut looks = (0..100).map(|_| crate::bus::run(server.args("BlueLake", &["status"])).success().result());
    let status = looks.find(|status| status["work"]["unseen"] == 0).unwrap();
    assert_eq!(status["work"]["outside"], 1);
    assert_eq!(server.stop(), 0);
}

#[test]
fn status_counts_what_is_under_no_claim_in_a_line_of_its_own() {
    let bus = bus();
    write(&bus.repo(), "src/a.rs", "changed\n");
    let told = bus.text("BlueLake", ["status"]).success().stdout;
    assert!(told.lines().any(|line| line == "1 change under no live claim: `relay check`."), "{told}");
}
