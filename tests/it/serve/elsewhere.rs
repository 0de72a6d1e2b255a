//! Commands on the stores themselves, where `RELAY_URL` says that a server has them: they look at this machine, and say so.

use serde_json::Value;

use crate::bus::{Bus, Run, run};
use crate::listening::{Server, token};
use crate::terminal::text;

/// A command on a machine that has no stores, beside a server that has them.
fn away(server: &Server<'_>, args: &[&str]) -> Run {
    let mut command = server.args("", args);
    command.env("RELAY_HOME", server.bus.path("another-home"));
    run(command)
}

#[test]
fn a_store_that_is_not_on_this_machine_is_said_to_be_where_the_server_runs() {
    let bus = Bus::drained();
    let server = Server::start(&bus);
    let commands: [&[&str]; 7] = [
        &["health"],
        &["verify"],
        &["backup", "copy.db"],
        &["export"],
        &["drain", "--wait"],
        &["rebuild", "archive"],
        &["rebuild", "store", "--from-archive"],
    ];
    for args in commands {
        let error = away(&server, args).fails("STORE_UNREACHABLE").error();
        let message = text(&error["message"]);
        assert!(message.contains(&server.url) && message.contains("another-home"), "{args:?}: {error}");
        let steps = error["playbook"].as_array().unwrap();
        assert!(steps.len() == 1 && text(&steps[0]["why"]).contains("where the server runs"), "{args:?}: {error}");
    }
    // Where the stores are, a server beside them is in nobody's way.
    for args in [&["health"][..], &["verify"], &["drain", "--wait"]] {
        run(server.args("BlueLake", args)).success();
    }
}

/// What `doctor` says of the server: how bad it is, and the class.
fn found(run: &Run, check: &str) -> (String, Value) {
    let checks = run.result()["checks"].as_array().unwrap().clone();
    let found = checks.into_iter().find(|found| found["check"] == check).unwrap_or_else(|| panic!("{}", run.stdout));
    assert!(found["severity"] == "ok" || found["playbook"][0]["why"].is_string(), "no way out: {found}");
    (text(&found["severity"]), found["class"].clone())
}

#[test]
fn doctor_looks_whether_the_server_answers_and_takes_the_token() {
    let bus = Bus::drained();
    let server = Server::start(&bus);
    let whole = run(server.args("", &["doctor"])).success();
    assert_eq!(found(&whole, "server"), ("ok".to_owned(), Value::Null));
    let elsewhere = away(&server, &["doctor"]).success();
    assert_eq!(found(&elsewhere, "server"), ("ok".to_owned(), Value::Null));
    assert_eq!(found(&elsewhere, "store"), ("note".to_owned(), "STORE_UNREACHABLE".into()));
    let with = |name: &str, value: &str| {
        let mut command = server.args("", &["doctor"]);
        command.env(name, value);
        run(command)
    };
    let refused = with("RELAY_TOKEN", "relay_no");
    assert_eq!((refused.status, found(&refused, "server")), (8, ("error".to_owned(), "UNAUTHORIZED".into())));
    let wrong = with("RELAY_URL", "ftp://somewhere");
    assert_eq!((wrong.status, found(&wrong, "server")), (2, ("error".to_owned(), "INPUT_INVALID".into())));
    let url = server.url.clone();
    let mut gone = server.args("", &["doctor"]);
    assert_eq!(server.stop(), 0);
    let gone = run({
        gone.env("RELAY_URL", url);
        gone
    });
    assert_eq!((gone.status, found(&gone, "server")), (6, ("error".to_owned(), "STORE_UNREACHABLE".into())));
}

#[test]
fn a_token_is_printed_alone_and_beside_it_which_stores_it_opens() {
    let bus = Bus::new();
    let made = bus.text("", ["token", "add", "laptop"]).success();
    let token = made.stdout.strip_suffix('\n').unwrap();
    assert!(!token.is_empty() && !token.contains(char::is_whitespace), "`$(relay token add laptop)`: {made:?}");
    assert!(made.stderr.contains(bus.home().to_str().unwrap()) && made.stderr.contains("revoke laptop"), "{made:?}");
    let mut list = bus.command();
    list.args(["token", "list"]).env("RELAY_URL", "http://bus.invalid:7717/mcp");
    let listed = run(list).success();
    assert!(listed.stderr.contains("http://bus.invalid:7717 ") && listed.stdout.starts_with("laptop:"), "{listed:?}");
    assert_eq!(bus.text("", ["token", "list"]).success().stderr, "");
}

/// The credential of a token that stands for itself is its name.
#[test]
fn a_separate_token_made_anew_has_the_agents_of_the_old_one() {
    let bus = Bus::new();
    let server = Server::start(&bus);
    let as_guest = |secret: &str, args: &[&str]| {
        let mut command = server.args("GreenField", args);
        command.env("RELAY_TOKEN", secret);
        run(command)
    };
    let first = token(&bus, "guest", &["--separate"]);
    as_guest(&first, &["start"]).success();
    bus.relay("", ["token", "revoke", "guest"]).success();
    let second = token(&bus, "guest", &["--separate"]);
    as_guest(&first, &["poll"]).fails("UNAUTHORIZED");
    as_guest(&second, &["poll"]).success();
}
