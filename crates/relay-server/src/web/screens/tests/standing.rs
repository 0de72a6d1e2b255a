//! Now, and what surrounds every screen: what waits for the human, who is there, and how things stand.

use relay_core::domain::delivery::State;
use relay_core::verbs::look::{Events, Status, WaitShape};
use relay_core::wire::v1::MessageShape;

use super::super::samples::{self, PLAIN, framed};
use super::super::{agent, agents, now, projects, threads, write};
use super::{around, beside};
use crate::web::frame::{Frame, Screen};

#[test]
fn of_many_agents_those_are_shown_who_were_seen_last() {
    let mut status = samples::status(&PLAIN);
    status.agents = (0..500).map(|n| samples::agent(&format!("Agent{n}"), "active", true, n, &PLAIN)).collect();
    let page = framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, &[]));
    assert!(page.contains(">Agent39<") && !page.contains(">Agent40<"));
    assert!(page.contains("and 460 more"));
    let second = framed(Screen::Agents, "/a", None, |frame| agents::page(frame, &status.agents, "alive", 2));
    assert!(second.contains(">Agent50<") && second.contains(">Agent99<") && !second.contains(">Agent100<"));
    assert!(second.contains("page 2 of 10"));
    assert!(
        framed(Screen::Agents, "/a", None, |frame| agents::page(frame, &status.agents, "", 99))
            .contains("page 10 of 10")
    );
}

/// The page of an agent of a project.
fn agent_page(status: &Status, name: &str) -> String {
    let Some(agent) = status.agents.iter().find(|agent| agent.name == name) else { panic!("nobody is called {name}") };
    let last = Events { events: Vec::new(), cursor: 0, before: None, layout: Default::default() };
    let about = agent::About { agent, status, claims: &[], contested: &[], total: 0, last: &last };
    framed(Screen::Agents, "/a/1", None, |frame| agent::page(frame, &about))
}

#[test]
fn all_that_an_agent_owes_is_counted() {
    let mut status = samples::status(&PLAIN);
    let owes = |status: &Status, said: &str| {
        let page = agent_page(status, "GreenHill");
        assert!(page.contains(said), "{said}: {:?}", around(&page, "What it owes"));
    };
    owes(&status, "What it owes <span class=\"meta\">1 item<");
    // One that is listed, and others that are not.
    let Some(now) = status.now.as_mut() else { panic!("nothing is told of now") };
    now.busy.iter_mut().for_each(|busy| busy.owes = 7);
    owes(&status, "What it owes <span class=\"meta\">7 items<");
    owes(&status, "and 6 more acks");
}

#[test]
fn who_waits_is_told_with_what_for() {
    let mut status = samples::status(&PLAIN);
    let wait = |verb: &str, patterns: &[&str]| WaitShape {
        who: "QuietOwl".to_owned(),
        verb: verb.to_owned(),
        for_whom: vec!["@x".to_owned(), "@y".to_owned()],
        patterns: patterns.iter().map(|pattern| (*pattern).to_owned()).collect(),
    };
    let Some(now) = status.now.as_mut() else { panic!("nothing is told of now") };
    now.waits = vec![wait("poll", &[]), wait("link", &[]), wait("reserve", &["a", "b"]), wait("reserve", &[])];
    let page = framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, &[]));
    let (xy, a, b) = ("@x</b>, <b class=\"name\">@y</b>", "<span class=\"path\">a<", "<span class=\"path\">b<");
    for what in ["to write", "to answer a contact request", &format!("to give back {a}/span>, {b}"), "(reserve)"] {
        assert!(page.contains(&format!("waits for <b class=\"name\">{xy} {what}")), "{what}");
    }
    let quiet = framed(Screen::Now, "/", None, |frame| now::page(frame, &samples::empty(), 1, &[]));
    assert!(quiet.contains("command is blocked waiting for another"));
}

#[test]
fn nobody_is_offered_to_write_to_who_is_suspended() {
    let status = samples::status(&PLAIN);
    let draft = write::Draft { to: vec!["GreyWolf".to_owned()], ..write::Draft::default() };
    let page = framed(Screen::Write, "/w", None, |frame| write::page(frame, &draft, &beside(&status), None));
    assert!(page.contains("value=\"GreyWolf\" disabled>") && page.contains("mail to it is refused"));
    assert!(page.contains("<input name=\"to\" value=\"GreyWolf\""), "what was asked for is not lost");
    let page = agent_page(&status, "GreyWolf");
    assert!(!page.contains("Send to GreyWolf") && page.contains("mail to it is refused"));
    assert_eq!(page.matches("Let GreyWolf act again").count(), 1);
    assert!(agent_page(&status, "QuietOwl").contains("Send to QuietOwl"));
}

#[test]
fn who_asks_and_is_gone_is_marked() {
    let asked = |from: &str| {
        let mut status = samples::status(&PLAIN);
        status.for_the_human[0].from = from.to_owned();
        let page = framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, &[]));
        let before = page.split(" asks in").next().unwrap_or_default().to_owned();
        before.rsplit('>').next().unwrap_or_default().to_owned()
    };
    assert_eq!(["OldPine", "GreyWolf", "QuietOwl", "Blue@/srv/x"].map(asked), [" (retired)", " (suspended)", "", ""]);
}

#[test]
fn many_questions_are_turned_page_by_page_and_who_wrote_many_is_named() {
    let mut status = samples::status(&PLAIN);
    let ask = |id, from: &str, ack_required| MessageShape {
        ack_required,
        ..samples::message(id, from, &[("human", State::Stored)], &PLAIN)
    };
    status.for_the_human = (1..=30).map(|id| ask(id, "RedForest", id > 28)).collect();
    status.for_the_human.push(ask(31, "QuietOwl", false));
    status.for_the_human_total = 131;
    let page = |number| framed(Screen::Now, "/p/x/?page=2", None, |frame| now::page(frame, &status, number, &[]));
    let rows = |page: &str| page.matches("data-key=\"m").count();
    assert_eq!([1, 2, 3, 4, 0].map(|number| rows(&page(number))), [12, 12, 7, 7, 12]);
    let second = page(2);
    assert!(second.contains("<span class=\"count\">132</span>"), "they are all counted, and a request for contact");
    assert!(second.contains("href=\"/p/x/?page=1\"") && second.contains("href=\"/p/x/?page=3\""));
    assert!(second.contains("page 2 of 3") && second.contains("and 100 younger"));
    assert!(second.contains("wrote 30 of what waits") && second.contains("Mark 28 of them"));
    assert!(!second.contains("wrote 1 of"));
}

#[test]
fn a_question_is_shown_with_how_it_begins() {
    let status = samples::status(&PLAIN);
    let message = &status.for_the_human[0];
    let page = framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, std::slice::from_ref(message)));
    assert!(page.contains("The session **ends after ten minutes**"), "as it was written");
    let draft = write::Draft { reply_to: Some(45), ..write::Draft::default() };
    let beside = write::Beside { answered: Some(message.clone()), ..write::Beside::default() };
    let page = framed(Screen::Write, "/w", None, |frame| write::page(frame, &draft, &beside, None));
    assert!(page.contains("The session **ends after ten minutes**") && page.contains("/messages/45\""));
}

#[test]
fn the_archive_is_a_worry_only_when_it_is_far_behind() {
    let page = |behind| {
        let mut status = samples::status(&PLAIN);
        status.archive.behind = behind;
        framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, &[]))
    };
    assert!(page(100).contains("100 events to go") && !page(100).contains("relay drain"));
    assert!(page(101).contains("<b class=\"warn\">behind by 101 events</b>") && page(101).contains("relay drain"));
}

#[test]
fn what_waits_is_said_in_the_title_the_navigation_and_the_switcher() {
    let page = framed(Screen::Threads, "/t", None, |frame| threads::page(frame, &[], None));
    assert!(page.contains("<title>(2) shop — Threads · relay</title>"), "{page}");
    assert!(page.contains(">Now <span class=\"count\" title=\"Decisions that wait for you\">2</span></a>"), "{page}");
    assert!(
        page.contains(">1 elsewhere</span></summary>") && page.contains("website <span class=\"count\">· 1 waiting")
    );
    assert!(!page.contains("shop <span class=\"count\">"), "that of this project stands beside Now");
    let mut places = samples::places();
    let all = |places: &[crate::web::frame::Place]| {
        framed(Screen::Projects, "/", None, |frame| {
            projects::page(&Frame { project: None, projects: places, ..*frame })
        })
    };
    places[0].waiting = 0;
    let (shop, website) = (all(&places).find("/home/you/shop"), all(&places).find("/home/you/website"));
    assert!(website < shop && all(&places).contains("1 waiting for you"), "{}", all(&places));
    places[1].waiting = 0;
    assert!(all(&places).contains("<title>Projects · relay</title>") && !all(&places).contains("waiting for you"));
}

/// Of many projects the switcher shows those in which something waits, and always the one that is shown.
#[test]
fn the_switcher_has_what_waits_and_what_is_shown() {
    let place = |number: usize| crate::web::frame::Place {
        slug: format!("p{number:02}"),
        key: format!("/srv/p{number:02}"),
        waiting: usize::from(number == 48),
    };
    let places: Vec<_> = (0..50).map(place).collect();
    framed(Screen::Now, "/", None, |frame| {
        let frame = Frame { project: Some(places[33].clone()), projects: &places, ..*frame };
        let shown: Vec<&str> = frame.switched().iter().map(|place| place.slug.as_str()).collect();
        assert_eq!((shown.len(), &shown[..3]), (20, ["p33", "p48", "p00"].as_slice()));
        String::new()
    });
}
