//! One checkout, several agents: whoever moves it is warned, whoever stands on it is told, and nobody's work is lost.

use super::agent::{Agent, claims};
use super::identity::known;
use crate::bus::Bus;

fn text(bus: &Bus, path: &str) -> String {
    std::fs::read_to_string(bus.repo().join(path)).unwrap()
}

fn commit(bus: &Bus) -> String {
    String::from_utf8(bus.git(&["rev-parse", "HEAD"]).stdout).unwrap().trim().to_owned()
}

#[test]
fn a_command_that_moves_the_checkout_is_warned_of_what_others_have_in_it_and_holds_it_meanwhile() {
    let bus = known();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    let (name, other) = (one.name(), two.name());
    two.before_shell("git stash").silent();
    assert_eq!(claims(&bus), [""; 0], "nobody has anything to lose");
    two.after_shell("git stash");
    one.edits("src/a.rs", "one\n");
    let said = two.before_shell("cd src && git checkout -q -b feature");
    let context = said.context();
    assert!(context.contains(&format!("- {name}: src/a.rs")) && context.contains("git worktree add"), "{context}");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs"), format!("{other} res:git")]);
    let third = Agent::claude(&bus, "three");
    let said = third.before_shell("git reset --hard");
    assert!(said.context().contains(&format!("{other} holds res:git")), "{}", said.context());
    third.after_shell("git reset --hard");
    two.after_shell("cd src && git checkout -q -b feature");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs")]);
    one.before_shell("git stash").silent();
    one.after_shell("git stash");
}

#[test]
fn by_configuration_such_a_command_is_denied() {
    let bus = known();
    std::fs::write(bus.home().join("config.toml"), "[hooks]\nedit = \"deny\"\n").unwrap();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    one.edits("src/a.rs", "one\n");
    two.starts();
    let (before, after) = two.runs("git reset -q --hard");
    assert!(before.denied().unwrap().contains("not committed"));
    assert!(after.is_none());
    assert_eq!(text(&bus, "src/a.rs"), "one\n");
    assert_eq!(claims(&bus), [format!("{} src/a.rs", one.name())], "what does not run holds nothing");
}

#[test]
fn an_agent_is_told_once_that_head_moved_under_it_and_not_when_it_moved_it_itself() {
    let bus = known();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    let before = commit(&bus);
    one.edits("src/a.rs", "one\n");
    let (_, after) = one.runs("git commit -q -am one && git checkout -q -b feature");
    after.unwrap().silent();
    one.hears_the_user().silent();
    let now = commit(&bus);
    let said = two.before_edit("src/b.rs");
    let expected = format!(
        "HEAD moved under you. This checkout was on main at {} and is on feature at {}",
        &before[..8],
        &now[..8]
    );
    assert!(said.context().contains(&expected), "{}", said.context());
    two.hears_the_user().silent();
}

#[test]
fn in_a_worktree_of_its_own_an_agent_shares_the_bus_and_not_the_checkout() {
    let bus = known();
    let tree = bus.path("tree");
    bus.git(&["worktree", "add", "-q", "-b", "other", tree.to_str().unwrap()]);
    let one = Agent::claude(&bus, "one");
    let two = Agent { cwd: tree.clone(), ..Agent::codex(&bus, "two") };
    one.starts();
    two.starts();
    let (name, other) = (one.name(), two.name());
    one.edits("src/a.rs", "one\n");
    two.before_shell("git reset --hard").silent();
    two.after_shell("git reset --hard");
    assert!(two.before_edit("src/a.rs").context().contains(&name), "they would meet in a merge");
    two.runs("printf x > src/b.rs");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs"), format!("{other} src/b.rs")]);
    one.runs("git commit -q -am one");
    two.hears_the_user().silent();
}

/// Two agents each add their line to the same file, from what they read at the same time, and one moves the checkout. Without
/// anybody between them the last one wins.
fn clobber(bus: &Bus) -> String {
    let read = text(bus, "src/a.rs");
    std::fs::write(bus.repo().join("src/a.rs"), format!("{read}from one\n")).unwrap();
    std::fs::write(bus.repo().join("src/a.rs"), format!("{read}from two\n")).unwrap();
    text(bus, "src/a.rs")
}

#[test]
fn the_clobber_that_happens_without_relay_does_not_happen_with_it() {
    let without = Bus::new();
    without.track(&["src/a.rs"]);
    assert_eq!(clobber(&without), "line\nfrom two\n", "the work of one is lost");

    let bus = known();
    std::fs::write(bus.home().join("config.toml"), "[hooks]\nedit = \"deny\"\n[guard]\nmode = \"block\"\n").unwrap();
    bus.relay("", ["guard", "install"]).success();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    let (name, other) = (one.name(), two.name());
    let read = text(&bus, "src/a.rs");
    one.edits("src/a.rs", &format!("{read}from one\n"));
    // The edit is met at the edit.
    let (before, after) = two.edits("src/a.rs", &format!("{read}from two\n"));
    assert!(before.denied().unwrap().contains(&name) && after.is_none());
    // It asks, and the question is in the other's next turn.
    let ask = ["send", "--to", &name, "--subject", "src/a.rs: may I?", "--body", "When are you done?"];
    bus.relay(&other, ask).success();
    assert!(one.after_shell("true").context().contains("When are you done?"));
    // Its shell writes what is its own, and what it commits is its own.
    two.runs("printf 'from two\\n' > src/b.rs");
    let mut commit = std::process::Command::new("git");
    bus.environment(&mut commit);
    let who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
    let output =
        commit.env("CODEX_SESSION_ID", "two").args(who).args(["commit", "-q", "-am", "everything"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && complaint.contains("src/a.rs"), "{complaint}");
    // One finishes and hands over.
    one.runs("git commit -q -m one src/a.rs");
    one.stops();
    let done = [
        "send",
        "--to",
        &other,
        "--reply-to",
        &bus.relay(&name, ["poll"]).success().result()["messages"][0]["id"].to_string(),
        "--body",
        "Done, it is yours.",
    ];
    bus.relay(&name, done).success();
    one.ends();
    assert!(two.hears_the_user().context().contains("it is yours"));
    let read = text(&bus, "src/a.rs");
    let (before, after) = two.edits("src/a.rs", &format!("{read}from two\n"));
    assert!(before.denied().is_none() && after.is_some());
    two.runs("git commit -q -am two");
    assert_eq!(text(&bus, "src/a.rs"), "line\nfrom one\nfrom two\n");
    assert_eq!(text(&bus, "src/b.rs"), "from two\n");
    two.ends();
    assert_eq!(claims(&bus), [""; 0]);
}

#[test]
fn a_checkout_that_an_agent_holds_for_longer_stays_its_own() {
    let bus = known();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    let (name, other) = (one.name(), two.name());
    one.edits("src/a.rs", "one\n");
    bus.relay(&other, ["reserve", "res:git", "--ttl", "2h"]).success();
    two.before_shell("git checkout -q -b x");
    two.after_shell("git checkout -q -b x");
    assert_eq!(claims(&bus), [format!("{name} src/a.rs"), format!("{other} res:git")]);
}

#[test]
fn a_move_of_files_that_nobody_holds_disturbs_nobody() {
    let bus = known();
    let (one, two) = (Agent::claude(&bus, "one"), Agent::codex(&bus, "two"));
    one.starts();
    two.starts();
    one.edits("src/a.rs", "one\n");
    two.before_shell("git checkout -- src/b.rs").silent();
    two.after_shell("git checkout -- src/b.rs");
    assert!(two.before_shell("git checkout -- src").context().contains("src/a.rs"));
}

#[test]
fn a_head_that_moved_is_told_to_the_deaf_later_and_to_no_one_who_moved_it() {
    let bus = known();
    let one = Agent::claude(&bus, "one");
    one.starts();
    bus.git(&["commit", "-q", "--allow-empty", "-m", "by a person"]);
    one.stops_again().silent();
    assert!(one.hears_the_user().context().contains("HEAD moved under you"), "it could not hear it before");
    one.before_shell("sleep 60");
    bus.git(&["commit", "-q", "--allow-empty", "-m", "by a person again"]);
    assert!(one.after_shell("sleep 60").context().contains("HEAD moved under you"), "its command was no git");
    let child = one.sub("a1", "Explore");
    child.runs("git commit -q --allow-empty -m 'by a child'");
    one.hears_the_user().silent();
}

#[test]
fn work_trees_that_would_conflict_are_told_once_when_the_user_speaks() {
    let bus = known();
    let tree = bus.path("tree");
    bus.git(&["worktree", "add", "-q", "-b", "other", tree.to_str().unwrap()]);
    let one = Agent::claude(&bus, "one");
    one.starts();
    one.hears_the_user().silent();
    std::fs::write(tree.join("src/a.rs"), "there\n").unwrap();
    std::fs::write(bus.repo().join("src/a.rs"), "here\n").unwrap();
    let said = one.hears_the_user();
    assert!(
        said.context().contains("- other: src/a.rs") && said.context().contains("relay check"),
        "{}",
        said.context()
    );
    one.hears_the_user().silent();
    std::fs::write(tree.join("src/a.rs"), "line\n").unwrap();
    one.hears_the_user().silent();
}
