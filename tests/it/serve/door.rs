//! Who is let in: every route, and everything that can be wrong with whoever knocks.

use relay_server::http::ROUTES;
use serde_json::json;

use crate::bus::Bus;
use crate::listening::{Server, token};
use crate::privilege::Foreign;
use crate::terminal::text;

/// What is wrong, the headers, the body, and the status that says so.
type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, u16);

/// Whoever is not let in, however it knocks.
#[test]
fn every_route_is_behind_the_same_door() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::with(&bus, &["--allow-host", "bus.example", "--allow-origin", "https://app.example"]);
    let revoked = token(&bus, "gone", &[]);
    bus.relay("", ["token", "revoke", "gone"]).success();
    let tip = bus.tip();
    let own = format!("Bearer {}", server.token);
    let (wrong, gone) = (format!("Bearer relay_{}", "0".repeat(64)), format!("Bearer {revoked}"));
    let basic = format!("Basic {}", server.token);
    let json = ("content-type", "application/json");
    let accept = ("accept", "application/json, text/event-stream");
    let cases: Vec<Case<'_>> = vec![
        ("no token", vec![json, accept], "{}", 401),
        ("a wrong token", vec![json, accept, ("authorization", &wrong)], "{}", 401),
        ("a revoked token", vec![json, accept, ("authorization", &gone)], "{}", 401),
        ("another scheme", vec![json, accept, ("authorization", &basic)], "{}", 401),
        ("the token alone", vec![json, accept, ("authorization", &server.token)], "{}", 401),
        ("a foreign host", vec![json, accept, ("authorization", &own), ("host", "evil.example")], "{}", 403),
        (
            "a host that looks alike",
            vec![json, accept, ("authorization", &own), ("host", "localhost.evil.example")],
            "{}",
            403,
        ),
        ("no host", vec![json, accept, ("authorization", &own), ("host", "")], "{}", 403),
        ("a foreign page", vec![json, accept, ("authorization", &own), ("origin", "https://evil.example")], "{}", 403),
        ("a page without a name", vec![json, accept, ("authorization", &own), ("origin", "null")], "{}", 403),
        (
            "the page of another port",
            vec![json, accept, ("authorization", &own), ("origin", "https://app.example:8443")],
            "{}",
            403,
        ),
    ];
    for (method, path) in ROUTES {
        for (wrong, headers, body, status) in &cases {
            let reply = server.request(method, path, headers, body);
            assert_eq!(reply.status, *status, "{wrong} at {path}: {reply:?}");
            let said = reply.json();
            assert_eq!((&said["relay"], &said["ok"]), (&json!(1), &json!(false)), "{wrong} at {path}");
            assert!(!text(&said["error"]["message"]).is_empty() && said["error"]["playbook"].is_array());
            assert!(!reply.text.contains(&server.token) && !reply.text.contains(&revoked), "no secret comes back");
            assert_eq!(reply.header("www-authenticate").is_some(), *status == 401, "{wrong} at {path}");
        }
        for (how, headers) in [
            ("as this machine", vec![]),
            ("by another name of its own", vec![("host", "bus.example:1234")]),
            ("from a page that may", vec![("origin", "https://app.example")]),
        ] {
            let headers = [vec![json, accept, ("authorization", own.as_str())], headers].concat();
            let reply = server.request(method, path, &headers, "{}");
            assert!(![401, 403, 413, 404, 405].contains(&reply.status), "{how} at {path}: {reply:?}");
        }
        let too_much = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: {own}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: 99999999\r\nconnection: close\r\n\r\n"
        );
        assert!(server.raw(&too_much).starts_with("HTTP/1.1 413"), "{path}");
        if method == "POST" {
            // Without a length nobody knows how much it is before it is too much.
            let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, " ".repeat(1 << 20)).repeat(3);
            let head = too_much.replace("content-length: 99999999", "transfer-encoding: chunked");
            assert!(server.raw(&format!("{head}{chunk}0\r\n\r\n")).starts_with("HTTP/1.1 413"), "{path}");
            let reply =
                server.request(method, path, &[accept, ("authorization", &own), ("content-type", "text/plain")], "{}");
            assert_eq!(reply.status, 415, "a wrong type at {path}: {reply:?}");
        }
    }
    assert_eq!(server.request("GET", "/nothing", &[("authorization", &own)], "").status, 404);
    assert_eq!(server.request("GET", "/nothing", &[], "").status, 401, "not even that is told to strangers");
    assert_eq!(server.request("DELETE", "/v1/ask", &[("authorization", &own)], "").status, 405);
    assert_eq!(bus.tip(), tip, "nothing was written");
}

/// What is said twice is said by two, and nobody knows whom the next one believes.
#[test]
fn what_is_said_twice_is_not_believed() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::with(&bus, &["--allow-origin", "https://app.example"]);
    let own = format!("authorization: Bearer {}\r\n", server.token);
    let knock = |headers: &str| server.raw(&format!("GET /health HTTP/1.1\r\n{headers}connection: close\r\n\r\n"));
    let status = |headers: &str| knock(headers).split(' ').nth(1).unwrap_or_default().to_owned();
    assert_eq!(status(&format!("host: localhost\r\n{own}")), "200");
    for (headers, expected) in [
        (format!("host: localhost\r\nhost: localhost\r\n{own}"), "403"),
        (format!("host: evil.example@localhost\r\n{own}"), "403"),
        (format!("host: localhost\r\n{own}{own}"), "401"),
        (format!("host: localhost\r\n{own}origin: https://app.example\r\norigin: https://app.example\r\n"), "403"),
    ] {
        assert_eq!(status(&headers), expected, "{headers}");
    }
}

/// A browser asks first, without a token; only pages that may call are told that they may.
#[test]
fn a_page_that_may_call_is_let_through_by_its_browser() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::with(&bus, &["--allow-origin", "https://app.example"]);
    let ask = |page: &'static str| {
        let headers = [("origin", page), ("access-control-request-method", "POST")];
        server.request("OPTIONS", "/mcp", &headers, "")
    };
    let may = ask("https://app.example");
    assert_eq!((may.status, may.header("access-control-allow-origin")), (204, Some("https://app.example")), "{may:?}");
    assert!(may.header("access-control-allow-headers").unwrap().contains("authorization"));
    let may_not = ask("https://evil.example");
    assert_eq!((may_not.status, may_not.header("access-control-allow-origin")), (403, None));
    let own = format!("Bearer {}", server.token);
    let shown = server.request("GET", "/health", &[("authorization", &own), ("origin", "https://app.example")], "");
    assert_eq!((shown.status, shown.header("access-control-allow-origin")), (200, Some("https://app.example")));
}

/// Sessions, which older clients have, are their token's.
#[test]
fn a_session_is_of_the_token_that_began_it() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let begin = |token: &str| {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string();
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        let reply = server.request("POST", "/mcp", &headers, &body);
        reply.header("mcp-session-id").unwrap_or_else(|| panic!("{reply:?}")).to_owned()
    };
    let end = |token: &str, session: &str| {
        let bearer = format!("Bearer {token}");
        server.request("DELETE", "/mcp", &[("authorization", bearer.as_str()), ("mcp-session-id", session)], "").status
    };
    let guest = token(&bus, "guest", &["--separate"]);
    let first = begin(&server.token);
    assert_eq!(end(&guest, &first), 404, "it is not the guest's");
    assert_eq!(end(&server.token, &first), 202);
    // Whoever begins very many ends its oldest.
    let oldest = begin(&guest);
    for _ in 0..64 {
        begin(&guest);
    }
    assert_eq!(end(&guest, &oldest), 404);
}

#[test]
fn what_is_too_deep_or_no_request_is_refused() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let own = format!("Bearer {}", server.token);
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", own.as_str()),
    ];
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for body in [deep.as_str(), "{", "", "nonsense", "[]", "{\"verb\":\"start\"}"] {
        for path in ["/mcp", "/v1/ask"] {
            let reply = server.request("POST", path, &headers, body);
            assert!((400..500).contains(&reply.status), "{path} {body:.40}: {reply:?}");
        }
    }
    assert_eq!(server.does("BlueLake", "poll", json!({}))["unread"], 0, "and it serves on");
}

#[test]
fn beyond_this_machine_it_listens_only_when_told_twice() {
    let bus = Bus::new();
    let refused = bus.relay("", ["serve", "--listen", "0.0.0.0:0"]).fails("INPUT_INVALID");
    assert!(refused.stdout.contains("--without-tls"), "{}", refused.stdout);
    bus.relay("", ["serve", "--listen", "somewhere"]).fails("INPUT_INVALID");
    let server = Server::with(&bus, &["--without-tls"]);
    let taken = server.url.trim_start_matches("http://").to_owned();
    bus.relay("", ["serve", "--listen", &taken]).fails("INPUT_INVALID");
}

#[test]
fn an_agent_belongs_to_the_credential_that_registered_it() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let (guest, other) = (token(&bus, "guest", &["--separate"]), token(&bus, "other", &["--separate"]));
    let start = |token: &str, agent: &str| server.call_with(token, agent, "start", json!({}));
    assert_eq!(start(&server.token, "BlueLake")["ok"], true, "the owner's token is the owner");
    assert_eq!(start(&guest, "GreenField")["ok"], true);
    for (who, token, agent) in [
        ("a guest as the owner's agent", &guest, "BlueLake"),
        ("a guest as another guest's", &other, "GreenField"),
        ("the owner as a guest's", &server.token, "GreenField"),
    ] {
        for (tool, arguments) in [
            ("send", json!({"to": ["BlueLake"], "subject": "s", "body": "b", "thread": "bd-1"})),
            ("poll", json!({"bodies": true})),
            ("reserve", json!({"patterns": ["src/**"]})),
            ("release", json!({"all": true})),
            ("link", json!({"target": "BlueLake"})),
            ("ack", json!({"ids": [1]})),
            ("prepare", json!({"thread": "bd-1"})),
        ] {
            let answer = server.call_with(token, agent, tool, arguments);
            let code = text(&answer["error"]["code"]);
            assert_eq!(code, "IDENTITY_MISMATCH", "{who}: {tool} {answer}");
        }
        assert_eq!(start(token, agent)["error"]["code"], "AGENT_NAME_TAKEN", "{who}");
    }
    bus.relay("GreenField", ["poll"]).fails("IDENTITY_MISMATCH");
    for agent in ["human", "relay"] {
        assert_eq!(
            start(&server.token, agent)["error"]["code"],
            "AGENT_NAME_INVALID",
            "nobody becomes {agent} by name"
        );
    }
}

#[test]
fn a_token_is_shown_once_and_never_again() {
    let bus = Bus::new();
    let secret = token(&bus, "laptop", &[]);
    for args in [["token", "list"], ["token", "human"]] {
        assert!(!bus.relay("", args).success().stdout.contains(&secret));
    }
    let listed = bus.relay("", ["token", "list"]).success().result();
    assert_eq!(listed["tokens"][0]["name"], "laptop");
    bus.relay("", ["token", "add", "laptop"]).fails("INPUT_INVALID");
    bus.relay("", ["token", "add", "../laptop"]).fails("INPUT_INVALID");
    bus.relay("", ["token", "revoke", "nobody"]).fails("INPUT_INVALID");
    bus.relay("", ["token", "revoke", "laptop"]).success();
    assert_eq!(bus.relay("", ["token", "list"]).success().result()["tokens"], json!([]));
}

/// What lies among the tokens and is not the owner's opens nothing, and holds nobody up.
#[test]
fn a_token_that_somebody_else_could_have_put_there_is_none() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let planted = token(&bus, "planted", &[]);
    let tokens = bus.home().join("tokens");
    let path = std::ffi::CString::new(tokens.join("pipe").to_str().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let is_let_in = |token: &str| {
        let bearer = format!("Bearer {token}");
        server.request("GET", "/health", &[("authorization", &bearer)], "").status == 200
    };
    assert!(is_let_in(&planted) && is_let_in(&server.token));
    let foreign = Foreign::new(&tokens.join("planted"));
    assert!(!is_let_in(&planted), "another user wrote it");
    assert!(is_let_in(&server.token));
    drop(foreign);
    assert!(is_let_in(&planted));
}
