//! Project paths, agent names and thread ids that are none.

use crate::bus::Bus;
use crate::unchanged::{refused, refused_by, snapshot};

/// Texts that are neither a name nor an id, and what of each the message must show.
const BAD_CHARACTERS: [(&str, &str); 12] = [
    ("two words", "' '"),
    ("tab\there", "'\\t'"),
    ("line\nbreak", "'\\n'"),
    ("bell\u{7}", "'\\u{7}'"),
    ("esc\u{1b}[31m", "'\\u{1b}'"),
    ("del\u{7f}", "'\\u{7f}'"),
    ("Blue😀Lake", "'😀'"),
    ("a/b", "'/'"),
    ("a/../b", "'/'"),
    ("caf\u{e9}", "'\u{e9}'"),
    ("zero\u{200b}width", "'\\u{200b}'"),
    ("semi;colon", "';'"),
];

#[test]
fn a_project_path_is_an_absolute_path_of_a_folder() {
    let bus = Bus::with(&["BlueLake"]);
    std::fs::write(bus.path("file"), "text").unwrap();
    std::os::unix::fs::symlink(bus.path("gone"), bus.path("dangling")).unwrap();
    std::os::unix::fs::symlink(bus.path("file"), bus.path("link-to-file")).unwrap();
    let inside = |name: &str| bus.path(name).to_str().unwrap().to_owned();
    let check = |path: &str, names: &[&str]| {
        let refusal = refused(&bus, "BlueLake", &["--project", path, "start"], "PROJECT_KEY_INVALID", names);
        assert_eq!(refusal.error()["details"]["path"], path);
        let reading = bus.relay("BlueLake", ["--project", path, "status"]).fails("PROJECT_KEY_INVALID");
        assert_eq!(reading.error()["message"], refusal.error()["message"]);
    };
    check("", &["\"\"", "empty"]);
    check("repo", &["\"repo\"", "relative"]);
    check("./repo", &["\"./repo\"", "relative"]);
    check("../repo", &["\"../repo\"", "relative"]);
    check("~/repo", &["\"~/repo\"", "relative"]);
    check(&inside("missing"), &[&inside("missing"), "No such file"]);
    check(&inside("dangling"), &[&inside("dangling"), "No such file"]);
    check(&inside("file"), &[&inside("file"), "not a folder"]);
    check(&inside("link-to-file"), &[&inside("link-to-file"), "not a folder"]);
    check(&inside("file/below"), &[&inside("file/below")]);
    check("/no\u{7}such", &["/no\\u{7}such"]);
}

#[test]
fn a_project_path_through_a_link_is_the_project_behind_it() {
    let bus = Bus::with(&["BlueLake"]);
    std::os::unix::fs::symlink(bus.repo(), bus.path("link")).unwrap();
    let before = snapshot(&bus.home()).len();
    for path in ["link", "link/", "link/../link/.", "repo//", "repo/../repo"] {
        let path = format!("{}/{path}", bus.path("").display());
        let started = bus.relay("BlueLake", ["--project", &path, "start"]).success().result();
        assert_eq!(started["project"]["key"], bus.key(), "{path}");
        assert_eq!(started["new"], false, "{path}");
    }
    assert_eq!(bus.relay("", ["project", "list"]).success().result()["projects"].as_array().unwrap().len(), 1);
    // Nothing but the remembered answers was added.
    assert_eq!(snapshot(&bus.home()).len(), before);
}

#[test]
fn a_project_path_in_a_variable_is_held_to_the_same_rules() {
    let bus = Bus::with(&["BlueLake"]);
    let from = |path: &'static str| {
        let mut command = bus.args("BlueLake", ["start"]);
        command.env("RELAY_PROJECT", path);
        command
    };
    refused_by(&bus, || from("repo"), "PROJECT_KEY_INVALID", &["\"repo\"", "relative"]);
    refused_by(&bus, || from("/no/such/folder"), "PROJECT_KEY_INVALID", &["/no/such/folder"]);
}

#[test]
fn outside_every_repository_a_project_must_be_named() {
    let bus = Bus::with(&["BlueLake"]);
    let outside = || {
        let mut command = bus.args("BlueLake", ["start"]);
        command.current_dir(bus.path(""));
        command
    };
    let folder = std::fs::canonicalize(bus.path("")).unwrap();
    refused_by(&bus, outside, "PROJECT_UNRESOLVED", &[folder.to_str().unwrap()]);
}

/// Every way in which a name can come, for somebody who acts.
#[track_caller]
fn check_agent(bus: &Bus, name: &str, shown: &[&str]) {
    let agent = format!("--agent={name}");
    let acting = [&["start"] as &[&str], &["prepare", "--thread", "bd-1"], &["register"], &["poll"], &["ack", "1"]];
    // Also where nobody acts, a name that is none is a mistake.
    let operating = [&["verify"] as &[&str], &["drain"], &["health"], &["backup", "x.db"], &["rebuild", "archive"]];
    for verb in acting.into_iter().chain(operating) {
        let args = [&[agent.as_str()], verb].concat();
        let refusal = refused(bus, "", &args, "AGENT_NAME_INVALID", shown);
        for step in refusal.error()["playbook"].as_array().unwrap() {
            let argv = step["run"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(!argv.windows(2).any(|pair| pair[0] == "--agent" && pair[1] == name), "the bad name again: {step}");
        }
    }
    let variable = || {
        let mut command = bus.args("", ["start"]);
        command.env("RELAY_AGENT", name);
        command
    };
    refused_by(bus, variable, "AGENT_NAME_INVALID", shown);
}

#[test]
fn an_agent_name_of_the_wrong_length_is_refused() {
    let bus = Bus::with(&["BlueLake"]);
    check_agent(&bus, "x", &["\"x\"", "length of 1", "2 to 64"]);
    let long = "x".repeat(65);
    check_agent(&bus, &long, &[&long, "length of 65", "2 to 64"]);
    refused(&bus, "", &["--agent=", "start"], "AGENT_NAME_INVALID", &["\"\"", "2 to 64"]);
    for fits in ["ok".to_owned(), "x".repeat(64)] {
        assert_eq!(bus.relay(&fits, ["start"]).success().result()["agent"]["name"], fits);
    }
}

#[test]
fn an_agent_name_has_no_other_characters_than_letters_digits_dash_and_underscore() {
    let bus = Bus::with(&["BlueLake"]);
    for (name, shown) in BAD_CHARACTERS {
        check_agent(&bus, name, &[shown]);
    }
    check_agent(&bus, "..", &["\"..\"", "'.'"]);
    check_agent(&bus, "a.b", &["\"a.b\"", "'.'"]);
    check_agent(&bus, "a#b", &["'#'"]);
    check_agent(&bus, "a@b", &["'@'"]);
}

#[test]
fn an_agent_name_starts_with_a_letter() {
    let bus = Bus::with(&["BlueLake"]);
    for name in ["-dash", "--", "_low", "9lives", "-1"] {
        check_agent(&bus, name, &[&format!("{name:?}"), "letter"]);
    }
}

#[test]
fn a_reserved_word_is_no_agent_in_any_case() {
    let bus = Bus::with(&["BlueLake"]);
    for name in ["relay", "Relay", "all", "ALL", "thread", "Thread", "Human", "HUMAN"] {
        check_agent(&bus, name, &[&format!("`{name}`"), "reserved"]);
    }
    // The human acts without being registered, and only with the human's credential.
    refused(&bus, "human", &["start"], "UNAUTHORIZED", &["human"]);
    bus.relay("", ["token", "human"]).success();
    refused(&bus, "human", &["start"], "AGENT_NAME_INVALID", &["`human`", "reserved"]);
    refused(&bus, "human", &["prepare", "--thread", "bd-1"], "AGENT_NAME_INVALID", &["`human`", "reserved"]);
}

#[test]
fn a_bad_name_in_an_empty_home_makes_no_project() {
    let bus = Bus::new();
    refused(&bus, "", &["--agent", "a b", "start"], "AGENT_NAME_INVALID", &["\"a b\""]);
    refused(&bus, "BlueLake", &["prepare", "--thread", "a b"], "THREAD_ID_INVALID", &["\"a b\""]);
    refused(&bus, "BlueLake", &["start", "--path", "../x"], "PATTERN_OUTSIDE_PROJECT", &["../x"]);
    refused(&bus, "BlueLake", &["prepare", "--thread", "t", "--path", "a["], "PATTERN_INVALID", &["a["]);
    refused(&bus, "BlueLake", &["start", "--task", ""], "INPUT_INVALID", &["--task"]);
    refused(&bus, "BlueLake", &["--idempotency-key", "", "start"], "INPUT_INVALID", &["idempotency key"]);
    refused(&bus, "BlueLake", &["register", "--parent", "RedForest"], "AGENT_NOT_REGISTERED", &[]);
    refused(&bus, "BlueLake", &["poll"], "AGENT_NOT_REGISTERED", &[&bus.key()]);
    assert!(!bus.home().exists());
}

/// Every way in which a thread can be named.
#[track_caller]
fn check_thread(bus: &Bus, id: &str, shown: &[&str]) {
    let (thread, reason) = (format!("--thread={id}"), format!("--reason={id}"));
    let send = ["send", "--to", "RedForest", "--subject", "S", "--body", "b", &thread];
    for args in [
        &send as &[&str],
        &["prepare", &thread],
        &["poll", &thread],
        &["reserve", "src", &reason],
        &["release", &reason],
        &["look", "--", "thread", id],
        &["thread", "--", id],
        &["leave", "--", id],
    ] {
        refused(bus, "BlueLake", args, "THREAD_ID_INVALID", shown);
    }
}

#[test]
fn a_thread_id_of_the_wrong_length_is_refused() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    check_thread(&bus, "", &["\"\"", "length of 0", "1 to 128"]);
    let long = "x".repeat(129);
    check_thread(&bus, &long, &[&long, "length of 129", "1 to 128"]);
    for fits in ["7".to_owned(), "x".repeat(128)] {
        assert_eq!(bus.relay("BlueLake", ["prepare", "--thread", &fits]).success().result()["thread"]["id"], fits);
    }
}

#[test]
fn a_thread_id_has_no_bad_characters() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for (id, shown) in BAD_CHARACTERS {
        check_thread(&bus, id, &[shown]);
    }
    for id in ["..", ".hidden", "-dash", "--", "_low", "#12"] {
        check_thread(&bus, id, &[&format!("{id:?}"), "letter or digit"]);
    }
}

#[test]
fn a_reserved_word_is_an_ordinary_thread_id() {
    let bus = Bus::with(&["BlueLake"]);
    for id in ["human", "relay", "all", "thread"] {
        assert_eq!(bus.relay("BlueLake", ["prepare", "--thread", id]).success().result()["thread"]["id"], id);
    }
}
