//! The official conformance suite against the real `relay serve`, for both revisions. What relay is expected to fail stands in
//! `tests/clients/expected-failures-<revision>.yml`, each line with its reason; a line that is no longer true fails too.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;

use serde_json::Value;

use crate::bus::{Bus, run};
use crate::effort;
use crate::listening::{self, Server};
use crate::outside;

const SUITE: &str = "node_modules/@modelcontextprotocol/conformance/dist/index.js";

#[test]
fn the_suite_of_the_current_revision_fails_where_it_is_said_to() {
    conforms("2026-07-28", 132);
}

#[test]
fn the_suite_of_the_revision_before_fails_where_it_is_said_to() {
    conforms("2025-11-25", 69);
}

/// At least so many checks pass: one that is no longer made is not one that passes.
fn conforms(revision: &str, least: usize) {
    let bus = Bus::with(&["BlueLake"]);
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap().to_string();
    let page = format!("http://{address}");
    let mut command = listening::serve(&bus, &["--project", &bus.key(), "--allow-origin", &page]);
    command.env("RELAY_TEST_FIXTURES", "1");
    let server = Server::run(&bus, command);
    keep_open(door, server.address().to_owned(), server.token.clone());
    let results = bus.path("results");
    let mut suite = outside::node(&bus);
    suite.args([
        SUITE,
        "server",
        "--requirements",
        revision,
        "--url",
        &format!("http://{address}/mcp"),
        "--output-dir",
    ]);
    suite.arg(&results).arg("--expected-failures");
    suite.arg(outside::scripts().join(format!("expected-failures-{revision}.yml")));
    let run = run(suite);
    let (passed, failed) = checks(&results);
    effort::summary(&format!("conformance {revision}: {passed} checks passed, {failed} failed"));
    assert!(run.status == 0 && passed >= least, "{passed} passed\n{}\n{}", run.stdout, run.stderr);
}

/// How many checks passed, and how many failed: a scenario without any is not one that passed.
fn checks(results: &Path) -> (usize, usize) {
    let mut statuses = Vec::new();
    for scenario in std::fs::read_dir(results).unwrap() {
        let text = std::fs::read_to_string(scenario.unwrap().path().join("checks.json")).unwrap();
        let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
        statuses.extend(checks.iter().map(|check| check["status"].clone()));
    }
    let count = |status: &str| statuses.iter().filter(|found| *found == status).count();
    (count("SUCCESS"), count("FAILURE"))
}

/// The suite cannot bring a token. Whoever comes in through this door has one; everything else passes as it is, the name under
/// which the server is called too.
fn keep_open(door: TcpListener, server: String, token: String) {
    std::thread::spawn(move || {
        for client in door.incoming().map_while(Result::ok) {
            let (server, token) = (server.clone(), token.clone());
            std::thread::spawn(move || let_in(client, &server, &token));
        }
    });
}

/// One request, and its answer for as long as it lasts.
fn let_in(mut client: TcpStream, server: &str, token: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let (request, headers) = head.split_once("\r\n").unwrap_or_default();
    let headers: Vec<&str> =
        headers.split_inclusive("\r\n").filter(|line| !line.to_ascii_lowercase().starts_with("connection:")).collect();
    let mut server = TcpStream::connect(server)?;
    // One request a connection, so that each head is seen.
    let ours = format!("Authorization: Bearer {token}\r\nConnection: close\r\n");
    server.write_all(format!("{request}\r\n{ours}{}", headers.concat()).as_bytes())?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        // A client who goes away takes its request along.
        let _ = to.shutdown(Shutdown::Both);
    });
    let _ = std::io::copy(&mut server, &mut client);
    client.shutdown(Shutdown::Both)
}
