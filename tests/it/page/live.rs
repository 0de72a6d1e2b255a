//! Being told that the bus has changed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use super::{FORM, Person, encoded, unescaped};
use crate::bus::Bus;
use crate::listening::Server;

/// The numbers that a page is told, and the head of the answer.
fn listen(person: &Person<'_>) -> (String, impl Iterator<Item = u64> + use<>) {
    let mut stream = TcpStream::connect(person.server.address()).unwrap();
    let head = format!(
        "GET {}/live HTTP/1.1\r\nhost: {}\r\ncookie: {}\r\naccept: text/event-stream\r\nsec-fetch-site: same-origin\r\n\
         connection: close\r\n\r\n",
        person.place(),
        person.server.address(),
        person.cookie
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let mut changed = false;
    let numbers = lines.filter_map(move |line| {
        if line == "event: changed" {
            changed = true;
        }
        let number = line.strip_prefix("data: ").filter(|_| changed)?.parse().unwrap();
        changed = false;
        Some(number)
    });
    (head.join("\n").to_ascii_lowercase(), numbers)
}

#[test]
fn a_page_is_told_when_another_process_writes() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let (head, mut told) = listen(&person);
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    assert!(head.contains("cache-control: no-") && head.contains("x-content-type-options: nosniff"), "{head}");
    assert_eq!(told.next(), Some(bus.tip()), "what came meanwhile is not missed");
    for _ in 0..2 {
        bus.send("BlueLake", "RedForest", "bd-1", "Login");
        let tip = bus.tip();
        assert!(told.by_ref().any(|number| number == tip));
    }
    // Another store takes the place of the one that was heard.
    bus.relay("", ["drain", "--wait"]).success();
    bus.relay("", ["rebuild", "store", "--from-archive"]).success();
    bus.send("BlueLake", "RedForest", "bd-1", "Login");
    let tip = bus.tip();
    assert!(told.by_ref().any(|number| number == tip), "it is heard as well");
    assert_eq!(server.stop(), 0);
    assert_eq!(told.count(), 0, "it ends with the server");
}

#[test]
fn the_last_word_is_with_the_session() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let mut streams: Vec<_> = (0..16).map(|_| listen(&person)).collect();
    assert!(streams.iter_mut().all(|(head, told)| head.starts_with("http/1.1 200") && told.next().is_some()));
    let (refused, _) = listen(&person);
    assert!(refused.starts_with("http/1.1 429"), "{refused}");
    let other = Person::at(&server);
    let (head, mut others) = listen(&other);
    assert!(head.starts_with("http/1.1 200") && others.next().is_some(), "another session has places of its own");
    let headers = [FORM, ("origin", server.url.as_str()), ("cookie", person.cookie.as_str())];
    let left = server.request("POST", "/leave", &headers, &encoded(&[("csrf", &person.csrf())]));
    assert_eq!(left.status, 303);
    for (_, told) in streams {
        assert_eq!(told.count(), 0, "it ends");
    }
    bus.relay("BlueLake", ["reserve", "src/**"]).success();
    assert_eq!(others.next(), Some(bus.tip()), "and the other goes on");
    // Who signs out everywhere closes every page, in whichever browser it is.
    let third = Person::at(&server);
    assert!(unescaped(&third.get("/").text).contains("name=\"everywhere\" value=\"yes\""));
    let headers = [FORM, ("origin", server.url.as_str()), ("cookie", third.cookie.as_str())];
    let unasked =
        server.request("POST", "/leave", &headers, &encoded(&[("csrf", &other.csrf()), ("everywhere", "yes")]));
    assert_eq!((unasked.status, other.get("/").status), (403, 200), "{unasked:?}");
    let left = server.request("POST", "/leave", &headers, &encoded(&[("csrf", &third.csrf()), ("everywhere", "yes")]));
    assert_eq!((left.status, left.header("location")), (303, Some("/open")), "{left:?}");
    assert_eq!(others.count(), 0, "it ends");
    assert_eq!((other.get("/").status, third.get("/").status), (401, 401));
    assert_eq!(Person::at(&server).get("/").status, 200, "and a new link opens the page again");
}
