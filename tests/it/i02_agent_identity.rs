//! I2: an agent is registered before it acts, and stays the same for the life of its session.

use crate::bus::{Bus, days, minutes};
use crate::terminal::{column, text};

const VERBS: &[&[&str]] = &[
    &["send", "--to", "RedForest", "--subject", "Hello", "--body", "text"],
    &["reserve", "src/**"],
    &["release", "--all"],
    &["link", "--target", "RedForest"],
    &["link", "--list"],
    &["poll"],
    &["poll", "--wait", "1s"],
    &["ack", "1"],
    &["policy", "open"],
    &["look", "outbox"],
    &["look", "contacts"],
    &["leave", "bd-1"],
    &["retire"],
    &["renew"],
];

/// Every verb that acts is refused with this class and leaves no trace.
fn check_refused(bus: &Bus, agent: &str, code: &str) {
    let before = bus.events(0);
    for verb in VERBS {
        bus.relay(agent, *verb).fails(code);
    }
    assert_eq!(bus.events(0), before, "{code}");
}

#[test]
fn nobody_acts_unregistered() {
    let bus = Bus::with(&["RedForest"]);
    check_refused(&bus, "BlueLake", "AGENT_NOT_REGISTERED");
    check_refused(&bus, "", "AGENT_NOT_REGISTERED");
    let error = bus.relay("RedForst", ["poll"]).fails("AGENT_NOT_REGISTERED").error();
    assert_eq!(error["details"]["nearest"][0], "RedForest");
}

#[test]
fn nobody_acts_where_nobody_has_started() {
    let bus = Bus::new();
    for verb in VERBS {
        bus.relay("BlueLake", *verb).fails("AGENT_NOT_REGISTERED");
    }
    assert!(!bus.home().join("relay.db").exists());
}

#[test]
fn a_retired_agent_acts_again_after_start() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("BlueLake", ["retire"]).success();
    check_refused(&bus, "BlueLake", "AGENT_RETIRED");
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).fails("AGENT_RETIRED");
    let held = bus.relay("RedForest", ["reservations"]).success().result();
    assert_eq!(held["total"], 0, "what a retired agent held is free");
    let back = bus.relay("BlueLake", ["start"]).success().result();
    assert_eq!((text(&back["agent"]["state"]), back["new"].as_bool()), ("active".into(), Some(false)));
    bus.relay("BlueLake", ["poll"]).success();
}

#[test]
fn a_suspended_agent_acts_again_only_after_somebody_lifts_it() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    check_refused(&bus, "BlueLake", "AGENT_SUSPENDED");
    bus.relay("BlueLake", ["start"]).fails("AGENT_SUSPENDED");
    bus.relay("BlueLake", ["prepare", "--thread", "bd-1"]).fails("AGENT_SUSPENDED");
    bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success();
    bus.relay("BlueLake", ["poll"]).success();
}

#[test]
fn only_start_revives_a_retired_agent() {
    for retire in [true, false] {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        if retire {
            bus.relay("BlueLake", ["retire"]).success();
        } else {
            bus.advance(days(7) + 1);
            bus.relay("RedForest", ["start"]).success();
        }
        let before = bus.events(0);
        let error = bus.relay("RedForest", ["suspend", "BlueLake"]).fails("AGENT_RETIRED").error();
        let lifted = bus.relay("RedForest", ["suspend", "BlueLake", "--lift"]).success().result();
        assert_eq!((text(&lifted["state"]), bus.events(0)), ("retired".into(), before));
        bus.relay("BlueLake", ["poll"]).fails("AGENT_RETIRED");
        // Whoever is to be kept off the bus is brought back first; the playbook says so.
        for step in error["playbook"].as_array().unwrap() {
            bus.step(step).success();
        }
        bus.relay("BlueLake", ["start"]).fails("AGENT_SUSPENDED");
    }
}

#[test]
fn an_agent_unseen_for_seven_days_has_retired_by_itself_and_start_revives_it() {
    let state = |bus: &Bus| column(&bus.relay("", ["agents"]).success().result()["agents"], "state");
    let bus = Bus::with(&["BlueLake"]);
    bus.advance(days(7));
    assert_eq!(state(&bus), ["active"]);
    bus.advance(1);
    assert_eq!(state(&bus), ["retired"]);
    bus.relay("BlueLake", ["poll"]).fails("AGENT_RETIRED");
    let revived = bus.relay("BlueLake", ["start"]).success().result();
    assert_eq!(
        (text(&revived["agent"]["name"]), text(&revived["agent"]["state"])),
        ("BlueLake".into(), "active".into())
    );
    assert_eq!(state(&bus), ["active"]);
    bus.relay("BlueLake", ["poll"]).success();
}

#[test]
fn a_read_is_enough_to_be_seen() {
    let bus = Bus::with(&["BlueLake"]);
    for _ in 0..3 {
        bus.advance(days(5));
        bus.relay("BlueLake", ["status"]).success();
    }
    assert_eq!(bus.kinds(0), ["project_opened", "agent_registered"], "being seen is no history");
}

#[test]
fn a_wished_name_is_taken_exactly_or_refused() {
    let bus = Bus::new();
    let longest = "a".repeat(64);
    for name in ["BlueLake", "ab", "a_-9", &longest] {
        let answer = bus.relay(name, ["start"]).success().result();
        assert_eq!((text(&answer["agent"]["name"]), answer["new"].as_bool()), (name.to_owned(), Some(true)));
    }
    let before = bus.events(0);
    let long = "a".repeat(65);
    for name in
        ["a", &long, "9lives", "_x", "Blue Lake", "Blue/Lake", "Blåsjö", "..", "Human", "relay", "ALL", "thread"]
    {
        bus.relay(name, ["start"]).fails("AGENT_NAME_INVALID");
    }
    bus.relay("", ["token", "human"]).success();
    bus.relay("human", ["start"]).fails("AGENT_NAME_INVALID");
    assert_eq!(bus.events(0), before);
}

#[test]
fn names_are_unique_without_regard_to_case() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("bluelake", ["start"]).fails("AGENT_NAME_TAKEN");
    bus.relay("redforest", ["policy", "open"]).success();
    bus.relay("BLUELAKE", ["send", "--to", "rEDfOREST", "--subject", "Hi", "--body", "text"]).success();
    let mail = bus.relay("redforest", ["poll"]).success().result();
    assert_eq!(mail["messages"][0]["from"], "BlueLake", "shown as first written");
}

#[test]
fn without_a_wish_there_is_a_memorable_name_and_the_line_that_keeps_it() {
    let bus = Bus::new();
    let mut names = Vec::new();
    for _ in 0..5 {
        let answer = bus.relay("", ["start"]).success();
        let name = text(&answer.result()["agent"]["name"]);
        let capitals = name.chars().filter(char::is_ascii_uppercase).count();
        assert!(capitals == 2 && name.chars().all(|c| c.is_ascii_alphabetic()), "{name}");
        assert_eq!(answer.json()["next"][0], format!("export RELAY_AGENT={name}"));
        let poll = bus.with_variables(&[("RELAY_AGENT", &name)], &["start"]).success().result();
        assert_eq!((text(&poll["agent"]["name"]), poll["new"].as_bool()), (name.clone(), Some(false)));
        names.push(name);
    }
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 5);
}

#[test]
fn starting_again_resumes_and_writes_only_what_changed() {
    let bus = Bus::new();
    bus.relay("BlueLake", ["start", "--program", "editor", "--model", "m1", "--task", "Login"]).success();
    let tip = bus.tip();
    let same = bus.relay("BlueLake", ["start", "--program", "editor", "--task", "Login"]).success().result();
    assert_eq!((same["new"].as_bool(), bus.tip()), (Some(false), tip));
    let changed = bus.relay("BlueLake", ["start", "--model", "m2"]).success().result();
    let agent = &changed["agent"];
    assert_eq!([&agent["program"], &agent["model"], &agent["task"]], ["editor", "m2", "Login"]);
    assert_eq!(bus.kinds(tip), ["agent_resumed"]);
}

#[test]
fn a_session_that_was_seen_is_the_same_agent() {
    let bus = Bus::new();
    let first = text(&bus.relay("", ["start", "--session", "s1"]).success().result()["agent"]["name"]);
    let other = text(&bus.relay("", ["start", "--session", "s2"]).success().result()["agent"]["name"]);
    assert_ne!(first, other);
    let check = |variables: &[(&str, &str)], args: &[&str], expected: &str| {
        let answer = bus.with_variables(variables, args).success().result();
        assert_eq!((text(&answer["agent"]["name"]), answer["new"].as_bool()), (expected.to_owned(), Some(false)));
    };
    check(&[], &["start", "--session", "s1"], &first);
    check(&[("CLAUDE_CODE_SESSION_ID", "s2")], &["start"], &other);
    check(&[("CODEX_SESSION_ID", "s1")], &["start"], &first);
    check(&[("RELAY_SESSION", "s1"), ("CLAUDE_CODE_SESSION_ID", "s2")], &["start"], &first);
    let mail = bus.with_variables(&[("RELAY_SESSION", "s1")], &["policy", "open"]).success().result();
    assert_eq!(mail["agent"], first, "every verb knows its session's agent");
}

#[test]
fn a_name_bound_to_another_living_session_is_taken_over_only_on_purpose() {
    let bus = Bus::new();
    let start = ["start", "--session", "s2"];
    bus.relay("BlueLake", ["start", "--session", "s1"]).success();
    let error = bus.relay("BlueLake", start).fails("AGENT_NAME_TAKEN").error();
    let step = &error["playbook"][0];
    assert!(step["run"].as_array().unwrap().contains(&"--take-over".into()), "{step}");
    assert_eq!(step["unattended"], false);
    bus.step(step).success();
    bus.relay("BlueLake", start).success();
    bus.relay("BlueLake", ["start", "--session", "s1"]).fails("AGENT_NAME_TAKEN");
    bus.relay("BlueLake", ["start", "--session", "s1", "--take-over"]).success();
}

/// It is often the first call of a session: two sessions do not become one agent without a word.
#[test]
fn a_thread_is_not_prepared_as_an_agent_that_lives_in_another_session() {
    let bus = Bus::new();
    let zed = |session: &'static str| [("CLAUDE_CODE_SESSION_ID", session), ("RELAY_AGENT", "Zed")];
    let prepare = ["prepare", "--thread", "bd-1"];
    bus.with_variables(&zed("z1"), &prepare).success();
    bus.with_variables(&zed("z1"), &prepare).success();
    let before = bus.events(0);
    let error = bus.with_variables(&zed("z2"), &prepare).fails("AGENT_NAME_TAKEN").error();
    bus.with_variables(&zed("z2"), &["prepare", "--thread", "bd-1", "--agent", "Zed"]).fails("AGENT_NAME_TAKEN");
    assert_eq!(bus.events(0), before);
    // Whoever brings no session is held up by none.
    bus.relay("Zed", prepare).success();
    // As with `start`: the step takes it over, and then the request is made again.
    bus.step(&error["playbook"][0]).success();
    bus.with_variables(&zed("z2"), &prepare).success();
    bus.with_variables(&zed("z1"), &prepare).fails("IDENTITY_MISMATCH");
    let take_over = ["prepare", "--thread", "bd-1", "--agent", "Zed", "--take-over"];
    bus.with_variables(&zed("z1"), &take_over).success();
    bus.with_variables(&zed("z2"), &prepare).fails("IDENTITY_MISMATCH");
    // A session that fell silent has it no longer, and an agent of none is anybody's.
    bus.advance(minutes(11));
    bus.with_variables(&zed("z3"), &prepare).success();
    bus.relay("Amy", ["start"]).success();
    bus.with_variables(&zed("z4"), &["prepare", "--thread", "bd-1", "--agent", "Amy"]).success();
}

/// A subagent runs in its parent's session, which is none of its own.
#[test]
fn a_subagent_prepares_from_within_its_parents_session() {
    let bus = Bus::new();
    let lead = [("CLAUDE_CODE_SESSION_ID", "s1")];
    bus.with_variables(&lead, &["start", "--agent", "Lead"]).success();
    bus.with_variables(&lead, &["register", "--agent", "Lead-1", "--parent", "Lead"]).success();
    bus.relay("Lead-1", ["start", "--session", "sub"]).success();
    bus.with_variables(&lead, &["prepare", "--thread", "bd-1", "--agent", "Lead-1"]).success();
}

#[test]
fn a_session_from_which_its_agent_was_taken_acts_as_it_no_longer() {
    let bus = Bus::with(&["RedForest"]);
    let old = [("CLAUDE_CODE_SESSION_ID", "s1")];
    let new = [("CLAUDE_CODE_SESSION_ID", "s2")];
    bus.with_variables(&old, &["start", "--agent", "BlueLake"]).success();
    bus.with_variables(&old, &["poll"]).success();
    bus.with_variables(&new, &["start", "--agent", "BlueLake", "--take-over"]).success();
    let before = bus.events(0);
    for verb in VERBS.iter().chain([["prepare", "--thread", "bd-1"].as_slice(), &["status"]].iter()) {
        bus.with_variables(&old, verb).fails("IDENTITY_MISMATCH");
    }
    // A variable that says the same name is no other proof.
    let both = [old[0], ("RELAY_AGENT", "BlueLake")];
    let error = bus.with_variables(&both, &["poll"]).fails("IDENTITY_MISMATCH").error();
    for word in ["\"s2\"", "BlueLake", "--take-over"] {
        assert!(text(&error["message"]).contains(word), "{error}");
    }
    assert_eq!(bus.events(0), before);
    bus.with_variables(&new, &["poll"]).success();
    // Whoever says a name of its own, or is named, is not held back by a session that was lost.
    bus.with_variables(&[old[0], ("RELAY_AGENT", "RedForest")], &["poll"]).success();
    bus.with_variables(&old, &["poll", "--agent", "BlueLake"]).success();
    // The session was seen: `start` means the same agent, and must say that it takes it back.
    bus.with_variables(&old, &["start"]).fails("AGENT_NAME_TAKEN");
    bus.step(&error["playbook"][0]).success();
    bus.with_variables(&old, &["poll"]).success();
    bus.with_variables(&new, &["poll"]).fails("IDENTITY_MISMATCH");
    // Or it goes on as somebody else.
    bus.with_variables(&new, &["start", "--agent", "GreenHill"]).success();
    let policy = bus.with_variables(&new, &["policy", "open"]).success().result();
    assert_eq!(policy["agent"], "GreenHill");
}

#[test]
fn a_session_that_waits_for_mail_while_its_agent_is_taken_gets_none() {
    let bus = Bus::with(&["RedForest"]);
    let (old, new) = ([("RELAY_SESSION", "s1")], [("RELAY_SESSION", "s2")]);
    bus.with_variables(&old, &["start", "--agent", "BlueLake"]).success();
    let waiter = bus.waiting_with(&old, &["poll", "--wait", "60s"]);
    bus.with_variables(&new, &["start", "--agent", "BlueLake", "--take-over"]).success();
    waiter.finish().fails("IDENTITY_MISMATCH");
    bus.send("RedForest", "BlueLake", "bd-1", "Login");
    assert_eq!(bus.with_variables(&new, &["poll", "--wait", "60s"]).success().result()["unread"], 1);
}

#[test]
fn a_session_that_goes_back_to_an_earlier_agent_speaks_for_it_again() {
    let bus = Bus::new();
    let session = [("RELAY_SESSION", "s1")];
    for agent in ["BlueLake", "RedForest", "BlueLake"] {
        bus.with_variables(&session, &["start", "--agent", agent]).success();
        assert_eq!(bus.with_variables(&session, &["policy", "open"]).success().result()["agent"], agent);
    }
}

#[test]
fn a_name_whose_session_fell_silent_is_resumed_without_asking() {
    let bus = Bus::new();
    bus.relay("BlueLake", ["start", "--session", "s1"]).success();
    bus.advance(minutes(10));
    bus.relay("BlueLake", ["start", "--session", "s2"]).fails("AGENT_NAME_TAKEN");
    bus.advance(1);
    bus.relay("BlueLake", ["start", "--session", "s2"]).success();
    let now = bus.with_variables(&[("RELAY_SESSION", "s2")], &["start"]).success().result();
    assert_eq!(now["agent"]["name"], "BlueLake");
}

#[test]
fn a_live_process_keeps_a_session_alive() {
    let bus = Bus::new();
    bus.relay("BlueLake", ["start", "--session", "s1"]).success();
    let waiter = bus.waiting("BlueLake", &["poll", "--wait", "60s"]);
    bus.advance(minutes(11));
    bus.relay("BlueLake", ["start", "--session", "s2"]).fails("AGENT_NAME_TAKEN");
    waiter.kill();
    bus.relay("BlueLake", ["start", "--session", "s2"]).success();
}

#[test]
fn the_flag_wins_and_session_and_variable_must_agree() {
    let bus = Bus::with(&["RedForest", "GreenHill"]);
    bus.relay("BlueLake", ["start", "--session", "s1"]).success();
    let both = [("RELAY_SESSION", "s1"), ("RELAY_AGENT", "RedForest")];
    let error = bus.with_variables(&both, &["policy", "open"]).fails("IDENTITY_MISMATCH").error();
    for name in ["BlueLake", "RedForest"] {
        assert!(text(&error["message"]).contains(name), "{error}");
    }
    let acts = |variables: &[(&str, &str)], args: &[&str], expected: &str| {
        assert_eq!(bus.with_variables(variables, args).success().result()["agent"], expected);
    };
    acts(&both, &["policy", "open", "--agent", "GreenHill"], "GreenHill");
    acts(&[("RELAY_SESSION", "s1"), ("RELAY_AGENT", "bluelake")], &["policy", "open"], "BlueLake");
    acts(&[("RELAY_SESSION", "unknown"), ("RELAY_AGENT", "RedForest")], &["policy", "open"], "RedForest");
    acts(&[("RELAY_SESSION", "s1")], &["policy", "auto"], "BlueLake");
    acts(&[("RELAY_AGENT", "RedForest")], &["policy", "auto"], "RedForest");
    bus.with_variables(&both, &["start"]).fails("IDENTITY_MISMATCH");
}

#[test]
fn a_subagent_has_an_inbox_of_its_own() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("Helper", ["register", "--parent", "BlueLake"]).success();
    let shown = bus.relay("", ["whois", "Helper"]).success().result();
    assert_eq!(shown["agents"][0]["parent"], "BlueLake");
    let id = bus.send("RedForest", "BlueLake", "bd-1", "Login");
    assert_eq!(bus.inbox("Helper"), [0; 0]);
    bus.relay("Helper", ["poll", "--read"]).success();
    assert_eq!(bus.inbox("BlueLake"), [id]);
    bus.relay("Orphan", ["register", "--parent", "Nobody"]).fails("AGENT_NOT_REGISTERED");
}

#[test]
fn a_subagent_never_takes_its_parents_session() {
    let bus = Bus::with(&["RedForest"]);
    let lead = [("CLAUDE_CODE_SESSION_ID", "s1")];
    let acts = |variables: &[(&str, &str)], expected: &str| {
        let answer = bus.with_variables(variables, &["policy", "open"]).success().result();
        assert_eq!(answer["agent"], expected);
    };
    bus.with_variables(&lead, &["start", "--agent", "Lead"]).success();
    bus.with_variables(&lead, &["register", "--agent", "Lead-1", "--parent", "Lead"]).success();
    acts(&lead, "Lead");
    // Neither does resuming it from there.
    bus.with_variables(&lead, &["start", "--agent", "Lead-1"]).success();
    acts(&lead, "Lead");
    // Nor one whose name nobody chose.
    let named = [lead[0], ("RELAY_AGENT", "Lead")];
    let other = bus.with_variables(&named, &["register", "--parent", "Lead"]).success().result();
    assert_eq!((other["new"].as_bool(), text(&other["agent"]["parent"])), (Some(true), "Lead".into()));
    acts(&lead, "Lead");
    // A session that it gives is its own, unless it is another's.
    bus.relay("Lead-1", ["start", "--session", "s1"]).success();
    acts(&lead, "Lead");
    bus.relay("Lead-1", ["start", "--session", "s2"]).success();
    acts(&[("RELAY_SESSION", "s2")], "Lead-1");
}

#[test]
fn the_human_is_a_credential_of_its_own() {
    use std::os::unix::fs::PermissionsExt;
    let bus = Bus::with(&["BlueLake"]);
    let send = ["send", "--to", "BlueLake", "--subject", "Hello", "--body", "text"];
    let before = bus.events(0);
    bus.relay("human", send).fails("UNAUTHORIZED");
    assert_eq!(bus.events(0), before);
    let file = text(&bus.relay("", ["token", "human"]).success().result()["path"]);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    bus.relay("human", send).success();
    let mail = bus.relay("BlueLake", ["poll"]).success().result();
    assert_eq!(mail["messages"][0]["from"], "human");
    // A credential that others can read proves nothing.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    bus.relay("human", send).fails("UNAUTHORIZED");
}
