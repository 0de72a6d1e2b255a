//! What the guard meets: whose claims count, which paths a commit and a push bring, and what is said.

use std::fs;
use std::path::Path;

use super::yard::{HELD, block, commit, edit, git, git_command, guard, guarded, warned, yard};
use crate::bus::{Bus, Run, minutes, run};
use crate::listening::Server;

/// What is staged, committed by an agent.
fn commits(bus: &Bus, agent: &str) -> Run {
    git(bus, &bus.repo(), agent, &["commit", "-m", "work"])
}

#[test]
fn a_warning_names_who_holds_what_and_lets_the_commit_go_on() {
    let bus = guarded();
    let run = commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    for words in [
        "RedForest holds src/** (#",
        ") for bd-1 until 20",
        "(in 1h): src/a.rs",
        "relay send --to RedForest --thread bd-1 --subject 'src/a.rs: both of us' --body -",
        "relay reserve src/a.rs --if-free --wait 10m",
        "relay warns; it does not block",
        "config.toml",
    ] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert_eq!(git(&bus, &bus.repo(), "", &["log", "--format=%s", "-1"]).stdout, "work\n");
    let run = commit(&bus, &bus.repo(), "BlueLake", "docs/b.md").success();
    assert!(!run.stderr.contains("relay"), "{run:?}");
}

#[test]
fn where_it_blocks_the_commit_stops_and_the_way_out_works() {
    let bus = guarded();
    block(&bus);
    let run = commit(&bus, &bus.repo(), "BlueLake", "src/a.rs");
    assert_eq!(run.status, 1);
    for words in [HELD, "relay blocks this commit", "git commit --no-verify", "release"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    assert_eq!(git(&bus, &bus.repo(), "", &["log", "--format=%s", "-1"]).stdout, "files\n");
    git(&bus, &bus.repo(), "BlueLake", &["commit", "--no-verify", "-qm", "past"]).success();
    bus.relay("RedForest", ["release", "--all"]).success();
    commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
}

#[test]
fn a_project_may_say_otherwise_than_all() {
    let bus = guarded();
    let config = |text: String| fs::write(bus.home().join("config.toml"), text).unwrap();
    let stops = || commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").status != 0;
    config(format!("[guard]\nmode = \"block\"\n[project.\"{}\".guard]\nmode = \"warn\"\n", bus.key()));
    assert!(!stops());
    config(format!("[project.\"{}\".guard]\nmode = \"block\"\n", bus.key()));
    assert!(stops());
    config("[guard]\nmode = \"warn\"\n[project.\"/elsewhere\".guard]\nmode = \"block\"\n".to_owned());
    assert!(!stops());
    // A word that is none is refused by its name, and stops nobody.
    config("[guard]\nmode = \"perhaps\"\n".to_owned());
    let run = commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    assert!(run.stderr.contains("config.toml: line 2"), "{run:?}");
    guard(&bus, &bus.repo(), "status").fails("INPUT_INVALID");
}

#[test]
fn only_the_claims_of_others_count() {
    let bus = guarded();
    block(&bus);
    commit(&bus, &bus.repo(), "RedForest", "src/a.rs").success();
    // A subagent and its parent are one.
    bus.relay("SmallFern", ["register", "--parent", "RedForest"]).success();
    commit(&bus, &bus.repo(), "SmallFern", "src/a.rs").success();
    bus.relay("SmallFern", ["reserve", "docs"]).success();
    commit(&bus, &bus.repo(), "RedForest", "docs/b.md").success();
    assert_ne!(commit(&bus, &bus.repo(), "BlueLake", "docs/b.md").status, 0);
}

#[test]
fn a_session_speaks_for_its_agent() {
    let bus = guarded();
    block(&bus);
    let mut start = bus.args("RedForest", ["start"]);
    start.env("RELAY_SESSION", "s-1");
    run(start).success();
    edit(&bus.repo(), "src/a.rs");
    let mut command = git_command(&bus, &bus.repo(), "", &["commit", "-qam", "work"]);
    command.env("RELAY_SESSION", "s-1");
    run(command).success();
}

#[test]
fn to_somebody_who_is_not_known_every_live_claim_is_anothers() {
    let bus = guarded();
    for agent in ["", "Stranger", "not a name"] {
        let run = commit(&bus, &bus.repo(), agent, "src/a.rs").success();
        assert!(warned(&run) && run.stderr.contains("No agent is known here"), "{agent}: {run:?}");
        assert!(run.stderr.contains("--body - --agent human"), "{agent}: {run:?}");
    }
    bus.relay("RedForest", ["retire"]).success();
    assert!(!warned(&commit(&bus, &bus.repo(), "RedForest", "src/a.rs").success()), "it gave everything back");
}

#[test]
fn a_holder_who_is_not_alive_stands_in_nobodys_way() {
    let bus = guarded();
    block(&bus);
    bus.advance(minutes(11));
    bus.relay("BlueLake", ["poll"]).success();
    commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    bus.relay("RedForest", ["poll"]).success();
    assert_ne!(commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").status, 0);
}

#[test]
fn an_expired_and_a_shared_claim_stand_in_nobodys_way() {
    let bus = yard();
    bus.relay("", ["guard", "install"]).success();
    block(&bus);
    bus.relay("RedForest", ["release", "--all"]).success();
    bus.relay("RedForest", ["reserve", "src/**", "--shared"]).success();
    commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success();
    bus.relay("RedForest", ["reserve", "docs", "--ttl", "2m"]).success();
    assert_ne!(commit(&bus, &bus.repo(), "BlueLake", "docs/b.md").status, 0);
    bus.advance(minutes(3));
    assert!(!warned(&commits(&bus, "BlueLake").success()));
}

#[test]
fn only_what_is_committed_counts() {
    let bus = guarded();
    block(&bus);
    // Dirty, but not staged.
    edit(&bus.repo(), "src/a.rs");
    edit(&bus.repo(), "docs/b.md");
    git(&bus, &bus.repo(), "", &["add", "docs"]).success();
    commits(&bus, "BlueLake").success();
    // Staged, but another path is committed: git makes an index for that.
    edit(&bus.repo(), "docs/b.md");
    git(&bus, &bus.repo(), "", &["add", "-A"]).success();
    git(&bus, &bus.repo(), "BlueLake", &["commit", "-m", "part", "--", "docs/b.md"]).success();
    edit(&bus.repo(), "docs/b.md");
    git(&bus, &bus.repo(), "", &["reset", "-q"]).success();
    // Nothing staged, and all of it committed: another index once more.
    assert_ne!(git(&bus, &bus.repo(), "BlueLake", &["commit", "-am", "all"]).status, 0);
    let from_below = git(&bus, &bus.repo().join("docs"), "BlueLake", &["commit", "-am", "all"]);
    assert_ne!(from_below.status, 0);
    git(&bus, &bus.repo().join("docs"), "BlueLake", &["commit", "-m", "part", "b.md"]).success();
}

#[test]
fn paths_are_told_as_they_are() {
    for (claim, path, shown) in [
        ("od d", "od d/a b.rs", "od d/a b.rs"),
        ("odd", "odd/a\nb.rs", "odd/a\\nb.rs"),
        ("app", "app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("-dash", "-dash/x", "-dash/x"),
        ("ünï", "ünï/ç.rs", "ünï/ç.rs"),
        ("odd", "odd/\u{1b}[31m.rs", "odd/\\u{1b}[31m.rs"),
    ] {
        let bus = guarded();
        bus.relay("RedForest", ["reserve", "--reason", "bd-2", &format!("./{claim}")]).success();
        let run = commit(&bus, &bus.repo(), "BlueLake", path).success();
        let line = run.stderr.lines().find(|line| line.contains("RedForest holds")).unwrap_or_default().to_owned();
        assert!(line.ends_with(&format!(": {shown}")), "{path:?}: {}", run.stderr);
    }
}

#[test]
fn a_rename_and_a_deletion_touch_what_was_there() {
    let bus = guarded();
    block(&bus);
    git(&bus, &bus.repo(), "", &["mv", "src/a.rs", "docs/a.rs"]).success();
    assert_ne!(commits(&bus, "BlueLake").status, 0);
    git(&bus, &bus.repo(), "", &["reset", "-q", "--hard"]).success();
    git(&bus, &bus.repo(), "", &["mv", "docs/b.md", "src/b.md"]).success();
    assert_ne!(commits(&bus, "BlueLake").status, 0);
    git(&bus, &bus.repo(), "", &["reset", "-q", "--hard"]).success();
    git(&bus, &bus.repo(), "", &["rm", "-q", "src/a.rs"]).success();
    assert_ne!(commits(&bus, "BlueLake").status, 0);
}

#[test]
fn amending_brings_only_what_is_new() {
    let bus = guarded();
    block(&bus);
    commit(&bus, &bus.repo(), "RedForest", "src/a.rs").success();
    edit(&bus.repo(), "docs/b.md");
    git(&bus, &bus.repo(), "BlueLake", &["commit", "-a", "--amend", "--no-edit"]).success();
    git(&bus, &bus.repo(), "BlueLake", &["commit", "--amend", "-m", "other words"]).success();
    edit(&bus.repo(), "src/a.rs");
    assert_ne!(git(&bus, &bus.repo(), "BlueLake", &["commit", "-a", "--amend", "--no-edit"]).status, 0);
}

#[test]
fn the_first_commit_of_all_is_guarded_too() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    bus.relay("", ["guard", "install"]).success();
    assert!(warned(&commit(&bus, &bus.repo(), "BlueLake", "src/a.rs").success()));
}

/// A branch `theirs` with RedForest's work in `src/a.rs`, and `main` with a line that conflicts with it in `docs/b.md`.
fn branched(bus: &Bus) {
    git(bus, &bus.repo(), "", &["switch", "-qc", "theirs"]).success();
    fs::write(bus.repo().join("docs/b.md"), "theirs\n").unwrap();
    commit(bus, &bus.repo(), "RedForest", "src/a.rs").success();
    git(bus, &bus.repo(), "", &["switch", "-q", "main"]).success();
    fs::write(bus.repo().join("docs/b.md"), "ours\n").unwrap();
    git(bus, &bus.repo(), "BlueLake", &["commit", "-qam", "ours"]).success();
}

#[test]
fn a_merge_brings_what_is_in_none_of_its_parents() {
    let bus = guarded();
    block(&bus);
    branched(&bus);
    assert_ne!(git(&bus, &bus.repo(), "BlueLake", &["merge", "-q", "theirs"]).status, 0, "it conflicts");
    fs::write(bus.repo().join("docs/b.md"), "both\n").unwrap();
    git(&bus, &bus.repo(), "", &["add", "-A"]).success();
    // RedForest committed its own work itself.
    commits(&bus, "BlueLake").success();
    git(&bus, &bus.repo(), "", &["reset", "-q", "--hard", "HEAD^"]).success();
    git(&bus, &bus.repo(), "BlueLake", &["merge", "-q", "theirs"]);
    fs::write(bus.repo().join("docs/b.md"), "both\n").unwrap();
    edit(&bus.repo(), "src/a.rs");
    git(&bus, &bus.repo(), "", &["add", "-A"]).success();
    assert_ne!(commits(&bus, "BlueLake").status, 0, "and another line on top of it");
}

#[test]
fn a_push_brings_what_no_remote_has() {
    let bus = guarded();
    let push = |agent: &str, args: &[&str]| git(&bus, &bus.repo(), agent, &[&["push", "origin"], args].concat());
    push("RedForest", &["main"]).success();
    block(&bus);
    // A new branch that changes nothing of RedForest's, and then something.
    git(&bus, &bus.repo(), "", &["switch", "-qc", "mine"]).success();
    commit(&bus, &bus.repo(), "BlueLake", "docs/b.md").success();
    push("BlueLake", &["mine"]).success();
    edit(&bus.repo(), "src/a.rs");
    git(&bus, &bus.repo(), "BlueLake", &["commit", "--no-verify", "-qam", "past"]).success();
    let run = push("BlueLake", &["mine"]);
    assert!(run.status != 0 && warned(&run) && run.stderr.contains("git push --no-verify"), "{run:?}");
    assert!(warned(&push("BlueLake", &["mine:newer"])));
    push("RedForest", &["mine:newer"]).success();
    // What the remote has under another name is no news.
    push("BlueLake", &["mine:newest"]).success();
    push("BlueLake", &["--delete", "newer", "newest"]).success();
    git(&bus, &bus.repo(), "", &["tag", "-am", "first", "v1", "mine"]).success();
    git(&bus, &bus.repo(), "", &["fetch", "-q", "--prune", "origin"]).success();
    assert!(warned(&push("BlueLake", &["v1"])), "a tag brings its commits");
    // A remote without a name has no branches that we know.
    let run = git(&bus, &bus.repo(), "BlueLake", &["push", "../remote.git", "mine"]);
    assert!(run.status != 0 && warned(&run), "{run:?}");
}

#[test]
fn what_was_merged_from_the_remote_is_no_news() {
    let bus = guarded();
    let push = |agent: &str, branch: &str| git(&bus, &bus.repo(), agent, &["push", "-q", "origin", branch]);
    push("RedForest", "main").success();
    branched(&bus);
    push("BlueLake", "main").success();
    push("RedForest", "theirs").success();
    block(&bus);
    git(&bus, &bus.repo(), "BlueLake", &["merge", "-q", "-X", "ours", "--no-edit", "theirs"]).success();
    push("BlueLake", "main").success();
}

#[test]
fn a_linked_worktree_is_guarded_by_the_same_claims() {
    let bus = guarded();
    block(&bus);
    let linked = bus.path("linked tree");
    git(&bus, &bus.repo(), "", &["worktree", "add", "-qb", "linked", linked.to_str().unwrap()]).success();
    assert_ne!(commit(&bus, &linked, "BlueLake", "src/a.rs").status, 0);
    git(&bus, &linked, "", &["reset", "-q", "--hard"]).success();
    commit(&bus, &linked, "BlueLake", "docs/b.md").success();
    // Claimed by its absolute path there.
    bus.relay("RedForest", ["reserve", linked.join("docs/b.md").to_str().unwrap()]).success();
    assert_ne!(commit(&bus, &linked, "BlueLake", "docs/b.md").status, 0);
}

/// The same with a variable set.
fn commits_with(bus: &Bus, folder: &Path, name: &str, value: &str) -> Run {
    edit(folder, "src/a.rs");
    let mut command = git_command(bus, folder, "BlueLake", &["commit", "-qam", "work"]);
    command.env(name, value);
    run(command)
}

#[test]
fn the_repository_that_is_committed_to_is_the_one_that_counts() {
    let bus = guarded();
    let other = bus.path("other");
    git(&bus, &bus.repo(), "", &["clone", "-q", ".", other.to_str().unwrap()]).success();
    guard(&bus, &other, "install").success();
    // The environment names a project, and git commits in another repository.
    assert!(!warned(&commits_with(&bus, &other, "RELAY_PROJECT", &bus.key()).success()));
    assert!(warned(&commits_with(&bus, &bus.repo(), "RELAY_PROJECT", other.to_str().unwrap()).success()));
    // A folder of the repository that is a project of its own.
    let part = bus.repo().join("src");
    let mut start = bus.args("RedForest", ["start", "--path", "a.rs", "--project", part.to_str().unwrap()]);
    start.env_remove("RELAY_PROJECT");
    run(start).success();
    let run = commits_with(&bus, &bus.repo(), "RELAY_PROJECT", part.to_str().unwrap()).success();
    assert!(run.stderr.contains("RedForest holds a.rs (#"), "{run:?}");
    // A git folder that is only used with this work tree.
    let apart = other.join(".git");
    let mut command = git_command(&bus, &bus.repo(), "BlueLake", &["commit", "-qam", "work"]);
    command.env("GIT_DIR", &apart).env("GIT_WORK_TREE", bus.repo());
    edit(&bus.repo(), "src/a.rs");
    assert!(!warned(&crate::bus::run(command).success()));
}

#[test]
fn a_server_is_asked_where_the_stores_are_there() {
    let bus = guarded();
    block(&bus);
    let server = Server::start(&bus);
    edit(&bus.repo(), "src/a.rs");
    let commits = |agent: &str, url: &str| {
        let mut command = git_command(&bus, &bus.repo(), agent, &["commit", "-qam", "work"]);
        command.env("RELAY_URL", url).env("RELAY_TOKEN", &server.token);
        run(command)
    };
    let refused = commits("BlueLake", &server.url);
    assert!(refused.status != 0 && warned(&refused), "{refused:?}");
    let refused = commits("", &server.url);
    assert!(refused.status != 0 && refused.stderr.contains("No agent is known here"), "{refused:?}");
    commits("RedForest", &server.url).success();
    edit(&bus.repo(), "src/a.rs");
    let passed = commits("BlueLake", "http://127.0.0.1:1").success();
    assert!(passed.stderr.contains("the guard cannot tell") && passed.stderr.lines().count() == 1, "{passed:?}");
}

#[test]
fn a_program_reads_one_line() {
    let bus = guarded();
    edit(&bus.repo(), "src/a.rs");
    git(&bus, &bus.repo(), "", &["add", "-A"]).success();
    let answer = bus.relay("BlueLake", ["guard", "pre-commit"]).success().json();
    assert_eq!(answer["result"]["inside"][0]["holder"], "RedForest");
    assert_eq!((&answer["result"]["mode"], &answer["result"]["agent"]), (&"warn".into(), &"BlueLake".into()));
    assert_eq!(answer["next"].as_array().unwrap().len(), 2);
    let answer = bus.relay("RedForest", ["guard", "pre-commit"]).success().json();
    assert_eq!(answer["result"]["inside_total"], 0);
}
