//! Every screen, over the wire: it is made of what the verbs answer, a page at a time, and says what is wrong with an address.

use serde_json::Value;

use super::{Person, unescaped};
use crate::bus::{Bus, run};
use crate::listening::Server;

/// Two agents who talk, hold files and want something of the human.
fn bus() -> Bus {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    bus.relay("RedForest", ["policy", "contacts_only"]).success();
    bus.relay("BlueLake", ["link", "--target", "RedForest"]).success();
    bus.relay("BlueLake", ["reserve", "src/auth/**", "--reason", "bd-1"]).success();
    bus.relay("RedForest", ["reserve", "src/**"]).success();
    let asks = [
        "send",
        "--to",
        "human",
        "--subject",
        "Decide: login",
        "--body",
        "**May** I?",
        "--thread",
        "bd-1",
        "--ack-required",
    ];
    bus.relay("BlueLake", asks).success();
    bus
}

#[test]
fn every_screen_shows_what_the_bus_has() {
    let bus = bus();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let asked = bus.tip();
    let day = "2026-11-15";
    let see = |path: &str| {
        let path = format!("{}/{path}", person.place());
        let reply = person.get(&path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        unescaped(&reply.text)
    };
    for (path, shown) in [
        (String::new(), vec!["BlueLake", "RedForest", "Decide: login", "src/"]),
        ("threads".to_owned(), vec!["bd-1", "Decide: login"]),
        ("threads/bd-1".to_owned(), vec!["<strong>May</strong> I?", "src/auth/**", "name=\"reply_to\""]),
        ("search?words=login".to_owned(), vec!["bd-1", "BlueLake"]),
        ("search".to_owned(), vec!["words"]),
        ("agents".to_owned(), vec!["BlueLake", "RedForest"]),
        ("agents?state=retired&page=7".to_owned(), vec!["Retired"]),
        ("agents/RedForest".to_owned(), vec!["src/**", "/suspend\"", "/retire\""]),
        ("contacts".to_owned(), vec!["BlueLake", "RedForest", "value=\"accept\"", "value=\"block\""]),
        ("reservations".to_owned(), vec!["src/auth/**", "src/**", "/release\""]),
        ("reservations?path=src/auth/a.rs".to_owned(), vec!["src/auth/**", "src/**"]),
        ("history".to_owned(), vec!["Decide: login", "src/auth/**"]),
        ("history?kind=link_requested&by=BlueLake".to_owned(), vec!["RedForest"]),
        (format!("replay?day={day}"), vec!["src/auth/**", "data-slider"]),
        (format!("replay?day={day}&at=2"), vec!["Around #2", "Nobody held anything."]),
        ("talk".to_owned(), vec!["BlueLake", "human"]),
        (format!("write?to=BlueLake&reply_to={asked}"), vec!["value=\"BlueLake\" checked", "name=\"ack\""]),
    ] {
        let page = see(&path);
        for text in shown {
            assert!(page.contains(text), "{text:?} on {path}: {page}");
        }
    }
    assert!(!see("history?kind=link_requested").contains("src/auth/**"), "what is not asked for is not shown");
    assert!(!see("reservations?path=docs/a.md").contains("/release\""));
    let one = person.get(&format!("{}/messages/{asked}", person.place()));
    let place = format!("{}/threads/bd-1#m{asked}", person.place());
    assert_eq!((one.status, one.header("location")), (303, Some(place.as_str())), "{one:?}");
    let bare = person.get(&person.place());
    assert_eq!((bare.status, bare.header("location")), (303, Some(format!("{}/", person.place()).as_str())));
}

#[test]
fn what_cannot_be_shown_says_why() {
    let bus = bus();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let tip = bus.tip();
    for (path, status, code, out) in [
        ("threads/bd-404", 404, "THREAD_NOT_FOUND", "threads"),
        ("threads/%2e%2e%2f", 400, "THREAD_ID_INVALID", "threads"),
        ("threads?before=many", 400, "INPUT_INVALID", "threads"),
        ("messages/4711", 404, "MESSAGE_NOT_FOUND", "threads"),
        ("agents/Nobody", 404, "RECIPIENT_NOT_FOUND", "agents"),
        ("history?kind=nonsense", 400, "INPUT_INVALID", "history"),
        ("history?by=Nobody", 404, "RECIPIENT_NOT_FOUND", "history"),
        ("history?since=nonsense", 400, "INPUT_INVALID", "history"),
        ("replay?day=yesterday", 400, "INPUT_INVALID", "replay"),
        ("reservations?path=/etc/passwd", 400, "PATTERN_OUTSIDE_PROJECT", "reservations"),
        ("write?reply_to=4711", 404, "MESSAGE_NOT_FOUND", "write"),
    ] {
        let reply = person.get(&format!("{}/{path}", person.place()));
        assert_eq!((reply.status, reply.text.contains(code)), (status, true), "{path}: {reply:?}");
        let back = format!("<a href=\"{}/{out}\">Back</a>", person.place());
        assert!(reply.text.contains(&back), "{path} leads to {out}: {}", reply.text);
    }
    for path in
        ["/%ff/now", "/p/%ff/", "/p/%C3%28/threads/bd-1", "/assets/%ff", &format!("{}/agents/%fe", person.place())]
    {
        for headers in [vec![], vec![("cookie", person.cookie.as_str())]] {
            let reply = server.request("GET", path, &headers, "");
            assert_eq!((reply.status, reply.text.contains("INPUT_INVALID")), (400, true), "{path}: {reply:?}");
            assert!(reply.text.contains("no text in UTF-8"), "{path}: {reply:?}");
        }
    }
    for path in ["/p/..%2f..%2fetc/", "/p/%2e%2e/", "/p/tokens/", "/p/pages/", "/p//", "/p/nobody-12345678/threads"] {
        assert_eq!(person.get(path).status, 404, "{path}");
    }
    assert_eq!(bus.tip(), tip, "a look changes nothing");
}

/// A claim names a thread in which nobody wrote: its page says what can be done, and offers nothing that cannot.
#[test]
fn a_thread_that_only_a_claim_names_can_be_begun() {
    let bus = bus();
    bus.relay("BlueLake", ["reserve", "db/**", "--reason", "migrate-7"]).success();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let reply = person.get(&format!("{}/threads/migrate-7", person.place()));
    assert_eq!(reply.status, 404, "{reply:?}");
    let page = unescaped(&reply.text);
    assert!(page.contains("Nobody has written in migrate-7 yet."), "{page}");
    for way in ["write?thread=migrate-7", "reservations"] {
        assert!(page.contains(&format!("href=\"{}/{way}\"", person.place())), "{way}: {page}");
    }
    assert!(!page.contains("/step\"") && !page.contains("relay prepare"), "{page}");
}

/// Lists come a page at a time, and each page leads to the next.
#[test]
fn what_is_long_is_turned_page_by_page() {
    let bus = Bus::with(&["BlueLake", "RedForest"]);
    for number in 0..60 {
        let (thread, path) = (format!("bd-{number:02}"), format!("src/{number:02}.rs"));
        bus.send("BlueLake", "RedForest", &thread, &format!("Subject {number:02}"));
        bus.relay("BlueLake", ["reserve", path.as_str()]).success();
    }
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let turned = |list: &str, mark: &str, begins: &str| {
        let first = unescaped(&person.get(&format!("{}/{list}", person.place())).text);
        let links = first.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
        let next = links.filter(|link| link.contains(mark)).last().unwrap_or_else(|| panic!("no next page in {first}"));
        let next = if next.starts_with('/') { next.to_owned() } else { format!("{}/{list}{next}", person.place()) };
        let second = unescaped(&person.get(&next).text);
        let count = |page: &str| (0..60).filter(|number| page.contains(&format!("{begins}{number:02}"))).count();
        let twice = (0..60)
            .filter(|number| [&first, &second].iter().all(|page| page.contains(&format!("{begins}{number:02}"))));
        assert_eq!((count(&first), count(&second), twice.count()), (50, 10, 0), "{list}, then {next}");
    };
    turned("threads", "before=", "bd-");
    turned("search?words=subject", "before=", "bd-");
    turned("reservations", "after=", "src/");
}

/// What another project has is on its own page, and all projects are in one list.
#[test]
fn the_projects_of_this_machine_are_one_list_and_each_has_its_own_pages() {
    let bus = bus();
    let other = bus.path("other");
    std::fs::create_dir(&other).unwrap();
    bus.git_in(&other, &["init", "-q"]);
    let mut start = bus.args("GreenField", ["start"]);
    run({
        start.current_dir(&other);
        start
    })
    .success();
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let listed = bus.relay("", ["project", "list"]).success().result();
    let projects: Vec<&Value> = listed["projects"].as_array().unwrap().iter().collect();
    let all = unescaped(&person.get("/").text);
    let slug = |key: &str| {
        let project = projects.iter().find(|project| project["key"] == key).unwrap();
        project["store"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
    };
    let there = std::fs::canonicalize(&other).unwrap().to_str().unwrap().to_owned();
    for key in [bus.key(), there.clone()] {
        assert!(all.contains(&key) && all.contains(&format!("href=\"/p/{}/\"", slug(&key))), "{all}");
    }
    let page = person.get(&format!("/p/{}/agents", slug(&there))).text;
    assert!(page.contains("GreenField") && !page.contains("RedForest"), "{page}");
    // The work tree may be gone; its history is not.
    std::fs::remove_dir_all(&other).unwrap();
    assert_eq!(person.get(&format!("/p/{}/agents", slug(&there))).status, 200);
}
