//! Waiting through a server: woken by whoever writes, and at the cost of nothing meanwhile.

use std::fs;

use serde_json::json;

use super::{until, waiting};
use crate::bus::Bus;
use crate::listening::Server;

fn threads(server: &Server<'_>) -> usize {
    fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().count()
}

#[test]
fn mail_from_another_process_wakes_those_who_wait() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.does("RedForest", "poll", json!({"wait": "60s", "bodies": true})));
        until(|| waiting(&bus) == 1);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let found = waiter.join().unwrap();
        assert_eq!(found["messages"][0]["subject"], "Login");
    });
    until(|| waiting(&bus) == 0);
}

#[test]
fn many_who_wait_hold_no_thread_each() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let before = threads(&server);
    const MANY: usize = 150;
    // All of them want what comes after this, whoever is shown it first.
    let wanted = json!({"wait": "60s", "after": bus.tip()});
    std::thread::scope(|scope| {
        let waiters: Vec<_> =
            (0..MANY).map(|_| scope.spawn(|| server.does("RedForest", "poll", wanted.clone()))).collect();
        until(|| waiting(&bus) == MANY);
        // Those who came first were looked after by some threads, which go away by and by.
        assert!(threads(&server) <= before + 40, "{} threads, {before} before", threads(&server));
        server.does("BlueLake", "send", json!({"to": ["RedForest"], "subject": "s", "body": "b", "thread": "bd-1"}));
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap()["messages"][0]["from"], "BlueLake");
        }
    });
}

#[test]
fn whoever_hangs_up_waits_no_longer() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let mut child = {
        let mut command = server.args("BlueLake", &["poll", "--wait", "60s"]);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    until(|| waiting(&bus) == 1);
    child.kill().unwrap();
    child.wait().unwrap();
    until(|| waiting(&bus) == 0);
}

#[test]
fn a_wait_in_vain_ends_as_it_does_on_the_command_line() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    assert_eq!(server.does("BlueLake", "poll", json!({"wait": "1s"}))["messages"], json!([]));
    let answer = server.call("BlueLake", "reserve", json!({"patterns": ["src/a"], "if_free": true, "wait": "1s"}));
    assert_eq!(answer["error"]["code"], "WAIT_TIMEOUT", "{answer}");
}

#[test]
fn first_come_first_served_also_through_a_server() {
    let bus = Bus::with(&["BlueLake", "RedForest", "GreenField"]);
    let server = Server::start(&bus);
    let wanted = || json!({"patterns": ["res:db"], "if_free": true, "wait": "60s"});
    bus.relay("RedForest", ["reserve", "res:db"]).success();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| server.does("BlueLake", "reserve", wanted()));
        until(|| waiting(&bus) == 1);
        let second = scope.spawn(|| server.does("GreenField", "reserve", wanted()));
        until(|| waiting(&bus) == 2);
        bus.relay("RedForest", ["release", "--all"]).success();
        assert_eq!(first.join().unwrap()["granted"][0]["pattern"], "res:db");
        assert!(!second.is_finished());
        server.does("BlueLake", "release", json!({"all": true}));
        assert_eq!(second.join().unwrap()["granted"][0]["pattern"], "res:db");
    });
}

#[test]
fn a_ring_of_waits_is_refused_across_the_server_and_the_command_line() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let waiter = bus.waiting("BlueLake", &["poll", "--from", "RedForest", "--wait", "60s"]);
    let answer = server.call("RedForest", "poll", json!({"from": "BlueLake", "wait": "60s"}));
    assert_eq!(answer["error"]["code"], "WAIT_CYCLE", "{answer}");
    drop(waiter);
}

/// Where the kernel has no more watches to give, it is looked now and then instead.
#[test]
fn whoever_cannot_be_woken_looks_by_itself() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let mut command = std::process::Command::new("unshare");
    let script = r#"echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" "$@""#;
    command.args(["--user", "--map-root-user", "sh", "-c", script]);
    let server = Server::run(&bus, crate::listening::behind(command, &crate::listening::serve(&bus, &[])));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| server.does("RedForest", "poll", json!({"wait": "60s"})));
        until(|| waiting(&bus) == 1);
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        assert_eq!(waiter.join().unwrap()["messages"][0]["subject"], "Login");
    });
}
