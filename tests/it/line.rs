//! `relay log --line PATH:N`: who held the path when that line was changed.

use serde_json::Value;

use crate::bus::{Bus, EPOCH, Run, hours, minutes};

/// A commit whose author wrote it at this time, as the test's clock shows it.
fn commit(bus: &Bus, file: &str, text: &str, subject: &str) {
    let path = bus.repo().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    commit_all(bus, subject);
}

fn commit_all(bus: &Bus, subject: &str) {
    bus.git(&["add", "-A"]);
    let date = format!("--date=@{} +0000", bus.now() / 1_000);
    bus.git(&["commit", "-q", "-m", subject, &date]);
}

fn line(bus: &Bus, place: &str) -> Value {
    bus.relay("", ["log", "--line", place]).success().result()
}

/// Holder, pattern and generation of everybody who held it.
fn holders(found: &Value) -> Vec<String> {
    let shown = |held: &Value| {
        format!(
            "{} {} {}",
            held["holder"].as_str().unwrap(),
            held["pattern"].as_str().unwrap(),
            held["generation"].as_u64().unwrap()
        )
    };
    found["held"].as_array().unwrap().iter().map(shown).collect()
}

#[test]
fn a_line_leads_to_its_commit_and_to_who_held_the_path_then() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenHill"]);
    commit(&bus, "src/a.rs", "one\ntwo\nthree\n", "Three lines");
    bus.advance(minutes(10));
    bus.relay("BlueLake", ["reserve", "src/**", "--reason", "bd-1", "--ttl", "30m"]).success();
    bus.relay("GreenHill", ["reserve", "docs", "--reason", "bd-1"]).success();
    let letter = bus.send("BlueLake", "RedForest", "bd-1", "Login: I take a.rs");
    bus.advance(minutes(10));
    commit(&bus, "src/a.rs", "one\ntwo, better\nthree\n", "A better second line");
    bus.relay("RedForest", ["reserve", "src/a.rs", "--shared"]).success();
    bus.advance(minutes(5));
    commit(&bus, "src/a.rs", "zero\none\ntwo, better\nthree\n", "A line before");
    bus.relay("BlueLake", ["release", "src/**"]).success();
    bus.advance(minutes(1));
    bus.send("BlueLake", "RedForest", "bd-1", "Login: done");
    commit(&bus, "src/b.rs", "b\n", "Another file");

    let found = line(&bus, "src/a.rs:3");
    assert_eq!(found["change"]["subject"], "A better second line");
    assert_eq!(found["change"]["author"], "Test <test@example.invalid>");
    assert_eq!(found["change"]["at"], "2026-11-15T00:20:00.000Z");
    assert_eq!(found["change"]["edited"], false);
    let commit = bus.git(&["rev-parse", "HEAD~2"]).stdout;
    assert_eq!(found["change"]["commit"], String::from_utf8(commit).unwrap().trim());
    // RedForest's claim came within the same second, and a commit knows its time no better.
    assert_eq!(holders(&found), ["BlueLake src/** 0", "RedForest src/a.rs 0"]);
    assert_eq!(found["held"][0]["reason"], "bd-1");
    assert_eq!(found["held"][0]["from"], "2026-11-15T00:10:00.000Z");
    assert_eq!(found["held"][0]["until"], "2026-11-15T00:25:00.000Z");
    assert_eq!(found["held"][0]["end"], "release");
    let messages: Vec<_> = found["messages"].as_array().unwrap().iter().map(|message| &message["id"]).collect();
    assert_eq!(messages, [&Value::from(letter)]);

    assert_eq!(line(&bus, "src/a.rs:1")["change"]["subject"], "A line before");
    let first = line(&bus, "src/a.rs:2");
    assert_eq!((holders(&first).len(), &first["change"]["subject"]), (0, &"Three lines".into()));
    assert_eq!(first["last"], Value::Null);
    assert_eq!(holders(&line(&bus, "src/b.rs:1")), ["RedForest src/a.rs 0"; 0]);
    assert_eq!(line(&bus, "src/b.rs:1")["last"]["holder"], "BlueLake", "it was given back a minute before");
    let told = bus.text("", ["log", "--line", "src/a.rs:3"]).success().stdout;
    assert!(told.contains("BlueLake held it: #"), "{told}");
    assert!(told.contains("for bd-1, from 2026-11-15T00:10:00Z until its release at"), "{told}");
    let told = bus.text("", ["log", "--line", "src/b.rs:1"]).success().stdout;
    assert!(told.contains("Nobody held it then.\nThe last before was BlueLake"), "{told}");
    // Nobody can say who worked there before relay came.
    let date = format!("--date=@{} +0000", (EPOCH - hours(1)) / 1_000);
    std::fs::write(bus.repo().join("c.rs"), "c\n").unwrap();
    bus.git(&["add", "-A"]);
    bus.git(&["commit", "-q", "-m", "Before relay", &date]);
    assert_eq!(line(&bus, "c.rs:1")["begins"], "2026-11-15T00:00:00.000Z");
    let told = bus.text("", ["log", "--line", "c.rs:1"]).success().stdout;
    assert!(told.ends_with("Nobody held it then.\nThe history begins later, 2026-11-15T00:00:00Z: who worked on it before is not on record.\n"), "{told}");
}

#[test]
fn a_claim_counts_until_it_expires_and_for_whoever_took_it_over() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let claim = bus.relay("BlueLake", ["reserve", "src", "--ttl", "1h"]).success().result();
    let id = claim["granted"][0]["id"].to_string();
    bus.advance(minutes(11));
    bus.relay("RedForest", ["release", "--id", &id, "--force", "--why", "BlueLake is gone"]).success();
    bus.advance(minutes(9));
    commit(&bus, "src/a.rs", "a\n", "Taken over");
    bus.advance(hours(3));
    commit(&bus, "src/b.rs", "b\n", "Expired");
    let taken = line(&bus, "src/a.rs:1");
    assert_eq!(holders(&taken), ["RedForest src 1"]);
    let expired = line(&bus, "src/b.rs:1");
    assert_eq!((holders(&expired).len(), &expired["last"]["end"]), (0, &"expiry".into()));
}

#[test]
fn a_renamed_file_is_held_by_the_name_that_it_had() {
    let bus = Bus::with(&["BlueLake"]);
    bus.relay("BlueLake", ["reserve", "old/a.rs"]).success();
    let text: String = (0..40).map(|number| format!("line {number}\n")).collect();
    commit(&bus, "old/a.rs", &text, "Here");
    bus.advance(hours(5));
    std::fs::create_dir(bus.repo().join("new")).unwrap();
    std::fs::rename(bus.repo().join("old/a.rs"), bus.repo().join("new/a.rs")).unwrap();
    commit_all(&bus, "There");
    let found = line(&bus, "new/a.rs:7");
    assert_eq!(
        (&found["change"]["subject"], holders(&found)),
        (&"Here".into(), vec!["BlueLake old/a.rs 0".to_owned()])
    );
}

/// The message of a refusal.
fn refused(run: Run) -> String {
    run.fails("INPUT_INVALID").error()["message"].as_str().unwrap().to_owned()
}

#[test]
fn where_no_commit_can_be_named_the_answer_says_why() {
    let bus = Bus::with(&["BlueLake"]);
    let ask = |place: &str| bus.relay("BlueLake", ["log", "--line", place]);
    assert!(refused(ask("src/a.rs:1")).contains("nothing is committed on main in "));
    commit(&bus, "src/a.rs", "one\ntwo\n", "Two lines");
    std::fs::write(bus.repo().join("src/a.rs"), "one\n2\nthree\n").unwrap();
    std::fs::write(bus.repo().join("src/new.rs"), "new\n").unwrap();
    std::os::unix::fs::symlink("a.rs", bus.repo().join("src/link.rs")).unwrap();
    for (place, said) in [
        (
            "src/a.rs:3",
            "line 3 of src/a.rs was added in the working tree and is not committed yet; `relay reservations src/a.rs`",
        ),
        ("src/a.rs:4", "src/a.rs has 3 lines in the working tree, and no line 4"),
        ("src/new.rs:1", "src/new.rs is in the working tree and not in HEAD ("),
        ("src/link.rs:1", "src/link.rs is in the working tree and not in HEAD ("),
        ("src/no.rs:1", "there is no src/no.rs, neither in HEAD ("),
        ("src:1", "src is a folder in HEAD ("),
        (".:1", "is the project itself"),
    ] {
        let message = refused(ask(place));
        assert!(message.contains(said), "{place}: {message}");
    }
    for place in ["src/a.rs", "src/a.rs:", "src/a.rs:0", "src/a.rs:x", ":3", "src/a.rs:-1", "src/a.rs:99999999999"] {
        assert!(refused(ask(place)).contains("names no line"), "{place}");
    }
    for place in ["../a.rs:1", "src/../../a.rs:1", "/elsewhere/a.rs:1"] {
        ask(place).fails("PATTERN_OUTSIDE_PROJECT");
    }
    assert_eq!(line(&bus, "src/a.rs:1")["change"]["edited"], false);
    assert_eq!(line(&bus, "src/a.rs:2")["change"]["edited"], true);
    ask("src/a.rs:1").success();
    bus.relay("BlueLake", ["log", "--line", "src/a.rs:1", "--by", "BlueLake"]).fails("INPUT_INVALID");
    // Outside any repository there are no commits.
    std::fs::create_dir(bus.path("plain")).unwrap();
    let plain = bus.path("plain").to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &plain]).success();
    let message = refused(bus.relay("RedForest", ["log", "--line", "a:1", "--project", &plain]));
    assert!(message.contains("is in no git repository"), "{message}");
}

/// The line of the working tree, by path and number, and the commit that is named for it; `edited` where it reads otherwise
/// there than in HEAD.
#[track_caller]
fn check(bus: &Bus, place: &str, committed_line: u32, subject: &str, edited: bool) {
    let change = &line(bus, place)["change"];
    let found = (change["committed_line"].as_u64(), change["subject"].as_str(), change["edited"].as_bool());
    assert_eq!(found, (Some(committed_line.into()), Some(subject), Some(edited)), "{place}");
}

#[test]
fn a_line_is_counted_as_the_working_tree_has_it() {
    let bus = Bus::with(&["BlueLake"]);
    commit(&bus, "src/a.rs", "one\ntwo\nthree\nfour", "First");
    commit(&bus, "src/a.rs", "one\ntwo\nthree\n4\n", "Fourth");
    check(&bus, "src/a.rs:4", 4, "Fourth", false);
    // Two lines above, the second is gone, the third is another.
    std::fs::write(bus.repo().join("src/a.rs"), "a\nb\none\n3\n4").unwrap();
    for (number, committed, subject, edited) in [(3, 1, "First", false), (4, 2, "First", true), (5, 4, "Fourth", false)]
    {
        check(&bus, &format!("src/a.rs:{number}"), committed, subject, edited);
    }
    let told = bus.text("", ["log", "--line", "src/a.rs:5"]).success().stdout;
    assert!(told.starts_with("src/a.rs:5, line 4 in HEAD, was last changed by "), "{told}");
    let added = refused(bus.relay("", ["log", "--line", "src/a.rs:1"]));
    assert!(added.contains("line 1 of src/a.rs was added in the working tree"), "{added}");
    // What is only staged is not committed either.
    bus.git(&["add", "-A"]);
    assert_eq!(refused(bus.relay("", ["log", "--line", "src/a.rs:1"])), added);
    // The name that it has now is no name in HEAD.
    bus.git(&["mv", "src/a.rs", "src/b.rs"]);
    assert!(
        refused(bus.relay("", ["log", "--line", "src/b.rs:1"]))
            .contains("src/b.rs is in the working tree and not in HEAD")
    );
    // Of a file that is not checked out, HEAD's lines are all there are.
    check(&bus, "src/a.rs:4", 4, "Fourth", false);
    assert!(refused(bus.relay("", ["log", "--line", "src/a.rs:5"])).contains("has 4 lines as HEAD ("));
}

#[test]
fn a_line_is_the_same_however_its_path_is_written_and_its_file_is_checked_out() {
    let bus = Bus::with(&["BlueLake"]);
    commit(&bus, ".gitattributes", "*.txt text eol=crlf\n*.up filter=up\n", "Attributes");
    bus.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    bus.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    commit(&bus, "app/[id].rs", "one\ntwo\n", "Brackets");
    commit(&bus, "a.txt", "one\r\ntwo\r\n", "Windows");
    commit(&bus, "a.up", "one\ntwo\n", "Filtered");
    commit(&bus, "a.bin", "\0\u{1}\n\0\n", "Binary");
    std::fs::remove_file(bus.repo().join("a.up")).unwrap();
    bus.git(&["checkout", "-q", "."]);
    assert_eq!(std::fs::read_to_string(bus.repo().join("a.up")).unwrap(), "ONE\nTWO\n");
    std::os::unix::fs::symlink("a.bin", bus.repo().join("link")).unwrap();
    commit_all(&bus, "Link");
    for place in ["app/[id].rs:2", "./app/[id].rs:2", "app/../app//[id].rs:2", "x/../app/./[id].rs:2"] {
        check(&bus, place, 2, "Brackets", false);
    }
    check(&bus, &format!("{}/x/../app/[id].rs:2", bus.key()), 2, "Brackets", false);
    check(&bus, "a.txt:2", 2, "Windows", false);
    check(&bus, "a.up:2", 2, "Filtered", false);
    check(&bus, "a.bin:2", 2, "Binary", false);
    assert!(refused(bus.relay("", ["log", "--line", "link:1"])).contains("link is a symbolic link in HEAD"));
    // A branch without a commit is not a repository without one.
    bus.git(&["checkout", "-q", "--orphan", "fresh"]);
    assert!(refused(bus.relay("", ["log", "--line", "a.txt:1"])).contains("nothing is committed on fresh in "));
}

#[test]
fn whoever_is_in_a_linked_worktree_asks_for_what_is_checked_out_there() {
    let bus = Bus::with(&["BlueLake"]);
    commit(&bus, "src/a.rs", "one\n", "One");
    let linked = bus.path("linked");
    bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    std::fs::write(linked.join("src/a.rs"), "two\n").unwrap();
    bus.git_in(&linked, &["commit", "-q", "-a", "-m", "Two"]);
    let asked = |folder: &std::path::Path, args: &[&str]| {
        let mut command = bus.args("BlueLake", [&["log", "--line", "src/a.rs:1"], args].concat());
        command.current_dir(folder);
        crate::bus::run(command).success().result()["change"]["subject"].clone()
    };
    let (main, named) = (bus.key(), linked.to_str().unwrap());
    assert_eq!(asked(&bus.repo(), &[]), "One");
    assert_eq!(asked(&linked, &[]), "Two");
    assert_eq!(asked(&linked.join("src"), &[]), "Two");
    assert_eq!(
        asked(&linked, &["--project", &main]),
        "Two",
        "the project's key is the main worktree's path everywhere"
    );
    assert_eq!(asked(&bus.repo(), &["--project", named]), "Two");
    assert_eq!(asked(&bus.path(""), &["--project", &main]), "One");
}

#[test]
fn a_shallow_clone_says_that_it_does_not_know() {
    let bus = Bus::new();
    commit(&bus, "a.rs", "one\ntwo\n", "First");
    commit(&bus, "a.rs", "one\n2\n", "Second");
    let source = format!("file://{}", bus.key());
    bus.git_in(&bus.path(""), &["clone", "-q", "--depth", "1", &source, "clone"]);
    let clone = bus.path("clone").to_str().unwrap().to_owned();
    bus.relay("BlueLake", ["start", "--project", &clone]).success();
    let ask = |place: &str| bus.relay("BlueLake", ["log", "--line", place, "--project", &clone]);
    assert!(refused(ask("a.rs:1")).contains("this clone is shallow"));
    std::fs::write(bus.path("clone/a.rs"), "one\n2\nthree\n").unwrap();
    bus.git_in(&bus.path("clone"), &["commit", "-q", "-a", "-m", "Third"]);
    assert_eq!(ask("a.rs:3").success().result()["change"]["subject"], "Third");
    assert!(refused(ask("a.rs:2")).contains("this clone is shallow"));
}

#[test]
fn a_partial_clone_says_what_brings_the_rest() {
    let bus = Bus::new();
    commit(&bus, "a.rs", "one\ntwo\n", "First");
    commit(&bus, "a.rs", "one\n2\n", "Second");
    bus.git(&["config", "uploadpack.allowFilter", "true"]);
    let source = format!("file://{}", bus.key());
    bus.git_in(&bus.path(""), &["clone", "-q", "--filter=blob:none", &source, "clone"]);
    let clone = bus.path("clone").to_str().unwrap().to_owned();
    bus.relay("BlueLake", ["start", "--project", &clone]).success();
    let ask = || bus.relay("BlueLake", ["log", "--line", "a.rs:1", "--project", &clone]);
    assert!(refused(ask()).contains("this clone is partial"));
    bus.git_in(&bus.path("clone"), &["blame", "--", "a.rs"]);
    assert_eq!(ask().success().result()["change"]["subject"], "First");
}

#[test]
fn folders_of_a_repository_linked_worktrees_and_bare_repositories_are_read_alike() {
    let bus = Bus::with(&["BlueLake"]);
    commit(&bus, "app/src/a.rs", "one\n", "One");
    let folder = bus.repo().join("app").to_str().unwrap().to_owned();
    bus.relay("BlueLake", ["start", "--project", &folder]).success();
    bus.relay("BlueLake", ["reserve", "src/a.rs", "--project", &folder]).success();
    let asked = bus.relay("BlueLake", ["log", "--line", "src/a.rs:1", "--project", &folder]).success().result();
    assert_eq!(holders(&asked), ["BlueLake src/a.rs 0"]);
    // What another worktree has checked out is asked for by its path.
    let linked = bus.path("linked");
    bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    std::fs::write(linked.join("app/src/a.rs"), "two\n").unwrap();
    bus.git_in(&linked, &["commit", "-q", "-a", "-m", "Two"]);
    let there = std::fs::canonicalize(&linked).unwrap().join("app/src/a.rs:1");
    for (place, subject) in [("app/src/a.rs:1", "One"), (there.to_str().unwrap(), "Two")] {
        assert_eq!(line(&bus, place)["change"]["subject"], subject, "{place}");
    }
    bus.git_in(&bus.path(""), &["clone", "-q", "--bare", "repo", "bare"]);
    let bare = bus.path("bare").to_str().unwrap().to_owned();
    bus.relay("RedForest", ["start", "--project", &bare]).success();
    let asked = bus.relay("RedForest", ["log", "--line", "app/src/a.rs:1", "--project", &bare]).success().result();
    assert_eq!((&asked["change"]["subject"], &asked["change"]["edited"]), (&"One".into(), &false.into()));
    assert_eq!(bus.now(), EPOCH);
}
