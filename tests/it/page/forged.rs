//! What another page makes a browser send, and what no browser would: refused, and nothing is changed.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::{FORM, Person, bring, encoded, field};
use crate::bus::Bus;
use crate::listening::Server;

const FOREIGN: &str = "https://evil.example";

type Fields = Vec<(&'static str, String)>;

/// A bus, and every action with a form that would do something on it.
fn bus() -> (Bus, Vec<(&'static str, Fields)>) {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    let asked = bus.send("BlueLake", "human", "bd-1", "Decide").to_string();
    let claim = bus.relay("BlueLake", ["reserve", "src/**"]).success().result()["granted"][0]["id"].to_string();
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    let step = r#"{"tool":"send","args":{"to":["BlueLake"],"subject":"s","body":"b","thread":"bd-9"}}"#;
    let fields =
        |fields: &[(&'static str, &str)]| fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let actions = vec![
        ("send", fields(&[("to", "BlueLake"), ("subject", "s"), ("body", "b"), ("thread", "bd-9")])),
        ("ack", fields(&[("id", &asked)])),
        ("link", fields(&[("target", "RedForest"), ("answer", "accept")])),
        ("release", fields(&[("id", &claim), ("why", "w")])),
        ("step", fields(&[("step", step)])),
        ("suspend", fields(&[("name", "RedForest")])),
        ("retire", fields(&[("name", "BlueLake")])),
    ];
    (bus, actions)
}

/// The fields of a form, the hidden ones first.
fn form<'a>(hidden: &[(&'a str, &'a str)], fields: &'a Fields) -> Vec<(&'a str, &'a str)> {
    hidden.iter().copied().chain(fields.iter().map(|(name, value)| (*name, value.as_str()))).collect()
}

#[test]
fn what_does_not_come_from_the_page_itself_is_refused_and_changes_nothing() {
    let (bus, actions) = bus();
    let server = Server::with(&bus, &["--allow-origin", FOREIGN]);
    let person = Person::at(&server);
    let (own, cookie, csrf) = (("origin", server.url.as_str()), ("cookie", person.cookie.as_str()), person.csrf());
    let port = server.address().rsplit(':').next().unwrap();
    let (localhost, https) = (format!("http://localhost:{port}"), format!("https://localhost:{port}"));
    let good = vec![FORM, own, cookie];
    let cases: Vec<(&str, Vec<(&str, &str)>)> = vec![
        ("a form of a foreign page, which may call /mcp", vec![FORM, ("origin", FOREIGN), cookie]),
        ("a page without a name", vec![FORM, ("origin", "null"), cookie]),
        ("no page at all", vec![FORM, cookie]),
        ("a page under another name of this machine", vec![FORM, ("origin", &localhost), cookie]),
        ("a page of another port", vec![FORM, ("origin", "http://127.0.0.1:1"), cookie]),
        ("a page that only begins like this one", vec![FORM, ("origin", &https), cookie]),
        ("what a browser says is of another site", [good.clone(), vec![("sec-fetch-site", "cross-site")]].concat()),
        ("what a browser says is of another port", [good.clone(), vec![("sec-fetch-site", "same-site")]].concat()),
        ("what a browser says is of no page", [good.clone(), vec![("sec-fetch-site", "none")]].concat()),
        ("a name that is not this server's", [good.clone(), vec![("host", "evil.example")]].concat()),
        ("a foreign name and its page", vec![FORM, ("origin", FOREIGN), cookie, ("host", "evil.example")]),
    ];
    let tip = bus.tip();
    for (action, fields) in &actions {
        let path = format!("{}/{action}", person.place());
        let body = encoded(&form(&[("csrf", &csrf), ("key", action)], fields));
        for (what, headers) in &cases {
            let reply = server.request("POST", &path, headers, &body);
            assert_eq!(reply.status, 403, "{what} at {path}: {reply:?}");
            assert!(reply.text.contains("UNAUTHORIZED"), "{what} at {path}: {}", reply.text);
            assert_eq!(reply.header("access-control-allow-origin"), None, "{what} at {path}");
        }
        // A script of another page may not even ask whether it may.
        let asks = [("origin", FOREIGN), ("access-control-request-method", "POST")];
        let reply = server.request("OPTIONS", &path, &asks, "");
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{path}");
    }
    assert_eq!(bus.tip(), tip, "nothing was written");
    for (action, fields) in &actions {
        let reply = person.post(action, &form(&[], fields));
        assert_eq!(reply.status, 303, "and from the page each would have been done: {action} {reply:?}");
    }
    assert!(bus.tip() > tip + 6);
}

#[test]
fn a_form_that_this_session_was_not_shown_is_refused_and_changes_nothing() {
    let (bus, actions) = bus();
    let server = Server::start(&bus);
    let (earlier, person) = (Person::at(&server), Person::at(&server));
    let (stale, fresh) = (earlier.csrf(), person.csrf());
    let headers = [FORM, ("origin", server.url.as_str()), ("cookie", person.cookie.as_str())];
    let secret = person.cookie.split('=').nth(1).unwrap();
    let tip = bus.tip();
    for (action, fields) in &actions {
        let path = format!("{}/{action}", person.place());
        for (what, csrf) in [
            ("none", vec![]),
            ("an empty one", vec![("csrf", "")]),
            ("another session's", vec![("csrf", stale.as_str())]),
            ("the cookie's", vec![("csrf", secret)]),
            ("half of it", vec![("csrf", &fresh[..32])]),
        ] {
            let body = encoded(&form(&[csrf.as_slice(), &[("key", action)]].concat(), fields));
            let reply = server.request("POST", &path, &headers, &body);
            assert_eq!(reply.status, 403, "{what} at {path}: {reply:?}");
            assert!(reply.text.contains("UNAUTHORIZED"), "{what} at {path}");
            let in_the_address = server.request("POST", &format!("{path}?csrf={fresh}"), &headers, &body);
            assert_eq!(in_the_address.status, 403, "{what} at {path}");
        }
        let body = encoded(&form(&[("csrf", &fresh)], fields));
        let json = ("content-type", "application/json");
        for kind in [json, ("content-type", "text/plain"), ("content-type", "multipart/form-data; boundary=b")] {
            let headers = [kind, ("origin", server.url.as_str()), ("cookie", person.cookie.as_str())];
            assert_eq!(server.request("POST", &path, &headers, &body).status, 415, "{kind:?} at {path}");
        }
        for method in ["PUT", "DELETE", "PATCH"] {
            assert_eq!(server.request(method, &path, &headers, &body).status, 405, "{method} {path}");
        }
        let looked = server.request("GET", &format!("{path}?{body}"), &[("cookie", &person.cookie)], "");
        assert_eq!(looked.status, 405, "a look changes nothing: {path}");
        assert_eq!(server.request("HEAD", &path, &[("cookie", &person.cookie)], "").status, 405, "{path}");
    }
    let leave = server.request("POST", "/leave", &headers, "csrf=");
    assert_eq!((leave.status, person.get("/").status), (403, 200), "nobody is signed out by another page");
    assert_eq!(bus.tip(), tip, "nothing was written");
}

#[test]
fn a_code_is_brought_by_the_page_itself() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let code = super::code(&server);
    let body = format!("code={code}");
    for (what, headers) in [
        ("a foreign page", vec![FORM, ("origin", FOREIGN)]),
        ("no page", vec![FORM]),
        ("another site", vec![FORM, ("origin", server.url.as_str()), ("sec-fetch-site", "cross-site")]),
        ("a foreign name", vec![FORM, ("origin", FOREIGN), ("host", "evil.example")]),
    ] {
        let reply = server.request("POST", "/open", &headers, &body);
        assert_eq!((reply.status, reply.header("set-cookie")), (403, None), "{what}: {reply:?}");
    }
    assert_eq!(server.request("GET", &format!("/open?code={code}"), &[], "").header("set-cookie"), None);
    assert_eq!(super::bring(&server, &code).status, 303, "it was not used up by any of them");
}

/// A page of another port of this machine is of the same site to a browser, which sends the cookie along.
#[test]
fn a_page_is_not_shown_to_another_one_and_not_under_a_foreign_name() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let status =
        |path: &str, more: (&str, &str)| server.request("GET", path, &[("cookie", &person.cookie), more], "").status;
    for path in ["/", &format!("{}/", person.place()), "/nothing"] {
        for site in ["same-site", "cross-site"] {
            assert_eq!(status(path, ("sec-fetch-site", site)), 403, "{site} {path}");
        }
        assert_eq!(status(path, ("host", "evil.example")), 403, "{path}");
        assert!([200, 404].contains(&status(path, ("sec-fetch-site", "same-origin"))), "{path}");
        assert!([200, 404].contains(&status(path, ("sec-fetch-site", "none"))), "{path}");
    }
    for name in ["evil.example", "[localhost]", "[127.0.0.1]", "localhost]"] {
        assert_eq!(status("/open", ("host", name)), 403, "{name}");
    }
    for name in ["[::1]", "LocalHost:1"] {
        assert_eq!(status("/open", ("host", name)), 200, "{name}");
    }
    let reply = person.get("/");
    assert!(
        server
            .request("GET", "/", &[("cookie", &person.cookie), ("origin", FOREIGN)], "")
            .header("access-control-allow-origin")
            .is_none()
    );
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
}

#[test]
fn what_is_too_large_is_not_read_to_its_end() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let tip = bus.tip();
    let head = format!(
        "POST {}/send HTTP/1.1\r\nhost: {}\r\norigin: {}\r\ncookie: {}\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n",
        person.place(),
        server.address(),
        server.url,
        person.cookie,
        FORM.1
    );
    let chunk = format!("{:x}\r\n{}\r\n", 1 << 20, "a".repeat(1 << 20)).repeat(3);
    let answer = server.raw(&format!("{head}{chunk}0\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("BODY_TOO_LARGE"), "{answer:.300}");
    assert_eq!(bus.tip(), tip);
}

/// Of whoever is not inside nothing is wanted but a code.
#[test]
fn of_whoever_has_no_session_little_is_read() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let most = 16 * 1024;
    let code = |bytes: usize| "0".repeat(bytes - "code=".len());
    assert_eq!(bring(&server, &code(most)).status, 401);
    let reply = bring(&server, &code(most + 1));
    assert_eq!((reply.status, reply.text.contains("BODY_TOO_LARGE")), (413, true), "{reply:?}");
    let person = Person::at(&server);
    let send = format!("{}/send", person.place());
    let body = encoded(&[("csrf", &person.csrf()), ("to", "BlueLake"), ("subject", "s"), ("body", &"b".repeat(most))]);
    let (own, tip) = (("origin", server.url.as_str()), bus.tip());
    assert_eq!(server.request("POST", &send, &[FORM, own], &body).status, 413);
    assert_eq!(bus.tip(), tip);
    let inside = server.request("POST", &send, &[FORM, own, ("cookie", &person.cookie)], &body);
    assert_eq!(inside.status, 303, "and who is inside may write as much as anybody: {inside:?}");
}

#[test]
fn a_form_that_never_ends_is_not_waited_for() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let tip = bus.tip();
    let begun = |path: &str| {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\norigin: {}\r\ncookie: {}\r\ncontent-type: {}\r\ncontent-length: 100\r\n\r\nto=Blue",
            server.address(),
            server.url,
            person.cookie,
            FORM.1
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let streams = [begun(&format!("{}/send", person.place())), begun("/open"), begun("/nothing")];
    assert_eq!(person.get("/").status, 200, "nobody else waits for them");
    for mut stream in streams {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("INPUT_INVALID"), "{answer:.300}");
    }
    assert_eq!(bus.tip(), tip);
}

/// What is left out of a form would be done without it: a letter to some of those whom it names.
#[test]
fn a_form_of_too_many_fields_is_refused_and_not_cut() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let tip = bus.tip();
    let mut fields = vec![("subject", "s"), ("body", "b"), ("thread", "bd-1")];
    fields.extend((0..1_000).map(|_| ("to", "BlueLake")));
    fields.push(("to", "RedForest"));
    let reply = person.post("send", &fields);
    assert_eq!((reply.status, reply.text.contains("INPUT_INVALID")), (400, true), "{reply:?}");
    assert_eq!(bus.tip(), tip, "nothing was sent to anybody");
}

/// An address is repeated in every form of its page, and a form leads back there.
#[test]
fn an_address_that_is_too_long_is_not_repeated() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let history = format!("{}/reservations", person.place());
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    let back = |query: &str| field(&person.get(&format!("{history}?{query}")).text, "back");
    let long = format!("x={}", "a".repeat(2_000));
    assert_eq!(back("x=a"), format!("{history}?x=a"));
    assert_eq!(back(&long), history);
    let claim = bus.relay("", ["reservations"]).success().result()["reservations"][0]["id"].to_string();
    let long = format!("{history}?{long}");
    let released = person.post("release", &[("id", &claim), ("why", "w"), ("back", &long)]);
    let place = format!("{}/", person.place());
    assert_eq!((released.status, released.header("location")), (303, Some(place.as_str())), "{released:?}");
}
