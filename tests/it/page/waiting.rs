//! Which project waits for the human is said on every page.

use super::{Person, slug, unescaped};
use crate::bus::{Bus, run};
use crate::listening::Server;

/// The title of a tab.
fn title(page: &str) -> String {
    unescaped(page.split("<title>").nth(1).unwrap().split("</title>").next().unwrap())
}

#[test]
fn a_question_is_counted_on_every_page_until_it_is_answered() {
    let bus = Bus::with(&["BlueLake"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let see = |path: &str| person.get(&format!("{}/{path}", person.place())).text;
    let asked = bus.send("BlueLake", "human", "bd-1", "Decide").to_string();
    for (path, expected) in [("", "(1) repo — Now · relay"), ("threads", "(1) repo — Threads · relay")] {
        assert_eq!(title(&see(path)), expected, "{path}");
    }
    assert!(person.get("/").text.contains("1 waiting for you"));
    person.does("ack", &[("id", &asked), ("read", "on")]);
    // What the human did is seen at once, whatever was seen a moment ago.
    for (path, expected) in [("threads", "repo — Threads · relay"), ("", "repo — Now · relay")] {
        assert_eq!(title(&see(path)), expected, "{path}");
    }
    assert!(!person.get("/").text.contains("waiting for you"));
}

#[test]
fn what_waits_in_another_project_is_said_in_the_switcher() {
    let bus = Bus::with(&["BlueLake"]);
    let other = bus.path("website");
    std::fs::create_dir(&other).unwrap();
    bus.git_in(&other, &["init", "-q"]);
    let there = |words: &[&str]| {
        let mut command = bus.args("WhiteGull", words);
        command.current_dir(&other);
        run(command).success();
    };
    there(&["start"]);
    there(&["send", "--to", "human", "--thread", "bd-9", "--subject", "Which logo?", "--body", "b"]);
    let server = Server::start(&bus);
    let person = Person::at(&server);
    let switcher = || {
        let page = unescaped(&person.get(&format!("{}/threads", person.place())).text);
        page.split("<details id=\"switch\"").nth(1).unwrap().split("</details>").next().unwrap().to_owned()
    };
    // A page looks around without being kept waiting for it: one of the next says what was seen.
    while !switcher().contains("1 elsewhere") {
        std::thread::yield_now();
    }
    assert!(switcher().contains("website <span class=\"count\">· 1 waiting</span>"), "{}", switcher());
    let all = unescaped(&person.get("/").text);
    let place = |text: &str| all.find(text).unwrap_or_else(|| panic!("no {text} in {all}"));
    assert!(place("/p/website-") < place(&format!("/p/{}/", slug(&bus))), "what waits comes first: {all}");
}
