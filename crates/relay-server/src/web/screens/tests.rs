//! Every screen in every state of what it shows. What others wrote is text everywhere.

mod conversation;
mod standing;

use relay_core::domain::contact::LinkState;
use relay_core::domain::delivery::State;
use relay_core::error::Code;
use relay_core::playbook::{Setting, Step};
use relay_core::verbs::look::{Day, EventFilter, Events, Search, Status, Traffic};
use relay_core::verbs::prepare::ThreadView;
use relay_core::verbs::recover;

use super::samples::{self, HOSTILE, NOW, PLAIN, Words, framed};
use super::{
    agent, agents, contacts, history, message, now, projects, replay, reservations, search, talk, thread, threads,
    trouble, write,
};
use crate::web::frame::{Flash, Frame, Screen};

/// Every screen by its name, told in these words.
pub(super) fn screens(words: &Words) -> Vec<(&'static str, String)> {
    let status = samples::status(words);
    let claims = samples::claims(words);
    let last = samples::history(words);
    let shown = |here, path: &str, page: &dyn Fn(&Frame<'_>) -> String| framed(here, path, None, page);
    let about = agent::About {
        agent: &status.agents[0],
        status: &status,
        claims: &claims[..1],
        contested: &[12],
        total: 1,
        last: &last,
    };
    let path = words.path;
    let listed = reservations::Claims {
        path,
        claims: &claims,
        contested: &[12],
        total: 600,
        after: Some(18),
        agents: &status.agents,
    };
    let filter = EventFilter {
        kind: vec!["message_sent".to_owned()],
        by: Some(words.name.to_owned()),
        thread: Some(words.thread.to_owned()),
        path: Some(words.path.to_owned()),
        since: Some(words.text.to_owned()),
        until: None,
    };
    let moment = replay::Moment { at: 38, events: &last.events, claims: &claims, contested: &[12, 14], total: 6 };
    let draft = write::Draft {
        to: vec![words.name.to_owned(), "Nobody".to_owned()],
        thread: words.thread.to_owned(),
        subject: words.text.to_owned(),
        body: words.text.to_owned(),
        ack_within: words.text.to_owned(),
        ..write::Draft::default()
    };
    let states = [LinkState::Requested, LinkState::Accepted, LinkState::Blocked, LinkState::Revoked, LinkState::Lapsed];
    let links: Vec<_> = (70..).zip(states).map(|(id, state)| samples::link(id, state, words)).collect();
    let letter = samples::message(45, words.name, &[("human", State::Stored)], words);
    let flash = Flash { text: words.text.to_owned(), signals: vec![words.text.to_owned()], link: None };
    vec![
        ("projects", shown(Screen::Projects, "/", &projects::page)),
        ("now", framed(Screen::Now, "/p/repo-1a2b3c4d/", Some(&flash), |frame| now::page(frame, &status, 1, &[]))),
        ("threads", shown(Screen::Threads, "/t", &|frame| threads::page(frame, &[samples::shape(words)], Some(7)))),
        (
            "thread",
            shown(Screen::Threads, "/t/1", &|frame| thread::page(frame, &samples::thread(words), &status.agents)),
        ),
        ("message", shown(Screen::Threads, "/m/45", &|frame| message::page(frame, &letter))),
        ("search", shown(Screen::Search, "/s", &|frame| search::page(frame, words.text, &samples::search(words)))),
        ("agents", shown(Screen::Agents, "/a", &|frame| agents::page(frame, &status.agents, "", 1))),
        ("agent", shown(Screen::Agents, "/a/1", &|frame| agent::page(frame, &about))),
        ("contacts", shown(Screen::Contacts, "/c", &|frame| contacts::page(frame, &links, Some(7)))),
        ("reservations", shown(Screen::Reservations, "/r", &|frame| reservations::page(frame, &listed))),
        ("history", shown(Screen::History, "/h", &|frame| history::page(frame, &filter, &samples::history(words), 50))),
        ("replay", shown(Screen::Replay, "/y", &|frame| replay::page(frame, &samples::day(), Some(&moment)))),
        ("talk", shown(Screen::Talk, "/k", &|frame| talk::page(frame, &samples::traffic(words)))),
        ("write", shown(Screen::Write, "/w", &|frame| write::page(frame, &draft, &beside(&status), None))),
        ("trouble", shown(Screen::Write, "/w", &|frame| failed(frame, words, &draft))),
    ]
}

fn failed(frame: &Frame<'_>, words: &Words, draft: &write::Draft) -> String {
    let refusal = Code::RecipientNotFound.refuse(format!("there is nobody called {}", words.name));
    let failure = recover::failure_outside("send", &refusal, &Setting::default());
    let trouble = trouble::Trouble::of(frame, &failure.error, |step: &Step| step.tool.is_some());
    write::page(frame, draft, &write::Beside::default(), Some(trouble))
}

/// A letter that may go to any agent of a project.
fn beside(status: &Status) -> write::Beside {
    write::Beside { agents: status.agents.clone(), ..write::Beside::default() }
}

#[test]
fn every_screen_tells_what_it_was_given() {
    for (name, page) in screens(&PLAIN) {
        assert!(page.starts_with("<!doctype html>"), "{name}");
        assert_eq!(page.matches("<h1").count(), 1, "{name} has one heading");
        assert_eq!(page.matches("<main").count(), 1, "{name} has one main part");
        assert!(page.ends_with("</html>\n") || page.ends_with("</html>"), "{name} is whole");
        assert!(!page.contains("could not be written"), "{name}");
    }
}

/// What no text of others may leave in a page. Attributes of ours are never written so.
const OFFENCES: [&str; 7] =
    ["<script>", "<img", "<svg/", "onerror=alert(1)>", "\"onmouseover", "</textarea></title>", "<b>*"];
/// Where the human's own words stand in a field again, as they were typed.
const TYPED: [&str; 5] = ["search", "history", "reservations", "write", "trouble"];

#[test]
fn what_others_wrote_is_text() {
    for (name, page) in screens(&HOSTILE) {
        for offence in OFFENCES {
            assert!(!page.contains(offence), "{name} has {offence}: {:?}", around(&page, offence));
        }
        assert!(TYPED.contains(&name) || !page.contains('\u{202e}'), "{name} hides something");
        if name != "projects" {
            assert!(page.contains("alert(1)") || page.contains("script"), "{name} does show it");
        }
    }
}

fn around<'a>(page: &'a str, offence: &str) -> Option<&'a str> {
    let at = page.find(offence)?;
    page.get(at.saturating_sub(80)..(at + 80).min(page.len()))
}

#[test]
fn nothing_asks_for_what_the_policy_forbids() {
    for (name, page) in screens(&PLAIN) {
        for forbidden in [" style=", " onclick", "javascript:", "<iframe", "<img", "<use"] {
            assert!(!page.contains(forbidden), "{name} has {forbidden}");
        }
        for script in page.split("<script").skip(1) {
            assert!(script.split('>').next().unwrap_or_default().contains("nonce=\"n0nce\""), "{name}: {script}");
        }
    }
}

#[test]
fn every_form_that_acts_carries_what_proves_it() {
    for (name, page) in screens(&PLAIN) {
        for form in page.split("<form ").skip(1) {
            let form = form.split("</form>").next().unwrap_or_default();
            if form.starts_with("method=\"post\"") || form.contains(" method=\"post\"") {
                assert_eq!(form.matches("name=\"csrf\" value=\"c5rf\"").count(), 1, "{name}: {form}");
                let is_leave = form.contains("action=\"/leave\"");
                assert_eq!(
                    form.matches("name=\"key\" value=\"fresh\"").count(),
                    usize::from(!is_leave),
                    "{name}: {form}"
                );
                assert_eq!(form.matches("name=\"back\"").count(), usize::from(!is_leave), "{name}: {form}");
            }
        }
    }
}

/// An id is there once, or the live parts of a page find the wrong place.
#[test]
fn an_id_is_there_once() {
    for (name, page) in screens(&PLAIN) {
        let mut ids: Vec<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        ids.sort_unstable();
        let count = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}");
    }
}

#[test]
fn every_field_has_a_name_for_those_who_do_not_see() {
    for (name, page) in screens(&PLAIN) {
        for (at, _) in
            page.match_indices("<input ").chain(page.match_indices("<textarea ")).chain(page.match_indices("<select "))
        {
            let field = page[at..].split('>').next().unwrap_or_default();
            if field.contains("type=\"hidden\"") || field.contains("aria-label=") {
                continue;
            }
            let inside = page[..at].rfind("<label").is_some_and(|label| !page[label..at].contains("</label>"));
            let id = field.split(" id=\"").nth(1).and_then(|rest| rest.split('"').next());
            let named = id.is_some_and(|id| page.contains(&format!("for=\"{id}\"")));
            assert!(inside || named, "{name}: {field}");
        }
    }
}

#[test]
fn where_nothing_is_a_screen_says_what_to_do() {
    let status = samples::empty();
    let none = Events { events: Vec::new(), cursor: 0, before: None, layout: Default::default() };
    let day = Day { first: None, last: None, hours: vec![0; 24], earlier: None, ..samples::day() };
    let nobody = Traffic { traffic: Vec::new(), since: None };
    let listed = reservations::Claims { path: "", claims: &[], contested: &[], total: 0, after: None, agents: &[] };
    let silent = ThreadView { messages: Vec::new(), before: None, ..samples::thread(&PLAIN) };
    let shown = |page: &dyn Fn(&Frame<'_>) -> String| framed(Screen::Now, "/", None, page);
    for page in [
        shown(&|frame| now::page(frame, &status, 1, &[])),
        shown(&|frame| projects::page(&Frame { project: None, projects: &[], key: frame.key, ..*frame })),
        shown(&|frame| threads::page(frame, &[], None)),
        shown(&|frame| thread::page(frame, &silent, &[])),
        shown(&|frame| search::page(frame, "", &Search::default())),
        shown(&|frame| search::page(frame, "words", &Search::default())),
        shown(&|frame| agents::page(frame, &[], "", 1)),
        shown(&|frame| agents::page(frame, &[], "silent", 1)),
        shown(&|frame| contacts::page(frame, &[], None)),
        shown(&|frame| reservations::page(frame, &listed)),
        shown(&|frame| history::page(frame, &EventFilter::default(), &none, 50)),
        shown(&|frame| replay::page(frame, &day, None)),
        shown(&|frame| talk::page(frame, &nobody)),
        shown(&|frame| write::page(frame, &write::Draft::default(), &write::Beside::default(), None)),
    ] {
        let empty = page.split("class=\"empty\"").nth(1).and_then(|rest| rest.split("</p>").next());
        assert!(empty.is_some_and(|text| text.contains("<code>") || text.contains("<a ")), "{empty:?}");
    }
}

#[test]
fn a_page_weighs_little() {
    for (name, page) in screens(&PLAIN) {
        assert!(page.len() < 60_000, "{name} weighs {}", page.len());
    }
    let mut status = samples::status(&PLAIN);
    status.agents = (0..500).map(|n| samples::agent(&format!("Agent{n}"), "active", true, n, &PLAIN)).collect();
    status.for_the_human = vec![status.for_the_human[0].clone(); 100];
    let page = framed(Screen::Now, "/", None, |frame| now::page(frame, &status, 1, &[]));
    assert!(page.len() < 120_000, "{}", page.len());
}

#[test]
fn the_words_that_were_looked_for_are_marked() {
    let seen = samples::search(&PLAIN);
    let found = |words: &str| framed(Screen::Search, "/s", None, |frame| search::page(frame, words, &seen));
    assert!(found("EXPIRE early!").contains("Sessions <mark>expire</mark> too <mark>early</mark>"));
    assert!(found("expir").contains("Sessions expire too early"));
    assert!(found("cookie").contains("<p class=\"excerpt\">…the <mark>cookie</mark> says"));
}

#[test]
fn a_moment_is_told_from_its_own_time() {
    let (claims, events) = (samples::claims(&PLAIN), samples::events(&PLAIN));
    let page = |at| {
        let moment = replay::Moment { at, events: &events, claims: &claims, contested: &[], total: 120 };
        framed(Screen::Replay, "/y", None, |frame| replay::page(frame, &samples::day(), Some(&moment)))
    };
    // It happened 52 minutes ago, and what was held then ends in 38.
    let middle = page(38);
    assert!(middle.contains(">in 2 h</time>") && middle.contains(">09:04:40</time> UTC"), "{middle}");
    assert!(middle.contains("?day=2026-11-16&amp;at=37\">← P") && middle.contains("?day=2026-11-16&amp;at=39\">N"));
    assert!(!page(46).contains("Next event") && !page(2).contains("Previous event"));
    assert!(middle.contains("120 claims, the first 6 shown</span>") && !middle.contains("contested"), "{middle}");
}

#[test]
fn what_was_contested_then_is_marked_in_a_replay() {
    let (claims, events) = (samples::claims(&PLAIN), samples::events(&PLAIN));
    let moment = replay::Moment { at: 38, events: &events, claims: &claims, contested: &[12, 14], total: 6 };
    let page = framed(Screen::Replay, "/y", None, |frame| replay::page(frame, &samples::day(), Some(&moment)));
    assert!(page.contains("6 claims, <b class=\"bad\">2 of them contested</b>"), "{page}");
    assert_eq!(page.matches("class=\"leaf is-contested\"").count(), 2, "{page}");
}

#[test]
fn wherever_times_of_day_are_shown_their_zone_is_said() {
    for (name, page) in screens(&PLAIN).into_iter().filter(|(_, page)| page.contains("class=\"events\"")) {
        assert!(page.contains("times are UTC"), "{name}");
    }
}

#[test]
fn what_is_looked_for_stays_in_the_box_and_what_is_found_is_counted() {
    let page = |here, before| {
        let search = Search { before, ..samples::search(&PLAIN) };
        framed(here, "/s?words=a%26b+%22c", None, |frame| search::page(frame, "a&b \"c", &search))
    };
    let kept = "autocomplete=\"off\" value=\"a&#38;b &#34;c\"";
    assert!(page(Screen::Search, None).contains(kept) && !page(Screen::Threads, None).contains(kept));
    assert!(page(Screen::Search, None).contains("1 message; the newest first"));
    assert!(page(Screen::Search, Some(7)).contains("1 are shown, and there are more"));
}

#[test]
fn one_claim_shares_and_several_share() {
    let (status, claims) = (samples::status(&PLAIN), samples::claims(&PLAIN));
    let page = |total| {
        let listed = reservations::Claims {
            path: "src",
            claims: &claims,
            contested: &[],
            total,
            after: None,
            agents: &status.agents,
        };
        framed(Screen::Reservations, "/r", None, |frame| reservations::page(frame, &listed))
    };
    assert!(page(1).contains("1 live claim that shares a path") && page(2).contains("2 live claims that share a path"));
}

#[test]
fn a_page_of_the_history_that_ended_early_says_how_far_it_looked() {
    let filter = EventFilter { by: Some("a&b".to_owned()), ..EventFilter::default() };
    let events = samples::history(&PLAIN);
    let page =
        |full| framed(Screen::History, "/h?by=a%26b", None, |frame| history::page(frame, &filter, &events, full));
    assert!(page(50).contains("Looked back to #30") && page(50).contains("/h?by=a%26b&amp;before=30"));
    assert!(!page(events.events.len()).contains("Looked back"));
    assert_eq!(NOW.to_the_second(), "2026-11-16T09:56:40Z");
}

/// Whoever mistyped a filter mends it where it stands.
#[test]
fn a_form_that_asks_for_what_there_cannot_be_is_shown_again_as_it_was_filled_in() {
    let refusal = Code::InputInvalid.refuse("\"yesterday\" is no time");
    let failure = recover::failure_outside("look", &refusal, &Setting::default());
    let filter = EventFilter {
        kind: vec!["mail_acked".to_owned()],
        by: Some("BlueLake".to_owned()),
        since: Some("yesterday".to_owned()),
        ..EventFilter::default()
    };
    let history = framed(Screen::History, "/h?since=yesterday", None, |frame| {
        history::refused(frame, &filter, trouble::Trouble::of(frame, &failure.error, |_| false))
    });
    for kept in
        ["INPUT_INVALID", "name=\"since\" value=\"yesterday\"", "value=\"BlueLake\"", "value=\"mail_acked\" checked"]
    {
        assert!(history.contains(kept), "{kept}: {history}");
    }
    assert!(!history.contains("id=\"history\""), "nothing was looked for");
    let claims = framed(Screen::Reservations, "/r?path=/etc", None, |frame| {
        reservations::refused(frame, "/etc", trouble::Trouble::of(frame, &failure.error, |_| false))
    });
    assert!(claims.contains("INPUT_INVALID") && claims.contains("name=\"path\" value=\"/etc\""), "{claims}");
    assert!(!claims.contains("live claim"), "none was counted: {claims}");
}

/// However many steps lead out of an error, what was typed before it stands in the page once.
#[test]
fn the_steps_out_of_an_error_are_buttons_of_one_form() {
    let refusal = Code::InboxFull.refuse("RedForest has too much unread mail");
    let mut failure = recover::failure_outside("send", &refusal, &Setting::default());
    let step = |number: usize, tool: &str| Step {
        step: number,
        why: format!("take {tool}"),
        tool: Some(tool.to_owned()),
        args: serde_json::json!({ "ids": [number] }).as_object().cloned(),
        ..Step::default()
    };
    failure.error.playbook = vec![step(1, "ack"), step(2, "send"), Step { why: "wait".to_owned(), ..Step::default() }];
    let page = framed(Screen::Write, "/w", None, |frame| {
        let kept = vec![("failed.body".to_owned(), "Typed with care".to_owned())];
        let trouble = trouble::Trouble::of(frame, &failure.error, |step| step.tool.is_some()).of_form(kept);
        write::page(frame, &write::Draft::default(), &write::Beside::default(), Some(trouble))
    });
    assert_eq!(page.matches("Typed with care").count(), 1, "{page}");
    let buttons: Vec<&str> = page.split("<button name=\"step\" value=\"").skip(1).collect();
    assert_eq!(buttons.len(), 2, "{page}");
    assert!(
        buttons[0].starts_with(
            "{&#34;args&#34;:{&#34;ids&#34;:[1]},&#34;step&#34;:1,&#34;tool&#34;:&#34;ack&#34;}\">Take ack<"
        ),
        "{page}"
    );
}

#[test]
fn nobody_is_asked_to_try_again_for_an_agent_that_is_not_there() {
    let shown = |code: Code| {
        let mut failure = recover::failure_outside("suspend", &code.refuse("it is not there"), &Setting::default());
        let again = Step { why: "make the same request again".to_owned(), is_retry: true, ..Step::default() };
        failure.error.playbook = vec![again];
        framed(Screen::Write, "/w", None, |frame| {
            let trouble = trouble::Trouble::of(frame, &failure.error, |_| false);
            write::page(frame, &write::Draft::default(), &write::Beside::default(), Some(trouble))
        })
    };
    assert!(!shown(Code::AgentNotRegistered).contains("the same request"));
    assert!(shown(Code::InboxFull).contains("Make the same request again"));
}
