//! `relay doctor`: everything at one look, each finding with its class and its way out, and nothing healthy called damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use relay_core::error::Code;
use relay_core::wire::v1::SignalCode;
use rusqlite::Connection;
use serde_json::Value;

use crate::bus::{Bus, Run, hours, minutes, run};
use crate::privilege::{Foreign, Stage};
use crate::terminal::text;

fn checks(run: &Run) -> Vec<Value> {
    run.result()["checks"].as_array().unwrap().clone()
}

/// What is worse than a note, as `check class`.
fn troubles(run: &Run) -> Vec<String> {
    let is_trouble = |check: &&Value| check["severity"] == "warning" || check["severity"] == "error";
    let name = |check: &Value| format!("{} {}", text(&check["check"]), check["class"].as_str().unwrap_or("-"));
    checks(run).iter().filter(is_trouble).map(name).collect()
}

fn look(bus: &Bus) -> Run {
    bus.relay("", ["doctor"])
}

/// A file that relay could have made.
fn private(path: &std::path::Path) {
    fs::write(path, "").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// With this done to a healthy store, this is found, and this is the exit status.
#[track_caller]
fn finds(bus: &Bus, expected: &[&str], status: i32) -> Run {
    let found = look(bus);
    assert_eq!((troubles(&found), found.status), (expected.iter().map(|name| (*name).to_owned()).collect(), status));
    for check in checks(&found).iter().filter(|check| check["severity"] != "ok") {
        let class = text(&check["class"]);
        let is_known = Code::parse(&class).is_some() || SignalCode::ALL.iter().any(|code| code.as_str() == class);
        assert!(is_known && !check["playbook"].as_array().unwrap().is_empty(), "no class or no way out: {check}");
    }
    found
}

#[test]
fn a_healthy_store_is_healthy_and_is_not_touched() {
    let bus = Bus::drained();
    let (tip, before) = (bus.tip(), fs::read(bus.store().join("relay.db")).unwrap());
    let found = finds(&bus, &[], 0);
    let named: Vec<String> = checks(&found).iter().map(|check| text(&check["check"])).collect();
    for check in [
        "relay",
        "git",
        "home",
        "human",
        "permissions",
        "room",
        "store",
        "log",
        "chain",
        "gate",
        "archive",
        "growth",
        "debt",
    ] {
        assert!(named.contains(&check.to_owned()), "{check} was not looked at: {named:?}");
    }
    assert_eq!((bus.tip(), fs::read(bus.store().join("relay.db")).unwrap()), (tip, before));
    let shown = bus.text("", ["doctor"]).success().stdout;
    assert!(shown.contains("ok      store:") && shown.contains("SQLite 3."), "{shown}");
}

#[test]
fn a_machine_is_looked_at_from_anywhere() {
    let bus = Bus::new();
    let mut outside = bus.args("", ["doctor"]);
    outside.current_dir(bus.path(""));
    let found = run(outside).success();
    assert_eq!((troubles(&found), found.result()["project"].clone()), (Vec::new(), Value::Null));
    let nobody = finds(&bus, &[], 0);
    assert!(nobody.stdout.contains("nobody has started"), "{}", nobody.stdout);
    assert!(!bus.home().exists(), "looking makes nothing");
}

#[test]
fn a_store_that_others_write_to_meanwhile_is_not_called_damaged() {
    let bus = Bus::drained();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|writer| {
                let bus = &bus;
                scope.spawn(move || {
                    for number in 0..25 {
                        let body = format!("{writer} {number}");
                        let args =
                            ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", &body];
                        bus.relay("BlueLake", args).success();
                    }
                    bus.relay("", ["drain", "--wait"]).success();
                })
            })
            .collect();
        let mut looks = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            let found = look(&bus);
            let errors: Vec<Value> = checks(&found).into_iter().filter(|check| check["severity"] == "error").collect();
            assert_eq!((errors, found.status), (Vec::new(), 0));
            looks += 1;
        }
        assert!(looks > 0);
    });
}

#[test]
fn what_is_wrong_with_a_file_has_its_class_and_its_status() {
    let spoilt = |spoil: &dyn Fn(&std::path::Path), expected: &[&str], status: i32| {
        let bus = Bus::drained();
        spoil(&bus.store());
        finds(&bus, expected, status);
        bus.forget();
    };
    let garbage = |store: &std::path::Path| fs::write(store.join("relay.db"), "garbage".repeat(10_000)).unwrap();
    spoilt(&garbage, &["store STORE_DAMAGED"], 7);
    let newer = |store: &std::path::Path| {
        Connection::open(store.join("relay.db")).unwrap().pragma_update(None, "user_version", 9_999).unwrap();
    };
    spoilt(&newer, &["store STORE_TOO_NEW"], 7);
    let altered = |store: &std::path::Path| {
        let sql = "UPDATE events SET payload = replace(payload, 'RedForest', 'RedForist') WHERE number = 4";
        assert_eq!(Connection::open(store.join("relay.db")).unwrap().execute(sql, []).unwrap(), 1);
    };
    spoilt(&altered, &["chain STORE_DAMAGED"], 7);
    let doubt = |store: &std::path::Path| private(&store.join("unsynced"));
    spoilt(&doubt, &["disk STORE_IO"], 0);
}

#[test]
fn a_store_of_somebody_else_is_said_to_be_so() {
    let bus = Bus::drained();
    let foreign = Foreign::new(&bus.store().join("relay.db"));
    finds(&bus, &["store STORE_FOREIGN"], 8);
    drop(foreign);
    finds(&bus, &[], 0);
}

#[test]
fn a_disk_without_room_is_an_error_before_anything_fails() {
    let bus = Bus::new();
    fs::create_dir(bus.home()).unwrap();
    let stage = Stage::new();
    stage.mount(&["-t", "tmpfs", "-o", "size=4m,mode=0700", "relay-test"], &bus.home());
    let relay = |agent: &str, args: &[&str]| run(stage.enter(&bus.args(agent, args)));
    relay("BlueLake", &["start"]).success();
    assert_eq!(troubles(&relay("", &["doctor"]).success()), ["room STORE_FULL"], "four megabytes are little");
    fs::write(stage.look(&bus.home()).join("ballast"), vec![0; 3_000_000]).unwrap();
    let found = relay("", &["doctor"]);
    assert_eq!((troubles(&found), found.status), (vec!["room STORE_FULL".to_owned()], 6));
}

#[test]
fn a_gate_that_is_held_is_busy_and_not_damaged() {
    let bus = Bus::drained();
    let gate = fs::File::options().read(true).write(true).open(bus.store().join("gate")).unwrap();
    gate.lock().unwrap();
    let found = finds(&bus, &["gate STORE_BUSY"], 0);
    assert!(found.stdout.contains("last taken by pid"), "{}", found.stdout);
}

/// Somebody who never ends a look at the store keeps its log from being folded.
#[test]
fn a_log_that_cannot_be_folded_is_told_before_it_fills_the_disk() {
    let bus = Bus::drained();
    let reader = Connection::open(bus.store().join("relay.db")).unwrap();
    let look_at = |sql: &str| reader.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let seen = look_at("SELECT count(*) FROM events");
    let log = || fs::metadata(bus.store().join("relay.db-wal")).map_or(0, |file| file.len());
    let body = (0..18_000).map(|number| format!("w{number}")).collect::<Vec<_>>().join(" ");
    while log() <= 64 * 1024 * 1024 {
        let send = ["send", "--to", "RedForest", "--thread", "bd-1", "--subject", "Login", "--body", &body];
        bus.relay("BlueLake", send).success();
    }
    bus.relay("", ["drain", "--wait"]).success();
    let found = finds(&bus, &["log STORE_BUSY"], 0);
    assert!(found.stdout.contains("an old view"), "{}", found.stdout);
    assert_eq!(look_at("SELECT count(*) FROM events"), seen);
    drop(reader);
    bus.relay("", ["drain", "--wait"]).success();
    finds(&bus, &[], 0);
}

#[test]
fn what_is_open_to_others_is_closed_by_a_fix() {
    let bus = Bus::drained();
    let open = || fs::set_permissions(bus.store().join("relay.db"), fs::Permissions::from_mode(0o644)).unwrap();
    open();
    finds(&bus, &["permissions STORE_FOREIGN"], 0);
    open();
    let modes = |path: &str| fs::metadata(bus.store().join(path)).unwrap().permissions().mode() & 0o777;
    let fixed = bus.relay("", ["doctor", "--fix"]).success();
    assert!(text(&fixed.result()["fixed"][0]).contains("relay.db"), "{}", fixed.stdout);
    assert_eq!((troubles(&fixed), modes("relay.db")), (Vec::new(), 0o600));
}

#[test]
fn an_archive_that_lags_is_brought_up_to_date_by_a_fix_and_one_that_diverged_is_not() {
    let bus = Bus::drained();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    finds(&bus, &[], 0);
    bus.advance(minutes(2));
    finds(&bus, &["archive ARCHIVE_BEHIND"], 0);
    let fixed = bus.relay("", ["doctor", "--fix"]).success();
    assert_eq!(troubles(&fixed), [""; 0]);
    let git = |args: &[&str]| {
        let output = bus.git_in(&bus.store().join("archive.git"), args);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let foreign = git(&["commit-tree", "main^{tree}", "-p", "main", "-m", "mine"]);
    git(&["update-ref", "refs/heads/main", &foreign]);
    finds(&bus, &["archive ARCHIVE_DIVERGED"], 7);
    let fixed = bus.relay("", ["doctor", "--fix"]);
    assert_eq!(fixed.status, 7, "a person looks at what is not relay's first");
    assert_eq!(git(&["rev-parse", "main"]), foreign);
    assert_eq!(troubles(&fixed), ["archive ARCHIVE_DIVERGED", "question ARCHIVE_DIVERGED"], "but is asked");
    bus.relay("", ["rebuild", "archive"]).success();
    let settled = bus.relay("", ["doctor", "--fix"]).success();
    assert!(settled.stdout.contains("is settled"), "{}", settled.stdout);
    finds(&bus, &[], 0);
}

#[test]
fn without_git_the_rest_is_well() {
    let bus = Bus::drained();
    let empty = bus.path("empty");
    fs::create_dir(&empty).unwrap();
    let mut command = bus.args("", ["doctor"]);
    command.env("PATH", &empty);
    let found = run(command).success();
    assert_eq!(troubles(&found), ["git ARCHIVE_UNAVAILABLE"]);
}

#[test]
fn what_died_at_its_work_is_named() {
    let bus = Bus::drained();
    fs::write(bus.store().join("archive.git/refs/heads/main.lock"), "").unwrap();
    private(&bus.store().join("relay.anew.db"));
    let found = finds(&bus, &[], 0);
    assert!(found.stdout.contains("relay.anew.db") && found.stdout.contains("main.lock"), "{}", found.stdout);
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.relay("", ["drain", "--wait"]).success();
    let found = finds(&bus, &[], 0);
    assert!(!found.stdout.contains("relay.anew.db") && !found.stdout.contains("main.lock"), "{}", found.stdout);
}

#[test]
fn what_the_project_owes_itself_is_found_too() {
    let bus = Bus::drained();
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    bus.relay("RedForest", ["reserve", "src/a.rs"]).success();
    let send =
        ["send", "--to", "RedForest", "--subject", "Login", "--body", "b", "--thread", "bd-1", "--ack-within", "5m"];
    bus.relay("BlueLake", send).success();
    bus.relay("BlueLake", ["send", "--to", "human", "--subject", "Which?", "--body", "b", "--ack-required"]).success();
    bus.advance(minutes(11));
    bus.relay("", ["drain", "--wait"]).success();
    let expected =
        ["debt SOMEONE_WAITS", "debt ACK_OVERDUE", "debt CONTESTED", "debt HOLDER_SILENT"].map(str::to_owned);
    assert_eq!(troubles(&look(&bus).success()), expected);
    bus.advance(hours(48));
    assert!(look(&bus).success().stdout.contains("by name alone"));
}

/// A question goes when what its playbook wants is so, and not when doctor happened not to look there.
#[test]
fn a_question_stays_as_long_as_what_it_is_about() {
    let bus = Bus::drained();
    let store = || Connection::open(bus.store().join("relay.db")).unwrap();
    store().execute("UPDATE agents SET policy = 'block_all'", []).unwrap();
    bus.relay("", ["verify"]).fails("STORE_DAMAGED");
    bus.relay("", ["recover", "STORE_DAMAGED", "--escalate"]).success();
    let fixed = bus.relay("", ["doctor", "--fix"]).success();
    assert_eq!(troubles(&fixed), ["question STORE_DAMAGED"]);
    store().execute("UPDATE agents SET policy = 'auto'", []).unwrap();
    assert_eq!(troubles(&bus.relay("", ["doctor", "--fix"]).success()), [""; 0]);
}

#[test]
fn what_stands_in_the_place_of_a_store_is_no_new_project() {
    let bus = Bus::drained();
    let store = bus.store();
    fs::rename(&store, bus.path("away")).unwrap();
    fs::write(&store, "").unwrap();
    finds(&bus, &["store STORE_FOREIGN"], 8);
    fs::remove_file(&store).unwrap();
    fs::rename(bus.path("away"), &store).unwrap();
    bus.relay("x y", ["doctor"]).fails("AGENT_NAME_INVALID");
}

#[test]
fn a_store_that_nobody_can_write_to_is_an_error() {
    let bus = Bus::drained();
    let stage = Stage::new();
    stage.mount(&["--bind", bus.home().to_str().unwrap()], &bus.home());
    stage.mount(&["-o", "remount,bind,ro"], &bus.home());
    let found = run(stage.enter(&bus.args("", ["doctor"])));
    assert_eq!(
        (troubles(&found), found.status),
        (vec!["home STORE_READONLY".to_owned(), "gate STORE_READONLY".to_owned()], 6)
    );
}

#[test]
fn what_is_found_does_not_depend_on_who_looks() {
    let bus = Bus::drained();
    bus.relay("BlueLake", ["send", "--to", "human", "--subject", "Which?", "--body", "b", "--ack-required"]).success();
    bus.relay("RedForest", ["suspend", "BlueLake"]).success();
    for agent in ["BlueLake", "Ghost", "no name"] {
        let mut command = bus.args("", ["doctor", "--fix"]);
        command.env("RELAY_AGENT", agent);
        assert_eq!(troubles(&run(command).success()), ["debt SOMEONE_WAITS"], "{agent}");
    }
}

#[test]
fn what_is_wrong_around_the_stores_is_found_and_the_rest_is_looked_at() {
    let bus = Bus::drained();
    let config = bus.home().join("config.toml");
    fs::write(&config, "x = 1\n").unwrap();
    let found = look(&bus);
    assert_eq!((troubles(&found)[0].as_str(), found.status), ("config INPUT_INVALID", 2));
    assert!(checks(&found).iter().any(|check| check["check"] == "git"), "{}", found.stdout);
    fs::remove_file(&config).unwrap();
    let mut gone = bus.args("", ["doctor"]);
    gone.env("RELAY_PROJECT", "/no/such/folder");
    assert_eq!(troubles(&run(gone)), ["project PROJECT_KEY_INVALID"]);
    let foreign = Foreign::new(&bus.home());
    let found = look(&bus);
    assert_eq!((troubles(&found)[0].as_str(), found.status), ("home STORE_FOREIGN", 8));
    drop(foreign);
}

#[test]
fn what_could_not_be_fixed_is_not_called_fixed() {
    let bus = Bus::drained();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    bus.advance(minutes(2));
    let empty = bus.path("empty");
    fs::create_dir(&empty).unwrap();
    let mut command = bus.args("", ["doctor", "--fix"]);
    command.env("PATH", &empty);
    let result = run(command).success().result();
    assert_eq!(result["fixed"].as_array().unwrap().len(), 0, "{result}");
    assert!(text(&result["failed"][0]).contains("git cannot be started"), "{result}");
    assert_eq!(result["asked"].as_array().unwrap().len(), 1, "{result}");
}

#[test]
fn from_outside_every_project_is_looked_at() {
    let bus = Bus::drained();
    let outside = || {
        let mut command = bus.args("", ["doctor"]);
        command.current_dir(bus.path(""));
        run(command)
    };
    let found = outside().success();
    assert!(
        checks(&found).iter().any(|check| check["check"] == "project" && check["severity"] == "ok"),
        "{}",
        found.stdout
    );
    fs::write(bus.store().join("relay.db"), "garbage".repeat(10_000)).unwrap();
    let found = outside();
    assert_eq!((troubles(&found), found.status), (vec!["project STORE_DAMAGED".to_owned()], 7));
    bus.forget();
}

#[test]
fn a_clock_that_jumped_is_said_to_have_jumped() {
    let bus = Bus::drained();
    bus.advance(-hours(2));
    finds(&bus, &["clock CLOCK_JUMPED"], 0);
}

#[test]
fn it_remembers_no_answers_and_says_so() {
    let bus = Bus::drained();
    bus.relay("", ["doctor", "--idempotency-key", "k"]).fails("INPUT_INVALID");
}
