//! What users rely on, as files in `docs/`: a change of the promise is a diff in review.
//!
//! `RELAY_BLESS=1` writes them anew; without it they are compared.

use std::path::Path;

use serde_json::{Value, json};

use crate::bus::{Bus, Run, minutes};
use crate::mcp::{CURRENT, Client};

/// Compares with the golden file, or writes it when that is asked for.
fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("RELAY_BLESS").is_some_and(|wish| wish == "1") {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let line = known.lines().zip(text.lines()).position(|(known, new)| known != new);
    let line = line.unwrap_or_else(|| known.lines().count().min(text.lines().count()));
    assert!(
        known == text,
        "docs/{name} differs from line {} on:\n  there: {:?}\n  here:  {:?}\nIf that is meant, write it anew with RELAY_BLESS=1.",
        line + 1,
        known.lines().nth(line),
        text.lines().nth(line)
    );
}

/// The names under "Commands:" in a help text.
pub fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    listed
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}

fn help(bus: &Bus, path: &[String]) -> String {
    let mut command = bus.command();
    // A fixed width: the file must not depend on the terminal that the tests run in.
    command.env("COLUMNS", "100").args(path).arg("--help");
    let text = crate::bus::run(command).success().stdout;
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Every command with its help, the nested ones after the one they belong to.
fn walk(bus: &Bus, path: &[String], found: &mut Vec<(Vec<String>, String)>) {
    let text = help(bus, path);
    let names: Vec<String> = commands(&text).into_iter().map(str::to_owned).collect();
    found.push((path.to_vec(), text));
    for name in names {
        walk(bus, &[path, &[name]].concat(), found);
    }
}

fn every_command(bus: &Bus) -> Vec<(Vec<String>, String)> {
    let mut found = Vec::new();
    walk(bus, &[], &mut found);
    found
}

#[test]
fn the_cli_reference_is_the_programs_own_help() {
    let bus = Bus::new();
    let mut text = "# Command line\n\nEvery command as `relay COMMAND --help` prints it.\n".to_owned();
    for (path, help) in every_command(&bus) {
        let name = [&["relay".to_owned()], path.as_slice()].concat().join(" ");
        text.push_str(&format!("\n## {name}\n\n```text\n{help}```\n"));
    }
    golden("cli-reference.md", &text);
}

#[test]
fn every_help_is_imperative_and_has_an_example() {
    let bus = Bus::new();
    let found = every_command(&bus);
    assert!(found.len() > 30, "only {} commands were found", found.len());
    for (path, help) in found.iter().filter(|(path, _)| !path.is_empty()) {
        let first = help.lines().next().unwrap();
        let verb = first.split(' ').next().unwrap();
        assert!(!first.ends_with('.'), "{path:?}: {first}");
        assert!(first.starts_with(|c: char| c.is_ascii_uppercase()), "{path:?}: {first}");
        assert!(!verb.ends_with('s') && !verb.ends_with("ing"), "{path:?} should say what to do: {first}");
        assert!(!examples(help).is_empty(), "{path:?} has no example");
    }
}

/// The lines under "Example:" that call relay.
fn examples(help: &str) -> Vec<Vec<String>> {
    help.lines()
        .skip_while(|line| !line.starts_with("Example"))
        .filter_map(|line| {
            line.find("relay ").filter(|at| *at == 2 || line[..*at].ends_with("| ")).map(|at| &line[at..])
        })
        .map(|line| split(line.split(" > ").next().unwrap_or(line)).into_iter().skip(1).collect())
        .collect()
}

/// Words as a shell would split them; single quotes are all that the examples use.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn every_example_is_a_command_that_relay_takes() {
    let bus = Bus::new();
    for (path, help) in every_command(&bus) {
        // These do what they say wherever they are called; they have tests of their own.
        if path.iter().any(|name| ["demo", "completions", "serve", "mcp", "hook", "watch"].contains(&name.as_str())) {
            continue;
        }
        for example in examples(&help) {
            // Outside any project nothing happens, but the words are read.
            let mut command = bus.args("", &example);
            command.current_dir("/").env("RELAY_SESSION", "");
            let run: Run = crate::bus::run(command);
            let code = run.json()["error"]["code"].clone();
            assert_ne!(code, "INPUT_INVALID", "{path:?}: {example:?}: {}", run.stdout);
        }
    }
}

#[test]
fn the_error_catalogue_is_what_the_program_prints() {
    let bus = Bus::new();
    let playbook = |code: &relay_core::error::Code| {
        let mut shown = bus.relay("", ["look", "playbook", code.as_str()]).success().result();
        for step in shown["playbook"].as_array_mut().unwrap() {
            // The same step as a tool call says nothing that the command does not say.
            step.as_object_mut().unwrap().retain(|name, _| name != "args");
        }
        shown
    };
    let all: Vec<Value> = relay_core::error::Code::ALL.iter().map(playbook).collect();
    golden("errors.md", &errors(&all));
    golden("errors.json", &format!("{:#}\n", Value::Array(all)));
}

/// The catalogue for people.
fn errors(all: &[Value]) -> String {
    let mut text = "# Errors\n\nEvery error is of one of these classes, and each class has one way out: the steps of its playbook, which \
        an error prints with\nthe real values, `relay recover CODE` runs, and `playbooks/` holds. In angle brackets stand the values \
        of the error's details.\n\nA step runs *by itself* where that is safe without a person; the others wait for a yes \
        (`--yes`), for whoever made the request,\nor for the person in charge. After a step something is true that was not \
        before, and relay looks.\n"
        .to_owned();
    for class in all {
        let word = |name: &str| class[name].as_str().unwrap_or_default().to_owned();
        let again = if class["retryable"] == true { "; the same request can succeed afterwards" } else { "" };
        text.push_str(&format!(
            "\n## {}\n\n{} Kind: {}, exit status {}{again}.\n\n",
            word("code"),
            word("symptom"),
            word("kind"),
            class["exit_status"]
        ));
        class["playbook"].as_array().unwrap().iter().for_each(|step| text.push_str(&step_text(step)));
    }
    text
}

fn step_text(step: &Value) -> String {
    let whose = match (step["who"].as_str(), step["unattended"].as_bool()) {
        (Some("person"), _) => "a person",
        (Some(_), _) => "you",
        (None, Some(true)) => "by itself",
        (None, _) => "with a yes",
    };
    let mut text = format!("{}. *{whose}*: {}\n", step["step"], step["why"].as_str().unwrap());
    if let Some(run) = step["run"].as_array() {
        let argv: Vec<&str> = run.iter().map(|word| word.as_str().unwrap()).collect();
        text.push_str(&format!("   `{}`\n", relay_core::domain::shell::line(&argv)));
    }
    let fails = match step["fails"].as_str() {
        Some("go_on") => " If it fails, the next step is another way.",
        Some(_) => " If it fails, the human is asked.",
        None => "",
    };
    if let Some(after) = step["after"].as_str() {
        text.push_str(&format!("   Afterwards {after}.{fails}\n"));
    }
    text
}

/// A scripted run whose answers are shown by example.
struct Story {
    bus: Bus,
    text: String,
}

impl Story {
    fn show(&mut self, agent: &str, line: &str) -> Value {
        let answer = self.ask(agent, line);
        self.tell(agent, line, answer)
    }

    fn tell(&mut self, agent: &str, line: &str, answer: Value) -> Value {
        let who = if agent.is_empty() { String::new() } else { format!("{agent}: ") };
        let line = self.masked_text(line);
        self.text.push_str(&format!("\n## {who}`relay {line} --json`\n\n```json\n{:#}\n```\n", self.masked(&answer)));
        answer
    }

    /// A glance at the work trees may be too short on a busy machine: then it is taken again.
    fn ask(&self, agent: &str, line: &str) -> Value {
        let mut answers = (0..100).map(|_| self.bus.relay(agent, split(line)).json());
        let is_whole = |answer: &Value| answer["result"]["work"]["unseen"].as_u64().unwrap_or(0) == 0;
        answers.find(is_whole).unwrap()
    }

    /// What differs from run to run is named instead.
    fn masked(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.masked_text(text)),
            Value::Array(values) => values.iter().map(|value| self.masked(value)).collect(),
            Value::Object(fields) => {
                let mask = |(name, value): (&String, &Value)| match name.as_str() {
                    "idempotency_key" => (name.clone(), json!("KEY")),
                    "bytes" | "log_bytes" => (name.clone(), json!(0)),
                    "sqlite" => (name.clone(), json!("VERSION")),
                    // What is installed on the machine that the tests run on.
                    "because" => (name.clone(), json!(null)),
                    "detected" => (name.clone(), json!(false)),
                    "diff" => (name.clone(), json!("--- a/PATH …")),
                    _ => (name.clone(), self.masked(value)),
                };
                fields.iter().map(mask).collect::<serde_json::Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    fn masked_text(&self, text: &str) -> String {
        let is_random = |text: &str| text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit());
        if is_random(text) {
            return "KEY".to_owned();
        }
        if text.len() == 40 && text.chars().all(|c| c.is_ascii_hexdigit()) {
            return "COMMIT".to_owned();
        }
        if text.starts_with("uid:") {
            return "uid:UID".to_owned();
        }
        let home = std::fs::canonicalize(self.bus.home()).unwrap();
        let (home, key) = (home.to_str().unwrap(), self.bus.key());
        match text.strip_prefix(&format!("{home}/repo-")) {
            Some(_) => "/home/relay/repo-HASH".to_owned(),
            None => {
                let relay = std::fs::canonicalize(crate::bus::RELAY).unwrap();
                let text = text.replace(relay.to_str().unwrap(), "/opt/relay/relay");
                text.replace(&key, "/abs/repo").replace(home, "/home/relay")
            }
        }
    }
}

#[test]
fn every_answer_is_shown_by_example() {
    let bus = Bus::new();
    bus.track(&["src/auth.rs", "src/main.rs"]);
    let date = format!("--date=@{} +0000", bus.now() / 1_000);
    bus.git(&["commit", "-q", "--amend", "-m", "A login", &date, "--author", "Ada <ada@example.invalid>"]);
    let mut story = Story {
        bus,
        text: "# JSON answers\n\nOne run with a fixed clock, in order. Keys and paths of the machine are masked.\n"
            .to_owned(),
    };
    story.show("BlueLake", "start --program claude-code --task 'Fix the login' --path 'src/**'");
    story.show("RedForest", "start");
    story.show("BlueLake", "prepare --thread bd-123");
    story.show("RedForest", "reserve src/auth.rs --reason bd-123 --ttl 30m");
    story.show("RedForest", "reserve src/auth.rs --if-free");
    std::fs::write(story.bus.repo().join("src/new.rs"), "line\n").unwrap();
    story.bus.git(&["add", "src/new.rs"]);
    for word in ["install", "status", "pre-commit", "remove"] {
        story.show("RedForest", &format!("guard {word}"));
    }
    story.bus.git(&["rm", "-q", "--force", "src/new.rs"]);
    story.bus.relay("GreenHill", ["start"]).success();
    story.show("GreenHill", "policy contacts_only");
    story.show("RedForest", "send --to BlueLake --cc human --thread bd-123 --subject 'Login: API changed' --body 'See src/auth.rs' --ack-required");
    story.show("RedForest", "send --to GreenHill --thread bd-123 --subject 'Login tests' --body 'Can you test it?'");
    story.show("RedForest", "recover CONTACT_REQUIRED --dry-run");
    story.show("RedForest", "link --target GreenHill --why 'tests'");
    story.show("GreenHill", "link --target RedForest --accept");
    story.show("RedForest", "recover CONTACT_REQUIRED --retry");
    story.show("RedForest", "link --list");
    let poll = story.show("BlueLake", "poll --bodies");
    let id = poll["result"]["messages"][0]["id"].as_u64().unwrap();
    story.show("BlueLake", &format!("ack {id}"));
    story.show("BlueLake", &format!("send --reply-to {id} --body Thanks"));
    story.show("BlueLake", &format!("look message {id}"));
    for noun in ["thread bd-123", "thread", "agents", "reservations", "reservations src/auth.rs"] {
        story.show("BlueLake", &format!("look {noun}"));
    }
    story.show("RedForest", "look contacts");
    story.show("RedForest", "look outbox");
    story.show("BlueLake", "look events --after 0");
    story.show("BlueLake", "log --thread bd-123 --kind message_sent,mail_acked -n 2");
    story.show("BlueLake", "log --line src/auth.rs:1");
    story.show("BlueLake", "look search login");
    story.show("BlueLake", "look search login --limit 1");
    story.show("BlueLake", "look traffic");
    story.show("BlueLake", "look day 2026-11-15");
    story.show("BlueLake", "reservations --at 8 --limit 1");
    let linked = story.bus.repo().join("linked");
    story.bus.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    for (file, text) in [("src/main.rs", "ours\n"), ("notes.md", "new\n"), ("linked/src/main.rs", "theirs\n")] {
        std::fs::write(story.bus.repo().join(file), text).unwrap();
    }
    story.bus.relay("GreenHill", ["reserve", "docs"]).success();
    story.show("RedForest", "check");
    story.bus.relay("GreenHill", ["release", "--all"]).success();
    story.bus.advance(minutes(70));
    for noun in ["status", "debt", "playbook CONTACT_BLOCKED"] {
        story.show("BlueLake", &format!("look {noun}"));
    }
    story.show("BlueLake", "release 'src/**' --keep src/auth.rs");
    story.show("BlueLake", "reserve 'src/**' --shared");
    story.show("BlueLake", "release --all");
    story.show("GreenHill", "leave bd-123");
    story.show("GreenHill", "retire");
    story.show("RedForest", "suspend BlueLake");
    story.show("", "health");
    story.show("", "drain");
    let folder = story.bus.repo().to_str().unwrap().to_owned();
    story.show("", &format!("backup {folder}/shop.db"));
    story.show("", &format!("export --thread bd-123 --output {folder}/bd-123.md"));
    story.show("", &format!("export --format jsonl --output {folder}/shop.jsonl"));
    story.show("", "verify");
    story.show("", "rebuild archive");
    story.show("", "rebuild store --from-archive");
    story.show("", &format!("rebuild store --from-backup {folder}/shop.db"));
    story.show("", "project list");
    story.show("", "token human");
    story.show("human", &format!("redact {id} --why 'it held a token'"));
    story.show("human", &format!("look message {id}"));
    story.show("", "init --only opencode --dry-run");
    story.show("", "init --only opencode");
    story.show("", "init --remove");
    story.bus.relay("", ["init", "--only", "codex"]).success();
    let mut doctor = story.bus.args("", ["doctor", "--agents"]);
    // Which programs the machine has is not for this file.
    doctor.env("PATH", story.bus.path("bin"));
    let looked = crate::bus::run(doctor);
    story.tell("", "doctor --agents", looked.json());
    story.bus.relay("", ["init", "--remove"]).success();
    story.show("", "reserve");
    golden("json-shapes.md", &story.text);
}

#[test]
fn the_tools_are_told_as_models_read_them() {
    let bus = Bus::new();
    let list = Client::over_pipe(&bus, CURRENT).ask("tools/list", json!({}));
    let list: Value = serde_json::from_str(&list).unwrap();
    golden("mcp-tools.json", &format!("{:#}\n", list["tools"]));
}

/// The block of the README that begins with this line.
fn readme_block(first: &str) -> String {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md")).unwrap();
    let from = readme.find(&format!("```\n{first}")).unwrap_or_else(|| panic!("no block begins with {first:?}")) + 4;
    readme[from..].split("```").next().unwrap().to_owned()
}

#[test]
fn the_readme_shows_an_error_as_it_is_printed() {
    let bus = Bus::with(&["BlueLake", "GoldOwl"]);
    bus.relay("GoldOwl", ["policy", "contacts_only"]).success();
    let send = ["send", "--to", "GoldOwl", "--subject", "Login", "--body", "b", "--no-recover"];
    let run = bus.text("BlueLake", [&send[..], &["--idempotency-key", "6d0f2c91"]].concat());
    assert_eq!(run.stderr.replace(&bus.key(), "/home/you/shop"), readme_block("Error: GoldOwl"));
}
