//! The names that scripts, hooks and prompts are written against: flags, JSON paths, exit statuses.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::bus::{Bus, minutes};

/// The promise, word for word.
const PROMISE: &str = "
relay start   [--program P] [--model M] [--task T] [--session ID] [--take-over] [--path PATTERN]...
relay prepare --thread T [--limit N] [--program P] [--model M] [--task T] [--session ID] [--take-over] [--path PATTERN]...
relay reserve PATTERN... [--ttl 1h] [--shared] [--reason THREAD] [--if-free [--wait D]] [-- COMMAND...]
relay release [PATTERN...] [--id N]... [--reason THREAD [--done]] [--all] [--keep PATTERN]... [--renew TTL] [--force --why TEXT]
relay link    --target NAME [--why TEXT] [--ttl D] [--accept|--block|--revoke] [--wait D] --list
relay send    --to NAME [--cc] [--bcc] [--subject S] (--body TEXT|--body-file F|--body -) [--thread T] [--reply-to N]
              [--importance low|normal|high|urgent] [--ack-required] [--ack-within D] [--hold] [--no-recover]
relay poll    [--limit N] [--after CURSOR] [--thread T] [--urgent] [--from NAME] [--all] [--bodies] [--read] [--wait D]
relay ack     N... [--read]
relay look    message N | thread T | agents | events [--after N] | search WORDS
relay recover CODE [--set NAME=VALUE]... [--yes] [--dry-run] [--retry]
relay policy  open|auto|contacts_only|block_all
";

const GLOBALS: [&str; 4] = ["--project", "--agent", "--json", "--idempotency-key"];

/// (agent, command): each runs as written, in this order, with `$M` for the newest message and `$K` for the last key.
const LINES: &[(&str, &str)] = &[
    ("BlueLake", "start --program claude-code --model opus --task Login --session s1 --path src/a --path src/b"),
    ("BlueLake", "start --session s2 --take-over"),
    ("RedForest", "prepare --thread bd-1 --limit 5 --program codex --model gpt --task Tests --session s3 --path tests"),
    ("RedForest", "prepare --thread bd-1 --session s4 --take-over"),
    ("BlueLake", "policy open"),
    ("BlueLake", "policy contacts_only"),
    ("BlueLake", "policy block_all"),
    ("BlueLake", "policy auto"),
    ("BlueLake", "reserve docs README.md --ttl 90s --shared --reason bd-1"),
    ("BlueLake", "reserve res:db --if-free --wait 1s"),
    ("BlueLake", "reserve res:port -- true"),
    ("BlueLake", "release --reason bd-1 --done"),
    ("BlueLake", "release --renew 2h"),
    ("BlueLake", "release src/a --keep src/a/x --keep src/a/y"),
    ("BlueLake", "release --all"),
    ("BlueLake", "link --target RedForest --why both --ttl 10m --wait 2h"),
    ("BlueLake", "link --target RedForest --block"),
    ("BlueLake", "link --target RedForest --revoke"),
    ("RedForest", "link --target BlueLake"),
    ("BlueLake", "link --target RedForest --accept"),
    ("BlueLake", "link --list"),
    (
        "BlueLake",
        "send --to RedForest --cc GreenHill --bcc human --subject Login --body text --thread bd-1 --importance low",
    ),
    ("BlueLake", "send --to RedForest,GreenHill --subject Login --body-file $F --importance normal"),
    ("BlueLake", "send --reply-to $M --body - --importance high --ack-required --no-recover"),
    ("BlueLake", "send --to @all --subject Login --body text --importance urgent --ack-within 90s --hold"),
    ("RedForest", "send --to @thread --thread bd-1 --body text"),
    ("RedForest", "poll --limit 10 --after 0 --thread bd-1 --from BlueLake --wait 90s"),
    ("RedForest", "poll --urgent --all --bodies --read"),
    ("BlueLake", "ack $M"),
    ("BlueLake", "ack $M --read"),
    ("BlueLake", "look message $M"),
    ("BlueLake", "look thread bd-1"),
    ("BlueLake", "look agents"),
    ("BlueLake", "look reservations"),
    ("BlueLake", "look reservations src/a"),
    ("BlueLake", "look contacts"),
    ("BlueLake", "look outbox"),
    ("BlueLake", "look events"),
    ("BlueLake", "look events --after 3"),
    ("BlueLake", "look search text"),
    ("BlueLake", "look status"),
    ("BlueLake", "look debt"),
    ("BlueLake", "look playbook STORE_BUSY"),
    ("BlueLake", "recover CONTACT_REQUIRED --set ask=RedForest --yes --dry-run"),
    ("RedForest", "release --id $C --force --why crashed"),
];

fn flags(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_lowercase() || c == '-'))
        .filter(|word| word.len() > 2 && word.starts_with("--"))
        .collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

#[test]
fn every_promised_flag_is_taken_as_it_is_written() {
    let bus = Bus::with(&["GreenHill"]);
    let file = bus.path("body");
    std::fs::write(&file, "from a file").unwrap();
    let (mut message, mut claim) = (String::new(), String::new());
    for (agent, line) in LINES {
        if line.contains("--force") {
            // A claim can be taken over only from somebody who is silent.
            claim = bus.relay("BlueLake", ["reserve", "late"]).success().result()["granted"][0]["id"].to_string();
            bus.advance(minutes(30));
        }
        let line = line.replace("$M", &message).replace("$C", &claim).replace("$F", file.to_str().unwrap());
        let mut command = bus.args(agent, words(&line));
        if line.contains("--body -") {
            command.stdin(std::fs::File::open(&file).unwrap());
        }
        let run = crate::bus::run(command).success();
        // With a command after `--` the command's own output comes between.
        if let Some(id) = run.result()["message"]["id"].as_u64() {
            message = id.to_string();
        }
    }
    // `--retry` needs something that failed.
    bus.relay("WhiteCloud", ["start"]).success();
    bus.relay("WhiteCloud", ["policy", "contacts_only"]).success();
    let first = "send --to WhiteCloud --subject Hi --body text --idempotency-key k1";
    bus.relay("GreenHill", words(first)).fails("CONTACT_REQUIRED");
    bus.relay("WhiteCloud", ["policy", "open"]).success();
    bus.relay("GreenHill", words("recover CONTACT_REQUIRED --retry --idempotency-key k1")).success();
}

#[test]
fn the_lines_above_leave_no_promised_flag_out() {
    let mut verb = "";
    let mut promised = std::collections::BTreeMap::<&str, BTreeSet<&str>>::new();
    for line in PROMISE.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("relay ") {
            verb = rest.split(' ').next().unwrap();
        }
        promised.entry(verb).or_default().extend(flags(line));
    }
    for (verb, promised) in promised {
        let used: BTreeSet<&str> =
            LINES.iter().filter(|(_, line)| line.starts_with(verb)).flat_map(|(_, line)| flags(line)).collect();
        let missing: Vec<_> = promised.difference(&used).filter(|flag| **flag != "--retry").collect();
        assert!(missing.is_empty(), "{verb} {missing:?}");
    }
}

#[test]
fn every_command_takes_the_common_flags() {
    let bus = Bus::new();
    let help = bus.text("", ["--help"]).success().stdout;
    let commands: Vec<&str> = crate::golden::commands(&help);
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        let help = bus.text("", [command, "--help"]).success().stdout;
        for flag in GLOBALS {
            assert!(help.contains(flag), "{command} does not take {flag}");
        }
    }
}

/// Whether a value is what a path promises.
fn is(value: &Value, wanted: &str) -> bool {
    match wanted {
        "number" => value.is_u64(),
        "text" => value.as_str().is_some_and(|text| !text.is_empty()),
        "flag" => value.is_boolean(),
        "list" => value.is_array(),
        // UTC, RFC 3339, with milliseconds.
        "time" => value.as_str().is_some_and(|text| text.len() == 24 && text.ends_with('Z') && text.contains('T')),
        "time?" => value.is_null() || is(value, "time"),
        other => value == other,
    }
}

/// Walks a path such as `granted[].id`; every element of a list must be what it promises, and there must be one.
fn check(result: &Value, path: &str, wanted: &str) {
    let mut values = vec![result.clone()];
    for part in path.split('.') {
        let (name, each) = part.strip_suffix("[]").map_or((part, false), |name| (name, true));
        values = values
            .iter()
            .map(|value| value.get(name).unwrap_or_else(|| panic!("no {path} in {result}")).clone())
            .collect();
        if each {
            values = values.iter().flat_map(|value| value.as_array().unwrap().clone()).collect();
        }
    }
    assert!(!values.is_empty(), "nothing at {path} in {result}");
    for value in values {
        assert!(is(&value, wanted), "{path} is {value}, not {wanted}");
    }
}

#[test]
fn every_promised_path_has_its_type() {
    let bus = Bus::with(&["RedForest"]);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    let result = |agent: &str, line: &str| bus.relay(agent, words(line)).success().result();

    let start = result("BlueLake", "start");
    for (path, wanted) in [("agent.name", "BlueLake"), ("project.key", &bus.key()), ("inbox.unread", "number")] {
        check(&start, path, wanted);
    }
    let reserve = result("BlueLake", "reserve src/a.rs");
    for (path, wanted) in [
        ("granted[].id", "number"),
        ("granted[].pattern", "src/a.rs"),
        ("granted[].exclusive", "flag"),
        ("granted[].expires_at", "time"),
        ("conflicts[].id", "number"),
        ("conflicts[].pattern", "src/**"),
        ("conflicts[].holder", "RedForest"),
        ("conflicts[].exclusive", "flag"),
        ("conflicts[].expires_at", "time"),
        ("conflicts[].overlaps", "src/a.rs"),
        ("conflicts[].example", "src/a.rs"),
        ("conflicts_total", "number"),
    ] {
        check(&reserve, path, wanted);
    }
    let link = result("BlueLake", "link --target RedForest");
    check(&link, "link.id", "number");
    check(&link, "link.state", "accepted");
    let send = result("BlueLake", "send --to RedForest --thread bd-1 --subject Login --body text --ack-required");
    for (path, wanted) in [
        ("message.id", "number"),
        ("message.thread", "bd-1"),
        ("message.recipients[].name", "RedForest"),
        ("message.recipients[].kind", "to"),
        ("message.recipients[].state", "stored"),
    ] {
        check(&send, path, wanted);
    }
    let prepare = result("BlueLake", "prepare --thread bd-1");
    for (path, wanted) in [("thread.id", "bd-1"), ("thread.subject", "Login"), ("messages[].id", "number")] {
        check(&prepare, path, wanted);
    }
    let poll = result("RedForest", "poll --bodies");
    for (path, wanted) in [
        ("messages[].id", "number"),
        ("messages[].thread", "bd-1"),
        ("messages[].from", "BlueLake"),
        ("messages[].subject", "Login"),
        ("messages[].importance", "normal"),
        ("messages[].ack_required", "flag"),
        ("messages[].sent_at", "time"),
        ("messages[].read_at", "time?"),
        ("messages[].acked_at", "time?"),
        ("messages[].body", "text"),
        ("contested", "list"),
        ("contested[].holder", "BlueLake"),
        ("cursor", "number"),
    ] {
        check(&poll, path, wanted);
    }
    assert!(result("RedForest", "poll")["messages"][0].get("body").is_none(), "a body comes only when it is asked for");
    let ack = result("RedForest", &format!("ack {}", send["message"]["id"]));
    for (path, wanted) in
        [("acks[].id", "number"), ("acks[].read_at", "time"), ("acks[].acked_at", "time"), ("acks[].first", "flag")]
    {
        check(&ack, path, wanted);
    }
    let release = result("BlueLake", "release --all");
    check(&release, "released[].id", "number");
    check(&release, "released[].pattern", "src/a.rs");
}

#[test]
fn an_answer_spells_out_fifty_conflicts_and_counts_all() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let many: Vec<String> = (0..51).map(|number| format!("src/{number:02}.rs")).collect();
    bus.relay("RedForest", ["reserve".to_owned()].into_iter().chain(many)).success();
    for (pattern, shown, total) in [("src/**", 50, 51), ("src/0?.rs", 10, 10), ("docs", 0, 0)] {
        let result = bus.relay("BlueLake", ["reserve", pattern]).success().result();
        assert_eq!(result["conflicts"].as_array().unwrap().len(), shown, "{pattern}");
        assert_eq!(result["conflicts_total"], total, "{pattern}");
    }
    let started = bus.relay("BlueLake", ["start", "--path", "src"]).success().result();
    assert_eq!(started["conflicts"].as_array().unwrap().len(), 50);
    assert_eq!(started["conflicts_total"], 51);
}

#[test]
fn every_answer_has_the_one_shape() {
    let bus = Bus::with(&["BlueLake"]);
    for (line, verb) in
        [("status", "look"), ("reserve src", "reserve"), ("health", "health"), ("project list", "project")]
    {
        let json = bus.relay("BlueLake", words(line)).success().json();
        let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(BTreeSet::from_iter(keys), BTreeSet::from(["next", "ok", "relay", "result", "signals", "verb"]));
        assert_eq!((&json["relay"], &json["ok"], &json["verb"]), (&1.into(), &true.into(), &verb.into()), "{line}");
    }
    let failed =
        bus.relay("BlueLake", words("send --to RedForest --subject Hi --body text")).fails("RECIPIENT_NOT_FOUND");
    let json = failed.json();
    assert_eq!((&json["relay"], &json["ok"], &json["verb"]), (&1.into(), &false.into(), &"send".into()));
    for (path, wanted) in [
        ("error.code", "RECIPIENT_NOT_FOUND"),
        ("error.kind", "unknown"),
        ("error.message", "text"),
        ("error.retryable", "flag"),
        ("error.idempotency_key", "text"),
        ("error.playbook", "list"),
        ("error.playbook[].step", "number"),
        ("error.playbook[].why", "text"),
        ("error.playbook[].unattended", "flag"),
    ] {
        check(&json, path, wanted);
    }
    assert!(json["error"]["details"].is_object());
}

#[test]
fn each_kind_of_failure_has_its_exit_status() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["reserve", "src"]).success();
    bus.relay("RedForest", ["policy", "block_all"]).success();
    for (line, status) in [
        ("status", 0),
        ("nonsense", 2),
        ("reserve ../x", 2),
        ("look message 99", 3),
        ("thread none", 3),
        ("send --to RedForest --subject Hi --body text", 4),
        ("reserve src --if-free", 5),
        ("release docs", 5),
        ("reserve src --if-free --wait 1ms", 6),
        ("status --agent human", 8),
    ] {
        assert_eq!(bus.relay("BlueLake", words(line)).status, status, "{line}");
        assert_eq!(bus.text("BlueLake", words(line)).status, status, "{line}");
    }
    let store = bus.store();
    for file in ["relay.db", "relay.db-wal", "relay.db-shm"] {
        std::fs::write(store.join(file), "garbage ".repeat(1000)).unwrap();
    }
    assert_eq!(bus.relay("BlueLake", ["status"]).status, 7);
    bus.forget();
}
