//! Who is let onto the page.

use std::io::Read;
use std::process::Stdio;

use super::{FORM, Person, bring, code, encoded, slug};
use crate::bus::{Bus, hours, minutes};
use crate::listening::{Reply, Server, serve};

/// What is the same on every page, but for what marks its scripts.
#[track_caller]
fn check_headers(reply: &Reply) -> String {
    let policy = reply.header("content-security-policy").unwrap_or_else(|| panic!("{reply:?}")).to_owned();
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
    let expected = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    assert_eq!(policy, expected);
    assert_eq!(nonce.len(), 32, "{nonce}");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("x-frame-options", "DENY"),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    nonce
}

#[test]
fn without_a_session_every_page_says_how_it_is_opened() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let place = format!("/p/{}", slug(&bus));
    for path in ["/", &format!("{place}/"), &format!("{place}/live"), "/p/nowhere/", "/nothing", "/leave"] {
        let reply = server.request("GET", path, &[], "");
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        assert!(reply.text.contains("relay serve --open"), "{path}: {}", reply.text);
        // A link from elsewhere brings no cookie, and one from here does.
        assert!(reply.text.contains(&format!("href=\"{path}\">Go on")), "{path}: {}", reply.text);
        assert!(!reply.text.contains(&bus.key()), "a stranger learns no name: {}", reply.text);
        check_headers(&reply);
    }
    let own = [FORM, ("origin", server.url.as_str())];
    for path in ["/leave", &format!("{place}/send"), &format!("{place}/step"), "/nothing"] {
        let reply = server.request("POST", path, &own, "csrf=1");
        assert_eq!((reply.status, reply.text.contains("Go on")), (401, false), "{path}");
    }
    let elsewhere =
        server.raw(&format!("GET //evil.example/ HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address()));
    assert!(elsewhere.starts_with("HTTP/1.1 401") && !elsewhere.contains("//evil.example"), "{elsewhere}");
    assert_eq!(server.request("GET", "/open", &[], "").status, 200);
}

#[test]
fn a_link_opens_the_page_once_and_only_for_two_minutes() {
    let bus = Bus::with(&["BlueLake"]);
    let (mut out, said) = std::io::pipe().unwrap();
    let mut command = serve(&bus, &[]);
    command.stderr(Stdio::from(said));
    let server = Server::run(&bus, command);
    let first = code(&server);
    let opened = bring(&server, &first);
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")), "{opened:?}");
    let cookie = opened.header("set-cookie").unwrap();
    let name = format!("relay_page_{}", port(&server));
    let secret = cookie.strip_prefix(&format!("{name}=")).unwrap().split(';').next().unwrap();
    assert_eq!(cookie, format!("{name}={secret}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200"));
    assert!(secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
    let in_time = code(&server);
    let late = code(&server);
    bus.advance(minutes(2) - 1);
    assert_eq!(bring(&server, &in_time).status, 303);
    bus.advance(1);
    let unknown = "0".repeat(32);
    let cases =
        [("used", first.as_str()), ("late", &late), ("unknown", &unknown), ("none", ""), ("a path", "../human")];
    let pages = cases.map(|(case, code)| {
        let reply = bring(&server, code);
        assert_eq!((reply.status, reply.header("set-cookie")), (401, None), "{case}: {reply:?}");
        assert!(reply.text.contains("relay serve --open"), "{case}");
        reply.text.replace(&check_headers(&reply), "NONCE")
    });
    assert!(pages.iter().all(|page| *page == pages[0]), "nobody is told why: {pages:?}");
    // The next link may be pasted into that very tab, where it changes the fragment and loads nothing.
    for page in [&pages[0], &server.request("GET", "/open", &[], "").text] {
        let script = page.split("<form id=\"relay-open\" ").nth(1).and_then(|rest| rest.split_once("<script nonce=\""));
        let (_, script) = script.unwrap_or_else(|| panic!("{page}"));
        assert!(script.contains("addEventListener(\"hashchange\", bring)"), "{page}");
    }
    assert_eq!(server.request("GET", "/", &[("cookie", &format!("{name}={secret}"))], "").status, 200);
    assert_eq!(std::fs::read_dir(bus.home().join("pages")).unwrap().count(), 0, "nothing of it is left");
    assert_eq!(server.stop(), 0);
    let mut log = String::new();
    out.read_to_string(&mut log).unwrap();
    assert!(log.contains("turned away at /open") && log.contains("UNAUTHORIZED"), "{log}");
    for secret in [first.as_str(), &in_time, &late, secret] {
        assert!(!log.contains(secret), "{log}");
    }
}

fn port<'a>(server: &'a Server<'_>) -> &'a str {
    server.address().rsplit(':').next().unwrap()
}

/// A browser keeps the cookies of all ports of a host together, and brings all of them.
#[test]
fn the_pages_of_two_servers_of_one_host_are_open_at_a_time() {
    let bus = Bus::with(&["BlueLake"]);
    let (one, other) = (Server::start(&bus), Server::start(&bus));
    let cookies = [Person::at(&one).cookie, Person::at(&other).cookie];
    let names = cookies.each_ref().map(|cookie| cookie.split('=').next().unwrap());
    assert_ne!(names[0], names[1], "the later one does not take the place of the earlier one");
    let both = cookies.join("; ");
    for server in [&one, &other] {
        assert_eq!(server.request("GET", "/", &[("cookie", &both)], "").status, 200);
    }
    assert_eq!(other.request("GET", "/", &[("cookie", &cookies[0])], "").status, 401);
}

/// A link is for the server that it was made for: a stranger in its place gets nothing that another one takes.
#[test]
fn a_link_opens_no_other_server() {
    let bus = Bus::with(&["BlueLake"]);
    let (server, other) = (Server::start(&bus), Server::start(&bus));
    let code = code(&server);
    assert_eq!(bring(&other, &code).status, 401);
    assert_eq!(bring(&server, &code).status, 401, "it was brought, and is gone");
}

#[test]
fn by_https_the_cookie_is_one_that_no_other_page_can_set() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::with(&bus, &["--allow-host", "bus.example"]);
    let headers = [FORM, ("origin", "https://bus.example"), ("host", "bus.example")];
    let opened = server.request("POST", "/open", &headers, &format!("code={}", code(&server)));
    let cookie = opened.header("set-cookie").unwrap();
    let shown = cookie.split(';').next().unwrap();
    assert_eq!(cookie, format!("{shown}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200; Secure"));
    let status = |cookie: &str| server.request("GET", "/", &[("host", "bus.example"), ("cookie", cookie)], "").status;
    assert_eq!(status(shown), 200);
    assert_eq!(status(shown.strip_prefix("__Host-").unwrap()), 401, "under a name that others can set it is none");
}

#[test]
fn every_page_tells_the_browser_how_to_keep_it_safe_and_marks_its_scripts_anew() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let nowhere = person.get("/nothing");
    assert_eq!(nowhere.status, 404);
    assert_eq!(person.get("/p/nowhere-12345678/").status, 404);
    let refused = person.post("retire", &[("name", "Nobody")]);
    assert_eq!(refused.status, 404, "{refused:?}");
    let place = format!("{}/", person.place());
    let pages = [person.get("/open"), person.get("/"), person.get("/"), person.get(&place), nowhere, refused];
    let mut nonces: Vec<String> = pages.iter().map(check_headers).collect();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), pages.len(), "each has its own");
    for page in &pages {
        let nonce = check_headers(page);
        for tag in ["script", "style", "link rel=\"stylesheet\""] {
            let begins = format!("<{tag}");
            let tags = page.text.split(&begins).skip(1).map(|rest| rest.split('>').next().unwrap());
            tags.for_each(|tag| assert!(tag.contains(&format!("nonce=\"{nonce}\"")), "{tag}"));
        }
        assert!(!page.text.contains(" style=\"") && !page.text.contains(" onclick="), "{}", page.text);
    }
}

#[test]
fn a_session_is_over_when_its_time_is_or_when_one_leaves_or_when_the_server_starts_anew() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let (leaves, stays) = (Person::at(&server), Person::at(&server));
    let csrf = leaves.csrf();
    let headers = [FORM, ("origin", server.url.as_str()), ("cookie", leaves.cookie.as_str())];
    let left = server.request("POST", "/leave", &headers, &encoded(&[("csrf", &csrf)]));
    assert_eq!((left.status, left.header("location")), (303, Some("/open")), "{left:?}");
    let taken_back = format!("relay_page_{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0", port(&server));
    assert_eq!(left.header("set-cookie"), Some(taken_back.as_str()));
    assert_eq!((leaves.get("/").status, stays.get("/").status), (401, 200));
    bus.advance(hours(12) - 1);
    assert_eq!(stays.get("/").status, 200);
    bus.advance(1);
    assert_eq!(stays.get("/").status, 401);
    let person = Person::at(&server);
    let address = server.address().to_owned();
    assert_eq!(person.get("/").status, 200);
    let cookie = person.cookie.clone();
    assert_eq!(server.stop(), 0);
    let anew = Server::run(&bus, bus.args("", ["serve", "--listen", &address]));
    let reply = anew.request("GET", "/", &[("cookie", &cookie)], "");
    assert_eq!(reply.status, 401);
    assert!(reply.text.contains("relay serve --open"), "{}", reply.text);
}

#[test]
fn a_token_does_not_open_the_page_and_a_session_opens_nothing_else() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let bearer = format!("Bearer {}", server.token);
    for path in ["/", &format!("{}/", person.place()), &format!("{}/live", person.place())] {
        assert_eq!(server.request("GET", path, &[("authorization", &bearer)], "").status, 401, "{path}");
    }
    let form = [FORM, ("origin", server.url.as_str()), ("authorization", bearer.as_str())];
    let body =
        encoded(&[("to", "BlueLake"), ("subject", "s"), ("body", "b"), ("thread", "bd-1"), ("csrf", &person.csrf())]);
    let tip = bus.tip();
    assert_eq!(server.request("POST", &format!("{}/send", person.place()), &form, &body).status, 401);
    let json = ("content-type", "application/json");
    for (method, path) in [("POST", "/mcp"), ("POST", "/v1/ask"), ("GET", "/health"), ("GET", "/metrics")] {
        let reply = server.request(method, path, &[json, ("cookie", &person.cookie)], "{}");
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        let own_page = [json, ("cookie", person.cookie.as_str()), ("origin", server.url.as_str())];
        assert_eq!(server.request(method, path, &own_page, "{}").status, 403, "nor from a script of the page: {path}");
    }
    assert_eq!(bus.tip(), tip, "nothing was written");
}
