//! Nothing that anybody writes becomes part of a command: bodies, subjects, names and paths full of the syntax of shells and
//! options.

use serde_json::Value;

use crate::bus::{Bus, letter, run};
use crate::terminal::text;

const HOSTILE: [&str; 8] = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "' && touch pwned && '",
    "--yes",
    "-x --agent=human",
    "{agent} {project} {each}",
    "a\nb | touch pwned",
];

/// Every word of every step, as printed.
fn words(error: &Value) -> Vec<String> {
    let steps = error["playbook"].as_array().unwrap();
    steps.iter().filter_map(|step| step["run"].as_array()).flatten().map(text).collect()
}

#[test]
fn what_a_message_says_never_reaches_a_step() {
    for hostile in HOSTILE {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        bus.relay("RedForest", ["policy", "contacts_only"]).success();
        let subject = hostile.replace('\n', " ");
        let flags = [format!("--subject={subject}"), format!("--body={hostile}")];
        let args = ["send", "--to", "RedForest", "--thread", "bd-1", &flags[0], &flags[1]];
        let error = bus.relay("BlueLake", args).fails("CONTACT_REQUIRED").error();
        let plain = bus.relay("BlueLake", letter("RedForest")).fails("CONTACT_REQUIRED").error();
        let keyless = |error: &Value| {
            let key = text(&error["idempotency_key"]);
            words(error).into_iter().map(|word| word.replace(&key, "KEY")).collect::<Vec<_>>()
        };
        assert_eq!(keyless(&error), keyless(&plain), "{hostile:?}");
        bus.relay("BlueLake", ["recover", "CONTACT_REQUIRED"]).success();
        assert!(!bus.repo().join("pwned").exists() && !bus.path("pwned").exists());
    }
}

#[test]
fn a_hostile_path_stays_one_word_of_the_step_that_needs_it() {
    for hostile in HOSTILE.iter().filter(|text| !text.contains(['\n', '{'])) {
        let bus = Bus::with(&["BlueLake", "RedForest"]);
        let pattern = format!("./{hostile}");
        bus.relay("RedForest", ["reserve", &pattern]).success();
        let error = bus.relay("BlueLake", ["reserve", "--if-free", &pattern]);
        let error = error.fails("FILE_RESERVATION_CONFLICT").error();
        let step = &error["playbook"][0];
        let patterns = step["args"]["patterns"].as_array().unwrap();
        assert_eq!(patterns.len(), 1, "{step}");
        let name = text(&patterns[0]);
        let argv: Vec<String> = step["run"].as_array().unwrap().iter().map(text).collect();
        let word = if name.starts_with('-') { format!("./{name}") } else { name.clone() };
        assert_eq!(argv[..3], ["relay".to_owned(), "reserve".to_owned(), word]);
        let flags: Vec<&str> = argv[3..].iter().map(String::as_str).filter(|word| word.starts_with("--")).collect();
        assert_eq!(flags, ["--if-free", "--wait", "--project", "--agent"], "{hostile:?}");
        // And as it stands it claims exactly that.
        bus.relay("RedForest", ["release", "--all"]).success();
        bus.step(step).success();
        let held = bus.relay("", ["reservations"]).success().result();
        assert_eq!(text(&held["reservations"][0]["pattern"]), name);
        assert!(!bus.repo().join("pwned").exists());
    }
}

#[test]
fn a_hostile_project_stays_one_word_too() {
    for hostile in ["$(touch pwned)", "--yes", "a; touch pwned", "it's {agent}"] {
        let bus = Bus::new();
        let folder = bus.path(hostile);
        std::fs::create_dir(&folder).unwrap();
        let folder = std::fs::canonicalize(folder).unwrap().to_str().unwrap().to_owned();
        bus.relay("BlueLake", ["start", "--project", &folder]).success();
        bus.relay("BlueLake", ["retire", "--project", &folder]).success();
        let error = bus.relay("BlueLake", ["reserve", "src", "--project", &folder]).fails("AGENT_RETIRED").error();
        let argv: Vec<String> = error["playbook"][0]["run"].as_array().unwrap().iter().map(text).collect();
        assert!(argv.contains(&folder), "{argv:?}");
        bus.step(&error["playbook"][0]).success();
        bus.step(&error["playbook"][1]).success();
        assert!(!bus.path("pwned").exists() && !bus.repo().join("pwned").exists());
    }
}

/// A name that is none, in the variable that says who acts, becomes no step.
#[test]
fn a_name_that_is_none_is_in_no_step() {
    let bus = Bus::new();
    for hostile in HOSTILE {
        for args in [&["poll"] as &[&str], &["health"], &["drain"], &["verify"], &["start"]] {
            let mut command = bus.args("", args);
            command.env("RELAY_AGENT", hostile);
            let error = run(command).error();
            let is_in_a_step = words(&error).iter().any(|word| word.contains(hostile));
            assert!(!is_in_a_step && !error["details"].to_string().contains(hostile), "{args:?}: {error}");
        }
    }
}
